"""Everything of a run or of a project as a bundle.

All is read a chunk at a time, votes up to the head that the project's ledger has at the start: what
is voted meanwhile is in the next export. The number of queries is the same for every chunk.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from pydantic import BaseModel

from judge_eval.exports import bundle
from judge_eval.models import Run, Verdict
from judge_eval.runs.queries import with_costs
from voting.ballot.queries import chunks
from voting.ballot.tuning import refuse_whole_ledgers
from voting.ledger.groups import STATES_GROUPS
from voting.models import Entry, Flag, Inference, Item, Project, Voter, VoterPrompt
from voting.pictures.images import data_url

# Outputs are long.
AT_ONCE: Final = 200
# What records of the ledger call otherwise than its rows, and what they are made of beside these.
_OF_ENTRY: Final = {
    "id": "uid",
    "run": "queue",
    "comparison": "item",
    "voter": "voter__pseudonym",
    "target": "target__uid",
}
_COMPUTED_FIELDS: Final = {"type", "rubric", "labels_sha256", "retracted"}
_OF_THESE: Final = "kind payload rubric__name rubric__version retracted_seq retracted_at".split()
Part = TypeVar("Part", bound=BaseModel)
Row = TypeVar("Row")


class LedgerNotWhole(Exception):
    """A ledger holds entries of a run that was deleted, or that is still being imported."""


def export_run(run: Run) -> Iterator[str]:
    """Yield the lines of a bundle of one run, without their ends."""
    project = Project.objects.get(queues__run=run)
    refuse_whole_ledgers(project.pk)
    of_run = Q(queue=run.queue_id) | STATES_GROUPS | Q(kind=Entry.Kind.ERASURE, queue=None)
    sealed = Entry.objects.filter(of_run, project=project, seq__lte=project.head_seq)
    return _lines(project, [run], sealed)


def export_project(project: Project) -> Iterator[str]:
    """Yield the lines of a bundle of a project: its runs, and what its ledger says of them.

    A run that is still being imported, and what the ledger holds of it by now, are left out.
    """
    refuse_whole_ledgers(project.pk)
    fresh, runs = _project_with_runs(project)
    return _lines(fresh, runs, _sealed_entries(fresh, runs))


def project_rows(project: Project) -> Iterator[str]:
    """Yield the lines of a project's bundle that stand before the ledger, without its drafts."""
    fresh, runs = _project_with_runs(project)
    runs = [run for run in runs if run.state != Run.State.DRAFT]
    for record in _rows(fresh, runs, _sealed_entries(fresh, runs)):
        yield record.model_dump_json()


def project_ledger(project: Project, runs: Collection[UUID], last: int) -> Iterator[str]:
    """Yield the lines of a project's ledger as it was when it ended with this entry.

    Raises LedgerNotWhole where it holds entries of runs that are not among these.
    """
    existing = list(Run.objects.filter(pk__in=runs, queue__project=project))
    sealed = _sealed_entries(project, existing).filter(seq__lte=last)
    if len(existing) < len(runs) or sealed.count() < last:
        raise LedgerNotWhole
    for record in _ledger(sealed, {run.queue_id: run.pk for run in existing}):
        yield record.model_dump_json()


def _project_with_runs(project: Project) -> tuple[Project, list[Run]]:
    fresh = Project.objects.get(pk=project.pk)
    return fresh, list(Run.objects.filter(queue__project=fresh).order_by("created_at", "pk"))


def _sealed_entries(project: Project, runs: Sequence[Run]) -> QuerySet[Entry]:
    of_runs = Q(queue__isnull=True) | Q(queue__run__in=runs)
    return Entry.objects.filter(of_runs, project=project, seq__lte=project.head_seq)


def _lines(project: Project, runs: Sequence[Run], sealed: QuerySet[Entry]) -> Iterator[str]:
    lines = 0
    queues = {run.queue_id: run.pk for run in runs}
    for record in chain(_rows(project, runs, sealed), _ledger(sealed, queues)):
        yield record.model_dump_json()
        lines += 1
    yield bundle.End(lines=lines).model_dump_json()


def _rows(
    project: Project, runs: Sequence[Run], sealed: QuerySet[Entry]
) -> Iterator[bundle.Record]:
    part = bundle.ProjectPart(
        id=project.pk,
        name=project.name,
        created_at=project.created_at,
        head_seq=project.head_seq,
        head=project.ledger_head,
    )
    yield bundle.Header(project=part, runs=[run.pk for run in runs])
    # The rubrics that these runs ask now, and those that their votes answered.
    answered = sealed.filter(kind=Entry.Kind.VOTE).order_by().values("rubric").distinct()
    is_needed = Q(queues__run__in=runs) | Q(pk__in=answered)
    rubrics = (
        VoterPrompt.objects.filter(is_needed, project=project)
        .distinct()
        .order_by("name", "version")
    )
    names = bundle.Rubric.model_fields.keys() - {"type"}
    yield from (bundle.Rubric(**row) for row in rubrics.values(*names))
    for run in runs:
        yield from _run(run)
    flags = Flag.objects.filter(item__queue__run__in=runs)
    voters = Voter.objects.filter(
        Q(Exists(sealed.filter(voter=OuterRef("pk"))))
        | Q(Exists(flags.filter(voter=OuterRef("pk")))),
        project=project,
    )
    yield from _records(bundle.VoterPart, voters, "pseudonym")
    yield from _records(bundle.FlagPart, flags, "pk", comparison="item", voter="voter__pseudonym")


