"""What came of calls, written down once: done, failed with a reason, or to be tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from judge_eval.models import Call, Run
from judge_eval.providers.chat import ChatReply
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import events, leases, replies
from judge_eval.runs.bulk import update_rows
from judge_eval.runs.requests import Question, answered_by_another

# Waits of 1, 2, 4 … 30 seconds: a provider may be away for a minute and a half.
MOST_ATTEMPTS = 8
LONGEST_WAIT = 30.0
MOST_RAW = 20_000
EXCERPT = 2_000
LARGEST_COUNT = 2**31 - 1
_FREE = {"lease": None, "leased_until": None}
_WRITTEN = frozenset(
    "state lease leased_until not_before done_at request_hash reused reported_model reply changes "
    "is_repaired error winner score_a score_b reason prompt_tokens completion_tokens cost_nano "
    "reserved_nano latency_ms inference".split()
)


@dataclass(frozen=True)
class Answer:
    """What came of one attempt: a reply, or why there is none."""

    question: Question
    reply: ChatReply | None = None
    failure: CallFailed | None = None
    # The call whose stored reply this is: nothing was asked.
    stored: Call | None = None


@dataclass
class Written:
    """What has to be looked at now that some answers are written down."""

    verdicts: set[int] = field(default_factory=set)
    runs: set[UUID] = field(default_factory=set)

    def note(self, call: Call) -> None:
        self.runs.add(call.run_id)
        if call.verdict_id is not None:
            self.verdicts.add(call.verdict_id)


def write(answer: Answer, written: Written) -> None:
    """Write down what came of one attempt, unless its lease ran out and it is another's."""
    write_all([answer], written)


def write_all(answers: Sequence[Answer], written: Written) -> None:
    """Write down what came of several attempts, all or none: together they cost little more."""
    with transaction.atomic():
        held = _held([answer.question.call for answer in answers])
        mine = [answer for answer in answers if answer.question.call.pk in held]
        became = [(a.question.call, _fields(a) | _measured(a) | _FREE) for a in mine]
        update_rows(_WRITTEN, became)
        _pay(mine)
        _tell(became)
    for call, fields in became:
        if fields["state"] != Call.State.WAITING:
            written.note(call)


def give_up(call: Call, failure: CallFailed, written: Written) -> None:
    """Write down that a call failed though nobody was asked, or that its answer cannot be kept."""
    with transaction.atomic():
        if not _held([call]):
            return
        fields = _failed(failure.reason, failure.raw)
        leases.write_off([(call.pk, call.run_id, call.reserved_nano)])
        Call.objects.filter(pk=call.pk).update(**fields, **_FREE)
        _tell([(call, fields)])
    written.note(call)


def _held(calls: Sequence[Call]) -> set[int]:
    """Lock calls, and return those of them that are their holder's still."""
    waiting = Call.objects.filter(pk__in=[call.pk for call in calls], state=Call.State.WAITING)
    locked = waiting.select_for_update(no_key=True).order_by("pk")
    mine = {call.pk: _hold(call.lease, call.leased_until) for call in calls}
    found = locked.values_list("pk", "lease", "leased_until")
    return {pk for pk, lease, until in found if _hold(lease, until) == mine[pk]}


def _hold(lease: UUID | None, until: datetime | None) -> UUID | datetime | None:
    """Return what tells one holder from another: of a call that was set aside, until when it is."""
    return lease or until


def _tell(became: Sequence[tuple[Call, dict[str, Any]]]) -> None:
    for call, fields in became:
        if fields["state"] == Call.State.FAILED:
            text = f"{call.model}: {fields['error']}"
            events.record(call.run, "call_failed", text, call=call.pk)


def _fields(answer: Answer) -> dict[str, Any]:
    """Return what becomes of the call: done, failed, later again, or asked once more."""
    call, question, reply = answer.question.call, answer.question, answer.reply
    if answer.failure is not None:
        return _after_failure(call, answer.failure)
    assert reply is not None
    try:
        fields = replies.read(question, reply)
    except replies.NoAnswer as reason:
        if reason.may_be_repaired and not question.problem and answer.stored is None:
            return _once_more(str(reason), reply)
        return _failed(str(reason), replies.raw(reply))
    if answer.stored is not None:
        fields |= {"reused": answer.stored, "changes": answer.stored.changes}
    return fields | {"state": Call.State.DONE, "error": "", "done_at": timezone.now()}


