"""While judges are tuned, no address tells a vote or a verdict on an item that is held out.

Every address of the product is asked twice: before and after votes and verdicts on items that are
held out were changed, and all that follows from them was made anew. What is answered must be the
same, to the last byte: then nothing tells them, neither singly nor in a sum.
"""

import re
from io import StringIO

import pytest
import time_machine
from django.contrib import admin
from django.core.management import CommandError, call_command, get_commands
from django.urls import reverse
from django.utils import timezone

from judge_eval.board.views.findings import TABLES
from judge_eval.exports.files import FORMATS
from judge_eval.workshop import services
from reports.models import Delivery
from reports.webhooks.services import make_webhook
from tests.helpers.held_out import ITEMS, Tuned
from tests.helpers.scores import scored
from tests.makers import make_vote, make_voter, seal_all
from tests.product.test_roles import (
    API,
    PAGES,
    PROTOCOL,
    make_scene,
    page_address,
    requested,
    written,
)
from voting.ballot.tuning import OF_ALL
from voting.items.choices import MILLION
from voting.items.kinds import VoteDetails

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

RUN = "/api/runs/{run_id}"
# Pages that have several addresses, by what stands in these.
NAMES = {
    "run-table": [{"table": name, "form": form} for name in TABLES for form in ("csv", "json")],
    "run-chart": [{"chart": name} for name in ("agreement", "winning_rates", "ratings", "rates")],
    "run-file": [{"form": form} for form in FORMATS],
    "shared-file": [{"name": name} for name in ("report.json", "card.png", "badge.svg")],
}
# Some answer by what stands behind the address, too.
QUERIES = {
    "run": ["all=1", "part=ballot:decided"],
    "run-pairs": ["sort=disagreement"],
    "run-people": ["sort=agreement"],
    "review": ["state=all", "state=all&variance=0.05"],
    "project-audit": ["kind=vote", "kind=verdicts", "show=changes"],
    f"GET {RUN}/export": [f"format={form}" for form in FORMATS],
    f"GET {RUN}/findings": ["part=ballot:decided"],
    f"GET {RUN}/gate": [
        "judge=first&min_agreement=0.5&like_people=true",
        "judge=first&not_worse_than=second&margin=0.1&at={seq}",
        "judge=variant&min_agreement=0.5",
    ],
    "GET /api/review": ["state=all"],
}
# What is not compared, and why. The command line asks the API alone, as humanjudge.load does.
LEFT_OUT = {
    "voter GET my-votes": "A voter's own votes: the voter knows them.",
    "voter GET reveal": "The voter's own vote, and no judge: see below.",
    "superuser POST look-held-out": "A look at a variant's figure on that half, which is counted.",
    "GET metrics": "How many requests were answered: they are other ones.",
    "admin judge_eval.findings": "How many seconds it took; what was found is not listed.",
}
# What is made at that moment has names and tokens that are drawn: these are left out of answers.
MADE = {
    "voter GET vote",
    *(f"POST /api/runs{what}" for what in ("", "/demo", "/import")),
    *(f"POST {RUN}/{what}" for what in ("import", "variants", "scores", "shares")),
    *(f"POST {what}" for what in ("/api/projects/{project_id}/shares", "/api/v1/models")),
    f"POST {RUN}/judge-eval/vote",
}
DRAWN = re.compile(
    r'[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[\w:.=-]{20,}|_begins": "[\w-]{6}'
    r'|"id": \d+'  # a row that was taken back may have used a number up
)
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"')
# How a row of the admin leads to its item, by the field that it has.
OF_HELD_OUT = {
    "is_held_out": "is_held_out",
    "item": "item__is_held_out",
    "verdict": "verdict__item__is_held_out",
}
OWN_APPS = {"humanjudge", "voting", "judge_eval", "reports"}
# Commands that read or compute something of votes; all others that are ours, and why they are not.
READING = {"export_run", "export_ledger", "score"}
OTHERS = {
    **dict.fromkeys(("backup", "restore"), "A backup is whole: whoever keeps the server has it."),
    **dict.fromkeys(("replay", "compute_findings"), "They compute, and tell what was corrected."),
    **dict.fromkeys(("verify", "verify_ledger", "votes"), "They read a file that one has."),
    **dict.fromkeys(("import_run", "import_waiting", "keep_replies"), "They write."),
    **dict.fromkeys(("load_demo", "personal_key", "serve", "up"), "They write, or start programs."),
}


@pytest.fixture(params=["pairs", "items"])
def tuned(request):
    with time_machine.travel(timezone.now(), tick=False) as clock:
        yield Tuned(make_scene(pairs=ITEMS), clock, request.param)


def read(answer, name=""):
    text = CSRF.sub("", answer.getvalue().decode(errors="replace"))
    return f"{answer.status_code} {DRAWN.sub('', text) if name in MADE else text}"


def pages(tuned, names):
    for page in names:
        methods, _ = PAGES[page]
        for named in NAMES.get(page, [{}]):
            address = page_address(tuned.world, page, **named)
            for query in ["", *QUERIES.get(page, [])]:
                for person in ("superuser", "voter", "anonymous"):
                    if "GET" in methods or not methods:
                        yield f"{person} GET {page}", person, f"{address}?{query}", None
            if "POST" in methods:
                posted = tuned.world.posted.get(page, {})
                yield f"superuser POST {page}", "superuser", address, posted