def _run(run: Run) -> Iterator[bundle.Record]:
    run = Run.objects.select_related("queue__rubric").get(pk=run.pk)
    names = bundle.RunPart.model_fields.keys() - {"type", "queue", "rubric", "is_open"}
    yield bundle.RunPart(
        queue=run.queue_id,
        rubric=bundle.RubricRef(name=run.queue.rubric.name, version=run.queue.rubric.version),
        is_open=run.queue.is_open,
        **{name: getattr(run.queue if name in bundle.OF_QUEUE else run, name) for name in names},
    )
    yield from _records(bundle.JudgeRecord, run.judges.all(), "position")
    pairs = Item.objects.filter(queue=run.queue_id)
    yield from _outputs(pairs)
    # What is asked for, without the votes that a dispute added: these follow from the ledger again.
    without_extra = pairs.annotate(required=F("votes_wanted") - F("extra_votes"))
    yield from _records(
        bundle.Pair, without_extra, "position", run="queue__run", votes_wanted="required"
    )
    verdicts = with_costs(Verdict.objects.filter(judge__run=run)).order_by("item__position", "pk")
    paths = {"comparison": "item", "cost_nano": "all_nano", "unpriced": "all_unpriced"}
    for items in chunks(pairs.only("position"), "position", AT_ONCE):
        yield from _records(bundle.VerdictPart, verdicts.filter(item__in=items), **paths)


def _outputs(pairs: QuerySet[Item]) -> Iterator[bundle.OutputRecord]:
    exported_pks: set[UUID] = set()
    for items in chunks(pairs.only("position", "a", "b"), "position", AT_ONCE):
        output_pks = {pk for item in items for pk in (item.a_id, item.b_id) if pk}
        new = Inference.objects.filter(pk__in=output_pks - exported_pks).order_by("pk")
        exported_pks |= output_pks
        for output in _records(bundle.OutputRecord, new):
            # A picture stands in the place of its address: it is nowhere else.
            is_picture = output.kind == "image"
            text = {"output": data_url(output.output)} if is_picture else {}
            yield output.model_copy(update=text)


def _records(
    record: type[Part], rows: QuerySet[Any], order: str = "", **paths: str
) -> Iterator[Part]:
    """Yield rows as records; with an `order`, as in `in_chunks`, few of them are held at once."""
    paths = {name: name for name in record.model_fields if name != "type"} | paths
    named = rows.values(*paths.values(), *([order] if order else []))
    for row in in_chunks(named, order) if order else named:
        yield record(**{name: row[path] for name, path in paths.items()})


def in_chunks(rows: QuerySet[Any, Row], order: str) -> Iterator[Row]:
    """Yield rows in the order of a field that no two of them share, so many at a time."""
    return chain.from_iterable(chunks(rows, order, AT_ONCE))


def _ledger(sealed: QuerySet[Entry], runs: dict[UUID, UUID]) -> Iterator[bundle.Record]:
    # When votes were taken back, as far as the export knows.
    retractions = sealed.filter(seq=OuterRef("retracted_seq")).values("at")
    entries = sealed.annotate(retracted_at=Subquery(retractions))
    vote_columns, entry_columns = (
        {
            name: _OF_ENTRY.get(name, name)
            for name in record.model_fields
            if name not in _COMPUTED_FIELDS
        }
        for record in (bundle.VoteEntry, bundle.EntryPart)
    )
    # Rows as dictionaries: three objects of Django for each take three times as long.
    columns = {*vote_columns.values(), *entry_columns.values(), *_OF_THESE}
    for row in in_chunks(entries.values(*columns), "seq"):
        is_vote = row["kind"] == Entry.Kind.VOTE
        fields = {
            name: row[path] for name, path in (vote_columns if is_vote else entry_columns).items()
        }
        fields |= {
            "hash": bytes(row["hash"]).hex(),
            "run": runs[row["queue"]] if row["queue"] else None,
        }
        if not is_vote:
            yield bundle.EntryPart(**fields)
            continue
        retracted = None
        if row["retracted_at"]:
            retracted = bundle.RetractedEntry(seq=row["retracted_seq"], at=row["retracted_at"])
        yield bundle.VoteEntry(
            **fields,
            rubric=bundle.RubricRef(name=row["rubric__name"], version=row["rubric__version"]),
            labels_sha256=(row["payload"] or {"labels_sha256": ""})["labels_sha256"],
            retracted=retracted,
        )
