"""A judge is asked in both orders, and several times if wanted: what its answers make together."""

import pytest

from judge_eval.models import Call, Verdict
from tests.helpers.run_maker import (
    a_verdict,
    asked_of,
    attempt,
    go_on,
    make_judging,
    make_started,
    says,
)
from tests.makers import pairs_of
from tests.provider_models import outputs_shown

pytestmark = pytest.mark.django_db


def only_verdict(run):
    return Verdict.objects.get(judge__run=run)


def answer_in_turn(at, *texts):
    """Make one call after the other; each gets the next text, None an error for good."""
    for text in texts:
        if text is None:
            at.control(mode="insufficient_quota")
        else:
            says(at, text)
        attempt(slots=1)


def test_both_orders_are_asked_and_show_the_outputs_the_other_way_round(at):
    run = go_on(make_judging(at))
    [pair] = pairs_of(run)
    a, b = pair.a.output.encode(), pair.b.output.encode()
    shown = [outputs_shown(body["messages"]) for body in asked_of(at, "judge-long")]
    assert sorted(shown) == sorted([(a, b), (b, a)])
    orders = Call.objects.filter(purpose="judge").values_list("order", flat=True)
    assert sorted(orders) == ["AB", "BA"]


def test_a_judge_that_says_the_same_in_both_orders_is_consistent(at):
    run = go_on(make_judging(at))
    [pair] = pairs_of(run)
    is_longer = len(pair.a.output) > len(pair.b.output)
    verdict = only_verdict(run)
    assert (verdict.state, verdict.order, verdict.consistent) == ("done", "both", True)
    assert verdict.winner == ("A" if is_longer else "B")
    assert verdict.picks == (["A", "B"] if is_longer else ["B", "A"])
    assert verdict.first_picks == 1
    assert (verdict.score_a, verdict.score_b) == ((8, 5) if is_longer else (5, 8))
    assert verdict.sample_consistency is None


@pytest.mark.parametrize("judge,pick,first", [("judge-first", "A", 2), ("judge-second", "B", 0)])
def test_a_judge_that_goes_by_position_has_said_tie_and_both_picks_are_kept(at, judge, pick, first):
    run = go_on(make_judging(at, judges=[judge]))
    verdict = only_verdict(run)
    assert (verdict.state, verdict.winner, verdict.consistent) == ("done", "tie", False)
    assert (verdict.picks, verdict.first_picks) == ([pick, pick], first)
    assert (verdict.score_a, verdict.score_b) == (6.5, 6.5)
    assert verdict.feedback.startswith("Inconsistent: ")
    assert "tie" not in run.queue.ballot


@pytest.mark.parametrize("judge,winner", [("judge-tie", "tie"), ("judge-bad", "both_bad")])
def test_tie_and_both_bad_are_the_same_in_every_order(at, judge, winner):
    run = go_on(make_judging(at, judges=[judge], ballot=["A", "B", "tie", "both_bad"]))
    verdict = only_verdict(run)
    assert (verdict.winner, verdict.consistent) == (winner, True)
    assert (verdict.picks, verdict.first_picks) == ([winner, winner], 0)


def test_a_tie_in_one_order_only_is_inconsistent(at):
    run = make_judging(at, ballot=["A", "B", "tie"])
    answer_in_turn(at, a_verdict("tie", 6, 6), a_verdict("A", 9, 2))
    verdict = only_verdict(run)
    assert (verdict.winner, verdict.consistent, verdict.picks) == ("tie", False, ["tie", "A"])


@pytest.mark.parametrize("texts,order", [((None, 1), "as stored"), ((1, None), "swapped")])
def test_one_order_that_failed_fails_the_verdict(at, texts, order):
    run = make_judging(at)
    answer_in_turn(at, *[text and a_verdict() for text in texts])
    verdict = only_verdict(run)
    assert (verdict.state, verdict.winner, verdict.score_a) == ("failed", "", None)
    assert verdict.error.startswith(f"{order}: 429 Too Many Requests: the account has no credit")
    states = Call.objects.filter(purpose="judge").values_list("state", flat=True)
    assert sorted(states) == ["done", "failed"]


