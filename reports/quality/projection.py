"""The quality scores of a project, made of the ledger and of nothing else."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from math import isclose
from typing import Any, Final, Self, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, Field, Func, OuterRef, Q, QuerySet

from humanjudge.core.charts.time_graph import Point
from humanjudge.core.strict_json import JsonObject
from judge_eval.models import Import
from judge_eval.stats.elo import graph_stride
from reports.models import FOLDED_VOTES, Quality, QualityPoint
from reports.quality.parameters import (
    REPUTATIONS,
    is_settings,
    parameters_of,
    reputations_in,
    settings_of,
)
from reports.quality.score import FoldState, Rule, WeightedVote, folding, microseconds, time_of
from reports.webhooks.services import score_changed
from voting.items.choices import MILLION, quality_of
from voting.ledger.counts import OF_PEOPLE, is_of_people
from voting.ledger.decisions import IMPORT_BEGINS, IMPORT_ENDS
from voting.ledger.ledger import Fact, Mismatch, Projection, locked, votes_decided_on
from voting.models import Entry, Project, Queue, Voter

CHUNK: Final = 10_000
# The fold can go on from its standing behind every so many votes: a power of two, as the steps
# of a chart are.
CHECKPOINT_EVERY: Final = 128
SERIES: Final[dict[str, str]] = {
    Queue.Kind.COMPARISON: Quality.Series.PAIRS,
    Queue.Kind.PASS_FLAG: Quality.Series.ITEMS,
}
_KINDS: Final = {series: kind for kind, series in SERIES.items()}
# Where a vote stands in the order in which votes are folded: its time in microseconds, its number.
Place: TypeAlias = tuple[int, int]
START: Final[Place] = (microseconds(datetime.min.replace(tzinfo=UTC)), 0)


def is_kept(votes: int) -> bool:
    """Say whether the standing behind so many votes is kept; it depends on their number alone."""
    return votes % _step(votes) == 0


def kept_numbers(votes: int) -> Iterator[int]:
    """Return behind which of so many votes the standing is kept.

    Examples
    --------
    >>> list(kept_numbers(1000))[125:131]
    [126, 127, 128, 130, 132, 134]
    """
    number = 1
    while number <= votes:
        yield number
        number += _step(number + 1)


def _step(votes: int) -> int:
    return min(graph_stride(votes), CHECKPOINT_EVERY)


@dataclass(frozen=True)
class Settings:
    """By what rule a project's votes are folded, and the reputations that replace sealed ones."""

    rule: Rule
    # By voter, for votes sealed before that entry.
    reputations: Mapping[UUID, int]
    before: int

    @classmethod
    def read(cls, project: Project, batch: Sequence[Fact] = ()) -> Self:
        """Read what holds behind a batch that is being sealed, or behind all that is sealed."""
        rule = parameters_of(project, batch).rule(project)
        facts = [e for e in batch if is_settings(e) and REPUTATIONS in (e.payload or {})]
        before = settings_of(project).filter(seq__isnull=False, payload__has_key=REPUTATIONS)
        last: Any = facts[-1] if facts else before.first()
        if last is None:
            return cls(rule, {}, 0)
        by_name = reputations_in(last.payload)
        voters = Voter.objects.filter(project=project, pseudonym__in=by_name)
        reputations = {pk: by_name[name] for pk, name in voters.values_list("pk", "pseudonym")}
        return cls(rule, reputations, last.seq)

    def vote(
        self,
        cast_at: int,
        seq: int,
        choice: str,
        value: int | None,
        reputation: int | None,
        voter: UUID | None,
    ) -> WeightedVote:
        if seq < self.before and voter:
            reputation = self.reputations.get(voter, reputation)
        weight = 1.0 if reputation is None else reputation / MILLION
        return WeightedVote(cast_at, seq, quality_of(choice, value) or 0.0, weight)

    def vote_of(self, entry: Fact) -> WeightedVote:
        numbered = microseconds(entry.at), entry.seq or 0, entry.choice, entry.value
        return self.vote(*numbered, entry.reputation, entry.voter_id)


