"""Intervals hold as often as they say, also of few comparisons: seeded, so always the same."""

import numpy as np
import pytest

from judge_eval.stats import bradley_terry
from judge_eval.stats.bootstrap import MIN_COMPARISONS, bounds
from judge_eval.stats.judge_figures import judge_figures
from judge_eval.stats.outcomes_table import OutcomesTable

SKILLS = np.array([0.8, 0.65, 0.3])


def drawn(rng, comparisons):
    """Three votes on each comparison; on some of them everybody agrees more than on others."""
    truth = rng.integers(0, 4, comparisons)
    clear = rng.choice([0.4, 0.6, 0.9], comparisons)
    chances = np.repeat(((1 - clear) / 3)[:, None], 4, axis=1)
    chances[np.arange(comparisons), truth] = clear
    found = rng.random((comparisons, len(SKILLS))) < SKILLS * (0.6 + 0.4 * clear[:, None])
    said = np.where(found, truth[:, None], rng.integers(0, 4, (comparisons, len(SKILLS))))
    return OutcomesTable(rng.multinomial(3, chances), said.astype(np.int8))


@pytest.fixture(scope="module")
def truth():
    many = drawn(np.random.default_rng(1), 300_000)
    agreement = many.right().sum(axis=0) / many.judged().sum(axis=0)
    return agreement, bradley_terry.fit(many.wins())


def covered(figures, truth):
    return [
        figure.low <= true <= figure.high
        for figure, true in zip(figures, truth, strict=True)
        if figure.low is not None
    ]


@pytest.mark.slow
@pytest.mark.parametrize("comparisons, least", [(20, 0.91), (60, 0.92)])
def test_order_free_rating(truth, comparisons, least):
    rng = np.random.default_rng(comparisons)
    held = []
    for _ in range(150):
        table = drawn(rng, comparisons)
        figures = judge_figures(table, np.arange(comparisons), rng, 300)
        held += covered([figure.rating for figure in figures], truth[1])
    assert least <= np.mean(held) <= 0.985


def test_without_reaching_further_out_few_comparisons_would_look_too_sure(truth):
    rng = np.random.default_rng(3)
    held = []
    for _ in range(250):
        values = rng.exponential(size=(MIN_COMPARISONS, 1))
        weights = rng.multinomial(MIN_COMPARISONS, [1 / MIN_COMPARISONS] * MIN_COMPARISONS, 300)
        means = weights @ values / MIN_COMPARISONS
        few, many = (bounds(means, np.array([n])) for n in (MIN_COMPARISONS, 10**6))
        held.append([low[0] <= 1 <= high[0] for low, high in (few, many)])
    few, many = np.mean(held, axis=0)
    assert many < 0.88
    assert few > many + 0.03
