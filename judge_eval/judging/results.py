"""What came of calls, written down once: done, failed with a reason, or to be tried again."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any, TypeAlias
from uuid import UUID

from django.db import connection, transaction
from django.db.models import JSONField, Model, Q, QuerySet
from django.utils import timezone

from humanjudge.core.leases import free
from humanjudge.core.text import number_of
from humanjudge.server.metrics import count
from judge_eval.judging import leases
from judge_eval.judging.prompts.parse import ReplyUnreadable, extract, parse_verdict
from judge_eval.judging.providers.chat import ChatReply, left_out
from judge_eval.judging.providers.errors import (
    LEFT_OUT,
    PERMANENT_BEGINNINGS,
    RAW_LIMIT,
    CallFailed,
)
from judge_eval.judging.requests import ModelQuestion, answered_by_another, judge_question
from judge_eval.models import Call, Run
from judge_eval.runs.services import picture_of
from voting.curating.services import latest_on_judges
from voting.ledger.bulk_sql import update_many
from voting.models import Inference

# Waits of 1, 2, 4 … 30 seconds: a provider may be away for a minute and a half.
MOST_ATTEMPTS = 8
LONGEST_WAIT = 30.0
# After so many errors that every call would bring, a model of a run is not called any more.
MOST_HOPELESS = 8
# Of failed calls: so they begin.
PERMANENTLY = reduce(or_, (Q(error__startswith=text) for text in PERMANENT_BEGINNINGS))
EXCERPT = 2_000
# In a change that was made to a reply: what follows is what the model had said.
FORMER_REPLY = "; it had said: "
LARGEST_COUNT = 2**31 - 1
_FREE = {"lease": None, "leased_until": None}
_UPDATED_FIELDS = frozenset(
    "state lease leased_until not_before done_at request_hash reused reported_model reply changes "
    "is_repaired error winner score_a score_b reason prompt_tokens completion_tokens cost_nano "
    "reserved_nano latency_ms inference".split()
)

# Values by the fields of a row.
Fields: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class CallAnswer:
    """What came of one attempt: a reply, or why there is none."""

    question: ModelQuestion
    reply: ChatReply | None = None
    failure: CallFailed | None = None
    # The call whose stored reply this is: nothing was asked.
    stored: Call | None = None

    @property
    def cost(self) -> int | None:
        """What the attempt cost. None: nobody knows the price."""
        if self.stored is not None:
            return 0
        if self.question.price is None:
            return None
        if self.reply is not None:
            reply = self.reply
            return self.question.cost_nano(reply.prompt_tokens, reply.completion_tokens)
        assert self.failure is not None
        return self.question.reservation_nano if self.failure.may_be_billed else 0


def update_rows(names: Collection[str], changes: Sequence[tuple[Model, Fields]]) -> None:
    """Set the named fields of rows of one model, each to its new value or else to its old one.

    One round trip; the rows are locked, and there: one that is not raises LedgerConflict.
    """
    if not changes:
        return
    model = type(changes[0][0])
    fields = [field for field in model._meta.concrete_fields if field.name in names]

    def prepared(value: Any, field: Any) -> Any:
        if isinstance(value, Model):
            value = value.pk
        # A list as JSON: where all are written as one array, PostgreSQL would take it for another.
        is_json = isinstance(field, JSONField) and value is not None
        return json.dumps(value) if is_json else field.get_db_prep_save(value, connection)

    rows = [
        [*(prepared(new.get(f.name, getattr(old, f.attname)), f) for f in fields), old.pk]
        for old, new in changes
    ]
    update_many(model, [str(field.column) for field in fields], rows)


def write(answers: Sequence[CallAnswer]) -> list[Call]:
    """Write down what came of attempts, but those whose lease ran out and is another's.

    All or none: together they cost little more than one. Return the calls that are final now.
    """
    with transaction.atomic():
        _note_refused(answers)
        held_calls = set(leases.still_held([answer.question.call for answer in answers]))
        mine = [answer for answer in answers if answer.question.call in held_calls]
        became = [(answer.question.call, fields_of(answer)) for answer in mine]
        update_rows(_UPDATED_FIELDS, became)
        # A run's row is locked once, and last.
        leases.settle(
            (run.pk, call.reserved_nano, call.reserved_nano if cost is None else cost)
            for run, call, cost in ((a.question.run, a.question.call, a.cost) for a in mine)
        )
        _record(became)
    for call, fields in became:
        outcome = "again" if fields["state"] == Call.State.WAITING else fields["state"]
        count("humanjudge_calls_total", purpose=call.purpose, outcome=outcome)
    return [call for call, fields in became if fields["state"] != Call.State.WAITING]


def _note_refused(answers: Sequence[CallAnswer]) -> None:
    """Remember what models refuse, and say once on each run what they are asked without."""
    refused_by_model = {
        (answer.question.run, answer.question.model): answer.reply.refused
        for answer in answers
        if answer.reply and answer.reply.refused
    }
    for (run, (provider, model)), refused in refused_by_model.items():
        leases.note_refused(provider, model, refused)
        names = left_out(refused)
        about = {"model": model, "without": names}
        if names and not run.events.filter(kind="refused", data=about).exists():
            text = f"{model} is asked without {' and '.join(names)}, which it refuses."
            run.record("refused", text, **about)


def hold_hopeless(run: Run, purpose: str, provider: str, model: str) -> list[Call]:
    """Let the calls to a model fail that wait, where every one before failed for good.

    They are not made: retrying asks for them again. Return them; those under way are let be.
    """
    model_calls = Call.objects.filter(run=run, purpose=purpose, provider=provider, model=model)
    failed = model_calls.filter(state=Call.State.FAILED)
    number = failed.filter(PERMANENTLY).count()
    is_hopeless = number >= MOST_HOPELESS and not failed.exclude(PERMANENTLY).exists()
    if not is_hopeless or model_calls.filter(state=Call.State.DONE).exists():
        return []
    with transaction.atomic():
        calls = _lock_waiting(model_calls)
        if calls:
            reason = failed.filter(attempts__gt=0).values_list("error", flat=True).first()
            _hold_calls(run, calls, reason or "")
            text = f"{model} failed on every call so far: {number_of(len(calls), 'call')} not made."
            run.record("held", text, model=model)
    return calls


def hold_left_out(run: Run) -> list[Call]:
    """Let the calls of judges fail that somebody left out; they are made once it is taken back."""
    decisions = latest_on_judges(run.queue)
    judges = [UUID(pk) for pk, (payload, _) in decisions.items() if payload["action"] == "exclude"]
    if not judges:
        return []
    with transaction.atomic():
        calls = _lock_waiting(run.calls.filter(verdict__judge__in=judges))
        if calls:
            _hold_calls(run, calls, LEFT_OUT)
            run.record("held", f"{number_of(len(calls), 'call')} held: their judge is left out.")
    return calls


def _lock_waiting(calls: QuerySet[Call]) -> list[Call]:
    waiting = calls.filter(free(timezone.now()), state=Call.State.WAITING)
    locked = waiting.select_for_update(of=("self",), no_key=True, skip_locked=True)
    return list(locked.order_by("pk"))


def _hold_calls(run: Run, calls: Sequence[Call], reason: str) -> None:
    """Write down that calls failed though they were not made, and what was set aside is free."""
    fields = _failed(reason, "") | _FREE
    Call.objects.filter(pk__in=[call.pk for call in calls]).update(**fields)
    leases.write_off((call.pk, run.pk, call.reserved_nano) for call in calls)


def give_up(call: Call, failure: CallFailed) -> list[Call]:
    """Write down that a call failed though nobody was asked, or that its answer cannot be kept."""
    with transaction.atomic():
        if not leases.still_held([call]):
            return []
        fields = _failed(failure.reason, failure.raw) | _FREE
        if call.run:
            leases.write_off([(call.pk, call.run.pk, call.reserved_nano)])
        Call.objects.filter(pk=call.pk).update(**fields)
        _record([(call, fields)])
    return [call]


def _record(became: Sequence[tuple[Call, Fields]]) -> None:
    """Record the calls of runs that failed; a trial's page shows its own."""
    for call, fields in became:
        if call.run and fields["state"] == Call.State.FAILED and not call.is_trial:
            call.run.record("call_failed", f"{call.model}: {fields['error']}", call=call.pk)


