"""By the rule `wrong` of a source, a verdict whose two orders disagree is right for no vote."""

import pytest

from judge_eval.board.filters import Slice
from judge_eval.board.load import labels_of
from judge_eval.board.views.reveal import judge_lines
from judge_eval.exports.export import export_run
from judge_eval.imports.import_report import ImportOptions
from judge_eval.models import Verdict
from reports.composite.config import parse
from reports.composite.sources import Outputs
from tests.helpers.bundles import empty_the_instance, facts_of, findings_of, restored
from tests.helpers.imports import (
    added,
    assert_whole,
    errors_of,
    import_run,
    imported,
    pair,
    rows,
    verdict,
    vote,
    votes_of,
)
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import judges_of, make_project, user_client, voter_client

pytestmark = pytest.mark.django_db


def picks(number, judge, ab, ba, **fields):
    return {"pair": f"p{number}", "judge": judge, "pick_ab": ab, "pick_ba": ba} | fields


def one_pair(choice):
    """One judge says A, one contradicts itself, one says B; one person votes."""
    said = [picks(1, "sure", "A", "A"), picks(1, "torn", "A", "B"), picks(1, "other", "B", "B")]
    return [pair(1), *said, vote(1, "ann", choice)]


def ratings_of(run):
    return {judge.name: round(judge.rating.elo, 6) for judge in judges_of(run)}


def test_it_loses_as_a_wrong_judge_does():
    run = imported(*one_pair("A"), inconsistent="wrong")
    assert ratings_of(run) == {"sure": 1031.263693, "torn": 984, "other": 984.736307}
    torn = Verdict.objects.get(judge__name="torn")
    assert (torn.winner, torn.consistent, torn.picks) == ("wrong", False, ["A", "A"])
    assert_whole(run.queue.project)


@pytest.mark.parametrize("choice", ["tie", "both_bad"])
def test_nobody_who_says_tie_makes_it_right(choice):
    records = one_pair(choice)
    wrong = imported(*records, inconsistent="wrong")
    assert set(ratings_of(wrong).values()) == {1000}
    as_tie = imported(*records, name="As tie")
    assert (ratings_of(as_tie)["torn"] > 1000) == (choice == "tie")


def ten_pairs():
    """The person says A, tie, both bad and B in turn; torn contradicts itself on all but one."""
    for number in range(1, 11):
        choice = ("A", "tie", "both_bad", "B")[number % 4]
        yield from [pair(number), vote(number, "ann", choice)]
        yield picks(number, "torn", "A", "A" if number == 4 else "B")
        yield verdict(number, "calm", "tie")


def test_its_figures():
    run = imported(*ten_pairs(), inconsistent="wrong")
    found = compute(run).data
    torn, calm = found["judges"]
    assert (torn["overall"]["value"], torn["agreement"]["value"]) == (0.1, 0.1)
    assert (torn["overall"]["trials"], torn["coverage"]["value"]) == (10, 1.0)
    assert (calm["overall"]["value"], calm["coverage"]["value"]) == (0.3, 1.0)
    assert torn["consistency"]["value"] == 0.1
    # Both answers on pair 4, and one of A and B on each other pair where the person chose a side.
    assert torn["per_answer"]["value"] == (2 + 3) / 20
    assert found["same_verdict"] == [[1.0, 0.0], [0.0, 1.0]]
    assert found["mcnemar"]["ahead"] == [[0, 1], [3, 0]]
    [rating] = [judge.rating for judge in judges_of(run) if judge.name == "torn"]
    assert (rating.agree, rating.disagree, rating.requested, rating.answered) == (1, 9, 10, 10)
    narrowed = compute(run, "ballot:decided").data["judges"][0]
    assert (narrowed["overall"]["value"], narrowed["overall"]["trials"]) == (1.0, 1)


def test_pairs_are_disputed_alike_on_the_board_and_in_the_list():
    run = imported(*ten_pairs(), inconsistent="wrong")
    page = user_client().get(f"/runs/{run.pk}/pairs/?sort=disagreement")
    pairs = page.context["pairs"]
    assert [
        {"position": pair.position, "wrong": pair.differing, "of": pair.compared} for pair in pairs
    ] == compute(run).data["disputed"]
    assert {pair.compared for pair in pairs} == {2}


