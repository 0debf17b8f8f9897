"""The token bucket, on a clock of our own."""

from hypothesis import given
from hypothesis import strategies as st

from humanjudge.core import ratelimit
from humanjudge.core.ratelimit import RateLimit


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_a_burst_then_the_rate():
    clock = Clock()
    limit = RateLimit(2.0, 5, clock)
    assert [limit.allow("me") for _ in range(6)] == [True] * 5 + [False]
    clock.now += 0.5
    assert [limit.allow("me") for _ in range(2)] == [True, False]
    clock.now += 1
    assert [limit.allow("me") for _ in range(3)] == [True, True, False]


def test_a_pause_fills_no_more_than_the_burst():
    clock = Clock()
    limit = RateLimit(2.0, 3, clock)
    clock.now += 3600
    assert [limit.allow("me") for _ in range(4)] == [True] * 3 + [False]


def test_refused_tries_cost_nothing():
    clock = Clock()
    limit = RateLimit(1.0, 1, clock)
    limit.allow("me")
    assert not any(limit.allow("me") for _ in range(50))
    clock.now += 1
    assert limit.allow("me")


def test_each_key_has_a_bucket_of_its_own():
    limit = RateLimit(1.0, 1, Clock())
    assert limit.allow("me")
    assert limit.allow("you")
    assert not limit.allow("me")


def test_buckets_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(ratelimit, "MOST_BUCKETS", 3)
    limit = RateLimit(1.0, 1, Clock())
    for key in (1, 2, 3):
        limit.allow(key)
    assert not limit.allow(1)  # heard of again, so 2 is the oldest now
    limit.allow(4)
    assert not limit.allow(1)
    assert limit.allow(2)


@given(st.lists(st.floats(0, 10), max_size=60), st.floats(0.1, 20), st.integers(1, 10))
def test_never_more_than_the_burst_and_the_rate(pauses, per_second, burst):
    clock = Clock()
    limit = RateLimit(per_second, burst, clock)
    allowed = 0
    for pause in pauses:
        clock.now += pause
        allowed += limit.allow("me")
    assert allowed <= burst + sum(pauses) * per_second + 1e-6


def test_the_default_is_never_met_by_a_fast_human(settings):
    """Four votes a second for ten minutes."""
    clock = Clock()
    limit = RateLimit(settings.VOTES_PER_SECOND, settings.VOTES_BURST, clock)
    for _ in range(2400):
        clock.now += 0.25
        assert limit.allow("a human")


def test_what_is_given_back_can_be_taken_again_and_never_more_than_the_burst():
    limit = RateLimit(1.0, 2, Clock())
    assert [limit.allow("me") for _ in range(3)] == [True, True, False]
    limit.give_back("me")
    assert [limit.allow("me") for _ in range(2)] == [True, False]
    for _ in range(5):
        limit.give_back("me")
        limit.give_back("you")
    assert [limit.allow("me") for _ in range(3)] == [True, True, False]
    assert [limit.allow("you") for _ in range(3)] == [True, True, False]
