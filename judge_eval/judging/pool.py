"""Threads that call providers, one call each at a time, and do nothing else.

Where a call is answered, one that was set aside for the same provider follows at once, so that no
provider waits for the database. The worker learns of both when it collects.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

from judge_eval.judging import leases, provider_access
from judge_eval.judging.providers import protocols
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.requests import ModelName, ModelQuestion
from judge_eval.judging.results import CallAnswer, least_wait

logger = logging.getLogger(__name__)

# A call ends by itself when its provider's time is over; only a look-up of a name may not.
GRACE_SECONDS = 10.0
# What is set aside is for the next moment: others could make these calls too.
ASIDE_SECONDS = 4.0
# While no thread is idle, answers are collected for so long: together they cost the database less.
GATHER_SECONDS = 0.5
# One refusal among replies is that call's own affair.
IN_A_ROW = 3


@dataclass
class _ModelBackoff:
    refusals: int = 0
    pauses: int = 0
    has_named_time: bool = False
    until: float = 0.0


class Backoff:
    """When to pause a model. A model, not its provider: limits are for a model as a rule."""

    def __init__(self) -> None:
        self._backoffs: dict[ModelName, _ModelBackoff] = defaultdict(_ModelBackoff)

    def hear(self, answer: CallAnswer, now: float) -> float:
        """Take note of an answer; return for how many seconds to pause its model from now."""
        failure, model_backoff = answer.failure, self._backoffs[answer.question.model]
        if failure is None:
            del self._backoffs[answer.question.model]
            return 0.0
        if now < model_backoff.until:
            return 0.0  # a call that was out already: it tells nothing new
        seconds = 0.0
        if failure.retry_after is not None:
            most = failure.retry_after if model_backoff.has_named_time else leases.LONGEST_AT_FIRST
            seconds = min(failure.retry_after, most)
            model_backoff.has_named_time = True
        elif failure.is_limit:
            model_backoff.refusals += 1
            if model_backoff.refusals >= IN_A_ROW:
                model_backoff.pauses += 1
                seconds = least_wait(model_backoff.pauses)
        model_backoff.until = now + seconds
        return seconds

    def is_paused(self, model: ModelName, now: float) -> bool:
        return model in self._backoffs and now < self._backoffs[model].until


@dataclass
class Collected:
    """What happened since the last time."""

    answers: list[CallAnswer] = field(default_factory=list)
    # Calls that had been set aside and are being made now, and those that will not be made here.
    followed: list[ModelQuestion] = field(default_factory=list)
    dropped: list[ModelQuestion] = field(default_factory=list)
    # Models to pause: for how many seconds, and why.
    pauses: list[tuple[ModelName, float, str]] = field(default_factory=list)

    def add(self, collected: Collected) -> None:
        self.answers += collected.answers
        self.followed += collected.followed
        self.dropped += collected.dropped
        self.pauses += collected.pauses


class Pool:
    def __init__(self, size: int) -> None:
        self._size = size
        # Tells of each answer.
        self._lock = threading.Condition()
        self._to_ask: SimpleQueue[ModelQuestion | None] = SimpleQueue()
        # By the call's number, with the time by which it must have come back.
        self._out: dict[int, tuple[ModelQuestion, float]] = {}
        self._aside: list[tuple[ModelQuestion, float]] = []
        self._backoff = Backoff()
        self._collected = Collected()
        self._is_idle = False
        self._threads = 0

    @property
    def free(self) -> int:
        return self._size - len(self._out)

    @property
    def busy(self) -> bool:
        with self._lock:
            return bool(self._out or self._collected.answers)

    def out(self) -> list[ModelQuestion]:
        with self._lock:
            return [question for question, _ in self._out.values()]

    def aside(self) -> Counter[str]:
        with self._lock:
            return Counter(question.provider.name for question, _ in self._aside)

    def ask(self, question: ModelQuestion) -> None:
        with self._lock:
            self._start(question)
            if self._threads < len(self._out):
                self._threads += 1
                # Not an executor: at the end of the process it would wait for calls, however long.
                threading.Thread(target=self._work, name="call", daemon=True).start()
        self._to_ask.put(question)

    def set_aside(self, question: ModelQuestion) -> None:
        """Let a call follow where another one is answered."""
        with self._lock:
            self._aside.append((question, time.monotonic()))

    def drop(self, is_gone: Callable[[ModelQuestion], bool] = lambda question: True) -> None:
        """Begin none of these that were set aside."""
        with self._lock:
            self._drop(lambda question, since: is_gone(question))

    def collect(self, seconds: float) -> Collected:
        """Wait for an answer, for so long at most, and return all that came."""
        with self._lock:
            if self._lock.wait_for(lambda: self._collected.answers, seconds):
                self._lock.wait_for(lambda: self._is_idle, GATHER_SECONDS)
            self._is_idle = False
            self._drop_old()
            collected, self._collected = self._collected, Collected()
            collected.answers += self._overdue()
        return collected

    def dismiss(self) -> None:
        """Begin nothing more. What came can be collected still; what is out goes on unheard."""
        self.drop()
        for _ in range(self._threads):
            self._to_ask.put(None)

    def _start(self, question: ModelQuestion) -> None:
        ends = time.monotonic() + question.provider.timeout_s + GRACE_SECONDS
        self._out[question.call.pk] = (question, ends)

    def _work(self) -> None:
        while (question := self._to_ask.get()) is not None:
            following: ModelQuestion | None = question
            while following is not None:
                answer = ask(following)
                with self._lock:
                    out, _ = self._out.get(following.call.pk, (None, 0))
                    if out is not following:
                        return  # it took too long: another thread has this one's place
                    following = self._hand_in(answer)

    def _hand_in(self, answer: CallAnswer) -> ModelQuestion | None:
        """Hand in an answer, and return the call that follows in its place."""
        model, now = answer.question.model, time.monotonic()
        del self._out[answer.question.call.pk]
        if seconds := self._backoff.hear(answer, now):
            assert answer.failure is not None
            self._collected.pauses.append((model, seconds, answer.failure.reason))
            self._drop(lambda question, since: question.model == model)
        elif answer.failure and answer.failure.is_permanent:
            # Whoever writes it down says first whether the model is to be called again.
            self._drop(lambda question, since: question.model == model)
        self._drop_old()
        following = None
        for place, (question, _) in enumerate(self._aside):
            is_same = question.provider.name == answer.question.provider.name
            if is_same and not self._backoff.is_paused(question.model, now):
                following = question
                del self._aside[place]
                self._start(following)
                self._collected.followed.append(following)
                break
        self._is_idle |= following is None
        self._collected.answers.append(answer)
        self._lock.notify()
        return following

    def _drop(self, is_gone: Callable[[ModelQuestion, float], bool]) -> None:
        self._collected.dropped += [q for q, since in self._aside if is_gone(q, since)]
        self._aside = [(q, since) for q, since in self._aside if not is_gone(q, since)]

    def _drop_old(self) -> None:
        limit = time.monotonic() - ASIDE_SECONDS
        if self._aside and self._aside[0][1] < limit:
            self._drop(lambda question, since: since < limit)

    def _overdue(self) -> list[CallAnswer]:
        """Give up on threads that do not come back: their calls fail, and others may be started."""
        now = time.monotonic()
        late = [question for question, ends in self._out.values() if ends < now]
        for question in late:
            del self._out[question.call.pk]
            self._threads -= 1
            logger.error("a call to %s did not come back", question.provider.name)
        failure = CallFailed("the call did not come back in time", retryable=True)
        return [CallAnswer(question, failure=failure) for question in late]


def ask(question: ModelQuestion) -> CallAnswer:
    """Ask, and return what came; it raises nothing."""
    try:
        endpoint = provider_access.endpoint_of(question.provider)
        reply = protocols.ask(question.provider.protocol, endpoint, question.request)
        return CallAnswer(question, reply=reply)
    except CallFailed as failure:
        return CallAnswer(question, failure=failure)
    except Exception as error:
        # Whatever it is, it must not end the thread: the call would stay out for ever.
        logger.exception("call %s to %s", question.call.pk, question.provider.name)
        return CallAnswer(question, failure=CallFailed(f"the call broke: {type(error).__name__}"))
