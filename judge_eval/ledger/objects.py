"""The objects that the ledger covers: runs, judges, items with their outputs, and verdicts.

Figures and names come from rows beside the ledger. Its entries hold salted hashes of these rows, so
a row that was changed without a new entry is found. An `object` entry is about a run or a judge;
the `verdicts` entry of an item holds the hashes of the item and of each verdict on it.

A hash is SHA-256(salt || canonical JSON of the covered fields). Texts that public bundles leave out
have a hash of their own, with a salt that these bundles leave out too. Deleting a run deletes both.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import number_of
from judge_eval.models import Findings, Run, Verdict
from judge_eval.runs.queries import with_costs
from voting.ballot.queries import chunks
from voting.ledger import ledger
from voting.ledger.chain import salted_hash, timestamp
from voting.ledger.decisions import EXCLUDED
from voting.ledger.ledger import Mismatch, Projection
from voting.models import Entry, Item, Picture, Project, Queue

# The fields that are covered, by the names of their models.
COVERED: Final[Mapping[str, tuple[str, ...]]] = {
    "Run": ("name", "epsilon", "created_at", "started_at"),
    "Queue": (
        *("kind", "options", "ballot", "votes_per_item", "overlap_share", "overlap_votes"),
        *("reveal", "is_simulated"),
    ),
    "VoterPrompt": ("name", "text"),
    "Judge": (
        *("position", "name", "provider", "model", "reported_model", "fingerprint", "recipe"),
    ),
    "Item": ("position", "external_id", "prompt_key", "is_coupled"),
    "Inference": ("prompt", "kind", "generator", "tags", "created_at"),
    "Verdict": (
        *("state", "order", "winner", "consistent", "picks", "first_picks", "sample_consistency"),
        *("score_a", "score_b", "error", "labels", "latency_ms"),
    ),
}
# Covered where there is something: rows of before these fields are hashed as they were.
COVERED_IF_SET: Final[Mapping[str, tuple[str, ...]]] = {
    "Run": ("question",),
    "Judge": ("is_tuned", "description"),
}
# Covered too, by the hash of texts that public bundles leave out.
PRIVATE: Final[Mapping[str, tuple[str, ...]]] = {
    "Inference": ("output", "metadata"),
    "Verdict": ("feedback",),
}
# What is left of the private fields of an output in a public bundle.
LEFT_OUT: Final = {"output": "", "metadata": {"output_absent": True}}
# A verdict or an item of a bundle whose judges had not answered yet.
UNASKED: Final = "no verdict had come when the run was exported"
# The position with which a trace is hashed: the database settles its place, so that many may log
# traces at once.
UNPLACED: Final = -1
AT_ONCE: Final = 200
WAITING: Final = Verdict.State.WAITING


# --- canonical forms ------------------------------------------------------------------------------


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_PLAIN: Final = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """Return a value as canonical JSON takes it.

    A number is the same whether a database or a file returns it as 3 or as 3.0.

    >>> plain({"rate": 0.5, "time": 3.0, "picks": ("A", None)})
    {'rate': '0.5', 'time': 3, 'picks': ['A', None]}
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def _hashed(salt: str, form: Any) -> str:
    # `plain` leaves nothing that `chain.canonical` would refuse.
    return salted_hash(salt, _encode({"object": form}))


def _covered_fields(row: Model, names: Mapping[str, tuple[str, ...]] = COVERED) -> JsonObject:
    fields = ((name, getattr(row, name)) for name in names[type(row).__name__])
    # An import makes very many hashes, and most values are plain already.
    return {name: value if type(value) in _PLAIN else plain(value) for name, value in fields}


def _with_optional_fields(row: Model) -> JsonObject:
    names = COVERED_IF_SET[type(row).__name__]
    return _covered_fields(row) | {name: value for name in names if (value := getattr(row, name))}


