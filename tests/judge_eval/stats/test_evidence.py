"""Evidence between judges: against the integral, thresholds, clones, and what is said of it."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge_eval.stats.evidence import (
    NEVER,
    beats,
    best_growth,
    best_judge,
    best_threshold,
    evidence,
    forecast,
    log_wealth,
    rank_range,
    thresholds,
    too_few_prompts,
)
from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
from judge_eval.stats.judge_figures import paired_differences, shares_by_prompt
from tests.helpers import oracles

D = st.sampled_from([-1, -2 / 3, -0.5, -1 / 3, 0, 1 / 3, 0.5, 2 / 3, 1])


def wealth(differences):
    return exp(log_wealth(np.array([differences]).T)[-1, 0])


@pytest.mark.parametrize("won, lost", [(5, 0), (15, 3), (16, 2), (20, 8), (30, 14), (60, 40)])
def test_it_is_the_closed_form_where_every_prompt_has_one_comparison(won, lost):
    closed = (
        2 ** (won + lost + 1)
        * oracles.special.beta(won + 1, lost + 1)
        * oracles.special.betainc(lost + 1, won + 1, 0.5)
    )
    assert wealth([1] * won + [-1] * lost) == pytest.approx(closed, rel=1e-9)
    assert wealth([-1] * lost + [0] * 7 + [1] * won) == pytest.approx(closed, rel=1e-9)


@given(st.lists(D, min_size=1, max_size=100))
def test_it_is_the_integral(differences):
    integral, _ = oracles.integrate.quad(
        lambda x: np.prod(1 + x * np.array(differences)), 0, 1, epsrel=1e-10
    )
    assert wealth(differences) == pytest.approx(integral, rel=1e-6)


def test_it_stays_a_number_at_any_length():
    log_all = log_wealth(np.tile([[1.0, -1.0, 0.0]], (5000, 1)))[-1]
    # The best of the 64 bets, 0.99965, is weighted by 0.00089.
    assert log_all[0] == pytest.approx(5000 * log(1.99965) + log(0.00089), abs=1)
    assert log_all[1] < -5
    assert log_all[2] == pytest.approx(0, abs=1e-12)


@given(st.lists(D, min_size=1, max_size=60))
def test_the_best_growth_is_that_of_the_best_bet(differences):
    bets = np.linspace(0, 1, 2001)[:-1]
    grid = np.log1p(bets[:, None] * np.array(differences)).sum(axis=1).max()
    assert grid - 1e-12 <= best_growth(np.array([differences]).T)[0] <= grid + 0.05


def run_of(rows, prompts=None):
    """Judges are right (1), wrong (0), failed (-1) or not asked (-2) on comparisons with a vote."""
    numbers = range(len(rows)) if prompts is None else prompts
    opened = [
        ItemOpened(n, n, prompt, 1, row)
        for n, (prompt, row) in enumerate(zip(numbers, rows, strict=False))
    ]
    voted = [VoteCast(len(rows) + n, n, 1) for n in range(len(rows))]
    return enter([*opened, *voted], range(1 + max([*numbers, len(rows)])))


def weighed(rows, prompts=None):
    entered = run_of(rows, prompts)
    return evidence(entered, thresholds(np.zeros(entered.n_judges, dtype=bool)))


def test_the_largest_so_far_counts_and_says_since_when():
    found = weighed([[1, 0]] * 9 + [[1, 1]] + [[0, 1]] * 8)
    # (2^9 - 1) / 9 after eight prompts, the last voted on by entry 18 + 7.
    assert found.since.tolist() == [[NEVER, 25], [NEVER, NEVER]]
    assert exp(found.log_largest[0, 1]) == pytest.approx(1023 / 10)
    assert exp(found.log_now[0, 1]) < 5
    assert found.log_largest[1, 0] == 0
    assert found.votes == 18


def test_judges_that_always_say_the_same_are_as_before():
    found = weighed([[1, 1], [0, 0]] * 30)
    assert not found.log_now.any()
    assert not found.growth.any()
    assert (found.since == NEVER).all()
    nothing = evidence(enter([], []), np.zeros((0, 0)))
    assert (nothing.votes, nothing.log_now.shape) == (0, (0, 0))


def test_growth_is_per_vote_on_all_that_entered():
    found = weighed([[1, 0], [1, 1], [1, 1], [1, 0]])
    # Half a prompt speaks for the first, with a standard error of sqrt(1/3) / 2.
    error = sqrt(1 / 3) / 2
    fast = 2 * log(2) + 2 * log(1 + 1.645 * error)
    assert found.growth[0, 0, 1] == pytest.approx(fast / 4)
    assert found.growth[1, 0, 1] == 0 == found.growth[1, 1, 0]
    less = best_growth(np.clip(np.array([[-1.0], [0]]) + 1.645 * error, -1, 1), np.array([[2]]))
    assert found.growth[0, 1, 0] == pytest.approx(less[0] / 4)


def test_thresholds_of_both_families():
    needed = thresholds(np.array([False, False, False, True, True]))
    assert needed[0, 1] == needed[2, 0] == 3 * 2 / 0.05
    assert needed[0, 3] == needed[2, 4] == 3 * 2 / 0.05
    assert np.array_equal(needed[3:, :3], needed[:3, 3:].T)
    assert np.isinf(needed[3:, 3:]).all()
    assert np.isinf(np.diag(needed)).all()


@given(st.integers(1, 10), st.integers(0, 4))
def test_another_judge_raises_thresholds_and_another_baseline_those_of_the_floor(judges, floor):
    needed = thresholds(np.arange(judges + floor) >= judges)
    more = thresholds(np.arange(judges + 1 + floor) > judges)
    among = np.ix_(range(judges), range(judges))
    assert (more[among] >= needed[among]).all()
    lower = thresholds(np.arange(judges + floor + 1) >= judges)
    assert np.array_equal(lower[among], needed[among])
    assert (lower[:judges, judges:-1] > needed[:judges, judges:]).all() or not floor


@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=40))
def test_higher_thresholds_change_no_evidence(rows):
    entered = run_of(rows)
    low, high = (evidence(entered, np.full((3, 3), bar)) for bar in (5.0, 50.0))
    assert np.array_equal(low.log_largest, high.log_largest)
    assert (low.reached >= high.reached).all()
    both = low.reached & high.reached
    assert (low.since[both] <= high.since[both]).all()


def test_a_claim_needs_more_agreement_and_no_claim_of_the_reverse():
    reached = np.array([[False, True, True], [True, False, False], [False, False, False]])
    now = np.full((3, 3), log(3))
    said = beats(reached, now, np.array([0.7, 0.6, 0.7]))
    # Both ways, and as much agreement.
    assert not said.any()
    assert beats(reached, now, np.array([0.7, 0.6, 0.5])).tolist()[0] == [False, False, True]


@pytest.mark.parametrize(
    "up, down, largest, now, until, is_said",
    [
        (8, 8, 56.777778, 0.299538, 10, False),
        (10, 4, 186.090909, 2.053081, 13, False),
        (10, 3, 186.090909, 3.974525, 13, True),
    ],
)
def test_a_claim_is_said_while_the_evidence_now_is_at_least_3(
    up, down, largest, now, until, is_said
):
    found = evidence(run_of([[1, 0]] * up + [[0, 1]] * down), thresholds(np.zeros(2, dtype=bool)))
    assert (found.reached[0, 1], found.until[0, 1]) == (True, until)
    assert np.exp([found.log_largest[0, 1], found.log_now[0, 1]]) == pytest.approx(
        [largest, now], abs=1e-6
    )
    said = beats(found.reached, found.log_now, np.array([0.7, 0.6]))
    assert said.tolist() == [[False, is_said], [False, False]]


def test_what_prompts_that_are_to_come_can_still_bring():
    """As if the judge of the row alone were right on them: four entered, and nine are to come."""
    opened = [ItemOpened(n, n, n, 1, [0, 1]) for n in range(13)]
    entered = enter([*opened, *(VoteCast(13 + n, n, n % 2) for n in range(4))], range(13))
    found = evidence(entered, thresholds(np.zeros(2, dtype=bool)))
    for cell, signs in (((0, 1), [1, -1, 1, -1]), ((1, 0), [-1, 1, -1, 1])):
        possible = log_wealth(np.array([[*signs, *[1] * 9]], dtype=float).T)[-1, 0]
        assert found.log_possible[cell] == pytest.approx(possible)
    none = enter(opened, range(13))
    assert evidence(none, np.full((2, 2), 40.0)).log_possible[0, 1] == pytest.approx(
        np.log((2**14 - 1) / 14)
    )


def test_rank_ranges_come_from_claims():
    said = np.zeros((4, 4), dtype=bool)
    said[0, 1:] = said[1, 3] = True
    assert rank_range(said) == [(1, 1), (2, 3), (2, 4), (3, 4)]
    assert rank_range(said[:1, :1]) == [(1, 1)]


def test_the_best_judge_has_the_first_rank_alone():
    said = np.zeros((4, 4), dtype=bool)
    said[3, 2] = True
    assert rank_range(said) == [(1, 4), (1, 4), (2, 4), (1, 3)]
    assert rank_range(said, best=0) == [(1, 1), (2, 4), (3, 4), (2, 3)]


def test_the_best_judge_is_ahead_of_every_other_and_beats_every_baseline():
    is_baseline = np.array([False, False, False, True])
    ahead, beats_floor = np.zeros((4, 4), dtype=bool), np.zeros((4, 4), dtype=bool)
    ahead[1, [0, 2]] = beats_floor[1, 3] = True
    assert best_judge(ahead, beats_floor, is_baseline) == 1
    assert best_judge(ahead, np.zeros_like(ahead), is_baseline) is None
    ahead[1, 2] = False
    assert best_judge(ahead, beats_floor, is_baseline) is None
    only = np.zeros((2, 2), dtype=bool)
    assert best_judge(only, ~only, np.array([False, True])) is None
    assert best_threshold(4) == 80


@pytest.mark.parametrize(
    "votes, said", [(0.2, 1), (9.4, 9), (10, 10), (115.04, 120), (206.4, 210), (1936.7, 1900)]
)
def test_forecasts_have_two_figures(votes, said):
    assert forecast(votes, 1.0, 0.0) == (said, None)
    assert forecast(votes, 10.0, 1.0).high == said


sizes = st.lists(st.integers(0, 9), max_size=60).map(lambda votes: np.array(votes, dtype=int))


@given(sizes, st.integers(2, 60), st.sampled_from([1, 0.5]))
def test_too_few_prompts_are_those_that_would_not_do_with_all_right(votes, judges, most):
    bar = judges * (judges - 1) / 0.05
    biggest = votes.max(initial=1)
    largest = oracles.integrate.quad(
        lambda x: np.prod(1 + most * x * votes / biggest), 0, 1, epsrel=1e-10
    )[0]
    assume(abs(largest / bar - 1) > 1e-6)
    assert too_few_prompts(votes, bar, most) == (largest < bar)


def test_a_judge_that_answers_less_does_not_stand_above_one_that_is_right_more_often():
    """41 % of the pairs, all right, against 83 % right of all."""
    rows = [[1 if n % 100 < 41 else -1, 1 if n % 100 < 83 else 0] for n in range(300)]
    entered = run_of(rows)
    found = evidence(entered, thresholds(np.zeros(2, dtype=bool)))
    rare, often = (
        share.value for share in shares_by_prompt(entered.right, entered.votes, np.arange(300))
    )
    assert (rare, often) == (0.41, 0.83)
    said = beats(found.reached, found.log_now, np.array([rare, often]))
    assert said.tolist() == [[False, False], [True, False]]


boards = st.integers(2, 5).flatmap(
    lambda judges: st.tuples(
        st.lists(
            st.tuples(
                st.integers(0, 49), st.lists(st.integers(-2, 1), min_size=judges, max_size=judges)
            ),
            min_size=12,
            max_size=60,
        ),
        st.lists(st.integers(0, judges - 1), min_size=1, max_size=12),
    )
)


@given(boards)
def test_clones_of_judges_change_nothing_of_the_others_to_the_last_bit(board):
    """Intervals, differences per prompt and evidence, with up to 12 copies on the board."""
    rows, copied = board
    prompts, rows = zip(*rows, strict=True)
    judges = len(rows[0])
    few, many = (
        run_of(of, prompts) for of in (rows, [row + [row[j] for j in copied] for row in rows])
    )
    assert (few.prompts, few.seqs.tolist()) == (many.prompts, many.seqs.tolist())
    pairs = np.zeros((2, judges + len(copied), judges + len(copied)), dtype=int)
    for square, n in zip(pairs, (judges, judges + len(copied)), strict=True):
        square[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
    places = (square[np.triu_indices(judges, 1)] for square in pairs)
    assert_same(*(r.differences[:, at] for r, at in zip((few, many), places, strict=True)))
    bars = np.full((judges + len(copied),) * 2, 5.0)
    one, other = evidence(few, bars[:judges, :judges]), evidence(many, bars)
    for name in ("log_now", "log_largest", "since", "growth"):
        assert_same(getattr(one, name), getattr(other, name)[..., :judges, :judges])
    numbers = np.arange(len(few.prompts))
    assert (
        shares_by_prompt(few.right, few.votes, numbers)
        == shares_by_prompt(many.right, many.votes, numbers)[:judges]
    )
    apart = [paired_differences(r.right, r.votes, numbers) for r in (few, many)]
    assert_same(apart[0], apart[1][:, :judges, :judges])


def assert_same(one, other):
    assert np.array_equal(one, other, equal_nan=True)


def test_more_judges_of_any_kind_change_no_evidence_to_the_last_bit():
    """However many more prompts tell those apart, over several parts and steps of the sums."""
    rng = np.random.default_rng(1)
    skills = [0.9, 0.85, 0.8, *rng.random(12)]
    rows = (rng.random((300, 15)) < skills).astype(int)
    few, many = (run_of(rows[:, :n].tolist()) for n in (3, 15))
    one = evidence(few, np.full((3, 3), 5.0))
    other = evidence(many, np.full((15, 15), 5.0))
    for name in ("log_now", "log_largest", "since", "growth"):
        assert_same(getattr(one, name), getattr(other, name)[..., :3, :3])
