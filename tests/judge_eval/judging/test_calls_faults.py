"""Whatever a provider does, a call is done once or has failed with a reason, and can be retried."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.judging import leases, worker
from judge_eval.models import Call, JudgeRating, Provider, Run, Verdict
from judge_eval.runs import lifecycle, state
from tests.helpers.run_maker import (
    asked_of,
    attempt,
    go_on,
    make_judging,
    make_started,
    time_passes,
)
from tests.makers import make_vote, make_voter, pairs_of, seal_all
from voting.ledger import ledger
from voting.models import Entry

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

# What is left of a fault of each kind, were it to last for ever: why, and the raw reply.
LASTING = {
    "429": ("429 Too Many Requests: rate limit reached (Rate limit reached.)", "rate_limit"),
    "disconnect": ("the connection ended before the reply was complete", ""),
    "malformed": ("200 OK: the reply is not a JSON object", '{"id": "broken"'),
}

FINAL = {
    "insufficient_quota": ("429 Too Many Requests: the account has no credit", "quota"),
    "refuse": ("refused: I cannot help with that.", "I cannot help with that."),
    "huge": ("the reply is larger than 10 MB", ""),
}

UNREADABLE = {
    "empty": ("the reply is empty", '"content": ""'),
    "prose": ("it has no JSON object: 'Both have their merits", "Both have their merits"),
}


def judge_calls(run):
    return Call.objects.filter(run=run, purpose="judge").order_by("pk")


def assert_failed(run, reason, raw):
    """The verdict of the only judge failed with its calls, and became nothing else."""
    verdict = Verdict.objects.get(judge__run=run)
    assert (verdict.state, verdict.winner) == ("failed", "")
    assert verdict.error.startswith(f"as stored: {reason}")
    assert (verdict.score_a, verdict.score_b, verdict.consistent) == (None, None, None)
    assert verdict.picks == []
    for call in judge_calls(run):
        assert (call.state, call.winner, call.score_a) == ("failed", "", None)
        assert call.error.startswith(reason)
        assert raw in call.reply
        assert call.done_at is not None
        assert call.leased_until is None
        assert run.events.filter(kind="call_failed", data__call=call.pk).count() == 1


def assert_no_disagreement(run):
    """A vote on the pair moves nobody's rating: the judge has only not answered."""
    [pair] = pairs_of(run)
    assert pair.opened_at is not None
    make_vote(make_voter(run), pair, "A")
    seal_all(run.queue.project)
    [entry] = Entry.objects.filter(kind="verdicts")
    assert [said["winner"] for said in entry.payload["verdicts"]] == [None]
    rating = JudgeRating.objects.get(judge__run=run)
    assert (rating.elo, rating.agree, rating.disagree) == (1000, 0, 0)
    assert (rating.requested, rating.answered) == (1, 0)
    assert ledger.replay(run.queue.project, write=False) == []


def assert_recovers(at, run):
    """With the provider well again, asking again is all it takes, and the vote stays."""
    at.control(mode="ok")
    assert lifecycle.retry_failed(run.pk) == 2
    run = go_on(run)
    verdict = Verdict.objects.get(judge__run=run)
    assert (verdict.state, verdict.error) == ("done", "")
    assert {(call.state, call.error) for call in judge_calls(run)} == {("done", "")}
    seal_all(run.queue.project)
    rating = JudgeRating.objects.get(judge__run=run)
    assert rating.agree + rating.disagree == 1
    assert (rating.requested, rating.answered) == (1, 1)
    assert ledger.replay(run.queue.project, write=False) == []


@pytest.mark.parametrize("mode", [*LASTING, *FINAL, *UNREADABLE])
def test_a_fault_that_lasts_is_a_failure_and_nothing_else(at, mode):
    run = make_judging(at)
    at.control(mode=mode, reset=True)
    run = go_on(run)
    assert run.state == "voting", run.note
    assert_failed(run, *(LASTING | FINAL | UNREADABLE)[mode])
    tries = 8 if mode in LASTING else 2 if mode in UNREADABLE else 1
    assert set(judge_calls(run).values_list("attempts", flat=True)) == {tries}
    assert len(at.requests) == 2 * tries
    assert_no_disagreement(run)
    assert_recovers(at, run)


@pytest.mark.parametrize("mode", [*LASTING, "drip", "slow"])
def test_a_fault_that_passes_costs_an_attempt(at, mode):
    run = make_judging(at)
    at.control(mode=mode, times=2, drip_ms=300)
    first = attempt(timeout_s=0.25)
    assert {(call.state, call.winner, call.attempts) for call in first} == {("waiting", "", 1)}
    assert all(call.error and call.not_before > timezone.now() for call in first)
    time_passes()
    second = attempt()
    assert {(call.state, call.error, call.attempts) for call in second} == {("done", "", 2)}
    assert Verdict.objects.get(judge__run=run).state == "done"


