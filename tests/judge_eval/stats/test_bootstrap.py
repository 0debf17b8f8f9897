"""The bootstrap over comparisons: what is drawn, and how sure that makes a figure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import bootstrap as module
from judge_eval.stats.bootstrap import MIN_COMPARISONS, bootstrap, bounds
from judge_eval.stats.outcomes_table import Games, OutcomesTable


def sums_of(rows, multiplicity, seed=1, resamples=200):
    rows, multiplicity = np.asarray(rows), np.asarray(multiplicity)
    rng = np.random.default_rng(seed)
    return bootstrap(rows.T, multiplicity, lambda sums: sums, rng, resamples)[1].T


def one_at_a_time(rows, multiplicity, seed, resamples):
    """Draw comparison by comparison from the written-out rows, with the same seed."""
    rng = np.random.default_rng(seed)
    written_out = np.repeat(rows, multiplicity, axis=0)
    return [
        written_out[rng.integers(len(written_out), size=len(written_out))].sum(axis=0)
        for _ in range(resamples)
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=20))
def test_sums_are_those_of_drawing_one_at_a_time(groups):
    rows = np.array([[value, 1] for value, _ in groups])
    multiplicity = np.array([times for _, times in groups])
    expected = one_at_a_time(rows, multiplicity, seed=3, resamples=5)
    assert sums_of(rows, multiplicity, 3, 5).tolist() == [list(sums) for sums in expected]


def test_games_too_many_for_memory_are_summed_in_parts(monkeypatch):
    rng = np.random.default_rng(2)
    table = OutcomesTable(rng.integers(0, 9, (50, 4)), rng.integers(0, 4, (50, 3)).astype("int16"))

    def sums():
        cells, ones = Games(table), np.ones(50, dtype=int)
        return bootstrap(cells, ones, lambda each: each, np.random.default_rng(1), 200)[1]

    whole = sums()
    monkeypatch.setattr("judge_eval.stats.outcomes_table._ROWS_AT_ONCE", 7)
    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", 120)
    assert sums().tolist() == whole.tolist()


@pytest.mark.parametrize("multiplicity", [[40, 25, 35], [400, 250, 350]])
def test_few_large_groups_and_many_small_ones_are_drawn_alike(multiplicity):
    """Large groups are drawn by their size, small ones by their members: one distribution."""
    total = sum(multiplicity)
    sums = sums_of(np.eye(3), multiplicity, resamples=20_000)
    expected = np.array(multiplicity) / total
    assert (sums.sum(axis=1) == total).all()
    assert sums.mean(axis=0) / total == pytest.approx(expected, rel=0.01)
    assert sums.var(axis=0) / total == pytest.approx(expected * (1 - expected), rel=0.05)
    covariance = np.cov(sums[:, 0], sums[:, 1])[0, 1] / total
    assert covariance == pytest.approx(-expected[0] * expected[1], rel=0.1)


def test_the_same_seed_draws_the_same_and_another_seed_does_not():
    rows, multiplicity = np.arange(30.0)[:, None], np.ones(30, dtype=int)
    assert sums_of(rows, multiplicity, 5).tolist() == sums_of(rows, multiplicity, 5).tolist()
    assert sums_of(rows, multiplicity, 5).tolist() != sums_of(rows, multiplicity, 6).tolist()


def test_from_nothing_nothing_is_drawn():
    assert sums_of(np.zeros((0, 2)), np.zeros(0, dtype=int)).shape == (0, 2)


def test_of_fewer_comparisons_the_interval_reaches_further_out():
    values = np.tile(np.random.default_rng(8).normal(size=(2000, 1)), 3)
    low, high = bounds(values, np.array([MIN_COMPARISONS, 30, 10**9]))
    widths = high - low
    assert (np.diff(widths) < 0).all()
    # Student's quantile in the place of the normal one, and n - 1 in that of n.
    assert widths[0] / widths[-1] == pytest.approx(2.2622 / 1.96 * np.sqrt(10 / 9), rel=0.05)