def of_pages(tuned, names=PAGES):
    for name, person, address, posted in pages(tuned, names):
        client = tuned.clients[person]
        cookies = client.cookies.copy()
        with written():
            answer = client.get(address) if posted is None else client.post(address, posted)
            yield name, address, read(answer, name)
        client.cookies = cookies


def of_the_api(tuned):
    for table, key in ((API, tuned.key), (PROTOCOL, tuned.person)):
        for operation, takes in table.items():
            for query in ["", *QUERIES.get(operation, [])]:
                asked = f"{operation}?{query.format(seq=tuned.project.head_seq)}"
                with written():
                    answer = requested(tuned.world, key, asked, takes.body)
                    yield operation, asked, read(answer, operation)


def of_the_admin(tuned):
    for model, page in admin.site._registry.items():
        name = f"admin:{page.opts.app_label}_{page.opts.model_name}"
        addresses = [reverse(f"{name}_change", args=[pk]) for pk in shown_rows(model)]
        for address in [reverse(f"{name}_changelist"), *addresses]:
            with written():
                answer = tuned.clients["superuser"].get(address)
                yield f"admin {model._meta.label_lower}", address, read(answer)


def shown_rows(model):
    """Keys of the newest rows of a model, and of the newest that are of items held out."""
    newest = model._default_manager.order_by("-pk").values_list("pk", flat=True)
    found = [*newest[:3]]
    fields = {field.name for field in model._meta.get_fields()}
    for field, path in OF_HELD_OUT.items():
        if field in fields:
            found += newest.filter(**{path: True})[:3]
    return dict.fromkeys(found)


def told(tuned):
    """Return what every address answers, by its name and the address itself."""
    return {
        (name, address): text
        for answers in (of_pages, of_the_api, of_the_admin)
        for name, address, text in answers(tuned)
        if name not in LEFT_OUT and name.partition(" ")[2] not in LEFT_OUT
    }


def differing(before, after):
    assert before.keys() == after.keys()
    return {name for name, text in before.items() if text != after[name]}


def test_no_address_tells_a_vote_or_a_verdict_that_is_held_out(tuned):
    before = told(tuned)
    assert {name.split()[-1] for (name, _), text in before.items() if text[0] == "5"} == {"healthz"}
    tuned.change()
    assert differing(before, told(tuned)) == set()
    # Afterwards they are told: by these addresses it is seen that something was kept back.
    services.end(tuned.run)
    seal_all(tuned.project)
    telling = ("run-pair", "run-call", "review-item")
    later = {name for name, _, text in of_pages(tuned, telling) if "changed" in text}
    assert later >= {f"superuser GET {page}" for page in telling}


@pytest.mark.parametrize("tuned", ["pairs"], indirect=True)
def test_a_voter_sees_the_own_vote_and_no_judge(tuned):
    voter, reveal = tuned.clients["voter"], page_address(tuned.world, "reveal")
    shown = read(voter.get(reveal))
    assert "You chose" in shown
    assert not any(judge in shown for judge in tuned.judges)
    services.end(tuned.run)
    assert all(judge in read(voter.get(reveal)) for judge in tuned.judges)


@pytest.mark.parametrize("tuned", ["pairs"], indirect=True)
def test_commands_tell_nothing_either(tuned, tmp_path):
    ours = {name for name, app in get_commands().items() if app in OWN_APPS}
    assert ours == READING | OTHERS.keys()
    before = of_commands(tuned, tmp_path / "before")
    tuned.change()
    assert of_commands(tuned, tmp_path / "after") == before
    refused = {" ".join(command) for command, text in before.items() if text == OF_ALL}
    run, project = str(tuned.run.pk), str(tuned.project.pk)
    assert refused == {
        f"export_ledger {project}",
        f"export_run --project {project}",
        *(f"export_run {run} --format {form}" for form in ("jsonl", "ledger")),
    }


def of_commands(tuned, folder):
    """Return what commands write, by their arguments; nothing of those that refuse."""
    folder.mkdir()
    run, project, out = str(tuned.run.pk), str(tuned.project.pk), folder / "out"
    exports = [("export_run", run, "--format", form) for form in FORMATS]
    exports += [("export_run", "--project", project), ("export_ledger", project)]
    written_by = {}
    for command in exports:
        try:
            call_command(*command, "--out", out, stderr=StringIO())
            written_by[command] = out.read_bytes()
        except CommandError as refused:
            written_by[command] = str(refused)
    table = scored(tuned.run, folder / "scores")
    results = [path.read_text() for path in sorted(folder.glob("scores/scores/**/*.json"))]
    return written_by | {("score", run): [table.partition("written to")[0], *results]}


@pytest.mark.parametrize("tuned", ["items"], indirect=True)
def test_no_webhook_tells_that_a_score_moves(tuned):
    make_webhook(tuned.project, "https://8.8.8.8/hook", ["score.crossed"], 0.5, "http://testserver")
    cross(tuned, held_out=True)
    assert not Delivery.objects.filter(event="score.crossed").exists()
    services.end(tuned.run)
    cross(tuned, held_out=False)
    assert Delivery.objects.filter(event="score.crossed").exists()


def cross(tuned, **of):
    """Let so many people vote the one and then the other that a score crosses any line."""
    item = tuned.run.queue.items.filter(is_held_out=of["held_out"])[0]
    for choice, value in (("pass", MILLION), ("flag", 0)):
        for _ in range(60):
            make_vote(make_voter(tuned.run), item, choice, further=VoteDetails(value))
        tuned.clock.shift(10_000_000)
        seal_all(tuned.project)