def fields_of(answer: CallAnswer) -> Fields:
    """Return what becomes of a call, with the sums of all its attempts so far."""
    call, reply, cost = answer.question.call, answer.reply, answer.cost
    fields: Fields = {
        **_FREE,
        "request_hash": answer.question.request_hash,
        "reserved_nano": 0,
        "cost_nano": _add_cost(call.cost_nano, cost),
    }
    if reply is None:
        assert answer.failure is not None
        return fields | _after_failure(call, answer.failure)
    fields["reported_model"] = reply.model[:200]
    if answer.stored is None:
        # Providers may say anything, and the columns hold so much.
        for name in ("prompt_tokens", "completion_tokens"):
            total = _add_cost(getattr(call, name), getattr(reply, name))
            fields[name] = None if total is None else min(total, LARGEST_COUNT)
        fields["latency_ms"] = (call.latency_ms or 0) + reply.latency_ms
    if reply.refusal:
        return fields | _failed(f"refused: {reply.refusal[:300]}", reply.text or reply.raw)
    try:
        fields |= read_reply(answer.question, reply)
    except ReplyUnreadable as error:
        cut = " (it reached max_tokens)" if reply.finish_reason == "length" else ""
        problem, is_first = f"{error}{cut}", not answer.question.problem and answer.stored is None
        if is_first and call.purpose == Call.Purpose.JUDGE:
            # The call is claimed again, as a repair: it keeps to the limits, budget and state.
            change = f"asked once more, since {problem}{FORMER_REPLY}{reply.text[:EXCERPT]}"
            return fields | {
                "state": Call.State.WAITING,
                "error": problem,
                "reply": reply.text,
                "is_repaired": True,
                "changes": [change],
            }
        return fields | _failed(problem, reply.text or reply.raw)
    if answer.stored is not None:
        fields |= {"reused": answer.stored, "changes": answer.stored.changes}
    return fields | {"state": Call.State.DONE, "error": "", "done_at": timezone.now()}


