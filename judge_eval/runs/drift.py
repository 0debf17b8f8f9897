"""Has a judge changed since it was chosen? A few items with votes are asked again each day.

They are asked by the run's own words, beside its calls: nothing is read from stored replies,
nothing becomes a verdict, and no figure of agreement has them. An outage is no change, so what
could not be asked is asked later. A judge of several models is left alone, and so are studies
without choices.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import F, Max, Q
from django.urls import reverse
from django.utils import timezone

from humanjudge.lib.domain_events import Announcement, announce
from humanjudge.lib.text import listed, number_of, odds
from judge_eval.models import Anchor, Call, Judge, Provider, Run, Verdict
from judge_eval.prompts.parse import ReplyUnreadable
from judge_eval.providers import protocols
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import leases, providers, verdicts
from judge_eval.runs.lifecycle import JOINABLE
from judge_eval.runs.requests import Question, question_of
from judge_eval.runs.results import read_reply
from voting.changes import note_change
from voting.choices import VOTES_FOR, Fixed
from voting.models import Item

MOST_ANCHORS: Final = 400
MOST_A_DAY: Final = 100
# For each one that is asked again in a day so many are frozen, until all are.
FROZEN_A_DAY: Final = 10
# A worker goes on with other things after so many answers of a judge, or so many seconds.
AT_ONCE: Final = 20
LONGEST_SECONDS: Final = 30.0
EVENT: Final = "judge_drift"
_FLOATS: Final = "-latest"
# A provider says by these that it does not answer this one: no verdict, as it is in the run.
_OF_THE_ITEM: Final = (400, 413, 422)

_asking = threading.Lock()
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Said:
    """What a judge said of an item, empty where that was no verdict, and as which model."""

    winner: str
    model: str


def ask_anchors(now: datetime) -> None:
    """Ask what is due of every run that wants it; a worker process does so once at a time."""
    if not _asking.acquire(blocking=False):
        return
    until = time.monotonic() + LONGEST_SECONDS
    try:
        # While judges are tuned an alarm would tell of votes that are held out.
        runs = Run.objects.filter(anchors_a_day__gt=0, state__in=JOINABLE, config__isnull=False)
        runs = runs.filter(queue__is_tuning=False)
        for run in runs.filter(queue__is_simulated=False).select_related("queue"):
            asked = run.judges.exclude(provider__in=(Judge.BASELINE, Judge.IMPORTED))
            for judge in asked.filter(recipe__isnull=True).exclude(model="").order_by("position"):
                judge.run = run
                _ask_due(judge, now, until)
    finally:
        _asking.release()


def _ask_due(judge: Judge, now: datetime, until: float) -> None:
    try:
        _freeze(judge, now, until)
        _ask_again(judge, now, until)
    except DatabaseError:
        raise
    except CallFailed as failed:
        logger.info("anchors of %s wait: %s", judge, failed.reason)
    except Exception:
        # One judge that cannot be asked must not hold up the others.
        logger.exception("anchors of judge %s", judge.pk)


def _freeze(judge: Judge, now: datetime, until: float) -> None:
    """Ask about anchors that this freezing lacks; where all were asked again, begin the next."""
    from judge_eval.stats.drift import draw

    anchors = draw(str(judge.run_id), 0, map(str, _voted(judge.run)), [], MOST_ANCHORS)
    rows = Anchor.objects.filter(judge=judge)
    freezing = rows.aggregate(last=Max("freezing"))["last"] or 1
    current = rows.filter(freezing=freezing)
    frozen = {str(item) for item in current.values_list("item", flat=True)}
    if frozen and frozen >= {*anchors} and not current.filter(asked_at=None).exists():
        freezing, frozen = freezing + 1, set()
    most = FROZEN_A_DAY * judge.run.anchors_a_day
    left = min(most - rows.filter(frozen_at__gte=_midnight(now)).count(), AT_ONCE)
    for item in _items(draw(str(judge.pk), freezing, anchors, frozen, max(0, left))):
        if time.monotonic() > until:
            return
        said = _ask(judge, item)
        fields = {"frozen": said.winner, "frozen_model": said.model, "frozen_at": timezone.now()}
        Anchor.objects.get_or_create(judge=judge, freezing=freezing, item=item, defaults=fields)


def _ask_again(judge: Judge, now: datetime, until: float) -> None:
    """Ask about anchors that were frozen on a day before, each once."""
    from judge_eval.stats.drift import draw, drift

    rows = Anchor.objects.filter(judge=judge)
    left = judge.run.anchors_a_day - rows.filter(asked_at__gte=_midnight(now)).count()
    due = {
        str(item): pk
        for item, pk in rows.filter(asked_at=None, frozen_at__lt=_midnight(now)).values_list(
            "item", "pk"
        )
    }
    for item in _items(draw(str(judge.pk), 0, due, [], max(0, min(left, AT_ONCE)))):
        if time.monotonic() > until:
            return
        said = _ask(judge, item)
        with transaction.atomic():
            row = Anchor.objects.select_for_update(no_key=True).get(pk=due[str(item.pk)])
            if row.asked_at is not None:
                continue  # another worker was quicker
            row.answer, row.asked_model, row.asked_at = said.winner, said.model, timezone.now()
            row.difference = _share_right(item, said.winner) - _share_right(item, row.frozen)
            row.save()
            if rows.exclude(settles="").exists():
                continue
            asked = rows.exclude(difference=None).order_by("asked_at", "pk")
            found = drift([d or 0.0 for d in asked.values_list("difference", flat=True)])
            if found.direction:
                row.settles = found.direction
                row.save(update_fields=["settles"])
                evidence = found.worse if found.direction == "worse" else found.better
                _tell(judge, row, evidence, asked.count())


def _tell(judge: Judge, row: Anchor, evidence: float, anchors: int) -> None:
    run = judge.run
    words = f"{in_words(judge, row)} (evidence {odds(evidence)}, {number_of(anchors, 'anchor')})."
    run.record(EVENT, words, judge=str(judge.pk), direction=row.settles)
    about = {"run": str(run.pk), "name": run.name, "judge": str(judge.pk)}
    about |= {"judge_name": judge.name, "direction": row.settles}
    announce(
        Announcement(
            EVENT,
            run.queue.project_id,
            f"{EVENT}:{judge.pk}",
            f"{run.name}: {words}",
            reverse("run", args=[run.pk]),
            {**about, "evidence": evidence, "anchors": anchors},
        )
    )


def set_anchors(run: Run, a_day: int, by: User | None) -> None:
    """Ask about so many anchors again each day, of each judge; 0 is none."""
    if run.anchors_a_day == a_day:
        return
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(anchors_a_day=a_day)
        words = f"{run.name}: {number_of(a_day, 'anchor')} a day are asked again."
        note_change(run.queue.project, by, words)
    run.anchors_a_day = a_day


def in_words(judge: Judge, row: Anchor) -> str:
    return f"{judge.name} has changed: it is {row.settles} since {row.asked_at:%-d %B %Y}"


def changes_of(run: Run, judge: UUID | None = None) -> list[str]:
    """Say which judges of a run have changed, or of one judge; on the board and in the gate."""
    rows = Anchor.objects.exclude(settles="").filter(judge__run=run).select_related("judge")
    rows = rows.filter(judge=judge) if judge else rows
    consequence = "What the board says of it is of its earlier answers."
    return [
        f"{in_words(row.judge, row)}. {consequence}" for row in rows.order_by("judge__position")
    ]


def about_model(judge: Judge) -> list[str]:
    """Say that what stands behind a judge's name may change, or has."""
    rows = Anchor.objects.filter(judge=judge)
    names = {judge.reported_model, *rows.values_list("frozen_model", flat=True).distinct()}
    names |= {*rows.values_list("asked_model", flat=True).distinct()}
    if len(names := names - {""}) > 1:
        return [f"It has answered as {listed(sorted(names))}."]
    if judge.model.endswith(_FLOATS):
        return [f"The name {judge.model} floats: its provider may put another model behind it."]
    return []


