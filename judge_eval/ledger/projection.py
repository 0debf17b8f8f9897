"""Judge ratings, made of the ledger and of nothing else."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from typing import Any, NotRequired, Self, TypedDict
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTextTransform

from humanjudge.core.strict_json import JsonObject
from judge_eval.models import Board, Checkpoint, Judge, JudgeRating, RatingPoint, Run
from judge_eval.stats import elo
from voting.items.choices import ANSWERS, VERDICTS
from voting.items.kinds import is_ordered, kind_of
from voting.ledger.bulk_sql import executemany, key, prepared, update_many
from voting.ledger.counts import UNBLINDED, counted_in, counts, uncounts
from voting.ledger.decisions import judges_left_out
from voting.ledger.groups import last_regrouping, regrouped_queues
from voting.ledger.ledger import Fact, Mismatch, Projection, correct, votes_decided_on
from voting.models import Entry, Item

CHUNK = 1_000
# Standings are kept after so many votes, and after each batch.
CHECKPOINT_EVERY = 100

Verdicts = tuple[str | None, ...]
split = cache(elo.split)


class SealedVerdict(TypedDict):
    judge: str
    position: int
    winner: str | None
    score: NotRequired[int | None]
    # By a judge that was tuned on votes of the run: it plays no game.
    tuned: NotRequired[bool]


class Payload(TypedDict):
    """What a `verdicts` entry holds, as far as ratings are made of it."""

    verdicts: list[SealedVerdict]


def untuned(payload: Payload) -> list[SealedVerdict]:
    return [verdict for verdict in payload["verdicts"] if not verdict.get("tuned")]


def by_position(payload: Payload) -> Verdicts:
    """Return the winners of a `verdicts` entry in the run's order of judges, None for failures."""
    winners = {item["position"]: item["winner"] for item in untuned(payload)}
    return tuple(winners.get(position) for position in range(max(winners, default=-1) + 1))


@lru_cache(maxsize=10_000)
def _by_position_in(verdicts: str) -> Verdicts:
    """Judges agree in few ways, so most verdicts of a run are texts that were read before."""
    return by_position({"verdicts": json.loads(verdicts)})


def _sealed_verdicts(run: Run) -> QuerySet[Entry]:
    sealed = Entry.objects.filter(kind=Entry.Kind.VERDICTS, queue=run.queue_id, seq__isnull=False)
    return sealed.order_by("seq")


def _latest(sealed: QuerySet[Entry]) -> dict[UUID, Payload]:
    rows: Any = sealed.values_list("item_id", "payload")
    return dict(rows)


def _verdict_texts(run: Run, items: list[UUID]) -> Iterable[tuple[UUID, str]]:
    if connection.vendor != "postgresql":
        sealed = _sealed_verdicts(run).filter(item__in=items)
        verdicts = KeyTextTransform("verdicts", "payload")
        return sealed.annotate(text=verdicts).values_list("item_id", "text")
    # For what is asked with each batch: a thousand keys in one array, planned once.
    with prepared() as cursor:
        cursor.execute(
            "SELECT item_id, payload->>'verdicts' FROM voting_entry WHERE kind = 'verdicts' "
            "AND queue_id = %s AND seq IS NOT NULL AND item_id = ANY(%b::uuid[]) "
            "ORDER BY seq",
            [run.queue_id, items],
        )
        return list(cursor.fetchall())


def _unrated(
    run: Run, judges: Sequence[Judge], requested: Collection[str], left_out: Collection[str]
) -> frozenset[int]:
    """Return the places of judges that play no game: for the others those left out are not there.

    Only judges that the ledger names count, so that a replay comes to the same ratings.
    """
    counting = [judge for judge in judges if str(judge.pk) not in left_out]
    named = {judge.position: judge.is_baseline for judge in counting if str(judge.pk) in requested}
    absent = {judge.position for judge in judges if str(judge.pk) in left_out}
    return frozenset(elo.unrated(named, are_ratings=is_ordered(run.queue))) | absent


def _left_out(run: Run, batch: Iterable[Fact] = ()) -> set[str]:
    """Return the judges that what stands of all decisions leaves out, those of a batch too."""
    sealed = Entry.objects.filter(
        kind=Entry.Kind.DECISION, queue=run.queue_id, item=None, voter=None, seq__isnull=False
    )
    new = [(e.payload, e.retracted_seq) for e in batch if e.kind == Entry.Kind.DECISION]
    return judges_left_out([*sealed.values_list("payload", "retracted_seq"), *new])


@dataclass
class Fold:
    """Counts a run's votes one by one and remembers what has to be written."""

    run: Run
    unrated: frozenset[int]
    standings: elo.Standings = field(default_factory=elo.Standings)
    # The entry behind which it begins, and the last that is counted.
    base: int = 0
    seq: int = 0
    verdicts: dict[UUID, Verdicts] = field(default_factory=dict)
    # The ratings after so many votes, and the standings after an entry.
    points: dict[int, list[float]] = field(default_factory=dict)
    checkpoints: dict[int, JsonObject] = field(default_factory=dict)

    @classmethod
    def before(cls, run: Run, unrated: frozenset[int], seq: int) -> Self:
        checkpoint = Checkpoint.objects.filter(run=run, seq__lt=seq).order_by("-seq").first()
        if checkpoint is None:
            return cls(run, unrated)
        standings, seq = elo.Standings(**checkpoint.standings), checkpoint.seq
        return cls(run, unrated, standings, base=seq, seq=seq)

    def look_up(self, items: Iterable[UUID]) -> None:
        if unknown := set(items) - self.verdicts.keys():
            texts = _verdict_texts(self.run, list(unknown))
            self.verdicts |= {item: _by_position_in(text) for item, text in texts}

    def count(self, seq: int, item: UUID, choice: str) -> None:
        verdicts = self.verdicts.get(item, ())
        self.standings.apply(*split(choice, verdicts), len(verdicts), self.unrated)
        self.seq, votes = seq, self.standings.votes
        if votes % elo.graph_stride(votes) == 0:
            self.points[votes] = [round(rating, 2) for rating in self.standings.elo]
        if votes % CHECKPOINT_EVERY == 0:
            self.keep()

    def keep(self) -> None:
        if self.seq > self.base:
            self.checkpoints[self.seq] = asdict(self.standings)

    def count_stored(self, also_keep: Collection[int] = ()) -> None:
        votes = Entry.objects.filter(
            counted_in(self.run.queue), queue=self.run.queue_id, item__isnull=False
        ).order_by("seq")
        columns = votes.values_list("seq", "item_id", "choice")
        while rows := list(columns.filter(seq__gt=self.seq)[:CHUNK]):
            self.look_up(item for _, item, _ in rows)
            for seq, item, choice in rows:
                self.count(seq or 0, item, choice)
                if seq in also_keep:
                    self.keep()
            # Behind a short chunk is nothing to ask for: most undos touch a few votes.
            if len(rows) < CHUNK:
                return

    def forget_after(self) -> None:
        """Remove what is stored of votes behind those that are counted."""
        Checkpoint.objects.filter(run=self.run, seq__gt=self.seq).delete()
        RatingPoint.objects.filter(run=self.run, votes__gt=self.standings.votes).delete()

    def store(self) -> None:
        RatingPoint.objects.bulk_create(
            RatingPoint(run=self.run, votes=votes, ratings=ratings)
            for votes, ratings in self.points.items()
        )
        Checkpoint.objects.bulk_create(
            Checkpoint(run=self.run, seq=seq, standings=standings)
            for seq, standings in self.checkpoints.items()
        )


class JudgeElo(Projection):
    """Keeps JudgeRating, Board, RatingPoint, Checkpoint, and how many judges answered what on each
    item.
    """

    def read(self, batch: Sequence[Fact]) -> None:
        batches: dict[UUID | None, list[Fact]] = defaultdict(list)
        for entry in batch:
            queue = entry.target.queue_id if entry.target else entry.queue_id
            for queue_id in {queue} if queue else regrouped_queues(self.project, entry, batch):
                batches[queue_id].append(entry)
        runs = Run.every.filter(queue__in=batches).select_related("queue").order_by("pk")
        self.parts = [_Batch(run, batches[run.queue_id]) for run in runs]

    def compute(self) -> None:
        for part in self.parts:
            part.compute()

    def write(self) -> None:
        for part in self.parts:
            part.write()

    def rebuild(self, *, write: bool) -> list[Mismatch]:
        runs = Run.every.filter(queue__project=self.project).select_related("queue").order_by("pk")
        return [difference for run in runs for difference in _rebuild(run, write=write)]


class _Batch:
    """One run's part of a sealed batch: how the ratings stood before, and what judges say."""

    def __init__(self, run: Run, entries: Sequence[Fact]) -> None:
        self.run, self.entries = run, entries
        is_simulated = run.queue.is_simulated
        self.votes = [
            (entry.seq or 0, entry.item_id, entry.choice)
            for entry in entries
            if entry.item_id and counts(entry, is_simulated=is_simulated)
        ]
        # The last of several on one item.
        self.payloads: dict[UUID, Payload] = {
            entry.item_id: entry.payload
            for entry in entries
            if entry.kind == Entry.Kind.VERDICTS and entry.item_id and entry.payload
        }
        self.has_decisions = any(entry.kind == Entry.Kind.DECISION for entry in entries)
        self.board, _ = Board.objects.get_or_create(run=run)
        self.judges = list(run.judges.select_related("rating").order_by("position"))
        self.requested, self.answered = _coverage(self.payloads.values())
        before = {str(judge.pk) for judge in self.judges if judge.rating.requested}
        out_before = {str(judge.pk) for judge in self.judges if judge.rating.is_left_out}
        self.left_out = _left_out(run, entries) if self.has_decisions else out_before
        self.leaves_others_out = self.left_out != out_before
        unrated = _unrated(run, self.judges, before | self.requested.keys(), self.left_out)
        has_other_players = unrated != _unrated(run, self.judges, before, out_before)
        changed = 1 if has_other_players else self._first_changed()
        self.fold = Fold.before(run, unrated, changed)
        self.fold.verdicts = {item: by_position(payload) for item, payload in self.payloads.items()}
        # Votes of earlier batches that are counted again, or for the first time.
        is_behind = self.fold.standings.votes != self.board.votes
        self.is_recounted = is_behind or changed < (entries[0].seq or 0)
        if self.is_recounted:
            self.fold.forget_after()
            self.fold.count_stored()
        self.fold.look_up(item for _, item, _ in self.votes)

    def _first_changed(self) -> int:
        """Return the earliest vote whose part in the ratings is new or has changed."""
        first, is_simulated = self.entries[0].seq or 0, self.run.queue.is_simulated
        seqs = [
            entry.target.seq
            for entry in self.entries
            if entry.target and uncounts(entry, first, is_simulated=is_simulated)
        ]
        if self.payloads or self.has_decisions:
            changed = votes_decided_on(self.entries) | Q(item__in=self.payloads)
            votes = Entry.objects.filter(changed, kind=Entry.Kind.VOTE, seq__isnull=False)
            seqs.append(votes.order_by("seq").values_list("seq", flat=True).first())
        return min([first, *filter(None, seqs)])

    def compute(self) -> None:
        for seq, item, choice in self.votes:
            self.fold.count(seq, item, choice)
        self.fold.keep()

    def write(self) -> None:
        if self.payloads:
            self._count_answers()
        if self.leaves_others_out:
            self._leave_out()
        standings = self.fold.standings
        if self.votes or self.is_recounted:
            standings.grow(len(self.judges))
            figures = zip(standings.elo, standings.agree, standings.disagree, strict=False)
            executemany(
                "UPDATE judge_eval_judgerating SET elo = %s, agree = %s, disagree = %s "
                "WHERE judge_id = %s",
                [(*row, key(judge.pk)) for judge, row in zip(self.judges, figures, strict=False)],
            )
            self.fold.store()
        self.board.votes = standings.votes
        self.board.unblinded = self._unblinded()
        self.board.seq = self.entries[-1].seq or 0
        self.board.save()

    def _unblinded(self) -> int:
        """Count the votes of people who had seen the verdicts; the batch is not stored yet."""
        if not self.has_decisions:
            return self.board.unblinded + sum(map(_unblinded, self.entries))
        sealed = Entry.objects.filter(UNBLINDED, queue=self.run.queue_id).count()
        new = (e for e in self.entries if e.kind == Entry.Kind.VOTE and e.retracted_seq is None)
        return sealed + sum(map(_unblinded, new))

    def _count_answers(self) -> None:
        before = _latest(_sealed_verdicts(self.run).filter(item__in=self.payloads))
        requested, answered = self.requested, self.answered
        for counter, counted in zip((requested, answered), _coverage(before.values()), strict=True):
            counter.subtract(counted)
        executemany(
            "UPDATE judge_eval_judgerating "
            "SET requested = requested + %s, answered = answered + %s WHERE judge_id = %s",
            [(requested[judge], answered[judge], key(UUID(judge))) for judge in sorted(requested)],
        )
        _write_answers(_answers(self.run, self.judges, self.payloads, self.left_out))

    def _leave_out(self) -> None:
        ratings, out = JudgeRating.objects.filter(judge__run=self.run), Q(judge__in=self.left_out)
        ratings.filter(out).update(is_left_out=True)
        ratings.filter(~out).update(is_left_out=False)
        payloads = _latest(_sealed_verdicts(self.run)) | self.payloads
        _write_answers(_answers(self.run, self.judges, payloads, self.left_out))


def _unblinded(entry: Fact) -> int:
    """Return by how much an entry changes the votes of people who had seen the verdicts."""
    vote = entry.target if entry.kind == Entry.Kind.RETRACTION else entry
    if vote is None or vote.kind != Entry.Kind.VOTE or not vote.unblinded:
        return 0
    if vote.simulated or vote.excluded:
        return 0
    return -1 if entry.kind == Entry.Kind.RETRACTION else 1