class Microseconds(Func):
    """A time as `microseconds` gives it: a million of them are read in a third of the time."""

    # Of no type: what the database sends is an integer, and is taken as it is.
    output_field = Field()
    template = "(EXTRACT(EPOCH FROM %(expressions)s) * 1000000)::bigint"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Of the seconds alone: the database would round their fraction.
        seconds = "strftime('%%%%s', substr(%(expressions)s, 1, 19)) * 1000000"
        rest = "CAST(substr(substr(%(expressions)s, 21) || '000000', 1, 6) AS integer)"
        return self.as_sql(compiler, connection, template=f"({seconds} + {rest})", **context)


def rows_behind(cast_at: int, seq: int) -> Q:
    """Say of rows with a time and a number that they stand behind a place."""
    # The first part alone finds them in an index.
    time = time_of(cast_at)
    return Q(at__gte=time) & (Q(at__gt=time) | Q(seq__gt=seq))


def votes_in_time(project: Project, series: str) -> QuerySet[Entry]:
    """Return the votes of a series that are sealed and stand, in the order of their own times."""
    votes = Entry.objects.filter(OF_PEOPLE, project=project, queue__kind=_KINDS[series])
    return votes.order_by("at", "seq")


def start_of(project: Project, series: str) -> datetime:
    """Return from when the start value decays: the project's creation, or an older vote."""
    first = votes_in_time(project, series).values_list("at", flat=True).first()
    return min(first or project.created_at, project.created_at)


def stored_votes(
    project: Project, series: str, settings: Settings, after: FoldState
) -> Iterator[WeightedVote]:
    """Read votes chunk by chunk, from behind those that a fold has counted."""
    votes = votes_in_time(project, series)
    columns: Any = votes.values_list(
        Microseconds("at"), "seq", "choice", "value", "reputation", "voter_id"
    )
    cast_at, seq = after.place if after.votes else START
    while rows := list(columns.filter(rows_behind(cast_at, seq))[:CHUNK]):
        for row in rows:
            yield settings.vote(*row)
        cast_at, seq = rows[-1][:2]
        if len(rows) < CHUNK:
            return


class QualityScore(Projection):
    """Keeps `Quality` and `QualityPoint`, for single items and for pairs."""

    def read(self, batch: Sequence[Fact]) -> None:
        self.parts: list[_Part] = []
        if all(entry.kind == Entry.Kind.VERDICTS for entry in batch):
            return  # what judges say changes no score of what people say
        settings, first_seq = Settings.read(self.project, batch), batch[0].seq or 0
        queues = {queue for entry in batch if (queue := (entry.target or entry).queue_id)}
        kinds = Queue.objects.filter(pk__in=queues, kind__in=SERIES).values_list("pk", "kind")
        series_of: dict[UUID | None, str] = {pk: SERIES[kind] for pk, kind in kinds}
        new: dict[str, list[WeightedVote]] = defaultdict(list)
        changed: dict[str, list[Place]] = defaultdict(list)
        for entry in batch:
            series = series_of.get((entry.target or entry).queue_id)
            if series and is_of_people(entry):
                new[series].append(settings.vote_of(entry))
            elif series and (place := _retracted_place(entry, first_seq)):
                changed[series].append(place)
        for series, place in self._changed_votes(batch):
            changed[series].append(place)
        touched = {*new, *changed}
        if any(entry.payload == IMPORT_ENDS for entry in batch):
            touched |= set(self.project.qualities.values_list("series", flat=True))
        is_importing = partial(_is_importing, self.project, batch)
        self.parts = [
            _Part(
                self.project, series, settings, sorted(new[series]), changed[series], is_importing
            )
            for series in sorted(touched)
        ]

    def _changed_votes(self, batch: Sequence[Fact]) -> Iterator[tuple[str, Place]]:
        """Tell the votes that curators decided on, and all of them where settings change."""
        votes = Entry.objects.filter(votes_decided_on(batch), kind=Entry.Kind.VOTE)
        sealed = votes.filter(seq__isnull=False, queue__kind__in=SERIES)
        for kind, cast_at, seq in sealed.values_list("queue__kind", "at", "seq"):
            yield SERIES[kind], (microseconds(cast_at), seq or 0)
        if any(map(is_settings, batch)):
            for series in self.project.qualities.values_list("series", flat=True):
                yield series, START

    def compute(self) -> None:
        for part in self.parts:
            part.count()

    def write(self) -> None:
        for part in self.parts:
            part.write()

    def rebuild(self, *, write: bool) -> Iterator[Mismatch]:
        settings = Settings.read(self.project)
        for series in Quality.Series.values:
            yield from _rebuild(self.project, series, settings, write=write)


