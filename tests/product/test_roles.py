"""Who may do what, proved: every address of the product, by each method, asked by everybody.

The addresses come from Django's resolver and from the two OpenAPI documents. What each takes stands
in `PAGES`, `API` and `PROTOCOL`; who may do that follows from `ALLOWED` in `voting.access.roles`.
Whoever adds an address adds a line here, or a test fails.
"""

import json
import re
from collections.abc import Collection
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.urls import URLResolver, get_resolver, resolve, reverse

from humanjudge.api import api, grandjury_api
from humanjudge.settings import BASE_DIR
from judge_eval.models import Import
from reports.composite import sources
from reports.grandjury import services as grandjury
from reports.models import Delivery, ScoreReport, Webhook
from reports.quality.parameters import DEFAULT
from reports.quality.views import initial_values
from reports.report.views.shares import make_share
from reports.review.services import decide
from reports.scores import views
from tests.helpers.pages import queries_of, text_of
from tests.helpers.run_findings import compute
from tests.helpers.run_rows import make_calls, make_config, make_provider
from tests.makers import (
    key_client,
    make_invite,
    make_key,
    make_picture,
    make_project,
    make_run,
    make_vote,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.access.roles import ALLOWED, NO_NEW_PROJECTS
from voting.ballot import signed_form
from voting.ballot.assignment import ballot_for
from voting.ballot.services import flag
from voting.curating.services import exclude_voter
from voting.models import ApiKey, Member, Project
from voting.people.voters import invite_token, voter_of_user

# Some nine seconds of work, which take minutes where others work, too.
pytestmark = pytest.mark.django_db

ROLES_DOC = BASE_DIR / "docs" / "roles.md"
ROLES = [*Member.Role.values]
# Who asks for pages. The voter has pairs left to vote on, and no login.
PERSONS = ("anonymous", "voter", "stranger", *ROLES, "superuser")

# What an address takes: an action of ALLOWED in its project, or one of these.
OTHERWISE = {
    "anybody": PERSONS,
    "a login": ("stranger", *ROLES, "superuser"),
    "a voter": ("voter",),
    # Nobody who would read what others think of items that they have yet to vote on.
    "no voter": tuple(person for person in PERSONS if person != "voter"),
    # Only whose it is.
    "its person": ("owner",),
    "add_project": ("superuser",),
    # In no project: whoever runs the server.
    "everything": ("superuser",),
}

# The name of each address: its methods, and what they take.
PAGES = {
    "home": ("GET", "anybody"),
    "favicon": ("GET", "anybody"),
    "login": ("GET POST", "anybody"),
    "logout": ("POST", "anybody"),
    "admin-login": ("GET POST", "anybody"),
    # Without an identity provider there are none: see tests/voting/access/test_openid.py.
    "provider-login": ("", ""),
    "provider-callback": ("", ""),
    # Of machines, which have no login: see tests/humanjudge/server/test_server_metrics.py.
    "healthz": ("", ""),
    "metrics": ("", ""),
    # Whoever knows the hash of a picture has seen it.
    "picture": ("GET", "anybody"),
    "thumbnail": ("GET", "anybody"),
    # Whoever has the link.
    "join": ("GET POST", "anybody"),
    "shared-report": ("GET", "no voter"),
    "shared-bundle": ("GET", "no voter"),
    "shared-file": ("GET", "no voter"),
    # Votes.
    "vote": ("GET", "a voter"),
    "cast-vote": ("POST", "a voter"),
    "more-pairs": ("GET", "a voter"),
    "leave": ("POST", "a voter"),
    "undo": ("POST", "a voter"),
    "skip": ("POST", "a voter"),
    "flag": ("POST", "a voter"),
    "my-votes": ("GET", "a voter"),
    "reveal": ("GET", "a voter"),
    # A run.
    "run": ("GET", "see"),
    "see-figures": ("POST", "see"),
    "run-pairs": ("GET", "see"),
    "run-pair": ("GET", "see"),
    "run-alt-test": ("GET", "see"),
    "run-items-needed": ("GET", "see"),
    "run-models": ("GET", "see"),
    "run-table": ("GET", "see"),
    "run-chart": ("GET", "see"),
    "run-composite": ("GET", "see"),
    "run-quality": ("GET", "see"),
    "run-draft": ("GET", "see calls"),
    "run-progress": ("GET", "see calls"),
    "run-workshop": ("GET", "see calls"),
    "run-calls": ("GET", "see calls"),
    "run-call": ("GET", "see calls"),
    "run-scores": ("GET", "see calls"),
    "download-scores": ("GET", "see calls"),
    "run-people": ("GET", "see people"),
    "run-data": ("GET", "export"),
    "run-export": ("GET", "anybody"),
    "run-file": ("GET", "export"),
    "make-invite": ("GET POST", "invite"),
    "make-personal-invites": ("POST", "invite"),
    "invite-qr": ("GET", "invite"),
    "withdraw-invite": ("POST", "invite"),
    "vote-as-user": ("POST", "vote"),
    "start-run": ("POST", "run"),
    "stop-run": ("POST", "run"),
    "resume-run": ("POST", "run"),
    "retry-run": ("POST", "run"),
    "add-judges": ("POST", "run"),
    "open-tuning": ("POST", "run"),
    "add-variant": ("POST", "run"),
    "ask-variant": ("POST", "run"),
    "look-held-out": ("POST", "run"),
    "tag-disagreement": ("POST", "run"),
    "use-judge": ("POST", "run"),
    "drop-variant": ("POST", "run"),
    "suggest-wording": ("POST", "run"),
    "end-tuning": ("POST", "run"),
    "change-anchors": ("POST", "run"),
    "duplicate-run": ("POST", "run"),
    "archive-run": ("POST", "run"),
    "unarchive-run": ("POST", "run"),
    "try-judge": ("POST", "run"),
    "delete-draft": ("POST", "run"),
    "change-question": ("POST", "run"),
    "change-votes-wanted": ("POST", "run"),
    "save-composite": ("POST", "run"),
    # An embedder spends the money of a provider.
    "ask-for-scores": ("POST", "run"),
    "run-import": ("GET POST", "run"),
    "exclude-voter": ("POST", "decide"),
    "leave-out-judge": ("POST", "decide"),
    "include-judge": ("POST", "decide"),
    "change-group": ("POST", "decide"),
    "take-back": ("POST", "decide"),
    "run-shares": ("GET POST", "share"),
    "delete-run": ("GET POST", "manage"),
    # Lists and forms of all that one may see or do, and what belongs to no run.
    "runs": ("GET", "a login"),
    "projects": ("GET", "a login"),
    "traced-models": ("GET", "a login"),
    "planner": ("GET", "a login"),
    "new-run": ("GET POST", "run"),
    "new-run-config": ("GET POST", "run"),
    "import-files": ("GET POST", "run"),
    "import": ("GET POST", "run"),
    "stop-import": ("POST", "run"),
    "discard-import": ("POST", "run"),
    "providers": ("GET", "run"),
    "try-provider": ("POST", "run"),
    "review": ("GET", "see people"),
    "review-item": ("GET", "see people"),
    "decide": ("POST", "decide"),
    "decide-many": ("POST", "decide"),
    "reverse-decision": ("POST", "decide"),
    # A project.
    "new-project": ("GET POST", "add_project"),
    "project-quality": ("GET", "see"),
    "change-quality-settings": ("POST", "manage"),
    "project-people": ("GET", "see people"),
    "project-audit": ("GET", "see people"),
    "project-settings": ("GET", "manage"),
    "save-project-settings": ("POST", "manage"),
    "add-member": ("POST", "manage"),
    "change-member": ("POST", "manage"),
    "change-reputation": ("POST", "manage"),
    "project-keys": ("GET", "manage"),
    "make-project-key": ("POST", "manage"),
    "revoke-project-key": ("POST", "manage"),
    "webhooks": ("GET POST", "manage"),
    "change-webhook": ("POST", "manage"),
    "send-again": ("POST", "manage"),
    "project-shares": ("GET POST", "share"),
    "revoke-share": ("POST", "share"),
    # The installation.
    "new-provider": ("GET POST", "everything"),
    "change-provider": ("GET POST", "everything"),
    "extensions": ("GET", "everything"),
    "switch-extension": ("POST", "everything"),
    # Keys of one's own: what they may do, the role says when they are used.
    "make-person-key": ("POST", "a login"),
    "revoke-person-key": ("POST", "its person"),
    "make-model": ("POST", "run"),
    "renew-model-key": ("POST", "its person"),
    "revoke-model-key": ("POST", "its person"),
    "open-benchmark": ("POST", "its person"),
}


class Takes(NamedTuple):
    """What an operation takes: scopes of the key, and an action in the project.

    Without an action it is about what the key knows: a list, or a check that writes nothing. Who
    may not make something in the project that it `names` is told that there is none, with 422.
    """

    scopes: str = ""
    action: str = ""
    body: object = None
    names: bool = False


RUN, JUDGE_EVAL = "/api/runs/{run_id}", "/api/runs/{run_id}/judge-eval"
REVOKE = "POST /api/projects/{project_id}/shares/{share_id}/revoke"
API = {
    "GET /api/default-prompts": Takes("read"),
    "GET /api/extensions": Takes("read"),
    "POST /api/extensions/{extension_id}/toggle": Takes("manage", "everything"),
    "GET /api/runs": Takes("read"),
    "POST /api/runs": Takes("manage", "run", "config", names=True),
    "POST /api/runs/estimate": Takes("read", body="plain config"),
    "POST /api/runs/demo": Takes("manage", "run", "demo", names=True),
    "POST /api/runs/import": Takes("manage", "run", "files", names=True),
    f"GET {RUN}": Takes("read", "see"),
    f"GET {RUN}/events": Takes("read", "see"),
    f"GET {RUN}/findings": Takes("read", "see"),
    f"GET {RUN}/gate": Takes("read", "see"),
    f"POST {RUN}/gate/ask": Takes("manage", "run", "missing"),
    f"GET {RUN}/people": Takes("manage", "see people"),
    f"GET {RUN}/export": Takes("manage", "export"),
    f"POST {RUN}/import": Takes("manage", "run", "files"),
    f"POST {RUN}/start": Takes("manage", "run"),
    f"POST {RUN}/stop": Takes("manage", "run"),
    f"POST {RUN}/resume": Takes("manage", "run"),
    f"POST {RUN}/retry": Takes("manage", "run"),
    f"GET {RUN}/left-out": Takes("manage", "see people"),
    f"POST {RUN}/left-out": Takes("manage", "decide", "left out"),
    f"POST {RUN}/left-out/take-back": Takes("manage", "decide", "counts again"),
    f"POST {RUN}/duplicate": Takes("manage", "run"),
    f"POST {RUN}/judges": Takes("manage", "run", "judges"),
    f"GET {RUN}/variants": Takes("read", "see"),
    f"POST {RUN}/variants": Takes("manage", "run", "judges"),
    f"POST {RUN}/variants/tuning": Takes("manage", "run", "tuning"),
    f"POST {RUN}/variants/ask": Takes("manage", "run", "variant"),
    f"POST {RUN}/variants/look": Takes("manage", "run", "variant"),
    f"POST {RUN}/variants/decide": Takes("manage", "run", "keep"),
    f"GET {RUN}/variants/disagreements": Takes("manage", "run"),
    f"POST {RUN}/variants/tag": Takes("manage", "run", "tag"),
    f"GET {RUN}/variants/suggestion": Takes("manage", "run"),
    f"POST {RUN}/variants/suggestion": Takes("manage", "run", "suggestion"),
    f"POST {RUN}/scores": Takes("manage", "run"),
    f"GET {RUN}/scores/{{report_id}}": Takes("read", "see"),
    f"GET {RUN}/scores/{{report_id}}/download": Takes("read", "see"),
    f"GET {RUN}/composite": Takes("read", "see"),
    f"PUT {RUN}/composite": Takes("manage", "run", "composite"),
    f"GET {JUDGE_EVAL}/pending": Takes("read", "see"),
    f"GET {JUDGE_EVAL}/results": Takes("read", "see"),
    f"POST {JUDGE_EVAL}/vote": Takes("vote", "vote", "vote"),
    f"POST {JUDGE_EVAL}/simulate": Takes("vote manage", "run", "simulate"),
    "GET /api/imports/{import_id}": Takes("manage", "run"),
    "POST /api/imports/{import_id}/stop": Takes("manage", "run"),
    "GET /api/review": Takes("read manage"),
    "POST /api/review/{item_id}/decisions": Takes("manage", "decide", "decision"),
    "GET /api/planner": Takes("read"),
    f"GET {RUN}/shares": Takes("manage", "share"),
    f"POST {RUN}/shares": Takes("manage", "share", "nothing"),
    f"POST {RUN}/shares/{{share_id}}/revoke": Takes("manage", "share"),
    "GET /api/projects/{project_id}/shares": Takes("manage", "share"),
    "POST /api/projects/{project_id}/shares": Takes("manage", "share", "nothing"),
    REVOKE: Takes("manage", "share"),
    "GET /api/projects/{project_id}/quality": Takes("read", "see"),
    "PATCH /api/projects/{project_id}/quality": Takes("manage", "manage", "parameters"),
}
COMPOSITE = {
    "weights": {"preferred": {"weight": 1, "reason": "What people choose."}},
    "sources": {"preferred": "win_rate"},
}
# As `API`; instead of an action, `own` is for whose model it is. A model has a key of its own.
PROTOCOL = {
    "POST /api/v1/verdict/histogram": Takes(),
    "POST /api/v1/verdict/completeness": Takes(),
    "POST /api/v1/verdict/population-confidence": Takes(),
    "POST /api/v1/verdict/majority-good": Takes(),
    "POST /api/v1/verdict/votes-distribution": Takes(),
    "GET /api/v1/benchmarks/{benchmark_id}/leaderboard": Takes(),
    "POST /api/v1/evaluate": Takes("read", "see", "score"),
    "POST /api/v1/traces/ingest": Takes("ingest", "the model", "trace"),
    "GET /api/v1/models/me": Takes("read"),
    "GET /api/v1/challenges": Takes("read"),
    "GET /api/v1/benchmarks/{benchmark_id}/votes": Takes("read"),
    "GET /api/v1/models/{model_id}": Takes("read", "own"),
    "GET /api/v1/models/{model_id}/evaluations": Takes("read", "own"),
    "POST /api/v1/models": Takes("manage", "run", "model"),
    "POST /api/v1/models/{model_id}/enroll/{benchmark_id}": Takes("manage", "own", "nothing"),
}


# --- whatever addresses name, made once -----------------------------------------------------------


@pytest.fixture(scope="module")
def scene(module_db):
    return make_scene()


def make_scene(pairs=4):
    """One of each thing that an address can name, in one project of which all roles are members."""
    project = make_project("Here")
    clients = {role: member_client(project, role) for role in ROLES}
    clients["stranger"] = member_client(project, "")
    owner = User.objects.get(username="owner")
    clients["superuser"] = user_client("root")
    run = make_run(project, pairs=pairs, votes_wanted=3, baselines=())
    voter, first, second = make_voter(run, name="Ann"), *pairs_of(run)[:2]
    vote = make_vote(voter, first)
    clients |= {"anonymous": Client(), "voter": voter_client(voter)}
    seal_all(project)
    compute(run)
    lead = voter_of_user(project, owner)
    flag(voter, second.pk, "unsafe", "")
    decision = decide(second, "keep", lead, "", after=None)
    flag(voter, second.pk, "unsafe", "")
    model, _ = grandjury.create_model(owner, project, "Bot")
    benchmark = model.enrollments.get().benchmark
    grandjury.open_to_enrolment(benchmark, is_open=True)
    report = ScoreReport.objects.create(run=run, state=ScoreReport.State.DONE)
    views.path_of(report).parent.mkdir(parents=True, exist_ok=True)
    views.path_of(report).write_bytes(b"zip")
    sources.store(run, sources.read_config(run, COMPOSITE))
    share, token = make_share(project, run, owner)
    provider = make_provider()
    webhook = Webhook.objects.create(project=project, url="https://example.org/", events=["ping"])
    names = {
        "run_id": run.pk,
        "queue_id": run.queue_id,
        "project_id": project.pk,
        "item_id": second.pk,
        "voter_id": make_voter(run, name="Ben").pk,
        "decision_id": exclude_voter(
            make_voter(run).pk, run.queue, lead, reason="Bot", after=None
        ).uid,
        "uid": decision.uid,
        "vote_uid": vote.uid,
        "judge_id": run.judges.all()[0].pk,
        "call_id": make_calls(run, state="failed")[0].pk,
        "invite_id": make_invite(run).pk,
        "share_id": share.pk,
        "member_id": project.members.get(role="viewer").pk,
        "webhook_id": webhook.pk,
        "delivery_id": Delivery.objects.create(webhook=webhook, event="ping", payload={}).pk,
        "action": "off",
        "extension_id": "random",
        "import_id": Import.objects.create(project=project, form={"files": ["a.csv"]}).pk,
        "report_id": report.pk,
        "model_id": model.pk,
        "benchmark_id": benchmark.pk,
        "key_id": grandjury.create_person_key(owner, "mine", ["read"], None)[0].pk,
        "png_sha256": make_picture().png_sha256,
        "table": "board",
        "form": "csv",
        "chart": "agreement",
        "name": "default",
        "provider_id": provider.pk,
    }
    ballot = signed_form.issue(ballot_for(voter, run.queue, pairs_of(run)[2]))
    return SimpleNamespace(
        project=project,
        run=run,
        model=model,
        benchmark=benchmark,
        clients=clients,
        names=names,
        # Names that mean something else at some addresses.
        of={
            "revoke-project-key": {"key_id": make_key("read", project=project)[0].pk},
            REVOKE: {"share_id": make_share(project, None, owner)[0].pk},
            "join": {"token": invite_token(make_invite(run))},
            "shared-report": {"token": token},
            "shared-bundle": {"token": token},
            "shared-file": {"token": token, "name": "report.json"},
        },
        posted={
            "cast-vote": {"ballot": ballot, "choice": "A"},
            "skip": {"ballot": ballot},
            "try-provider": {"model": "m"},
            "switch-extension": {"state": "off"},
        },
    )


@contextmanager
def written():
    """Collect the statements that write, and take back what they wrote."""
    statements = []

    def note(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        is_writing = sql.lstrip().startswith(("INSERT", "UPDATE", "DELETE"))
        if is_writing and context["cursor"].rowcount != 0:
            statements.append(sql)
        return result

    with connection.execute_wrapper(note), transaction.atomic():
        yield statements
        transaction.set_rollback(True)


def is_refused(response) -> bool:
    to_login = response.status_code == 302 and response.url.startswith("/login/?")
    return to_login or response.status_code in (401, 403, 404)


def who_may(what) -> Collection[str]:
    return OTHERWISE.get(what) or {*ALLOWED[what], "superuser"}


def test_the_documentation_has_the_table():
    no = "\N{EN DASH}"
    row = rf"^\| \*\*([a-z ]+)\*\*.*?((?: \| (?:yes|{no})){{4}}) \|$"
    rows = re.findall(row, ROLES_DOC.read_text(), re.MULTILINE)
    told = {what: re.findall(f"yes|{no}", cells) for what, cells in rows}
    assert told == {
        action: ["yes" if role in allowed else no for role in ROLES]
        for action, allowed in ALLOWED.items()
    }


# --- pages ----------------------------------------------------------------------------------------


@cache
def named_addresses():
    """Return the names of all pages with the arguments of their addresses, and those of the API."""
    pages, operations = {}, set()

    def walk(resolver, before, space):
        for pattern in resolver.url_patterns:
            route = before + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                if pattern.namespace != "admin":
                    walk(pattern, route, space or pattern.namespace)
            elif space:
                operations.add("/" + route.replace("<", "{").replace(">", "}"))
            else:
                pages[pattern.name] = re.findall(r"<(?:\w+:)?(\w+)>", route)

    walk(get_resolver(), "", "")
    return pages, operations


def test_every_page_has_its_line():
    pages, operations = named_addresses()
    assert pages.keys() == PAGES.keys()
    described = {
        path for each in (api, grandjury_api) for path in each.get_openapi_schema()["paths"]
    }
    # The documents themselves, and what they are shown by.
    own = {f"/api/{v}{page}" for v in ("", "v1/") for page in ("", "docs", "openapi.json")}
    assert described | own == operations


class Answer(NamedTuple):
    """What a page answered: whether it refused, what it wrote, the addresses that it offers."""

    status_code: int
    is_refused: bool
    statements: list[str]
    offered: list[tuple[str, str]]


@pytest.fixture(scope="module")
def answers(scene):
    """What all pages answer everybody, by page, method and person: they are asked once."""
    found = {}
    for page, (methods, _) in PAGES.items():
        for method in methods.split():
            for person in PERSONS:
                answer, statements = ask(scene, person, method, page)
                is_html = "text/html" in answer.headers.get("Content-Type", "")
                offered = _OFFERED.findall(answer.getvalue().decode()) if is_html else []
                found[page, method, person] = Answer(
                    answer.status_code, is_refused(answer), statements, offered
                )
    return found


def test_pages_open_to_whom_they_may(answers):
    wrong = []
    for (page, method, person), answer in answers.items():
        if person in who_may(PAGES[page][1]):
            is_right = not answer.is_refused and answer.status_code < 500
        else:
            is_right = answer.is_refused and not answer.statements
        if not is_right:
            wrong.append((page, method, person, answer.status_code, answer.statements[:1]))
    assert not wrong, "\n".join(map(str, wrong))


def test_pages_take_no_other_method(scene):
    others = [
        (page, method, person)
        for page, (methods, _) in PAGES.items()
        for method in {"GET", "POST"} - {*methods.split()}
        for person in ("anonymous", "owner")
        if methods
    ]
    for page, method, person in others:
        assert ask(scene, person, method, page)[0].status_code == 405, (page, method)


def page_address(scene, page, **names):
    named = scene.names | scene.of.get(page, {}) | names
    return reverse(page, kwargs={name: named.get(name) for name in named_addresses()[0][page]})


def ask(scene, person, method, page):
    address = page_address(scene, page)
    client = scene.clients[person]
    cookies = deepcopy(client.cookies)
    with written() as statements:
        if method == "GET":
            answer = client.get(address)
        else:
            answer = client.post(address, scene.posted.get(page, {}))
        answer.getvalue()
    # It may have logged out.
    client.cookies = cookies
    return answer, statements


# --- the API --------------------------------------------------------------------------------------


class Key(NamedTuple):
    """Who asks the API: with which scopes, as which person, and of this project or another."""

    client: Client
    scopes: Collection[str] = ()
    role: str = ""
    is_here: bool = True


def keys_of(scene) -> dict[str, Key]:
    every = [*ApiKey.Scope.values]
    here, there = {"project": scene.project}, {"project": make_project("Elsewhere")}
    keys = {
        "no key": Key(Client(), is_here=False),
        "a key of another project": Key(_client(every, **there), every, is_here=False),
        "every scope": Key(_client(every, **here), every),
    }
    keys |= {scope: Key(_client([scope], **here), [scope]) for scope in every}
    return keys | _keys_of_persons(every, kind=ApiKey.Kind.SCRIPT)


def _keys_of_persons(scopes, **fields):
    persons = {role: role for role in ("stranger", *ROLES)} | {"superuser": "root"}
    return {
        f"the key of the {role}": Key(
            _client(scopes, user=User.objects.get(username=name), **fields), scopes, role
        )
        for role, name in persons.items()
    }


def _client(scopes, **fields):
    return key_client(make_key(*scopes, **fields)[1])


def bodies(scene):
    named = {"project": str(scene.project.pk)}
    config = make_config().as_dict()
    item = str(scene.names["item_id"])
    return {
        "config": config | named,
        "plain config": config,
        "demo": named | {"kind": "text"},
        "judges": {"judges": ["always-first"]},
        "tuning": {"open": True},
        "left out": {"judge": "judge-0", "why": "It is dead."},
        "counts again": {"judge": "judge-0"},
        "variant": {"variant": "judge-0"},
        "keep": {"variant": "judge-0", "use": True},
        "missing": {"judge": "judge-0"},
        "tag": {"variant": "judge-0", "item": item, "tag": "both_fine"},
        "suggestion": {"variant": "judge-0", "model": "wordsmith"},
        "vote": {"task_id": item, "winner": "A"},
        "simulate": {"choice": "auto"},
        "decision": {"action": "note", "why": "Seen."},
        "parameters": {"min_votes": 4},
        "composite": COMPOSITE,
        "trace": {"gj_inference_id": "t-1", "output": "An answer"},
        "model": {"name": "Another"},
        "score": {"previous_score": 0.5, "previous_timestamp": "2026-03-01", "votes": []},
        "nothing": {},
    }


def test_every_operation_has_its_line():
    for document, table in ((api, API), (grandjury_api, PROTOCOL)):
        paths = document.get_openapi_schema()["paths"]
        known = {f"{method.upper()} {path}" for path, of in paths.items() for method in of}
        assert known == table.keys()


def call(scene, client, operation, body):
    with written() as statements:
        answer = requested(scene, client, operation, body)
        answer.getvalue()
    # When a key was used last is noted with every request.
    return answer, [sql for sql in statements if not sql.startswith('UPDATE "voting_apikey"')]


def requested(scene, client, operation, body):
    method, path = operation.split()
    # The protocol names a benchmark by its slug.
    names = scene.names | {"benchmark_id": scene.benchmark.slug} | scene.of.get(operation, {})
    address = path.format(**names)
    if body == "files":
        file = SimpleUploadedFile("rows.csv", b"prompt,output_a,output_b\na,b,c\n")
        sent = {"file": file, "name": "Rows", "project": str(scene.project.pk)}
        return client.post(address, sent)
    sent = bodies(scene).get(body)
    data = b"" if sent is None else json.dumps(sent)
    return client.generic(method, address, data, "application/json")


def test_operations_are_done_for_whom_they_may(scene):
    wrong, keys = [], keys_of(scene)
    for operation, takes in API.items():
        for name, key in keys.items():
            answer, statements = call(scene, key.client, operation, takes.body)
            may = {*takes.scopes.split()} <= {*key.scopes}
            if takes.action:
                may = may and key.is_here
                may = may and (not key.role or key.role in who_may(takes.action))
            # Keys without a person are of one project here.
            may = may and (takes.action != "everything" or bool(key.role))
            refused = is_refused(answer) or (takes.names and answer.status_code == 422)
            if refused == may or answer.status_code >= 500 or (refused and statements):
                wrong.append((operation, name, answer.status_code, answer.content[:200]))
    assert not wrong, "\n".join(map(str, wrong))


def test_the_protocol_answers_whom_it_may(scene):
    scopes = ["read", "manage"]
    keys = {
        "no key": Key(Client(), role="nobody"),
        "the model": Key(key_client(grandjury.renew_key(scene.model)), ["read", "ingest"], "owner"),
    }
    keys |= _keys_of_persons(scopes, kind=ApiKey.Kind.PERSON, project=scene.project)
    owner, wrong = User.objects.get(username="owner"), []
    for scope in ApiKey.Scope.values:
        client = _client([scope], kind=ApiKey.Kind.PERSON, user=owner, project=scene.project)
        keys[f"the owner's to {scope}"] = Key(client, [scope], "owner")
    for operation, takes in PROTOCOL.items():
        for name, key in keys.items():
            answer, statements = call(scene, key.client, operation, takes.body)
            may = {*takes.scopes.split()} <= {*key.scopes}
            if takes.action == "own":
                may = may and key.role == "owner"
            elif takes.action == "the model":
                may = may and name == "the model"
            elif takes.action:
                may = may and key.role in who_may(takes.action)
            refused = is_refused(answer)
            if refused == may or answer.status_code >= 500 or (refused and statements):
                wrong.append((operation, name, answer.status_code, answer.content[:200]))
    assert not wrong, "\n".join(map(str, wrong))


# --- what pages offer -----------------------------------------------------------------------------

_OFFERED = re.compile(r'<(?:a\b[^>]* href|form\b[^>]* (action))="(/[^"]*)"')
# Offered to a voter who is sent on from it.
LEADS_ON = ("login", "logout", "home", "runs")


def test_pages_offer_what_works_for_their_reader(answers):
    wrong = set()
    for (page, method, person), answer in answers.items():
        if method != "GET" or person not in who_may(PAGES[page][1]):
            continue
        for is_form, address in answer.offered:
            name = resolve(address.partition("?")[0].partition("#")[0]).url_name
            takes = PAGES.get(name)
            if takes and person not in who_may(takes[1]) and name not in LEADS_ON:
                wrong.add((page, person, "form" if is_form else "link", name))
    assert not wrong, "\n".join(map(str, sorted(wrong)))


def test_lists_show_what_one_may_see_and_cost_the_same(scene):
    person = member_client(scene.project, "curator", name="curator")
    lists = ("/", "/runs/", "/projects/", "/review/", "/models/")
    costs = {address: queries_of(person, address) for address in lists}
    for number in range(5):
        elsewhere = make_run(make_project(f"Hidden {number}"), votes_wanted=3)
        elsewhere.name = f"Hidden run {number}"
        elsewhere.save()
        flag(make_voter(elsewhere), pairs_of(elsewhere)[0].pk, "unsafe", "")
    for address in lists:
        assert b"Hidden" not in person.get(address).content
        assert queries_of(person, address) == costs[address], address
    assert b"Hidden" in scene.clients["superuser"].get("/projects/").content
    runs = key_client(make_key("read", user=User.objects.get(username="curator"))[1])
    named = [run["project"] for run in runs.get("/api/runs").json()]
    assert {*named} == {"Here"}


def test_providers_and_imports_are_listed_to_whom_they_belong(scene):
    other = make_project("Hidden")
    make_provider(name="zwickau", project=other)
    stranger = User.objects.get(username="stranger")
    Import.objects.create(project=other, user=stranger, form={"files": ["zwickau.csv"]})
    Import.objects.create(user=stranger, form={"files": ["zwickau.csv"]})
    client = scene.clients["evaluator"]
    for address in ("/providers/", "/runs/import/"):
        assert b"zwickau" not in client.get(address).content
        assert b"zwickau" in scene.clients["superuser"].get(address).content


# --- who makes projects ---------------------------------------------------------------------------


def maker(**fields):
    user = User.objects.create(username="maker", **fields)
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    client = Client()
    client.force_login(user)
    return client, user


def test_who_makes_a_project_becomes_its_owner():
    before = Project.objects.count()
    client, user = maker()
    form = initial_values(DEFAULT) | {"name": "Mine"}
    form = {name: value for name, value in form.items() if value is not None}
    assert client.post("/projects/new/", form).status_code == 302
    config = {"config": json.dumps(make_config().as_dict()), "new_project": "Mine too"}
    assert client.post("/runs/new/config/", config).status_code == 302
    assert client.post("/models/new", {"model-name": "Bot"}).status_code == 200
    owned = Member.objects.filter(user=user, role="owner")
    names = {"Mine", "Mine too", "Models of maker"}
    assert {*owned.values_list("project__name", flat=True)} == names
    assert Project.objects.count() - before == len(names)


def test_who_may_make_none_is_told_so():
    client = member_client(make_project("Mine alone"), "evaluator", name="newcomer")
    before = Project.objects.count()
    assert "Name of the new project" not in text_of(client.get("/runs/new/"))
    config = {"config": json.dumps(make_config().as_dict()), "new_project": "Mine"}
    for address, form in (
        ("/projects/new/", {"name": "Mine"}),
        ("/runs/new/config/", config),
    ):
        answer = client.post(address, form)
        assert (answer.status_code, NO_NEW_PROJECTS in text_of(answer)) == (403, True)
    assert client.post("/models/new", {"model-name": "Bot"}).status_code == 422
    assert Project.objects.count() == before
