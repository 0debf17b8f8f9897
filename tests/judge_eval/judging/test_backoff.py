"""How long a model is left alone that answers nothing but 429, or names a time."""

from types import SimpleNamespace

import pytest

from judge_eval.judging.pool import IN_A_ROW, Backoff
from judge_eval.judging.providers.chat import ChatReply
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.results import CallAnswer

REPLY = ChatReply("Fine.", "m")
LIMIT = CallFailed("429", retryable=True, status=429)
TIMED = CallFailed("429", retryable=True, status=429, retry_after=3.0)
LONG = CallFailed("429", retryable=True, status=429, retry_after=600.0)
NO_CREDIT = CallFailed("429", status=429)
DOWN = CallFailed("503", retryable=True, status=503)
P = ("provider", "p")


def answers(*came, model="p"):
    question = SimpleNamespace(model=("provider", model))
    return [
        CallAnswer(question, failure=each)
        if isinstance(each, CallFailed)
        else CallAnswer(question, each)
        for each in came
    ]


def hear(backoff, came, now):
    """Take note of answers; return who is to be paused from now, for how many seconds."""
    pauses = [(each.question.model, backoff.hear(each, now)) for each in came]
    return {model: seconds for model, seconds in pauses if seconds}


def test_refusals_in_a_row_pause_it_each_time_for_longer():
    backoff, now, pauses = Backoff(), 0.0, []
    assert hear(backoff, answers(LIMIT, LIMIT), now) == {}
    for _ in range(8):
        [pause] = hear(backoff, answers(LIMIT), now).values()
        pauses.append(pause)
        now += pause
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_many_at_once_are_one_round():
    assert hear(Backoff(), answers(*[LIMIT] * 50), 0.0) == {P: 1.0}


def test_calls_that_were_out_when_it_began_tell_nothing_new():
    backoff = Backoff()
    assert hear(backoff, answers(*[LIMIT] * IN_A_ROW), 10.0) == {P: 1.0}
    assert hear(backoff, answers(*[LIMIT] * 8), 10.9) == {}
    assert hear(backoff, answers(LIMIT), 11.0) == {P: 2.0}


def test_a_reply_ends_it():
    backoff = Backoff()
    for now in range(20):
        assert hear(backoff, answers(LIMIT, LIMIT, REPLY), float(now)) == {}
    assert hear(backoff, answers(LIMIT, LIMIT, LIMIT), 30.0) == {P: 1.0}
    assert hear(backoff, answers(REPLY, LIMIT, LIMIT), 40.0) == {}
    assert hear(backoff, answers(LIMIT), 41.0) == {P: 1.0}


@pytest.mark.parametrize("failure", [NO_CREDIT, DOWN])
def test_other_failures_have_waits_of_their_own(failure):
    backoff = Backoff()
    assert hear(backoff, answers(*[failure] * 10), 0.0) == {}
    assert hear(backoff, answers(LIMIT, failure, LIMIT, failure, LIMIT), 0.0) == {P: 1.0}


def test_each_model_has_its_own():
    backoff = Backoff()
    came = answers(*[LIMIT] * 3) + answers(REPLY, LIMIT, model="q")
    assert hear(backoff, came, 0.0) == {P: 1.0}


def test_a_time_that_is_named_is_kept_to_for_a_minute_at_most_unless_it_is_named_again():
    backoff = Backoff()
    assert hear(backoff, answers(TIMED), 0.0) == {P: 3.0}
    assert hear(Backoff(), answers(LONG, TIMED), 0.0) == {P: 60.0}
    backoff = Backoff()
    assert hear(backoff, answers(LONG, LONG), 0.0) == {P: 60.0}
    assert hear(backoff, answers(LONG), 59.0) == {}
    assert hear(backoff, answers(LONG), 60.0) == {P: 600.0}
    assert hear(backoff, answers(REPLY), 700.0) == {}
    assert hear(backoff, answers(LONG), 701.0) == {P: 60.0}
