"""Has a judge changed since it was watched? A few items with votes are asked about again each day.

A judge that is watched answers about its anchors so many times at once that the answers last for a
year: its yardstick, which is paid first and never renewed. Each later answer is set against one of
it that was not used yet. Where all are used the watch ends; another one begins with a new yardstick
when somebody wants it.

They are asked about by the run's own words, beside its calls: nothing is read from stored replies,
nothing becomes a verdict, and no figure of agreement has them. An outage is no change, so what
could not be asked is asked later.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Final, NamedTuple, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import F, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from humanjudge.core.domain_events import Announcement, announce
from humanjudge.core.extensions import HookFailed
from humanjudge.core.leases import claim, release
from humanjudge.core.text import listed, number_of, odds, usd
from judge_eval.judging import extension_check, leases, provider_access, verdicts
from judge_eval.judging.config.judge_types import NoVerdict
from judge_eval.judging.config.run_config import JudgePart
from judge_eval.judging.hook_api import AnswersMissing
from judge_eval.judging.providers import protocols
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.requests import ModelQuestion, question_of
from judge_eval.judging.results import CallAnswer, fields_of
from judge_eval.models import Anchor, Call, Judge, Provider, Run, Verdict, Watch
from judge_eval.runs.lifecycle import JOINABLE, LifecycleRefused
from judge_eval.runs.queries import counts_as_judge, voted_items
from judge_eval.workshop import services
from voting.access.changes import note_change
from voting.items.order import keyed_number
from voting.ledger.counts import votes_on
from voting.models import Item

MOST_ANCHORS: Final = 400
MOST_A_DAY: Final = 100
# A worker goes on with other things after so many answers of a judge, or so many seconds.
AT_ONCE: Final = 20
LONGEST_SECONDS: Final = 30.0
# Longer than any answer takes: no other worker asks the same meanwhile.
LEASE: Final = timedelta(minutes=10)
EVENT: Final = "judge_drift"
_FLOATS: Final = "-latest"
# A provider says by these that it does not answer this one: no verdict, as it is in the run.
_OF_THE_ITEM: Final = (400, 413, 422)

_Place = TypeVar("_Place")
_at_work = threading.Lock()
logger = logging.getLogger(__name__)


class AnchorAnswer(NamedTuple):
    """The verdict on an item, empty where there was none, and the model that answered as one."""

    winner: str
    model: str


class Yardstick(NamedTuple):
    """What watching a judge begins with: so many answers about each anchor, and their cost."""

    judge: Judge
    anchors: int
    repeats: int
    calls: int
    most_usd: Decimal | None

    def __str__(self) -> str:
        price = usd(self.most_usd) + " at most" if self.most_usd is not None else "price not known"
        items = number_of(self.anchors, self.judge.run.queue.noun)
        calls = number_of(self.calls, "call")
        return f"{self.judge.name}: {self.repeats} times about each of {items}, {calls}, {price}."


def ask_anchors(now: datetime) -> bool:
    """Ask what is due of every judge that is watched, one process of a worker once at a time.

    Say whether a yardstick wants more right away.
    """
    if not _at_work.acquire(blocking=False):
        return False
    until, is_more = time.monotonic() + LONGEST_SECONDS, False
    try:
        # While judges are tuned an alarm would tell of votes that are held out.
        watches = Watch.objects.filter(
            counts_as_judge("judge__"),
            ended_at=None,
            judge__run__anchors_a_day__gt=0,
            judge__run__state__in=JOINABLE,
            judge__run__queue__is_tuning=False,
        ).select_related("judge__run__queue")
        # A yardstick may take hours: what is due today comes first.
        for watch in watches.order_by(F("began_at").asc(nulls_last=True), "pk"):
            run = watch.judge.run
            if time.monotonic() < until and not why_unwatched(run):
                is_more |= not extension_check.obstacle(run) and _ask_due(watch, now, until)
    finally:
        _at_work.release()
    return is_more


def watched_judges(run: Run) -> QuerySet[Judge]:
    names = [spec["id"] for spec in (run.config or {}).get("judges", [])]
    return run.judges.filter(name__in=names).exclude(provider=Judge.BASELINE).order_by("position")


def why_unwatched(run: Run) -> str:
    """Say why no judge of a run can be watched; nothing where they can."""
    if run.queue.is_simulated:
        return "Votes here are simulated, so no judge is watched."
    if not run.queue.ballot:
        return "No vote says whether a free text is right, so no judge is watched."
    if not watched_judges(run).exists():
        return "No judge of this run is asked here, so none can be watched."
    has_votes = voted_items(run).exists()
    return "" if has_votes else "Nobody has voted yet, so there is nothing to ask judges again."


def _ask_due(watch: Watch, now: datetime, until: float) -> bool:
    lease = Watch.objects.filter(pk=watch.pk, ended_at=None)
    if not claim(lease, LEASE):
        return False  # another worker asks
    try:
        watch.refresh_from_db(fields=["began_at"])
        if watch.began_at is None:
            return _take_yardstick(watch, until)
        _ask_again(watch, now, until)
    except DatabaseError:
        raise
    except CallFailed as failed:
        logger.info("anchors of %s wait: %s", watch.judge, failed.reason)
    except Exception:
        # One judge that cannot be asked must not hold up the others.
        logger.exception("anchors of judge %s", watch.judge_id)
    finally:
        release(lease)
    return False


def _take_yardstick(watch: Watch, until: float) -> bool:
    stored = {(number, str(item)) for number, item in watch.answers.values_list("number", "item")}
    rounds = range(1, watch.repeats + 1)
    left = [
        ((number, item), UUID(item))
        for number in rounds
        for item in watch.anchors
        if (number, item) not in stored
    ]
    answers = 0
    for (number, item), (winner, model) in _answers(watch.judge, left[:AT_ONCE], until):
        Anchor.objects.create(
            watch=watch, number=number, item_id=item, stored=winner, stored_model=model
        )
        answers += 1
    if answers == len(left):
        Watch.objects.filter(pk=watch.pk).update(began_at=timezone.now())
    return 0 < answers < len(left)


def _ask_again(watch: Watch, now: datetime, until: float) -> None:
    """Ask about some anchors once more, from the day after the yardstick on, and weigh it."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    assert watch.began_at is not None  # else its yardstick is asked
    today = watch.answers.filter(answered_at__gte=midnight).count()
    left = min(watch.judge.run.anchors_a_day - today, AT_ONCE)
    if watch.began_at >= midnight or left <= 0:
        return
    # An answer that failed makes no difference.
    unused = watch.answers.filter(answered_at=None).exclude(stored="").order_by("number")
    rows = list(unused.values_list("number", "item", "pk")[: left + len(watch.anchors)])
    rows.sort(
        key=lambda row: (row[0], keyed_number(settings.SECRET_KEY, "anchor", watch.pk, *row[:2]))
    )
    due = [(pk, item) for _, item, pk in rows[:left]]
    try:
        for pk, (winner, model) in _answers(watch.judge, due, until):
            row = Anchor.objects.get(pk=pk)
            row.answer, row.answered_model, row.answered_at = winner, model, timezone.now()
            votes = [choice for choice, _ in votes_on(Q(item=row.item_id))[row.item_id]]
            if winner:
                # By the votes that each of the two equals.
                apart = votes.count(winner) - votes.count(row.stored)
                row.difference = apart / (len(votes) or 1)
            row.save()
    finally:
        _settle(watch, is_used_up=not unused.exists())


