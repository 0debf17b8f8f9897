"""Exports as files, an instance that is empty again, and all that must be equal after an import."""

import io
import json

from django.apps import apps

from judge_eval.exports.bundle import BundleError
from judge_eval.imports.import_report import ImportReport
from judge_eval.imports.restore import Restoring
from judge_eval.imports.row_models import RowError
from judge_eval.models import (
    Board,
    Call,
    Checkpoint,
    DisagreementTag,
    Findings,
    Import,
    Judge,
    JudgeRating,
    RatingPoint,
    Run,
    RunEvent,
    Verdict,
)
from judge_eval.runs.queries import board
from reports.models import Quality, QualityPoint, Review
from tests.helpers.run_findings import compute
from voting.models import (
    Assignment,
    Entry,
    Exposure,
    Flag,
    Inference,
    Invite,
    Item,
    Picture,
    Project,
    Queue,
    Voter,
    VoterPrompt,
)

# Each before what it points at.
EVERYTHING = [
    Import,
    Findings,
    Checkpoint,
    RatingPoint,
    Board,
    JudgeRating,
    RunEvent,
    Call,
    DisagreementTag,
    Verdict,
    Judge,
    Run,
    Review,
    QualityPoint,
    Quality,
    Flag,
    Exposure,
    Assignment,
    Entry,
    Item,
    Inference,
    Picture,
    Queue,
    Voter,
    Invite,
    VoterPrompt,
    Project,
]


def restore(stream, name, project=None):
    """Write a bundle into a project, the one given or the one of its name, as a worker does it."""
    job = Import.objects.create(project=project, is_bundle=True, is_local=True, form={})
    restoring = Restoring(job, stream)
    try:
        restoring.write()
        return ImportReport.model_validate(job.report)
    except BundleError as error:
        restoring.take_back()
        report = ImportReport()
        report.fail(RowError(name, error.line, error.field, error.reason))
        return report
    finally:
        job.delete()


def as_file(lines):
    return io.BytesIO("".join(f"{line}\n" for line in lines).encode())


def empty_the_instance():
    made_of_these = reversed([*apps.get_app_config("reports").get_models()])
    for model in (*made_of_these, *EVERYTHING):
        model.objects.all()._raw_delete("default")


def rows_of_everything():
    """The keys of all rows, but pictures, which are anybody's, and what was asked for."""
    models = set(EVERYTHING) - {Import, Picture}
    return {
        model.__name__: set(model._base_manager.values_list("pk", flat=True)) for model in models
    }


def changed(lines, kind, number=0, **fields):
    """Change the fields of the n-th record of a type."""
    places = [n for n, line in enumerate(lines) if json.loads(line)["type"] == kind]
    place = places[number]
    lines = list(lines)
    lines[place] = json.dumps(json.loads(lines[place]) | fields)
    return lines


def restored(lines, project=None):
    """Import a bundle that must be right; return its runs in the order of the header."""
    report = restore(as_file(lines), "run.jsonl", project)
    assert report.errors == []
    runs = Run.objects.select_related("queue__project").in_bulk(report.runs)
    return [runs[pk] for pk in report.runs]


def facts_of(run):
    """Return all that a run shows, without the numbers of its rows."""
    judges = Judge.objects.filter(run=run).order_by("position")
    ratings = JudgeRating.objects.filter(judge__run=run).order_by("judge__position")
    pairs = Item.objects.filter(queue=run.queue_id).order_by("position")
    verdicts = Verdict.objects.filter(judge__run=run)
    entries = Entry.objects.filter(queue=run.queue_id, seq__isnull=False).order_by("seq")
    view = board(run)
    return {
        "epsilon": run.epsilon,
        "judges": list(judges.values_list("position", "name", "provider", "fingerprint")),
        "ratings": list(ratings.values_list("elo", "agree", "disagree", "requested", "answered")),
        "coverage": [(row.judge.name, row.coverage) for row in view.rows],
        "counts": (view.votes, view.unblinded, view.done, view.total, view.unusable),
        "points": dict(RatingPoint.objects.filter(run=run).values_list("votes", "ratings")),
        "pairs": list(
            pairs.values_list(
                "position",
                "external_id",
                "prompt_key",
                "votes",
                "votes_wanted",
                "extra_votes",
                "unusable",
                "a__output",
                "b__output",
                "a__prompt",
                "a__generator",
                "a__tags",
                "a__metadata",
                "a__kind",
            )
        ),
        "verdicts": sorted(
            map(
                str,
                verdicts.values_list(
                    "judge__position",
                    "item__position",
                    "state",
                    "order",
                    "winner",
                    "consistent",
                    "picks",
                    "first_picks",
                    "sample_consistency",
                    "score_a",
                    "score_b",
                    "feedback",
                    "error",
                    "labels",
                    "latency_ms",
                    "decided_at",
                ),
            )
        ),
        "entries": list(
            entries.values_list(
                "kind",
                "at",
                "item__position",
                "voter__pseudonym",
                "choice",
                "value",
                "category",
                "left_side",
                "rubric__text",
                "elapsed_ms",
                "reputation",
                "unblinded",
                "simulated",
                "comment",
                "comment_sha256",
                "salt",
                "labels",
                "target__item__position",
                "retracted",
            )
        ),
        "queue": Queue.objects.values(
            "kind",
            "options",
            "ballot",
            "votes_per_item",
            "overlap_share",
            "overlap_votes",
            "reveal",
            "is_open",
            "is_simulated",
            "done",
            "rubric__text",
            "rubric__version",
        ).get(pk=run.queue_id),
    }


def findings_of(run):
    """Return all that is computed of a run, as it is stored; the run's number is the seed."""
    Findings.objects.filter(run=run).delete()
    return compute(run).data


def numbers_of(run):
    """Return the numbers of a run's rows, which links are made of."""
    entries = Entry.objects.filter(queue=run.queue_id).order_by("seq")
    return {
        "run": (run.pk, run.queue_id, run.queue.project_id),
        "judges": list(run.judges.order_by("position").values_list("pk", flat=True)),
        "pairs": list(run.queue.items.order_by("position").values_list("pk", "a", "b")),
        "entries": list(entries.values_list("uid", "seq")),
        "hashes": [bytes(entry.hash) for entry in entries if entry.hash],
    }