def test_scorers_and_composites_read_it_as_an_answer_that_nobody_gives():
    run = imported(*one_pair("tie"), inconsistent="wrong")
    torn = judges_of(run)[1]
    [label] = labels_of(run).judges[str(torn.pk)]["winner"].values()
    assert label == "wrong"
    assert labels_of(run, Slice("ballot", "decided")).judges[str(torn.pk)] == {}
    for kind, value in (("agreement", 0.0), ("judge_wins", 0.0)):
        sources = {"it": {"from": kind, "judge": "torn"}}
        weights = {"it": {"weight": 1, "reason": "It counts."}}
        config = parse({"weights": weights, "sources": sources})
        components = Outputs(run, [config]).components(config)
        assert [values["it"] for values in components.values()] == [value, value]


def test_the_floor_is_measured_alike():
    run = imported(*one_pair("tie"), inconsistent="wrong", baselines=None)
    said = Verdict.objects.filter(judge__run=run, judge__provider="baseline")
    by_name = dict(said.values_list("judge__name", "winner"))
    assert by_name["always-first"] == "wrong"
    # Equal lengths are a tie in both orders: that is no contradiction.
    assert by_name["longer-wins"] == "tie"


def test_a_tie_that_a_source_calls_inconsistent_is_wrong_without_picks_too():
    records = [
        verdict(1, "gpt", "tie", consistent=False),
        verdict(2, "gpt", "tie", consistent=True),
        picks(3, "gpt", "A", "B", verdict="tie"),
    ]
    run = imported(*records, inconsistent="wrong")
    said = Verdict.objects.order_by("item__position").values_list("winner", flat=True)
    assert list(said) == ["wrong", "tie", "wrong"]
    assert not added(run, *records, inconsistent="wrong").changed
    [error, _] = errors_of(added(run, *records, inconsistent="tie"))
    assert "verdict: 'tie', but gpt said 'wrong' on pair 'p1' before" in error


def test_a_side_is_not_what_two_orders_say_that_disagree():
    how = ImportOptions(inconsistent="wrong")
    wrong = [verdict(1, "gpt", "A", consistent=False), picks(2, "gpt", "A", "B", verdict="B")]
    assert errors_of(import_run(make_project(), "Wrong", rows(*wrong), options=how)) == [
        "rows.jsonl:1: verdict: two orders that disagree are a tie, not A",
        "rows.jsonl:2: verdict: B, but its picks in both orders make it tie",
    ]


def test_it_is_exported_and_comes_back():
    run = imported(*ten_pairs(), inconsistent="wrong")
    facts, found, lines = facts_of(run), findings_of(run), list(export_run(run))
    empty_the_instance()
    [back] = restored(lines)
    assert (facts_of(back), findings_of(back)) == (facts, found)
    assert_whole(back.queue.project)


def test_pages_say_it():
    run = imported(*one_pair("tie"), inconsistent="wrong")
    [cast] = votes_of(run)
    torn = judge_lines(cast, cast.item)[1]
    assert (torn["picked"], torn["agrees"]) == ("no choice", False)
    page = text_of(user_client().get(f"/runs/{run.pk}/pairs/{cast.item_id}/"))
    assert "inconsistent: scored as wrong" in page
    shown = text_of(voter_client(cast.voter).get(f"/reveal/{cast.uid}/"))
    assert "which counts as wrong:" in shown


@pytest.mark.parametrize(
    "rule, other, now, otherwise",
    [("tie", "wrong", "40.0 %", "10.0 %"), ("wrong", "a tie", "10.0 %", "40.0 %")],
)
def test_the_figure_under_the_other_rule_is_told(rule, other, now, otherwise):
    found = compute(imported(*ten_pairs(), inconsistent=rule)).data
    [told] = [note for note in found["notes"] if "orders that disagree" in note]
    assert f"Were that {other}, figures would differ: " in told
    assert told.endswith(f"torn agrees on {now}, otherwise on {otherwise}.")