def _answers(
    judge: Judge, due: Sequence[tuple[_Place, UUID]], until: float
) -> Iterator[tuple[_Place, AnchorAnswer]]:
    rows = Item.objects.select_related("queue", "a__picture", "b__picture")
    by_number = rows.in_bulk({item for _, item in due})
    for place, item in due:
        if time.monotonic() > until:
            return
        yield place, _ask(judge, by_number[item])


def _settle(watch: Watch, *, is_used_up: bool) -> None:
    """End a watch, and say so, where the judge has changed or nothing is left to compare with."""
    from judge_eval.stats.drift import drift

    rows = watch.answers.filter(difference__isnull=False).order_by("answered_at", "pk")
    compared = list(rows.values_list("difference", "answered_at"))
    days = [(moment - watch.began_at).days for _, moment in compared if moment and watch.began_at]
    run = watch.judge.run
    judges = Watch.objects.filter(judge__run=run).values("judge").distinct().count()
    change = drift([difference or 0.0 for difference, _ in compared], days, judges)
    if not change.direction and not is_used_up:
        return
    watch.ended_at, watch.direction = timezone.now(), change.direction
    if change.since is not None and watch.began_at:
        watch.since = (watch.began_at + timedelta(days=change.since)).date()
    with transaction.atomic():
        watch.save(update_fields=["ended_at", "direction", "since"])
        if change.direction:
            _announce(watch, max(change.worse, change.better), len(compared))
        else:
            run.record("watch_ended", state_of(watch), judge=str(watch.judge_id))


