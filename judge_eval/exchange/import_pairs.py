"""The pairs that rows are about: found by their names, put together, then written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

from django.db.models import Q, QuerySet

from judge_eval.exchange.import_report import ImportReport
from judge_eval.exchange.import_scratch import UNREAD, PairDraft, Scratch
from judge_eval.exchange.rows import OUTPUTS, Row
from judge_eval.exchange.writing import give_pictures
from judge_eval.runs.lifecycle import OUTPUT_ABSENT as ABSENT
from voting.ledger.bulk_sql import key, update_many
from voting.models import Inference, Item, Queue, prompt_key
from voting.order import fresh_turn

# In an output's metadata.
_NOTED: Final = ("prompt_id", "cluster")
# What was changed in it before it was stored, in words, as a call keeps it of what it brought.
CHANGES: Final = "changes"
# A pair is read without its outputs: they are long, and seldom needed.
_WITHOUT_OUTPUTS: Final = ("a__output", "b__output", "b__prompt")


class PairsRead:
    """Puts together what rows say of pairs, a chunk of rows at a time, and writes nothing.

    Parameters
    ----------
    queue : Queue, optional
        Where there may be pairs already.
    """

    def __init__(
        self, queue: Queue | None, kind: str | None, scratch: Scratch, report: ImportReport
    ) -> None:
        self._queue, self._scratch, self._report = queue, scratch, report
        self._kind = kind or _kind_of_last(queue) or Inference.Kind.TEXT

    def take(self, rows: Sequence[Row]) -> list[tuple[Row, UUID]]:
        """Take in what rows say of their pairs; return those without a fault, with their pairs."""
        drafts, fresh = self._drafts(rows)
        before = {name: dict(draft.known) for name, draft in drafts.items()}
        taken = []
        for row in rows:
            error = drafts[row.pair.id].take(row)
            if error:
                self._report.fail(error)
            else:
                taken.append((row, drafts[row.pair.id].pk))
        for name, draft in drafts.items():
            is_changed = draft.known != before[name]
            self._report.filled += is_changed and draft.position is not None
            if is_changed or name in fresh:
                self._scratch.keep(draft)
        return taken

    def lacking(self) -> int:
        """Count the pairs of the run that will have no outputs."""
        number = lacking_outputs(self._queue).count() if self._queue else 0
        row = 0
        while drafts := self._scratch.pairs_after(row):
            row += len(drafts)
            for draft in drafts:
                if draft.position is None:
                    number += draft.lacks_output
                elif draft.added & set(OUTPUTS):
                    number -= not draft.lacks_output
        return number

    def _drafts(self, rows: Sequence[Row]) -> tuple[dict[str, PairDraft], set[str]]:
        """Return the pairs that rows are about, and the names of those met for the first time."""
        names = {row.pair.id for row in rows}
        drafts = {draft.name: draft for draft in self._scratch.drafts(names)}
        fresh = names - drafts.keys()
        stored = {draft.name: draft for draft in self._stored(fresh)}
        self._report.already["pairs"] += len(stored)
        self._report.new["pairs"] += len(fresh) - len(stored)
        for name in fresh:
            drafts[name] = stored.get(name) or _new_draft(name, self._kind)
        telling = {
            row.pair.id
            for row in rows
            if row.pair.output_a is not None or row.pair.output_b is not None
        }
        self._read_outputs([drafts[name] for name in telling])
        # New pairs are kept, and then stand in the run, in the order of the rows.
        return {row.pair.id: drafts[row.pair.id] for row in rows}, fresh

    def _stored(self, wanted: set[str]) -> Iterator[PairDraft]:
        if not self._queue:
            return
        names = set(wanted)
        pairs = Item.objects.filter(queue=self._queue).select_related("a", "b")
        pairs = pairs.defer(*_WITHOUT_OUTPUTS)
        # The first condition is that of the index on the names.
        for pair in pairs.filter(~Q(external_id=""), external_id__in=names):
            names.discard(pair.external_id)
            yield _stored_draft(pair.external_id, pair)
        # A pair that was made here goes by its own number.
        numbers = [number for name in names if (number := uuid(name))]
        for pair in pairs.filter(external_id="", pk__in=numbers):
            yield _stored_draft(str(pair.pk), pair)

    def _read_outputs(self, drafts: Sequence[PairDraft]) -> None:
        for draft in drafts:
            self._scratch.read_outputs(draft)
        sides = [
            (draft, field, draft.a if field == "output_a" else draft.b)
            for draft in drafts
            for field in OUTPUTS
            if draft.known.get(field) is UNREAD
        ]
        stored = Inference.objects.filter(pk__in=[pk for *_, pk in sides])
        outputs = dict(stored.values_list("pk", "output"))
        for draft, field, pk in sides:
            draft.known[field] = outputs[pk]


def _kind_of_last(queue: Queue | None) -> str | None:
    last = queue.items.order_by("-position") if queue else Item.objects.none()
    return last.values_list("a__kind", flat=True).first()


def _new_draft(name: str, kind: str) -> PairDraft:
    return PairDraft(name, uuid4(), uuid4(), uuid4(), {"kind": kind})


def _stored_draft(name: str, pair: Item) -> PairDraft:
    a, b = pair.pair
    known = {
        "kind": a.kind,
        "prompt": a.prompt,
        **{name: a.metadata.get(name) for name in _NOTED},
        "tags": tuple(a.tags),
        "generator_a": a.generator,
        "generator_b": b.generator,
    }
    known = {field: value for field, value in known.items() if value}
    for field, output in zip(OUTPUTS, (a, b), strict=True):
        if not output.metadata.get(ABSENT):
            known[field] = UNREAD
    return PairDraft(
        name,
        pair.pk,
        a.pk,
        b.pk,
        known,
        position=pair.position,
        is_open=pair.opened_at is not None,
        is_complete=pair.external_id == "",
    )


def write_pairs(queue: Queue, drafts: Sequence[PairDraft]) -> None:
    """Write what was put together: make pairs behind those of the queue, add to those it has."""
    _create(queue, [draft for draft in drafts if draft.position is None])
    _change(queue, [draft for draft in drafts if draft.position is not None and draft.added])


def _create(queue: Queue, drafts: Sequence[PairDraft]) -> None:
    inferences = [
        Inference(pk=pk, project_id=queue.project_id) for d in drafts for pk in (d.a, d.b)
    ]
    _fill_all(drafts, {inference.pk: inference for inference in inferences})
    Inference.objects.bulk_create(inferences)
    last = queue.items.order_by("-position").values_list("position", flat=True).first()
    Item.objects.bulk_create(
        Item(
            pk=draft.pk,
            queue=queue,
            position=position,
            external_id=draft.name,
            prompt_key=_prompt_key(draft),
            turn=fresh_turn(queue.pk, _prompt_key(draft)),
            a_id=draft.a,
            b_id=draft.b,
            votes_wanted=queue.votes_per_item,
        )
        for position, draft in enumerate(drafts, start=0 if last is None else last + 1)
    )


def _change(queue: Queue, drafts: Sequence[PairDraft]) -> None:
    inferences = Inference.objects.in_bulk([pk for d in drafts for pk in (d.a, d.b)])
    _fill_all(drafts, inferences)
    # What is open already goes by the key that the ledger tells.
    update_many(
        Item,
        ["prompt_key", "turn"],
        [
            (prompt, fresh_turn(queue.pk, prompt), key(draft.pk))
            for draft in drafts
            if not draft.is_open
            for prompt in [_prompt_key(draft)]
        ],
    )
    update_many(
        Inference,
        ["prompt", "output", "kind", "generator", "metadata", "tags", "picture_id"],
        [
            (
                row.prompt,
                row.output,
                row.kind,
                row.generator,
                json.dumps(row.metadata),
                json.dumps(row.tags),
                row.picture_id,
                key(row.pk),
            )
            for row in inferences.values()
        ],
    )


def _fill_all(drafts: Iterable[PairDraft], inferences: dict[UUID, Inference]) -> None:
    """Put what is known of pairs into their outputs; what is not read is not touched."""
    for draft in drafts:
        for side, pk in (("a", draft.a), ("b", draft.b)):
            _fill(inferences[pk], draft.known, side)
            if changes := draft.changes.get(f"output_{side}"):
                inferences[pk].metadata[CHANGES] = list(changes)
    give_pictures(inferences)


def _prompt_key(draft: PairDraft) -> str:
    """Return what a pair's prompt is called; nothing is known to share one that nobody told."""
    prompt = draft.known.get("prompt")
    named = draft.known.get("cluster") or draft.known.get("prompt_id")
    return named or (prompt_key(prompt) if prompt else str(draft.pk))


def _fill(inference: Inference, known: dict[str, Any], side: str) -> None:
    output = known.get(f"output_{side}")
    inference.prompt = known.get("prompt", "")
    inference.tags = list(known.get("tags", ()))
    inference.generator = known.get(f"generator_{side}", "")
    inference.kind = known["kind"]
    inference.metadata = {k: v for k, v in inference.metadata.items() if k != ABSENT}
    inference.metadata |= {name: known[name] for name in _NOTED if name in known}
    if output is None:
        inference.metadata[ABSENT] = True
    elif output is not UNREAD:
        inference.output = output


def uuid(text: str) -> UUID | None:
    """Return the UUID that a text writes in the one usual way, None for any other text."""
    try:
        number = UUID(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def lacking_outputs(queue: Queue) -> QuerySet[Item]:
    a, b = (f"{side}__metadata__{ABSENT}" for side in "ab")
    return queue.items.filter(Q(**{a: True}) | Q(**{b: True}))
