"""The figures of judges: what they are made of, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import bradley_terry
from judge_eval.stats.bootstrap import bootstrap_tail
from judge_eval.stats.elo import agree_rate
from judge_eval.stats.estimate import wilson
from judge_eval.stats.judge_figures import judge_figures
from judge_eval.stats.outcomes_table import OutcomesTable
from tests.helpers.outcome_tables import made_up, outcomes_of, tables


def figures(table, seed=1, resamples=200):
    return judge_figures(table, np.arange(len(table.votes)), np.random.default_rng(seed), resamples)


def plain_bootstrap(table, resamples, seed):
    """Draw the same comparisons, one resample after the other, and rate the judges by each."""
    rng = np.random.default_rng(seed)
    groups, multiplicity = table.grouped()
    written_out = groups.select(np.repeat(np.arange(len(multiplicity)), multiplicity))
    ratings = []
    for _ in range(resamples):
        drawn = written_out.select(rng.integers(len(table.votes), size=len(table.votes)))
        ratings.append(bradley_terry.fit(drawn.wins()))
    return np.array(ratings)


def bounds_of(resampled, comparisons):
    tails = bootstrap_tail(comparisons)
    return (
        [np.quantile(column, tail) for column, tail in zip(resampled.T, ends, strict=True)]
        for ends in (tails, 1 - tails)
    )


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(3)
    return made_up(rng, comparisons=150, skills=[0.8, 0.7, 0.65, 0.3], votes=4)


def test_ratings_are_those_of_a_plain_bootstrap(several):
    found = figures(several, seed=9)
    ratings = plain_bootstrap(several, 200, seed=9)
    low, high = bounds_of(ratings, several.playing().sum(axis=0))
    assert [f.rating.value for f in found] == pytest.approx(bradley_terry.fit(several.wins()))
    assert [f.rating.low for f in found] == pytest.approx(low, abs=1e-8)
    assert [f.rating.high for f in found] == pytest.approx(high, abs=1e-8)


def test_ranks_of_clear_and_unclear_cases(several):
    found = figures(several)
    assert sorted(f.rating.rank for f in found) == [1, 2, 3, 4]
    assert found[0].rating.worst_rank > 1
    assert (found[3].rating.best_rank, found[3].rating.worst_rank) == (4, 4)


def test_one_vote_per_comparison_gets_wilsons_interval():
    table = made_up(np.random.default_rng(4), comparisons=50, skills=[0.8, 0.5])
    for judge, found in enumerate(figures(table)):
        right, judged = table.right()[:, judge].sum(), table.judged()[:, judge].sum()
        agreement = found.agreement
        assert (agreement.successes, agreement.n) == (right, judged)
        assert (agreement.low, agreement.high) == wilson(int(right), int(judged))
        assert round(100 * agreement.value, 1) == agree_rate(right, judged - right)


def test_coverage_counts_comparisons_without_votes_and_leaves_out_what_was_not_asked():
    table = outcomes_of([{"A": 1}, {}, {}], [["A", "B"], [None, "A"], ["tie"]])
    first, second = figures(table)
    assert (first.coverage.successes, first.coverage.n) == (2, 3)
    assert (second.coverage.successes, second.coverage.n) == (2, 2)


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_comparisons_changes_nothing(table, random):
    order = np.array(random.sample(range(len(table.votes)), len(table.votes)))
    assert figures(table, resamples=20) == figures(table.select(order), resamples=20)


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_judges_changes_no_value(table, random):
    order = random.sample(range(table.n_judges), table.n_judges)
    moved = figures(OutcomesTable(table.votes, table.verdicts[:, order]), resamples=20)
    for found, same in zip(moved, (figures(table, resamples=20)[n] for n in order), strict=True):
        assert found.rating.value == pytest.approx(same.rating.value, abs=1e-8)
        assert found.rating.rank == same.rating.rank
        assert found.agreement.value == same.agreement.value


@given(tables())
def test_votes_on_one_comparison_or_on_its_copies_rate_alike(table):
    copies = OutcomesTable(np.vstack([table.votes] * 2), np.vstack([table.verdicts] * 2))
    doubled = OutcomesTable(2 * table.votes, table.verdicts)
    for copied, weighted in zip(
        figures(copies, resamples=20), figures(doubled, resamples=20), strict=True
    ):
        assert copied.rating.value == pytest.approx(weighted.rating.value, abs=1e-8)
        assert copied.agreement.value == weighted.agreement.value


@given(tables())
def test_the_mean_rating_is_1000(table):
    values = [f.rating.value for f in figures(table, resamples=20) if f.rating.value is not None]
    assert not values or np.mean(values) == pytest.approx(1000, abs=1e-9)


def test_the_same_seed_gives_the_same_figures_and_another_one_other_intervals(several):
    assert figures(several) == figures(several)
    assert figures(several)[0].rating.low != figures(several, seed=2)[0].rating.low


@pytest.mark.parametrize(
    "table",
    [
        outcomes_of([], [], judges=2),
        outcomes_of([{}], [["A", "B"]]),
        outcomes_of([{"A": 1}], [[None, None]]),
    ],
)
def test_without_votes_or_verdicts_every_figure_is_missing_with_a_reason(table):
    for found in figures(table):
        assert found.rating.value is None
        assert found.rating.why
        assert found.agreement.value is None
        assert found.agreement.why


def test_beside_people_stand_only_comparisons_with_several_votes():
    table = outcomes_of([{"A": 2, "B": 1}, {"A": 1}, {"B": 2}], [["A", "B"]] * 3)
    first, second = figures(table)
    assert (first.agreement.successes, first.agreement.n) == (3, 6)
    assert (first.beside_people.successes, first.beside_people.n) == (2, 5)
    assert (second.beside_people.successes, second.beside_people.n) == (3, 5)


def test_who_has_no_verdict_has_no_rating():
    said = [["A", "B", None], ["A", "B", None]] * 10
    found = figures(outcomes_of([{"A": 1}] * 20, said))
    assert (found[2].rating.rank, found[2].rating.value) == (None, None)


def test_one_judge_has_agreement_and_no_rating():
    [found] = figures(outcomes_of([{"A": 1}, {"B": 1}], [["A"], ["A"]]))
    assert (found.agreement.value, found.rating.value) == (0.5, None)


def test_no_judges_no_figures():
    assert figures(outcomes_of([{"A": 1}], [[]])) == []
