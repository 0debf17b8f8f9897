"""How many votes that count each item has, and for what."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from voting.kinds import COMPARISON
from voting.ledger.bulk_sql import key, update_many
from voting.ledger.decisions import EXCLUDED, Standing
from voting.ledger.ledger import Difference, Fact, correct, decided_items, standing_of
from voting.models import Entry, Item, Project, Queue
from voting.order import FRESH

# Votes that judges are measured by: sealed, standing, and of their queue's own kind, which is
# blind votes of people or, in a queue that holds nothing else, pretend votes. Nobody looks at a
# verdict to make up a vote, so the latter need not be blind.
_STANDING = Q(kind=Entry.Kind.VOTE, seq__isnull=False, retracted_seq__isnull=True, excluded=False)
_PEOPLES = _STANDING & Q(simulated=False, unblinded=False)
_PRETEND = _STANDING & Q(simulated=True)
# Votes of people who had seen the verdicts; boards count them apart.
UNBLINDED = _STANDING & Q(simulated=False, unblinded=True)
COUNTED = _PEOPLES & Q(queue__is_simulated=False) | _PRETEND & Q(queue__is_simulated=True)

TALLY = COMPARISON.tally


def counted_in(queue: Queue) -> Q:
    """Return `COUNTED` for the entries of one queue: without a join, they are read by an index."""
    return _PRETEND if queue.is_simulated else _PEOPLES


def counts(entry: Fact, *, is_simulated: bool) -> bool:
    """Say of a numbered entry what `COUNTED` says of a row; the flag is its queue's."""
    is_standing = entry.kind == Entry.Kind.VOTE and entry.retracted_seq is None
    return is_standing and not entry.excluded and _is_of_its_kind(entry, is_simulated)


def uncounts(entry: Fact, first_seq: int, *, is_simulated: bool) -> bool:
    """Say whether this retraction takes back a vote that an earlier batch has counted."""
    target = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    if target is None or target.seq is None or target.seq >= first_seq or target.excluded:
        return False
    return _is_of_its_kind(target, is_simulated)


def _is_of_its_kind(vote: Fact, is_simulated: bool) -> bool:
    return vote.simulated if is_simulated else not (vote.simulated or vote.unblinded)


@cache
def _places(choice: str, left_side: str) -> tuple[int, ...]:
    return tuple(map(TALLY.index, COMPARISON.counted_in(choice, left_side)))


def _add(tally: list[int], votes: int, choice: str, left_side: str) -> None:
    for place in _places(choice, left_side):
        tally[place] += votes


def _tallies(counted: QuerySet[Entry]) -> dict[UUID, list[int]]:
    tallies: dict[UUID, list[int]] = defaultdict(lambda: [0] * len(TALLY))
    kinds = counted.values_list("item", "choice", "left_side").annotate(Count("pk"))
    for item, choice, left, votes in kinds:
        assert item is not None  # filtered
        _add(tallies[item], votes, choice, left)
    return tallies


def _settled(unusable: str, wanted: int, stands: Standing) -> tuple[str, int]:
    """Return why an item cannot be voted on, and the votes it wants, as curators have decided."""
    other = "" if unusable == EXCLUDED else unusable
    more = stands.votes_wanted
    return EXCLUDED if stands.is_excluded else other, wanted if more is None else more