def _announce(watch: Watch, evidence: float, anchors: int) -> None:
    judge, run = watch.judge, watch.judge.run
    basis = f"(evidence {odds(evidence)}, {number_of(anchors, 'anchor')})"
    words = f"{_change_in_words(watch)} {basis}."
    run.record(EVENT, words, judge=str(judge.pk), direction=watch.direction)
    about = {"run": str(run.pk), "name": run.name, "judge": str(judge.pk)}
    about |= {"judge_name": judge.name, "direction": watch.direction, "since": str(watch.since)}
    announce(
        Announcement(
            EVENT,
            run.queue.project_id,
            f"{EVENT}:{watch.pk}",
            f"{run.name}: {words}",
            reverse("run", args=[run.pk]),
            {**about, "evidence": evidence, "anchors": anchors},
        )
    )


def yardsticks(run: Run, a_day: int) -> list[Yardstick]:
    """Return what it takes to watch the judges that are not watched yet, at so many a day."""
    from judge_eval.stats.drift import yardstick

    if not a_day:
        return []
    watched = Watch.objects.filter(judge__run=run, ended_at=None)
    judges = watched_judges(run).exclude(pk__in=watched.values("judge"))
    anchors = min(voted_items(run).count(), MOST_ANCHORS)
    repeats = yardstick(a_day, anchors)
    most = services.cost_of_asking(run, dict.fromkeys(judges, repeats * anchors))
    return [Yardstick(judge, anchors, repeats, *most[judge]) for judge in most]


def set_anchors(run: Run, a_day: int, actor: User | None) -> None:
    """Ask about so many anchors again each day, of each judge; 0 is none.

    Judges that are not watched are from now on: their yardsticks are asked first.
    """
    if a_day and (obstacle := why_unwatched(run)):
        raise LifecycleRefused(obstacle)
    new = yardsticks(run, a_day)
    if a_day and not new and not Watch.objects.filter(judge__run=run, ended_at=None).exists():
        raise LifecycleRefused("Nobody has voted yet, so there is nothing to ask judges again.")
    items = voted_items(run).values_list("pk", flat=True)
    drawn = sorted(
        items, key=lambda item: keyed_number(settings.SECRET_KEY, "anchors", run.pk, item)
    )
    anchors = [str(item) for item in drawn[:MOST_ANCHORS]]
    with transaction.atomic():
        for first in new:
            fields = {"anchors": anchors, "repeats": first.repeats}
            # Somebody else may have pressed it too.
            Watch.objects.get_or_create(judge=first.judge, ended_at=None, defaults=fields)
        if run.anchors_a_day != a_day:
            Run.objects.filter(pk=run.pk).update(anchors_a_day=a_day)
            words = f"{run.name}: {number_of(a_day, 'anchor')} a day are asked again."
            note_change(run.queue.project, actor, words)
    run.anchors_a_day = a_day


def _change_in_words(watch: Watch) -> str:
    since = f"since about {watch.since:%-d %B %Y}"
    return f"{watch.judge.name} has changed: it is {watch.direction} {since}"


def state_of(watch: Watch) -> str:
    """Say what a watch has found."""
    name = watch.judge.name
    if watch.direction:
        return f"{_change_in_words(watch)}. What the board says of it is of its earlier answers."
    if watch.ended_at:
        ended = f"{watch.ended_at:%-d %B %Y}"
        return (
            f"The watch of {name} ended on {ended}: its yardstick is used up, and no change was "
            "found. Later ones are not looked for."
        )
    if watch.began_at is None:
        return f"{name} is not watched yet: its yardstick is being asked."
    return f"{name} is watched since {watch.began_at:%-d %B %Y}: no change is shown."