# --- asking --------------------------------------------------------------------------------------


def _ask(judge: Judge, item: Item) -> Said:
    """Ask about an item as the run does, or raise CallFailed where nobody can be asked now."""
    verdict = Verdict(judge=judge, item=item)
    spec = verdicts.spec_of(judge)
    calls = verdicts.calls_for(verdict, spec, spec.models)
    provider = providers.find(judge.provider, judge.run.queue.project_id)
    questions = [question_of(call, provider) for call in calls]
    assert provider is not None  # else there is no question
    if why := providers.lacks_key(provider) or _too_dear(judge.run, questions):
        raise CallFailed(why, was_sent=False)
    for question in questions:
        _ask_one(question)
    return Said(verdicts.answer_by_calls(verdict, calls).winner, calls[0].reported_model)


def _too_dear(run: Run, questions: Sequence[Question]) -> str:
    if run.budget_nano is None:
        return ""
    if any(question.lacks_price for question in questions):
        return providers.unpriced(questions[0].call.model)
    most = sum(question.reservation_nano for question in questions)
    is_enough = Q(spent_nano__lte=F("budget_nano") - F("reserved_nano") - most)
    return "" if Run.objects.filter(is_enough, pk=run.pk).exists() else "the budget is used up"


def _ask_one(question: Question) -> None:
    """Make a call that is kept nowhere, and pay for it."""
    call, paid = question.call, 0
    _take_place(question.provider, call.model)
    try:
        endpoint = providers.endpoint_of(question.provider)
        reply = protocols.ask(question.provider.protocol, endpoint, question.request)
        paid = question.cost_nano(reply.prompt_tokens, reply.completion_tokens) or 0
    except CallFailed as failed:
        paid = question.reservation_nano if failed.may_be_billed else 0
        if failed.status not in _OF_THE_ITEM or failed.retryable:
            raise
        call.state, call.error = Call.State.FAILED, failed.reason
        return
    finally:
        Run.objects.filter(pk=question.run.pk).update(spent_nano=F("spent_nano") + paid)
    call.reported_model, call.state = reply.model[:200], Call.State.FAILED
    try:
        fields = read_reply(question, reply) if not reply.refusal else {}
        call.error = f"refused: {reply.refusal}" if reply.refusal else ""
    except ReplyUnreadable as error:
        fields, call.error = {}, str(error)
    if not call.error:
        call.state = Call.State.DONE
    for name, value in fields.items():
        setattr(call, name, value)


