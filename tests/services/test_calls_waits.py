"""How long a call waits after a failure, and how long its provider is left alone."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.engine import limits
from judge_eval.models import Call, Provider
from tests.provider import provider
from tests.services.run_maker import attempt, make_judging, time_passes

pytestmark = pytest.mark.django_db


@pytest.fixture
def at():
    with provider() as running:
        yield running


@pytest.mark.parametrize("attempts", range(7))
def test_waits_grow_with_the_attempts_and_differ_from_call_to_call(at, attempts):
    make_judging(at)
    at.control(mode="500")
    Call.objects.filter(state="waiting").update(attempts=attempts)
    before = timezone.now()
    calls = attempt()
    after = timezone.now()
    least = timedelta(seconds=min(2**attempts, 30))
    assert len({call.not_before for call in calls}) == 2
    for call in calls:
        assert before + least <= call.not_before <= after + 1.25 * least
    assert Provider.objects.get().paused_until is None


def test_a_provider_that_names_a_time_is_left_alone_until_then(at):
    run = make_judging(at)
    Call.objects.update(not_before=timezone.now() + timedelta(hours=1))
    other = make_judging(at, {"name": "other"}, provider="other")
    Call.objects.filter(run=run).update(not_before=run.created_at)
    at.control(mode="429", retry_after=45, times=1)
    before = timezone.now()
    [call] = attempt(slots=1)
    paused = Provider.objects.get(name="default").paused_until
    assert before + timedelta(seconds=45) <= paused <= timezone.now() + timedelta(seconds=45)
    assert call.not_before >= paused
    assert call.error.endswith("asked to wait 45 s")
    assert {call.run_id for call in attempt()} == {other.pk}
    time_passes()
    assert {(call.run_id, call.state) for call in attempt()} == {(run.pk, "done")}


@pytest.mark.parametrize("asked", ["0", "1"])
def test_a_provider_that_is_away_longer_than_it_says_costs_no_calls(at, asked):
    """A wait that is asked for is the least: eight tries must outlast a minute."""
    make_judging(at)
    at.answers({"error": {"message": "Busy."}}, status=503, headers={"Retry-After": asked})
    Call.objects.filter(state="waiting").update(attempts=5)
    before = timezone.now()
    calls = attempt()
    assert [call.attempts for call in calls] == [6, 6]
    assert all(call.not_before >= before + timedelta(seconds=30) for call in calls)


def test_a_shorter_pause_does_not_end_a_longer_one():
    provider = Provider.objects.create(name="p", base_url="http://127.0.0.1:1/v1")
    now = timezone.now()
    for seconds in (30, 60, 10):
        limits.pause("p", now + timedelta(seconds=seconds))
    provider.refresh_from_db()
    assert provider.paused_until == now + timedelta(seconds=60)
