"""Who sees what on the left, and that what is pressed becomes what was meant."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voting.items.choices import CHOICES, TABLE
from voting.items.kinds import COMPARISON
from voting.items.order import keyed_number, left_side

AT = {TABLE[choice].position: TABLE[choice].spoken for choice in CHOICES}
lefts = st.sampled_from(["A", "B"])
positions = st.sampled_from(list(AT))


@given(positions, lefts)
def test_what_is_pressed_is_what_is_shown_as_recorded(position, left):
    assert COMPARISON.spoken(COMPARISON.choice_at(position, left), left) == AT[position]


@given(lefts)
def test_what_is_stored_is_at_one_position(left):
    assert {COMPARISON.choice_at(position, left) for position in AT} == set(CHOICES)


@pytest.mark.parametrize(
    "position, left, choice",
    [
        ("left", "A", "A"),
        ("right", "A", "B"),
        ("left", "B", "B"),
        ("right", "B", "A"),
        ("tie", "B", "tie"),
        ("both_bad", "B", "both_bad"),
    ],
)
def test_swapped_sides_are_recorded_unswapped(position, left, choice):
    assert COMPARISON.choice_at(position, left) == choice


@given(st.text().filter(lambda text: text not in AT), lefts)
def test_any_other_word_is_no_choice(position, left):
    assert COMPARISON.choice_at(position, left) is None


def test_sides_are_fair_over_voters_and_over_pairs():
    """4,000 fair coins leave 1,800..2,200 once in 10**10."""
    voter, pair = uuid4(), uuid4()
    over_pairs = sum(left_side("key", voter, n) == "A" for n in range(4000))
    over_voters = sum(left_side("key", n, pair) == "A" for n in range(4000))
    assert 1800 < over_pairs < 2200
    assert 1800 < over_voters < 2200


def test_sides_stay_and_need_the_key():
    shown = [left_side("key", "voter", n) for n in range(100)]
    assert shown == [left_side("key", "voter", n) for n in range(100)]
    assert shown != [left_side("other key", "voter", n) for n in range(100)]
    assert shown != [left_side("key", "other voter", n) for n in range(100)]


def test_parts_do_not_run_into_each_other():
    assert keyed_number("k", "ab", "c") != keyed_number("k", "a", "bc")
    assert 0 <= keyed_number("k", "ab") < 2**64