def _once_more(problem: str, reply: ChatReply) -> dict[str, Any]:
    """Let the call be claimed again, as a repair: it keeps to the limits, budget and state."""
    first = reply.text[:EXCERPT]
    return {
        "state": Call.State.WAITING,
        "error": problem,
        "reply": reply.text,
        "is_repaired": True,
        "changes": [f"asked once more, since {problem}; it had said: {first}"],
    }


def _pay(answers: Sequence[Answer]) -> None:
    """Turn what was reserved into what it cost; a run's row is locked once, and last."""
    reserved: Counter[UUID] = Counter()
    spent: Counter[UUID] = Counter()
    for answer in answers:
        call, cost = answer.question.call, _cost(answer)
        reserved[call.run_id] += call.reserved_nano
        spent[call.run_id] += call.reserved_nano if cost is None else cost
    for run in sorted(reserved):
        if reserved[run] or spent[run]:
            Run.objects.filter(pk=run).update(
                reserved_nano=F("reserved_nano") - reserved[run],
                spent_nano=F("spent_nano") + spent[run],
            )


def _cost(answer: Answer) -> int | None:
    """Return what an attempt cost. None: nobody knows the price."""
    question, reply = answer.question, answer.reply
    if answer.stored is not None:
        return 0
    if question.price is None:
        return None
    if reply is not None:
        return question.cost_nano(reply.prompt_tokens, reply.completion_tokens)
    assert answer.failure is not None
    return question.call.reserved_nano if answer.failure.may_be_billed else 0


def _measured(answer: Answer) -> dict[str, Any]:
    """Return the sums of all attempts so far."""
    call, reply = answer.question.call, answer.reply
    fields: dict[str, Any] = {
        "request_hash": answer.question.request_hash,
        "reserved_nano": 0,
        "cost_nano": _sum(call.cost_nano, _cost(answer)),
    }
    if reply is not None:
        fields["reported_model"] = reply.model[:200]
    if reply is not None and answer.stored is None:
        fields["prompt_tokens"] = _tokens(call.prompt_tokens, reply.prompt_tokens)
        fields["completion_tokens"] = _tokens(call.completion_tokens, reply.completion_tokens)
        fields["latency_ms"] = (call.latency_ms or 0) + reply.latency_ms
    return fields


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more


def _tokens(before: int | None, more: int | None) -> int | None:
    """Add up what providers say, who may say anything, within what the column holds."""
    total = _sum(before, more)
    return None if total is None else min(total, LARGEST_COUNT)


def _failed(error: str, raw: str) -> dict[str, Any]:
    return {
        "state": Call.State.FAILED,
        "error": error,
        "reply": raw[:MOST_RAW],
        "done_at": timezone.now(),
    }


def least_wait(attempts: int) -> float:
    """Return for how many seconds a call waits that has failed so many times."""
    return float(min(2 ** (attempts - 1), LONGEST_WAIT))


def _after_failure(call: Call, failure: CallFailed) -> dict[str, Any]:
    if not failure.retryable or call.attempts >= MOST_ATTEMPTS:
        tries = f" (tried {call.attempts} times)" if failure.retryable else ""
        return _failed(f"{failure.reason}{tries}", failure.raw)
    now = timezone.now()
    wait = least_wait(call.attempts)
    # Calls that failed together do not all come back at the same moment.
    wait *= 1 + (call.pk % 10) / 40
    return {
        "state": Call.State.WAITING,
        "not_before": now + timedelta(seconds=wait),
        "error": failure.reason,
    }


def stored_replies(questions: Sequence[Question]) -> dict[str, Call]:
    """Return calls that asked the very same and were answered; failures are never reused."""
    # Who was answered before, and is asked again, wants another answer.
    new = [question for question in questions if not question.call.reported_model]
    done = Call.objects.filter(
        # Two models do not make one verdict: theirs has failed.
        ~answered_by_another(),
        state=Call.State.DONE,
        request_hash__in={question.request_hash for question in new},
    )
    # The first of them was answered by a model, the others from storage.
    return {call.request_hash: call for call in done.order_by("-pk")}


def reply_of(stored: Call) -> ChatReply:
    """Return a stored reply as if it came just now; it costs nothing and takes no time."""
    return ChatReply(
        text=stored.reply,
        model=stored.reported_model,
        finish_reason="stop",
        prompt_tokens=None,
        completion_tokens=None,
        latency_ms=0.0,
        refusal=None,
        raw={},
        structured=False,
    )
