"""How long a model is left alone that answers nothing but 429, or names a time."""

from types import SimpleNamespace

import pytest

from judge_eval.models import Call
from judge_eval.providers.chat import ChatReply
from judge_eval.providers.errors import CallFailed
from judge_eval.runs.backoff import IN_A_ROW, Backoff
from judge_eval.runs.results import Answer

REPLY = ChatReply("Fine.", "m", "stop", 1, 1, 1.0, None, {}, structured=False)
LIMIT = CallFailed("429", retryable=True, status=429)
TIMED = CallFailed("429", retryable=True, status=429, retry_after=3.0)
LONG = CallFailed("429", retryable=True, status=429, retry_after=600.0)
NO_CREDIT = CallFailed("429", status=429)
DOWN = CallFailed("503", retryable=True, status=503)
P = ("provider", "p")


def answers(*came, model="p"):
    question = SimpleNamespace(asked=("provider", model))
    return [
        Answer(question, failure=each) if isinstance(each, CallFailed) else Answer(question, each)
        for each in came
    ]


def test_refusals_in_a_row_pause_it_each_time_for_longer():
    backoff, now, pauses = Backoff(), 0.0, []
    assert backoff.hear(answers(LIMIT, LIMIT), now) == {}
    for _ in range(8):
        [pause] = backoff.hear(answers(LIMIT), now).values()
        pauses.append(pause)
        now += pause
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_many_at_once_are_one_round():
    assert Backoff().hear(answers(*[LIMIT] * 50), 0.0) == {P: 1.0}


def test_calls_that_were_out_when_it_began_tell_nothing_new():
    backoff = Backoff()
    assert backoff.hear(answers(*[LIMIT] * IN_A_ROW), 10.0) == {P: 1.0}
    assert backoff.hear(answers(*[LIMIT] * 8), 10.9) == {}
    assert backoff.hear(answers(LIMIT), 11.0) == {P: 2.0}


def test_a_reply_ends_it():
    backoff = Backoff()
    for now in range(20):
        assert backoff.hear(answers(LIMIT, LIMIT, REPLY), float(now)) == {}
    assert backoff.hear(answers(LIMIT, LIMIT, LIMIT), 30.0) == {P: 1.0}
    assert backoff.hear(answers(REPLY, LIMIT, LIMIT), 40.0) == {}
    assert backoff.hear(answers(LIMIT), 41.0) == {P: 1.0}


@pytest.mark.parametrize("failure", [NO_CREDIT, DOWN])
def test_other_failures_have_waits_of_their_own(failure):
    backoff = Backoff()
    assert backoff.hear(answers(*[failure] * 10), 0.0) == {}
    assert backoff.hear(answers(LIMIT, failure, LIMIT, failure, LIMIT), 0.0) == {P: 1.0}


def test_each_model_has_its_own():
    backoff = Backoff()
    came = answers(*[LIMIT] * 3) + answers(REPLY, LIMIT, model="q")
    assert backoff.hear(came, 0.0) == {P: 1.0}


def test_a_reply_from_storage_says_nothing_of_the_provider():
    backoff = Backoff()
    question = answers(REPLY)[0].question
    stored = Answer(question, REPLY, stored=Call())
    assert backoff.hear([*answers(LIMIT, LIMIT), stored, *answers(LIMIT)], 0.0) == {P: 1.0}


def test_a_time_that_is_named_is_kept_to_for_a_minute_at_most_unless_it_is_named_again():
    backoff = Backoff()
    assert backoff.hear(answers(TIMED), 0.0) == {P: 3.0}
    assert Backoff().hear(answers(LONG, TIMED), 0.0) == {P: 60.0}
    backoff = Backoff()
    assert backoff.hear(answers(LONG, LONG), 0.0) == {P: 60.0}
    assert backoff.hear(answers(LONG), 59.0) == {}
    assert backoff.hear(answers(LONG), 60.0) == {P: 600.0}
    assert backoff.hear(answers(REPLY), 700.0) == {}
    assert backoff.hear(answers(LONG), 701.0) == {P: 60.0}
