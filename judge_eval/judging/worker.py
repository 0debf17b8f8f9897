"""The worker's loop: one in each process, it makes as many calls at once as it has threads.

It claims, writes and renews the leases for all of them, so a call costs the database little and
the broker nothing. The threads talk to providers and to nobody else.
"""

import logging
import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from uuid import UUID, uuid4

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from judge_eval.judging import leases, provider_access, results, verdicts
from judge_eval.judging.pool import Collected, Pool
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.requests import ModelQuestion, question_of
from judge_eval.judging.results import CallAnswer
from judge_eval.models import Call, Provider
from judge_eval.runs import lifecycle, state

logger = logging.getLogger(__name__)

RENEW_SECONDS = 5.0
# Where one renewal came as late as this, those of others may: what ran out may be at work still.
LATE_SECONDS = 10.0
PAUSE_SECONDS = 2.0
ADVANCE_SECONDS = 2.0
LOOK_SECONDS = 0.25
# For so long nothing is claimed of a run whose money is out with other calls.
HELD_SECONDS = 1.0
# Of the ten seconds that a stop may take; calls that take longer are left to their leases.
STOP_SECONDS = 4.0
# So many milliseconds of calls are set aside: twice as long as a round takes.
HORIZON_MS = 1500.0
MOST_ASIDE = 512

# The database is away, or was while it was asked.
_AWAY = (OperationalError, InterfaceError)
_at_work = threading.Lock()
_news = threading.Event()


def work(should_stop: Callable[[], bool] = lambda: False) -> None:
    """Make calls until none is left to be made.

    A second worker in the same process would only share the threads, so it ends at once.
    """
    _news.set()
    # Not once only: news that come while a worker leaves would be lost on it.
    while _news.is_set() and _at_work.acquire(blocking=False):
        try:
            _news.clear()
            _Worker(should_stop).work()
        finally:
            _at_work.release()


def to_set_aside(answers: Sequence[CallAnswer], out: int, threads: int) -> int:
    """Return how many calls a provider answers until the horizon, by its last answers.

    So many calls are out; those that were answered just now have free places.
    """
    latencies = [answer.reply.latency_ms for answer in answers if answer.reply]
    if not latencies:
        return 0
    mean_ms = max(sum(latencies) / len(latencies), 1.0)
    at_once = min(out + len(latencies), threads, answers[0].question.provider.concurrency)
    return int(min(at_once * HORIZON_MS / mean_ms, MOST_ASIDE))


def _is_paid(question: ModelQuestion) -> bool:
    """Say whether a call may be made, with money reserved for it where its run has a budget."""
    if question.run.budget_nano is None:
        return True
    return not question.lacks_price and leases.reserve(question.call, question.reservation_nano)


