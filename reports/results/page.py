"""The report as one page that needs nothing else: no server, no network, no other file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from xml.etree.ElementTree import fromstring

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from judge_eval.metrics import (
    AltTestScorer,
    Figure,
    LeftOut,
    MetricConfig,
    ScoreResult,
    epsilon_advice,
)
from reports.results.report import Report
from reports.results.table import NO_VALUE, Cell, Column, best_of, number

_HINTS: Final = {
    "highest": "highest is best",
    "lowest": "lowest is best",
    "nearest_zero": "nearest to 0 is best",
}
# A table with more rows is folded up.
_SHORT: Final = 12
_SVG: Final = "{http://www.w3.org/2000/svg}"
_SMALLEST_P: Final = 0.001


@dataclass(frozen=True)
class Shown:
    """A figure in words; `sort` is what its column is sorted by, empty where there is none."""

    value: str
    sort: str
    interval: str
    n: str
    why: str
    is_best: bool = False


@dataclass(frozen=True)
class Grid:
    """A table of parts: a caption, the heads of its columns, and rows of a name and figures."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Shown]]]

    @property
    def is_long(self) -> bool:
        return len(self.rows) > _SHORT


@dataclass(frozen=True)
class Section:
    """One metric in full."""

    name: str
    about: str
    figures: Sequence[tuple[str, str, Shown, str, Sequence[str]]]
    grids: Sequence[Grid]
    notes: Sequence[tuple[str, str]]
    guide: str


def as_html(report: Report, drawings: Sequence[str] = ()) -> str:
    """Return the page; everything in it that came from a run or a judge is escaped.

    Parameters
    ----------
    report : Report
    drawings : sequence of str
        Charts as SVG. They stand in the page as pictures, so nothing in them can run.
    """
    style = render_to_string("reports/score_report.css")
    script = render_to_string("reports/score_report.js")
    context: dict[str, Any] = {
        "source": report.source,
        "heads": [(column, _HINTS.get(column.best or "")) for column in report.table.columns],
        "rows": [(row.judge, [shown(cell) for cell in row.cells]) for row in report.table.rows],
        "pictures": [_picture(drawing) for drawing in drawings],
        "sections": [_section(report, config) for config in report.configs],
        # They are ours, and their hashes stand in the page's own policy.
        "style": SafeString(style),
        "script": SafeString(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    return render_to_string("reports/score_report.html", context)


def shown(cell: Cell) -> Shown:
    """Return a cell of the summary in words."""
    return _shown(cell.figure, is_best=cell.is_best)


def _shown(figure: Figure, *, is_best: bool = False) -> Shown:
    span = ""
    if figure.interval is not None:
        low, high = figure.interval
        span = f"{number(low)} to {number(high)}"
    return Shown(
        value=NO_VALUE if figure.value is None else number(figure.value),
        sort="" if figure.value is None else repr(figure.value),
        interval=span,
        n=f"{figure.n:,}",
        why=figure.reason or "",
        is_best=is_best,
    )


def _section(report: Report, config: MetricConfig) -> Section:
    results = report.results[config.unique_name]
    columns = [each for each in report.table.columns if each.metric == config.unique_name]
    people = report.ceilings.get(config.unique_name)
    everybody = [*results, people] if people else list(results)
    return Section(
        name=config.unique_name,
        about=_about(config),
        figures=[line for result in everybody for line in _figures(result, columns)],
        grids=[*_series(results), *_by_part(results, people), *_alt_test(results)],
        notes=[(result.judge_id, note) for result in results for note in _notes(result)],
        guide=epsilon_advice() if isinstance(config.scorer, AltTestScorer) else "",
    )


def _about(config: MetricConfig) -> str:
    tasks = "task" if len(config.task_names) == 1 else "tasks"
    said = {"individual_average": "the mean over people", "majority_vote": "against the consensus"}
    parts = [
        f"{config.scorer.scorer_name} of the {tasks} {', '.join(config.task_names)}",
        config.task_strategy,
        said[config.annotator_aggregation],
        _HINTS.get(best_of(config.scorer) or "", "no value is the best one"),
    ]
    return "; ".join(parts)


def _figures(
    result: ScoreResult, columns: Sequence[Column]
) -> Iterable[tuple[str, str, Shown, str, Sequence[str]]]:
    names = {column.figure for column in columns}
    for name, figure in result.figures.items():
        if name in names or figure.value is not None or len(result.figures) == 1:
            gaps = [_gap(gap) for gap in figure.left_out]
            yield result.judge_id, name, _shown(figure), figure.method or "", gaps


def _gap(gap: LeftOut) -> str:
    return f"{gap.count:,} {gap.what}: {gap.why}"


def _series(results: Sequence[ScoreResult]) -> Iterable[Grid]:
    for name in dict.fromkeys(name for result in results for name in result.series):
        curves = {result.judge_id: result.series.get(name, {}) for result in results}
        yield _grid(f"{name}, step by step", _turned(curves))


def _by_part(results: Sequence[ScoreResult], people: ScoreResult | None) -> Iterable[Grid]:
    if any(result.by_human for result in results):
        parts = {result.judge_id: result.by_human for result in results}
        yield _grid("Person by person", _turned(parts))
    if people and people.by_human:
        yield _grid("People two by two", _turned({people.judge_id: people.by_human}))
    for name in dict.fromkeys(name for result in results for name in result.figures):
        parts = {
            result.judge_id: {task: part[name] for task, part in result.by_task.items()}
            for result in results
            if result.by_task
        }
        if parts:
            yield _grid(f"{name}, task by task", _turned(parts))


def _alt_test(results: Sequence[ScoreResult]) -> Iterable[Grid]:
    """Yield the p-values of each judge's Alt-Test, person by person."""
    for result in results:
        by_human = result.metadata.get("p_values")
        if isinstance(by_human, Mapping) and by_human:
            rows = {
                human: {epsilon: _p_value(p) for epsilon, p in values.items()}
                for human, values in by_human.items()
            }
            yield _grid(f"{result.judge_id}: p of “no worse than this person by epsilon”", rows)


def _p_value(p: float) -> Shown:
    return Shown(f"{p:.3f}" if p >= _SMALLEST_P else f"< {_SMALLEST_P}", repr(p), "", "", "")


def _turned(parts: Mapping[str, Mapping[str, Figure]]) -> dict[str, dict[str, Shown]]:
    """Return what was by judge and part by part and judge: there are more parts than judges."""
    names = dict.fromkeys(name for figures in parts.values() for name in figures)
    return {
        name: {judge: _shown(figures[name]) for judge, figures in parts.items() if name in figures}
        for name in names
    }


def _grid(caption: str, rows: Mapping[str, Mapping[str, Shown]]) -> Grid:
    heads = list(dict.fromkeys(head for figures in rows.values() for head in figures))
    blank = Shown(NO_VALUE, "", "", "", "")
    lines = [(name, [figures.get(head, blank) for head in heads]) for name, figures in rows.items()]
    return Grid(caption, heads, lines)


def _picture(drawing: str) -> tuple[str, str]:
    """Return a drawing as an address that holds all of it, and what it shows in words."""
    # Our own renderer's output: it has no document type, and so no entities.
    root = fromstring(drawing)  # noqa: S314
    words = " ".join(root.findtext(f"{_SVG}{name}", "") for name in ("title", "desc"))
    return f"data:image/svg+xml;base64,{b64encode(drawing.encode()).decode()}", words.strip()


def _notes(result: ScoreResult) -> Iterable[str]:
    for key in ("in_words", "interpretation", "embedding_model"):
        if key in result.metadata:
            yield str(result.metadata[key])
    yield from result.warnings


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
