"""How many votes that count each item has, and for what."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from voting.items.disputes import Vote, extra_votes
from voting.items.kinds import Options, kind_of, options_of
from voting.items.order import FRESH
from voting.ledger.bulk_sql import key, update_many
from voting.ledger.decisions import EXCLUDED, DecisionState, Subject, votes_required_in
from voting.ledger.ledger import (
    AFTER_REVEAL,
    Fact,
    Mismatch,
    Projection,
    correct,
    decided_items,
    decision_states,
    recounted_items,
    votes_left_out,
)
from voting.models import NO_VOTE, Entry, Item, Project, Queue

# Votes that judges are measured by: sealed, standing, and of their queue's own kind, which is
# blind votes of people or, in a queue that holds nothing else, pretend votes. Nobody looks at a
# verdict to make up a vote, so the latter need not be blind. A blind vote that was taken back after
# the reveal does not stand, and judges are measured by it all the same.
_SEALED = Q(kind=Entry.Kind.VOTE, seq__isnull=False, excluded=False)
_UNRETRACTED = _SEALED & Q(retracted_seq__isnull=True)
_FIRST = Q(retracted_seq__isnull=True) | Q(retracted_after_reveal=True)
_PEOPLES = _SEALED & _FIRST & Q(simulated=False, unblinded=False)
_PRETEND = _UNRETRACTED & Q(simulated=True)
# A quality score asks what people think of outputs, not who judges well: a vote need not be blind.
OF_PEOPLE = _UNRETRACTED & Q(simulated=False)
# Votes of people who had seen the verdicts; boards count them apart.
UNBLINDED = _UNRETRACTED & Q(simulated=False, unblinded=True)
COUNTED = _PEOPLES & Q(queue__is_simulated=False) | _PRETEND & Q(queue__is_simulated=True)


def counted_in(queue: Queue) -> Q:
    """Return `COUNTED` for the entries of one queue: without a join, they are read by an index."""
    return _PRETEND if queue.is_simulated else _PEOPLES


def counts(entry: Fact, *, is_simulated: bool) -> bool:
    """Say of a numbered entry what `COUNTED` says of a row; the flag is its queue's."""
    is_first = entry.retracted_after_reveal and not entry.excluded
    return (_is_unretracted(entry) or is_first) and _is_of_its_kind(entry, is_simulated)


def is_of_people(entry: Fact) -> bool:
    """Say of a numbered entry what `OF_PEOPLE` says of a row."""
    return _is_unretracted(entry) and not entry.simulated


def _is_unretracted(entry: Fact) -> bool:
    is_vote = entry.kind == Entry.Kind.VOTE
    return is_vote and entry.retracted_seq is None and not entry.excluded


def uncounts(entry: Fact, first_seq: int, *, is_simulated: bool) -> bool:
    """Say whether this retraction takes back a vote that an earlier batch has counted."""
    target = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    if target is None or target.seq is None or target.seq >= first_seq or target.excluded:
        return False
    if target.retracted_after_reveal:
        return False
    return _is_of_its_kind(target, is_simulated)


def _is_of_its_kind(vote: Fact, is_simulated: bool) -> bool:
    return vote.simulated if is_simulated else not (vote.simulated or vote.unblinded)


def _add(tally: list[int], votes: int, counted: Sequence[int]) -> None:
    for place, number in enumerate(counted):
        tally[place] += votes * number


def _tallies(counted: QuerySet[Entry], queues: Mapping[UUID, Queue]) -> dict[UUID, list[int]]:
    tallies: dict[UUID, list[int]] = {}
    alike = counted.values_list("item", "queue", "choice", "left_side", "value")
    for pk, queue, *vote, votes in alike.annotate(Count("pk")):
        assert pk is not None and queue is not None  # noqa: PT018  they are votes
        amounts = kind_of(queues[queue]).counted(*vote)
        _add(tallies.setdefault(pk, [0] * len(amounts)), votes, amounts)
    return tallies


def _extra_vote_rules(queues: Mapping[UUID, Queue]) -> dict[UUID | None, Options]:
    """Return the options of those queues where disputed items want more votes."""
    options = {pk: options_of(row) for pk, row in queues.items()}
    return {pk: rules for pk, rules in options.items() if rules.extra_votes}


def votes_on(items: Q) -> dict[UUID, list[Vote]]:
    """Return the votes that count on some items, in the order of the ledger."""
    votes: dict[UUID, list[Vote]] = defaultdict(list)
    sealed = Entry.objects.filter(COUNTED, items, item__isnull=False).order_by("seq")
    for item, choice, value in sealed.values_list("item", "choice", "value"):
        assert item is not None  # filtered
        votes[item].append((choice, value))
    return votes


