"""Whoever has items to vote on reads nothing of others' votes on them, or counts as exposed.

Every page and every operation is asked for as a member who was handed items of a run, by login and
by key. What others think of each item is in words that occur nowhere else.
"""

import json
import re
from functools import partial
from io import BytesIO
from types import SimpleNamespace
from unittest.mock import patch
from zipfile import ZipFile

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django_htmx.middleware import HtmxDetails

from judge_eval.models import Board, Verdict
from judge_eval.runs.access import open_items
from reports.grandjury import services as grandjury
from reports.report.files import FILES
from tests.helpers.grandjury import Model
from tests.helpers.grandjury import vote as vote_on
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    key_client,
    make_key,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    voter_client,
)
from tests.product.test_roles import (
    API,
    PAGES,
    PROTOCOL,
    ROLES,
    make_scene,
    page_address,
    requested,
    written,
)
from tests.voting.ballot.test_blindness import decoded, everything_in
from voting.ballot.services import flag
from voting.ledger import ledger
from voting.models import ApiKey, Assignment, Entry, Exposure, Inference, Item, Queue
from voting.people.voters import voter_of_user

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

# Pages show more with some queries and other names.
QUERIES = {
    "run": ["?all=1", "?part=ballot:decided", "?part=generator:generator-0"],
    "run-pairs": ["?sort=disagreement"],
    "project-people": ["?show=voters"],
    "project-audit": ["?show=changes"],
    "review": ["?state=all"],
}
NAMES = {
    "run-file": [{"form": form} for form in ("csv", "jsonl", "labels", "votes", "ledger")],
    "run-table": [{"table": table} for table in ("board", "alt-test", "models")],
    "shared-file": [{"name": name} for name in (*FILES, "report.html", "card.png")],
}


def make_study(pairs):
    """A run on all pairs of which others have voted; the owner was handed them, and did four."""
    scene = make_scene(pairs)
    run, owner = scene.run, User.objects.get(username="owner")
    voter = voter_of_user(scene.project, owner)
    words = {}
    for pair in pairs_of(run):
        number = f"{pair.position:03}"
        Verdict.objects.filter(item=pair).update(
            feedback=f"villach{number}x", score_a=f"7.25{number}1"
        )
        if not Entry.objects.filter(item=pair, kind="vote", voter__name="Ann").exists():
            make_vote(make_voter(run), pair, "B")
        words[pair.pk] = [f"villach{number}x", f"7.25{number}1"]
        Assignment.objects.create(voter=voter, item=pair, leased_until=timezone.now())
        flag(make_voter(run), pair.pk, "unsafe", f"salzburg{number}x")
        words[pair.pk].append(f"salzburg{number}x")
    Exposure.objects.filter(voter=voter).delete()
    for pair in pairs_of(run)[:4]:
        make_vote(voter, pair, "A")
    Item.objects.filter(queue=run.queue).update(votes_wanted=5)
    seal_all(scene.project)
    compute(run)
    words |= log_traces(scene, voter)
    for entry in Entry.objects.filter(queue=run.queue, kind="vote"):
        words[entry.item_id].append(str(entry.uid))
    done = [pair.pk for pair in pairs_of(run)[:4]]
    return SimpleNamespace(
        scene=scene,
        run=run,
        owner=owner,
        voter=voter,
        client=scene.clients["owner"],
        words={pk: of for pk, of in words.items() if pk not in done},
    )


def log_traces(scene, voter):
    """Let others vote on two traces of the owner's model, which the owner is to vote on as well."""
    Queue.objects.filter(pk=scene.benchmark.queue_id).update(votes_per_item=5)
    model = Model(scene.model, grandjury.renew_key(scene.model))
    words = {}
    for number, item in enumerate(model.logged("t-1", "t-2")):
        words[item.pk] = [f"bregenz{number}x"]
        vote_on(make_voter(scene.run), item, "flag", category="other", comment=words[item.pk][0])
        Assignment.objects.create(voter=voter, item=item, leased_until=timezone.now())
    seal_all(scene.project)
    return words


def leaks(study, ask):
    """Ask, in a transaction of its own, and return the open items whose secrets are told."""
    with transaction.atomic():
        answer = ask()
        text = everything_in(answer)
        if "zip" in answer.headers.get("Content-Type", "") and "PK" in text:
            text += unzipped(text)
        seen = set(Exposure.objects.filter(voter=study.voter).values_list("item", flat=True))
        transaction.set_rollback(True)
    texts = [each.lower() for each in decoded(text)]
    found = {
        word
        for item, words in study.words.items()
        for word in words
        if item not in seen and any(word in each for each in texts)
    }
    return found | {
        f"disputed {item.position}"
        for item in Item.objects.filter(pk__in=study.words.keys() - seen, queue=study.run.queue)
        if item.position in disputed_in(answer)
    }


