"""Everything of a run or of a project as the lines of a bundle, read a chunk at a time.

Votes are read up to the head that the project's ledger has at the start: what is voted meanwhile is
in the next export. The number of queries is the same for every chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import (
    Count,
    Exists,
    IntegerField,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce

from judge_eval.exchange import bundle as records
from judge_eval.models import Call, Run, Verdict
from judge_eval.selectors import UNPRICED
from voting.models import Entry, Flag, Inference, Item, Project, Voter, VoterPrompt

AT_ONCE: Final = 1000
# Outputs are long.
OUTPUTS_AT_ONCE: Final = 100

Row = TypeVar("Row", bound=Model)


def export_run(run: Run) -> Iterator[str]:
    """Yield the lines of a bundle of one run, without their ends."""
    project = Project.objects.get(queues__run=run)
    return _lines(project, [run], Q(queue=run.queue_id))


def export_project(project: Project) -> Iterator[str]:
    """Yield the lines of a bundle of a project: its runs, and what its ledger says of them.

    A run that is still being imported, and what the ledger holds of it by now, are left out.
    """
    fresh = Project.objects.get(pk=project.pk)
    runs = list(Run.objects.filter(queue__project=fresh).order_by("created_at", "pk"))
    return _lines(fresh, runs, Q(queue__isnull=True) | Q(queue__run__in=runs))


def _lines(project: Project, runs: Sequence[Run], entries: Q) -> Iterator[str]:
    lines = 0
    for record in _records(project, runs, entries):
        yield record.model_dump_json()
        lines += 1
    yield records.End(lines=lines).model_dump_json()


def _records(project: Project, runs: Sequence[Run], of_runs: Q) -> Iterator[records.Record]:
    sealed = Entry.objects.filter(of_runs, project=project, seq__lte=project.head_seq)
    about = _same(project, "name", "created_at", "head_seq", "head")
    part = records.ProjectPart(id=project.pk, **about)
    yield records.Header(project=part, runs=[run.pk for run in runs])
    for rubric in _rubrics(runs, sealed):
        yield records.Rubric(**_same(rubric, "name", "version", "text", "created_at"))
    by_queue = {run.queue_id: run.pk for run in runs}
    for run in runs:
        yield from _run(run)
    voters = Voter.objects.filter(
        Q(Exists(sealed.filter(voter=OuterRef("pk"))))
        | Q(Exists(Flag.objects.filter(voter=OuterRef("pk"), item__queue__in=by_queue))),
        project=project,
    )
    for voter in in_chunks(voters, "pseudonym"):
        yield records.VoterPart(pseudonym=voter.pseudonym, reputation=voter.reputation)
    flags = Flag.objects.filter(item__queue__in=by_queue).select_related("voter")
    for flag in in_chunks(flags, "pk"):
        about = _same(flag, "category", "comment", "created_at")
        pair, voter_name = flag.item_id, flag.voter.pseudonym
        yield records.FlagPart(comparison=pair, voter=voter_name, **about)
    yield from _ledger(sealed, by_queue)


def _rubrics(runs: Sequence[Run], sealed: QuerySet[Entry]) -> QuerySet[VoterPrompt]:
    """Return the rubrics that these runs ask now, and those that their votes answered."""
    answered = sealed.filter(kind=Entry.Kind.VOTE).order_by().values("rubric").distinct()
    used = Q(queues__run__in=runs) | Q(pk__in=answered)
    return VoterPrompt.objects.filter(used).distinct().order_by("name", "version")


def _run(run: Run) -> Iterator[records.Record]:
    yield _run_part(Run.objects.select_related("queue__rubric").get(pk=run.pk))
    for judge in run.judges.order_by("position"):
        names = records.JudgePart.model_fields.keys() - {"type", "id", "run"}
        yield records.JudgePart(id=judge.pk, run=run.pk, **_same(judge, *names))
    pairs = Item.objects.filter(queue=run.queue_id)
    used = Q(Exists(pairs.filter(a=OuterRef("pk")))) | Q(Exists(pairs.filter(b=OuterRef("pk"))))
    outputs = Inference.objects.filter(used)
    names = records.Output.model_fields.keys() - {"type", "id"}
    for output in in_chunks(outputs, "pk", OUTPUTS_AT_ONCE):
        yield records.Output(id=output.pk, **_same(output, *names))
    for pair in in_chunks(pairs, "position"):
        assert pair.b_id is not None  # a bundle holds pairs
        names = records.Pair.model_fields.keys() - {"type", "id", "run", "a", "b"}
        about = _same(pair, *names)
        yield records.Pair(id=pair.pk, run=run.pk, a=pair.a_id, b=pair.b_id, **about)
    yield from map(_verdict, in_chunks(_with_cost(Verdict.objects.filter(judge__run=run)), "pk"))


def in_chunks(rows: QuerySet[Row], order: str, at_once: int | None = None) -> Iterator[Row]:
    """Yield rows in the order of a field that no two of them share, so many at a time."""
    at_once = at_once or AT_ONCE
    rows = rows.order_by(order)
    chunk = list(rows[:at_once])
    while chunk:
        yield from chunk
        chunk = list(rows.filter(**{f"{order}__gt": getattr(chunk[-1], order)})[:at_once])


def _same(row: Model, *names: str) -> dict[str, Any]:
    """Return the fields that a record calls as the row does."""
    return {name: getattr(row, name) for name in names}


def _reference(rubric: VoterPrompt) -> records.RubricRef:
    return records.RubricRef(name=rubric.name, version=rubric.version)


def _run_part(run: Run) -> records.RunPart:
    queue = run.queue
    return records.RunPart(
        id=run.pk,
        queue=queue.pk,
        rubric=_reference(queue.rubric),
        **_same(run, "name", "state", "note", "config", "budget_nano", "spent_nano"),
        **_same(run, "created_at", "started_at"),
        **_same(queue, "ballot", "votes_per_item", "overlap_share", "overlap_votes", "reveal"),
        **_same(queue, "is_open", "is_simulated"),
    )


def _with_cost(verdicts: QuerySet[Verdict]) -> QuerySet[Any]:
    """Add what a verdict's calls cost: they stay here, and what they cost is on the board."""
    calls = Call.objects.filter(verdict=OuterRef("pk")).exclude(state=Call.State.WAITING)
    of_one = calls.order_by().values("verdict")
    nano = of_one.annotate(nano=Sum("cost_nano")).values("nano")
    unpriced = of_one.annotate(unpriced=Count("pk", filter=UNPRICED)).values("unpriced")
    return verdicts.annotate(
        paid_nano=Coalesce(Subquery(nano), "cost_nano"),
        paid_unknown=Coalesce(Subquery(unpriced), "unpriced", output_field=IntegerField()),
    )


