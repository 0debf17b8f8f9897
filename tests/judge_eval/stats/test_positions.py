"""Habits of position, of judges and of people."""

import numpy as np
import pytest

from judge_eval.stats.estimate import wilson
from judge_eval.stats.judge_figures import habits, shares_by_prompt


def test_consistency_leaves_out_what_was_not_answered_in_both_orders():
    same = np.array([[1, -1], [1, -1], [0, -1], [-1, 0]], dtype=np.int8)
    nothing = np.zeros((4, 2), dtype=int)
    (first, second), (position, _) = habits(same, nothing, nothing, np.arange(4))
    assert (first.successes, first.n) == (2, 3)
    assert (second.value, second.n) == (0, 1)
    assert position.value is None


def test_two_answers_about_one_pair_are_drawn_together():
    """A judge that always picks what stands first on half of the pairs, and is fair elsewhere."""
    first = np.where(np.arange(400) % 2, 2, 1)[:, None]
    sided = np.full((400, 1), 2)
    _, [position] = habits(np.full((400, 1), -1), first, sided, np.arange(400))
    assert (position.value, position.method, position.n) == (0.75, "prompts", 800)
    # The standard error of a mean of 400 halves and wholes.
    assert position.high - position.low == pytest.approx(2 * 1.96 * 0.25 / 20, rel=0.1)


def test_one_order_asked_gets_wilsons_interval():
    first = np.array([[1], [0], [1], [0]] * 4)
    sided = np.array([[1], [1], [1], [0]] * 4)
    [consistency], [position] = habits(np.full((16, 1), -1), first, sided, np.arange(16))
    assert (position.low, position.high) == wilson(8, 12)
    assert consistency.value is None


def test_people_have_the_habit_too():
    votes = np.array([[2], [1], [0]]), np.array([[2], [2], [1]])
    [left] = shares_by_prompt(*votes, np.arange(3))
    assert (left.successes, left.n, left.comparisons) == (3, 5, 3)


def test_more_first_picks_than_picks_are_refused():
    one, two = np.array([[1]]), np.array([[2]])
    with pytest.raises(ValueError, match="more successes"):
        habits(np.array([[1]]), two, one, np.arange(1))
