"""Bets on whether a judge has changed, and the draw of its anchors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.drift import THRESHOLD, draw, drift, largest_evidence, share_right

DIFFERENCES = st.lists(st.sampled_from([-1, -1 / 3, 0, 1 / 3, 1]), max_size=60)
ANCHORS = st.sets(st.text("abc0", min_size=1, max_size=6), min_size=1, max_size=30)


@given(DIFFERENCES)
def test_worse_and_better_mirror_each_other(differences):
    one, other = drift(differences), drift([-d for d in differences])
    assert (one.worse, one.better) == (other.better, other.worse)
    assert {one.direction, other.direction} in ({""}, {"worse", "better"})
    assert one.at == other.at


@given(DIFFERENCES, DIFFERENCES)
def test_what_was_said_stays_said(first, later):
    before, after = drift(first), drift(first + later)
    assert after.worse >= before.worse - 1e-9
    if before.direction:
        assert (after.direction, after.at) == (before.direction, before.at)


@given(DIFFERENCES)
def test_it_is_said_where_evidence_first_reaches_its_threshold(differences):
    said = drift(differences)
    if said.at is not None:
        bets = np.array(differences[: said.at + 1], float)[:, None]
        bets = -bets if said.direction == "worse" else bets
        evidence = largest_evidence(bets)[:, 0]
        assert evidence[-1] >= THRESHOLD - 1e-6
        assert (evidence[:-1] < THRESHOLD + 1e-6).all()
    else:
        assert max(said.worse, said.better) < THRESHOLD


@given(ANCHORS, st.integers(1, 9), st.integers(1, 7))
def test_each_anchor_is_drawn_once_in_a_freezing(anchors, freezing, n):
    used = []
    while some := draw("judge", freezing, anchors, used, n):
        used += some
    assert sorted(used) == sorted(anchors)
    assert used == draw("judge", freezing, anchors, [], len(anchors))


def test_a_verdict_is_right_by_the_share_of_votes_that_it_equals():
    assert share_right(["A", "B", "B"], "B") == pytest.approx(2 / 3)
    assert share_right(["A", "B", "B"], "") == 0


def test_nothing_asked_says_nothing():
    assert drift([]) == drift([0] * 400)
