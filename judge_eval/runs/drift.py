"""Has a judge changed since it was chosen? A few items with votes are asked about again each day.

They are asked about by the run's own words, beside its calls: nothing is read from stored replies,
nothing becomes a verdict, and no figure of agreement has them. An outage is no change, so what
could not be asked is asked later.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import F, Max, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from humanjudge.lib.domain_events import Announcement, announce
from humanjudge.lib.extensions import HookFailed
from humanjudge.lib.text import listed, number_of, odds
from judge_eval.config.judge_types import NoVerdict
from judge_eval.config.run_config import JudgePart
from judge_eval.models import Anchor, Call, Judge, Provider, Run, Verdict
from judge_eval.providers import protocols
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import extension_check, leases, providers, verdicts
from judge_eval.runs.hook_api import Asks
from judge_eval.runs.lifecycle import JOINABLE, LifecycleRefused
from judge_eval.runs.requests import Question, question_of
from judge_eval.runs.results import Answer, fields_of
from judge_eval.selectors import voted_items
from voting.changes import note_change
from voting.ledger.counts import votes_on
from voting.models import Item

MOST_ANCHORS: Final = 400
MOST_A_DAY: Final = 100
# For each one that is asked about again in a day so many are frozen, until all are.
FROZEN_A_DAY: Final = 10
# A worker goes on with other things after so many answers of a judge, or so many seconds.
AT_ONCE: Final = 20
LONGEST_SECONDS: Final = 30.0
EVENT: Final = "judge_drift"
_FLOATS: Final = "-latest"
# A provider says by these that it does not answer this one: no verdict, as it is in the run.
_OF_THE_ITEM: Final = (400, 413, 422)

_at_work = threading.Lock()
logger = logging.getLogger(__name__)


class AnchorAnswer(NamedTuple):
    """The verdict on an item, empty where there was none, and the model that answered as one."""

    winner: str
    model: str


def ask_anchors(now: datetime) -> None:
    """Ask what is due of every run that wants it; a worker process does so once at a time."""
    if not _at_work.acquire(blocking=False):
        return
    until = time.monotonic() + LONGEST_SECONDS
    try:
        # While judges are tuned an alarm would tell of votes that are held out.
        runs = Run.objects.filter(anchors_a_day__gt=0, state__in=JOINABLE, config__isnull=False)
        runs = runs.filter(queue__is_tuning=False)
        for run in runs.select_related("queue"):
            if why_unwatched(run) or extension_check.why_not(run):
                continue
            for judge in watched_judges(run):
                judge.run = run
                _ask_due(judge, now, until)
    finally:
        _at_work.release()


def watched_judges(run: Run) -> QuerySet[Judge]:
    names = [spec["id"] for spec in (run.config or {}).get("judges", [])]
    return run.judges.filter(name__in=names).exclude(provider=Judge.BASELINE).order_by("position")


def why_unwatched(run: Run) -> str:
    """Say why no judge of a run can be watched; nothing where they can."""
    if run.queue.is_simulated:
        return "Votes here are simulated, so no judge is watched."
    if not run.queue.ballot:
        return "No vote says whether a free text is right, so no judge is watched."
    has_judges = watched_judges(run).exists()
    return "" if has_judges else "No judge of this run is asked here, so none can be watched."


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
    """Ask about anchors that this freezing lacks; where all were asked again, start the next."""
    from judge_eval.stats.drift import draw

    voted = map(str, voted_items(judge.run).values_list("pk", flat=True))
    anchors = draw(str(judge.run_id), 0, voted, [], MOST_ANCHORS)
    rows = Anchor.objects.filter(judge=judge)
    freezing = rows.aggregate(last=Max("freezing"))["last"] or 1
    current = rows.filter(freezing=freezing)
    frozen = {str(item) for item in current.values_list("item", flat=True)}
    if frozen and frozen >= {*anchors} and not current.filter(answered_at=None).exists():
        freezing, frozen = freezing + 1, set()
    today = rows.filter(frozen_at__gte=_midnight(now)).count()
    left = min(FROZEN_A_DAY * judge.run.anchors_a_day - today, AT_ONCE)
    due = draw(str(judge.pk), freezing, anchors, frozen, max(0, left))
    for item, answer in _answers(judge, due, until):
        winner, model = answer
        fields = {"frozen": winner, "frozen_model": model, "frozen_at": timezone.now()}
        Anchor.objects.get_or_create(judge=judge, freezing=freezing, item=item, defaults=fields)


def _ask_again(judge: Judge, now: datetime, until: float) -> None:
    """Ask about anchors that were frozen on a day before, each once."""
    from judge_eval.stats.drift import draw

    rows = Anchor.objects.filter(judge=judge)
    today = rows.filter(answered_at__gte=_midnight(now)).count()
    left = min(judge.run.anchors_a_day - today, AT_ONCE)
    waiting = rows.filter(answered_at=None, frozen_at__lt=_midnight(now))
    numbers = {str(item): pk for item, pk in waiting.values_list("item", "pk")}
    due = draw(str(judge.pk), 0, numbers, [], max(0, left))
    for item, answer in _answers(judge, due, until):
        _write(judge, numbers[str(item.pk)], answer)


def _answers(
    judge: Judge, items: Sequence[str], until: float
) -> Iterator[tuple[Item, AnchorAnswer]]:
    """Ask about some items one by one, until it is too late."""
    rows = Item.objects.select_related("queue", "a__picture", "b__picture")
    by_number = rows.in_bulk(map(UUID, items))
    for number in items:
        if time.monotonic() > until:
            return
        yield by_number[UUID(number)], _ask(judge, by_number[UUID(number)])


def _write(judge: Judge, number: int, answer: AnchorAnswer) -> None:
    from judge_eval.stats.drift import share_right

    with transaction.atomic():
        row = Anchor.objects.select_for_update(no_key=True).get(pk=number)
        if row.answered_at is not None:
            return  # another worker was quicker
        row.answer, row.answered_model = answer
        row.answered_at = timezone.now()
        votes = [choice for choice, _ in votes_on(Q(item=row.item_id))[row.item_id]]
        row.difference = share_right(votes, row.answer) - share_right(votes, row.frozen)
        row.save()
        _settle(judge, row)


def _settle(judge: Judge, row: Anchor) -> None:
    """Announce that a judge has changed where this answer settles it, once."""
    from judge_eval.stats.drift import drift

    rows = Anchor.objects.filter(judge=judge, difference__isnull=False)
    if rows.exclude(settles="").exists():
        return
    ordered = rows.order_by("answered_at", "pk").values_list("difference", flat=True)
    differences = [difference or 0.0 for difference in ordered]
    change = drift(differences)
    if change.direction:
        row.settles = change.direction
        row.save(update_fields=["settles"])
        evidence = change.worse if change.direction == "worse" else change.better
        _announce(judge, row, evidence, len(differences))


def _announce(judge: Judge, row: Anchor, evidence: float, anchors: int) -> None:
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
    if a_day and (why := why_unwatched(run)):
        raise LifecycleRefused(why)
    if run.anchors_a_day == a_day:
        return
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(anchors_a_day=a_day)
        words = f"{run.name}: {number_of(a_day, 'anchor')} a day are asked again."
        note_change(run.queue.project, by, words)
    run.anchors_a_day = a_day


def in_words(judge: Judge, row: Anchor) -> str:
    return f"{judge.name} has changed: it is {row.settles} since {row.answered_at:%-d %B %Y}"


def changes_of(run: Run, judge: UUID | None = None) -> list[str]:
    """Say which judges of a run have changed, or of one judge; on the board and in the gate."""
    rows = Anchor.objects.exclude(settles="").filter(judge__run=run).select_related("judge")
    rows = rows.filter(judge=judge) if judge else rows
    consequence = "What the board says of it is of its earlier answers."
    return [
        f"{in_words(row.judge, row)}. {consequence}" for row in rows.order_by("judge__position")
    ]


def floating_models(run: Run) -> dict[UUID, str]:
    """Say of judges that what stands behind the name of their model may change, or has."""
    judges, names = list(run.judges.all()), defaultdict[tuple[str, str], set[str]](set)
    for judge in judges:
        names[judge.provider, judge.model].add(judge.reported_model)
    rows = Anchor.objects.filter(judge__run=run).order_by().distinct()
    for provider, model, *reported in rows.values_list(
        "judge__provider", "judge__model", "frozen_model", "answered_model"
    ):
        names[provider, model].update(reported)
    notes = {
        judge.pk: _on_names(judge, sorted(names[judge.provider, judge.model] - {""}))
        for judge in judges
    }
    return {pk: note for pk, note in notes.items() if note}


def _on_names(judge: Judge, reported: Sequence[str]) -> str:
    if len(reported) > 1:
        return f"{judge.model} has answered as {listed(reported)}."
    if names := [name for name in judge.model_names if name.endswith(_FLOATS)]:
        return f"{listed(names)} floats: the provider may put another model behind that name."
    return ""


# --- asking --------------------------------------------------------------------------------------


def _ask(judge: Judge, item: Item) -> AnchorAnswer:
    """Ask about an item as the run does, or raise CallFailed where nobody can be asked now."""
    verdict, calls = Verdict(judge=judge, item=item), list[Call]()
    questions = _questions(verdict)
    while True:
        helpers = verdicts.helpers_of(verdict, calls)
        assert helpers is not None  # else the run could not go on
        try:
            return AnchorAnswer(verdicts.answer_of(verdict, helpers).winner, _model(judge, calls))
        except Asks as asks:
            for question in chain.from_iterable(questions[model] for model in asks.models):
                _ask_one(question)
                calls.append(question.call)
        except (NoVerdict, HookFailed):
            return AnchorAnswer("", _model(judge, calls))


def _model(judge: Judge, calls: Sequence[Call]) -> str:
    """Return the model that has answered; of a judge of several its name says nothing."""
    return "" if judge.recipe else calls[0].reported_model


def _questions(verdict: Verdict) -> dict[JudgePart, list[Question]]:
    """Return what each model may be asked, or raise CallFailed where not all can be asked now."""
    run, questions = verdict.judge.run, dict[JudgePart, list[Question]]()
    for model in verdicts.spec_of(verdict.judge).models:
        provider = providers.find(model.provider, run.queue.project_id)
        calls = verdicts.calls_for(verdict, [model])
        questions[model] = [question_of(call, provider) for call in calls]
        if why := providers.lacks_key(questions[model][0].provider):
            raise CallFailed(why, was_sent=False)
    if why := _too_dear(run, [*chain.from_iterable(questions.values())]):
        raise CallFailed(why, was_sent=False)
    for model, own in questions.items():
        _take_places(own[0].provider, model.id, len(own))
    return questions


def _too_dear(run: Run, questions: Sequence[Question]) -> str:
    if run.budget_nano is None:
        return ""
    if unpriced := {question.call.model for question in questions if question.lacks_price}:
        return providers.unpriced(*sorted(unpriced))
    most = sum(question.reservation_nano for question in questions)
    is_enough = Q(spent_nano__lte=F("budget_nano") - F("reserved_nano") - most)
    return "" if Run.objects.filter(is_enough, pk=run.pk).exists() else "the budget is used up"


def _take_places(provider: Provider, model: str, calls: int) -> None:
    """Keep to the limits of a provider; the run's own calls come first."""
    now = timezone.now()
    with leases.locked(provider.name) as row:
        out = leases.calls_out(now).filter(provider=provider.name).count()
        is_free = row is not None and model not in leases.paused(row, now)
        if row is None or not is_free or leases.allowed(row, now, out, uuid4()) < 1:
            raise CallFailed(f"{provider.name} takes no more calls now", was_sent=False)
        # One after the other: of one half of them nothing can be made.
        leases.count_starts(row, now, calls)


def _ask_one(question: Question) -> None:
    """Make a call that is kept nowhere, and pay for it; what is unreadable is asked once more."""
    call, provider = question.call, question.provider
    try:
        endpoint = providers.endpoint_of(provider)
        answer = Answer(question, protocols.ask(provider.protocol, endpoint, question.request))
    except CallFailed as failed:
        answer = Answer(question, failure=failed)
    Run.objects.filter(pk=question.run.pk).update(spent_nano=F("spent_nano") + (answer.cost or 0))
    if (why := answer.failure) and (why.retryable or why.status not in _OF_THE_ITEM):
        raise why
    for name, value in fields_of(answer).items():
        setattr(call, name, value)
    if call.state == Call.State.WAITING:
        _ask_one(question_of(call, provider))


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
