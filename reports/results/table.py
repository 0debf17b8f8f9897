"""The judges of a run against its figures, as one table; and the same as CSV and as plain text."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final

from judge_eval.metrics import (
    AltTestScorer,
    Figure,
    MetricConfig,
    Results,
    Scorer,
    ScoreResult,
    no_figure,
)
from judge_eval.words import harmless

NO_VALUE: Final = "\u2013"
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
    """

    name: str
    metric: str
    figure: str
    best: str | None


@dataclass(frozen=True)
class Cell:
    figure: Figure
    is_best: bool


@dataclass(frozen=True)
class Row:
    judge: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def tabulate(configs: Sequence[MetricConfig], results: Results, judges: Sequence[str]) -> Table:
    """Put the figures of all judges beside each other.

    Parameters
    ----------
    configs : sequence of MetricConfig
    results : Results
        Of each metric one result for each judge, in their order.
    judges : sequence of str

    Examples
    --------
    >>> from judge_eval.metrics import ClassificationScorer, score
    >>> metric = MetricConfig(ClassificationScorer(), ["winner"], display_name="accuracy")
    >>> judges = {"gpt": {"winner": {"q": "A"}}, "=1+1": {"winner": {"q": "B"}}}
    >>> found = score([metric], judges, {"ann": {"winner": {"q": "A"}}})
    >>> table = tabulate([metric], found, list(judges))
    >>> [cell.is_best for row in table.rows for cell in row.cells]
    [True, False]
    >>> print(as_csv(table).replace("\\r", ""))
    judge_id,accuracy
    gpt,1.0
    '=1+1,0.0
    <BLANKLINE>
    >>> print(as_text(table))
    judge_id  (1)
    gpt       1.000 [0.21, 1.00] n=1 *
    =1+1      0.000 [0.00, 0.79] n=1
    (1) accuracy
    """
    columns, by_column = [], []
    for config in configs:
        found = results[config.unique_name]
        for column in _columns(config, found):
            columns.append(column)
            by_column.append(_cells(column, found))
    rows = [
        Row(judge, tuple(cells[number] for cells in by_column))
        for number, judge in enumerate(judges)
    ]
    return Table(tuple(columns), tuple(rows))


def as_data(table: Table) -> dict[str, Any]:
    """Return the table as JSON can hold it: columns, and a figure of each judge in each."""
    return {
        "columns": [column.name for column in table.columns],
        "judges": [
            {"judge_id": row.judge, "figures": [_as_data(cell) for cell in row.cells]}
            for row in table.rows
        ],
    }


def _as_data(cell: Cell) -> dict[str, Any]:
    figure = cell.figure
    return {
        "value": figure.value,
        "interval": list(figure.interval) if figure.interval else None,
        "n": figure.n,
        "reason": figure.reason,
        "is_best": cell.is_best,
    }


def as_csv(table: Table) -> str:
    """Return ``judge_id`` and a column for each figure; a figure that is not there is empty."""
    buffer = StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["judge_id", *(harmless(column.name) for column in table.columns)])
    for row in table.rows:
        values = ("" if cell.figure.value is None else cell.figure.value for cell in row.cells)
        writer.writerow([harmless(row.judge), *values])
    return buffer.getvalue()


def as_text(table: Table) -> str:
    """Return lines for a terminal; the best value of a column has a star.

    The names of the columns stand below the table: they are long, and figures are short.
    """
    heads = [f"({number})" for number, _ in enumerate(table.columns, start=1)]
    lines = [["judge_id", *heads]]
    lines += [[_on_a_terminal(row.judge), *map(in_text, row.cells)] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    names = [
        f"{head} {_on_a_terminal(c.name)}" for head, c in zip(heads, table.columns, strict=True)
    ]
    return "\n".join([*shown, *names])


def in_text(cell: Cell) -> str:
    """Return a figure with its interval and n."""
    figure = cell.figure
    if figure.value is None:
        return NO_VALUE
    star = " *" if cell.is_best else ""
    return f"{number(figure.value)}{interval(figure)} n={figure.n}{star}"


def interval(figure: Figure) -> str:
    """Return a figure's interval behind a space, or nothing."""
    if figure.interval is None:
        return ""
    low, high = figure.interval
    return f" [{low:.2f}, {high:.2f}]"


def number(value: float) -> str:
    """Return a figure as people read it."""
    return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.6g}"


def best_of(scorer: Scorer) -> str | None:
    """Return which value of a scorer's figures is the best; it may say so by ``best``."""
    best = getattr(scorer, "best", "highest")
    return best if best in ("highest", "lowest", "nearest_zero") else None


def _columns(config: MetricConfig, results: Sequence[ScoreResult]) -> list[Column]:
    name, best = config.unique_name, best_of(config.scorer)
    if isinstance(config.scorer, AltTestScorer):
        return [Column(f"{name}{ending}", name, figure, best) for figure, ending in _ALT_TEST]
    first, *more = _figure_names(results) or [config.scorer.scorer_name]
    return [
        Column(name, name, first, best),
        *(Column(f"{name}_{figure}", name, figure, best) for figure in more),
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
        Cell(figure, best is not None and figure.value is not None and _is_same(figure.value, best))
        for figure in figures
    ]


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


def _on_a_terminal(text: str) -> str:
    """Return a text that cannot move the cursor, change colours or break the line."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
