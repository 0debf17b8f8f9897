"""Do judges put outputs in the same order as people: units, shares, couples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.judge_figures import ratio
from judge_eval.stats.order_agreement import (
    MOST_NEIGHBOURS,
    Ratings,
    order_agreement,
    order_credits,
    people_credits,
)
from voting.items.order import couples

RATINGS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.integers(1, 5)),
    max_size=40,
    unique_by=lambda row: row[:3],
)


def ratings_of(rows):
    """Items 0 to 3 of each of four units, rated by three people."""
    units, items, people, values = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Ratings(units, 4 * units + items, people, values.astype(float), 4)


def one_by_one(rows, said):
    """Return credits and pairs of each unit, counted one pair at a time."""
    counts = [[0.0, 0] for _ in range(4)]
    for unit, item, person, value in rows:
        for other_unit, other, other_person, less in rows:
            if (unit, person) == (other_unit, other_person) and value > less:
                a, b = said(person, 4 * unit + item), said(person, 4 * unit + other)
                for x, y in zip(a, b, strict=True):
                    counts[unit][1] += 1
                    if x is not None and y is not None:
                        counts[unit][0] += 1 if x > y else 0.5 if x == y else 0
    return counts


@given(RATINGS, st.lists(st.sampled_from([None, 1, 2, 3]), min_size=16, max_size=16))
def test_credits_are_those_of_counting_pairs_one_by_one(rows, verdicts):
    table = np.array(verdicts, dtype=float)[:, None]
    found = order_credits(ratings_of(rows), table, np.ones_like(table, dtype=bool))
    counted = one_by_one(rows, lambda _, item: [verdicts[item]])
    assert np.hstack([*found]).tolist() == counted


@given(RATINGS)
def test_people_judge_each_other_on_what_both_rated(rows):
    said = {(person, 4 * unit + item): value for unit, item, person, value in rows}
    found = people_credits(ratings_of(rows))
    expected = np.zeros((4, 2))
    for judge in range(3):
        others = [row for row in rows if row[2] != judge and (judge, 4 * row[0] + row[1]) in said]
        expected += one_by_one(others, lambda _, item, judge=judge: [said[judge, item]])
    assert np.hstack([*found]).tolist() == expected.tolist()


@given(RATINGS, st.integers(1, 5))
def test_who_always_says_the_same_has_a_half_in_every_unit(rows, value):
    table = np.full((16, 1), float(value))
    shares = ratio(*order_credits(ratings_of(rows), table, np.ones_like(table, dtype=bool)))
    assert set(shares[~np.isnan(shares)].tolist()) <= {0.5}


def test_what_a_judge_was_not_asked_about_does_not_count_for_it_and_a_failure_is_wrong():
    ratings = ratings_of([(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 0, 3)])
    verdicts = np.array([[1, 1], [2, 2], [np.nan, np.nan]])
    asked = np.array([[True, True], [True, True], [True, False]])
    found = order_credits(ratings, verdicts, asked)
    assert found[:, 0].tolist() == [[1, 1], [3, 1]]


def test_there_is_no_interval_below_ten_units_and_wilsons_where_all_are_right():
    [few] = order_agreement(np.full((9, 1), 1.0))
    [sure] = order_agreement(np.full((10, 1), 1.0))
    [nothing] = order_agreement(np.full((3, 1), np.nan))
    assert (few.value, few.low, few.n) == (1, None, 9)
    assert (sure.method, sure.high) == ("wilson", 1)
    assert sure.low == pytest.approx(0.7225, abs=1e-4)
    assert (nothing.value, nothing.n) == (None, 0)


@given(st.lists(st.text(min_size=1), unique=True), st.data())
def test_couples_do_not_depend_on_how_many_open_at_once(prompts, data):
    at_once = couples(prompts)
    cut = data.draw(st.integers(0, len(prompts)))
    before = couples(prompts[:cut])
    alone = prompts[cut - 1] if cut % 2 else ""
    assert before | couples(prompts[cut:], alone) == at_once


def test_of_very_many_items_each_is_compared_with_the_next_ones():
    rows = np.arange(1_000)
    ratings = Ratings(0 * rows, rows, 0 * rows, rows * 1.0, 1)
    one, other, _ = ratings.pairs()
    assert len(one) == sum(1_000 - step for step in range(1, MOST_NEIGHBOURS + 1))
    assert (other - one).max() == MOST_NEIGHBOURS
    [share] = ratio(*order_credits(ratings, rows[:, None] * 2.0, rows[:, None] >= 0))
    assert share.tolist() == [1]
