"""Overall agreement and its interval by prompts: worked values, a whole run, and its coverage."""

import numpy as np
import pytest

from judge_eval.stats.estimate import best_first
from judge_eval.stats.judge_figures import overall_agreement, prompt_interval
from tests.helpers.outcome_tables import outcomes_of

RIGHT = [3, 2, 1, 3, 0, 2, 3, 1, 2, 3]


def table_of(right, votes, prompts=None):
    """One judge that says A on every pair, of which so many votes are for A."""
    rows = [{"A": good, "B": n - good} for good, n in zip(right, votes, strict=True)]
    return outcomes_of(rows, [["A"]] * len(rows)), np.array(prompts or range(len(rows)))


def test_the_worked_values():
    [share] = overall_agreement(*table_of(RIGHT, [3] * 10))
    assert share.value == pytest.approx(2 / 3)
    assert (share.low, share.high) == pytest.approx((0.39223398525727476, 0.8610724127907288))
    assert (share.method, share.successes, share.n) == ("prompts", 20, 30)


def test_pairs_of_a_prompt_are_one():
    halves = [part for good in RIGHT for part in (good // 2, good - good // 2)]
    sizes = [size for _ in RIGHT for size in (1, 2)]
    prompts = [prompt for prompt in range(10) for _ in range(2)]
    [share] = overall_agreement(*table_of(halves, sizes, prompts))
    assert (share.low, share.high) == pytest.approx(prompt_interval(RIGHT, [3] * 10))
    assert share.comparisons == 20


def test_a_failed_verdict_counts_against_a_judge_and_one_not_asked_for_does_not():
    table = outcomes_of([{"A": 1}] * 12, [["A", "A"]] * 6 + [["A", None]] * 3 + [["A"]] * 3)
    asked, failing = overall_agreement(table, np.arange(12))
    assert (asked.successes, asked.n) == (12, 12)
    assert (failing.successes, failing.n, failing.value) == (6, 9, 2 / 3)


def test_pairs_without_votes_and_judges_without_pairs():
    table = outcomes_of([{}, {"A": 1}], [["A"], ["B"]], judges=2)
    found, nothing = overall_agreement(table, np.array([4, 2]))
    assert (found.successes, found.n, found.comparisons) == (0, 1, 1)
    assert (nothing.value, nothing.why) == (None, "there is nothing to count")
    assert overall_agreement(outcomes_of([], [], judges=1), np.array([], int))[0].value is None


def test_it_does_not_depend_on_the_order_or_the_numbers_of_prompts():
    rng = np.random.default_rng(3)
    table, prompts = table_of(rng.integers(0, 4, 40).tolist(), [3] * 40)
    prompts = prompts // 3
    shuffled = rng.permutation(40)
    [one] = overall_agreement(table, prompts)
    [other] = overall_agreement(table.select(shuffled), 7 * prompts[shuffled] + 5)
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@pytest.mark.parametrize("prompts", [10, 20, 60])
def test_it_holds_the_truth_as_often_as_it_says_where_prompts_differ(prompts):
    rng = np.random.default_rng(5)
    held = []
    for _ in range(500):
        skill = rng.beta(4, 2, prompts)
        right = rng.binomial(6, skill)
        if 0 < right.sum() < 6 * prompts:
            low, high = prompt_interval(right, np.full(prompts, 6))
            held.append(low < 2 / 3 < high)
    assert np.mean(held) > 0.91


def test_the_best_stand_first_and_the_unknown_last():
    assert best_first([None, 0.2, 0.9, 0.9]) == [2, 3, 1, 0]
