"""How many votes that count each item has, and for what."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from uuid import UUID

from django.db.models import Count, F, Q

from voting.kinds import COMPARISON
from voting.ledger.bulk_sql import key, update_many
from voting.ledger.ledger import Difference, Fact, correct
from voting.models import Entry, Item, Project, Queue
from voting.order import FRESH

# Votes that judges are measured by: sealed, standing, and of their queue's own kind, which is
# blind votes of people or, in a queue that holds nothing else, pretend votes. Nobody looks at a
# verdict to make up a vote, so the latter need not be blind.
_STANDING = Q(kind=Entry.Kind.VOTE, seq__isnull=False, retracted_seq__isnull=True)
_PEOPLES = _STANDING & Q(simulated=False, unblinded=False)
_PRETEND = _STANDING & Q(simulated=True)
# A quality score asks what people think of outputs, not who judges well: a vote need not be blind.
OF_PEOPLE = _STANDING & Q(simulated=False)
COUNTED = _PEOPLES & Q(queue__is_simulated=False) | _PRETEND & Q(queue__is_simulated=True)

TALLY = COMPARISON.tally


def counted_in(queue: Queue) -> Q:
    """Return `COUNTED` for the entries of one queue: without a join, they are read by an index."""
    return _PRETEND if queue.is_simulated else _PEOPLES


def counts(entry: Fact, *, is_simulated: bool) -> bool:
    """Say of a numbered entry what `COUNTED` says of a row; the flag is its queue's."""
    return _stands(entry) and _is_of_its_kind(entry, is_simulated)


def is_of_people(entry: Fact) -> bool:
    """Say of a numbered entry what `OF_PEOPLE` says of a row."""
    return _stands(entry) and not entry.simulated


def _stands(entry: Fact) -> bool:
    return entry.kind == Entry.Kind.VOTE and entry.retracted_seq is None


def uncounts(entry: Fact, first_seq: int, *, is_simulated: bool) -> bool:
    """Say whether this retraction takes back a vote that an earlier batch has counted."""
    target = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    is_earlier = target is not None and target.seq is not None and target.seq < first_seq
    return is_earlier and target is not None and _is_of_its_kind(target, is_simulated)


def _is_of_its_kind(vote: Fact, is_simulated: bool) -> bool:
    return vote.simulated if is_simulated else not (vote.simulated or vote.unblinded)


@cache
def _places(choice: str, left_side: str) -> tuple[int, ...]:
    return tuple(map(TALLY.index, COMPARISON.counted_in(choice, left_side)))


def _add(tally: list[int], votes: int, choice: str, left_side: str) -> None:
    for place in _places(choice, left_side):
        tally[place] += votes


class VoteCounts:
    """Keeps the counts of votes on `Item`, its turn, and `Queue.done`: how many are done."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def read(self, batch: Sequence[Fact]) -> None:
        self.batch, self.first_seq = batch, batch[0].seq or 0
        votes = [entry.target or entry for entry in batch]
        queues = Queue.objects.filter(pk__in={vote.queue_id for vote in votes if vote.queue_id})
        self.pretend = set(queues.filter(is_simulated=True).values_list("pk", flat=True))
        self.queue_of = {vote.item_id: vote.queue_id for vote in votes if vote.item_id}
        rows = Item.objects.filter(pk__in=self.queue_of).values_list(
            "pk", "votes_wanted", "turn", *TALLY
        )
        # Under the project's lock: only sealing changes them.
        self.items = {row[0]: row for row in rows}

    def compute(self) -> None:
        self.change: dict[UUID, list[int]] = defaultdict(lambda: [0] * len(TALLY))
        for entry in self.batch:
            vote = entry.target or entry
            is_simulated = vote.queue_id in self.pretend
            if entry.item_id and counts(entry, is_simulated=is_simulated):
                _add(self.change[entry.item_id], 1, entry.choice, entry.left_side)
            elif vote.item_id and uncounts(entry, self.first_seq, is_simulated=is_simulated):
                _add(self.change[vote.item_id], -1, vote.choice, vote.left_side)

    def write(self) -> None:
        rows = []
        done: Counter[UUID | None] = Counter()
        begun = []
        for pk, by in self.change.items():
            _, wanted, turn, *old = self.items[pk]
            new = [had + more for had, more in zip(old, by, strict=True)]
            rows.append((*new, key(pk)))
            done[self.queue_of[pk]] += (new[0] >= wanted) - (old[0] >= wanted)
            if turn >= FRESH:
                begun.append(pk)
        update_many(Item, TALLY, rows)
        for queue, by_items in done.items():
            if queue and by_items:
                Queue.objects.filter(pk=queue).update(done=F("done") + by_items)
        self._hand_out_first(begun)

    def _hand_out_first(self, begun: Sequence[UUID]) -> None:
        """What is left of prompts that were voted on comes before those that nobody has begun."""
        prompts: dict[UUID, set[str]] = defaultdict(set)
        if begun:
            items = Item.objects.filter(pk__in=begun)
            for queue, prompt in items.values_list("queue", "prompt_key"):
                prompts[queue].add(prompt)
        for queue, some in prompts.items():
            waiting = Item.objects.filter(queue=queue, prompt_key__in=some, turn__gte=FRESH)
            waiting.filter(votes__lt=F("votes_wanted")).update(turn=self.first_seq)

    def rebuild(self, *, write: bool) -> Iterator[Difference]:
        tallies: dict[UUID, list[int]] = defaultdict(lambda: [0] * len(TALLY))
        counted = Entry.objects.filter(COUNTED, project=self.project, item__isnull=False)
        kinds = counted.values_list("item", "choice", "left_side").annotate(Count("pk"))
        for item, choice, left, votes in kinds:
            assert item is not None  # filtered
            _add(tallies[item], votes, choice, left)
        done: Counter[UUID] = Counter()
        for row in Item.objects.filter(queue__project=self.project):
            tally = tallies[row.pk]
            done[row.queue_id] += tally[0] >= row.votes_wanted
            replayed = dict(zip(TALLY, tally, strict=True))
            yield from correct(row, f"comparison {row.pk}", replayed, write=write)
        for queue in Queue.objects.filter(project=self.project):
            replayed = {"done": done[queue.pk]}
            yield from correct(queue, f"queue {queue.pk}", replayed, write=write)