def unzipped(text):
    with ZipFile(BytesIO(text[text.index("PK") :].encode("latin-1"))) as file:
        return "".join(file.read(name).decode("latin-1") for name in file.namelist())


def disputed_in(answer):
    """The places of the items that are said to divide people and judges, on a page or in JSON."""
    named = []
    if answer.headers.get("Content-Type") == "application/json" and not answer.streaming:
        body = json.loads(answer.content)
        runs = body.get("runs", []) if isinstance(body, dict) else []
        for part in [body, *(run["findings"] | run for run in runs if "findings" in run)]:
            named += part.get("disputed", []) if isinstance(part, dict) else []
    for context in answer.context or ():
        if "disputed" in context and "board" in context:
            named += [{"position": each.pair.position} for each in context["disputed"]]
        for run in context["report"].runs if "report" in context else ():
            named += [{"position": each.position} for each in run.disputed]
    return {each["position"] for each in named}


@pytest.fixture(scope="module", params=[16, 6], ids=["many", "few"])
def study(request, module_db):
    with transaction.atomic():
        yield make_study(request.param)
        transaction.set_rollback(True)


of_many = pytest.mark.parametrize("study", [16], indirect=True)


class Htmx(HtmxDetails):
    """What a page learns of HTMX: whoever never asks answers the same with it and without."""

    is_asked_for = False

    def __init__(self, request):
        Htmx.is_asked_for = False
        super().__init__(request)

    def __getattribute__(self, name):
        Htmx.is_asked_for = True
        return super().__getattribute__(name)

    def __bool__(self):
        Htmx.is_asked_for = True
        return super().__bool__()


def test_no_page_tells_a_member_of_items_that_they_have_to_vote_on(study, monkeypatch):
    monkeypatch.setattr("django_htmx.middleware.HtmxDetails", Htmx)
    wrong = {}
    for page, (methods, _) in PAGES.items():
        for names in NAMES.get(page, [{}]) if "GET" in methods else ():
            address = page_address(study.scene, page, **names)
            for query in ("", *QUERIES.get(page, [])):
                found = leaks(study, lambda a=address + query: study.client.get(a))
                if Htmx.is_asked_for:
                    found |= leaks(
                        study, lambda a=address + query: study.client.get(a, headers=HTMX)
                    )
                if found:
                    wrong[address + query] = sorted(found)[:3]
    assert not wrong, "\n".join(map(str, wrong.items()))


def assert_no_operation_tells(study, scopes):
    client = key_client(make_key(*scopes, user=study.owner)[1])
    wrong = {}
    for operation, takes in API.items():
        found = leaks(study, lambda o=operation, b=takes.body: requested(study.scene, client, o, b))
        if found:
            wrong[operation] = sorted(found)[:3]
    for form in ("csv", "jsonl", "labels", "votes", "ledger"):
        path = f"/api/runs/{study.run.pk}/export?format={form}"
        if found := leaks(study, lambda p=path: client.get(p)):
            wrong[path] = sorted(found)[:3]
    assert not wrong, "\n".join(map(str, wrong.items()))


def test_no_operation_tells_the_key_of_a_member(study):
    assert_no_operation_tells(study, ["read", "manage"])


@pytest.mark.parametrize(
    "study", [16, pytest.param(6, marks=pytest.mark.thorough)], indirect=True, ids=["many", "few"]
)
@pytest.mark.parametrize("scopes", [["read"], ["read", "manage", "vote"]], ids=["read", "vote"])
def test_no_operation_tells_a_key_that_may_less_or_more(study, scopes):
    assert_no_operation_tells(study, scopes)


def test_no_operation_of_the_protocol_tells_the_key_of_a_person(study):
    kind = {"kind": ApiKey.Kind.PERSON, "project": study.scene.project}
    client = key_client(make_key("read", "manage", user=study.owner, **kind)[1])
    wrong = {}
    for operation, takes in PROTOCOL.items():
        path = operation.split()[1]
        for name in (
            (operation, f"{operation}?detail=votes") if path.count("/") > 4 else (operation,)
        ):
            ask = partial(requested, study.scene, client, name, takes.body)
            if found := leaks(study, ask):
                wrong[name] = sorted(found)[:3]
    assert not wrong, "\n".join(map(str, wrong.items()))


FIGURES = ("", "?part=ballot:decided", "tables/board.csv", "alt-test/", "models/")


