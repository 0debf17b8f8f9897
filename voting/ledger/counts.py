"""How many votes that count each item has, and for what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q

from voting.kinds import COMPARISON
from voting.ledger.bulk_sql import add_many, key
from voting.ledger.entries import Fact
from voting.ledger.ledger import Difference
from voting.models import Entry, Item, Project, Queue
from voting.order import FRESH

# Votes that judges are measured by: sealed, standing, and of their queue's own kind, which is
# blind votes of people or, in a queue that holds nothing else, pretend votes. Nobody looks at a
# verdict to make up a vote, so the latter need not be blind.
_STANDING = Q(kind=Entry.Kind.VOTE, seq__isnull=False, retracted_seq__isnull=True)
_PEOPLES = _STANDING & Q(simulated=False, unblinded=False)
_PRETEND = _STANDING & Q(simulated=True)
COUNTED = _PEOPLES & Q(queue__is_simulated=False) | _PRETEND & Q(queue__is_simulated=True)

_CHANGED = ("queue_id", "votes", "votes_wanted", "prompt_key", "turn")
TALLY = COMPARISON.tally


def counted_in(queue: Queue) -> Q:
    """Return `COUNTED` for the entries of one queue: without a join, they are read by an index."""
    return _PRETEND if queue.is_simulated else _PEOPLES


def counts(entry: Fact, *, is_simulated: bool) -> bool:
    """Say of a numbered entry what `COUNTED` says of a row; the flag is its queue's."""
    return (
        entry.kind == Entry.Kind.VOTE
        and entry.retracted_seq is None
        and _is_of_its_kind(entry, is_simulated)
    )


def uncounts(entry: Fact, first_seq: int, *, is_simulated: bool) -> bool:
    """Say whether this retraction takes back a vote that an earlier batch has counted."""
    target = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    return (
        target is not None
        and target.seq is not None
        and target.seq < first_seq
        and _is_of_its_kind(target, is_simulated)
    )


def _is_of_its_kind(vote: Fact, is_simulated: bool) -> bool:
    return vote.simulated if is_simulated else not (vote.simulated or vote.unblinded)


class VoteCounts:
    """Keeps the counts of votes on `Item`, its turn, and `Queue.done`: how many are done."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def read(self, batch: Sequence[Fact]) -> None:
        self.batch, self.first_seq = batch, batch[0].seq or 0
        self.pretend = _simulated_queues(batch)

    def compute(self) -> None:
        change: dict[UUID, list[int]] = defaultdict(lambda: [0] * len(TALLY))
        for entry in self.batch:
            vote = entry.target or entry
            is_simulated = vote.queue_id in self.pretend
            if entry.item_id and counts(entry, is_simulated=is_simulated):
                _add(change[entry.item_id], 1, entry.choice, entry.left_side)
            elif vote.item_id and uncounts(entry, self.first_seq, is_simulated=is_simulated):
                _add(change[vote.item_id], -1, vote.choice, vote.left_side)
        self.rows = [(*by, key(pk)) for pk, by in change.items() if any(by)]

    def write(self) -> None:
        counted = add_many(Item, TALLY, self.rows, _CHANGED)
        _count_done(self.rows, counted)
        _begin_prompts(counted, self.first_seq)

    def rebuild(self, *, write: bool) -> list[Difference]:
        project = self.project
        tallies: dict[UUID, list[int]] = defaultdict(lambda: [0] * len(TALLY))
        counted = Entry.objects.filter(COUNTED, project=project, item__isnull=False)
        kinds = counted.values_list("item", "choice", "left_side").annotate(Count("pk"))
        for item, choice, left, votes in kinds:
            assert item is not None  # filtered
            _add(tallies[item], votes, choice, left)
        differences = []
        done: Counter[UUID] = Counter()
        for item in Item.objects.filter(queue__project=project):
            tally = tallies[item.pk]
            done[item.queue_id] += tally[0] >= item.votes_wanted
            replayed = dict(zip(TALLY, tally, strict=True))
            wrong = {n: votes for n, votes in replayed.items() if getattr(item, n) != votes}
            for name, votes in wrong.items():
                where = f"{name} of comparison {item.pk}"
                differences.append(Difference(where, getattr(item, name), votes))
            if wrong and write:
                Item.objects.filter(pk=item.pk).update(**wrong)
        for queue in Queue.objects.filter(project=project):
            if queue.done != done[queue.pk]:
                where = f"comparisons done of queue {queue.pk}"
                differences.append(Difference(where, queue.done, done[queue.pk]))
                if write:
                    Queue.objects.filter(pk=queue.pk).update(done=done[queue.pk])
        return differences


@cache
def _places(choice: str, left_side: str) -> tuple[int, ...]:
    """Return which counts of `TALLY` a vote is counted in."""
    return tuple(map(TALLY.index, COMPARISON.counted_in(choice, left_side)))


def _add(tally: list[int], votes: int, choice: str, left_side: str) -> None:
    for place in _places(choice, left_side):
        tally[place] += votes


def _simulated_queues(entries: Sequence[Fact]) -> set[UUID]:
    queues = {(entry.target or entry).queue_id for entry in entries}
    simulated = Queue.objects.filter(pk__in=[pk for pk in queues if pk], is_simulated=True)
    return set(simulated.values_list("pk", flat=True))


def _count_done(added: Sequence[tuple[Any, ...]], counted: Sequence[tuple[Any, ...]]) -> None:
    """Count the items that are done by what was added to their votes, or are not any more."""
    votes_added = {pk: votes for votes, *_, pk in added}
    done: Counter[UUID] = Counter()
    for pk, queue, votes, wanted, *_ in counted:
        done[queue] += (votes >= wanted) - (votes - votes_added[pk] >= wanted)
    for queue, by in done.items():
        if by:
            Queue.objects.filter(pk=queue).update(done=F("done") + by)


def _begin_prompts(counted: Sequence[tuple[Any, ...]], seq: int) -> None:
    """Hand out what is left of prompts that were voted on before those that nobody has begun."""
    begun: dict[UUID, set[str]] = defaultdict(set)
    for _, queue, _, _, prompt, turn in counted:
        if turn >= FRESH:
            begun[queue].add(prompt)
    for queue, prompts in begun.items():
        waiting = Item.objects.filter(queue=queue, prompt_key__in=prompts, turn__gte=FRESH)
        waiting.filter(votes__lt=F("votes_wanted")).update(turn=seq)
