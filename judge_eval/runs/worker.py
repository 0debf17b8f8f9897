"""The crew: one per worker process, it makes as many calls at once as it has hands.

One task claims, writes and looks after the leases for all of them, so a call costs the database
little and the broker nothing. The hands talk to providers and to nobody else.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from uuid import uuid4

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from judge_eval.models import Call, Provider
from judge_eval.providers.chat import prepare
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import budget, judging, leases, limits, providers, results, verdicts
from judge_eval.runs.backoff import Backoff
from judge_eval.runs.pace import Pace
from judge_eval.runs.pool import Hands
from judge_eval.runs.requests import Question, question_of
from judge_eval.runs.results import Answer, Written

logger = logging.getLogger(__name__)

RENEW_SECONDS = 5.0
# Where one renewal came as late as this, those of others may: what ran out may be at work still.
LATE_SECONDS = 10.0
PAUSE_SECONDS = 2.0
ADVANCE_SECONDS = 2.0
LOOK_SECONDS = 0.25
# Of the ten seconds that a stop may take; calls that take longer are left to their leases.
STOP_SECONDS = 4.0

# The database is away, or was while it was asked.
_AWAY = (OperationalError, InterfaceError)
_on_shift = threading.Lock()
_news = threading.Event()


def work(should_stop: Callable[[], bool] = lambda: False) -> None:
    """Make calls until none is left to be made.

    A second crew in the same process would only share the threads, so it goes home at once.
    """
    prepare()
    _news.set()
    # Not once only: news that come while a crew leaves would be lost on it.
    while _news.is_set() and _on_shift.acquire(blocking=False):
        try:
            _news.clear()
            _Crew(should_stop).work()
        finally:
            _on_shift.release()


class _Crew:
    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._stop_by = math.inf
        self._lease = uuid4()
        self._renewed = self._advanced = time.monotonic()
        self._claims_from = 0.0
        self._hands = Hands(settings.JUDGING_THREADS)
        # The database was away when it was asked last.
        self._is_alone = False
        # What came and is not written down yet: a database that is away loses none of it.
        self._answers: list[Answer] = []
        self._followed: list[Question] = []
        self._dropped: list[Question] = []
        self._written = Written()
        self._pace = Pace(settings.JUDGING_THREADS)
        self._backoff = Backoff()
        self._held = budget.Held()

    def work(self) -> None:
        is_left = True
        while is_left and time.monotonic() < self._stop_by:
            try:
                is_left = self._round()
                self._is_alone = False
            except _AWAY as error:
                self._outlast(error)
        self._leave()

    def _round(self) -> bool:
        """Ask, take in, write down; return whether there is anything left to do."""
        self._look_after_leases()
        is_stopping = self._is_stopping()
        self._heed()
        is_fruitless = is_stopping or not self._claim()
        is_idle = is_fruitless and not self._hands.busy and not self._answers
        if is_idle:
            self._advance(at_once=True)
            if is_stopping or not leases.waiting_calls(leases.runs_at_work()).exists():
                return False
        self._collect(0.0 if self._answers else LOOK_SECONDS)
        self._write()
        self._advance()
        return True

    def _is_stopping(self) -> bool:
        if self._should_stop():
            self._stop_by = min(self._stop_by, time.monotonic() + STOP_SECONDS)
            self._hands.drop()
        return self._stop_by < math.inf

    def _outlast(self, error: Exception) -> None:
        logger.warning("the database is away, the crew waits: %s", error)
        connection.close()
        self._is_alone = True
        if self._is_stopping():
            # Each try waits for the database for seconds, and a stop has few.
            self._stop_by = time.monotonic()
        else:
            time.sleep(1)

    def _leave(self) -> None:
        self._hands.dismiss()
        if self._is_alone:
            # To try once more would take what is left of the time to stop.
            logger.warning("the database is away: calls are left to their leases")
            return
        try:
            self._collect(0.0)
            self._write()
        except _AWAY as error:
            left = len(self._dropped) + len(self._answers)
            logger.warning("%s calls are left to their leases: %s", left, error)
            connection.close()

    def _look_after_leases(self) -> None:
        """Renew what is out, before anything else is done: it could be taken by others, or here."""
        late = time.monotonic() - self._renewed
        if late > RENEW_SECONDS:
            held = self._hands.out() + [answer.question for answer in self._answers]
            leases.renew(self._lease, [question.call.pk for question in held])
            self._renewed = time.monotonic()
        if late > LATE_SECONDS:
            self._claims_from = self._renewed + PAUSE_SECONDS

    def _claim(self) -> bool:
        """Ask as many calls as there are hands for and providers allow; return whether any."""
        places = Counter(question.provider.name for question in self._hands.out())
        ahead = self._pace.ahead(places) - self._hands.aside()
        if time.monotonic() < self._claims_from or not (self._hands.free or ahead):
            return False
        claimed = leases.claim(self._hands.free, self._lease, ahead, self._held.runs())
        self._pace.begin()
        # A machine that slept finds leases of its own run out; those calls are being made still.
        out = {question.call.pk for question in self._hands.out()}
        calls = [call for call in claimed if call.pk not in out]
        if not calls:
            return False
        known = {p.name: p for p in Provider.objects.filter(name__in={c.provider for c in calls})}
        # Those to be made now are begun first: the others may follow where there is a place still.
        calls.sort(key=lambda call: call.lease is None)
        questions = [self._question(call, known.get(call.provider)) for call in calls]
        self._ask([question for question in questions if question is not None])
        return True

    def _heed(self) -> None:
        """Begin nothing that was set aside for runs or models that have been stopped since."""
        if self._hands.aside().total():
            self._hands.keep(set(leases.runs_at_work()))
            if paused := leases.paused(timezone.now()):
                self._hands.drop(*paused)

    def _question(self, call: Call, provider: Provider | None) -> Question | None:
        if provider is None:  # it was deleted after the call was claimed
            self._give_up(call, CallFailed(f"there is no provider named {call.provider}"))
            return None
        try:
            return question_of(call, provider)
        except CallFailed as failure:
            self._give_up(call, failure)
        except _AWAY:
            raise
        except Exception as error:
            logger.exception("call %s cannot be asked", call.pk)
            self._give_up(call, CallFailed(f"it could not be asked: {error!r}"))
        return None

    def _give_up(self, call: Call, failure: CallFailed) -> None:
        results.give_up(call, failure, self._written)

    def _ask(self, questions: Sequence[Question]) -> None:
        """Answer from storage what was asked before, and send out what the budget allows."""
        stored = results.stored_replies(questions)
        over: list[Question] = []
        for question in questions:
            kept = None if question.problem else stored.get(question.request_hash)
            if kept is not None:
                self._answers.append(Answer(question, reply=results.reply_of(kept), stored=kept))
            elif providers.lacks_key(question.provider):
                reason = f"the workers' environment has no {question.provider.key_variable}"
                self._answers.append(Answer(question, failure=CallFailed(reason)))
            elif budget.reserve(question):
                self._send(question)
            else:
                over.append(question)
        # Once the others have what they need: a small call may fit where a large one does not.
        for question in over:
            leases.let_go(question.call)
        for question in over:
            if not budget.stop_if_over(question):
                self._held.hold(question.call.run_id)

    def _send(self, question: Question) -> None:
        if question.call.lease is None:
            self._hands.set_aside(question)
        else:
            self._hands.ask(question)

    def _collect(self, seconds: float) -> None:
        collected = self._hands.collect(seconds)
        self._answers += collected.answers
        self._followed += collected.followed
        self._dropped += collected.dropped
        self._pace.hear(collected.answers)

    def _write(self) -> None:
        """Write down what happened; what was written stays so if the database goes away here."""
        self._let_go()
        self._write_answers()
        self._followed.clear()
        self._ease_off()
        for answer in self._answers:
            self._held.release(answer.question.call.run_id)
        self._answers.clear()
        verdicts.settle(self._written.verdicts)
        self._written.verdicts.clear()

    def _ease_off(self) -> None:
        """Leave models alone that name a time, or say nothing but that it is too much."""
        why = {a.question.asked: a.failure.reason for a in self._answers if a.failure}
        for asked, seconds in self._backoff.hear(self._answers, time.monotonic()).items():
            limits.pause(*asked, seconds, why[asked])
            self._hands.drop(asked)

    def _let_go(self) -> None:
        if self._dropped:
            leases.let_go(*(question.call for question in self._dropped))
            self._dropped.clear()

    def _write_answers(self) -> None:
        try:
            # A place at a provider is never seen twice, nor as free while somebody is in it.
            with transaction.atomic():
                self._take()
                results.write_all(self._answers, self._written)
        except _AWAY:
            raise
        except Exception:
            logger.exception("an answer cannot be written down, so each is written by itself")
            self._take()
            for answer in self._answers:
                self._write_alone(answer)

    def _take(self) -> None:
        """Lease what followed in the place of another; what is answered already needs no lease."""
        answered = {answer.question.call.pk for answer in self._answers}
        calls = [question.call for question in self._followed]
        leases.take([call for call in calls if call.pk not in answered], self._lease)

    def _write_alone(self, answer: Answer) -> None:
        try:
            results.write(answer, self._written)
        except _AWAY:
            raise
        except Exception as error:
            call = answer.question.call
            logger.exception("the answer to call %s cannot be written down", call.pk)
            self._give_up(call, CallFailed(f"its answer could not be written down: {error!r}"))

    def _advance(self, *, at_once: bool = False) -> None:
        """Let runs go on that answers came for; what others do at this moment is not waited for."""
        if not at_once and time.monotonic() < self._advanced + ADVANCE_SECONDS:
            return
        runs, self._written.runs = self._written.runs, set()
        for run in runs:
            if at_once:
                judging.advance(run)
            elif not judging.advance_unless_busy(run):
                self._written.runs.add(run)
        self._advanced = time.monotonic()
