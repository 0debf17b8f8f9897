"""Judge ratings, made of the ledger and of nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from judge_eval.models import Board, Judge, JudgeRating, RatingPoint, Run
from judge_eval.ratings.elo_fold import (
    CountedVote,
    Fold,
    Verdicts,
    as_history,
    by_position,
    latest_payloads,
    standings_before,
)
from judge_eval.stats import elo
from voting.choices import ANSWERS, VERDICTS
from voting.ledger.bulk_sql import executemany, key, update_many
from voting.ledger.counts import counted_in, counts, uncounts
from voting.ledger.entries import Fact
from voting.ledger.ledger import Difference
from voting.models import Comparison, Entry, Project


class JudgeElo:
    """Keeps JudgeRating, Board, RatingPoint, how many judges answered what on each comparison, and
    the history on the entries of votes.
    """

    def apply(self, project: Project, entries: Sequence[Fact]) -> Generator[None]:
        batches: dict[UUID, list[Fact]] = defaultdict(list)
        for entry in entries:
            queue = entry.target.queue_id if entry.target else entry.queue_id
            if queue:
                batches[queue].append(entry)
        runs = Run.every.filter(queue__in=batches).select_related("queue")
        parts = [_Batch(run, batches[run.queue_id]) for run in runs.order_by("pk")]
        for part in parts:
            part.read()
        yield
        for part in parts:
            part.count()
        yield
        for part in parts:
            part.write()

    def rebuild(self, project: Project, *, write: bool) -> list[Difference]:
        differences: list[Difference] = []
        runs = Run.every.filter(queue__project=project).select_related("queue")
        for run in runs.order_by("pk"):
            differences += _rebuild(run, write=write)
        return differences


class _Batch:
    """One run's part of a sealed batch."""

    def __init__(self, run: Run, entries: Sequence[Fact]) -> None:
        self.run = run
        self.entries = entries
        self.first_seq = entries[0].seq or 0
        self.is_simulated = run.queue.is_simulated
        self.votes = [
            entry
            for entry in entries
            if entry.comparison_id and counts(entry, is_simulated=self.is_simulated)
        ]
        self.new_verdicts = [e for e in entries if e.kind == Entry.Kind.VERDICTS]

    def read(self) -> None:
        """Learn how the ratings stood before these votes, and what judges say of their pairs."""
        self._cover()
        self.restart = self._restart()
        start = self.first_seq if self.restart is None else self.restart
        standings = standings_before(self.run.queue, start)
        self.fold = Fold(self.run, standings, self._new_verdicts_by_pair())
        if self.restart is not None:
            RatingPoint.objects.filter(run=self.run, votes__gt=standings.votes).delete()
            for changed in self.fold.recount(start):
                _write_histories(changed)
        self.fold.look_up(entry.comparison_id for entry in self.votes if entry.comparison_id)

    def count(self) -> None:
        for entry in self.votes:
            assert entry.comparison_id is not None  # self.votes are votes on pairs
            self.fold.count(entry.comparison_id, entry.choice)
            entry.history = as_history(self.fold.standings)

    def write(self) -> None:
        if self.votes or self.restart is not None:
            _write_ratings(self.run, self.fold.standings)
            _write_points(self.run, self.fold.points)
        unblinded = sum(e.kind == Entry.Kind.VOTE and _is_unblinded(e) for e in self.entries)
        unblinded -= sum(
            bool(e.target and _is_unblinded(e.target))
            for e in self.entries
            if e.kind == Entry.Kind.RETRACTION
        )
        board, _ = Board.objects.get_or_create(run=self.run)
        board.votes = self.fold.standings.votes
        board.unblinded += unblinded
        board.seq = self.entries[-1].seq or 0
        board.save()

    def _restart(self) -> int | None:
        """Return the earliest sealed vote whose part in the ratings has changed."""
        seqs = [
            entry.target.seq
            for entry in self.entries
            if uncounts(entry, self.first_seq, is_simulated=self.is_simulated) and entry.target
        ]
        if self.new_verdicts:
            first = (
                Entry.objects.filter(
                    counted_in(self.run.queue),
                    comparison__in=[e.comparison_id for e in self.new_verdicts],
                )
                .order_by("seq")
                .values_list("seq", flat=True)
                .first()
            )
            seqs.append(first)
        return min((seq for seq in seqs if seq is not None), default=None)

    def _new_verdicts_by_pair(self) -> dict[UUID, Verdicts]:
        return {
            entry.comparison_id: by_position(entry.payload)
            for entry in self.new_verdicts
            if entry.comparison_id
        }

    def _cover(self) -> None:
        if not self.new_verdicts:
            return
        known = latest_payloads(self.run, {e.comparison_id for e in self.new_verdicts})
        asked: Counter[str] = Counter()
        answered: Counter[str] = Counter()
        for entry in self.new_verdicts:
            assert entry.comparison_id is not None
            for payload, sign in ((known.get(entry.comparison_id), -1), (entry.payload, 1)):
                for item in (payload or {"verdicts": []})["verdicts"]:
                    asked[item["judge"]] += sign
                    answered[item["judge"]] += sign * (item["winner"] is not None)
            known[entry.comparison_id] = entry.payload
        executemany(
            "UPDATE judge_eval_judgerating SET asked = asked + %s, answered = answered + %s "
            "WHERE judge_id = %s",
            [(asked[judge], answered[judge], key(UUID(judge))) for judge in sorted(asked)],
        )
        _write_answers(_answers(self.run, known))


