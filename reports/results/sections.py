"""The parts of a report's page in words: figures, tables of parts, notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from judge_eval.stats import (
    AltTestScorer,
    Figure,
    LeftOut,
    MetricConfig,
    ScoreResult,
    epsilon_advice,
)
from reports.results.formats import NO_VALUE, number
from reports.results.report import Report
from reports.results.table import PEOPLE, Cell, best_of
from reports.results.titles import in_words, is_of_people, metric_title

HINTS: Final = {
    "highest": "highest is best",
    "lowest": "lowest is best",
    "nearest_zero": "nearest to 0 is best",
}
# What has more rows is folded up.
_SHORT: Final = 12
_SMALLEST_P: Final = 0.001


@dataclass(frozen=True)
class Shown:
    """A figure in words; `sort` is what its column is sorted by, empty where there is none."""

    value: str
    sort: str = ""
    interval: str = ""
    n: str = ""
    why: str = ""
    said: str = ""
    is_best: bool = False


@dataclass(frozen=True)
class Grid:
    """A table of parts: the heads of its columns, and groups of rows of a name and figures."""

    caption: str
    heads: Sequence[str]
    groups: Sequence[tuple[str, Sequence[tuple[str, Sequence[Shown]]]]]

    @property
    def number(self) -> int:
        return sum(len(rows) for _, rows in self.groups)

    @property
    def is_long(self) -> bool:
        return self.number > _SHORT or len(self.groups) > 1


@dataclass(frozen=True)
class Line:
    """One figure in full."""

    judge: str
    is_baseline: bool
    name: str
    figure: Shown
    gaps: Sequence[str]


@dataclass(frozen=True)
class Section:
    """One metric in full."""

    title: str
    name: str
    about: str
    lines: Sequence[Line]
    methods: Sequence[str]
    grids: Sequence[Grid]
    notes: Sequence[tuple[str, str]]
    guide: str

    @property
    def has_many_notes(self) -> bool:
        return len(self.notes) > _SHORT


def shown(figure: Figure, *, said: str = "", is_best: bool = False) -> Shown:
    """Return a figure in words."""
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
        said=said,
        is_best=is_best,
    )


def shown_cell(cell: Cell) -> Shown:
    """Return a cell of the summary in words."""
    return shown(cell.figure, said=cell.said, is_best=cell.is_best)


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
        lines=[line for result in everybody for line in _lines(report, config, result)],
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


def _lines(report: Report, config: MetricConfig, result: ScoreResult) -> Iterable[Line]:
    columns = [each for each in report.table.columns if each.metric == config.unique_name]
    names = {column.figure for column in columns}
    for name, figure in result.figures.items():
        # What is people's alone would be the same of every judge.
        if is_of_people(config.scorer, name) and result.judge_id != PEOPLE:
            continue
        if name in names or figure.value is not None or len(result.figures) == 1:
            gaps = [_gap(gap) for gap in figure.left_out]
            is_baseline = result.judge_id in report.baselines
            yield Line(result.judge_id, is_baseline, in_words(name), shown(figure), gaps)


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
        parts = {
            result.judge_id: {task: part[name] for task, part in result.by_task.items()}
            for result in results
            if result.by_task
        }
        if parts:
            yield _grid(f"{name.replace('_', ' ').capitalize()}, task by task", parts)


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
        groups = [
            (judge, [(human, _p_values(values, heads)) for human, values in people.items()])
            for judge, people in tested.items()
        ]
        yield Grid("p of “no worse than this person by epsilon”, judge by judge", heads, groups)


def _p_values(values: Mapping[str, float], heads: Sequence[str]) -> list[Shown]:
    return [_p_value(values[head]) if head in values else Shown(NO_VALUE) for head in heads]


def _p_value(p: float) -> Shown:
    return Shown(f"{p:.3f}" if p >= _SMALLEST_P else f"< {_SMALLEST_P}", repr(p))


def _grid(caption: str, parts: Mapping[str, Mapping[str, Figure]]) -> Grid:
    """Return judges by parts, or parts by judges: the longer list goes down the page."""
    rows: Mapping[str, Mapping[str, Figure]] = parts
    heads = list(dict.fromkeys(name for figures in parts.values() for name in figures))
    if len(heads) > len(parts):
        rows = {
            name: {judge: figures[name] for judge, figures in parts.items() if name in figures}
            for name in heads
        }
        heads = list(parts)
    lines = [
        (name, [shown(figures[head]) if head in figures else Shown(NO_VALUE) for head in heads])
        for name, figures in rows.items()
    ]
    return Grid(caption, heads, [("", lines)])


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
