"""The fold that makes ratings of votes: what it reads from the ledger, and how it counts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from judge_eval.models import Checkpoint, Run
from judge_eval.stats import elo
from voting.ledger.bulk_sql import prepared
from voting.ledger.counts import counted_in
from voting.models import Entry

split = cache(elo.split)
CHUNK = 1_000
# Standings are kept after so many votes, and after each batch.
CHECKPOINT_EVERY = 100

Verdicts = tuple[str | None, ...]


def by_position(payload: Any) -> Verdicts:
    """Return the winners of a `verdicts` entry in the run's order of judges, None for failures."""
    winners = {item["position"]: item["winner"] for item in payload["verdicts"]}
    return tuple(winners.get(position) for position in range(max(winners, default=-1) + 1))


@dataclass
class Fold:
    """Counts a run's votes one by one and remembers what has to be written."""

    run: Run
    standings: elo.Standings = field(default_factory=elo.Standings)
    # The entry behind which it begins, and the last that is counted.
    base: int = 0
    seq: int = 0
    verdicts: dict[UUID, Verdicts] = field(default_factory=dict)
    points: list[tuple[int, list[float]]] = field(default_factory=list)
    # By entry: the standings after it.
    checkpoints: dict[int, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def before(cls, run: Run, seq: int) -> Fold:
        """Begin with the last standings that are kept of before an entry."""
        kept = Checkpoint.objects.filter(run=run, seq__lt=seq).order_by("-seq").first()
        if kept is None:
            return cls(run)
        return cls(run, elo.Standings(**kept.standings), base=kept.seq, seq=kept.seq)

    def look_up(self, items: Iterable[UUID]) -> None:
        """Learn the verdicts on items, as far as they are not known yet."""
        unknown = set(items) - self.verdicts.keys()
        if unknown:
            self.verdicts |= latest_verdicts(self.run, unknown)

    def count(self, seq: int, item: UUID, choice: str) -> None:
        verdicts = self.verdicts.get(item, ())
        self.standings.apply(*split(choice, verdicts), judges=len(verdicts))
        self.seq, votes = seq, self.standings.votes
        if votes % elo.graph_stride(votes) == 0:
            self.points.append((votes, [round(rating, 2) for rating in self.standings.elo]))
        if votes % CHECKPOINT_EVERY == 0:
            self.keep()

    def keep(self) -> None:
        """Keep the standings as they are now."""
        if self.seq > self.base:
            self.checkpoints[self.seq] = asdict(self.standings)

    def count_stored(self, also_keep: Collection[int] = ()) -> None:
        """Count all sealed votes behind the last that is counted."""
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


def _sealed_verdicts(run: Run, items: Iterable[UUID | None] | None) -> QuerySet[Entry]:
    """Verdicts on items, of the whole run when None is given, the last ones last."""
    sealed = Entry.objects.filter(
        kind=Entry.Kind.VERDICTS, queue=run.queue_id, seq__isnull=False
    ).order_by("seq")
    return sealed if items is None else sealed.filter(item__in=items)


def latest_payloads(run: Run, items: Iterable[UUID | None] | None) -> dict[UUID, Any]:
    return dict(_sealed_verdicts(run, items).values_list("item_id", "payload"))


def latest_verdicts(run: Run, items: Iterable[UUID]) -> dict[UUID, Verdicts]:
    texts = _payload_texts(run, list(items))
    return {pair: _by_position_in(text) for pair, text in texts}


def _payload_texts(run: Run, items: list[UUID]) -> Iterable[tuple[UUID, str]]:
    if connection.vendor != "postgresql":
        sealed = _sealed_verdicts(run, items).annotate(text=Cast("payload", TextField()))
        return sealed.values_list("item_id", "text")
    # As above, for what is asked with each batch: a thousand keys in one array, planned once.
    with prepared() as cursor:
        cursor.execute(
            "SELECT item_id, payload::text FROM voting_entry WHERE kind = 'verdicts' "
            "AND queue_id = %s AND seq IS NOT NULL AND item_id = ANY(%b::uuid[]) "
            "ORDER BY seq",
            [run.queue_id, items],
        )
        return list(cursor.fetchall())


@lru_cache(maxsize=10_000)
def _by_position_in(payload: str) -> Verdicts:
    """Judges agree in few ways, so most payloads of a run are texts that were read before."""
    return by_position(json.loads(payload))