def test_scores_are_of_the_stored_a_and_b_and_of_both_orders(at):
    run = make_judging(at)
    answer_in_turn(at, a_verdict("A", 9, 4), a_verdict("B", 3, 8))
    verdict = only_verdict(run)
    assert (verdict.winner, verdict.score_a, verdict.score_b) == ("A", 8.5, 3.5)


def test_a_score_that_one_order_lacks_is_lacking(at):
    run = make_judging(at)
    answer_in_turn(at, a_verdict("A", None, 4), a_verdict("B", 3, 8))
    verdict = only_verdict(run)
    assert (verdict.winner, verdict.score_a, verdict.score_b) == ("A", None, 3.5)


def test_one_order_at_random_is_one_call_and_is_turned_back(at):
    prompts = [f"Say {n}." for n in range(24)]
    run = make_started(at, judges=["judge-first"], prompts=prompts, verdict_orders="random")
    run = go_on(run)
    verdicts = Verdict.objects.filter(judge__run=run)
    assert len(asked_of(at, "judge-first")) == len(verdicts) == 24
    assert {(v.order, v.winner) for v in verdicts} == {("AB", "A"), ("BA", "B")}
    for verdict in verdicts:
        assert (verdict.consistent, verdict.picks, verdict.first_picks) == (None, ["A"], 1)
        stored = verdict.order == "AB"
        assert (verdict.score_a, verdict.score_b) == ((8, 5) if stored else (5, 8))
        assert verdict.feedback.startswith("Shown swapped") is not stored


class TestSamples:
    @pytest.fixture
    def run(self, at):
        return make_judging(at, judging={"samples": 3})

    def test_each_is_a_call_of_its_own(self, at, run):
        run = go_on(run)
        calls = Call.objects.filter(purpose="judge")
        asked = [("AB", 0), ("AB", 1), ("AB", 2), ("BA", 0), ("BA", 1), ("BA", 2)]
        assert sorted(calls.values_list("order", "sample")) == asked
        assert len(asked_of(at, "judge-long")) == 6
        assert len(set(calls.values_list("request_hash", flat=True))) == 6
        assert only_verdict(run).sample_consistency == 1.0

    def test_the_majority_of_each_order_is_its_answer(self, at, run):
        b, a = a_verdict("B", 4, 8), a_verdict("A", 8, 2)
        answer_in_turn(at, a, b, a, b, b, b)
        verdict = only_verdict(run)
        assert (verdict.winner, verdict.consistent, verdict.picks) == ("A", True, ["A", "B"])
        assert verdict.sample_consistency == pytest.approx((2 / 3 + 1) / 2)

    def test_samples_that_failed_are_left_out(self, at, run):
        b, a = a_verdict("B"), a_verdict("A")
        answer_in_turn(at, None, a, None, b, a, b)
        verdict = only_verdict(run)
        assert (verdict.state, verdict.winner, verdict.picks) == ("done", "A", ["A", "B"])
        assert verdict.sample_consistency == pytest.approx((1 + 2 / 3) / 2)

    def test_an_order_of_which_all_failed_fails_the_verdict(self, at, run):
        answer_in_turn(at, None, None, None, a_verdict(), a_verdict(), a_verdict())
        verdict = only_verdict(run)
        assert (verdict.state, verdict.winner, verdict.sample_consistency) == ("failed", "", None)
        assert verdict.error.startswith("as stored: 429")

    def test_samples_that_are_even_are_no_majority(self, at, run):
        b, a = a_verdict("B"), a_verdict("A")
        answer_in_turn(at, a, b, None, b, b, b)
        verdict = only_verdict(run)
        assert (verdict.winner, verdict.consistent, verdict.picks) == ("tie", False, ["tie", "B"])
