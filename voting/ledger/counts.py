"""How many votes that count each item has, and for what."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from django.db.models import Count, F, Q

from voting.disputes import Vote, extra_votes
from voting.kinds import Options, kind_of
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
COUNTED = _PEOPLES & Q(queue__is_simulated=False) | _PRETEND & Q(queue__is_simulated=True)


def counted_in(queue: Queue) -> Q:
    """Return `COUNTED` for the entries of one queue: without a join, they are read by an index."""
    return _PRETEND if queue.is_simulated else _PEOPLES


def counts(entry: Fact, *, is_simulated: bool) -> bool:
    """Say of a numbered entry what `COUNTED` says of a row; the flag is its queue's."""
    is_standing = entry.kind == Entry.Kind.VOTE and entry.retracted_seq is None
    return is_standing and _is_of_its_kind(entry, is_simulated)


def uncounts(entry: Fact, first_seq: int, *, is_simulated: bool) -> bool:
    """Say whether this retraction takes back a vote that an earlier batch has counted."""
    target = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    is_earlier = target is not None and target.seq is not None and target.seq < first_seq
    return is_earlier and target is not None and _is_of_its_kind(target, is_simulated)


def _is_of_its_kind(vote: Fact, is_simulated: bool) -> bool:
    return vote.simulated if is_simulated else not (vote.simulated or vote.unblinded)


def _add(tally: list[int], votes: int, counted: Sequence[int]) -> None:
    for place, number in enumerate(counted):
        tally[place] += votes * number


def _asking(queues: Mapping[UUID, Queue]) -> dict[UUID | None, Options]:
    """Return the options of those queues where disputed items want more votes."""
    options = {pk: Options.model_validate(row.options) for pk, row in queues.items() if row.options}
    return {pk: each for pk, each in options.items() if each.extra_votes}


def _votes_on(items: Q) -> dict[UUID, list[Vote]]:
    votes: dict[UUID, list[Vote]] = defaultdict(list)
    sealed = Entry.objects.filter(COUNTED, items, item__isnull=False).order_by("seq")
    for item, choice, value in sealed.values_list("item", "choice", "value"):
        assert item is not None  # filtered
        votes[item].append((choice, value))
    return votes


def _extra(wanted: int, extra: int, votes: Sequence[Vote], options: Options) -> dict[str, int]:
    """Return how many votes an item wants now that these count, and how many of them as extra."""
    first = wanted - extra
    more = extra_votes(votes, first, options.extra_votes, options.critical_variance)
    return {"votes_wanted": first + more, "extra_votes": more}


class VoteCounts:
    """Keeps the counts of votes on `Item`, its turn, and `Queue.done`: how many are done.

    It asks for more votes on disputed items, where the queue's options say so.
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def read(self, batch: Sequence[Fact]) -> None:
        self.batch, self.first_seq = batch, batch[0].seq or 0
        votes = [entry.target or entry for entry in batch]
        self.queues = Queue.objects.in_bulk({vote.queue_id for vote in votes} - {None})
        self.queue_of = {vote.item_id: vote.queue_id for vote in votes if vote.item_id}
        columns = dict.fromkeys(c for queue in self.queues.values() for c in kind_of(queue).tally)
        rows = Item.objects.filter(pk__in=self.queue_of)
        # Under the project's lock: only sealing changes them.
        names = ("pk", "votes_wanted", "extra_votes", "turn", *columns)
        self.items = {row["pk"]: row for row in rows.values(*names)}
        self.asking = _asking(self.queues)
        asked = [item for item, queue in self.queue_of.items() if queue in self.asking]
        self.votes_on = _votes_on(Q(item__in=asked)) if asked else {}

    def compute(self) -> None:
        self.change: dict[UUID, list[int]] = {}
        for entry in self.batch:
            vote = entry.target or entry
            queue = self.queues.get(vote.queue_id) if vote.queue_id else None
            if vote.item_id is None or queue is None:
                continue
            is_simulated = queue.is_simulated
            is_new = counts(entry, is_simulated=is_simulated)
            if is_new or uncounts(entry, self.first_seq, is_simulated=is_simulated):
                counted = kind_of(queue).counted(vote.choice, vote.left_side, vote.value)
                change = self.change.setdefault(vote.item_id, [0] * len(counted))
                _add(change, 1 if is_new else -1, counted)
            if is_new and queue.pk in self.asking:
                self.votes_on[vote.item_id].append((vote.choice, vote.value))

    def write(self) -> None:
        rows: dict[tuple[str, ...], list[tuple[object, ...]]] = defaultdict(list)
        done: Counter[UUID | None] = Counter()
        begun = []
        for pk, by in self.change.items():
            item, queue = self.items[pk], self.queue_of[pk]
            tally = kind_of(self.queues[queue]).tally
            new = [item[name] + more for name, more in zip(tally, by, strict=True)]
            rows[tally].append((*new, key(pk)))
            before = wanted = item["votes_wanted"]
            if queue in self.asking:
                extra = _extra(before, item["extra_votes"], self.votes_on[pk], self.asking[queue])
                wanted = extra["votes_wanted"]
                rows[tuple(extra)].append((*extra.values(), key(pk)))
            done[queue] += (new[0] >= wanted) - (item["votes"] >= before)
            if item["turn"] >= FRESH:
                begun.append(pk)
        for tally, some in rows.items():
            update_many(Item, tally, some)
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
        tallies: dict[UUID, list[int]] = {}
        queues = Queue.objects.in_bulk(
            Queue.objects.filter(project=self.project).values_list("pk", flat=True)
        )
        counted = Entry.objects.filter(COUNTED, project=self.project, item__isnull=False)
        said = counted.values_list("item", "queue", "choice", "left_side", "value")
        for pk, queue, *vote, votes in said.annotate(Count("pk")):
            assert pk is not None and queue is not None  # noqa: PT018  filtered
            amounts = kind_of(queues[queue]).counted(*vote)
            _add(tallies.setdefault(pk, [0] * len(amounts)), votes, amounts)
        done: Counter[UUID] = Counter()
        asking = _asking(queues)
        votes_on = _votes_on(Q(queue__in=asking)) if asking else {}
        for item in Item.objects.filter(queue__project=self.project):
            columns = kind_of(queues[item.queue_id]).tally
            tally = tallies.get(item.pk, [0] * len(columns))
            replayed = dict(zip(columns, tally, strict=True))
            if options := asking.get(item.queue_id):
                votes = votes_on.get(item.pk, [])
                replayed |= _extra(item.votes_wanted, item.extra_votes, votes, options)
            done[item.queue_id] += tally[0] >= replayed.get("votes_wanted", item.votes_wanted)
            yield from correct(item, f"comparison {item.pk}", replayed, write=write)
        for row in queues.values():
            yield from correct(row, f"queue {row.pk}", {"done": done[row.pk]}, write=write)
