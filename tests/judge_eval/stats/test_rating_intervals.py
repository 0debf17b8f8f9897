"""Ratings with intervals and ranks, and when an interval is withheld."""

import numpy as np
import pytest

from judge_eval.stats import bradley_terry
from judge_eval.stats.bootstrap import ALL_ALIKE, TOO_FEW, bootstrap_tail
from judge_eval.stats.bradley_terry import NO_GAMES, apart, rate

WINS = np.array([[0.0, 30.0, 25.0], [20.0, 0.0, 22.0], [15.0, 18.0, 0.0]])


def resamples(wins, number=400, seed=1):
    return np.random.default_rng(seed).poisson(wins, (number, *wins.shape)).astype(float)


def test_value_and_interval_are_those_of_the_fits():
    drawn = resamples(WINS)
    found = rate(WINS, drawn, np.array([50, 50, 50]))
    assert [r.value for r in found] == pytest.approx(bradley_terry.fit(WINS))
    each = np.array([bradley_terry.fit(wins) for wins in drawn])
    [tail] = bootstrap_tail([50])
    assert [r.low for r in found] == pytest.approx(np.quantile(each, tail, axis=0))
    assert [r.high for r in found] == pytest.approx(np.quantile(each, 1 - tail, axis=0))
    assert [r.rank for r in found] == [1, 2, 3]
    assert all(r.best_rank <= r.rank <= r.worst_rank for r in found)


def test_who_has_no_game_is_not_rated_and_takes_no_rank():
    wins = np.zeros((4, 4))
    wins[1:, 1:] = WINS
    found = rate(wins, resamples(wins), np.array([0, 50, 50, 50]))
    assert (found[0].value, found[0].rank, found[0].why) == (None, None, NO_GAMES)
    assert [r.value for r in found[1:]] == pytest.approx(bradley_terry.fit(WINS))
    assert max(r.worst_rank for r in found[1:]) == 3


def test_few_comparisons_give_neither_interval_nor_ranks():
    found = rate(WINS, resamples(WINS), np.array([9, 50, 50]))
    assert (found[0].low, found[0].high, found[0].why) == (None, None, TOO_FEW)
    assert (found[0].rank, found[0].best_rank, found[0].worst_rank) == (1, None, None)
    assert found[1].low < found[1].high


def test_resamples_that_are_all_alike_give_no_interval_and_no_certain_rank():
    wins = np.array([[0.0, 80.0], [0.0, 0.0]])
    found = rate(wins, np.stack([wins] * 50), np.array([80, 80]))
    assert [(r.low, r.high, r.why) for r in found] == [(None, None, ALL_ALIKE)] * 2
    assert [(r.rank, r.best_rank, r.worst_rank) for r in found] == [
        (1, None, None),
        (2, None, None),
    ]


def test_nobody_played():
    nothing = np.zeros((2, 2))
    found = rate(nothing, np.zeros((9, 2, 2)), np.array([0, 0]))
    assert [r.value for r in found] == [None, None]
    assert not apart(found).any()
    assert rate(np.zeros((0, 0)), np.zeros((9, 0, 0)), np.array([], dtype=int)) == []


def test_intervals_that_touch_nowhere_are_apart_and_missing_ones_never_are():
    wins = np.array([[0.0, 900.0, 9.0], [100.0, 0.0, 9.0], [9.0, 9.0, 0.0]])
    found = rate(wins, resamples(wins), np.array([50, 50, 4]))
    assert apart(found).tolist() == [[False, True, False], [True, False, False], [False] * 3]