def _take_place(provider: Provider, model: str) -> None:
    """Keep to the limits of a provider; the run's own calls come first."""
    now = timezone.now()
    with leases.locked(provider.name) as row:
        out = leases.calls_out(now).filter(provider=provider.name).count()
        is_free = row is not None and model not in leases.paused(row, now)
        if row is None or not is_free or leases.allowed(row, now, out, uuid4()) < 1:
            raise CallFailed(f"{provider.name} takes no more calls now", was_sent=False)
        leases.count_starts(row, now, 1)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _voted(run: Run) -> list[UUID]:
    voted = run.queue.items.filter(votes__gt=0, opened_at__isnull=False, unusable="")
    return list(voted.values_list("pk", flat=True)) if can_be_watched(run) else []


def can_be_watched(run: Run) -> bool:
    """Whether an answer is right or wrong by a vote: not where items are rated or labelled."""
    return {*run.queue.ballot} <= VOTES_FOR.keys() and bool(run.queue.ballot)


def _items(keys: Sequence[str]) -> list[Item]:
    rows = Item.objects.select_related("queue", "a__picture", "b__picture").in_bulk(map(UUID, keys))
    return [rows[UUID(key)] for key in keys]


def _share_right(item: Item, winner: str) -> float:
    """Return the share of the votes on an item that an answer equals."""
    from judge_eval.stats.drift import share_right

    ballot: list[Fixed] = item.queue.ballot
    votes = [getattr(item, VOTES_FOR[choice]) for choice in ballot]
    return share_right(
        votes, next((n for n, choice in enumerate(ballot) if choice == winner), None)
    )
