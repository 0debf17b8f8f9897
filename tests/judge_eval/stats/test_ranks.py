"""Ranks, their range, and letters that are shared exactly by what cannot be told apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.bradley_terry import rank_ranges, rate, tie_group_members, tie_groups

ratings = st.lists(st.integers(900, 910), min_size=1, max_size=8).map(
    lambda values: np.array(values, dtype=float)
)


@st.composite
def relations(draw, most=9):
    size = draw(st.integers(1, most))
    flags = draw(st.lists(st.booleans(), min_size=size * size, max_size=size * size))
    above = np.triu(np.array(flags).reshape(size, size), k=1)
    return above | above.T


def letters_of(text):
    """Split 'aba2' into a, b, a2."""
    found = []
    for sign in text:
        if sign.isdigit():
            found[-1] += sign
        else:
            found.append(sign)
    return set(found)


wins_tables = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=n, max_size=n)
)


def rated(wins):
    wins = np.array(wins)
    return rate(wins, wins[None].astype(float), np.full(len(wins), 20))


@given(wins_tables)
def test_a_rank_is_one_more_than_those_above(wins):
    found = rated(wins)
    for own in found:
        assert own.rank == 1 + sum(other.value > own.value + 1e-6 for other in found)


def test_ratings_that_differ_by_rounding_only_share_a_rank():
    found = rated([[0, 3, 5], [3, 0, 5], [1, 1, 0]])
    assert [each.rank for each in found] == [1, 1, 3]


@given(ratings)
def test_one_resample_gives_equal_ratings_all_their_ranks(values):
    for own, (best, worst) in zip(values, rank_ranges(values[None, :]), strict=True):
        assert best == 1 + (values > own).sum()
        assert worst == (values >= own).sum()


def test_what_happens_in_less_than_one_of_forty_resamples_is_left_out():
    order = np.array([3.0, 2.0, 1.0])
    mostly = [order] * 98 + [order[::-1]] * 2
    assert rank_ranges(np.array(mostly)) == [(1, 1), (2, 2), (3, 3)]
    less = [order] * 97 + [order[::-1]] * 3
    assert rank_ranges(np.array(less)) == [(1, 3), (2, 2), (1, 3)]


@pytest.mark.parametrize(
    "apart, letters",
    [
        ([], ["a", "a", "a"]),
        ([(0, 1), (0, 2), (1, 2)], ["a", "b", "c"]),
        ([(0, 2)], ["a", "ab", "b"]),
        ([(0, 1), (0, 2)], ["a", "b", "b"]),
        ([(0, 1), (1, 2)], ["a", "b", "a"]),
    ],
)
def test_letters_of_three(apart, letters):
    distinct = np.zeros((3, 3), dtype=bool)
    for one, other in apart:
        distinct[one, other] = distinct[other, one] = True
    assert tie_groups(distinct, np.arange(3)) == letters


@given(relations(), st.randoms(use_true_random=False))
def test_two_share_a_letter_exactly_when_they_cannot_be_told_apart(distinct, random):
    order = np.array(random.sample(range(len(distinct)), len(distinct)))
    letters = [letters_of(text) for text in tie_groups(distinct, order)]
    for one in range(len(distinct)):
        assert letters[one]
        for other in range(one):
            assert bool(letters[one] & letters[other]) == (not distinct[one, other])
    assert "a" in letters[order[0]]


@given(relations())
def test_no_letter_could_be_left_out_and_none_could_be_given_to_one_more(distinct):
    groups = [set(group) for group in tie_group_members(distinct)]
    everyone = set(range(len(distinct)))
    for group in groups:
        assert all(distinct[other, list(group)].any() for other in everyone - group)
        pairs = {(a, b) for a in group for b in group}
        others = {(a, b) for g in groups if g is not group for a in g for b in g}
        assert pairs - others


def test_intervals_give_as_many_letters_as_they_need():
    """A long row of overlapping neighbours: one letter for each overlap."""
    places = np.arange(60)
    distinct = np.abs(places[:, None] - places) > 1
    letters = tie_groups(distinct, places)
    assert letters[:3] == ["a", "ab", "bc"]
    assert letters[26:28] == ["za2", "a2b2"]


def test_nobody_has_no_letters():
    assert tie_groups(np.zeros((0, 0), dtype=bool), np.zeros(0, dtype=int)) == []