def _add_cost(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more


def _failed(error: str, raw: str) -> Fields:
    return {
        "state": Call.State.FAILED,
        "error": error,
        "reply": raw[:RAW_LIMIT],
        "done_at": timezone.now(),
    }


def least_wait(attempts: int) -> float:
    return float(min(2 ** (attempts - 1), LONGEST_WAIT))


def _after_failure(call: Call, failure: CallFailed) -> Fields:
    most = 1 if call.is_trial else MOST_ATTEMPTS
    if not failure.retryable or call.attempts >= most:
        tries = f" (tried {call.attempts} times)" if failure.retryable and most > 1 else ""
        return _failed(f"{failure.reason}{tries}", failure.raw)
    # Calls that failed together do not all come back at the same moment.
    wait = timedelta(seconds=least_wait(call.attempts) * (1 + (call.pk % 10) / 40))
    return {
        "state": Call.State.WAITING,
        "not_before": timezone.now() + wait,
        "error": failure.reason,
    }


def stored_replies(questions: Sequence[ModelQuestion]) -> dict[str, Call]:
    """Return calls that asked the very same and were answered; failures are never reused."""
    # Who was answered before, and is asked again, wants another answer.
    # So does a repeat: whether the same is answered alike.
    new = [
        question
        for question in questions
        if not question.call.reported_model and not question.call.is_repeat
    ]
    done = Call.objects.filter(
        # Two models do not make one verdict: theirs has failed.
        ~answered_by_another(),
        state=Call.State.DONE,
        reply_removed_at__isnull=True,
        request_hash__in={question.request_hash for question in new},
    )
    # The first of them was answered by a model, the others from storage.
    return {call.request_hash: call for call in done.order_by("-pk")}


def reply_of(stored: Call) -> ChatReply:
    """Return a stored reply as if it came just now; it costs nothing and takes no time."""
    return ChatReply(text=stored.reply, model=stored.reported_model, finish_reason="stop")


def read_reply(question: ModelQuestion, reply: ChatReply) -> Fields:
    """Return what a call has to keep of a reply, or raise ReplyUnreadable."""
    call, config = question.call, question.config
    if call.purpose == Call.Purpose.SUGGEST:
        if not reply.text.strip():
            raise ReplyUnreadable("it is empty")
        return {"reply": reply.text.strip()}
    if call.purpose != Call.Purpose.GENERATE:
        verdict = parse_verdict(reply.text, judge_question(question.run.queue))
        return {"reply": reply.text, **verdict._asdict()}
    extracted = extract(reply.text, config.kind)
    assert call.prompt is not None  # the database says so
    prompt = config.prompts[call.prompt]
    inference = Inference.objects.create(
        project_id=question.run.queue.project_id,
        prompt=prompt.text,
        output=extracted.output,
        kind=config.kind,
        generator=call.model,
        tags=list(prompt.tags),
        metadata={"prompt_id": prompt.id, "reported_model": reply.model}
        | ({"language": extracted.language} if extracted.language else {}),
        picture=picture_of(extracted.output) if config.kind == "svg" else None,
    )
    changes = list(extracted.changes)
    if reply.finish_reason == "length":
        changes.append("it reached max_tokens")
    return {"reply": reply.text, "inference": inference, "changes": changes}
