"""Agreement among people, against loops over the people."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.judge_figures import among_people

votes_by_row = st.lists(
    st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=12
).map(np.array)


def measured(votes):
    return among_people(np.asarray(votes), np.arange(len(votes)))


def people_of(counts):
    return [choice for choice, number in enumerate(counts) for _ in range(number)]


@given(votes_by_row)
def test_pairs_are_those_of_a_loop_over_people(votes):
    pairs = [two for row in votes.tolist() for two in combinations(people_of(row), 2)]
    found = measured(votes).pairs
    assert (found.successes, found.n) == (sum(a == b for a, b in pairs), len(pairs))


@given(votes_by_row)
def test_each_person_is_compared_with_the_majority_of_the_others(votes):
    agree = trials = without = alone = 0
    for row in votes.tolist():
        people = people_of(row)
        for n, choice in enumerate(people):
            others = people[:n] + people[n + 1 :]
            leads = [other for other in set(others) if 2 * others.count(other) > len(others)]
            alone += not others
            without += bool(others) and not leads
            trials += bool(leads)
            agree += leads == [choice]
    found = measured(votes)
    assert (found.with_majority.successes, found.with_majority.n) == (agree, trials)
    assert (found.no_majority, found.alone) == (without, alone)


def test_two_people_are_each_the_majority_of_the_other():
    found = measured([[2, 0, 0, 0], [1, 1, 0, 0]])
    assert (found.pairs.value, found.with_majority.value) == (0.5, 0.5)
    assert (found.with_majority.n, found.no_majority) == (4, 0)


def test_without_the_column_of_ties_their_votes_are_left_out():
    votes = np.array([[2, 0, 1, 0]])
    assert (measured(votes).pairs.n, measured(votes[:, [0, 1, 3]]).pairs.n) == (3, 1)


def test_intervals_are_by_comparison():
    rng = np.random.default_rng(6)
    unanimous = rng.random(300) < 0.5
    votes = np.where(unanimous[:, None], [4, 0, 0, 0], [2, 2, 0, 0])
    found = measured(votes).pairs
    assert (found.method, found.comparisons) == ("prompts", 300)
    # Six pairs of people per comparison, all agreeing or two of six: as sure as 300, not 1,800.
    spread = np.std(np.where(unanimous, 1, 1 / 3)) / np.sqrt(300)
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_nobody_to_compare_with():
    found = measured([[1, 0, 0, 0], [0, 0, 0, 0]])
    assert (found.pairs.value, found.with_majority.value, found.alone) == (None, None, 1)
    assert found.pairs.why
    assert measured(np.zeros((0, 4), dtype=int)).pairs.value is None


def test_a_vote_weighs_the_same_among_people_as_in_a_judge_s_agreement():
    """Of three votes two agree: each of them with one of two others, the third with nobody."""
    votes = np.array([[2, 1, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0]])
    found = measured(votes)
    assert found.pairs.value == pytest.approx((1 + 1) / (3 + 1))
    assert found.votes.value == pytest.approx((2 * 0.5 + 2 * 1) / (3 + 2))
    assert (found.votes.successes, found.votes.n, found.votes.comparisons) == (3, 5, 2)


def test_a_judge_that_says_what_a_random_other_person_says_is_as_good_as_people():
    rng = np.random.default_rng(2)
    chances = rng.dirichlet([1, 1, 0.3, 0.2], 20_000)
    people = rng.integers(2, 7, len(chances))
    votes = np.array([rng.multinomial(n, p) for n, p in zip(people, chances, strict=True)])
    judge = np.array([rng.multinomial(1, p).argmax() for p in chances])
    agreement = votes[np.arange(len(votes)), judge].sum() / votes.sum()
    found = measured(votes)
    assert found.votes.value == pytest.approx(agreement, abs=0.006)
    assert found.votes.low <= agreement <= found.votes.high
