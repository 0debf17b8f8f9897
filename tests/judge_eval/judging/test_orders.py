"""Several answers make one verdict: both orders of a pair, several samples of a call."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.judging.prompts.orders import answer_in, combine, majority, swap
from judge_eval.judging.prompts.parse import ParsedVerdict

WORDS = ["A", "B", "tie", "both_bad"]
scores = st.none() | st.floats(0, 10)
verdicts = st.builds(ParsedVerdict, st.sampled_from(WORDS), scores, scores, st.text(max_size=20))


def all_said(*winners):
    return [winner and ParsedVerdict(winner) for winner in winners]


def test_to_swap_is_to_exchange_a_and_b():
    assert swap(ParsedVerdict("A", 8.0, 6.0, "why")) == ParsedVerdict("B", 6.0, 8.0, "why")
    assert swap(ParsedVerdict("tie", 5.0, None)) == ParsedVerdict("tie", None, 5.0)
    assert swap(ParsedVerdict("both_bad")).winner == "both_bad"


@given(verdicts)
def test_to_swap_twice_is_to_do_nothing(verdict):
    assert swap(swap(verdict)) == verdict


@pytest.mark.parametrize(
    "stored, swapped, winner, consistent, first_picks",
    [
        ("A", "B", "A", True, 1),
        ("B", "A", "B", True, 1),
        ("tie", "tie", "tie", True, 0),
        ("both_bad", "both_bad", "both_bad", True, 0),
        ("A", "A", "tie", False, 2),
        ("B", "B", "tie", False, 0),
        ("A", "tie", "tie", False, 1),
        ("tie", "B", "tie", False, 0),
        ("both_bad", "A", "tie", False, 1),
        ("tie", "both_bad", "tie", False, 0),
    ],
)
def test_both_orders(stored, swapped, winner, consistent, first_picks):
    combined = combine(ParsedVerdict(stored), ParsedVerdict(swapped))
    assert (combined.winner, combined.consistent) == (winner, consistent)
    assert (combined.first_picks, combined.picks) == (first_picks, (stored, swapped))


def test_scores_are_means_of_both_orders_of_the_stored_outputs():
    combined = combine(ParsedVerdict("A", 8.0, 6.0), ParsedVerdict("B", 5.0, 9.0))
    assert (combined.score_a, combined.score_b) == (8.5, 5.5)


def test_one_order_alone_gives_no_mean_score():
    """It would carry that order's habit in."""
    combined = combine(ParsedVerdict("A", 8.0, 6.0), ParsedVerdict("B", 5.0, None))
    assert (combined.score_a, combined.score_b) == (None, 5.5)


def test_reasons_speak_of_the_stored_outputs():
    agreed = combine(ParsedVerdict("A", reason="A is fuller."), ParsedVerdict("B", reason="B is."))
    assert agreed.reason == "A is fuller."
    habit = combine(ParsedVerdict("A", reason="A is fuller."), ParsedVerdict("A", reason="A is."))
    assert habit.reason == "Inconsistent: A as stored, B when swapped. A is fuller."
    assert combine(ParsedVerdict("both_bad"), ParsedVerdict("A")).reason == (
        "Inconsistent: both bad as stored, B when swapped."
    )


def test_one_order_is_neither_consistent_nor_inconsistent():
    stored = answer_in({"AB": ParsedVerdict("A", 8.0, 6.0, "Fuller.")})
    assert (stored.winner, stored.consistent, stored.reason) == ("A", None, "Fuller.")
    assert (stored.first_picks, stored.picks) == (1, ("A",))
    swapped = answer_in({"BA": ParsedVerdict("A", 8.0, 6.0, "A is fuller.")})
    assert (swapped.winner, swapped.score_a, swapped.score_b) == ("B", 6.0, 8.0)
    assert (swapped.first_picks, swapped.picks) == (1, ("A",))
    assert swapped.reason == "Shown swapped, so its A is B here: A is fuller."
    assert answer_in({"BA": ParsedVerdict("tie")}).first_picks == 0