class _Worker:
    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._stop_by = math.inf
        self._lease = uuid4()
        self._renewed = self._advanced = time.monotonic()
        self._claims_from = 0.0
        self._pool = Pool(settings.JUDGING_THREADS)
        # What came and is not written down yet: a database that is away loses none of it.
        self._came = Collected()
        self._verdicts: set[int] = set()
        self._runs: set[UUID] = set()
        # Answers by provider since the last claim, and runs of which nothing is claimed until then.
        self._answers: dict[str, list[CallAnswer]] = defaultdict(list)
        self._held: dict[UUID, float] = {}

    def work(self) -> None:
        is_left = True
        while is_left and time.monotonic() < self._stop_by:
            try:
                is_left = self._round()
            except _AWAY as error:
                logger.warning("the database is away, the worker waits: %s", error)
                connection.close()
                if self._is_stopping():
                    # Each try waits for the database for seconds, and a stop has few.
                    logger.warning("calls are left to their leases")
                    self._pool.dismiss()
                    break
                time.sleep(1)
        else:
            self._leave()

    def _round(self) -> bool:
        """Ask, collect, write down; return whether there is anything left to do."""
        self._renew()
        is_stopping = self._is_stopping()
        # Nothing that was set aside for runs that were stopped, or models that are paused, begins.
        if self._pool.aside().total():
            runs, paused = set(leases.runs_at_work()), leases.paused_models(timezone.now())
            self._pool.drop(lambda q: q.call.run_id not in runs or q.model in paused)
        if (is_stopping or not self._claim()) and not self._pool.busy and not self._came.answers:
            self._advance(at_once=True)
            if is_stopping or not leases.waiting_calls(leases.runs_at_work()).exists():
                return False
        self._collect(0.0 if self._came.answers else LOOK_SECONDS)
        self._write()
        self._advance()
        return True

    def _is_stopping(self) -> bool:
        if self._should_stop():
            self._stop_by = min(self._stop_by, time.monotonic() + STOP_SECONDS)
            self._pool.drop()
        return self._stop_by < math.inf

    def _leave(self) -> None:
        self._pool.dismiss()
        try:
            self._collect(0.0)
            self._write()
        except _AWAY as error:
            left = len(self._came.dropped) + len(self._came.answers)
            logger.warning("%s calls are left to their leases: %s", left, error)
            connection.close()

    def _renew(self) -> None:
        """Renew what is out, before anything else is done: it could be taken by others, or here."""
        late = time.monotonic() - self._renewed
        if late > RENEW_SECONDS:
            open_questions = self._pool.out() + [answer.question for answer in self._came.answers]
            leases.renew(self._lease, [question.call.pk for question in open_questions])
            self._renewed = time.monotonic()
        if late > LATE_SECONDS:
            self._claims_from = self._renewed + PAUSE_SECONDS

    def _claim(self) -> bool:
        """Ask as many calls as there are threads for and providers allow; return whether any."""
        now, free, out = time.monotonic(), self._pool.free, self._pool.out()
        places = Counter(question.provider.name for question in out)
        to_follow = {
            name: to_set_aside(answers, places[name], settings.JUDGING_THREADS)
            for name, answers in self._answers.items()
        }
        ahead = Counter(to_follow) - self._pool.aside()
        if now < self._claims_from or not (free or ahead):
            return False
        held_runs = {run for run, until in self._held.items() if until > now}
        claimed = leases.claim(free, self._lease, ahead, held_runs)
        self._answers.clear()
        # A machine that slept finds leases of its own run out; those calls are being made still.
        being_made = {question.call.pk for question in out}
        # Those to be made now are begun first: the others may follow where there is a place still.
        calls = [call for call in claimed if call.pk not in being_made]
        calls.sort(key=lambda call: call.lease is None)
        rows = Provider.objects.in_bulk({call.provider for call in calls}, field_name="name")
        questions = []
        for call in calls:
            try:
                questions.append(question_of(call, rows.get(call.provider)))
            except CallFailed as failure:
                self._note(results.give_up(call, failure))
        self._ask(questions)
        return bool(calls)

    def _ask(self, questions: Sequence[ModelQuestion]) -> None:
        stored = results.stored_replies(questions)
        over = [q for q in questions if not self._start_call(q, stored.get(q.request_hash))]
        # Once the others have what they need: a small call may fit where a large one does not.
        leases.let_go(*(question.call for question in over))
        for question in over:
            if not lifecycle.stop_if_over_budget(question):
                self._held[question.run.pk] = time.monotonic() + HELD_SECONDS

    def _start_call(self, question: ModelQuestion, stored_call: Call | None) -> bool:
        """Begin a call, or say here what comes of it; False where its run cannot pay for it."""
        call, reason = question.call, provider_access.lacks_key(question.provider)
        # Whether a judge answers now is what is tried: what it said before does not tell.
        if stored_call is not None and not question.problem and not call.is_trial:
            self._came.answers.append(
                CallAnswer(question, results.reply_of(stored_call), stored=stored_call)
            )
            return True
        if not reason and _is_paid(question):
            (self._pool.ask if call.lease else self._pool.set_aside)(question)
            return True
        if not reason and not call.is_trial:
            return False
        if question.lacks_price:
            reason = reason or provider_access.unpriced(call.model)
        reason = reason or "This call could pass the budget, so it was not made."
        failure = CallFailed(reason, was_sent=False)
        self._came.answers.append(CallAnswer(question, failure=failure))
        return True

    def _collect(self, seconds: float) -> None:
        collected = self._pool.collect(seconds)
        for answer in collected.answers:
            self._answers[answer.question.provider.name].append(answer)
        self._came.add(collected)

    def _write(self) -> None:
        """Write down what happened; what was written stays so if the database goes away here."""
        came = self._came
        leases.let_go(*(question.call for question in came.dropped))
        came.dropped.clear()
        self._write_down(came.answers)
        came.followed.clear()
        for model, seconds, reason in came.pauses:
            leases.pause(*model, seconds, reason)
        came.pauses.clear()
        for answer in came.answers:
            # A call of its run is paid, so there may be room again.
            self._held.pop(answer.question.run.pk, None)
        came.answers.clear()
        verdicts.settle(self._verdicts)
        self._verdicts.clear()

    def _write_down(self, answers: Sequence[CallAnswer]) -> None:
        """Write answers down together or, where that cannot be, each by itself or why not.

        What followed in the place of another is leased with it; what is answered needs no lease.
        """
        answered = {answer.question.call.pk for answer in self._came.answers}
        followed = [question.call for question in self._came.followed]
        try:
            # A place at a provider is never seen twice, nor as free while somebody is in it.
            with transaction.atomic():
                leases.take([call for call in followed if call.pk not in answered], self._lease)
                final = results.write(answers)
            self._note(final)
            self._hold_hopeless(answers)
        except _AWAY:
            raise
        except Exception as error:
            logger.exception("%s answers cannot be written down together", len(answers))
            if len(answers) == 1:
                reason = f"its answer could not be written down: {error!r}"
                self._note(results.give_up(answers[0].question.call, CallFailed(reason)))
            elif answers:
                for answer in answers:
                    self._write_down([answer])
            else:
                raise

    def _hold_hopeless(self, answers: Sequence[CallAnswer]) -> None:
        """Hold what waits of models whose errors are permanent, before it is claimed."""
        calls = {
            (call.run_id, call.purpose, call.provider, call.model): call
            for call in (a.question.call for a in answers if a.failure and a.failure.is_permanent)
        }
        for call in calls.values():
            if call.run is not None and not call.is_trial:
                about = {"purpose": call.purpose, "provider": call.provider, "model": call.model}
                self._note(results.hold_hopeless(call.run, **about))

    def _note(self, final: Sequence[Call]) -> None:
        self._runs |= {call.run_id for call in final if call.run_id is not None}
        self._verdicts |= {call.verdict_id for call in final if call.verdict_id is not None}

    def _advance(self, *, at_once: bool = False) -> None:
        """Let runs go on that answers came for; what others do at this moment is not waited for."""
        if not at_once and time.monotonic() < self._advanced + ADVANCE_SECONDS:
            return
        busy = {run for run in self._runs if not state.advance(run, unless_busy=not at_once)}
        self._runs = set() if at_once else busy
        self._advanced = time.monotonic()
