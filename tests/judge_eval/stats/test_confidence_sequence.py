"""Intervals that hold however often one looks, against their definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.claims import always_valid, practically_same
from judge_eval.stats.evidence import NODES, WEIGHTS
from judge_eval.stats.evidence_order import NOBODY, EnteredVotes

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


def brought(*differences, shared=1, most=1):
    """Three judges of whom each two differ so on each prompt, of so many votes."""
    columns = np.array(differences, dtype=float).T
    n, votes = np.zeros((len(columns), 3), int), np.full(columns.shape, shared)
    votes[np.isnan(columns)] = 0
    most_votes = np.full(len(n), most)
    none, nobody = n[:, 0], np.full((3, 3), NOBODY)
    prompts = tuple(range(len(n)))
    return EnteredVotes(
        *(prompts, none, n, n, most_votes, votes, columns, 0, none, none, none, none, nobody)
    )


def same_by_definition(differences, shared, most, pairs, margin):
    """Both bets, each prompt by each prompt, over the 64 nodes."""
    largest = []
    for sign in (1, -1):
        won, best = np.ones(64), 1.0
        for d, n in zip(differences, shared, strict=True):
            won *= 1 + NODES * (margin * n - sign * d * most) / ((1 + margin) * most)
            best = max(best, (WEIGHTS * won).sum())
        largest.append(best)
    return min(largest) >= pairs / 0.05


@given(st.floats(0, 0.3), st.integers(20, 200), st.integers(1, 3), st.sampled_from([0.1, 0.2, 0.4]))
def test_practically_the_same_is_what_both_bets_have_reached(share, prompts, n, margin):
    rng = np.random.default_rng(prompts)
    columns = rng.choice([-n / 3, 0, n / 3], (prompts, 3), p=[share / 2, 1 - share, share / 2])
    same = practically_same(brought(*columns.T, shared=n, most=3), np.zeros(3, dtype=bool), margin)
    votes = np.full(prompts, n)
    for column, cell in enumerate(((0, 1), (0, 2), (1, 2))):
        expected = same_by_definition(columns[:, column], votes, 3, 3, margin)
        assert same[cell] == same[cell[::-1]] == expected


def test_baselines_are_not_compared_and_make_no_pair():
    """It takes log(1 / 0.05) against log(3 / 0.05), so fewer prompts."""
    same = practically_same(brought(*np.zeros((3, 60))), np.array([False, False, True]))
    assert same.tolist() == [[False, True, False], [True, False, False], [False] * 3]
    assert not practically_same(brought(*np.zeros((3, 60))), np.zeros(3, dtype=bool)).any()
    assert practically_same(brought(*np.zeros((3, 90))), np.zeros(3, dtype=bool)).sum() == 6


def test_a_prompt_that_was_not_asked_of_both_says_nothing():
    zeros = np.zeros(90)
    unknown = np.full(90, np.nan)
    same = practically_same(brought(zeros, unknown, zeros), np.zeros(3, dtype=bool))
    assert same.tolist() == [[False, True, False], [True, False, True], [False, True, False]]


def test_votes_may_be_right_in_part():
    shares = np.tile([[0.25], [0.75]], (60, 1))
    ones = np.ones_like(shares, dtype=int)
    [(low, high)] = always_valid(shares, ones, ones[:, 0])
    [(wider_low, wider_high)] = always_valid(np.tile([[0], [1]], (60, 1)), ones, ones[:, 0])
    assert wider_low < low < 0.5 < high < wider_high