def figures_of(study, client, before, pages):
    """With what each page, or operation, that shows figures of a run is answered."""
    return {client.get(f"{before}/runs/{study.run.pk}/{page}").status_code for page in pages}


def test_figures_are_refused_while_an_item_with_votes_is_open(study):
    key = key_client(make_key("read", "manage", user=study.owner)[1])
    assert figures_of(study, study.client, "", FIGURES) == {403}
    # Invites stand beside the figures of voters.
    people = study.client.get(f"/runs/{study.run.pk}/people/").content.decode()
    assert 'id="voters"' not in people
    board = text_of(study.client.get(f"/runs/{study.run.pk}/"))
    assert "This is not shown while you have pairs to vote on" in board
    at = Board.objects.get(run=study.run).seq
    asked = "judge-eval/results", "findings", f"findings?part=at:{at}", "people"
    assert figures_of(study, key, "/api", asked) == {403}
    conditions = f"gate?judge={study.run.judges.all()[0].pk}&min_agreement=0.5"
    assert figures_of(study, key, "/api", (conditions,)) == {403}
    other = study.scene.clients["evaluator"]
    reader = voter_of_user(study.scene.project, User.objects.get(username="evaluator"))
    assert figures_of(study, other, "", FIGURES) == {200}
    seen = Exposure.objects.filter(voter=reader, item__queue=study.run.queue).count()
    assert (seen >= 6) if len(study.words) < 10 else seen
    for pair in pairs_of(study.run)[4:]:
        make_vote(study.voter, pair, "A")
    assert figures_of(study, study.client, "", FIGURES) == {200}
    assert figures_of(study, key, "/api", (*asked, conditions)) == {200}


@of_many
def test_a_part_without_open_items_is_shown(study):
    rare = [pk for pair in pairs_of(study.run)[:4] for pk in (pair.a_id, pair.b_id)]
    Inference.objects.filter(pk__in=rare).update(tags=["rare"])
    compute(study.run)
    tagged = f"/runs/{study.run.pk}/?part=tag:rare"
    assert study.client.get(tagged).status_code == 200
    assert study.client.get(f"/runs/{study.run.pk}/").status_code == 403


@of_many
def test_a_member_may_see_figures_first_and_later_votes_are_not_blind(study):
    board, key = f"/runs/{study.run.pk}/", key_client(make_key("read", user=study.owner)[1])
    assert f'action="{board}figures"' in study.client.get(board).content.decode()
    assert study.client.post(f"{board}figures").url == board
    assert figures_of(study, study.client, "", FIGURES) == {200}
    assert figures_of(study, key, "/api", ("judge-eval/results", "findings")) == {200}
    for pair in pairs_of(study.run)[4:]:
        make_vote(study.voter, pair, "A")
    seal_all(study.scene.project)
    votes = Entry.objects.filter(voter=study.voter, queue=study.run.queue, kind="vote")
    assert votes.filter(unblinded=True).count() == 12


def test_what_the_admin_shows_of_a_row_is_noted(study):
    User.objects.filter(pk=study.owner.pk).update(is_staff=True, is_superuser=True)
    verdict = Verdict.objects.filter(judge__run=study.run).last()
    entry = Entry.objects.filter(queue=study.run.queue, kind="vote").last()
    rows = f"judge_eval/verdict/{verdict.pk}/change", f"voting/entry/{entry.pk}/change"
    for name in ("judge_eval/verdict", "judge_eval/call", "voting/entry", *rows):
        address = f"/admin/{name}/"
        assert study.client.get(address).status_code == 200
        Exposure.objects.filter(voter=study.voter).delete()
        assert not leaks(study, lambda a=address: study.client.get(a)), address


@of_many
def test_the_search_finds_what_is_told_after_the_votes(study):
    """Without this the other tests could pass by looking at nothing."""
    for pair in pairs_of(study.run)[4:]:
        make_vote(study.voter, pair, "A")
    Exposure.objects.all().delete()
    share = page_address(study.scene, "shared-file")
    pair = pairs_of(study.run)[5]
    page = f"/runs/{study.run.pk}/pairs/{pair.pk}/"
    with patch("judge_eval.runs.access.record_exposure"):
        assert leaks(study, lambda: study.client.get(page)) >= {"villach005x", "7.250051"}
        assert any("disputed" in word for word in leaks(study, lambda: study.client.get(share)))
        board = leaks(study, lambda: study.client.get(f"/runs/{study.run.pk}/"))
        assert any("disputed" in word for word in board)