@pytest.mark.parametrize("mode", ["drip", "drip_head", "slow"])
def test_a_reply_that_does_not_end_in_time_is_no_reply(at, mode):
    run = make_judging(at)
    at.control(mode=mode)
    Call.objects.update(attempts=7)
    for call in attempt(timeout_s=0.15):
        assert call.state == "failed"
        assert call.error == "no complete reply within 0.1 s (tried 8 times)"
    state.advance(run.pk)
    assert Run.objects.get(pk=run.pk).state == "voting"
    assert Verdict.objects.get(judge__run=run).state == "failed"


def test_an_endpoint_without_structured_output_is_asked_without(at):
    run = make_judging(at, judges=["judge-plain"])
    at.control(mode="no_structured", reset=True)
    run = go_on(run)
    assert Verdict.objects.get(judge__run=run).state == "done"
    assert {(call.attempts, call.is_repaired) for call in judge_calls(run)} == {(1, False)}
    bodies = asked_of(at, "judge-plain")
    assert sum("response_format" not in body for body in bodies) == 2


def test_an_endpoint_that_is_known_to_have_none_is_not_asked_for_it(at):
    run = go_on(make_judging(at, {"structured_output": False}))
    assert all("response_format" not in body for body in asked_of(at, "judge-long"))
    assert Verdict.objects.get(judge__run=run).state == "done"


def test_no_usage_no_tokens(at):
    run = make_judging(at)
    at.control(mode="usage_missing")
    run = go_on(run)
    for call in judge_calls(run):
        assert (call.state, call.prompt_tokens, call.completion_tokens) == ("done", None, None)


def test_a_judge_without_its_key_fails_and_asks_nobody(at, monkeypatch):
    monkeypatch.delenv("ABSENT_API_KEY", raising=False)
    run = make_judging(at)
    Provider.objects.update(key_variable="ABSENT_API_KEY")
    at.control(reset=True)
    run = go_on(run)
    assert_failed(run, "the workers' environment has no ABSENT_API_KEY", "")
    assert at.requests == []


def test_one_judge_that_is_down_does_not_hold_up_the_others(at):
    run = make_started(at)
    at.control(mode="500", models=["judge-hash"])
    run = go_on(run)
    assert run.state == "voting"
    states = Verdict.objects.values_list("judge__name", "state").distinct()
    assert {("judge-long", "done"), ("longer-wins", "done")} <= set(states)
    assert [name for name, state in states if state != "done"] == ["judge-hash"]
    assert all(pair.opened_at for pair in pairs_of(run))


def test_waits_grow_with_the_attempts_and_differ_from_call_to_call(at):
    make_judging(at)
    at.control(mode="500")
    for attempts in range(7):
        time_passes()
        Call.objects.filter(state="waiting").update(attempts=attempts)
        before = timezone.now()
        calls = attempt()
        after = timezone.now()
        least = timedelta(seconds=min(2**attempts, 30))
        assert len({call.not_before for call in calls}) == 2
        for call in calls:
            assert call.attempts == attempts + 1
            assert before + least <= call.not_before <= after + 1.25 * least
        assert pauses() == {}


def pauses():
    return leases.paused(Provider.objects.get(), timezone.now())


@pytest.mark.parametrize("asked, seconds", [(45, 45), (36_000, 60)])
def test_a_model_that_names_a_time_is_left_alone_and_the_others_are_not(at, asked, seconds):
    """One reply may be wrong: a time that is named once is kept to for a minute at most."""
    run = make_started(at, {"concurrency": 1}, prompts=["one", "two"])
    at.control(mode="429", retry_after=asked, models=["model-a"])
    before = timezone.now()
    others = run.calls.filter(model="model-b", state="done")
    worker.work(should_stop=lambda: others.count() == 2)
    assert others.count() == 2
    [(model, until)] = pauses().items()
    assert model == "model-a"
    assert before + timedelta(seconds=seconds) <= until
    assert until <= timezone.now() + timedelta(seconds=seconds)
    [told] = Provider.objects.get().pauses.values()
    assert told["why"].endswith(f"asked to wait {min(asked, 600)} s")
    assert sum(request["model"] == "model-a" for request in at.log()["requests"]) == 1
    assert run.calls.filter(model="model-a", state="waiting").count() == 2


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
    Provider.objects.create(name="p", base_url="http://127.0.0.1:1/v1")
    leases.pause("p", "other", 0, "over at once")
    before = timezone.now()
    for seconds in (30, 60, 10):
        leases.pause("p", "m", seconds, f"{seconds} s")
    [(model, until)] = pauses().items()
    assert model == "m"
    assert before + timedelta(seconds=60) <= until <= timezone.now() + timedelta(seconds=60)
    assert {m: told["why"] for m, told in Provider.objects.get().pauses.items()} == {"m": "60 s"}