def _verdict(row: Any) -> records.VerdictPart:
    of_calls = {"cost_nano": row.paid_nano, "unpriced": row.paid_unknown}
    names = records.VerdictPart.model_fields.keys() - {"type", "judge", "comparison", *of_calls}
    return records.VerdictPart(
        judge=row.judge_id, comparison=row.item_id, **_same(row, *names), **of_calls
    )


def _ledger(sealed: QuerySet[Entry], runs: dict[UUID, UUID]) -> Iterator[records.Record]:
    entries = sealed.select_related("voter", "rubric", "target").order_by("seq")
    after = 0
    while chunk := list(entries.filter(seq__gt=after)[:AT_ONCE]):
        taken_back = _retractions(chunk, sealed)
        for entry in chunk:
            if entry.kind == Entry.Kind.VOTE:
                yield _vote(entry, runs, taken_back.get(entry.pk))
            else:
                yield _other(entry, runs)
        after = chunk[-1].seq or 0


def _retractions(
    votes: Sequence[Entry], sealed: QuerySet[Entry]
) -> dict[int | None, records.Retracted]:
    """Return when votes were taken back, by the votes' keys; as far as the export knows."""
    targets = [vote.pk for vote in votes if vote.retracted_seq]
    retractions = Entry.objects.filter(kind=Entry.Kind.RETRACTION, target__in=targets)
    return {
        entry.target_id: records.Retracted(seq=entry.seq or 0, at=entry.at)
        for entry in sealed.filter(pk__in=retractions).only("target", "seq", "at")
    }


def _vote(
    entry: Entry, runs: dict[UUID, UUID], retracted: records.Retracted | None
) -> records.Vote:
    assert entry.voter is not None and entry.rubric is not None  # noqa: PT018  it is a vote
    names = ("choice", "value", "category", "elapsed_ms", "reputation", "unblinded", "simulated")
    return records.Vote(
        **_entry(entry, runs),
        voter=entry.voter.pseudonym,
        rubric=_reference(entry.rubric),
        **_same(entry, *names, "left_side", "comment", "comment_sha256", "salt", "labels"),
        labels_sha256=(entry.payload or {"labels_sha256": ""})["labels_sha256"],
        retracted=retracted,
    )


def _other(entry: Entry, runs: dict[UUID, UUID]) -> records.EntryPart:
    return records.EntryPart(
        **_entry(entry, runs),
        voter=entry.voter.pseudonym if entry.voter else None,
        target=entry.target.uid if entry.target else None,
        **_same(entry, "kind", "payload"),
    )


def _entry(entry: Entry, runs: dict[UUID, UUID]) -> dict[str, Any]:
    assert entry.seq is not None and entry.hash is not None  # noqa: PT018  it is sealed
    return {
        "seq": entry.seq,
        "hash": bytes(entry.hash).hex(),
        "id": entry.uid,
        "at": entry.at,
        "run": runs[entry.queue_id] if entry.queue_id else None,
        "comparison": entry.item_id,
        "inference": entry.inference_id,
    }
