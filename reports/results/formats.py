"""The table of a run's judges as CSV, as plain text, and as JSON can hold it."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any, Final

from humanjudge.lib.text import harmless
from judge_eval.stats import Figure
from reports.results.table import PEOPLE, Cell, Column, Table

NO_VALUE: Final = "\u2013"


def as_data(table: Table) -> dict[str, Any]:
    """Return the table as JSON can hold it: columns, and a figure of each judge in each."""
    columns, people = table.columns, table.people
    return {
        "columns": [column.name for column in columns],
        "titles": [column.title for column in columns],
        "of_people": [column.is_of_people for column in columns],
        "judges": [
            {
                "judge_id": row.judge,
                "is_baseline": row.is_baseline,
                "figures": [_as_data(cell) for cell in row.cells],
            }
            for row in table.ranked
        ],
        "people": [_as_data(cell) for cell in people.cells] if people else None,
    }


def _as_data(cell: Cell) -> dict[str, Any]:
    figure = cell.figure
    return {
        "value": figure.value,
        "interval": list(figure.interval) if figure.interval else None,
        "n": figure.n,
        "reason": figure.reason,
        "is_best": cell.is_best,
        "said": cell.said,
    }


def as_csv(table: Table) -> str:
    """Return ``judge_id`` and a column for each figure; a figure that is not there is empty.

    Examples
    --------
    >>> from judge_eval.stats import ClassificationScorer, MetricConfig, score
    >>> from reports.results.table import tabulate
    >>> metric = MetricConfig(ClassificationScorer(), ["winner"], display_name="accuracy")
    >>> judges = {"=1+1": {"winner": {"q": "B"}}, "gpt": {"winner": {"q": "A"}}}
    >>> found = score([metric], judges, {"ann": {"winner": {"q": "A"}}})
    >>> table = tabulate([metric], found, list(judges), baselines=["=1+1"])
    >>> print(as_csv(table).replace("\\r", ""))
    judge_id,accuracy
    '=1+1,0.0
    gpt,1.0
    <BLANKLINE>
    >>> print(as_text(table))
    judge_id         (1)
    gpt              1.000 [0.21, 1.00] n=1 *
    =1+1 (baseline)  0.000 [0.00, 0.79] n=1
    (1) accuracy
    """
    buffer = StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["judge_id", *(harmless(column.name) for column in table.columns)])
    for row in table.rows:
        values = ("" if cell.figure.value is None else cell.figure.value for cell in row.cells)
        writer.writerow([harmless(row.judge), *values])
    return buffer.getvalue()


def as_text(table: Table) -> str:
    """Return lines for a terminal, the best judge first; the best value of a column has a star.

    The names of the columns stand below the table: they are long, and figures are short.
    """
    places, columns = table.of_judges, [table.columns[n] for n in table.of_judges]
    heads = [f"({number})" for number, _ in enumerate(columns, start=1)]
    lines = [["judge_id", *heads]]
    for row in [*table.ranked, *([table.people_row] if table.people_row else [])]:
        name = f"{_on_a_terminal(row.judge)}{' (baseline)' * row.is_baseline}"
        lines.append([name, *(in_text(row.cells[place]) for place in places)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    names = [f"{head} {_named(column)}" for head, column in zip(heads, columns, strict=True)]
    alone = [f"{PEOPLE}: {in_text(cell)}  {_named(column)}" for column, cell in table.among_people]
    return "\n".join([*shown, *alone, *names])


def _named(column: Column) -> str:
    is_same = column.title == column.name
    return _on_a_terminal(column.name if is_same else f"{column.title}: {column.name}")


def in_text(cell: Cell) -> str:
    """Return a figure with its interval and n."""
    figure = cell.figure
    if figure.value is None:
        return NO_VALUE
    said, star = f" {cell.said}" if cell.said else "", " *" if cell.is_best else ""
    return f"{number(figure.value)}{said}{interval(figure)} n={figure.n}{star}"


def interval(figure: Figure) -> str:
    """Return a figure's interval behind a space, or nothing."""
    if figure.interval is None:
        return ""
    low, high = figure.interval
    return f" [{low:.2f}, {high:.2f}]"


def number(value: float) -> str:
    """Return a figure as people read it."""
    return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.6g}"


def _on_a_terminal(text: str) -> str:
    """Return a text that cannot move the cursor, change colours or break the line."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
