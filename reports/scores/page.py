"""The report as one page that needs nothing else: no server, no network, no other file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from django.template.loader import render_to_string
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from humanjudge.lib.tables import DASH, Cell, Head, Row, Table, name_cell, text_cell
from judge_eval.stats import (
    AltTestScorer,
    Figure,
    LeftOut,
    MetricConfig,
    ScoreResult,
    epsilon_advice,
)
from reports.scores.report import Report
from reports.scores.table import (
    PEOPLE,
    best_of,
    figure_cell,
    in_words,
    is_of_people,
    metric_title,
    number,
    span_of,
    summary,
    summary_page,
)

HINTS: Final = {
    "highest": "highest is best",
    "lowest": "lowest is best",
    "nearest_zero": "nearest to 0 is best",
}
# What has more rows is folded up.
_SHORT: Final = 12
_SMALLEST_P: Final = 0.001


def as_html(report: Report, drawings: Sequence[str] = ()) -> str:
    """Return the page; everything in it that came from a run or a judge is escaped.

    Parameters
    ----------
    report : Report
    drawings : sequence of str
        Charts as `humanjudge.charts.svg` makes them: shapes and texts with attributes, nothing
        that runs or loads. They take their colours from the page.
    """
    style = render_to_string("reports/score_report.css")
    script = render_to_string("reports/score_report.js")
    table = report.table
    columns = [table.columns[place] for place in table.of_judges]
    sorted_by = next((column for column in columns if column.best), None)
    figures = summary_page(summary(table))
    context = {
        "source": report.source,
        "heads": [
            (column, HINTS.get(column.best or ""), column is sorted_by) for column in columns
        ],
        "figures": figures.table,
        "among_people": figures.among_people,
        "drawings": [SafeString(drawing) for drawing in drawings],
        "sections": [section(report, config) for config in report.configs],
        # They are ours, and their hashes stand in the page's own policy.
        "style": SafeString(style),
        "script": SafeString(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    return render_to_string("reports/score_report.html", context)


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@dataclass(frozen=True)
class Grid:
    """A table of parts, which is folded up when it is long."""

    table: Table
    number: int
    is_long: bool


@dataclass(frozen=True)
class Section:
    """One metric in full."""

    title: str
    name: str
    about: str
    figures: Table
    methods: Sequence[str]
    grids: Sequence[Grid]
    notes: Sequence[tuple[str, str]]
    guide: str

    @property
    def has_many_notes(self) -> bool:
        return len(self.notes) > _SHORT


def section(report: Report, config: MetricConfig) -> Section:
    """Return one metric in full, the judges as they are ranked, people last."""
    name = config.unique_name
    by_judge = {result.judge_id: result for result in report.results[name]}
    results = [by_judge[row.judge] for row in report.table.ranked]
    people = report.among.get(name)
    everybody = [*results, *([people] if people else [])]
    judged = [each for each in everybody if each is not people]
    return Section(
        title=metric_title(config),
        name=name,
        about=_about(config),
        figures=_figures_table(report, config, everybody),
        methods=_methods(everybody),
        grids=[*_series(judged), *_by_part(judged, people), *_alt_test(judged)],
        notes=list(_notes(judged)),
        guide=epsilon_advice() if isinstance(config.scorer, AltTestScorer) else "",
    )


def _about(config: MetricConfig) -> str:
    tasks = "task" if len(config.task_names) == 1 else "tasks"
    said = {"individual_average": "the mean over people", "majority_vote": "against the consensus"}
    best = HINTS.get(best_of(config.scorer) or "", "no value is the best one")
    of_people = f"{PEOPLE}, and with each judge as one more of them"
    parts = [
        f"{config.scorer.scorer_name} of the {tasks} {', '.join(config.task_names)}",
        config.task_strategy,
        of_people if is_of_people(config.scorer) else said[config.annotator_aggregation],
        best,
    ]
    return "; ".join(parts)


def _figures_table(report: Report, config: MetricConfig, results: Sequence[ScoreResult]) -> Table:
    """Show every figure in full, with what was left out of it."""
    heads = [
        *(Head("Judge", css=""), Head("Figure", css=""), Head("Value")),
        *(Head("95\N{NO-BREAK SPACE}% interval", css="span"), Head("n")),
        Head("Left out", css="wide"),
    ]
    rows = [row for result in results for row in _rows(report, config, result)]
    return Table(f"{metric_title(config)}: figures", heads, rows)


def _rows(report: Report, config: MetricConfig, result: ScoreResult) -> Iterable[Row]:
    columns = [each for each in report.table.columns if each.metric == config.unique_name]
    names = {column.figure for column in columns}
    for name, figure in result.figures.items():
        # What is people's alone would be the same of every judge.
        if is_of_people(config.scorer, name) and result.judge_id != PEOPLE:
            continue
        if name in names or figure.value is not None or len(result.figures) == 1:
            tag = "baseline" if result.judge_id in report.baselines else ""
            gaps = format_html_join(
                "", '<span class="small">{}</span>', ((_gap(gap),) for gap in figure.left_out)
            )
            value = DASH if figure.value is None else number(figure.value)
            cells = [
                name_cell(result.judge_id, tag=tag),
                text_cell(in_words(name)),
                Cell(value, figure.reason or "", css="num why" if figure.reason else "num"),
                text_cell(span_of(figure)),
                Cell(f"{figure.n:,}"),
                text_cell(gaps, "wide") if gaps else text_cell("nothing", "wide soft"),
            ]
            yield Row(result.judge_id, cells)


def _gap(gap: LeftOut) -> str:
    return f"{gap.count:,} {gap.what}: {gap.why}"


def _methods(results: Sequence[ScoreResult]) -> list[str]:
    """Return how intervals were made, each way once."""
    figures = [figure for result in results for figure in result.figures.values()]
    return list(dict.fromkeys(figure.method for figure in figures if figure.method))


def _series(results: Sequence[ScoreResult]) -> Iterable[Grid]:
    for name in dict.fromkeys(name for result in results for name in result.series):
        curves = {result.judge_id: result.series.get(name, {}) for result in results}
        yield _grid(f"{name.replace('_', ' ').capitalize()}, step by step", curves)


def _by_part(results: Sequence[ScoreResult], people: ScoreResult | None) -> Iterable[Grid]:
    if any(result.by_human for result in results):
        parts = {result.judge_id: result.by_human for result in results}
        yield _grid("Person by person", parts)
    if people and people.by_human:
        yield _grid("People two by two", {people.judge_id: people.by_human})
    for name in dict.fromkeys(name for result in results for name in result.figures):
        of_tasks = {
            result.judge_id: {task: part[name] for task, part in result.by_task.items()}
            for result in results
            if result.by_task
        }
        if of_tasks:
            yield _grid(f"{name.replace('_', ' ').capitalize()}, task by task", of_tasks)


def _alt_test(results: Sequence[ScoreResult]) -> Iterable[Grid]:
    """Yield the p-values of every judge's Alt-Test, person by person."""
    tested: dict[str, Mapping[str, Mapping[str, float]]] = {}
    for result in results:
        by_human = result.metadata.get("p_values")
        if isinstance(by_human, Mapping) and by_human:
            tested[result.judge_id] = by_human
    if tested:
        every = [values for people in tested.values() for values in people.values()]
        heads = list(dict.fromkeys(epsilon for values in every for epsilon in values))
        rows = []
        for judge, people in tested.items():
            rows.append(Row(judge, [name_cell(judge)]))
            rows += [
                Row(human, [name_cell(human, css="inner"), *_p_values(values, heads)])
                for human, values in people.items()
            ]
        caption = "p of “no worse than this person by epsilon”, judge by judge"
        yield Grid(_parts_table(caption, heads, rows), len(every), is_long=True)


