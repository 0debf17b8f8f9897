"""From a run to a report of its figures in a folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q

from humanjudge.charts import ChartRefused
from judge_eval.analysis.labels import WINNER, RunLabels, labels_of
from judge_eval.analysis.slices import Slice
from judge_eval.config.fields import ConfigError
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.metrics import Annotations, Results, ceiling, score
from judge_eval.models import Run, Verdict
from reports.results.charts import write_charts
from reports.results.config import NOTHING, Reach, ScoreConfig, default_metrics, parse
from reports.results.names import judge_names
from reports.results.report import Report, Source
from reports.results.writing import SCORES, folder_of, write_report
from voting.models import Entry
from voting.projection import counted_in

CHARTS: Final = "charts"
_ENDS: Final = {Verdict.State.FAILED: "failed", Verdict.State.WAITING: "are still waited for"}


class ScoringFailed(ValueError):
    """A scorer could not do its work; the message says which, on what, and why."""


def make_report(
    run_id: UUID,
    data: object,
    folder: Path,
    *,
    now: datetime,
    reach: Reach = NOTHING,
    part: Slice | None = None,
) -> Report:
    """Compute a run's figures and write them into an empty folder.

    Parameters
    ----------
    run_id : UUID
    data : object
        The configuration as it was read; None for the default.
    folder : Path
    now : datetime
        Stands in the report.
    reach : Reach
        What the configuration may name, see `parse`.
    part : Slice, optional
        Instead of the one that the configuration names.

    Raises
    ------
    ConfigInvalid, ScoringFailed, NotWritable
    """
    run = Run.objects.select_related("queue__project").get(pk=run_id)
    labels = labels_of(run, up_to=run.queue.project.head_seq)
    config = _config(labels, data, reach)
    part = part or config.part
    if part.kind:
        labels = labels_of(run, part, up_to=run.queue.project.head_seq)
    source = _source(run, labels, now, part)
    called = judge_names(labels.names)
    said = {called[judge]: tasks for judge, tasks in labels.judges.items()}
    for metric in config.metrics:
        folder_of(metric, folder / SCORES).mkdir(parents=True)
    report = _scored(config, source, said, labels.humans, folder / SCORES, called)
    baselines = {called[judge] for judge in labels.baselines}
    charts = _draw(report, folder / CHARTS, config.vega_config, baselines)
    write_report(report, folder, charts)
    return report


def _config(labels: RunLabels, data: object, reach: Reach) -> ScoreConfig:
    if data is None:
        return default_metrics(len(labels.humans))
    return parse(data, labels.tasks, reach)


def _scored(
    config: ScoreConfig,
    source: Source,
    judges: Annotations,
    humans: Annotations,
    scores: Path,
    called: Mapping[str, str],
) -> Report:
    try:
        results = score(config.metrics, judges, humans, scores)
        ceilings = {
            metric.unique_name: found
            for metric in config.metrics
            if _has_value(results, metric.unique_name) and (found := ceiling(metric, humans))
        }
    except Exception as error:
        where = "; ".join(getattr(error, "__notes__", []))
        raise ScoringFailed(f"{where + ': ' if where else ''}{error}") from error
    uuids = {name: judge for judge, name in called.items()}
    return Report(source, uuids, config.metrics, results, ceilings)


def _draw(
    report: Report, folder: Path, vega_config: Mapping[str, Any] | None, baselines: Collection[str]
) -> list[Path]:
    names = {name: name for name in report.judges}
    try:
        return write_charts(
            report.results,
            report.configs,
            names,
            folder,
            vega_config,
            ceilings=report.ceilings,
            baselines=baselines,
        )
    except ChartRefused as refused:
        if vega_config is None:
            raise ScoringFailed(str(refused)) from refused
        raise ConfigInvalid([ConfigError("vega_config", str(refused))]) from refused


def _has_value(results: Results, name: str) -> bool:
    figures = (figure for result in results[name] for figure in result.figures.values())
    return any(figure.value is not None for figure in figures)


def _source(run: Run, labels: RunLabels, now: datetime, part: Slice) -> Source:
    winners = [tasks[WINNER] for tasks in labels.humans.values() if WINNER in tasks]
    project = run.queue.project
    return Source(
        run_id=str(run.pk),
        run_name=run.name,
        made_at=now,
        ledger_seq=project.head_seq,
        ledger_head=project.head,
        is_simulated=run.queue.is_simulated,
        part=part.in_words,
        people=len(labels.humans),
        votes=sum(map(len, winners)),
        pairs=len(set[Any]().union(*winners)),
        not_counted=_not_counted(run),
    )


def _not_counted(run: Run) -> tuple[str, ...]:
    votes = Entry.objects.filter(queue=run.queue_id, kind=Entry.Kind.VOTE).aggregate(
        retracted=Count("pk", Q(retracted_seq__isnull=False)),
        seen=Count("pk", Q(retracted_seq__isnull=True, seq__isnull=False) & ~counted_in(run.queue)),
        unsealed=Count("pk", Q(seq__isnull=True)),
    )
    failed = (
        Verdict.objects.filter(judge__run=run)
        .exclude(state=Verdict.State.DONE)
        .values_list("judge__name", "state")
        .annotate(count=Count("pk"))
        .order_by("judge__position", "state")
    )
    words = {
        "retracted": "were taken back",
        "seen": "were not blind, or are not of this run's kind",
        "unsealed": "were not yet sealed when this was made",
    }
    return (
        *(f"{votes[key]:,} votes {why}" for key, why in words.items() if votes[key]),
        *(f"{count:,} verdicts of {judge} {_ENDS[state]}" for judge, state, count in failed),
    )
