"""Intervals that hold however often one looks, against their definitions written out."""

from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_eval.stats.confidence_sequence import always_valid, mean_bounds, practically_same
from judge_eval.stats.entering import Entered
from judge_eval.stats.evidence import NODES, WEIGHTS

prompts = st.lists(
    st.integers(0, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=40,
)


def inside(m, counts, most):
    """Whether the largest value so far stays below 20 for one m."""
    up, down, largest = np.ones(64), np.ones(64), 0.0
    for (c, n), n_max in zip(counts, most, strict=True):
        up *= 1 + NODES * (c - m * n) / (m * n_max)
        down *= 1 - NODES * (c - m * n) / ((1 - m) * n_max)
        largest = max(largest, (WEIGHTS * (up + down)).sum() / 2)
    return largest < 20


@given(prompts, st.integers(0, 40))
@settings(max_examples=40)
def test_it_is_all_that_stays_below_20(counts, rises_at):
    most = [4 if n < rises_at else 6 for n in range(len(counts))]
    right, votes = np.array(counts).T[..., None]
    [(low, high)] = always_valid(right, votes, np.array(most))
    if np.isnan(low):
        assert not any(inside(m, counts, most) for m in np.linspace(0.001, 0.999, 999))
        return
    assert 0 <= low <= high <= 1
    for m in (low + 1e-5, high - 1e-5):
        assert low + 2e-5 > high or inside(m, counts, most)
    for m in (low - 1e-5, high + 1e-5):
        assert not 0 < m < 1 or not inside(m, counts, most)


def test_all_right_all_wrong_and_nothing():
    votes = np.full((50, 3), 2)
    votes[:, 2] = 0
    found = always_valid(votes * [1, 0, 0], votes, np.full(50, 2))
    assert found[0, 1] == 1 - found[1, 0] == 1
    assert found[0, 0] == pytest.approx(1 - found[1, 1])
    assert 0.8 < found[0, 0] < 0.95
    assert found[2].tolist() == [0, 1]
    empty = np.zeros((0, 2), int)
    assert always_valid(empty, empty, empty[:, 0]).tolist() == [[0, 1], [0, 1]]


def test_no_agreement_fits_where_it_changed_on_the_way():
    right = np.repeat([[1], [0]], 200, axis=0)
    assert np.isnan(always_valid(right, np.ones_like(right), np.ones(400, int))).all()


def test_a_prompt_in_between_may_set_an_end():
    """After 40 prompts that were right more is known than after 10 more that were not."""
    right = np.repeat([[1], [0]], [40, 10], axis=0)
    ones = np.ones_like(right)
    [(before, _)] = always_valid(right[:40], ones[:40], ones[:40, 0])
    [(after, _)] = always_valid(right, ones, ones[:, 0])
    assert after == before


def test_other_judges_change_no_end_to_the_last_bit():
    rng = np.random.default_rng(3)
    votes = rng.integers(0, 5, (150, 70))
    right = rng.binomial(votes, rng.random(70))
    most = np.full(150, 7)
    all_of_them = always_valid(right, votes, most)
    for some in ([0], [0, 3], [69, 65]):
        assert np.array_equal(always_valid(right[:, some], votes[:, some], most), all_of_them[some])


def written_out(values, level):
    """Theorem 2 of Waudby-Smith and Ramdas (2024), value by value."""
    low, high = 0.0, 1.0
    mean, variance, total, squares = 0.5, 0.25, 0.5, 0.25
    staked = won = cost = 0.0
    for t, x in enumerate(values, 1):
        bet = min(0.5, sqrt(2 * log(2 / level) / (variance * t * log(1 + t))))
        staked, won = staked + bet, won + bet * x
        cost += 4 * (x - mean) ** 2 * (-log(1 - bet) - bet) / 4
        total += x
        mean = total / (t + 1)
        squares += (x - mean) ** 2
        variance = squares / (t + 1)
        reach = (log(2 / level) + cost) / staked
        low, high = max(low, won / staked - reach), min(high, won / staked + reach)
    return low, high


@given(st.lists(st.floats(0, 1), max_size=60), st.sampled_from([0.05, 0.01]))
def test_bounds_of_a_mean_are_those_of_the_theorem(values, level):
    found = mean_bounds(np.array([values]).T, level)
    assert found[:, 0] == pytest.approx(written_out(values, level))
    with_gaps = np.array([[x, np.nan] for x in values]).reshape(-1, 1)
    assert np.array_equal(mean_bounds(with_gaps, level), found)


def brought(*differences):
    """Three judges of whom each two differ so on each prompt."""
    columns = np.array(differences, dtype=float).T
    n = np.zeros((len(columns), 3), int)
    return Entered(tuple(range(len(columns))), n[:, 0], n, n, n[:, 0], 0, columns)


def test_practically_the_same_lies_whole_within_the_margin():
    nobody = np.zeros(3, dtype=bool)
    equal, apart = np.zeros(500), np.tile([1.0, 0, 0, 0, 0], 100)
    unclear = np.append(np.full(490, np.nan), np.zeros(10))
    same = practically_same(brought(equal, apart, unclear), nobody)
    assert same[0].tolist() == same[:, 0].tolist() == [False, True, False]
    assert not same[1:, 1:].any()
    assert not practically_same(brought(equal, apart, unclear), nobody, margin=0.01).any()
    wide = practically_same(brought(equal, apart, unclear), nobody, margin=0.4)
    assert wide[0].tolist() == [False, True, True]


def test_baselines_are_not_compared_and_make_no_pair():
    values = np.tile([0.5, -0.5], 110)
    one_pair, three_pairs = (
        abs(2 * mean_bounds((1 + values[:, None]) / 2, level) - 1).max()
        for level in (0.05, 0.05 / 3)
    )
    assert one_pair < three_pairs - 0.005
    run, margin = brought(values, values, values), three_pairs - 0.001
    assert not practically_same(run, np.zeros(3, dtype=bool), margin).any()
    same = practically_same(run, np.array([False, False, True]), margin)
    assert same.tolist() == [[False, True, False], [True, False, False], [False] * 3]


def test_what_changed_on_the_way_is_not_the_same():
    """The bounds have crossed: they hold no mean at all."""
    values = np.repeat([1.0, -1.0], 300)
    assert (np.diff(mean_bounds((1 + values[:, None]) / 2), axis=0) < 0).all()
    found = brought(values, values, values)
    assert not practically_same(found, np.zeros(3, dtype=bool), margin=inf).any()
