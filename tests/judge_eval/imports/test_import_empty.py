"""Nothing succeeds empty: a file that brings nothing to look at is refused, with the counts."""

import pytest

from judge_eval.imports.import_report import ImportOptions
from judge_eval.models import Run
from tests.helpers.imports import added, errors_of, import_run, imported, pair, rows, vote
from tests.makers import make_project

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("skip_errors", [False, True])
def test_what_brings_neither_outputs_nor_votes_nor_verdicts_is_refused(skip_errors):
    records = [{"pair": "p1", "prompt": "Why?"}, {"pair": "p2", "prompt": "How?"}]
    report = import_run(
        make_project(), "Empty", rows(*records), options=ImportOptions(skip_errors=skip_errors)
    )
    assert errors_of(report) == [
        "2 pairs without an output, a vote or a verdict: at least one of them is needed"
    ]
    assert not Run.every.exists()


def test_votes_that_meet_no_output_are_refused_with_the_counts():
    records = [pair(1), pair(2), *[vote(n, who, "A") for n in (3, 4, 5) for who in ("ann", "bob")]]
    report = import_run(make_project(), "Apart", rows(*records))
    [error] = errors_of(report)
    assert error == (
        "6 votes on 3 pairs, but the outputs are those of 2 others: "
        "votes and outputs must name the same pairs"
    )
    assert not Run.every.exists()


def test_votes_that_meet_some_outputs_or_come_without_any_are_taken():
    for records in ([pair(1), vote(1, "ann", "A"), vote(2, "ann", "A")], [vote(1, "ann", "A")]):
        assert import_run(make_project(), "Some", rows(*records)).errors == []


def test_a_run_that_is_there_may_be_given_prompts_alone_for_its_own_pairs():
    run = imported(vote(1, "ann", "A"))
    assert added(run, {"pair": "p1", "prompt": "Why?"}).errors == []
    [error] = errors_of(added(run, {"pair": "p2", "prompt": "Why?"}))
    assert error.startswith("1 pair without an output, a vote or a verdict")


def test_what_is_added_to_a_run_is_refused_where_it_brings_nothing():
    records = [pair(1), vote(1, "ann", "A")]
    run = imported(*records)
    assert not added(run, *records).changed
    assert added(run, vote(1, "bob", "A"), pair(2)).errors == []
    [error] = errors_of(added(run, pair(3), vote(4, "ann", "A")))
    assert error.startswith("1 vote on 1 pair, but the outputs are those of 1 others")
    [error] = errors_of(added(run, {"pair": "p1"}))
    assert error.startswith("1 pair without an output, a vote or a verdict")
