"""Reports made of what the projections and the findings hold, with a fixed number of queries."""

import importlib.metadata
import json
import platform
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import fmean
from typing import Final
from uuid import UUID

from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Sum, TextField
from django.db.models.functions import Cast, Substr
from django.utils import timezone

from judge_eval.board.disputed import disputed_pairs
from judge_eval.board.filters import WHOLE_RUN
from judge_eval.board.model import RunFindings
from judge_eval.board.voter_stats import HOUR, votes_over_time
from judge_eval.models import Board, Findings, JudgeRating, Run, Verdict
from reports.models import CompositeDefinition, Quality, Review
from reports.quality.groups import quality_of_groups
from reports.quality.parameters import parameters_of
from reports.quality.projection import points_of, start_of
from reports.report.model import (
    Component,
    CompositeResults,
    DisputedRow,
    LedgerHead,
    ModelRate,
    QualityResults,
    Report,
    RunResults,
    Turnout,
    VotesOverTime,
)
from voting.items.choices import PASS_FLAG
from voting.ledger.counts import OF_PEOPLE, counted_in
from voting.models import NO_VOTE, Entry, Flag, Inference, Item, Project, Queue, Voter

MOST_DISPUTED = 10
MOST_RUNS = 20
MOST_MODELS = 50
# Each is read and computed by itself.
MOST_COMPOSITES = 3
# What the figures are computed with: other versions of these may draw other random numbers.
COMPUTED_WITH = ("numpy", "scipy")
# What a composite reads of metadata and of pictures is not in a bundle, which has no outputs.
_OF_OUTPUTS: Final = frozenset({"metadata", "rendered"})
COMPUTING = "The figures of this run are still being computed: try again soon."


class NotComputed(Exception):
    """A run's figures are still being computed, so there is nothing to report yet."""


def report_of(project: Project, run: Run | None) -> Report:
    """Return the report of a run, or of a whole project, as of this moment.

    Raises NotComputed where the figures of the run are still being computed.
    """
    if run is None:
        runs = Run.objects.filter(queue__project=project, archived_at__isnull=True)
        runs = runs.exclude(state=Run.State.DRAFT)
        results = _results(runs.select_related("queue").order_by("-created_at")[:MOST_RUNS])
        votes = Entry.objects.filter(OF_PEOPLE, project=project)
    else:
        results = _results([run])
        if not results:
            row = Findings.objects.filter(run=run, part=str(WHOLE_RUN)).first()
            raise NotComputed((row and row.failure) or COMPUTING)
        results[0].disputed = _disputed(run, results[0].findings)
        votes = Entry.objects.filter(counted_in(run.queue), project=project, queue=run.queue)
    since = project.published_heads.order_by("at").values_list("at", flat=True).first()
    report = Report(
        title=run.name if run else project.name,
        made_at=timezone.now(),
        head=LedgerHead(seq=project.head_seq, hash=project.ledger_head, told_since=since),
        versions=_versions(),
        runs=results,
        last_vote_at=votes.aggregate(last=Max("at"))["last"],
    )
    if run is None:
        report.quality, report.quality_of_groups = _quality(project), quality_of_groups(project)
        report.pace = _pace(votes)
        report.counted = _counted(project, votes, sum(votes for _, votes in report.pace.votes))
    return report


def is_current(report: Report) -> bool:
    """Say whether all figures are of the end of the ledger, or some still follow."""
    ids = [UUID(run.id) for run in report.runs]
    boards = Board.objects.filter(run__in=ids)
    # Rows are ahead of the ledger until what was changed in them is sealed.
    unsealed = Entry.objects.filter(NO_VOTE, queue__run__in=ids, seq__isnull=True)
    # So are those of judges whose verdicts are made anew.
    waiting = Verdict.objects.filter(
        judge__run__in=ids, state=Verdict.State.WAITING, item__opened_at__isnull=False
    )
    if unsealed.exists() or waiting.exists():
        return False
    seqs = {str(run): seq for run, seq in boards.values_list("run", "seq")}
    return all(run.findings.as_of.seq == seqs.get(run.id, 0) for run in report.runs)


@cache
def _versions() -> dict[str, str]:
    python = {"python": platform.python_version()}
    return python | {name: importlib.metadata.version(name) for name in COMPUTED_WITH}


# --- judges ---------------------------------------------------------------------------------------


def _results(runs: Iterable[Run]) -> list[RunResults]:
    """Return what is computed of runs, with three queries for all of them.

    The composites of so many runs are computed with some more.
    """
    runs_by_id = {run.pk: run for run in runs}
    computed = Findings.objects.filter(run__in=runs_by_id, part=str(WHOLE_RUN), data__isnull=False)
    elo: dict[UUID, dict[str, float]] = defaultdict(dict)
    ratings = JudgeRating.objects.filter(judge__run__in=runs_by_id)
    for run, judge, rating in ratings.values_list("judge__run", "judge", "elo"):
        elo[run][str(judge)] = rating
    read = {pk: RunFindings.read(data) for pk, data in computed.values_list("run", "data")}
    composites = _composites(runs_by_id)
    return [
        RunResults(
            id=str(pk),
            name=run.name,
            question=run.question,
            noun=run.queue.noun,
            kind=run.queue.kind,
            source=run.note,
            findings=findings,
            elo={judge: elo[pk][judge] for judge in elo[pk] if judge not in findings.unrated},
            composite=composites.get(pk),
        )
        for pk, run in runs_by_id.items()
        if (findings := read.get(pk))
    ]