def _is_unblinded(vote: Fact) -> bool:
    """Say whether a person voted who had seen the verdicts; pretend votes need not be blind."""
    return vote.unblinded and not vote.simulated


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
    locked = Comparison.objects.select_for_update(no_key=True).filter(pk__in=answers)
    pairs = list(locked.order_by("pk").values_list("pk", flat=True))
    update_many(Comparison, ANSWERS, [(*answers[pair], key(pair)) for pair in pairs])


def _write_histories(changed: Sequence[tuple[CountedVote, str]]) -> None:
    update_many(Entry, ["history"], [(history, vote.pk) for vote, history in changed])


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


def _write_points(run: Run, points: Sequence[tuple[int, list[float]]]) -> None:
    RatingPoint.objects.bulk_create(
        [RatingPoint(run=run, votes=votes, ratings=ratings) for votes, ratings in points]
    )


def _rebuild(run: Run, *, write: bool) -> list[Difference]:
    payloads = latest_payloads(run, None)
    fold = Fold(run, elo.Standings(), {pair: by_position(p) for pair, p in payloads.items()})
    differences = []
    for changed in fold.recount(from_seq=0):
        differences += [
            Difference(f"history of entry {vote.seq}", vote.history, history)
            for vote, history in changed
        ]
        if write:
            _write_histories(changed)
    standings = fold.standings
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for payload in payloads.values():
        for item in payload["verdicts"]:
            asked[item["judge"]] += 1
            answered[item["judge"]] += item["winner"] is not None
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
    differences += _rebuild_answers(run, payloads, write=write)
    differences += _rebuild_board(run, standings.votes, write=write)
    return differences + _rebuild_points(run, fold.points, write=write)


def _rebuild_answers(run: Run, payloads: Mapping[UUID, Any], *, write: bool) -> list[Difference]:
    replayed = _answers(run, payloads)
    pairs = Comparison.objects.filter(queue=run.queue_id).values_list("pk", *ANSWERS)
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


def _rebuild_points(
    run: Run, points: Sequence[tuple[int, list[float]]], *, write: bool
) -> list[Difference]:
    stored = dict(RatingPoint.objects.filter(run=run).values_list("votes", "ratings"))
    if stored == dict(points):
        return []
    if write:
        RatingPoint.objects.filter(run=run).delete()
        _write_points(run, points)
    return [Difference(f"rating graph of run {run.pk}", len(stored), len(points))]