def _required_by(batch: Iterable[Fact]) -> dict[UUID, int]:
    changes = (e for e in batch if e.kind == Entry.Kind.PARAMETERS and e.queue_id)
    return {item: votes for e in changes for item, votes in votes_required_in(e.payload).items()}


def _item_states(
    project: Project, queues: Collection[UUID], batch: Sequence[Fact]
) -> dict[Subject, DecisionState]:
    """Return what stands of decisions and of changed votes wanted, for all items of queues."""
    stands = decision_states(project, Q(queue__in=queues), batch)
    sealed = Entry.objects.filter(
        project=project, kind=Entry.Kind.PARAMETERS, queue__in=queues, seq__isnull=False
    )
    payloads = sealed.order_by("seq").values_list("payload", flat=True)
    for required in (*map(votes_required_in, payloads), _required_by(batch)):
        for item, votes in required.items():
            stands[item] = stands.get(item, DecisionState())._replace(first=votes)
    return stands


def _settled(
    required: int, extra: int, stands: DecisionState, votes: Sequence[Vote], options: Options | None
) -> dict[str, int]:
    """Return how many votes an item wants, `extra` of them because people disagree.

    A curator's round replaces what was wanted before, extra votes too.
    """
    first = required - extra if stands.votes_wanted is None else stands.votes_wanted
    more = 0
    if options:
        more = extra_votes(votes, first, options.extra_votes, options.critical_variance)
    return {"votes_wanted": first + more, "extra_votes": more}


def _unusable(reason: str, stands: DecisionState) -> str:
    return EXCLUDED if stands.is_excluded else "" if reason == EXCLUDED else reason