@of_many
def test_reading_before_voting_is_noted_and_the_votes_are_kept_apart(study):
    """As a member with open pairs, who takes a run away and votes on all of it."""
    assert study.client.get(f"/runs/{study.run.pk}/export/csv").getvalue()
    for pair in pairs_of(study.run)[4:]:
        make_vote(study.voter, pair, "A")
    seal_all(study.scene.project)
    votes = Entry.objects.filter(voter=study.voter, queue=study.run.queue, kind="vote")
    assert votes.filter(unblinded=True).count() == 12


# --- other votes ----------------------------------------------------------------------------------

# All votes and verdicts, for whoever takes them away: later votes are then not blind.
# Verdicts are told in `pending` to a key whose scope is to see them before voting, likewise.
TAKEN = {
    "run-file",
    "GET /api/runs/{run_id}/export",
    "GET /api/runs/{run_id}/judge-eval/pending",
}
KEYS = [["read"], ["manage"], ["vote"], ["verdicts"], ["read", "vote"], [*ApiKey.Scope.values]]
DRAWN = re.compile(
    r'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"'
    r"|[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[\w:.=-]{20,}"
    r'|_begins": "[\w-]{6}|"id": \d+'
)


def make_readers(study):
    """Let each role, and a voter by invite, have the owner's items to vote on; and make keys.

    Return what asks as whom.
    """
    invited = make_voter(study.run, name="Guest")
    people = {role: voter_of_user(study.scene.project, user) for role, user in members()}
    Item.objects.filter(queue=study.run.queue).update(votes_wanted=12)
    for voter in {*people.values(), invited} - {study.voter}:
        for pair in pairs_of(study.run):
            Assignment.objects.create(voter=voter, item=pair, leased_until=timezone.now())
        for pair in pairs_of(study.run)[:4]:
            make_vote(voter, pair, "A")
    Exposure.objects.all().delete()
    seal_all(study.scene.project)
    readers = {role: partial(told_by_pages, study, study.scene.clients[role]) for role in people}
    readers["voter"] = partial(told_by_pages, study, voter_client(invited))
    for scopes in KEYS:
        key = key_client(make_key(*scopes, user=study.owner)[1])
        readers["key " + " ".join(scopes)] = partial(told_by_operations, study, key, API)
    kind = {"kind": ApiKey.Kind.PERSON, "project": study.scene.project}
    key = key_client(make_key("read", "manage", user=study.owner, **kind)[1])
    return readers | {"key of a person": partial(told_by_operations, study, key, PROTOCOL)}


def members():
    return [(role, User.objects.get(username=role)) for role in ROLES]


def told_by_pages(study, client):
    """Return what each page answers to somebody who has items to vote on."""
    answers = {}
    for page, (methods, _) in PAGES.items():
        for names in NAMES.get(page, [{}]) if "GET" in methods or not methods else ():
            address = page_address(study.scene, page, **names)
            for query in ("", *QUERIES.get(page, [])):
                with written():
                    answers[page, address + query] = everything_in(client.get(address + query))
    return {at: DRAWN.sub("", text) for at, text in answers.items()}


def told_by_operations(study, key, operations):
    answers = {}
    for operation, takes in operations.items():
        with written():
            answer = requested(study.scene, key, operation, takes.body)
            answers[operation, ""] = everything_in(answer)
    return {at: DRAWN.sub("", text) for at, text in answers.items()}


def turn(study):
    """Let votes and verdicts on items that the member has to vote on be others."""
    other = {"A": "B", "B": "A"}
    open_ones = open_items(study.owner, study.scene.project.pk).filter(queue=study.run.queue)
    votes = Entry.objects.filter(item__in=open_ones, kind="vote").order_by("pk")
    for place, vote in enumerate(votes):
        choice = other.get(vote.choice, "A") if place % 3 else vote.choice
        Entry.objects.filter(pk=vote.pk).update(choice=choice, comment="turned")
    for place, verdict in enumerate(Verdict.objects.filter(item__in=open_ones).order_by("pk")):
        winner = other.get(verdict.winner, "A") if place % 4 else verdict.winner
        Verdict.objects.filter(pk=verdict.pk).update(winner=winner, feedback="turned")
    ledger.replay(study.scene.project, write=True)
    compute(study.run)


@of_many
def test_votes_on_open_items_move_no_byte_of_what_anybody_reads_who_has_them(study):
    readers = make_readers(study)
    with time_machine.travel(timezone.now(), tick=False):
        compute(study.run)
        before = {reader: tell() for reader, tell in readers.items()}
        turn(study)
        after = {reader: tell() for reader, tell in readers.items()}
    moved = {
        (reader, at)
        for reader, answers in before.items()
        for (at, _), text in answers.items()
        if text != after[reader][at, _]
    }
    assert {at for _, at in moved} == TAKEN, sorted(it for it in moved if it[1] not in TAKEN)
