"""The pairs that rows are about: found by their names, made where there are none, added to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

from django.db.models import Q, QuerySet

from judge_eval.engine.lifecycle import OUTPUT_ABSENT as ABSENT
from judge_eval.interchange.rows import Row
from judge_eval.models import Run
from judge_eval.transfer.import_report import ImportOptions, ImportReport
from judge_eval.transfer.import_rows import PairDraft
from voting.models import Comparison, Inference, Picture, Queue
from voting.pictures import source_address
from voting.rows import key, update_many

# In an output's metadata: the source holds no text, which is not an empty text.
PROMPT_ID: Final = "prompt_id"
# What was changed in it before it was stored, in words, as a call keeps it of what it brought.
CHANGES: Final = "changes"
_UNREAD: Final = object()
_STORED: Final = (
    "pk",
    "external_id",
    "position",
    "a",
    "b",
    "a__prompt",
    "a__kind",
    "a__tags",
    "a__metadata",
    "b__metadata",
    "a__generator",
    "b__generator",
)


class Pairs:
    """Writes the pairs of one run, a chunk of rows at a time."""

    def __init__(self, run: Run, options: ImportOptions, report: ImportReport) -> None:
        self._queue = run.queue
        self._report = report
        last = run.queue.comparisons.order_by("-position").values_list("position", "a__kind")
        position, kind = last.first() or (-1, None)
        self._position = position + 1
        self._kind = options.kind or kind or Inference.Kind.TEXT
        # One byte for each pair that was here before: whether the import has named it.
        self._named = bytearray(position + 1)

    def write(self, rows: Sequence[Row]) -> list[tuple[Row, UUID]]:
        """Write what rows say of their pairs; return those without a fault, each with its pair."""
        drafts = self._drafts(rows)
        taken = []
        for row in rows:
            error = drafts[row.pair.id].take(row)
            if error:
                self._report.fail(error)
            else:
                taken.append((row, drafts[row.pair.id].pk))
        self._create([draft for draft in drafts.values() if draft.position is None])
        self._change([d for d in drafts.values() if d.position is not None and d.added])
        return taken

    def _drafts(self, rows: Sequence[Row]) -> dict[str, PairDraft]:
        names = {row.pair.id for row in rows}
        telling = {
            row.pair.id
            for row in rows
            if row.pair.output_a is not None or row.pair.output_b is not None
        }
        drafts = {draft.name: draft for draft in self._stored(names)}
        self._read_outputs([draft for draft in drafts.values() if draft.name in telling])
        for name in (row.pair.id for row in rows):
            if name not in drafts:
                drafts[name] = PairDraft(name, uuid4(), uuid4(), uuid4(), {"kind": self._kind})
        return drafts

    def _stored(self, names: set[str]) -> Iterable[PairDraft]:
        # The first condition is that of the index on the names.
        pairs = Comparison.objects.filter(queue=self._queue)
        named = pairs.filter(~Q(external_id=""), external_id__in=names)
        for row in named.values(*_STORED):
            names.discard(row["external_id"])
            yield self._draft(row["external_id"], row)
        # A pair that was made here goes by its own number.
        numbers = [number for name in names if (number := uuid(name))]
        for row in pairs.filter(external_id="", pk__in=numbers).values(*_STORED):
            yield self._draft(str(row["pk"]), row)

    def _draft(self, name: str, row: dict[str, Any]) -> PairDraft:
        if row["position"] < len(self._named) and not self._named[row["position"]]:
            self._named[row["position"]] = True
            self._report.already["pairs"] += 1
        known = {
            "kind": row["a__kind"],
            "prompt": row["a__prompt"] or None,
            "prompt_id": row["a__metadata"].get(PROMPT_ID),
            "tags": tuple(row["a__tags"]) or None,
            "generator_a": row["a__generator"] or None,
            "generator_b": row["b__generator"] or None,
        }
        for side in "ab":
            if not row[f"{side}__metadata"].get(ABSENT):
                known[f"output_{side}"] = _UNREAD
        return PairDraft(
            name,
            row["pk"],
            row["a"],
            row["b"],
            known={field: value for field, value in known.items() if value is not None},
            position=row["position"],
            is_complete=row["external_id"] == "",
        )

    def _read_outputs(self, drafts: Sequence[PairDraft]) -> None:
        pks = [pk for draft in drafts for pk in (draft.a, draft.b)]
        outputs = dict(Inference.objects.filter(pk__in=pks).values_list("pk", "output"))
        for draft in drafts:
            for field, pk in (("output_a", draft.a), ("output_b", draft.b)):
                if field in draft.known:
                    draft.known[field] = outputs[pk]

    def _create(self, drafts: Sequence[PairDraft]) -> None:
        inferences = [
            Inference(pk=pk, project_id=self._queue.project_id)
            for draft in drafts
            for pk in (draft.a, draft.b)
        ]
        self._fill(drafts, {inference.pk: inference for inference in inferences})
        Inference.objects.bulk_create(inferences)
        Comparison.objects.bulk_create(
            Comparison(
                pk=draft.pk,
                queue=self._queue,
                position=position,
                external_id=draft.name,
                a_id=draft.a,
                b_id=draft.b,
                votes_wanted=self._queue.votes_per_item,
            )
            for position, draft in enumerate(drafts, start=self._position)
        )
        self._position += len(drafts)
        self._report.new["pairs"] += len(drafts)

    def _change(self, drafts: Sequence[PairDraft]) -> None:
        self._report.filled += sum((draft.position or 0) < len(self._named) for draft in drafts)
        inferences = Inference.objects.in_bulk([pk for d in drafts for pk in (d.a, d.b)])
        self._fill(drafts, inferences)
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

    def _fill(self, drafts: Sequence[PairDraft], inferences: dict[UUID, Inference]) -> None:
        """Put what is known of pairs into their outputs; what is not read is not touched."""
        for draft in drafts:
            for side, pk in (("a", draft.a), ("b", draft.b)):
                _fill(inferences[pk], draft.known, side)
                if changes := draft.changes.get(f"output_{side}"):
                    inferences[pk].metadata[CHANGES] = list(changes)
        drawings = {
            row.pk: source_address(row.output)
            for row in inferences.values()
            if row.kind == Inference.Kind.SVG and ABSENT not in row.metadata
        }
        pictures = pictures_of(set(drawings.values()))
        for pk, address in drawings.items():
            inferences[pk].picture_id = pictures[address]


def _fill(inference: Inference, known: dict[str, Any], side: str) -> None:
    output = known.get(f"output_{side}")
    inference.prompt = known.get("prompt", "")
    inference.tags = list(known.get("tags", ()))
    inference.generator = known.get(f"generator_{side}", "")
    inference.kind = known["kind"]
    inference.metadata = {k: v for k, v in inference.metadata.items() if k != ABSENT}
    if PROMPT_ID in known:
        inference.metadata[PROMPT_ID] = known[PROMPT_ID]
    if output is None:
        inference.metadata[ABSENT] = True
    elif output is not _UNREAD:
        inference.output = output


def pictures_of(addresses: set[str]) -> dict[str, int]:
    """Return the picture of each source, made where there is none yet."""
    rows = [Picture(source_sha256=address) for address in sorted(addresses)]
    Picture.objects.bulk_create(rows, ignore_conflicts=True)
    found = Picture.objects.filter(source_sha256__in=addresses)
    return dict(found.values_list("source_sha256", "pk"))


def close_undrawn(queue: Queue) -> None:
    """Let pairs whose drawings came with an import wait until they are drawn here."""
    waiting = Picture.State.WAITING
    undrawn = Q(a__picture__state=waiting) | Q(b__picture__state=waiting)
    Comparison.objects.filter(undrawn, queue=queue, unusable="").update(opened_at=None)


def uuid(text: str) -> UUID | None:
    """Return the UUID that a text writes in the one usual way, None for any other text."""
    try:
        number = UUID(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def lacking_outputs(queue: Queue) -> QuerySet[Comparison]:
    a, b = (f"{side}__metadata__{ABSENT}" for side in "ab")
    return queue.comparisons.filter(Q(**{a: True}) | Q(**{b: True}))
