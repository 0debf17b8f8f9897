"""Reports made of what the projections and the findings hold, with a fixed number of queries."""

import importlib.metadata
import platform
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Sum
from django.utils import timezone

from judge_eval.findings.model import RunFindings
from judge_eval.findings.slices import WHOLE
from judge_eval.models import Findings, JudgeRating, Run
from judge_eval.pages.pairs import disputed_pairs
from reports.models import Quality, Review
from reports.quality.groups import quality_of_groups
from reports.quality.parameters import parameters_of
from reports.quality.projection import history
from reports.quality.score import time_of
from reports.shares.report import (
    Counted,
    Disputed,
    Head,
    QualityResults,
    Report,
    RunResults,
    ScorePoint,
)
from voting.ledger.counts import OF_PEOPLE
from voting.models import Entry, Flag, Item, Project, Queue, Voter

MOST_DISPUTED = 10
MOST_RUNS = 20
# What the figures are computed with: other versions of these may draw other random numbers.
COMPUTED_WITH = ("numpy", "scipy")


class NotComputed(Exception):
    """A run's figures are still being computed, so there is nothing to report yet."""


def report_of(project: Project, run: Run | None) -> Report:
    """Return the report of a run, or of a whole project, as of this moment.

    Raises NotComputed where the figures of the run are still being computed.
    """
    if run is None:
        runs = Run.objects.filter(queue__project=project, archived_at__isnull=True)
        shown = _results(runs.select_related("queue").order_by("-created_at")[:MOST_RUNS])
        parts = {"quality": _quality(project), "counted": _counted(project)}
        parts |= {"quality_of_groups": quality_of_groups(project)}
        return _report(project, project.name, runs=shown, **parts)
    found = _results([run])
    if not found:
        raise NotComputed("The figures of this run are still being computed: try again soon.")
    found[0].disputed = _disputed(run, found[0].findings)
    return _report(project, run.name, runs=found)


def _report(project: Project, title: str, **parts: Any) -> Report:
    since = project.told_heads.order_by("at").values_list("at", flat=True).first()
    head = Head(seq=project.head_seq, hash=project.head, told_since=since)
    return Report(title=title, made_at=timezone.now(), head=head, versions=_versions(), **parts)


@cache
def _versions() -> dict[str, str]:
    known = {"python": platform.python_version()}
    return known | {name: importlib.metadata.version(name) for name in COMPUTED_WITH}


# --- judges ---------------------------------------------------------------------------------------


def _results(runs: Iterable[Run]) -> list[RunResults]:
    """Return what is computed of runs, with two queries for all of them."""
    of = {run.pk: run for run in runs}
    computed = Findings.objects.filter(run__in=of, part=str(WHOLE), data__isnull=False)
    elo: dict[UUID, dict[str, float]] = defaultdict(dict)
    ratings = JudgeRating.objects.filter(judge__run__in=of)
    for run, judge, rating in ratings.values_list("judge__run", "judge", "elo"):
        elo[run][str(judge)] = rating
    read = {pk: RunFindings.read(data) for pk, data in computed.values_list("run", "data")}
    return [
        RunResults(
            id=str(pk),
            name=run.name,
            noun=run.queue.noun,
            kind=run.queue.kind,
            source=run.note,
            findings=findings,
            elo=elo[pk],
        )
        for pk, run in of.items()
        if (findings := read.get(pk))
    ]


def _disputed(run: Run, findings: RunFindings) -> list[Disputed]:
    return [
        Disputed(
            position=each["pair"].position,
            name=each["pair"].external_id or each["pair"].prompt,
            people=each["votes"],
            judges=each["verdicts"],
            wrong=each["wrong"],
            of=each["of"],
        )
        for each in disputed_pairs(run, findings.disputed[:MOST_DISPUTED])
    ]


# --- quality --------------------------------------------------------------------------------------


def _quality(project: Project) -> list[QualityResults]:
    parameters = parameters_of(project)
    return [
        QualityResults(
            series=quality.series,
            points=[
                ScorePoint(
                    at=time_of(at.at),
                    score=at.score,
                    freshness=at.freshness,
                    votes=at.votes,
                    passes=at.passes,
                )
                for at in history(quality)
            ],
            initial_score=parameters.initial_score,
            decay=f"{parameters.decay_rate:g} per {parameters.decay_unit}",
            half_life_seconds=parameters.half_life,
        )
        for quality in Quality.objects.filter(project=project, votes__gt=0).order_by("series")
    ]


def _counted(project: Project) -> Counted:
    queues = Queue.objects.filter(project=project, is_simulated=False)
    done = queues.aggregate(done=Sum("done"))["done"] or 0
    flags = Flag.objects.filter(item__queue__project=project).order_by("category")
    votes = Entry.objects.filter(OF_PEOPLE, project=project)
    population = Voter.objects.filter(project=project)
    return Counted(
        votes=votes.count(),
        voters=population.filter(Exists(votes.filter(voter=OuterRef("pk")))).count(),
        population=population.count(),
        done=done,
        items=Item.objects.filter(queue__in=queues, unusable="").count(),
        flags=dict(flags.values_list("category").annotate(Count("pk"))),
        ambiguous=Review.objects.filter(project=project, is_divided=True).count(),
    )
