"""Which items wait for a curator: made of votes, flags and decisions, and of nothing else."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from judge_eval.models import SLIP_BEGINS
from reports.models import Review
from reports.quality.parameters import Parameters, is_settings, parameters_of
from reports.review.ambiguity import (
    ReviewFlag,
    StandingDecision,
    flag_to_review,
    is_ambiguous,
    is_disputed,
    waits,
)
from voting.ballot.queries import chunks
from voting.items.choices import CHOICES, VOTES_FOR
from voting.items.disputes import population_variance
from voting.items.kinds import KINDS
from voting.ledger.bulk_sql import update_many
from voting.ledger.counts import COUNTED, OF_PEOPLE, counts, is_of_people
from voting.ledger.decisions import SETTLING
from voting.ledger.ledger import Fact, Mismatch, Projection, correct, recounted_items
from voting.models import Entry, Flag, Item, Project, Queue

# So many items are looked at together when all of a project are.
CHUNK: Final = 2_000


class Columns(NamedTuple):
    """What `Review` keeps of the votes, flags and decisions on an item."""

    variance: float | None
    is_divided: bool
    flags: int
    category: str
    decided: str
    waits: bool


_STORED: Final = tuple(f"review__{name}" for name in Columns._fields)
_OF_PAIR: Final = tuple(VOTES_FOR[choice] for choice in CHOICES)
_OF_QUEUE: Final = ("queue__kind", "queue__is_simulated")
_OF_ITEM: Final = ("pk", "votes", "value_sum", "value_squares", *_OF_PAIR, *_OF_QUEUE)
# Kinds whose choices are words, which an item has no columns for.
_WORDS: Final = (Queue.Kind.CATEGORY, Queue.Kind.RATING, Queue.Kind.LABELS)

# Flag votes on single items.
FLAG_VOTES: Final = OF_PEOPLE & Q(choice="flag", queue__kind=Queue.Kind.PASS_FLAG)

Flags: TypeAlias = Mapping[UUID, Sequence[ReviewFlag]]
Choices: TypeAlias = Mapping[UUID, Counter[str]]
# An item, with the columns of `Review` where there is one.
Row: TypeAlias = Mapping[str, Any]


def _votes(row: Row, words: Counter[str], limits: Parameters) -> tuple[float | None, bool]:
    """Return how far the votes on an item vary, and whether they are divided."""
    number, kind, min_votes = row["votes"], row["queue__kind"], limits.min_votes
    if row["queue__is_simulated"]:
        return None, False  # nobody has to settle pretend votes
    if kind == Queue.Kind.PASS_FLAG:
        variance = population_variance(number, row["value_sum"], row["value_squares"])
        return variance, is_ambiguous(variance, number, limits.critical_variance, min_votes)
    by_choice = [row[VOTES_FOR[choice]] for choice in KINDS[kind].choices]
    return None, is_disputed(by_choice or [*words.values()], min_votes)


def _choices_on(items: Collection[UUID], new: Choices) -> Choices:
    """Count the words that were chosen: in what is sealed, and in a batch that is about to be."""
    counts: dict[UUID, Counter[str]] = defaultdict(Counter)
    sealed = Entry.objects.filter(COUNTED, item__in=items) if items else Entry.objects.none()
    for item, choice, votes in sealed.values_list("item", "choice").annotate(Count("pk")):
        assert item is not None  # filtered
        counts[item][choice] = votes
    for item in set(items) & new.keys():
        counts[item] += new[item]
    return counts


def _flags_on(rows: Sequence[Row], new: Flags) -> dict[UUID, list[ReviewFlag]]:
    """Return all flags on items, the oldest first.

    They are those by `F`, and the flag votes that are sealed or in a batch that is about to be.
    """
    by_item: dict[UUID, list[ReviewFlag]] = defaultdict(list)
    by_key = [row["pk"] for row in rows if row["flagged"]]
    voted_on = [row["pk"] for row in rows if row["queue__kind"] == Queue.Kind.PASS_FLAG]
    if by_key:
        flags = Flag.objects.filter(item__in=by_key)
        names = ("item", "created_at", "category", "voter", "comment")
        for item, flagged_at, category, voter, comment in flags.values_list(*names):
            is_asked = comment.startswith(SLIP_BEGINS)
            by_item[item].append(ReviewFlag(flagged_at, category, voter, is_asked=is_asked))
    if voted_on:
        votes = Entry.objects.filter(FLAG_VOTES, item__in=voted_on)
        columns = ("item", "at", "category", "voter", "comment_sha256")
        for pk, flagged_at, category, voter, comment in votes.values_list(*columns):
            assert pk is not None  # filtered
            by_item[pk].append(_flag_vote(flagged_at, category, voter, comment))
    for item in {*voted_on} & new.keys():
        by_item[item] += new[item]
    return {
        item: sorted(item_flags, key=lambda flag: flag.flagged_at)
        for item, item_flags in by_item.items()
    }


def _flag_vote(
    cast_at: datetime, category: str, voter: UUID | None, comment_sha256: str
) -> ReviewFlag:
    # Whether there is a comment is asked of its hash, which is in the ledger: the text itself may
    # be erased.
    return ReviewFlag(cast_at, category, voter, has_reason=bool(category or comment_sha256))


class _DecisionRow(NamedTuple):
    item: Any
    decided_at: datetime
    payload: Any
    # The decision that this one reverses.
    target: UUID | None


def _decided_on(items: Collection[UUID], new: Sequence[Fact]) -> dict[UUID, StandingDecision]:
    """Return what stands on items; a decision counts here before it is sealed.

    One that was made elsewhere is `new` in its batch: it is stored behind it.
    """
    stored = Entry.objects.filter(kind=Entry.Kind.DECISION, item__in=items).order_by("at", "pk")
    columns = stored.values_list("uid", "item", "at", "payload", "target__uid")
    rows = {
        uid: _DecisionRow(item, decided_at, payload, target)
        for uid, item, decided_at, payload, target in (columns if items else ())
    }
    for entry in new:
        target = entry.target.uid if entry.target else None
        rows[entry.uid] = _DecisionRow(entry.item_id, entry.at, entry.payload, target)
    reversed_ones = {row.target for row in rows.values()}
    return {
        row.item: StandingDecision(
            row.payload["action"], row.decided_at, row.payload.get("votes_wanted", 0)
        )
        for uid, row in sorted(rows.items(), key=lambda uid_and_row: uid_and_row[1].decided_at)
        if row.payload["action"] in SETTLING and uid not in reversed_ones
    }


def _expected(
    rows: Sequence[Row],
    limits: Parameters,
    new: Choices,
    new_flags: Flags,
    decisions: Sequence[Fact] = (),
    touched: Collection[UUID] = (),
) -> dict[UUID, Columns]:
    """Return the columns that `Review` must have for each item.

    Decisions are looked up where there were some before, and on `touched` items.
    """
    words = _choices_on([row["pk"] for row in rows if row["queue__kind"] in _WORDS], new)
    flags = _flags_on(rows, new_flags)
    decided_on = {row["pk"] for row in rows if row["review__decided"]} | {*touched}
    decided = _decided_on(decided_on, decisions)
    columns = {}
    for row in rows:
        item = row["pk"]
        variance, is_divided = _votes(row, words.get(item, Counter()), limits)
        flagged, stands = flags.get(item, []), decided.get(item)
        newest = flagged[-1] if flagged else None
        to_review = flag_to_review(flagged, limits.flags_to_review)
        columns[item] = Columns(
            variance,
            is_divided,
            flags=len(flagged),
            category=newest.category if newest else "",
            decided=stands.action if stands else "",
            waits=waits(
                divided=is_divided,
                votes=row["votes"],
                flagged_at=to_review.flagged_at if to_review else None,
                decided=stands,
            ),
        )
    return columns


def touch(project: Project, item: UUID) -> None:
    """Bring up to date what is known of an item that was flagged or decided on just now.

    Under the project's lock, as sealing does.
    """
    _update(project, [item], parameters_of(project), touched=[item])


def _update(
    project: Project,
    items: Collection[UUID],
    limits: Parameters,
    new: Choices | None = None,
    new_flags: Flags | None = None,
    decisions: Sequence[Fact] = (),
    touched: Collection[UUID] = (),
) -> None:
    stored = _rows(items)
    expected = _expected(stored, limits, new or {}, new_flags or {}, decisions, touched)
    now, waiting, rows = timezone.now(), [], []
    for row in stored:
        item, columns = row["pk"], expected[row["pk"]]
        if row["review__pk"] is None:
            waiting += [item] if item in touched or _is_to_see(columns) else []
        elif columns != tuple(row[name] for name in _STORED):
            begins = columns.waits and not row["review__waits"]
            since = now if begins else row["review__since"]
            since_text = connection.ops.adapt_datetimefield_value(since)
            rows.append((*columns, since_text, row["review__pk"]))
    Review.objects.bulk_create(
        Review(item_id=item, project=project, since=now, **expected[item]._asdict())
        for item in _in_order(waiting)
    )
    update_many(Review, (*Columns._fields, "since"), rows)


def _rows(items: Collection[UUID]) -> list[Row]:
    """Return what is known of items; of deleted runs there is nothing to see."""
    is_flagged = Exists(Flag.objects.filter(item=OuterRef("pk")))
    item_rows = Item.objects.filter(pk__in=items, queue__deleted_at=None)
    names = (*_OF_ITEM, "review__pk", "review__since", *_STORED, "flagged")
    return list(item_rows.annotate(flagged=is_flagged).values(*names))


def _in_order(items: Collection[UUID]) -> list[UUID]:
    """What comes on the list together stands there in the order of its queue."""
    rows = Item.objects.filter(pk__in=items).order_by("queue_id", "position")
    return list(rows.values_list("pk", flat=True)) if items else []


def _is_to_see(columns: Columns) -> bool:
    """Say whether an item is kept by itself, without a decision on it: it waits, or is flagged."""
    return columns.is_divided or columns.flags > 0


class ReviewList(Projection):
    """Keeps `Review`."""

    def read(self, batch: Sequence[Fact]) -> None:
        self.new: dict[UUID, Counter[str]] = defaultdict(Counter)
        self.new_flags: dict[UUID, list[ReviewFlag]] = defaultdict(list)
        for entry in batch:
            is_simulated = entry.queue is not None and entry.queue.is_simulated
            if entry.item_id and counts(entry, is_simulated=is_simulated):
                self.new[entry.item_id][entry.choice] += 1
            if entry.item_id and entry.choice == "flag" and is_of_people(entry):
                flag = _flag_vote(entry.at, entry.category, entry.voter_id, entry.comment_sha256)
                self.new_flags[entry.item_id].append(flag)
        self.limits = parameters_of(self.project, batch)
        self.decisions = [e for e in batch if e.kind == Entry.Kind.DECISION and e.item_id]
        # Nobody can decide on what was deleted.
        self.deleted = {e.queue_id for e in batch if e.kind == Entry.Kind.ERASURE} - {None}
        # The counts of items are those behind this batch: `VoteCounts` has written them.
        new = {entry.item_id for entry in batch if entry.item_id is not None}
        chunk = [sorted(new | recounted_items(batch))]
        # Other limits may hold behind new settings: everything is looked at again.
        self.chunks = _all_items(self.project) if any(map(is_settings, batch)) else iter(chunk)

    def write(self) -> None:
        for items in self.chunks:
            decided = {fact.item_id for fact in self.decisions if fact.item_id} & {*items}
            _update(
                self.project, items, self.limits, self.new, self.new_flags, self.decisions, decided
            )
        if self.deleted:
            Review.objects.filter(item__queue__in=self.deleted).delete()

    def rebuild(self, *, write: bool) -> Iterator[Mismatch]:
        for items in _all_items(self.project):
            yield from self._rebuild(items, write=write)

    def _rebuild(self, items: Sequence[UUID], *, write: bool) -> Iterator[Mismatch]:
        stored = Review.objects.in_bulk(items, field_name="item_id")
        rows, limits = _rows(items), parameters_of(self.project)
        for item, columns in _expected(rows, limits, {}, {}, touched=items).items():
            if item not in stored and not _is_to_see(columns):
                continue
            review = stored.get(item) or Review(item_id=item, project=self.project)
            if write and item not in stored:
                review.save()
            yield from correct(review, f"review of {item}", columns._asdict(), write=write)


def _all_items(project: Project) -> Iterator[list[UUID]]:
    items = Item.objects.filter(queue__project=project).only("pk")
    for chunk in chunks(items, "pk", CHUNK):
        yield [item.pk for item in chunk]
