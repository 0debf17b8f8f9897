"""The judges of a run against its figures, as one table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final

from judge_eval.stats import (
    AltTestScorer,
    Figure,
    MetricConfig,
    Results,
    Scorer,
    ScoreResult,
    no_figure,
)
from reports.results.titles import figure_title, is_of_people, metric_title

PEOPLE: Final = "people among themselves"
_ALT_TEST: Final = (
    ("winning_rate", "_winning_rate"),
    ("advantage_probability", "_advantage_prob"),
)
_SAME: Final = 1e-12


@dataclass(frozen=True)
class Column:
    """One figure of one metric.

    Attributes
    ----------
    name : str
        As it stands in the CSV file.
    metric : str
        The metric's unique name.
    figure : str
        Which of its figures.
    best : {'highest', 'lowest', 'nearest_zero', None}
        Which value is the best one; None where there is no such thing.
    title : str
        What people call it.
    is_of_people : bool
        The figure is the same beside every judge: it says how far people agree.
    """

    name: str
    metric: str
    figure: str
    best: str | None
    title: str
    is_of_people: bool = False


@dataclass(frozen=True)
class Cell:
    """A figure; `said` is what it comes to in a word, such as ``passes``."""

    figure: Figure
    is_best: bool = False
    said: str = ""


@dataclass(frozen=True)
class Row:
    judge: str
    cells: tuple[Cell, ...]
    is_baseline: bool = False


@dataclass(frozen=True)
class Table:
    """Figures by judge and column.

    Attributes
    ----------
    columns : tuple of Column
    rows : tuple of Row
        In the order of the judges; `ranked` has the best first.
    people : Row or None
        The same figures between people, which judges are measured against, where there are any.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    people: Row | None = None

    @cached_property
    def of_judges(self) -> tuple[int, ...]:
        """The places of the columns in which judges differ."""
        return tuple(n for n, column in enumerate(self.columns) if not column.is_of_people)

    @cached_property
    def among_people(self) -> tuple[tuple[Column, Cell], ...]:
        """The figures that are people's alone."""
        places = [n for n, column in enumerate(self.columns) if column.is_of_people]
        row = self.people or next(iter(self.rows), None)
        return tuple((self.columns[n], row.cells[n]) for n in places) if row else ()

    @cached_property
    def people_row(self) -> Row | None:
        """People's row beneath the judges, where it holds a figure."""
        row = self.people
        known = row and any(row.cells[n].figure.value is not None for n in self.of_judges)
        return row if known else None

    @cached_property
    def ranked(self) -> tuple[Row, ...]:
        """The rows by the first figure that has a best value, those without it last."""
        place = next((n for n in self.of_judges if self.columns[n].best), None)
        if place is None:
            return self.rows
        best = self.columns[place].best
        return tuple(sorted(self.rows, key=lambda row: _rank(best, row.cells[place].figure.value)))


def tabulate(
    configs: Sequence[MetricConfig],
    results: Results,
    judges: Sequence[str],
    among: Mapping[str, ScoreResult] | None = None,
    baselines: Collection[str] = (),
) -> Table:
    """Put the figures of all judges beside each other.

    Parameters
    ----------
    configs : sequence of MetricConfig
    results : Results
        Of each metric one result for each judge, in their order.
    judges : sequence of str
    among : mapping of str to ScoreResult, optional
        The same figures between people, by unique name, where there are any.
    baselines : collection of str
        Which of the judges are rules to be beaten.

    Examples
    --------
    >>> from judge_eval.stats import ClassificationScorer, score
    >>> metric = MetricConfig(ClassificationScorer(), ["winner"])
    >>> judges = {"=1+1": {"winner": {"q": "B"}}, "gpt": {"winner": {"q": "A"}}}
    >>> found = score([metric], judges, {"ann": {"winner": {"q": "A"}}})
    >>> table = tabulate([metric], found, list(judges), baselines=["=1+1"])
    >>> [cell.is_best for row in table.rows for cell in row.cells]
    [False, True]
    >>> [row.judge for row in table.ranked]
    ['gpt', '=1+1']
    """
    columns: list[Column] = []
    by_column: list[list[Cell]] = []
    people: list[Cell] = []
    for config in configs:
        found = results[config.unique_name]
        for column in _columns(config, found):
            columns.append(column)
            by_column.append(_cells(column, found))
            people.append(_of_people(column, (among or {}).get(config.unique_name)))
    rows = [
        Row(judge, tuple(cells[number] for cells in by_column), judge in baselines)
        for number, judge in enumerate(judges)
    ]
    return Table(tuple(columns), tuple(rows), Row(PEOPLE, tuple(people)) if among else None)


def best_of(scorer: Scorer) -> str | None:
    """Return which value of a scorer's figures is the best; it may say so by ``best``."""
    best = getattr(scorer, "best", "highest")
    return best if best in ("highest", "lowest", "nearest_zero") else None


def _columns(config: MetricConfig, results: Sequence[ScoreResult]) -> list[Column]:
    name, best = config.unique_name, best_of(config.scorer)
    if isinstance(config.scorer, AltTestScorer):
        return [
            Column(f"{name}{ending}", name, figure, best, figure_title(config, figure))
            for figure, ending in _ALT_TEST
        ]
    first, *more = _figure_names(results) or [config.scorer.scorer_name]
    named = [(name, first, metric_title(config))]
    named += [(f"{name}_{figure}", figure, figure_title(config, figure)) for figure in more]
    of_people = [is_of_people(config.scorer, figure) for _, figure, _ in named]
    return [
        Column(column, name, figure, None if alone else best, title, alone)
        for (column, figure, title), alone in zip(named, of_people, strict=True)
    ]


def _figure_names(results: Sequence[ScoreResult]) -> list[str]:
    """Return what was computed: a scorer may name its figures only where it found some."""
    computed = [
        result for result in results if any(f.value is not None for f in result.figures.values())
    ]
    return list(dict.fromkeys(name for result in computed or results for name in result.figures))


def _cells(column: Column, results: Sequence[ScoreResult]) -> list[Cell]:
    figures = [_figure(column, result) for result in results]
    values = [figure.value for figure in figures if figure.value is not None]
    best = _best(column.best, values)
    return [
        Cell(
            figure,
            best is not None and figure.value is not None and _is_same(figure.value, best),
            _said(column, result),
        )
        for figure, result in zip(figures, results, strict=True)
    ]


def _of_people(column: Column, people: ScoreResult | None) -> Cell:
    return Cell(_figure(column, people) if people else no_figure("people have no such figure"))


def _said(column: Column, result: ScoreResult) -> str:
    """Return whether a judge passes the Alt-Test, beside its winning rate."""
    passes = result.metadata.get("passes") if column.figure == "winning_rate" else None
    return "" if passes is None else "passes" if passes else "fails"


def _rank(best: str | None, value: float | None) -> float:
    if value is None:
        return inf
    return {"lowest": value, "nearest_zero": abs(value)}.get(best or "", -value)


def _figure(column: Column, result: ScoreResult) -> Figure:
    if column.figure in result.figures:
        return result.figures[column.figure]
    reasons = (figure.reason for figure in result.figures.values() if figure.reason)
    return no_figure(next(reasons, f"there is no {column.figure}"))


def _best(which: str | None, values: Sequence[float]) -> float | None:
    """Return the best value, None where one cannot tell judges apart by them."""
    if which is None or not values or _is_same(min(values), max(values)):
        return None
    if which == "nearest_zero":
        return min(values, key=abs)
    return max(values) if which == "highest" else min(values)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME
