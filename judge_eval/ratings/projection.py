"""Judge ratings, made of the ledger and of nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from judge_eval.models import Board, Checkpoint, Judge, JudgeRating, RatingPoint, Run
from judge_eval.ratings.elo_fold import Fold, Verdicts, by_position, latest_payloads
from judge_eval.stats import elo
from voting.choices import ANSWERS, VERDICTS
from voting.ledger.bulk_sql import executemany, key, update_many
from voting.ledger.counts import counted_in, counts, uncounts
from voting.ledger.ledger import Difference
from voting.models import Entry, Item, Project


class JudgeElo:
    """Keeps JudgeRating, Board, RatingPoint, Checkpoint, and how many judges answered what on each
    item.
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def read(self, batch: Sequence[Entry]) -> None:
        batches: dict[UUID, list[Entry]] = defaultdict(list)
        for entry in batch:
            queue = entry.target.queue_id if entry.target else entry.queue_id
            if queue:
                batches[queue].append(entry)
        runs = Run.every.filter(queue__in=batches).select_related("queue").order_by("pk")
        self.parts = [_Batch(run, batches[run.queue_id]) for run in runs]

    def compute(self) -> None:
        for part in self.parts:
            part.compute()

    def write(self) -> None:
        for part in self.parts:
            part.write()

    def rebuild(self, *, write: bool) -> list[Difference]:
        runs = Run.every.filter(queue__project=self.project).select_related("queue")
        return [
            difference for run in runs.order_by("pk") for difference in _rebuild(run, write=write)
        ]


class _Batch:
    """One run's part of a sealed batch: how the ratings stood before, and what judges say."""

    def __init__(self, run: Run, entries: Sequence[Entry]) -> None:
        self.run, self.entries = run, entries
        self.first_seq = entries[0].seq or 0
        self.is_simulated = run.queue.is_simulated
        self.votes = [
            (entry.seq or 0, entry.item_id, entry.choice)
            for entry in entries
            if entry.item_id and counts(entry, is_simulated=self.is_simulated)
        ]
        self.new_verdicts = [e for e in entries if e.kind == Entry.Kind.VERDICTS]
        self.board, _ = Board.objects.get_or_create(run=run)
        self.fold = Fold.before(run, self._first_changed())
        self.fold.verdicts = self._new_verdicts_by_pair()
        # Votes that were counted before and are counted again.
        self.is_recounted = self.fold.standings.votes != self.board.votes
        if self.is_recounted:
            _forget_after(run, self.fold)
            self.fold.count_stored()
        self.fold.look_up(item for _, item, _ in self.votes)

    def compute(self) -> None:
        for seq, item, choice in self.votes:
            self.fold.count(seq, item, choice)
        self.fold.keep()

    def write(self) -> None:
        self._count_answers()
        if self.votes or self.is_recounted:
            _write_ratings(self.run, self.fold.standings)
            _remember(self.run, self.fold)
        self.board.votes = self.fold.standings.votes
        self.board.unblinded += sum(map(_unblinded, self.entries))
        self.board.seq = self.entries[-1].seq or 0
        self.board.save()

    def _first_changed(self) -> int:
        """Return the earliest vote whose part in the ratings is new or has changed."""
        seqs: list[int | None] = [self.first_seq]
        seqs += [
            entry.target.seq
            for entry in self.entries
            if uncounts(entry, self.first_seq, is_simulated=self.is_simulated) and entry.target
        ]
        if self.new_verdicts:
            first = (
                Entry.objects.filter(
                    counted_in(self.run.queue),
                    item__in=[e.item_id for e in self.new_verdicts],
                )
                .order_by("seq")
                .values_list("seq", flat=True)
                .first()
            )
            seqs.append(first)
        return min(seq for seq in seqs if seq is not None)

    def _new_verdicts_by_pair(self) -> dict[UUID, Verdicts]:
        return {
            entry.item_id: by_position(entry.payload)
            for entry in self.new_verdicts
            if entry.item_id
        }

    def _count_answers(self) -> None:
        if not self.new_verdicts:
            return
        known = latest_payloads(self.run, {e.item_id for e in self.new_verdicts})
        asked: Counter[str] = Counter()
        answered: Counter[str] = Counter()
        for entry in self.new_verdicts:
            assert entry.item_id is not None
            for payload, sign in ((known.get(entry.item_id), -1), (entry.payload, 1)):
                for item in (payload or {"verdicts": []})["verdicts"]:
                    asked[item["judge"]] += sign
                    answered[item["judge"]] += sign * (item["winner"] is not None)
            known[entry.item_id] = entry.payload
        executemany(
            "UPDATE judge_eval_judgerating SET asked = asked + %s, answered = answered + %s "
            "WHERE judge_id = %s",
            [(asked[judge], answered[judge], key(UUID(judge))) for judge in sorted(asked)],
        )
        _write_answers(_answers(self.run, known))


def _unblinded(entry: Entry) -> int:
    """Return by how much an entry changes the votes of people who had seen the verdicts."""
    vote = entry.target if entry.kind == Entry.Kind.RETRACTION else entry
    if vote is None or vote.kind != Entry.Kind.VOTE or not vote.unblinded or vote.simulated:
        return 0
    return -1 if entry.kind == Entry.Kind.RETRACTION else 1


def _answers(run: Run, payloads: Mapping[UUID, Any]) -> dict[UUID, tuple[int, ...]]:
    """Count, as `ANSWERS` are, what judges say of pairs; people need not agree with baselines."""
    baselines = run.judges.filter(provider=Judge.BASELINE).values_list("pk", flat=True)
    left_aside = set(map(str, baselines))
    answers = {}
    for pair, payload in payloads.items():
        said = [item["winner"] for item in payload["verdicts"] if item["judge"] not in left_aside]
        answers[pair] = tuple(map(said.count, VERDICTS))
    return answers


