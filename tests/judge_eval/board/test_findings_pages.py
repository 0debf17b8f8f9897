"""Findings on pages, by API, in terminals and in files: in the same words, failed, or few."""

import json
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from humanjudge.cli.lines import findings_lines
from judge_eval.board.cache import compute as compute_once
from judge_eval.models import Findings, Run
from reports.report.views.shares import make_share
from tests.helpers.board_rows import board_of
from tests.helpers.imports import imported, pair, verdict, vote
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_maker import make_config
from tests.makers import (
    change_verdicts,
    key_client,
    make_key,
    make_many_votes,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.models import Entry, Inference

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    cache.clear()


# --- in words -------------------------------------------------------------------------------------

PART = "tag:animals"


@pytest.fixture(scope="module")
def run(module_db):
    """A run with a claim that was made and falls, and a part of whose tag there are words."""
    says = [["A", "B", "both_bad", "tie"]] * 9 + [["A", "A", "A", "tie"]] * 11
    names = ["north", "south", "east", "always-tie"]
    run = make_run(pairs=20, says=says, names=names, ballot=["A", "B", "both_bad"])
    run.judges.exclude(name="always-tie").update(provider="imported")
    voter = make_voter(run)
    make_many_votes(run, [(voter, pair, "A") for pair in pairs_of(run)])
    Inference.objects.filter(pk__in=[pair.a_id for pair in pairs_of(run)]).update(tags=["animals"])
    seal_all(run.queue.project)
    compute(run)
    change_verdicts(pairs_of(run)[0], ["B", "A", "A", "tie"])
    seal_all(run.queue.project)
    compute(run, PART)
    compute(run)
    return run


def sentences(run, part=""):
    data = Findings.objects.get(run=run, part=part).data
    return [data["words"], *data["more"]]


def replies(run, part):
    client = key_client(make_key("read")[1])
    reply = client.get(f"/api/runs/{run.pk}/findings", {"part": part}).json()
    terminal = [line.partition("|") for line in findings_lines(reply)]
    yield [reply["words"], *reply["more"]]
    yield [text for name, _, text in terminal if name in ("words", "more")]


@pytest.mark.parametrize("part", ["", PART])
def test_a_page_the_api_and_a_terminal_say_the_same(run, part):
    expected = sentences(run, part)
    for found in replies(run, part):
        assert found == expected
    page = text_of(user_client().get(board_of(run, part)))
    for sentence in expected:
        assert sentence in page.replace("\N{NO-BREAK SPACE}", " ")


def test_a_report_and_its_files_say_the_same(run):
    _, token = make_share(run.queue.project, run, None)
    page, file = (Client().get(f"/r/{token}/{name}") for name in ("", "report.json"))
    [figures] = json.loads(file.content)["runs"]
    found = figures["findings"]
    assert [found["words"], *found["more"]] == sentences(run)
    for sentence in sentences(run):
        assert sentence in text_of(page)


def test_what_fell_and_what_can_never_be_right_is_named(run):
    data = Findings.objects.get(run=run, part="").data
    assert data["more"][0] == "Changed: A verdict changed: 1 claim withdrawn."
    assert data["notes"][0].startswith("No longer claimed: ")
    never = "No vote can be “tie” here, so that answer is never right: always-tie (on 20 pairs)."
    assert never in data["notes"]
    assert never in text_of(user_client().get(board_of(run)))


def test_a_part_is_named_and_never_says_that_voting_may_stop(run):
    words = sentences(run, PART)[0]
    assert words.startswith("Only prompts tagged animals: ")
    assert "stop" not in words
    page = text_of(user_client().get(board_of(run, PART)))
    assert page.count("Only prompts tagged animals: ") == 1
    assert page.count("not corrected for the number of parts") == 1


def test_judges_that_are_copies_and_people_who_agree_by_chance_are_named_first():
    run = make_run(pairs=20, says=[["A", "A"]] * 20, names=["north", "copy"], votes_wanted=2)
    run.judges.update(provider="imported")
    one, other = make_voter(run), make_voter(run)
    sides = ["A", "B"] * 10
    cast = [(one, pair, "A") for pair in pairs_of(run)]
    cast += [(other, pair, side) for pair, side in zip(pairs_of(run), sides, strict=True)]
    make_many_votes(run, cast)
    seal_all(run.queue.project)
    compute(run)
    assert sentences(run)[0].startswith(
        "People agree no more than by chance (50 %; chance 62 %). "
        "north and copy gave the same verdict on every pair."
    )


# --- failed ---------------------------------------------------------------------------------------

FAILED = "The figures could not be computed: an unexpected error occurred (KeyError)"
NO_WORKER = "No worker has started on them yet."


def broken_run():
    """A run whose ledger holds one entry that nothing can be computed of."""
    run = voted_run(people=1, pairs=4, computed=False)
    last = Entry.objects.filter(queue=run.queue, kind="verdicts").order_by("seq").last()
    Entry.objects.filter(pk=last.pk).update(payload={"verdicts": last.payload["verdicts"]})
    return run


def fail(run, times, part=""):
    Findings.objects.get_or_create(run=run, part=part)
    for _ in range(times):
        Findings.objects.update(not_before=timezone.now())
        with pytest.raises(KeyError):
            compute_once(run.pk, part)


def page(run, tab="", client=None):
    return (client or user_client()).get(f"/runs/{run.pk}/{tab}")


def test_after_three_attempts_every_page_says_why():
    run, client = broken_run(), user_client()
    fail(run, 2)
    assert "computed in the background" in text_of(page(run, "models/", client))
    fail(run, 1)
    for tab in ("", "models/", "alt-test/"):
        text = text_of(page(run, tab, client))
        assert FAILED in text
        assert not [
            words for words in ("Traceback", "being computed", "worker runs") if words in text
        ]


def test_a_page_that_is_open_shows_it_when_it_happens():
    run, client = broken_run(), user_client()
    fail(run, 2)
    seen = page(run, "", client).context["seen"]
    fail(run, 1)
    live = client.get(f"/runs/{run.pk}/?seen={seen}", headers=HTMX)
    assert FAILED in text_of(live)


def test_the_api_the_files_and_the_report_say_why():
    run = broken_run()
    fail(run, 3)
    _, token = make_share(run.queue.project, run, None)
    for answer in (
        page(run, "tables/board.csv"),
        key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/findings"),
        key_client(make_key("read")[1]).get(f"/r/{token}/"),
    ):
        assert answer.status_code == 409
        assert FAILED in text_of(answer)


def test_older_figures_stay_and_the_page_says_that_newer_ones_failed():
    run = voted_run(people=1, pairs=4)
    last = Entry.objects.filter(queue=run.queue, kind="verdicts").order_by("seq").last()
    Entry.objects.filter(pk=last.pk).update(payload={"verdicts": last.payload["verdicts"]})
    Findings.objects.update(seq=1)
    fail(run, 3)
    text = text_of(page(run))
    assert "As of 4 votes" in text
    assert FAILED in text
    assert "follow within seconds" not in text


def test_it_is_tried_again_soon_and_after_three_attempts_less_often():
    run = broken_run()
    fail(run, 1)
    assert Findings.objects.get(run=run).not_before < timezone.now() + timedelta(seconds=10)
    fail(run, 2)
    assert Findings.objects.get(run=run).not_before > timezone.now() + timedelta(seconds=60)


def test_success_clears_the_failures():
    run = broken_run()
    fail(run, 3)
    entries = Entry.objects.filter(queue=run.queue, kind="verdicts")
    entries.update(payload=entries.order_by("seq").first().payload)
    found = compute(run)
    assert (found.attempts, found.error, found.failure) == (0, "", "")
    assert FAILED not in text_of(page(run))


def test_attempts_that_were_killed_count_too():
    found = Findings(run=voted_run(computed=False), attempts=3)
    assert found.failure == ""  # the third may be at work
    found.attempts = 4
    assert "ended without a result, perhaps for lack of memory" in found.failure


def test_only_what_no_worker_has_taken_up_is_said_to_lack_one():
    run = broken_run()
    Findings.objects.create(run=run, not_before=timezone.now() - timedelta(minutes=1))
    assert NO_WORKER in text_of(page(run))
    fail(run, 1)
    Findings.objects.update(not_before=timezone.now() - timedelta(minutes=1))
    assert NO_WORKER not in text_of(page(run))


# --- of votes that came first ---------------------------------------------------------------------

TABS = ("", "models/", "alt-test/", "people/", "pairs/", "scores/", "composite/", "data/")
FILES = ("report.html", "report.json", "judges.csv", "card.png", "badge.svg")
PEOPLE = ("ann", "bob", "eve")
VOTES = [vote(1, "ann", "A"), vote(1, "bob", "A"), vote(2, "ann", "B"), vote(2, "bob", "A")]


def item(number, **fields):
    return {"item": f"i{number}", "output": f"Answer {number}", "model": "ada"} | fields


def passes(number, voter, given):
    return {"item": f"i{number}", "voter": voter, "vote": given}


def pairs_without_judges():
    return imported(pair(1), pair(2), *VOTES, baselines=None)


def items_without_judges():
    votes = [passes(n, who, "pass") for n in (1, 2) for who in ("ann", "bob")]
    return imported(item(1), item(2), *votes, baselines=None)


def one_of_two_judged():
    return imported(pair(1), pair(2), verdict(1, "gpt", "A"), *VOTES, baselines=None)


def enough_people_without_judges():
    votes = [passes(n, who, "pass" if n % 3 else "flag") for n in range(30) for who in PEOPLE]
    return imported(*[item(n) for n in range(30)], *votes, baselines=None)


def outputs_alone():
    return imported(pair(1), pair(2), baselines=None)


STUDIES = {
    pairs_without_judges: "No judge was asked yet. Add judges: ",
    items_without_judges: "No judge was asked yet. Add judges: ",
    enough_people_without_judges: "No judge was asked yet. Add judges: ",
    one_of_two_judged: "gpt and always-first gave the same verdict on every pair.",
    outputs_alone: "No votes yet",
}


@pytest.mark.parametrize("make, words", STUDIES.items())
def test_everything_comes_up_with_honest_words(make, words):
    run = make()
    compute(run)
    client, key = user_client(), key_client(make_key("read", "vote", "verdicts")[1])
    pages = {tab: client.get(f"/runs/{run.pk}/{tab}") for tab in TABS}
    assert {tab: page.status_code for tab, page in pages.items()} == dict.fromkeys(TABS, 200)
    assert words in text_of(pages[""]).replace("\N{NO-BREAK SPACE}", " ")
    for page in pages.values():
        assert "being computed" not in text_of(page)
        assert "No worker" not in text_of(page)
    for path in ("findings", "judge-eval/results"):
        assert key.get(f"/api/runs/{run.pk}/{path}").status_code == 200
    for table in ("board", "models", "alt-test"):
        assert client.get(f"/runs/{run.pk}/tables/{table}.csv").status_code == 200
    _, token = make_share(run.queue.project, run, None)
    for name in ("", *FILES):
        assert Client().get(f"/r/{token}/{name}").status_code == 200, name


def test_people_among_themselves_and_models_are_shown_without_a_judge():
    run = pairs_without_judges()
    compute(run)
    client = user_client()
    board = text_of(client.get(f"/runs/{run.pk}/")).replace("\N{NO-BREAK SPACE}", " ")
    assert "People among themselves 50 %" in " ".join(board.split())
    assert "People put ada first" in text_of(client.get(f"/runs/{run.pk}/models/"))
    answer = key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/findings").json()
    assert answer["among_people"]["pairs"]["value"] == 0.5
    assert answer["rows"] == []


def test_votes_that_are_cast_here_on_imported_outputs_have_figures():
    run = outputs_alone()
    for n, each in enumerate(pairs_of(run)):
        make_vote(make_voter(run), each, "AB"[n])
    seal_all(run.queue.project)
    assert compute(run).data["as_of"]["votes"] == 2
    page = text_of(user_client().get(f"/runs/{run.pk}/"))
    assert "As of 2 votes by 2 people" in page


def test_a_baseline_that_is_always_right_leaves_no_margin_and_figures_are_computed():
    run = make_run(pairs=30, votes_wanted=2)
    for _ in range(2):
        voter = make_voter(run)
        for each in pairs_of(run):
            make_vote(voter, each, "A")
    seal_all(run.queue.project)
    for _ in range(2):  # with the entry that fixes it, and after
        assert compute(run).data["claims"]["margin"] == 0
        seal_all(run.queue.project)


def margin_of(run, stated):
    """The margin of a run's figures, where its config states one."""
    Run.objects.filter(pk=run.pk).update(config=make_config(margin=stated).as_dict())
    return compute(run).data["claims"]["margin"]


@pytest.mark.parametrize("stated, fixed", [(0.04, 0.04), (0.2, 0.125)])
def test_the_margin_that_a_team_states_is_fixed_once_50_votes_are_in(stated, fixed):
    """Half of what lies between the best baseline and 100 % is the most."""
    assert margin_of(voted_run(people=1, computed=False), stated) == stated
    run = voted_run(people=1, pairs=60, computed=False)
    # What a config says later changes nothing.
    for said in (stated, stated, 0.01):
        margin_of(run, said)
        seal_all(run.queue.project)
    assert margin_of(run, 0.01) == fixed
    entries = Entry.objects.filter(queue=run.queue_id, payload__has_key="margin")
    assert [entry.payload for entry in entries] == [{"margin": repr(fixed)}]
