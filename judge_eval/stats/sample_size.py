"""How many items does the Alt-Test need? Played through with made-up people and judges.

The model: an item has one true label of some categories. A person gives it, but on a share `noise`
of the items a label drawn blindly from all categories, so that two people agree with a kappa of
``(1 - noise)²``. A judge gives the true label with probability `accuracy`, else one of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import IntArray
from judge_eval.stats.estimate import PASSES, Estimate, require, wilson
from judge_eval.stats.significance import benjamini_yekutieli, penalty, t_test

SIZES: Final = (30, 40, 50, 60, 80, 100, 150, 200, 300)
_LABELS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class ItemsNeeded:
    """The least items with which the judge passes often enough, and the share that passed by items.

    Two people agree with `human_kappa`.
    """

    items: int | None
    passing: dict[int, Estimate]
    human_kappa: float
    in_words: str


def items_needed(
    judge_accuracy: float,
    human_noise: float,
    *,
    humans: int = 3,
    categories: int = 3,
    epsilon: float = 0.2,
    q: float = 0.05,
    sizes: Sequence[int] = SIZES,
    power: float = 0.8,
    simulations: int = 1000,
    seed: int = 0,
) -> ItemsNeeded:
    """Say how many items everybody must label for such a judge to pass the Alt-Test.

    `power` is how sure of passing one wants to be. A larger size continues the tests of the smaller
    one.

    Examples
    --------
    >>> good = items_needed(judge_accuracy=0.9, human_noise=0.2)
    >>> good.items, good.passing[30].value < good.passing[100].value
    (40, True)
    """
    tried, are_shares = sorted(set(sizes)), 0 <= judge_accuracy <= 1 and 0 <= human_noise <= 1
    require(are_shares, "judge_accuracy and human_noise are shares between 0 and 1")
    require(min(humans, categories) >= 2, "the test takes at least two people and two categories")
    require(tried and tried[0] >= 2, "sizes must be numbers of at least 2 items")
    rng, values = np.random.default_rng(seed), penalty([epsilon])
    passed = np.zeros(len(tried), np.int64)
    at_once = max(1, _LABELS_AT_ONCE // (humans * tried[-1]))
    for done in range(0, simulations, at_once):
        shape = min(at_once, simulations - done), humans, tried[-1]
        counts = _outcomes(*_labels(judge_accuracy, human_noise, categories, shape, rng), tried)
        rejected = benjamini_yekutieli(t_test(counts, values)[..., 0], q)
        passed += (rejected.mean(axis=-1) >= PASSES).sum(axis=0)
    passing = {}
    for size, n in zip(tried, passed.tolist(), strict=True):
        low, high = wilson(n, simulations) or (None, None)
        passing[size] = Estimate(n / simulations, low, high, simulations, "Wilson")
    enough = list(takewhile(lambda size: (passing[size].value or 0) >= power, reversed(tried)))
    items = enough[-1] if enough else None
    judge = f"a judge that is right on {judge_accuracy:.0%}"
    words = f"With {items} items {judge} passes in at least {power:.0%} of all tests."
    if items is None:
        share = passing[tried[-1]].value
        words = (
            f"With up to {tried[-1]} items {judge} passes in {share:.0%} of all tests, fewer than "
            f"the {power:.0%} asked for."
        )
    return ItemsNeeded(items, passing, (1 - human_noise) ** 2, words.replace("%", " %"))


def _labels(
    accuracy: float,
    noise: float,
    categories: int,
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Draw labels of people, shape (tests, humans, items), and a judge; the truth is always 0."""
    people = np.where(rng.random(shape) < noise, rng.integers(0, categories, shape), 0)
    of_judge = shape[0], shape[2]
    is_right = rng.random(of_judge) < accuracy
    return people, np.where(is_right, 0, rng.integers(1, categories, of_judge))


def _outcomes(people: IntArray, judge: IntArray, sizes: Sequence[int]) -> IntArray:
    """Count who agrees better with the others, shape (tests, n_sizes, humans, 3)."""
    labels = range(int(max(people.max(), judge.max())) + 1)
    gave = np.stack([(people == label).sum(axis=1) for label in labels], axis=1)
    with_human = np.take_along_axis(gave, people, axis=1) - 1
    with_judge = np.take_along_axis(gave, judge[:, np.newaxis], axis=1)
    with_judge = with_judge - (people == judge[:, np.newaxis])
    ahead = with_human - with_judge
    upto = np.array(sizes) - 1
    counted = [
        np.cumsum(is_case, axis=-1)[..., upto] for is_case in (ahead == 0, ahead > 0, ahead < 0)
    ]
    return np.stack(counted, axis=-1).swapaxes(1, 2)