def _p_values(values: Mapping[str, float], heads: Sequence[str]) -> list[Cell]:
    return [_p_value(values[head]) if head in values else Cell(DASH) for head in heads]


def _p_value(p: float) -> Cell:
    return Cell(f"{p:.3f}" if p >= _SMALLEST_P else f"< {_SMALLEST_P}")


def _grid(caption: str, parts: Mapping[str, Mapping[str, Figure]]) -> Grid:
    """Return judges by parts, or parts by judges: the longer list goes down the page."""
    lines: Mapping[str, Mapping[str, Figure]] = parts
    heads = list(dict.fromkeys(name for figures in parts.values() for name in figures))
    if len(heads) > len(parts):
        lines = {
            name: {judge: figures[name] for judge, figures in parts.items() if name in figures}
            for name in heads
        }
        heads = list(parts)
    rows = [
        Row(
            name,
            [
                name_cell(name),
                *(figure_cell(figures[head]) if head in figures else Cell(DASH) for head in heads),
            ],
        )
        for name, figures in lines.items()
    ]
    return Grid(_parts_table(caption, heads, rows), len(rows), is_long=len(rows) > _SHORT)


def _parts_table(caption: str, heads: Sequence[str], rows: Sequence[Row]) -> Table:
    return Table(caption, [Head(), *map(Head, heads)], rows)


def _notes(results: Sequence[ScoreResult]) -> Iterable[tuple[str, str]]:
    """Yield each note with whom it is about; what is to be said of several is said once."""
    about: dict[str, list[str]] = {}
    for result in results:
        for note in dict.fromkeys(_notes_of(result)):
            about.setdefault(note, []).append(result.judge_id)
    for note, judges in about.items():
        whole = len(judges) == len(results) > 1
        yield "all judges" if whole else ", ".join(judges), note


def _notes_of(result: ScoreResult) -> Iterable[str]:
    for key in ("in_words", "interpretation", "embedding_model"):
        if key in result.metadata:
            by = result.metadata.get(f"{key}_by")
            yield f"{result.metadata[key]}{f' ({by})' if by else ''}"
    yield from result.warnings