class VoteCounts:
    """Keeps the counts of votes on `Item`, its turn, and `Queue.done`: how many are done.

    It does to items what curators decide: excluded ones are unusable, another round wants more.
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def read(self, batch: Sequence[Fact]) -> None:
        self.batch, self.first_seq = batch, batch[0].seq or 0
        votes = [entry.target or entry for entry in batch]
        queues = Queue.objects.filter(pk__in={vote.queue_id for vote in votes if vote.queue_id})
        self.pretend = set(queues.filter(is_simulated=True).values_list("pk", flat=True))
        self.queue_of = {vote.item_id: vote.queue_id for vote in votes if vote.item_id}
        rows = Item.objects.filter(pk__in=self.queue_of).values_list(
            "pk", "unusable", "votes_wanted", "turn", *TALLY
        )
        # Under the project's lock: only sealing changes them.
        self.items = {row[0]: row[1:] for row in rows}
        self.stands: dict[UUID, Standing] = {}
        if decided := decided_items(batch):
            self.stands = standing_of(self.project, decided, batch)
            self.sealed = _tallies(Entry.objects.filter(COUNTED, item__in=decided))

    def compute(self) -> None:
        self.change: dict[UUID, list[int]] = defaultdict(lambda: [0] * len(TALLY))
        # A decision may change what all votes on its item count, so these are counted anew.
        for item in self.stands:
            _, _, _, *old = self.items[item]
            self.change[item] = [n - had for n, had in zip(self.sealed[item], old, strict=True)]
        for entry in self.batch:
            vote = entry.target or entry
            is_simulated = vote.queue_id in self.pretend
            if entry.item_id and counts(entry, is_simulated=is_simulated):
                _add(self.change[entry.item_id], 1, entry.choice, entry.left_side)
            elif vote.item_id is None or vote.item_id in self.stands:
                continue
            elif uncounts(entry, self.first_seq, is_simulated=is_simulated):
                _add(self.change[vote.item_id], -1, vote.choice, vote.left_side)

    def write(self) -> None:
        rows, settled = [], []
        done: Counter[UUID | None] = Counter()
        begun = []
        for pk, by in self.change.items():
            unusable, wanted, turn, *old = self.items[pk]
            new = [had + more for had, more in zip(old, by, strict=True)]
            rows.append((*new, key(pk)))
            unusable, wants = _settled(unusable, wanted, self.stands.get(pk, Standing()))
            if pk in self.stands:
                settled.append((unusable, wants, key(pk)))
            done[self.queue_of[pk]] += (new[0] >= wants) - (old[0] >= wanted)
            if turn >= FRESH:
                begun.append(pk)
        update_many(Item, TALLY, rows)
        update_many(Item, ("unusable", "votes_wanted"), settled)
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
        decisions = Entry.objects.filter(project=self.project, kind=Entry.Kind.DECISION)
        items = set(decisions.filter(item__isnull=False).values_list("item", flat=True))
        stands = standing_of(self.project, items, ())
        excluded = {item for item in stands if stands[item].is_excluded}
        yield from self._rebuild_marks(excluded, write=write)
        tallies = _tallies(Entry.objects.filter(COUNTED, project=self.project, item__isnull=False))
        done: Counter[UUID] = Counter()
        for row in Item.objects.filter(queue__project=self.project):
            of_item = stands.get(row.pk, Standing())
            unusable, wanted = _settled(row.unusable, row.votes_wanted, of_item)
            done[row.queue_id] += tallies[row.pk][0] >= wanted
            replayed: dict[str, object] = dict(zip(TALLY, tallies[row.pk], strict=True))
            replayed |= {"unusable": unusable, "votes_wanted": wanted}
            yield from correct(row, f"comparison {row.pk}", replayed, write=write)
        for queue in Queue.objects.filter(project=self.project):
            replayed = {"done": done[queue.pk]}
            yield from correct(queue, f"queue {queue.pk}", replayed, write=write)

    def _rebuild_marks(self, excluded: Collection[UUID], *, write: bool) -> Iterator[Difference]:
        votes = Entry.objects.filter(project=self.project, kind=Entry.Kind.VOTE, seq__isnull=False)
        is_of_excluded = Q(item__in=excluded)
        wrong = Q(excluded=False) & is_of_excluded | Q(excluded=True) & ~is_of_excluded
        for vote in votes.filter(wrong).order_by("seq"):
            replayed = {"excluded": not vote.excluded}
            yield from correct(vote, f"vote {vote.seq}", replayed, write=write)