def _composites(runs: Mapping[UUID, Run]) -> dict[UUID, CompositeResults]:
    definitions = CompositeDefinition.objects.filter(run__in=runs)
    newest = definitions.values("run").annotate(last=Max("pk")).values("last")
    defined = definitions.filter(pk__in=newest).order_by("-pk")[:MOST_COMPOSITES]
    return {row.run_id: _composite(runs[row.run_id], row) for row in defined}


def _composite(run: Run, definition: CompositeDefinition) -> CompositeResults:
    # A web server that shows no composite goes without NumPy.
    from reports.composite import compute, sources
    from reports.composite.config import parse
    from reports.composite.views import check_of, described, ranked_by

    config = parse(json.loads(definition.config), needs_sources=True)
    outputs = sources.Outputs(run, [config])
    values = outputs.components(config)
    ranked = ranked_by(values, config, outputs)
    totals = compute.totals_of(ranked.values())
    components = []
    for name in config.components:
        present = [value for row in values.values() if (value := row[name]) is not None]
        mean = fmean(present) if present else None
        components.append(Component(mean=mean, number=len(present), **described(config, name)))
    return CompositeResults(
        label=config.label or "Composite",
        version=definition.version,
        config=config.as_data,
        mean=totals.mean,
        outputs=len(values),
        without=totals.without,
        failed=dict(totals.failed.most_common())
        | {f"{name} (no value)": n for name, n in totals.missing.most_common()},
        components=components,
        check=check_of(config, ranked, outputs)["result"],
    )


def define_again(run: Run, results: CompositeResults) -> bool:
    """Define the composite of a report for a restored run; say whether it can be computed."""
    from reports.composite.config import parse
    from reports.composite.sources import store

    config = parse(results.config, needs_sources=True)
    of_outputs = {source.kind for source in config.sources.values()} & _OF_OUTPUTS
    drawings = Inference.objects.filter(project=run.queue.project_id, kind=Inference.Kind.SVG)
    if "metadata" in of_outputs or (of_outputs and drawings.exists()):
        return False
    store(run, config)
    return True


def _disputed(run: Run, findings: RunFindings) -> list[DisputedRow]:
    return [
        DisputedRow(
            position=row.pair.position,
            name=row.pair.external_id or row.pair.prompt,
            people=row.votes,
            judges=row.verdicts,
            wrong=row.wrong,
            of=row.judged,
        )
        for row in disputed_pairs(run, findings.disputed[:MOST_DISPUTED])
    ]


# --- quality --------------------------------------------------------------------------------------


def _quality(project: Project) -> list[QualityResults]:
    parameters = parameters_of(project)
    return [
        QualityResults(
            series=quality.series,
            points=points_of(quality),
            models=_model_rates(project) if quality.series == Quality.Series.ITEMS else [],
            initial_score=parameters.initial_score,
            decay=f"{parameters.decay_rate:g} per {parameters.decay_unit}",
            half_life_seconds=parameters.half_life,
            begins=start_of(project, quality.series),
        )
        for quality in Quality.objects.filter(project=project, votes__gt=0).order_by("series")
    ]


def _model_rates(project: Project) -> list[ModelRate]:
    votes = Entry.objects.filter(OF_PEOPLE, project=project, queue__kind=Queue.Kind.PASS_FLAG)
    by_model = votes.exclude(item__a__generator="").values(name=F("item__a__generator"))
    rows = by_model.annotate(
        outputs=Count("item", distinct=True),
        votes=Count("pk"),
        passes=Count("pk", filter=Q(choice=PASS_FLAG[0])),
    )
    return [ModelRate(**row) for row in rows.order_by("-votes", "name")[:MOST_MODELS]]


# --- votes ----------------------------------------------------------------------------------------


def _pace(votes: QuerySet[Entry]) -> VotesOverTime:
    hour = Substr(Cast("at", TextField()), 1, HOUR)
    by_hour = votes.annotate(hour=hour).order_by().values_list("hour").annotate(Count("pk"))
    unit, over_time = votes_over_time(dict(by_hour))
    return VotesOverTime(unit=unit, votes=over_time)


def _counted(project: Project, votes: QuerySet[Entry], number: int) -> Turnout:
    queues = Queue.objects.filter(project=project, is_simulated=False)
    done = queues.aggregate(done=Sum("done"))["done"] or 0
    flags = Flag.objects.filter(item__queue__project=project).order_by("category")
    population = Voter.objects.filter(project=project)
    return Turnout(
        votes=number,
        voters=population.filter(Exists(votes.filter(voter=OuterRef("pk")))).count(),
        population=population.count(),
        done=done,
        items=Item.objects.filter(queue__in=queues, unusable="").count(),
        flags=dict(flags.values_list("category").annotate(Count("pk"))),
        ambiguous=Review.objects.filter(project=project, is_divided=True).count(),
    )
