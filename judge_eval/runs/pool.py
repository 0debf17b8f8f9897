"""The hands of a crew: threads that ask providers, one call at a time, and do nothing else.

Where a hand has its answer, a call that was set aside for the same provider follows at once, so
that no provider waits for the database. The crew learns of both when it collects.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from uuid import UUID

from judge_eval.providers.chat import chat
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import providers
from judge_eval.runs.requests import Asked, Question
from judge_eval.runs.results import Answer

logger = logging.getLogger(__name__)

# A call ends by itself when its provider's time is over; only a look-up of a name may not.
GRACE_SECONDS = 10.0
# What is set aside is for the next moment: others could make these calls too.
ASIDE_SECONDS = 4.0
# While no hand is idle, answers are collected for so long: together they cost the database less.
GATHER_SECONDS = 0.5
# So many refusals in a row for being too much are each call's own affair.
MOST_REFUSALS = 2


@dataclass
class Collected:
    """What happened since the last time."""

    answers: list[Answer] = field(default_factory=list)
    # Calls that had been set aside and are being made now.
    followed: list[Question] = field(default_factory=list)
    # Calls that had been set aside and will not be made here.
    dropped: list[Question] = field(default_factory=list)


@dataclass(frozen=True)
class _Out:
    question: Question
    ends: float


class _GivenUpOn(Exception):
    """The crew did not wait for this hand any longer, and does without."""


class Hands:
    def __init__(self, number: int) -> None:
        self._number = number
        self._lock = threading.Lock()
        self._to_ask: SimpleQueue[Question | None] = SimpleQueue()
        self._came: SimpleQueue[Answer] = SimpleQueue()
        self._out: dict[int, _Out] = {}
        self._aside: dict[str, deque[tuple[Question, float]]] = defaultdict(deque)
        # Calls that were answered, were not collected, and are followed by none yet.
        self._open: Counter[str] = Counter()
        # Of each model, since its last reply.
        self._refusals: Counter[Asked] = Counter()
        # Models that have said how long to wait, and the crew has not heard of it.
        self._told: set[Asked] = set()
        self._collected = Collected()
        self._idle = threading.Event()
        self._hired = 0

    @property
    def free(self) -> int:
        return self._number - len(self._out)

    @property
    def busy(self) -> bool:
        """Say whether calls are out, or their answers are there and not collected."""
        with self._lock:
            return bool(self._out) or not self._came.empty()

    def out(self) -> list[Question]:
        with self._lock:
            return [out.question for out in self._out.values()]

    def ask(self, question: Question) -> None:
        with self._lock:
            self._begin(question)
            if self._hired < len(self._out):
                self._hire()
        self._to_ask.put(question)

    def set_aside(self, question: Question) -> None:
        """Let a call follow where another one is answered, or has been and was not collected."""
        name = question.provider.name
        with self._lock:
            is_free = self._open[name] > 0 and len(self._out) < self._number
            follows = is_free and not self._is_amiss(question)
            if follows:
                self._open[name] -= 1
                self._begin(question)
                self._collected.followed.append(question)
            else:
                self._aside[name].append((question, time.monotonic()))
        if follows:
            self._to_ask.put(question)

    def drop(self, *models: Asked) -> None:
        """Begin nothing that was set aside, for these models or for any."""
        with self._lock:
            self._drop(lambda question: not models or question.asked in models)

    def keep(self, runs: Container[UUID]) -> None:
        """Begin nothing that was set aside for other runs than these."""
        with self._lock:
            self._drop(lambda question: question.call.run_id not in runs)

    def aside(self) -> Counter[str]:
        """Count what is set aside, by provider."""
        with self._lock:
            return Counter({name: len(waiting) for name, waiting in self._aside.items()})

    def collect(self, seconds: float) -> Collected:
        """Wait for an answer, for so long at most, and return all that came."""
        answers = self._wait(seconds)
        with self._lock:
            self._idle.clear()
            self._open.clear()
            self._told.clear()
            answers += self._overdue()
            self._drop_old()
            collected, self._collected = self._collected, Collected()
        collected.answers = answers
        return collected

    def dismiss(self) -> None:
        """Begin nothing more. What came can be collected still; what is out goes on unheard."""
        self.drop()
        for _ in range(self._hired):
            self._to_ask.put(None)

    def _wait(self, seconds: float) -> list[Answer]:
        answers: list[Answer] = []
        deadline = time.monotonic() + seconds
        with contextlib.suppress(Empty):
            while True:
                answers.append(self._came.get(timeout=max(0.0, deadline - time.monotonic())))
                if self._idle.is_set():
                    deadline = 0.0
                elif len(answers) == 1:
                    deadline = time.monotonic() + GATHER_SECONDS
        return answers

    def _hire(self) -> None:
        self._hired += 1
        # Not an executor: at the end of the process it would wait for calls, however long.
        threading.Thread(target=self._work, name="crew", daemon=True).start()

    def _work(self) -> None:
        while (question := self._to_ask.get()) is not None:
            following: Question | None = question
            try:
                while following is not None:
                    following = self._go_on_from(_ask(following))
            except _GivenUpOn:
                return

    def _begin(self, question: Question) -> None:
        ends = time.monotonic() + question.provider.timeout_s + GRACE_SECONDS
        self._out[question.call.pk] = _Out(question, ends)

    def _go_on_from(self, answer: Answer) -> Question | None:
        """Hand in an answer, and return the call that follows in its place."""
        with self._lock:
            pk = answer.question.call.pk
            if pk not in self._out or self._out[pk].question is not answer.question:
                raise _GivenUpOn
            del self._out[pk]
            following = self._following(answer)
            if following is None:
                self._idle.set()
                self._open[answer.question.provider.name] += 1
            else:
                self._begin(following)
                self._collected.followed.append(following)
            # Before anybody can see that the call is no longer out.
            self._came.put(answer)
        return following

    def _following(self, answer: Answer) -> Question | None:
        question, failure = answer.question, answer.failure
        if failure is None:
            del self._refusals[question.asked]
        elif failure.retry_after is not None:
            self._told.add(question.asked)
            self._drop(lambda aside: aside.asked == question.asked)
        elif failure.is_limit:
            self._refusals[question.asked] += 1
        self._drop_old()
        aside = self._aside[question.provider.name]
        for place, (following, _) in enumerate(aside):
            if not self._is_amiss(following):
                del aside[place]
                return following
        return None

    def _is_amiss(self, question: Question) -> bool:
        """Say whether a model's last answers are such that the crew should hear of them first."""
        return question.asked in self._told or self._refusals[question.asked] >= MOST_REFUSALS

    def _drop(self, is_gone: Callable[[Question], bool]) -> None:
        for name, waiting in self._aside.items():
            self._collected.dropped += [question for question, _ in waiting if is_gone(question)]
            self._aside[name] = deque(each for each in waiting if not is_gone(each[0]))

    def _drop_old(self) -> None:
        limit = time.monotonic() - ASIDE_SECONDS
        for waiting in self._aside.values():
            while waiting and waiting[0][1] < limit:
                self._collected.dropped.append(waiting.popleft()[0])

    def _overdue(self) -> list[Answer]:
        """Give up on hands that do not come back: their calls fail, and others may be hired."""
        now = time.monotonic()
        late = [out.question for out in self._out.values() if out.ends < now]
        for question in late:
            del self._out[question.call.pk]
            self._hired -= 1
            logger.error("a call to %s did not come back", question.provider.name)
        failure = CallFailed("the call did not come back in time", retryable=True)
        return [Answer(question, failure=failure) for question in late]


def _ask(question: Question) -> Answer:
    try:
        endpoint = providers.endpoint_of(question.provider)
        return Answer(question, reply=chat(endpoint, question.request))
    except CallFailed as failure:
        return Answer(question, failure=failure)
    except Exception as error:
        # Whatever it is, it must not end the hand: the call would stay out for ever.
        logger.exception("call %s to %s", question.call.pk, question.provider.name)
        return Answer(question, failure=CallFailed(f"the call broke: {type(error).__name__}"))