def _coverage(payloads: Iterable[Payload]) -> tuple[Counter[str], Counter[str]]:
    verdicts = [verdict for payload in payloads for verdict in untuned(payload)]
    requested = Counter(verdict["judge"] for verdict in verdicts)
    answered = Counter(verdict["judge"] for verdict in verdicts if verdict["winner"] is not None)
    return requested, answered


def _answers(
    run: Run,
    judges: Iterable[Judge],
    payloads: Mapping[UUID, Payload],
    left_out: Collection[str],
) -> dict[UUID, tuple[int, ...]]:
    """Count, as `ANSWERS` are, what judges say of items; people need not agree with baselines.

    Only pairs, and items that are passed or flagged, have columns for what may be said of them.
    """
    left_aside = {str(judge.pk) for judge in judges if judge.is_baseline} | {*left_out}
    answers = {}
    if not kind_of(run.queue).choices:
        return dict.fromkeys(payloads, (0,) * len(ANSWERS))
    for pair, payload in payloads.items():
        verdicts = untuned(payload)
        winners = [verdict["winner"] for verdict in verdicts if verdict["judge"] not in left_aside]
        answers[pair] = tuple(map(winners.count, VERDICTS))
    return answers


def _write_answers(answers: Mapping[UUID, Sequence[int]]) -> None:
    # Whoever opens pairs locks them by key, too: two such transactions must not meet crosswise.
    locked = Item.objects.select_for_update(no_key=True).filter(pk__in=answers).order_by("pk")
    pairs = locked.values_list("pk", flat=True)
    update_many(Item, ANSWERS, [(*answers[pair], key(pair)) for pair in pairs])


def _rebuild(run: Run, *, write: bool) -> Iterator[Mismatch]:
    payloads = _latest(_sealed_verdicts(run))
    stored = dict(Checkpoint.objects.filter(run=run).values_list("seq", "standings"))
    points = dict(RatingPoint.objects.filter(run=run).values_list("votes", "ratings"))
    judges, (requested, answered) = list(run.judges.all()), _coverage(payloads.values())
    left_out = _left_out(run)
    unrated = _unrated(run, judges, requested, left_out)
    fold = Fold(
        run, unrated, verdicts={item: by_position(payload) for item, payload in payloads.items()}
    )
    fold.count_stored(also_keep=stored)
    fold.keep()
    for seq in sorted(stored.keys() | fold.checkpoints.keys()):
        before, after = stored.get(seq), fold.checkpoints.get(seq)
        if before != after:
            yield Mismatch(f"standings after entry {seq}", before, after)
    if points != fold.points:
        yield Mismatch(f"rating graph of run {run.pk}", len(points), len(fold.points))
    if write and (stored, points) != (fold.checkpoints, fold.points):
        Fold(run, unrated).forget_after()
        fold.store()
    yield from _rebuild_ratings(run, fold.standings, requested, answered, left_out, write=write)
    answers, none = _answers(run, judges, payloads, left_out), (0,) * len(ANSWERS)
    pairs = Item.objects.filter(queue=run.queue_id).values_list("pk", *ANSWERS)
    wrong = {pk: tuple(n) for pk, *n in pairs if tuple(n) != answers.get(pk, none)}
    if write:
        _write_answers({pk: answers.get(pk, none) for pk in wrong})
    for pk, stored_answers in wrong.items():
        about = f"answers of judges on comparison {pk}"
        yield Mismatch(about, stored_answers, answers.get(pk, none))


def _rebuild_ratings(
    run: Run,
    standings: elo.Standings,
    requested: Counter[str],
    answered: Counter[str],
    left_out: Collection[str],
    *,
    write: bool,
) -> Iterator[Mismatch]:
    ratings = list(JudgeRating.objects.filter(judge__run=run).order_by("judge__position"))
    standings.grow(len(ratings))
    for place, rating in enumerate(ratings):
        judge = str(rating.judge_id)
        replayed = {
            "elo": standings.elo[place],
            "agree": standings.agree[place],
            "disagree": standings.disagree[place],
            "requested": requested[judge],
            "answered": answered[judge],
            "is_left_out": judge in left_out,
        }
        yield from correct(rating, f"judge {judge} of run {run.pk}", replayed, write=write)
    unblinded = Entry.objects.filter(UNBLINDED, queue=run.queue_id).count()
    is_of_run = Q(queue=run.queue_id) | Q(target__queue=run.queue_id)
    sealed = Entry.objects.filter(is_of_run, project=run.queue.project_id, seq__isnull=False)
    last = sealed.order_by("-seq").values_list("seq", flat=True).first() or 0
    last = max(last, last_regrouping(run.queue))
    board, _ = Board.objects.get_or_create(run=run)
    replayed = {"votes": standings.votes, "unblinded": unblinded, "seq": last}
    yield from correct(board, f"board of run {run.pk}", replayed, write=write)
