"""Which items wait for a curator: made of votes, flags and decisions, and of nothing else."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, OuterRef
from django.utils import timezone

from reports.models import Review
from reports.quality.parameters import is_settings, parameters_of
from reports.review.ambiguity import (
    Decided,
    Limits,
    is_ambiguous,
    is_disputed,
    waits,
)
from voting.choices import CHOICES, VOTES_FOR
from voting.disputes import population_variance
from voting.ledger.bulk_sql import update_many
from voting.ledger.counts import COUNTED, counts
from voting.ledger.decisions import SETTLING
from voting.ledger.ledger import Difference, Fact, correct, recounted_items
from voting.models import Entry, Flag, Item, Project, Queue

# So many items are looked at together when all of a project are.
CHUNK: Final = 2_000
COLUMNS: Final = ("variance", "is_divided", "flags", "category", "decided", "waits")
_STORED: Final = {name: f"review__{name}" for name in ("pk", "since", *COLUMNS)}
_OF_PAIR: Final = tuple(VOTES_FOR[choice] for choice in CHOICES)
_OF_QUEUE: Final = ("queue__kind", "queue__is_simulated")
_OF_ITEM: Final = ("pk", "votes", "value_sum", "value_squares", *_OF_PAIR, *_OF_QUEUE)
# Kinds whose choices are words, which an item has no columns for.
_WORDS: Final = (Queue.Kind.CATEGORY, Queue.Kind.RATING, Queue.Kind.LABELS)

Choices = Mapping[UUID, Counter[str]]


class Votes(NamedTuple):
    """How the votes on an item stand: how many, how far they vary, whether they are divided."""

    number: int
    variance: float | None
    is_divided: bool


def limits_of(project: Project, batch: Sequence[Fact] = ()) -> Limits:
    """Return what a project calls ambiguous, or will behind a batch that is being sealed."""
    parameters = parameters_of(project, batch)
    return Limits(parameters.critical_variance, parameters.min_votes)


def _votes(row: Mapping[str, Any], words: Counter[str], limits: Limits) -> Votes:
    number, kind = row["votes"], row["queue__kind"]
    if row["queue__is_simulated"]:
        return Votes(number, None, is_divided=False)  # nobody has to settle pretend votes
    if kind == Queue.Kind.PASS_FLAG:
        variance = population_variance(number, row["value_sum"], row["value_squares"])
        return Votes(number, variance, is_ambiguous(variance, number, limits))
    by_choice = list(words.values())
    if kind == Queue.Kind.COMPARISON:
        by_choice = [row[name] for name in _OF_PAIR]
    return Votes(number, None, is_disputed(by_choice, limits.min_votes))


def _choices_on(items: Collection[UUID], new: Choices) -> Choices:
    """Count the words that were chosen: in what is sealed, and in a batch that is about to be."""
    found: dict[UUID, Counter[str]] = defaultdict(Counter)
    sealed = Entry.objects.filter(COUNTED, item__in=items) if items else Entry.objects.none()
    for item, choice, votes in sealed.values_list("item", "choice").annotate(Count("pk")):
        assert item is not None  # filtered
        found[item][choice] = votes
    for item in set(items) & new.keys():
        found[item] += new[item]
    return found


def _flags_on(items: Collection[UUID]) -> dict[UUID, list[Flag]]:
    found: dict[UUID, list[Flag]] = defaultdict(list)
    if not items:
        return found
    for flag in Flag.objects.filter(item__in=items).order_by("created_at"):
        found[flag.item_id].append(flag)
    return found


def _decided_on(items: Collection[UUID], new: Sequence[Fact]) -> dict[UUID, Decided]:
    """Return what stands on items; a decision counts here before it is sealed.

    One that was made elsewhere is `new` in its batch: it is stored behind it.
    """
    stored = Entry.objects.filter(kind=Entry.Kind.DECISION, item__in=items).order_by("at", "pk")
    columns = stored.values_list("uid", "item", "at", "payload", "target__uid")
    rows: dict[UUID, Any] = {uid: row for uid, *row in (columns if items else ())}
    for entry in new:
        target = entry.target.uid if entry.target else None
        rows[entry.uid] = [entry.item_id, entry.at, entry.payload, target]
    reversed_ones = {target for *_, target in rows.values()}
    return {
        item: Decided(payload["action"], at, payload.get("votes_wanted", 0))
        for uid, (item, at, payload, _) in sorted(rows.items(), key=lambda row: row[1][1])
        if payload["action"] in SETTLING and uid not in reversed_ones
    }


def _expected(
    rows: Sequence[Mapping[str, Any]],
    limits: Limits,
    new: Choices,
    made: Sequence[Fact] = (),
    touched: Collection[UUID] = (),
) -> dict[UUID, dict[str, Any]]:
    """Return the columns that `Review` must have for each item.

    Decisions are looked up where there were some before, and on `touched` items.
    """
    words = _choices_on([row["pk"] for row in rows if row["queue__kind"] in _WORDS], new)
    flags = _flags_on([row["pk"] for row in rows if row["flagged"]])
    decided_on = {row["pk"] for row in rows if row["review__decided"]} | {*touched}
    decided = _decided_on(decided_on, made)
    return {
        item: _columns(
            _votes(row, words.get(item, Counter()), limits), flags.get(item, []), decided.get(item)
        )
        for row in rows
        for item in (row["pk"],)
    }


def _columns(votes: Votes, flags: Sequence[Flag], decided: Decided | None) -> dict[str, Any]:
    newest = flags[-1] if flags else None
    return {
        "variance": votes.variance,
        "is_divided": votes.is_divided,
        "flags": len(flags),
        "category": newest.category if newest else "",
        "decided": decided.action if decided else "",
        "waits": waits(
            divided=votes.is_divided,
            votes=votes.number,
            flagged_at=newest.created_at if newest else None,
            decided=decided,
        ),
    }


def touch(project: Project, item: UUID) -> None:
    """Bring up to date what is known of an item that was flagged or decided on just now.

    Under the project's lock, as sealing does.
    """
    _update(project, [item], limits_of(project), touched=[item])


def _update(
    project: Project,
    items: Collection[UUID],
    limits: Limits,
    new: Choices | None = None,
    made: Sequence[Fact] = (),
    touched: Collection[UUID] = (),
) -> None:
    stored = _rows(items)
    expected = _expected(stored, limits, new or {}, made, touched)
    now, waiting, rows = timezone.now(), [], []
    for row in stored:
        item, columns = row["pk"], expected[row["pk"]]
        if row["review__pk"] is None:
            waiting += [item] if item in touched or _is_to_see(columns) else []
        elif any(row[_STORED[name]] != value for name, value in columns.items()):
            begins = columns["waits"] and not row["review__waits"]
            since = now if begins else row["review__since"]
            at = connection.ops.adapt_datetimefield_value(since)
            rows.append((*columns.values(), at, row["review__pk"]))
    Review.objects.bulk_create(
        Review(item_id=item, project=project, since=now, **expected[item])
        for item in _in_order(waiting)
    )
    update_many(Review, (*COLUMNS, "since"), rows)


def _rows(items: Collection[UUID]) -> list[dict[str, Any]]:
    """Return what is known of items, with the columns of `Review` where there is one.

    Of deleted runs there is nothing to see.
    """
    is_flagged = Exists(Flag.objects.filter(item=OuterRef("pk")))
    there = Item.objects.filter(pk__in=items, queue__deleted_at=None).annotate(flagged=is_flagged)
    return list(there.values(*_OF_ITEM, *_STORED.values(), "flagged"))


def _in_order(items: Collection[UUID]) -> list[UUID]:
    """What comes on the list together stands there in the order of its queue."""
    rows = Item.objects.filter(pk__in=items).order_by("queue_id", "position")
    return list(rows.values_list("pk", flat=True)) if items else []


def _is_to_see(columns: Mapping[str, Any]) -> bool:
    """Say whether an item comes on the list by itself, without a decision on it."""
    return bool(columns["is_divided"] or columns["flags"])


class ReviewList:
    """Keeps `Review`."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def read(self, batch: Sequence[Fact]) -> None:
        self.new: dict[UUID, Counter[str]] = defaultdict(Counter)
        for entry in batch:
            is_simulated = entry.queue is not None and entry.queue.is_simulated
            if entry.item_id and counts(entry, is_simulated=is_simulated):
                self.new[entry.item_id][entry.choice] += 1
        self.limits = limits_of(self.project, batch)
        self.made = [e for e in batch if e.kind == Entry.Kind.DECISION and e.item_id]
        # Nobody can decide on what was deleted.
        self.deleted = {e.queue_id for e in batch if e.kind == Entry.Kind.ERASURE} - {None}
        # The counts of items are those behind this batch: `VoteCounts` has written them.
        of_people = (entry for entry in batch if entry.kind != Entry.Kind.VERDICTS)
        new = {entry.item_id for entry in of_people if entry.item_id is not None}
        some = [sorted(new | recounted_items(batch))]
        # Other limits may hold behind new settings: everything is looked at again.
        self.chunks = _all_items(self.project) if any(map(is_settings, batch)) else iter(some)

    def compute(self) -> None:
        """Nothing is left to do: what is known of an item is seen at a glance."""

    def write(self) -> None:
        for items in self.chunks:
            decided = {each.item_id for each in self.made if each.item_id} & {*items}
            _update(self.project, items, self.limits, self.new, self.made, decided)
        if self.deleted:
            Review.objects.filter(item__queue__in=self.deleted).delete()

    def rebuild(self, *, write: bool) -> Iterator[Difference]:
        for items in _all_items(self.project):
            yield from self._rebuild(items, write=write)

    def _rebuild(self, items: Sequence[UUID], *, write: bool) -> Iterator[Difference]:
        stored = Review.objects.in_bulk(items, field_name="item_id")
        rows, limits = _rows(items), limits_of(self.project)
        for item, columns in _expected(rows, limits, {}, touched=items).items():
            if item not in stored and not _is_to_see(columns):
                continue
            review = stored.get(item) or Review(item_id=item, project=self.project)
            if write and item not in stored:
                review.save()
            yield from correct(review, f"review of {item}", columns, write=write)


def _all_items(project: Project) -> Iterator[list[UUID]]:
    """Yield the items of a project, so many at a time."""
    keys = Item.objects.filter(queue__project=project).order_by("pk").values_list("pk", flat=True)
    chunk = list(keys[:CHUNK])
    while chunk:
        yield chunk
        chunk = list(keys.filter(pk__gt=chunk[-1])[:CHUNK])
