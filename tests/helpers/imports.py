"""Rows as files, and imports of them."""

import io
import json
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from judge_eval.imports.formats import read
from judge_eval.imports.import_read import read as read_all
from judge_eval.imports.import_report import ImportOptions, ImportReport, RowsWrong
from judge_eval.imports.import_scratch import Scratch
from judge_eval.imports.import_steps import note
from judge_eval.imports.import_write import Writing
from judge_eval.models import Import, Run
from tests.makers import make_project
from voting.ledger import chain, ledger
from voting.models import Entry, Project


def import_run(project, name, items, *, options=ImportOptions()):  # noqa: B008  it is frozen
    """Make a run of what a source says, as a worker does it."""
    return _report(items, options, project=project, name=name)


def import_into(run_id, items, *, options=ImportOptions()):  # noqa: B008  it is frozen
    """Add to a run what a source says and the run does not hold yet, as a worker does it."""
    project = Project.objects.filter(queues__run=run_id).first()
    return _report(items, options, project=project, run_id=run_id)


def _report(*what, **where):
    try:
        return import_items(*what, **where)
    except RowsWrong as error:
        return error.report


def import_items(items, options=ImportOptions(), **where):  # noqa: B008  it is frozen
    form = {"options": options.model_dump(exclude_unset=True)}
    job = Import.objects.create(form=form, is_local=True, **where)
    try:
        with (
            TemporaryDirectory() as folder,
            closing(Scratch(Path(folder) / "rows", is_new=True)) as scratch,
        ):
            note(job, state="writing", **read_all(job, items, scratch))
            Writing(job, scratch).write()
            return ImportReport.model_validate(job.report)
    finally:
        job.delete()


def rows(*records, name="rows.jsonl"):
    """Items of a JSON Lines file of these records."""
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    return read(io.BytesIO(text.encode()), name)


def pair(number=1, **fields):
    """A record that says everything of one pair of texts."""
    texts = {
        "prompt": f"Question {number}",
        "output_a": f"Answer {number} of ada",
        "output_b": f"Answer {number} of bob",
        "generator_a": "ada",
        "generator_b": "bob",
    }
    return {"pair": f"p{number}"} | texts | fields


def vote(number, voter, choice, **fields):
    return {"pair": f"p{number}", "voter": voter, "vote": choice} | fields


def verdict(number, judge, winner, **fields):
    return {"pair": f"p{number}", "judge": judge, "verdict": winner} | fields


def study(pairs, voters):
    """Records of pairs with the verdicts of two judges and a vote, by so many people in turn."""
    return [
        record
        for n in pairs
        for record in (
            pair(n),
            verdict(n, "x", "AB"[n % 2]),
            verdict(n, "y", "A"),
            vote(n, f"v{n % voters}", "AB"[n // 2 % 2]),
        )
    ]


def imported(*records, project=None, name="Imported", **options):
    """Import records that must be right as a new run, with no judges but theirs."""
    how = ImportOptions(**{"baselines": False} | options)
    report = import_run(project or make_project(), name, rows(*records), options=how)
    assert report.errors == []
    return run_of(report)


def added(run, *records, **options):
    return import_into(run.pk, rows(*records), options=ImportOptions(**options))


def errors_of(report):
    return [str(error) for error in report.errors]


def run_of(report):
    return Run.objects.select_related("queue__project", "queue__rubric").get(pk=report.run_id)


def votes_of(run):
    """Votes in the order of the ledger."""
    votes = Entry.objects.filter(queue=run.queue_id, kind="vote", seq__isnull=False)
    return list(votes.select_related("voter", "item").order_by("seq"))


def assert_whole(project):
    """The chain verifies to its head, and every score is what the entries say."""
    project.refresh_from_db()
    entries = chain.verify(ledger.export(project), project.ledger_head).entries
    assert entries == project.head_seq == Entry.objects.filter(project=project).count()
    found = ledger.replay(project, write=False)
    assert found == [], found