def _retracted_place(entry: Fact, first_seq: int) -> Place | None:
    """Return the place of the vote that an entry takes back, if an earlier batch has counted it."""
    vote = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    if vote is None or vote.seq is None or vote.seq >= first_seq or vote.simulated:
        return None
    return microseconds(vote.at), vote.seq


def _imports_into(project: UUID | OuterRef) -> QuerySet[Import]:
    """Return the imports that are writing to a project; a bundle does not name its own."""
    return Import.objects.filter(Q(project=project) | Q(is_bundle=True), state=Import.State.WRITING)


def _is_importing(project: Project, batch: Sequence[Fact] = ()) -> bool:
    """Say whether an import brings votes, more of which follow a batch that is being sealed."""
    payloads = [e.payload for e in batch if e.payload in (IMPORT_BEGINS, IMPORT_ENDS)]
    changes = Entry.objects.filter(project=project, kind=Entry.Kind.PARAMETERS, seq__isnull=False)
    changes = changes.filter(payload__has_key="import").order_by("-seq")
    last = payloads[-1] if payloads else changes.values_list("payload", flat=True).first()
    return last == IMPORT_BEGINS and _imports_into(project.pk).exists()


def _is_behind(quality: Quality) -> bool:
    """Say whether the fold was taken back and has not gone on yet."""
    return bool(quality.votes != quality.standing["votes"])


def fold_left_behind() -> None:
    """Count the votes of imports that failed."""
    left = Quality.objects.exclude(votes=FOLDED_VOTES)
    for project, series in left.filter(~Exists(_imports_into(OuterRef("project")))).values_list(
        "project", "series"
    ):
        with transaction.atomic():
            locked_project = locked(project)
            settings = Settings.read(locked_project)
            part = _Part(locked_project, series, settings, [], [], lambda: False)
            part.write()


class _Part:
    """One series of a sealed batch: from where the fold goes on, and over which votes.

    An import brings its votes in any order, a batch at a time. From the first one that stands
    before votes that were counted, the fold waits for the import's end, and is done once.
    """

    def __init__(
        self,
        project: Project,
        series: str,
        settings: Settings,
        new: Sequence[WeightedVote],
        changed: Sequence[Place],
        is_importing: Callable[[], bool],
    ) -> None:
        self.rule, self.votes, self.points = settings.rule, iter(new), list[FoldState]()
        start = FoldState(self.rule.initial)
        self.quality, _ = Quality.objects.get_or_create(
            project=project, series=series, defaults=figures_of(start)
        )
        self.state = FoldState(**self.quality.standing)
        first = min([*changed, *(vote[:2] for vote in new[:1])], default=self.state.place)
        is_late = bool(changed) or (self.state.votes > 0 and first < self.state.place)
        self.waits = False
        if is_late or _is_behind(self.quality):
            # Votes that were counted before are counted again, in the order of their times.
            if is_late:
                self.state = self._rewind_before(first) or start
            self.waits = is_importing()
            stored = stored_votes(project, series, settings, self.state)
            self.votes = iter(()) if self.waits else merge(stored, new)
            self.count()

    def _rewind_before(self, place: Place) -> FoldState | None:
        """Return the last standing before a place, and forget the points behind it."""
        points, cast_at = self.quality.points.all(), time_of(place[0])
        before = points.filter(Q(at__lt=cast_at) | Q(at=cast_at, seq__lt=place[1]))
        last = before.order_by("-at", "-seq").first()
        state = FoldState(**last.standing) if last else None
        points.filter(rows_behind(*(state.place if state else START))).delete()
        return state

    def count(self) -> None:
        count = folding(self.rule)
        for vote in self.votes:
            count(self.state, vote)
            if is_kept(self.state.votes):
                self.points.append(copy(self.state))

    def write(self) -> None:
        figures, before = figures_of(self.state), (self.quality.votes, self.quality.score)
        for name in ("standing",) if self.waits else figures:
            setattr(self.quality, name, figures[name])
        self.quality.save()
        store_points(self.quality, self.points)
        # Before a vote has counted, there is no score that could cross a line.
        if before[0] and self.quality.votes and before[1] != self.quality.score:
            score_changed(self.quality, before[1], self.state.seq)


