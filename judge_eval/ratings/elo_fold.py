"""The fold that makes ratings of votes: what it reads from the ledger, and how it counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from pydantic_core import from_json, to_json

from judge_eval.models import Run
from judge_eval.stats import elo
from voting.ledger.bulk_sql import Answer, asked, prepared
from voting.ledger.counts import counted_in
from voting.models import Entry, Queue

split = cache(elo.split)
# Few enough that PostgreSQL can hand them over while Python counts the ones before.
CHUNK = 1_000
_NOTHING = nullcontext(Answer())

Verdicts = tuple[str | None, ...]


class CountedVote(NamedTuple):
    """A sealed vote that counts."""

    pk: int
    seq: int
    comparison: UUID
    choice: str
    history: str | None = None


def as_history(standings: elo.Standings) -> str:
    """Return the standings after a vote as the entry keeps them: every entry is a checkpoint."""
    return to_json(vars(standings)).decode()


def is_history(text: str | None, standings: elo.Standings) -> bool:
    """Say whether a stored text says this, to the last bit, however it is written."""
    if text is None:
        return False
    try:
        said: object = from_json(text)
    except ValueError:  # for the database it is any text
        return False
    return said == vars(standings)


def from_history(history: str | None) -> elo.Standings:
    return elo.Standings(**from_json(history)) if history else elo.Standings()


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

    def look_up(self, comparisons: Iterable[UUID]) -> None:
        """Learn the verdicts on comparisons, as far as they are not known yet."""
        unknown = set(comparisons) - self.verdicts.keys()
        if unknown:
            self.verdicts |= latest_verdicts(self.run, unknown)

    def count(self, comparison: UUID, choice: str) -> None:
        verdicts = self.verdicts.get(comparison, ())
        self.standings.apply(*split(choice, verdicts), judges=len(verdicts))
        votes = self.standings.votes
        if votes % elo.graph_stride(votes) == 0:
            self.points.append((votes, [round(rating, 2) for rating in self.standings.elo]))

    def recount(self, from_seq: int) -> Iterator[list[tuple[CountedVote, str]]]:
        """Count stored votes again; yield, by chunks, those whose history must be another."""
        with _sealed_votes(self.run, from_seq) as found:
            pass
        while votes := [CountedVote(*row) for row in found.rows]:
            self.look_up(vote.comparison for vote in votes)
            # Behind a short chunk is nothing to ask for: most undos touch a few votes.
            is_full = len(votes) == CHUNK
            ahead = _sealed_votes(self.run, votes[-1].seq + 1) if is_full else _NOTHING
            with ahead as found:
                changed = self._count_again(votes)
            yield changed

    def _count_again(self, votes: Sequence[CountedVote]) -> list[tuple[CountedVote, str]]:
        changed = []
        for vote in votes:
            self.count(vote.comparison, vote.choice)
            if not is_history(vote.history, self.standings):
                changed.append((vote, as_history(self.standings)))
        return changed


def _sealed_verdicts(run: Run, comparisons: Iterable[UUID | None] | None) -> QuerySet[Entry]:
    """Verdicts on comparisons, of the whole run when None is given, the last ones last."""
    sealed = Entry.objects.filter(
        kind=Entry.Kind.VERDICTS, queue=run.queue_id, seq__isnull=False
    ).order_by("seq")
    return sealed if comparisons is None else sealed.filter(comparison__in=comparisons)


def latest_payloads(run: Run, comparisons: Iterable[UUID | None] | None) -> dict[UUID, Any]:
    return dict(_sealed_verdicts(run, comparisons).values_list("comparison_id", "payload"))


def latest_verdicts(run: Run, comparisons: Iterable[UUID]) -> dict[UUID, Verdicts]:
    return {pair: by_position_in(text) for pair, text in _payload_texts(run, list(comparisons))}


def _payload_texts(run: Run, comparisons: list[UUID]) -> Iterable[tuple[UUID, str]]:
    if connection.vendor != "postgresql":
        sealed = _sealed_verdicts(run, comparisons).annotate(text=Cast("payload", TextField()))
        return sealed.values_list("comparison_id", "text")
    # As above, for what is asked with each batch: a thousand keys in one array, planned once.
    with prepared() as cursor:
        cursor.execute(
            "SELECT comparison_id, payload::text FROM voting_entry WHERE kind = 'verdicts' "
            "AND queue_id = %s AND seq IS NOT NULL AND comparison_id = ANY(%b::uuid[]) "
            "ORDER BY seq",
            [run.queue_id, comparisons],
        )
        return list(cursor.fetchall())


@lru_cache(maxsize=10_000)
def by_position_in(payload: str) -> Verdicts:
    """Judges agree in few ways, so most payloads of a run are texts that were read before."""
    return by_position(json.loads(payload))


def _sealed_votes(run: Run, from_seq: int) -> AbstractContextManager[Answer]:
    """Ask for the next of the run's counted votes in the order of the ledger."""
    votes = Entry.objects.filter(
        counted_in(run.queue), queue=run.queue_id, comparison__isnull=False, seq__gte=from_seq
    )
    columns = votes.order_by("seq").values_list("pk", "seq", "comparison_id", "choice", "history")
    return asked(columns[:CHUNK])


def standings_before(queue: Queue, seq: int) -> elo.Standings:
    counted = counted_in(queue)
    history = (
        Entry.objects.filter(counted, queue=queue, seq__lt=seq, comparison__isnull=False)
        .order_by("-seq")
        .values_list("history", flat=True)
        .first()
    )
    return from_history(history)