def _write_answers(answers: Mapping[UUID, Sequence[int]]) -> None:
    # Whoever opens pairs locks them by key, too: two such transactions must not meet crosswise.
    locked = Item.objects.select_for_update(no_key=True).filter(pk__in=answers)
    pairs = list(locked.order_by("pk").values_list("pk", flat=True))
    update_many(Item, ANSWERS, [(*answers[pair], key(pair)) for pair in pairs])


def _write_ratings(run: Run, standings: elo.Standings) -> None:
    judges = list(run.judges.order_by("position").values_list("pk", flat=True))
    standings.grow(len(judges))
    executemany(
        "UPDATE judge_eval_judgerating SET elo = %s, agree = %s, disagree = %s WHERE judge_id = %s",
        [
            (standings.elo[i], standings.agree[i], standings.disagree[i], key(judge))
            for i, judge in enumerate(judges)
        ],
    )


def _forget_after(run: Run, fold: Fold) -> None:
    """Remove what is kept of votes behind those that a fold has counted."""
    Checkpoint.objects.filter(run=run, seq__gt=fold.seq).delete()
    RatingPoint.objects.filter(run=run, votes__gt=fold.standings.votes).delete()


def _remember(run: Run, fold: Fold) -> None:
    RatingPoint.objects.bulk_create(
        RatingPoint(run=run, votes=votes, ratings=ratings) for votes, ratings in fold.points
    )
    Checkpoint.objects.bulk_create(
        Checkpoint(run=run, seq=seq, standings=kept) for seq, kept in fold.checkpoints.items()
    )


def _rebuild(run: Run, *, write: bool) -> list[Difference]:
    payloads = latest_payloads(run, None)
    checkpoints = dict(Checkpoint.objects.filter(run=run).values_list("seq", "standings"))
    fold = Fold(run, verdicts={pair: by_position(p) for pair, p in payloads.items()})
    fold.count_stored(also_keep=checkpoints)
    fold.keep()
    differences = _differing_checkpoints(checkpoints, fold.checkpoints)
    points = dict(RatingPoint.objects.filter(run=run).values_list("votes", "ratings"))
    if points != dict(fold.points):
        where = f"rating graph of run {run.pk}"
        differences.append(Difference(where, len(points), len(fold.points)))
    if differences and write:
        _forget_after(run, Fold(run))
        _remember(run, fold)
    differences += _rebuild_ratings(run, fold.standings, payloads, write=write)
    differences += _rebuild_answers(run, payloads, write=write)
    return differences + _rebuild_board(run, fold.standings.votes, write=write)


def _differing_checkpoints(
    stored: Mapping[int, object], replayed: Mapping[int, object]
) -> list[Difference]:
    return [
        Difference(f"standings after entry {seq}", stored.get(seq), replayed.get(seq))
        for seq in sorted(stored.keys() | replayed.keys())
        if stored.get(seq) != replayed.get(seq)
    ]


def _rebuild_ratings(
    run: Run, standings: elo.Standings, payloads: Mapping[UUID, Any], *, write: bool
) -> list[Difference]:
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for payload in payloads.values():
        for item in payload["verdicts"]:
            asked[item["judge"]] += 1
            answered[item["judge"]] += item["winner"] is not None
    differences = []
    ratings = list(JudgeRating.objects.filter(judge__run=run).order_by("judge__position"))
    standings.grow(len(ratings))
    for place, rating in enumerate(ratings):
        judge = str(rating.judge_id)
        replayed = {
            "elo": standings.elo[place],
            "agree": standings.agree[place],
            "disagree": standings.disagree[place],
            "asked": asked[judge],
            "answered": answered[judge],
        }
        differences += _correct(rating, f"judge {judge} of run {run.pk}", replayed, write=write)
    return differences


def _rebuild_answers(run: Run, payloads: Mapping[UUID, Any], *, write: bool) -> list[Difference]:
    replayed = _answers(run, payloads)
    pairs = Item.objects.filter(queue=run.queue_id).values_list("pk", *ANSWERS)
    none = (0,) * len(ANSWERS)
    wrong = {pk: tuple(said) for pk, *said in pairs if tuple(said) != replayed.get(pk, none)}
    if write:
        _write_answers({pk: replayed.get(pk, none) for pk in wrong})
    return [
        Difference(f"answers of judges on comparison {pk}", said, replayed.get(pk, none))
        for pk, said in wrong.items()
    ]


def _rebuild_board(run: Run, votes: int, *, write: bool) -> list[Difference]:
    board, _ = Board.objects.get_or_create(run=run)
    unblinded = Entry.objects.filter(
        kind=Entry.Kind.VOTE,
        queue=run.queue_id,
        seq__isnull=False,
        retracted_seq__isnull=True,
        unblinded=True,
        simulated=False,
    ).count()
    replayed = {"votes": votes, "unblinded": unblinded, "seq": _last_seq(run)}
    return _correct(board, f"board of run {run.pk}", replayed, write=write)


def _last_seq(run: Run) -> int:
    own = Q(queue=run.queue_id) | Q(target__queue=run.queue_id)
    sealed = Entry.objects.filter(own, project=run.queue.project_id, seq__isnull=False)
    return sealed.order_by("-seq").values_list("seq", flat=True).first() or 0


def _correct(
    row: JudgeRating | Board, where: str, replayed: Mapping[str, float], *, write: bool
) -> list[Difference]:
    differences = []
    for name, value in replayed.items():
        if getattr(row, name) != value:
            differences.append(Difference(f"{name} of {where}", getattr(row, name), value))
            setattr(row, name, value)
    if differences and write:
        row.save()
    return differences