def figures_of(state: FoldState) -> JsonObject:
    """Return the columns of `Quality` behind so many votes."""
    return {
        "score": state.score,
        "freshness": state.freshness,
        "votes": state.votes,
        "passes": state.passes,
        "last_vote_at": time_of(state.at) if state.votes else None,
        "standing": asdict(state),
    }


def store_points(quality: Quality, standings: Iterable[FoldState]) -> None:
    QualityPoint.objects.bulk_create(
        QualityPoint(
            quality=quality,
            at=time_of(state.at),
            seq=state.seq,
            votes=state.votes,
            standing=asdict(state),
        )
        for state in standings
    )


def history(quality: Quality) -> list[FoldState]:
    """Return where the fold stood behind each vote, or behind every so many, and at last."""
    stride = graph_stride(quality.votes)
    points = quality.points.alias(rest=F("votes") % stride).filter(rest=0).order_by("votes")
    standings = [*points.values_list("standing", flat=True)]
    if quality.votes % stride:
        standings.append(quality.standing)
    return [FoldState(**state) for state in standings]


def points_of(quality: Quality) -> list[Point]:
    return [
        Point(time_of(state.at), state.score, state.freshness, state.votes, state.passes)
        for state in history(quality)
    ]


# --- replay -------------------------------------------------------------------------------------


def _rebuild(
    project: Project, series: str, settings: Settings, *, write: bool
) -> Iterator[Mismatch]:
    quality = Quality.objects.filter(project=project, series=series).first()
    if quality and not write and _is_behind(quality) and _is_importing(project):
        return
    last, points = _replayed(project, series, settings)
    if quality is None and not last.votes:
        return
    place, replayed = f"quality of {series} of project {project.pk}", figures_of(last)
    stored = {name: getattr(quality, name, None) for name in replayed}
    differences = [
        Mismatch(f"{name} in {place}", stored[name], figure)
        for name, figure in replayed.items()
        if not same(stored[name], figure)
    ]
    stored_points = dict(quality.points.values_list("votes", "standing")) if quality else {}
    expected = {state.votes: asdict(state) for state in points}
    differences += [
        Mismatch(
            f"standing after vote {votes} in {place}", stored_points.get(votes), expected.get(votes)
        )
        for votes in sorted(stored_points.keys() | expected.keys())
        if not same(stored_points.get(votes), expected.get(votes))
    ]
    yield from differences
    if differences and write:
        quality, _ = Quality.objects.update_or_create(
            project=project, series=series, defaults=replayed
        )
        quality.points.all().delete()
        store_points(quality, points)


def _replayed(
    project: Project, series: str, settings: Settings
) -> tuple[FoldState, list[FoldState]]:
    """Return where the fold stands at last, and wherever that is kept, by the closed form."""
    # A process that only seals votes goes without these.
    import numpy as np

    from reports.quality.closed_form import course

    start = FoldState(settings.rule.initial)
    columns = [("at", "i8"), ("seq", "i8"), ("worth", "f8"), ("reputation", "f8")]
    votes = np.fromiter(stored_votes(project, series, settings, start), dtype=columns)
    if not len(votes):
        return start, []
    folds = course(votes["at"], votes["seq"], votes["worth"], votes["reputation"], settings.rule)
    points = [folds.state_after(number) for number in kept_numbers(len(votes))]
    return folds.state_after(len(votes)), points


def same(stored: object, replayed: object) -> bool:
    """Say whether figures are the same: floats to 1e-9, everything else exactly.

    Examples
    --------
    >>> same({"score": 0.5, "votes": 2}, {"score": 0.5 + 1e-12, "votes": 2}), same(1, 2)
    (True, False)
    """
    if isinstance(stored, dict) and isinstance(replayed, dict):
        names = stored.keys() | replayed.keys()
        return all(same(stored.get(name), replayed.get(name)) for name in names)
    if isinstance(stored, float) and isinstance(replayed, float):
        return isclose(stored, replayed, rel_tol=1e-9, abs_tol=1e-9)
    return stored == replayed
