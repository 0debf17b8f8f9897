"""Importing into a run that is there: what it holds is not added again, nor contradicted."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judge_eval.imports import import_steps
from judge_eval.imports.import_report import ImportRefused
from judge_eval.models import Judge, Run, Verdict
from tests.helpers.bundles import facts_of, numbers_of
from tests.helpers.imports import (
    added,
    assert_whole,
    errors_of,
    imported,
    pair,
    run_of,
    verdict,
    vote,
    votes_of,
)
from tests.helpers.reference import assert_as_expected
from tests.makers import (
    elos_of,
    judges_of,
    make_exposure,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.models import Entry, Item, Queue, Voter

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

AT = "2026-03-04T05:06:07Z"
EVERYTHING = [
    pair(1, tags=["x"], prompt_id="q"),
    pair(2),
    verdict(1, "j", "A", score_a=7, feedback="clear", labels={"sure": 0.5}),
    {"pair": "p2", "judge": "j", "error": "it refused"},
    vote(1, "ann", "A", voted_at=AT, comment="short", left_side="B", labels={"c": [1.25][0]}),
    vote(1, "bob", "B"),
]


def everything_of(run):
    run.queue.project.refresh_from_db()
    return facts_of(run), numbers_of(run), run.queue.project.ledger_head


def test_the_same_source_again_changes_nothing_and_says_how_much_was_there():
    run = imported(*EVERYTHING)
    before = everything_of(run)
    report = added(run, *EVERYTHING)
    assert everything_of(run) == before
    assert (report.changed, report.failures, report.filled) == (False, 0, 0)
    assert +report.already == {"pairs": 2, "verdicts": 2, "votes": 2}
    assert report.run_id == run.pk


def test_a_source_may_come_in_parts():
    whole = imported(*EVERYTHING)
    parts = imported(EVERYTHING[0])
    for record in EVERYTHING[1:]:
        report = added(parts, record, baselines=False)
        assert report.errors == []
        assert report.changed
    assert elos_of(parts) == elos_of(whole)
    assert [v.choice for v in votes_of(parts)] == [v.choice for v in votes_of(whole)]
    assert_as_expected(parts)
    assert_whole(parts.queue.project)


CONTRADICTIONS = {
    "output_a: 'Another', but pair 'p1' has 'Answer 1 of ada'": pair(1, output_a="Another"),
    "prompt: 'Why?', but pair 'p1' has 'Question 1'": {"pair": "p1", "prompt": "Why?"},
    "tags: 'y', but pair 'p1' has 'x'": {"pair": "p1", "tags": ["y"]},
    "prompt_id: 'r', but pair 'p1' has 'q'": {"pair": "p1", "prompt_id": "r"},
    "verdict: 'B', but j said 'A' on pair 'p1' before": verdict(1, "j", "B"),
    "score_a: 8.0, but j said 7.0 on pair 'p1' before": verdict(1, "j", "A", score_a=8),
    "score_b: 8.0, but j said None on pair 'p1' before": verdict(1, "j", "A", score_b=8),
    "labels: {'sure': 1}, but j said {'sure': 0.5} on pair 'p1' before": verdict(
        1, "j", "A", labels={"sure": 1}
    ),
    "verdict: 'A', but j said 'failed' on pair 'p2' before": verdict(2, "j", "A"),
    "vote: 'B', but ann said 'A' on pair 'p1' before": vote(1, "ann", "B"),
    "comment: 'long', but ann said 'short' on pair 'p1' before": vote(
        1, "ann", "A", comment="long"
    ),
    "left_side: 'A', but ann said 'B' on pair 'p1' before": vote(1, "ann", "A", left_side="A"),
}


def test_what_contradicts_the_run_is_an_error_that_names_both():
    run = imported(*EVERYTHING)
    before = everything_of(run)
    for why, record in CONTRADICTIONS.items():
        report = added(run, pair(3), record)
        assert errors_of(report) == [f"rows.jsonl:2: {why}"]
        assert report.runs == []
        assert everything_of(run) == before, why


def test_the_rest_of_a_source_that_contradicts_is_added_where_that_is_asked_for():
    run = imported(*EVERYTHING)
    report = added(run, vote(1, "ann", "B"), vote(2, "ann", "B"), skip_errors=True)
    assert (report.new["votes"], report.failures) == (1, 1)
    assert len(votes_of(run)) == 3
    assert_as_expected(run)
    assert_whole(run.queue.project)


def test_new_verdicts_are_a_new_entry_and_the_votes_are_counted_again():
    run = imported(pair(1), vote(1, "ann", "A"), verdict(1, "x", "B"))
    added(run, verdict(1, "y", "A"))
    assert [judge.name for judge in judges_of(run)] == ["x", "y"]
    assert elos_of(run) == [984.0, 1016.0]
    kinds = Entry.objects.filter(queue=run.queue_id).order_by("seq").values_list("kind", flat=True)
    assert list(kinds) == [
        *("object", "object", "verdicts", "parameters", "vote", "parameters"),
        *("object", "verdicts"),
    ]
    assert_as_expected(run)
    assert_whole(run.queue.project)


def test_the_same_name_from_another_source_is_another_judge():
    run = imported(pair(1), verdict(1, "x", "B"))
    report = added(run, verdict(1, "x", "A"), source="elsewhere")
    assert report.errors == []
    assert Judge.objects.filter(run=run, name="x").count() == 2


def test_outputs_that_come_later_open_nothing_by_themselves():
    run = imported(vote(1, "ann", "A"))
    report = added(run, pair(1, kind="code"))
    assert (report.filled, report.changed, report.already["pairs"]) == (1, True, 1)
    queue = Queue.objects.get(pk=run.queue_id)
    assert (queue.is_open, Item.objects.get().a.kind) == (False, "code")
    added(run, open_for_voting=True)
    run = run_of(report)
    assert (run.queue.is_open, run.state) == (True, "voting")


def test_an_open_run_takes_pairs_that_nobody_is_shown_and_stays_open():
    run = imported(pair(1))
    report = added(run, vote(2, "ann", "A"))
    assert report.notes == [
        "Nobody is asked about some: 1 pair has no outputs that could be shown."
    ]
    assert run_of(report).queue.is_open
    assert list(Item.objects.order_by("position").values_list("lacks_output", flat=True)) == [
        *(False, True)
    ]


def test_votes_must_fit_the_ballot_of_the_run():
    run = imported(pair(1))
    report = added(run, vote(1, "ann", "tie"))
    assert errors_of(report) == ["rows.jsonl:1: vote: 'tie' is not on the ballot: A, B, both_bad"]


# --- runs that were made here -------------------------------------------------------------------


def test_a_pair_that_was_made_here_goes_by_its_number():
    run = make_run(pairs=2, judges=2)
    [first, second] = pairs_of(run)
    report = added(
        run,
        {"pair": str(second.pk), "judge": "new", "verdict": "B"},
        {"pair": str(second.pk), "voter": "ann", "vote": "B", "output_a": second.a.output},
    )
    assert report.errors == []
    assert +report.new == {"judges": 1, "verdicts": 1, "voters": 1, "votes": 1}
    assert (report.already["pairs"], report.filled) == (1, 0)
    # The verdict that came was asked for in one order, so baselines of that way join.
    asked_once = ["judge-0 (as stored)", "judge-1 (as stored)"]
    assert [judge.name for judge in judges_of(run)] == ["judge-0", "judge-1", "new", *asked_once]
    assert Verdict.objects.filter(item=first).count() == 2
    assert_as_expected(run)
    assert_whole(run.queue.project)


def test_a_pair_that_was_made_here_is_not_added_to():
    run = make_run()
    [stored] = pairs_of(run)
    report = added(run, {"pair": str(stored.pk), "output_b": "Another", "tags": ["x"]})
    assert errors_of(report) == [
        f"rows.jsonl:1: output_b: 'Another', but pair '{stored.pk}' has 'Answer 1'"
    ]
    assert added(run, {"pair": str(stored.pk), "tags": ["x"]}).changed is False
    assert Item.objects.get().a.tags == []


def test_new_pairs_stand_behind_those_that_were_made_here():
    run = make_run(pairs=2)
    report = added(run, pair(1), verdict(1, "new", "A"), vote(1, "ann", "A"))
    assert report.errors == []
    positions = Item.objects.filter(queue=run.queue_id).order_by("position")
    assert list(positions.values_list("position", "external_id")) == [(0, ""), (1, ""), (2, "p1")]
    assert_as_expected(run)
    assert_whole(run.queue.project)


def test_where_a_judge_of_the_run_is_still_asked_the_opening_writes_the_verdicts():
    run = make_run(pairs=1, judges=2)
    [stored] = pairs_of(run)
    Verdict.objects.filter(judge__position=1).update(state="waiting", winner="", error="")
    Item.objects.update(opened_at=None)
    Run.objects.update(state="judging")
    before = Entry.objects.filter(kind="verdicts").count()
    report = added(run, {"pair": str(stored.pk), "judge": "new", "verdict": "B"})
    assert report.new["verdicts"] == 1
    assert Entry.objects.filter(kind="verdicts").count() == before
    stored.refresh_from_db()
    assert (stored.opened_at, run_of(report).state) == (None, "judging")


def test_people_who_vote_meanwhile_and_imported_votes_are_one_ledger():
    run = imported(pair(1), pair(2), verdict(1, "x", "A"), verdict(1, "y", "B"), votes_per_pair=9)
    person = make_voter(run)
    make_exposure(person, pairs_of(run)[1])
    for stored, choice in zip(pairs_of(run), "AB", strict=True):
        make_vote(person, stored, choice, at=timezone.now() - timedelta(seconds=1))
    added(run, vote(1, "ann", "B"), vote(2, "ann", "B"))
    seal_all(run.queue.project)
    assert [entry.unblinded for entry in votes_of(run)] == [False, False, False, True]
    assert_as_expected(run)
    assert_whole(run.queue.project)


@pytest.mark.parametrize("state", ["draft", "generating"])
def test_a_run_that_is_not_paired_yet_takes_nothing(state):
    run = make_run()
    Run.objects.update(state=state)
    with pytest.raises(ImportRefused, match=state):
        added(run, pair(1))


def test_a_run_of_pretend_votes_takes_no_votes_of_people():
    run = make_run()
    Queue.objects.update(is_simulated=True)
    with pytest.raises(ImportRefused, match="simulated"):
        added(run, vote(1, "ann", "A"))
    assert Voter.objects.count() == 0


def test_a_run_that_was_stopped_stays_stopped():
    run = imported(pair(1))
    Run.objects.update(state="stopped")
    assert run_of(added(run, pair(2))).state == "stopped"


def test_the_queries_of_a_chunk_do_not_grow_with_its_rows(settings, monkeypatch):
    settings.SEAL_BATCH = 1000
    monkeypatch.setattr(import_steps, "FIRST_ROWS", 1000)
    counts = []
    for size in (3, 90):
        run = imported(pair(0))
        records = [
            record
            for n in range(1, size)
            for record in (pair(n), verdict(n, "j", "A"), vote(n, f"v{n}", "A"))
        ]
        with CaptureQueriesContext(connection) as queries:
            added(run, *records)
        # Without the inserts, of which SQLite takes few rows at once, and executemany.
        counts.append(sum(query["sql"].startswith("SELECT") for query in queries))
    assert counts[1] <= counts[0]
