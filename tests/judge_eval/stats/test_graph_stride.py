"""Which points of the rating graph are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.elo import graph_stride


def kept(votes):
    return [n for n in range(1, votes + 1) if n % graph_stride(n) == 0]


@given(st.integers(1, 10**9))
def test_a_graph_has_between_64_and_128_points_whatever_the_votes(votes):
    stride = graph_stride(votes)
    assert votes // stride <= 128
    assert votes < 128 or votes // stride >= 64


@given(st.integers(1, 5000))
def test_every_point_that_a_graph_asks_for_was_kept(votes):
    stride = graph_stride(votes)
    assert set(range(stride, votes + 1, stride)) <= set(kept(votes))


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_an_undo_only_cuts_points_off(votes, fewer):
    assert kept(min(votes, fewer)) == [n for n in kept(votes) if n <= fewer]


def test_all_early_votes_are_points_and_a_million_votes_keep_few():
    assert kept(128) == list(range(1, 129))
    assert len(kept(200_000)) < 1000


@pytest.mark.parametrize("votes", [0, -1])
def test_without_votes_the_stride_is_one(votes):
    assert graph_stride(votes) == 1
