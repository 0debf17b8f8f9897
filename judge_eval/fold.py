"""The fold that makes ratings of votes: what it reads from the ledger, and how it counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from judge_eval import elo
from judge_eval.models import Run
from voting.models import Entry
from voting.projection import counted_in

split = cache(elo.split)
CHUNK = 20_000

Verdicts = tuple[str | None, ...]


class CountedVote(NamedTuple):
    """A sealed vote that counts, with its history as the text in the database."""

    pk: int
    seq: int
    comparison: UUID
    choice: str
    history: str | None = None


def as_history(standings: elo.Standings) -> str:
    """Return the standings after a vote as the entry keeps them: every entry is a checkpoint.

    JSON as PostgreSQL writes it, so that equal histories are equal texts. Made by hand, since one
    is made for each vote: Python writes a list of numbers as JSON does.
    """
    return (
        f'{{"elo": {standings.elo}, "agree": {standings.agree}, '
        f'"votes": {standings.votes}, "disagree": {standings.disagree}}}'
    )


def is_history(text: str | None, history: str) -> bool:
    """Say whether a stored text is this history, to the last bit."""
    return text == history or (text is not None and json.loads(text) == json.loads(history))


def from_history(history: dict[str, Any] | None) -> elo.Standings:
    return elo.Standings(**history) if history else elo.Standings()


def by_position(payload: Any) -> Verdicts:
    """Return the winners of a `verdicts` entry in the run's order of judges, None for failures."""
    winners = {item["position"]: item["winner"] for item in payload["verdicts"]}
    return tuple(winners.get(position) for position in range(max(winners, default=-1) + 1))


@dataclass
class Fold:
    """Counts a run's votes one by one and remembers what has to be written."""

    run: Run
    standings: elo.Standings
    verdicts: dict[UUID, Verdicts] = field(default_factory=dict)
    points: list[tuple[int, list[float]]] = field(default_factory=list)

    def look_up(self, comparisons: Iterable[UUID | None]) -> None:
        """Learn the verdicts on comparisons, as far as they are not known yet."""
        unknown = set(comparisons) - self.verdicts.keys()
        if unknown:
            self.verdicts |= latest_verdicts(self.run, unknown)

    def count(self, comparison: UUID, choice: str) -> str:
        verdicts = self.verdicts.get(comparison, ())
        self.standings.apply(*split(choice, verdicts), judges=len(verdicts))
        votes = self.standings.votes
        if votes % elo.graph_stride(votes) == 0:
            self.points.append((votes, [round(rating, 2) for rating in self.standings.elo]))
        return as_history(self.standings)

    def recount(self, from_seq: int) -> Iterator[list[tuple[CountedVote, str]]]:
        """Count stored votes again; yield, by chunks, those whose history must be another."""
        for votes in sealed_votes(self.run, from_seq):
            self.look_up(vote.comparison for vote in votes)
            counted = ((vote, self.count(vote.comparison, vote.choice)) for vote in votes)
            yield [
                (vote, history)
                for vote, history in counted
                if not is_history(vote.history, history)
            ]


def _sealed_verdicts(run: Run, comparisons: Iterable[UUID | None] | None) -> QuerySet[Entry]:
    """Verdicts on comparisons, of the whole run when None is given, the last ones last."""
    sealed = Entry.objects.filter(
        kind=Entry.Kind.VERDICTS, queue=run.queue_id, seq__isnull=False
    ).order_by("seq")
    return sealed if comparisons is None else sealed.filter(comparison__in=comparisons)


def latest_payloads(run: Run, comparisons: Iterable[UUID | None] | None) -> dict[UUID, Any]:
    return dict(_sealed_verdicts(run, comparisons).values_list("comparison_id", "payload"))


def latest_verdicts(run: Run, comparisons: Iterable[UUID | None]) -> dict[UUID, Verdicts]:
    texts = _sealed_verdicts(run, comparisons).annotate(text=Cast("payload", TextField()))
    return {
        comparison: by_position_in(text)
        for comparison, text in texts.values_list("comparison_id", "text")
    }


@lru_cache(maxsize=10_000)
def by_position_in(payload: str) -> Verdicts:
    """Judges agree in few ways, so most payloads of a run are texts that were read before."""
    return by_position(json.loads(payload))


def sealed_votes(run: Run, from_seq: int) -> Iterator[list[CountedVote]]:
    """Yield the run's counted votes in the order of the ledger, a chunk at a time."""
    counted = counted_in(run.queue)
    votes = Entry.objects.filter(counted, queue=run.queue_id, comparison__isnull=False)
    rows = votes.annotate(text=Cast("history", TextField())).order_by("seq")
    while True:
        chunk = [
            CountedVote(*row)  # type: ignore[arg-type]  # what is sealed has a number
            for row in rows.filter(seq__gte=from_seq).values_list(
                "pk", "seq", "comparison_id", "choice", "text"
            )[:CHUNK]
        ]
        yield chunk
        if len(chunk) < CHUNK:
            return
        from_seq = chunk[-1].seq + 1


def standings_before(run: Run, seq: int) -> elo.Standings:
    counted = counted_in(run.queue)
    history = (
        Entry.objects.filter(counted, queue=run.queue_id, seq__lt=seq, comparison__isnull=False)
        .order_by("-seq")
        .values_list("history", flat=True)
        .first()
    )
    return from_history(history)