def watches_of(run: Run, judge: UUID | None = None) -> list[Watch]:
    """Return the watches of a run's judges, or of one: the last of each, and any with a change."""
    rows = Watch.objects.filter(judge__run=run).select_related("judge").defer("anchors")
    rows = rows.filter(judge=judge) if judge else rows
    watches = list(rows.order_by("judge__position", "pk"))
    last = {watch.judge_id: watch.pk for watch in watches}
    return [watch for watch in watches if watch.direction or last[watch.judge_id] == watch.pk]


def floating_models(run: Run) -> dict[UUID, str]:
    """Say of judges that what stands behind the name of their model may change, or has."""
    judges, names = list(run.judges.all()), defaultdict[tuple[str, str], set[str]](set)
    for judge in judges:
        names[judge.provider, judge.model].add(judge.reported_model)
    rows = Anchor.objects.filter(watch__judge__run=run).order_by().distinct()
    for provider, model, *reported in rows.values_list(
        "watch__judge__provider", "watch__judge__model", "stored_model", "answered_model"
    ):
        names[provider, model].update(reported)
    notes = {
        judge.pk: _names_warning(judge, sorted(names[judge.provider, judge.model] - {""}))
        for judge in judges
    }
    return {pk: note for pk, note in notes.items() if note}


def _names_warning(judge: Judge, reported: Sequence[str]) -> str:
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
        except AnswersMissing as asks:
            for question in chain.from_iterable(questions[model] for model in asks.models):
                _ask_one(question)
                calls.append(question.call)
        except (NoVerdict, HookFailed):
            return AnchorAnswer("", _model(judge, calls))


def _model(judge: Judge, calls: Sequence[Call]) -> str:
    """Return the model that has answered; of a judge of several its name says nothing."""
    return "" if judge.recipe else calls[0].reported_model


def _questions(verdict: Verdict) -> dict[JudgePart, list[ModelQuestion]]:
    """Return what each model may be asked, or raise CallFailed where not all can be asked now."""
    run, questions = verdict.judge.run, dict[JudgePart, list[ModelQuestion]]()
    for model in verdicts.spec_of(verdict.judge).models:
        provider = provider_access.find(model.provider, run.queue.project_id)
        # Repeats say whether a judge agrees with itself: here they would be paid for nothing.
        calls = [call for call in verdicts.calls_for(verdict, [model]) if not call.is_repeat]
        questions[model] = [question_of(call, provider) for call in calls]
        if obstacle := provider_access.lacks_key(questions[model][0].provider):
            raise CallFailed(obstacle, was_sent=False)
    if obstacle := _budget_obstacle(run, [*chain.from_iterable(questions.values())]):
        raise CallFailed(obstacle, was_sent=False)
    for model, model_questions in questions.items():
        _take_places(model_questions[0].provider, model.id, len(model_questions))
    return questions


def _budget_obstacle(run: Run, questions: Sequence[ModelQuestion]) -> str:
    if run.budget_nano is None:
        return ""
    if unpriced := {question.call.model for question in questions if question.lacks_price}:
        return provider_access.unpriced(*sorted(unpriced))
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


def _ask_one(question: ModelQuestion) -> None:
    """Make a call that is kept nowhere, and pay for it; what is unreadable is asked once more."""
    call, provider = question.call, question.provider
    try:
        endpoint = provider_access.endpoint_of(provider)
        answer = CallAnswer(question, protocols.ask(provider.protocol, endpoint, question.request))
    except CallFailed as failed:
        answer = CallAnswer(question, failure=failed)
    Run.objects.filter(pk=question.run.pk).update(spent_nano=F("spent_nano") + (answer.cost or 0))
    if (failure := answer.failure) and (failure.retryable or failure.status not in _OF_THE_ITEM):
        raise failure
    for name, value in fields_of(answer).items():
        setattr(call, name, value)
    if call.state == Call.State.WAITING:
        _ask_one(question_of(call, provider))
