"""Two halves of a queue's prompts: judges are tuned on one, and told by the other, held out.

A `parameters` entry of the queue says that tuning was opened or ended, that somebody looked at the
half held out, and what they found, and which judge is in use or dropped::

    {"tuning": {"event": "opened", "held_out_from": 2305843009213693952, "turned": [17]}}
    {"tuning": {"event": "looked", "judge": JUDGE, "found": "…"}}
    {"tuning": {"event": "used", "judge": JUDGE}}
    {"tuning": {"event": "dropped", "judge": JUDGE}}
    {"tuning": {"event": "ended"}}

A prompt is held out if its keyed number (`voting.items.order.half_number`) is that number or
larger: a coin, also for what is added later. Of prompts that there were, of each two with as many
items that have votes one is held out (`voting.items.order.held_out_half`): `turned` are the numbers
of those that are in the other half than their coin says. The halves are set once.

While tuning is open nobody is shown votes or verdicts on items that are held out, nor a figure that
moves with them. Whoever shows single ones asks `kept_back` or leaves `HIDDEN` out; figures of a run
are made of the other half, and what is a sum over both (an ELO, a quality score, a report that was
frozen before) is withheld. Two things are shown: how many votes an item has and wants, since people
go on voting, and to a voter the voter's own votes, which the voter knows. A backup is whole.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final, Literal
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from humanjudge.core.http import Problem
from voting.items.order import COIN, half_number, held_out_half
from voting.ledger import ledger
from voting.ledger.counts import counted_in
from voting.models import Entry, Item, Queue, Voter

TUNING: Final = "tuning"


def held_out(item: str = "") -> Q:
    """Say of items, or of rows that have one by this name, that they are held out at this time."""
    return Q(**{f"{item}is_held_out": True, f"{item}queue__is_tuning": True})


# Of items; of votes and verdicts; and of what has a project in which judges are tuned.
KEPT_BACK: Final = held_out()
HIDDEN: Final = held_out("item__")
OF_TUNED: Final = Q(project__in=Queue.objects.filter(is_tuning=True).values("project"))
WORDS: Final = (
    "Judges are tuned on one half of this run. This {noun} is on the other, which is held out: "
    "nobody sees votes or verdicts on it until the tuning ends."
)
OF_ALL: Final = "Judges are tuned on one half of a run here. This file would show the other half."
OF_BOTH: Final = (
    "Judges are tuned on one half of a run here. What is made of both halves is shown again when "
    "the tuning ends."
)
_FEWEST_PROMPTS: Final = 2


class CannotTune(Exception):
    """The queue cannot be opened for tuning, or that cannot be ended; the text says why."""


def kept_back(items: Collection[UUID]) -> set[UUID]:
    """Return those of some items whose votes and verdicts nobody may see for now."""
    held_out = Item.objects.filter(KEPT_BACK, pk__in=items)
    return set(held_out.values_list("pk", flat=True)) if items else set()


def visible_votes(queue: Queue) -> Q:
    """Say of entries that they are votes that count and may be shown."""
    return counted_in(queue) & (Q(item__is_held_out=False) if queue.is_tuning else Q())


def is_tuned(project: UUID) -> bool:
    """Whether half of a run of a project is held out at this time."""
    return Queue.objects.filter(project=project, is_tuning=True).exists()


def refuse_whole_ledgers(project: UUID) -> None:
    """Refuse what shows all entries of a project while half of a run is held out."""
    if is_tuned(project):
        raise Problem(409, OF_ALL)


def is_held_out(queue: Queue, prompt_key: str) -> bool:
    if queue.held_out_from is None:
        return False
    number = half_number(queue.pk, prompt_key)
    return (number >= queue.held_out_from) != (number in queue.turned_prompts)


def open_tuning(queue: Queue, curator: Voter | None = None) -> None:
    """Split the prompts of a queue into halves, for good, and keep one from everybody."""
    with transaction.atomic():
        # Nobody adds items meanwhile.
        queue = Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)
        if queue.held_out_from is not None:
            raise CannotTune("This run was opened for tuning before; its halves are set once.")
        counts = queue.items.order_by().values_list("prompt_key")
        voted = dict(counts.annotate(voted=Count("pk", filter=Q(votes__gt=0))))
        if len(voted) < _FEWEST_PROMPTS:
            raise CannotTune("Tuning needs two prompts or more: one half of them is held out.")
        half = held_out_half(queue.pk, voted)
        numbers = {key: half_number(queue.pk, key) for key in voted}
        turned = sorted(
            number for key, number in numbers.items() if (number >= COIN) != (key in half)
        )
        _record(queue, "opened", curator, held_out_from=COIN, turned=turned)


def end_tuning(queue: Queue, curator: Voter | None = None) -> None:
    """Show the half that was held out; what is tuned from here on was tuned on all votes."""
    with transaction.atomic():
        queue = Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)
        if not queue.is_tuning:
            raise CannotTune("No tuning is open in this run.")
        _record(queue, "ended", curator)


def opened_at(queue: Queue) -> datetime | None:
    """Return when the tuning of a queue was opened, if it is still open."""
    opened = _entries(queue).filter(**{f"payload__{TUNING}__event": "opened"})
    return opened.values_list("at", flat=True).first() if queue.is_tuning else None


def note_look(queue: Queue, judge: UUID, curator: Voter | None = None, result: str = "") -> None:
    """Put into the ledger that somebody looks at how a judge does on the half held out.

    What they found is text, as a ledger has no floats.
    """
    _record(queue, "looked", curator, judge=str(judge), **({"found": result} if result else {}))


def use_judge(queue: Queue, judge: UUID, curator: Voter | None = None) -> None:
    """Name the judge that others are held against."""
    _record(queue, "used", curator, judge=str(judge))


def drop_judge(queue: Queue, judge: UUID, curator: Voter | None = None) -> None:
    _record(queue, "dropped", curator, judge=str(judge))


@dataclass(frozen=True)
class TuningHistory:
    """What was done while judges were tuned: judges by their numbers, the oldest first."""

    looks: list[str]
    # What the last look found, if it is still to be decided on.
    undecided: str
    in_use: str
    dropped: frozenset[str]


def tuning_history(queue: Queue) -> TuningHistory:
    looks, dropped, in_use, undecided = list[str](), set[str](), "", ""
    for payload in _entries(queue).values_list("payload", flat=True):
        change = payload[TUNING]
        if change["event"] == "looked":
            looks.append(change["judge"])
            undecided = change.get("found", "")
        elif change["event"] == "used":
            in_use, undecided = change["judge"], ""
            dropped.discard(in_use)
        elif change["event"] == "dropped":
            dropped.add(change["judge"])
            undecided = ""
    return TuningHistory(looks, undecided, in_use, frozenset(dropped))


def looks_at(queue: Queue) -> list[str]:
    """Return the judges whose figures of the half held out were looked at, once for each look."""
    return tuning_history(queue).looks


def _entries(queue: Queue) -> Any:
    of_queue = Entry.objects.filter(project=queue.project_id, queue=queue, kind="parameters")
    return of_queue.filter(payload__has_key=TUNING).order_by("at", "pk")


def _record(
    queue: Queue,
    event: Literal["opened", "looked", "used", "dropped", "ended"],
    curator: Voter | None,
    **about: int | str | list[int],
) -> None:
    entry = Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.PARAMETERS,
        at=timezone.now(),
        queue=queue,
        voter=curator,
        payload={TUNING: {"event": event, **about}},
    )
    ledger.record(entry)
    _apply(queue, [entry.payload])


def _apply(queue: Queue, payloads: Sequence[Any]) -> None:
    before = queue.held_out_from
    start, queue.is_tuning = _state(payloads, (before, queue.is_tuning))
    queue.held_out_from = start
    queue.save(update_fields=["is_tuning", "held_out_from"])
    if start != before:
        # A bundle's entries are not stored yet.
        turned = (payload[TUNING].get("turned", ()) for payload in payloads)
        queue.turned_prompts = frozenset(chain.from_iterable(turned))
        _place(queue)


def _state(payloads: Sequence[Any], state: tuple[int | None, bool]) -> tuple[int | None, bool]:
    for payload in payloads:
        change = payload[TUNING]
        if change["event"] == "opened":
            state = change["held_out_from"], True
        elif change["event"] == "ended":
            state = state[0], False
    return state


def _place(queue: Queue) -> None:
    keys = queue.items.order_by().values_list("prompt_key", flat=True).distinct()
    out = [key for key in keys if is_held_out(queue, key)]
    queue.items.update(is_held_out=False)
    for start in range(0, len(out), 500):
        queue.items.filter(prompt_key__in=out[start : start + 500]).update(is_held_out=True)


class Halves(ledger.Projection):
    """Keeps `Queue.is_tuning`, `Queue.held_out_from` and `Item.is_held_out`."""

    def read(self, batch: Sequence[ledger.Fact]) -> None:
        self.payloads: dict[Any, dict[Any, Any]] = {}
        for entry in batch:
            is_parameter = entry.kind == Entry.Kind.PARAMETERS and entry.queue_id
            if is_parameter and TUNING in (entry.payload or {}):
                self.payloads.setdefault(entry.queue_id, {})[entry.uid] = entry.payload

    def write(self) -> None:
        """Where a bundle brought them; whoever tunes here sees it at once."""
        for queue in Queue.objects.filter(pk__in=self.payloads):
            # Those of a bundle's batch are not stored yet, those of earlier batches are.
            stored = dict(_entries(queue).values_list("uid", "payload"))
            _apply(queue, list((stored | self.payloads[queue.pk]).values()))

    def rebuild(self, *, write: bool) -> Iterator[ledger.Mismatch]:
        for queue in Queue.objects.filter(project=self.project):
            payloads = list(_entries(queue).values_list("payload", flat=True))
            start, is_open = _state(payloads, (None, False))
            replayed = {"held_out_from": start, "is_tuning": is_open}
            yield from ledger.correct(queue, f"queue {queue.pk}", replayed, write=write)
            halves = queue.items.order_by().values_list("prompt_key", "is_held_out").distinct()
            expected = Queue(pk=queue.pk, project_id=queue.project_id, held_out_from=start)
            wrong = [key for key, half in halves if half != is_held_out(expected, key)]
            for key in wrong:
                about = f"half of prompt {key} of queue {queue.pk}"
                yield ledger.Mismatch(about, not is_held_out(expected, key), key)
            if wrong and write:
                _place(expected)
