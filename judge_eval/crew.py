"""The crew: one per worker process, it makes as many calls at once as it has threads.

One task claims, writes and looks after the leases for all of them, so a call costs the database
little and the broker nothing. The threads talk to providers and to nobody else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from uuid import UUID, uuid4

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from humanjudge.enqueue import enqueue
from judge_eval import assembling, claims, judging, outcomes, providers
from judge_eval.asking import Question, question_of
from judge_eval.endpoint_errors import CallFailed
from judge_eval.endpoints import ChatReply, chat
from judge_eval.lifecycle import LifecycleRefused, stop
from judge_eval.models import Call, Provider
from judge_eval.outcomes import Answer, Written

logger = logging.getLogger(__name__)

SHIFT_SECONDS = 30.0
RENEW_SECONDS = 5.0
ADVANCE_SECONDS = 1.0
IDLE_SECONDS = 0.1
_on_shift = threading.Lock()


def work(should_stop: Callable[[], bool] = lambda: False) -> None:
    """Make calls until none is left to be made, or the shift is over.

    A second crew in the same process would only share the threads, so it goes home at once.
    """
    if not _on_shift.acquire(blocking=False):
        return
    try:
        with ThreadPoolExecutor(settings.JUDGING_THREADS, thread_name_prefix="crew") as pool:
            _Crew(pool, should_stop).work()
    finally:
        _on_shift.release()


class _Crew:
    def __init__(self, pool: ThreadPoolExecutor, should_stop: Callable[[], bool]) -> None:
        self._pool = pool
        self._should_stop = should_stop
        self._lease = uuid4()
        self._ends = time.monotonic() + SHIFT_SECONDS
        self._renewed = self._advanced = time.monotonic()
        self._out: dict[Future[ChatReply], Question] = {}
        # Answers that came and are not written down yet: a database that is away loses none.
        self._answers: deque[Answer] = deque()
        self._written = Written()

    def work(self) -> None:
        while True:
            try:
                if not self._round():
                    break
            except (OperationalError, InterfaceError) as error:
                logger.warning("the database is away, the crew waits: %s", error)
                connection.close()
                time.sleep(1)
        if self._is_work_left() and not self._should_stop():
            enqueue("judge_eval.tasks.work")

    def _round(self) -> bool:
        """Ask, take in, write down; return whether there is anything left to do."""
        if not self._is_over():
            self._claim()
        if self._out:
            self._collect(wait(self._out, RENEW_SECONDS / 5, FIRST_COMPLETED).done)
        self._write()
        self._look_after_leases()
        if self._out or self._answers:
            return True
        self._advance(at_once=True)
        if self._is_over() or not self._is_work_left():
            return False
        time.sleep(IDLE_SECONDS)
        return True

    def _is_over(self) -> bool:
        return self._should_stop() or time.monotonic() > self._ends

    def _is_work_left(self) -> bool:
        return claims.waiting_calls(claims.runs_at_work()).exists()

    def _claim(self) -> None:
        calls = claims.claim(settings.JUDGING_THREADS - len(self._out), self._lease)
        if not calls:
            return
        known = {p.name: p for p in Provider.objects.filter(name__in={c.provider for c in calls})}
        questions = [self._question(call, known[call.provider]) for call in calls]
        self._ask([question for question in questions if question is not None])

    def _question(self, call: Call, provider: Provider) -> Question | None:
        try:
            question = question_of(call, provider)
        except CallFailed as failure:
            outcomes.give_up(call, failure, self._written)
            return None
        if providers.lacks_key(provider):
            reason = f"the workers' environment has no {provider.key_variable}"
            self._answers.append(Answer(question, failure=CallFailed(reason)))
            return None
        return question

    def _ask(self, questions: Sequence[Question]) -> None:
        """Answer from storage what was asked before, and send out what the budget allows."""
        stored = outcomes.stored_replies(questions)
        for question in questions:
            kept = None if question.problem else stored.get(question.request_hash)
            if kept is not None:
                self._answers.append(Answer(question, reply=outcomes.reply_of(kept), stored=kept))
            elif claims.reserve(question.call, self._reservation(question)):
                endpoint = providers.endpoint_of(question.provider)
                self._out[self._pool.submit(chat, endpoint, question.request)] = question
            else:
                self._over_budget(question)

    def _reservation(self, question: Question) -> int:
        return question.reservation_nano if question.call.run.budget_nano is not None else 0

    def _over_budget(self, question: Question) -> None:
        run = question.call.run
        claims.let_go(question.call)
        try:
            stop(run.pk, f"The next call could pass the budget of ${run.budget_usd:.2f}.")
        except LifecycleRefused:
            logger.info("run %s was stopped already", run.pk)

    def _collect(self, done: set[Future[ChatReply]]) -> None:
        for future in done:
            question = self._out.pop(future)
            try:
                self._answers.append(Answer(question, reply=future.result()))
            except CallFailed as failure:
                self._answers.append(Answer(question, failure=failure))

    def _write(self) -> None:
        while self._answers:
            outcomes.write(self._answers[0], self._written)
            self._answers.popleft()
        if self._written.repairs:
            repairs, self._written.repairs = self._written.repairs, []
            self._ask(repairs)
        if self._written.verdicts:
            assembling.settle(self._written.verdicts)
            self._written.verdicts.clear()
        self._advance()

    def _look_after_leases(self) -> None:
        if time.monotonic() - self._renewed > RENEW_SECONDS:
            claims.renew(self._lease, [question.call.pk for question in self._out.values()])
            self._renewed = time.monotonic()

    def _advance(self, *, at_once: bool = False) -> None:
        """Let runs go on that answers came for, not more often than once a second."""
        if at_once or time.monotonic() - self._advanced > ADVANCE_SECONDS:
            runs: set[UUID] = self._written.runs
            self._written.runs = set()
            for run in runs:
                judging.advance(run)
            self._advanced = time.monotonic()
