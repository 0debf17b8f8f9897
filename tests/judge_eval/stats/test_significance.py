"""Claims: majority labels, exact McNemar against scipy's binomial test, Holm against R."""

from collections import Counter
from dataclasses import asdict
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.mcnemar import holm, mcnemar, mcnemar_tests, strict_majority
from tests.helpers import oracles
from tests.helpers.outcome_tables import made_up, outcomes_of, tables

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(tables())
def test_a_strict_majority_is_more_than_half(table):
    for counts, code in zip(table.votes.tolist(), strict_majority(table.votes), strict=True):
        winners = [n for n, count in enumerate(counts) if 2 * count > sum(counts)]
        assert winners == ([] if code == -1 else [code])


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(ahead, behind):
    [p] = mcnemar(np.array([ahead]), np.array([behind]))
    total = ahead + behind
    assert p == pytest.approx(
        oracles.stats.binomtest(ahead, total).pvalue if total else 1, rel=1e-9
    )


def test_mcnemar_of_many_thousands_is_still_exact():
    [p] = mcnemar(np.array([25_300]), np.array([24_700]))
    assert p == pytest.approx(oracles.stats.binomtest(25_300, 50_000).pvalue, rel=1e-9)


def test_holm_as_r_has_it():
    """p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")."""
    found = holm(np.array([0.04, 0.01, 0.05, 0.03, 0.02]))
    assert found == pytest.approx([0.09, 0.05, 0.09, 0.09, 0.08])


@given(p_values)
def test_holm_rejects_what_its_steps_reject(values):
    """From the smallest p on: go on while p <= 0.05 / (number of hypotheses left)."""
    rejected = 0
    for p in sorted(values):
        if p > 0.05 / (len(values) - rejected):
            break
        rejected += 1
    # Exactly on the border a rounding of the product may decide.
    sure = holm(np.array(values))
    assert (sure <= 0.05 * (1 - 1e-12)).sum() <= rejected <= (sure <= 0.05 * (1 + 1e-12)).sum()


@given(p_values)
def test_holm_never_makes_a_p_smaller_and_keeps_their_order(values):
    p = np.array(values)
    corrected = holm(p)
    assert (corrected >= p).all()
    assert corrected.max() <= 1
    assert (np.diff(corrected[np.argsort(p)]) >= 0).all()


def claims_by_loop(table):
    """Count discordant comparisons one by one and test every pair with scipy."""
    ahead = Counter()
    for counts, said in zip(table.votes.tolist(), table.verdicts.tolist(), strict=True):
        label = [n for n, count in enumerate(counts) if 2 * count > sum(counts)]
        for one, a in enumerate(said):
            for other, b in enumerate(said):
                ahead[one, other] += bool(label) and min(a, b) >= 0 and a == label[0] != b
    pairs = list(combinations(range(table.n_judges), 2))
    single = [
        oracles.stats.binomtest(ahead[a, b], ahead[a, b] + ahead[b, a]).pvalue
        if ahead[a, b] + ahead[b, a]
        else 1
        for a, b in pairs
    ]
    return ahead, dict(zip(pairs, holm(np.array(single)), strict=True))


def judge_tests(table):
    found = asdict(mcnemar_tests(table))
    size = (table.n_judges, table.n_judges)
    return SimpleNamespace(
        **{name: np.reshape(x, size) if isinstance(x, list) else x for name, x in found.items()}
    )


@given(tables(votes=2, comparisons=30))
def test_claims_are_those_of_a_loop(table):
    found = judge_tests(table)
    ahead, corrected = claims_by_loop(table)
    for (one, other), p in corrected.items():
        assert found.ahead[one, other] == ahead[one, other]
        assert found.ahead[other, one] == ahead[other, one]
        assert found.p[one, other] == found.p[other, one] == pytest.approx(p)
        assert found.beats[one, other] == (p <= 0.05 and ahead[one, other] > ahead[other, one])
    assert not np.diag(found.beats).any()
    assert (np.diag(found.p) == 1).all()


@given(tables())
def test_every_comparison_with_votes_is_labelled_or_counted_as_left_out(table):
    found = judge_tests(table)
    assert found.labelled + found.unlabelled == len(table.voted().votes)
    assert (np.diag(found.together) <= found.labelled).all()


@given(tables())
def test_nobody_beats_who_beats_it(table):
    found = judge_tests(table)
    assert not (found.beats & found.beats.T).any()


def test_many_votes_on_one_comparison_are_one_label():
    table = outcomes_of([{"A": 500}], [["A", "B"]])
    assert judge_tests(table).p[0, 1] == 1


def test_a_comparison_that_one_of_two_judges_failed_on_says_nothing_of_them():
    table = outcomes_of([{"A": 1}] * 10, [["A", None]] * 10)
    found = judge_tests(table)
    assert (found.together[0, 1], found.p[0, 1], found.ahead.tolist()) == (0, 1, [[0, 0], [0, 0]])


def test_six_of_six_are_enough_for_two_judges_and_not_for_three():
    pair = outcomes_of([{"A": 1}] * 6, [["A", "B"]] * 6)
    assert judge_tests(pair).beats[0, 1]
    three = outcomes_of([{"A": 1}] * 6, [["A", "B", "A"]] * 6)
    assert not judge_tests(three).beats.any()


def test_equal_judges_are_seldom_told_apart():
    """Six judges of one skill: any claim at all among their 15 pairs in about 5 % of runs."""
    false = sum(
        judge_tests(
            made_up(np.random.default_rng(seed), comparisons=150, skills=[0.6] * 6)
        ).beats.any()
        for seed in range(400)
    )
    assert false / 400 <= 0.075


def test_a_much_better_judge_is_told_apart():
    table = made_up(np.random.default_rng(1), comparisons=200, skills=[0.9, 0.5, 0.45, 0.1])
    assert judge_tests(table).beats[0, 1:].all()
    assert judge_tests(table).p[1, 2] > 0.05


def test_no_judges_or_no_votes_claim_nothing():
    assert judge_tests(outcomes_of([{"A": 1}], [[]])).beats.shape == (0, 0)
    nothing = judge_tests(outcomes_of([], [], judges=2))
    assert (nothing.labelled, nothing.beats.any(), nothing.p.tolist()) == (0, False, [[1, 1]] * 2)