class VoteCounts(Projection):
    """Keeps the counts of votes on `Item`, its turn, and `Queue.done`: how many are done.

    It does to items what curators and leads decide: excluded ones are unusable, and they want more
    votes or fewer. It asks for more on disputed items, where the queue's options say so.
    """

    def read(self, batch: Sequence[Fact]) -> None:
        self.batch, self.first_seq = batch, batch[0].seq or 0
        votes = [entry.target or entry for entry in batch]
        self.queues = Queue.objects.in_bulk({vote.queue_id for vote in votes} - {None})
        columns = dict.fromkeys(c for queue in self.queues.values() for c in kind_of(queue).tally)
        self.recounted, self.wanting = recounted_items(batch), _required_by(batch)
        needed_items = Q(pk__in={vote.item_id for vote in votes if vote.item_id} | self.recounted)
        if self.wanting:
            # Their keys may be too many for one query.
            changed_queues = {e.queue_id for e in batch if e.kind == Entry.Kind.PARAMETERS}
            needed_items |= Q(queue__in=changed_queues)
        # Under the project's lock: only sealing changes them.
        names = ("queue", "unusable", "votes_wanted", "extra_votes", "turn", *columns)
        rows = Item.objects.filter(needed_items).values("pk", *names)
        self.items = {row["pk"]: row for row in rows}
        self.queue_of = {pk: row["queue"] for pk, row in self.items.items()}
        self.stands: dict[Subject, DecisionState] = {}
        if changed := decided_items(batch) | self.wanting.keys():
            queues = {self.queue_of[item] for item in changed}
            self.stands = _item_states(self.project, queues, batch)
        if self.recounted:
            sealed = Entry.objects.filter(COUNTED, item__in=self.recounted)
            self.sealed = _tallies(sealed, self.queues)
        self.asking = _extra_vote_rules(self.queues)
        asking_items = [item for item, queue in self.queue_of.items() if queue in self.asking]
        self.votes_on = votes_on(Q(item__in=asking_items)) if asking_items else {}

    def compute(self) -> None:
        # A decision may change whether votes on an item count: these are counted anew.
        self.change = {pk: self._miscounted(pk) for pk in self.recounted}
        for pk in self.wanting:
            tally = kind_of(self.queues[self.queue_of[pk]]).tally
            self.change.setdefault(pk, [0] * len(tally))
        for entry in self.batch:
            vote = entry.target or entry
            queue = self.queues.get(vote.queue_id) if vote.queue_id else None
            if vote.item_id is None or queue is None:
                continue
            is_simulated = queue.is_simulated
            is_new = counts(entry, is_simulated=is_simulated)
            is_gone = uncounts(entry, self.first_seq, is_simulated=is_simulated)
            if is_new or (is_gone and vote.item_id not in self.recounted):
                counted = kind_of(queue).counted(vote.choice, vote.left_side, vote.value)
                change = self.change.setdefault(vote.item_id, [0] * len(counted))
                _add(change, 1 if is_new else -1, counted)
            if is_new and queue.pk in self.asking:
                self.votes_on[vote.item_id].append((vote.choice, vote.value))

    def _miscounted(self, item: UUID) -> list[int]:
        tally = kind_of(self.queues[self.queue_of[item]]).tally
        sealed, row = self.sealed.get(item, [0] * len(tally)), self.items[item]
        return [votes - row[name] for name, votes in zip(tally, sealed, strict=True)]

    def write(self) -> None:
        rows: dict[tuple[str, ...], list[tuple[object, ...]]] = defaultdict(list)
        done: Counter[UUID | None] = Counter()
        begun_items = []
        for pk, vote_counts in self.change.items():
            item, queue = self.items[pk], self.queue_of[pk]
            tally = kind_of(self.queues[queue]).tally
            new = [item[name] + more for name, more in zip(tally, vote_counts, strict=True)]
            if any(vote_counts):
                rows[tally].append((*new, key(pk)))
            required = item["votes_wanted"]
            if queue in self.asking or pk in self.stands:
                settled = self._settled(pk)
                required = settled["votes_wanted"]
                rows[tuple(settled)].append((*settled.values(), key(pk)))
            done[queue] += (new[0] >= required) - (item["votes"] >= item["votes_wanted"])
            if item["turn"] >= FRESH and any(vote_counts):
                begun_items.append(pk)
        for tally, tally_rows in rows.items():
            update_many(Item, tally, tally_rows)
        for queue, by_items in done.items():
            if queue and by_items:
                Queue.objects.filter(pk=queue).update(done=F("done") + by_items)
        self._hand_out_first(begun_items)

    def _settled(self, pk: UUID) -> dict[str, int | str]:
        item, stands = self.items[pk], self.stands.get(pk, DecisionState())
        votes, options = self.votes_on.get(pk, []), self.asking.get(self.queue_of[pk])
        required = _settled(item["votes_wanted"], item["extra_votes"], stands, votes, options)
        # What an earlier batch has decided is not looked up again.
        decided = {"unusable": _unusable(item["unusable"], stands)} if pk in self.stands else {}
        return required | decided

    def _hand_out_first(self, begun_items: Sequence[UUID]) -> None:
        """What is left of prompts that were voted on comes before those that nobody has begun."""
        prompts: dict[UUID, set[str]] = defaultdict(set)
        if begun_items:
            items = Item.objects.filter(pk__in=begun_items)
            for queue, prompt in items.values_list("queue", "prompt_key"):
                prompts[queue].add(prompt)
        for queue, prompt_keys in prompts.items():
            waiting = Item.objects.filter(queue=queue, prompt_key__in=prompt_keys, turn__gte=FRESH)
            waiting.filter(votes__lt=F("votes_wanted")).update(turn=self.first_seq)

    def rebuild(self, *, write: bool) -> Iterator[Mismatch]:
        yield from self._rebuild_marks(write=write)
        queues = {queue.pk: queue for queue in Queue.objects.filter(project=self.project)}
        stands = _item_states(self.project, queues, ())
        counted = Entry.objects.filter(COUNTED, project=self.project, item__isnull=False)
        tallies, done = _tallies(counted, queues), Counter[UUID]()
        asking = _extra_vote_rules(queues)
        by_item = votes_on(Q(queue__in=asking)) if asking else {}
        for item in Item.objects.filter(queue__project=self.project):
            columns = kind_of(queues[item.queue_id]).tally
            tally = tallies.get(item.pk, [0] * len(columns))
            stand = stands.get(item.pk, DecisionState())
            votes, options = by_item.get(item.pk, []), asking.get(item.queue_id)
            required = _settled(item.votes_wanted, item.extra_votes, stand, votes, options)
            done[item.queue_id] += tally[0] >= required["votes_wanted"]
            unusable = {"unusable": _unusable(item.unusable, stand)}
            replayed = {**dict(zip(columns, tally, strict=True)), **required, **unusable}
            yield from correct(item, f"comparison {item.pk}", replayed, write=write)
        for row in queues.values():
            yield from correct(row, f"queue {row.pk}", {"done": done[row.pk]}, write=write)

    def _rebuild_marks(self, *, write: bool) -> Iterator[Mismatch]:
        votes = Entry.objects.filter(project=self.project, kind=Entry.Kind.VOTE, seq__isnull=False)
        retractions = Entry.objects.filter(
            project=self.project, kind=Entry.Kind.RETRACTION, seq__isnull=False
        )
        after_reveal = retractions.filter(NO_VOTE, payload=AFTER_REVEAL).values("target")
        marks = {
            "excluded": votes_left_out(self.project),
            "retracted_after_reveal": Q(pk__in=after_reveal, simulated=False, unblinded=False),
        }
        for name, is_marked in marks.items():
            wrong = is_marked & Q(**{name: False}) | ~is_marked & Q(**{name: True})
            for vote in votes.filter(wrong).order_by("seq"):
                replayed = {name: not getattr(vote, name)}
                yield from correct(vote, f"vote {vote.seq}", replayed, write=write)