def _texts(item: Item, verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return the hash of an item's private texts; none where a public bundle brought the run."""
    salt = item.queue.run.private_salt
    outputs = [_covered_fields(output, PRIVATE) for output in item.outputs]
    reasons = {
        str(verdict.judge.position): verdict.feedback for verdict in verdicts if verdict.feedback
    }
    if not (salt or reasons) and all(output == LEFT_OUT for output in outputs):
        return {}
    return {"texts": _hashed(salt, {"outputs": outputs, "reasons": reasons})}


# --- entries --------------------------------------------------------------------------------------


def item_hashes(item: Item, verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return what a `verdicts` entry holds of its item and of the texts of it."""
    # Whether a curator excluded an item follows from decisions in the ledger.
    unusable = "" if item.unusable in (EXCLUDED, UNASKED) else item.unusable
    outputs = [_covered_fields(output) for output in item.outputs]
    form = _covered_fields(item) | {"unusable": unusable, "outputs": outputs}
    return {"item": _hashed(item.queue.run.salt, form), **_texts(item, verdicts)}


def verdict_hash(run: Run, verdict: Verdict) -> str:
    # `with_costs` adds what calls cost that were made here.
    form = _covered_fields(verdict) | {
        "cost_nano": getattr(verdict, "all_nano", verdict.cost_nano),
        "unpriced": getattr(verdict, "all_unpriced", verdict.unpriced),
    }
    return _hashed(run.salt, form)


def config_hash(run: Run) -> str:
    # Public bundles leave it out: it holds the instructions of judges.
    return _hashed(run.private_salt, plain(run.config))


def record_objects(run: Run, *, append: bool = False) -> None:
    """Write an entry for the run and for each judge that differs from the last entry about it.

    Whoever changes one calls this in the same transaction; `append` is for imports, which hold the
    lock of the project and write entries that follow at once.
    """
    last = last_objects(run)
    about = {"project_id": run.queue.project_id, "queue": run.queue, "at": timezone.now()}
    entries = [
        Entry(kind=Entry.Kind.OBJECT, payload=payload, **about)
        for payload in _payloads(run, last)
        if payload != last.get(payload["id"])
    ]
    if append:
        ledger.append(run.queue.project_id, entries)
    else:
        ledger.record(*entries)


def record_changed_queues(queues: QuerySet[Queue]) -> None:
    """Do so for the runs of queues that were changed, unless the ledger does not know them yet."""
    # Whether people may vote is in no entry, and how many votes are awaited follows from it.
    Findings.objects.filter(run__queue__in=queues).update(is_behind=True)
    recorded = Entry.objects.filter(kind=Entry.Kind.OBJECT, queue=OuterRef("queue"))
    for run in Run.objects.filter(Exists(recorded), queue__in=queues):
        record_objects(run)


def last_payloads(items: Iterable[Item]) -> dict[UUID, JsonObject]:
    sealed = Entry.objects.filter(kind=Entry.Kind.VERDICTS, item__in=items).order_by("pk")
    rows: Iterable[Any] = sealed.values_list("item", "payload")
    return dict(rows)


def last_objects(run: Run) -> dict[str, dict[str, str]]:
    """Return the last payload about the run and about each of its judges, by their numbers."""
    entries = Entry.objects.filter(kind=Entry.Kind.OBJECT, queue=run.queue_id).order_by("pk")
    payloads: Iterable[Any] = entries.values_list("payload", flat=True)
    return {payload["id"]: payload for payload in payloads}


def _payloads(run: Run, last: Mapping[str, JsonObject]) -> Iterator[dict[str, str]]:
    form = _with_optional_fields(run) | {
        "queue": _covered_fields(run.queue),
        "rubric": _covered_fields(run.queue.rubric),
    }
    of_run = {"type": "run", "id": str(run.pk), "sha256": _hashed(run.salt, form)}
    if run.config is None and "config" in last.get(str(run.pk), ()):
        # A bundle brought the run; its config stayed where it came from.
        config = last[str(run.pk)]["config"]
    else:
        config = config_hash(run)
    yield of_run | {"config": config, "project": _hashed(run.salt, run.queue.project.name)}
    for judge in run.judges.order_by("position"):
        sha256 = _hashed(run.salt, _with_optional_fields(judge))
        yield {"type": "judge", "id": str(judge.pk), "sha256": sha256}


def verdicts_by_item(
    items: Iterable[Item], *, have_calls: bool = True
) -> dict[UUID, list[Verdict]]:
    """Return the verdicts on items, each with what its calls cost, in the run's order of judges."""
    verdicts: dict[UUID, list[Verdict]] = {item.pk: [] for item in items}
    about = Verdict.objects.filter(item__in=verdicts).select_related("judge")
    if have_calls:
        about = with_costs(about)
    for verdict in about.order_by("judge__position"):
        verdicts[verdict.item_id].append(verdict)
    return verdicts


# --- comparison -----------------------------------------------------------------------------------


class Objects(Projection):
    """Compares the rows beside the ledger with its entries; stands among the projections.

    It has nothing to write, and cannot correct a row, of which the ledger has a hash alone.
    """

    def rebuild(self, *, write: bool) -> Iterator[Mismatch]:
        runs = Run.objects.filter(queue__project=self.project)
        # A draft has no items, and is in no entry yet.
        recorded = runs.filter(~Q(state=Run.State.DRAFT) | Q(queue__items__isnull=False))
        for run in recorded.distinct().order_by("pk"):
            yield from _differences(run)
        yield from _emptied_texts(self.project)

    def gaps(self) -> list[str]:
        """Say what was sealed before there were hashes, and which configs are not stored here."""
        runs = Run.objects.filter(queue__project=self.project)
        objects = Entry.objects.filter(kind=Entry.Kind.OBJECT, queue=OuterRef("queue"))
        old = runs.filter(~Exists(objects), queue__items__isnull=False).distinct()
        entries = Entry.objects.filter(kind=Entry.Kind.VERDICTS, item=OuterRef("pk"))
        hashed = entries.filter(payload__has_key="item")
        items = Item.objects.filter(Exists(entries), ~Exists(hashed), queue__run__in=runs)
        unknown = Item.objects.filter(~Exists(entries), queue__run__in=old, opened_at__isnull=False)
        without = runs.filter(Exists(objects), config__isnull=True)
        elsewhere = [
            run
            for run in without
            if last_objects(run).get(str(run.pk), {}).get("config") != config_hash(run)
        ]
        closed = Item.objects.filter(~Exists(entries), queue__run__in=runs, opened_at=None)
        unopened = unsealed_verdicts(self.project).filter(item__in=closed).count()
        early = "made before the ledger covered them"
        gaps = {
            "settings and names of judges of {}": (old.count(), "run", early),
            "outputs of {} and details of verdicts on them": (items.count(), "item", early),
            "outputs of {} without any entry": (unknown.count(), "open item", early),
            "{} without any entry": (closed.count(), "item", "not open and in no figure"),
            "{} on them": (unopened, "verdict", "in no figure either"),
            "configs of {}": (len(elsewhere), "run", "which are not stored here"),
        }
        return [
            f"{wording.format(number_of(number, noun))}, {reason}"
            for wording, (number, noun, reason) in gaps.items()
            if number
        ]


def unsealed_verdicts(project: Project) -> QuerySet[Verdict]:
    """Return the verdicts of which no entry tells: on items that have none, or still to come."""
    entries = Entry.objects.filter(kind=Entry.Kind.VERDICTS, item=OuterRef("item"))
    to_come = Q(state=WAITING) | Q(error=UNASKED)
    return Verdict.objects.filter(~Exists(entries) | to_come, item__queue__project=project)


def _differences(run: Run) -> Iterator[Mismatch]:
    # What was changed between two queries is compared once more, while nobody can change it.
    if list(_run_differences(run)):
        yield from _run_differences(Run.objects.select_for_update(no_key=True).get(pk=run.pk))
    items = Item.objects.filter(queue=run.queue_id).order_by("position")
    for chunk in chunks(items.only("position"), "position", AT_ONCE):
        rows = items.filter(pk__in=[item.pk for item in chunk])
        if list(_items_differences(run, rows)):
            yield from _items_differences(run, rows.select_for_update(of=("self",), no_key=True))


def _run_differences(run: Run) -> Iterator[Mismatch]:
    last = last_objects(run)
    if str(run.pk) not in last:
        of_before = Entry.objects.filter(kind=Entry.Kind.VERDICTS, queue=run.queue_id)
        if last or not of_before.exists():
            yield Mismatch(f"run {run.name}", str(run.pk), None, is_correctable=False)
        return
    names = {str(judge.pk): f"judge {judge.name}" for judge in run.judges.all()}
    parts = {"config": "config of ", "project": "name of the project of "}
    for payload in _payloads(run, dict(last)):
        title = names.get(payload["id"], f"run {run.name}")
        # None states the project if it went into one of another name.
        for field, sealed in last.pop(payload["id"], {"sha256": None}).items():
            yield from _find_change(f"{parts.get(field, '')}{title}", payload[field], sealed)
    for number, gone in last.items():
        yield from _find_change(f"judge {number} of run {run.name}", None, gone["sha256"])


def _emptied_texts(project: Project) -> Iterator[Mismatch]:
    """Name what was said and is gone, unless an entry tells that its voter or run was erased."""
    entries: Any = Entry.objects.filter(project=project)
    erasures = entries.filter(kind=Entry.Kind.ERASURE).values_list("payload", flat=True)
    erased = {payload.get("voter", payload.get("queue")) for payload in erasures}
    has_text = Q(payload__isnull=False, kind=Entry.Kind.VOTE) | Q(kind=Entry.Kind.DECISION)
    rows = entries.filter(has_text | ~Q(comment_sha256=""), seq__isnull=False).order_by("seq")
    names = ("payload", "labels", "comment", "comment_sha256", "queue__run__private_salt")
    for seq, kind, queue, voter, payload, labels, comment, comment_sha256, salt in rows.values_list(
        "seq", "kind", "queue", "voter__pseudonym", *names
    ).iterator():
        content = payload or {}
        is_vote = kind == Entry.Kind.VOTE
        sealed = comment_sha256 if is_vote else content.get("why")
        # A reason goes with the curator who gave it, or with the voter whom it is about.
        if erased & {str(queue), voter, content.get("by")}:
            continue
        if content.get("labels_sha256") and not labels:
            yield Mismatch(f"the answers of entry {seq}", None, "", is_correctable=False)
        # A run of a public bundle has no private salt, and its comments are not here.
        if sealed and not comment and salt != "":
            yield Mismatch(f"the comment of entry {seq}", None, "", is_correctable=False)


def _items_differences(run: Run, items: QuerySet[Item]) -> Iterator[Mismatch]:
    chunk = list(items.select_related("a", "b"))
    last = last_payloads(chunk)
    verdicts, is_covered = verdicts_by_item(chunk), bool(last_objects(run))
    for item in chunk:
        item.queue = run.queue
        payload = last.get(item.pk, {"verdicts": []})
        title = f"{run.queue.noun} {item.position + 1} of {run.name}"
        # Of those that are asked again, the ledger has what they said before.
        is_at_work = run.state in (*Run.AT_WORK, Run.State.STOPPED)
        again = {
            verdict.judge_id
            for verdict in verdicts[item.pk]
            if is_at_work and verdict.state == WAITING
        }
        if "item" in payload:
            yield from _item_differences(
                title, item, verdicts[item.pk], payload, has_texts=not again
            )
        elif item.opened_at and item.pk not in last and is_covered:
            yield Mismatch(f"{title} is open", True, None, is_correctable=False)
        # Before it opens, verdicts come one by one and are in no entry.
        if item.pk in last or item.opened_at:
            final = {s["judge"]: s for s in payload["verdicts"] if UUID(s["judge"]) not in again}
            yield from _verdict_differences(title, run, verdicts[item.pk], final)


def _item_differences(
    title: str,
    item: Item,
    verdicts: Sequence[Verdict],
    payload: JsonObject,
    *,
    has_texts: bool,
) -> Iterator[Mismatch]:
    hashes = item_hashes(item, verdicts)
    if hashes["item"] != payload["item"]:
        item.position = UNPLACED
        yield from _find_change(title, item_hashes(item, verdicts)["item"], payload["item"])
    if has_texts and "texts" in hashes:
        yield from _find_change(f"texts of {title}", hashes["texts"], payload.get("texts"))
    if item.opened_at is None and not item.unusable:
        drawings = [output.picture_id for output in item.outputs if output.picture_id]
        if not Picture.objects.filter(pk__in=drawings, state=Picture.State.WAITING).exists():
            yield Mismatch(f"{title} is closed", True, False, is_correctable=False)


def _verdict_differences(
    title: str, run: Run, verdicts: Iterable[Verdict], sealed: dict[str, JsonObject]
) -> Iterator[Mismatch]:
    # One that is still to come is in no entry.
    for verdict in verdicts:
        if verdict.state == WAITING or verdict.error == UNASKED:
            continue
        entry = sealed.pop(str(verdict.judge_id), {})
        verdict_title = f"verdict of {verdict.judge.name} on {title}"
        if "sha256" in entry:
            yield from _find_change(verdict_title, verdict_hash(run, verdict), entry["sha256"])
        else:
            # Sealed before the ledger covered verdicts: it has the winner alone.
            current = [verdict.winner or None, verdict.consistent]
            before = [entry.get("winner", ""), entry.get("consistent")]
            yield from _find_change(verdict_title, current, before)
    for judge in sealed:
        yield Mismatch(f"verdict of judge {judge} on {title}", None, "", is_correctable=False)


def _find_change(title: str, stored: object, sealed: object) -> Iterator[Mismatch]:
    if stored != sealed:
        yield Mismatch(title, stored, sealed, is_correctable=False)
