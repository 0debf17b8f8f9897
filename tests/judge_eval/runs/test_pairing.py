"""Which outputs meet, who is stored as A, and which pairs want several people."""

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from judge_eval.runs.services import combined_outputs
from voting.items.kinds import COMPARISON
from voting.items.order import wants_overlap

outputs = st.lists(st.integers(), unique=True, max_size=8)


@given(outputs, st.text(min_size=1))
def test_everyone_meets_everyone_once(outputs, key):
    met = Counter(frozenset(pair) for pair in combined_outputs(COMPARISON, outputs, key))
    assert met == Counter(map(frozenset, combinations(outputs, 2)))


def test_who_is_a_is_fair_and_stays():
    pairs = combined_outputs(COMPARISON, list(range(100)), "key")
    as_given = sum(a < b for a, b in pairs)
    assert pairs == combined_outputs(COMPARISON, list(range(100)), "key")
    assert pairs != combined_outputs(COMPARISON, list(range(100)), "other key")
    # 4,950 fair coins leave 2,225..2,725 once in 10**12.
    assert 2225 < as_given < 2725


def test_the_overlap_is_the_share_that_was_asked_for():
    wanted = sum(wants_overlap("key", n, 0.2) for n in range(10_000))
    assert 1750 < wanted < 2250


@given(st.integers())
def test_a_share_of_none_and_of_all(item):
    assert not wants_overlap("key", item, 0.0)
    assert wants_overlap("key", item, 1.0)


@given(st.integers(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_takes_in_the_smaller(item, one, other):
    small, large = sorted((one, other))
    assert wants_overlap("key", item, small) <= wants_overlap("key", item, large)