@given(verdicts, verdicts)
def test_what_is_combined_is_the_same_from_the_other_side(one, other):
    """Had the pair been stored the other way round, all would be mirrored."""
    here, there = combine(one, other), combine(other, one)
    mirrored = {"A": "B", "B": "A"}
    assert there.winner == mirrored.get(here.winner, here.winner)
    assert there.consistent == here.consistent
    assert there.first_picks == here.first_picks
    assert (there.score_a, there.score_b) == (here.score_b, here.score_a)


@given(verdicts)
def test_a_judge_that_sees_no_order_is_consistent(verdict):
    combined = combine(verdict, swap(verdict))
    assert combined.winner == verdict.winner
    assert combined.consistent
    assert combined.score_a == verdict.score_a
    assert combined.first_picks == (verdict.winner in ("A", "B"))


@pytest.mark.parametrize(
    "samples, winner, is_decided, rate",
    [
        (["A"], "A", True, 1),
        (["A", "A", "B"], "A", True, 2 / 3),
        (["A", "B"], "tie", False, 1 / 2),
        (["A", "A", "B", "B", "tie"], "tie", False, 2 / 5),
        (["A", "tie"], "tie", False, 1 / 2),
        (["tie", "tie", "A"], "tie", True, 2 / 3),
        (["A", "A", "B", "tie", "both_bad"], "A", True, 2 / 5),
        (["both_bad", None, None], "both_bad", True, 1),
        (["A", None, "B", "B"], "B", True, 2 / 3),
    ],
)
def test_the_most_frequent_choice_wins_when_it_leads_alone(samples, winner, is_decided, rate):
    verdict, consistency_rate = majority(all_said(*samples))
    assert (verdict.winner, "No majority" not in verdict.reason) == (winner, is_decided)
    assert consistency_rate == pytest.approx(rate)


@pytest.mark.parametrize("samples", [[], [None], [None] * 5])
def test_without_an_answer_there_is_no_verdict(samples):
    assert majority(samples) is None


def test_scores_and_reason_of_samples():
    verdict, _ = majority(
        [
            ParsedVerdict("B", 2.0, None, "other"),
            None,
            ParsedVerdict("A", 7.0, 4.0, "first"),
            ParsedVerdict("A", None, None, "second"),
        ]
    )
    assert verdict == ParsedVerdict("A", 4.5, 4.0, "first")
    assert majority(all_said("A", "A"))[0].score_a is None


def test_no_majority_says_so():
    verdict, _ = majority(all_said("both_bad", "B", "A", "B", "A"))
    assert verdict.reason == "No majority: A 2, B 2, both bad 1."


def test_without_a_majority_a_single_item_has_no_verdict():
    verdict, rate = majority(all_said("flag", "pass", None), otherwise="")
    assert (verdict.winner, verdict.reason, rate) == ("", "No majority: flag 1, pass 1.", 0.5)
    assert majority(all_said("flag", "flag", "pass"), otherwise="")[0].winner == "flag"


def test_a_tie_that_was_said_is_told_from_one_that_came_about():
    assert majority(all_said("tie"))[0].reason == ""
    assert majority(all_said("A", "B"))[0].reason == "No majority: A 1, B 1."


@given(st.lists(st.none() | verdicts, min_size=1).filter(any))
def test_a_majority_of_swapped_samples_is_the_swapped_majority(samples):
    here, rate = majority(samples)
    there, rate_there = majority([sample and swap(sample) for sample in samples])
    assert there.winner == swap(here).winner
    assert 0 < rate == rate_there <= 1


def test_samples_in_both_orders_come_together():
    for stored, swapped in product(WORDS, WORDS):
        combined = combine(majority(all_said(stored))[0], majority(all_said(swapped))[0])
        assert combined == combine(ParsedVerdict(stored), ParsedVerdict(swapped))
