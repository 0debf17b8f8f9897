"""From a run to a report of its figures, as files in a folder that is there already."""

import json
from pathlib import Path
from typing import Any, Final

from django.db.models import Count, Q
from django.utils import timezone

from humanjudge.charts.draw import ChartRefused
from humanjudge.lib.validation import ConfigInvalid
from judge_eval.findings.load import RunLabels, labels_of
from judge_eval.findings.model import WINNER
from judge_eval.models import Run, Verdict
from judge_eval.stats import MetricConfig, Results, ScoreResult, among_people, score
from reports.scores.charts import write_charts
from reports.scores.config import NOTHING, Reach, default_metrics, parse
from reports.scores.files import MADE_BY, MANIFEST, file_name, judge_names
from reports.scores.page import as_html
from reports.scores.table import Report, Source, is_of_people, table_csv
from voting.ledger.counts import counted_in
from voting.models import Entry

# Why votes and verdicts are not counted.
_ENDS: Final = {
    "retracted": "{was} taken back",
    "left_out": "{was} excluded by a curator",
    "seen": "{was} not blind, or {is_} not of this run's kind",
    "unsealed": "{was} not yet sealed when this was made",
    Verdict.State.FAILED: "failed",
    Verdict.State.WAITING: "{is_} still waited for",
}


class ScoringFailed(ValueError):
    """A scorer could not do its work, or its result cannot be written; the message says why."""


def make_report(run: Run, data: object, folder: Path, reach: Reach = NOTHING) -> Report:
    """Compute a run's figures and write them into an empty folder.

    `data` is the configuration as it was read. Raises ConfigInvalid and ScoringFailed.
    """
    project = run.queue.project
    labels = labels_of(run, up_to=project.head_seq)
    config = parse(data, labels.tasks, reach)
    if config.part.kind:
        labels = labels_of(run, config.part, up_to=project.head_seq)
    metrics = config.metrics or default_metrics(len(labels.humans), reach.off)
    names = judge_names(labels.names)
    for metric in metrics:
        _folder_of(metric, folder).mkdir(parents=True)
    results, among = _scored(metrics, names, labels, folder / "scores")
    winners = [tasks[WINNER] for tasks in labels.humans.values() if WINNER in tasks]
    source = Source(
        run_id=str(run.pk),
        run_name=run.name,
        made_at=timezone.now(),
        ledger_seq=project.head_seq,
        ledger_head=project.ledger_head,
        is_simulated=run.queue.is_simulated,
        part=config.part.in_words,
        people=len(labels.humans),
        votes=sum(map(len, winners)),
        pairs=len(set[Any]().union(*winners)),
        not_counted=_not_counted(run),
    )
    baselines = frozenset(names[judge] for judge in labels.baselines)
    judges = {name: judge for judge, name in names.items()}
    report = Report(source, judges, metrics, results, among, baselines)
    try:
        drawings = write_charts(report, folder / "charts", config.vega_config)
    except ChartRefused as refused:
        if config.vega_config is None:
            raise ScoringFailed(str(refused)) from refused
        raise ConfigInvalid.at("vega_config", str(refused)) from refused
    _write(report, source, folder, drawings)
    return report


def _scored(
    metrics: tuple[MetricConfig, ...], names: dict[str, str], labels: RunLabels, folder: Path
) -> tuple[Results, dict[str, ScoreResult]]:
    judges = {names[judge]: tasks for judge, tasks in labels.judges.items()}
    among = {}
    try:
        results = score(metrics, judges, labels.humans, folder)
        for metric in metrics:
            figures = (f for result in results[metric.unique_name] for f in result.figures.values())
            is_known = any(figure.value is not None for figure in figures)
            if is_known or is_of_people(metric.scorer):
                among[metric.unique_name] = among_people(metric, labels.humans)
    except Exception as error:
        where = "; ".join(getattr(error, "__notes__", []))
        raise ScoringFailed(f"{where + ': ' if where else ''}{error}") from error
    return results, {name: result for name, result in among.items() if result}


def _not_counted(run: Run) -> list[tuple[int, str, str]]:
    stands = Q(retracted_seq__isnull=True, seq__isnull=False)
    votes = Entry.objects.filter(queue=run.queue_id, kind=Entry.Kind.VOTE).aggregate(
        retracted=Count("pk", Q(retracted_seq__isnull=False)),
        left_out=Count("pk", stands & Q(excluded=True)),
        seen=Count("pk", stands & Q(excluded=False) & ~counted_in(run.queue)),
        unsealed=Count("pk", Q(seq__isnull=True)),
    )
    verdicts = Verdict.objects.filter(judge__run=run).exclude(state=Verdict.State.DONE)
    ended = verdicts.values_list("judge__name", "state").annotate(count=Count("pk"))
    rows = [(count, "vote", "", why) for why, count in votes.items() if count]
    rows += [
        (count, "verdict", f" of {judge}", state)
        for judge, state, count in ended.order_by("judge__position", "state")
    ]
    one, several = {"was": "was", "is_": "is"}, {"was": "were", "is_": "are"}
    return [
        (
            count,
            f"{what}{'s' * (count > 1)}{of}",
            _ENDS[why].format(**several if count > 1 else one),
        )
        for count, what, of, why in rows
    ]


def _folder_of(config: MetricConfig, folder: Path) -> Path:
    return folder / "scores" / config.scorer.scorer_name / config.unique_name


def _write(report: Report, source: Source, folder: Path, drawings: list[str]) -> None:
    taken, made_at = set[str](), source.made_at.isoformat()
    files = {judge: file_name(judge, taken) for judge in report.judges}
    for config in report.configs:
        for result in report.results[config.unique_name]:
            about = result.as_dict(made_at) | {"judge_uuid": report.judges[result.judge_id]}
            path = _folder_of(config, folder) / f"{files[result.judge_id]}_result.json"
            try:
                _write_json(path, about)
            except (TypeError, ValueError) as error:
                what = f"{config.unique_name} of {result.judge_id}"
                raise ScoringFailed(f"{what} cannot be written as JSON: {error}") from error
    table = table_csv(report.table, report.judges)
    (folder / "score_report.csv").write_text(table, "utf-8", newline="")
    (folder / "score_report.html").write_text(as_html(report, drawings), "utf-8")
    manifest = {
        "made_by": MADE_BY,
        "run": {"id": source.run_id, "name": source.run_name},
        "made_at": made_at,
        "ledger": {"seq": source.ledger_seq, "head": source.ledger_head},
        "labels": {"people": source.people, "votes": source.votes, "pairs": source.pairs},
        "is_simulated": source.is_simulated,
        "part": source.part,
        "not_counted": [f"{count:,} {what} {why}" for count, what, why in source.not_counted],
        "judges": dict(report.judges),
        "metrics": [
            {
                "name": config.unique_name,
                "scorer_name": config.scorer.scorer_name,
                "task_names": list(config.task_names),
                "task_strategy": config.task_strategy,
                "annotator_aggregation": config.annotator_aggregation,
            }
            for config in report.configs
        ],
        "files": sorted({*(path.name for path in folder.iterdir()), MANIFEST}),
    }
    _write_json(folder / MANIFEST, manifest)


def _write_json(path: Path, value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    path.write_text(f"{text}\n", "utf-8")
