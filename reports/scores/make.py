"""From a run to a report of its figures, as files in a folder that is there already."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q

from humanjudge.charts import ChartRefused
from humanjudge.lib.validation import ConfigError, ConfigInvalid
from judge_eval.findings.labels import WINNER, RunLabels, labels_of
from judge_eval.findings.slices import Slice
from judge_eval.models import Run, Verdict
from judge_eval.stats import Annotations, MetricConfig, Results, ScoreResult, among_people, score
from reports.scores.charts import write_charts
from reports.scores.config import NOTHING, Reach, default_metrics, parse
from reports.scores.files import MADE_BY, MANIFEST, file_names, judge_names
from reports.scores.page import as_html
from reports.scores.report import NotCounted, Report, Source
from reports.scores.table import is_of_people, table_csv
from voting.ledger.counts import counted_in
from voting.models import Entry

CHARTS: Final = "charts"
SCORES: Final = "scores"
_ENDS: Final = {
    Verdict.State.FAILED: ("failed", "failed"),
    Verdict.State.WAITING: ("are still waited for", "is still waited for"),
}
_WHY: Final = {
    "retracted": ("were taken back", "was taken back"),
    "seen": (
        "were not blind, or are not of this run's kind",
        "was not blind, or is not of this run's kind",
    ),
    "unsealed": (
        "were not yet sealed when this was made",
        "was not yet sealed when this was made",
    ),
}


class NotWritable(ValueError):
    """A scorer's result holds something that a file cannot."""


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
    config = parse({} if data is None else data, labels.tasks, reach)
    part = part or config.part
    if part.kind:
        labels = labels_of(run, part, up_to=run.queue.project.head_seq)
    metrics = config.metrics or default_metrics(len(labels.humans))
    source = _source(run, labels, now, part)
    called = judge_names(labels.names)
    said = {called[judge]: tasks for judge, tasks in labels.judges.items()}
    for metric in metrics:
        folder_of(metric, folder / SCORES).mkdir(parents=True)
    results, among = _scored(metrics, said, labels.humans, folder / SCORES)
    report = Report(
        source,
        {name: judge for judge, name in called.items()},
        metrics,
        results,
        among,
        frozenset(called[judge] for judge in labels.baselines),
    )
    drawings = _draw(report, folder / CHARTS, config.vega_config)
    write_report(report, folder, drawings)
    return report


def _scored(
    metrics: Sequence[MetricConfig], judges: Annotations, humans: Annotations, scores: Path
) -> tuple[Results, dict[str, ScoreResult]]:
    """Return the figures of judges, and the same between people."""
    try:
        results = score(metrics, judges, humans, scores)
        among = {
            metric.unique_name: found
            for metric in metrics
            if (is_of_people(metric.scorer) or _has_value(results, metric.unique_name))
            and (found := among_people(metric, humans))
        }
    except Exception as error:
        where = "; ".join(getattr(error, "__notes__", []))
        raise ScoringFailed(f"{where + ': ' if where else ''}{error}") from error
    return results, among


def _draw(report: Report, folder: Path, vega_config: Mapping[str, Any] | None) -> list[str]:
    try:
        return write_charts(
            report.results,
            report.configs,
            {name: name for name in report.judges},
            folder,
            vega_config,
            among=report.among,
            baselines=report.baselines,
        ).drawings
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


def _not_counted(run: Run) -> tuple[NotCounted, ...]:
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
    return (
        *(NotCounted(votes[key], "vote", *why) for key, why in _WHY.items() if votes[key]),
        *(
            NotCounted(count, f"verdict of {judge}", *_ENDS[Verdict.State(state)])
            for judge, state, count in failed
        ),
    )


# --- files --------------------------------------------------------------------------------------


def folder_of(config: MetricConfig, scores: Path) -> Path:
    """Return where a metric's files are."""
    return scores / config.scorer.scorer_name / config.unique_name


def write_report(report: Report, folder: Path, drawings: Sequence[str] = ()) -> None:
    """Write the results, the table and the page with its charts, and what they are."""
    _write_results(report, folder / SCORES)
    (folder / "score_report.csv").write_text(table_csv(report.table), "utf-8", newline="")
    (folder / "score_report.html").write_text(as_html(report, drawings), "utf-8")
    _write_manifest(report, folder)


def _write_manifest(report: Report, folder: Path) -> None:
    """Say of a folder that it is a report, of what, and which files belong to it."""
    files = sorted({*(path.name for path in folder.iterdir()), MANIFEST})
    about = {"made_by": MADE_BY, **report.manifest(), "files": files}
    (folder / MANIFEST).write_text(_json(about, "the report"), "utf-8")


def _write_results(report: Report, scores: Path) -> None:
    files = file_names(report.judges)
    for config in report.configs:
        folder = folder_of(config, scores)
        folder.mkdir(parents=True, exist_ok=True)
        for result in report.results[config.unique_name]:
            text = _json(report.result_file(result), f"{config.unique_name} of {result.judge_id}")
            (folder / f"{files[result.judge_id]}_result.json").write_text(text, "utf-8")


def _json(value: Mapping[str, Any], what: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise NotWritable(f"{what} cannot be written as JSON: {error}") from error
