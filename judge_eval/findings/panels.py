"""Panels of extensions below the board: data that the product's own templates draw, never HTML.

A panel is made beside the findings, by a worker, of what they hold.
"""

from collections.abc import Collection
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from humanjudge.charts.plots import Estimate, intervals
from humanjudge.charts.spec import SHARE, Axis, Spec
from humanjudge.lib.extensions import Extension, HookFailed, Registry, calling
from humanjudge.lib.tables import Cell, Head, Row, Table, missing, name_cell
from humanjudge.lib.validation import Line, Name, Part, Storable, Text
from judge_eval.findings.model import RunFindings

_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)] | None
_Cell: TypeAlias = Annotated[Storable, Field(max_length=500)] | int | _Number


class Bar(Part):
    """One value of a chart, with its interval where it has one."""

    name: Name
    value: _Number
    low: _Number = None
    high: _Number = None


class PanelChart(Part):
    """A dot with its interval for each name; of shares, 1 is drawn as 100 %."""

    title: Name
    unit: Literal["share", "number"] = "number"
    bars: Annotated[tuple[Bar, ...], Field(strict=False, min_length=1, max_length=50)]


class PanelTable(Part):
    """A table; the first cell of each row is its name, and None is what is not known."""

    heads: Annotated[tuple[Name, ...], Field(strict=False, min_length=1, max_length=20)]
    rows: Annotated[
        tuple[Annotated[tuple[_Cell, ...], Field(strict=False)], ...],
        Field(strict=False, max_length=200),
    ]


class Panel(Part):
    """What a panel shows, from top to bottom."""

    title: Name
    paragraphs: Annotated[
        tuple[Annotated[Text, Field(max_length=2_000)], ...], Field(strict=False, max_length=20)
    ] = ()
    table: PanelTable | None = None
    chart: PanelChart | None = None


class ResultsPanel(Extension):
    """A part of the board that is made of a run's findings."""

    kind = "results panel"

    def panel(self, findings: RunFindings) -> Panel | None:
        """Return what is to be shown, None where there is nothing to say."""
        raise NotImplementedError(f"{type(self).__name__} must define panel")


PANELS: Final = Registry[ResultsPanel](ResultsPanel)
# By the ids of extensions, as JSON holds it.
Stored: TypeAlias = dict[str, dict[str, object]]


class Broken(Part):
    """Stands for a panel that could not be made."""

    title: Line
    error: Text


def panels_of(findings: RunFindings, off: Collection[str]) -> Stored:
    """Let every panel that is not turned off be made."""
    found: Stored = {}
    for extension in (each for each in PANELS.values() if each.id not in off):
        made: Panel | Broken | None
        try:
            with calling(extension, "panel"):
                made = extension.panel(findings)
                if made is not None and not isinstance(made, Panel):
                    raise TypeError(f"it returned {type(made).__name__}, no Panel")
        except HookFailed as failed:
            made = Broken(title=extension.title, error=str(failed))
        if made is not None:
            found[extension.id] = made.model_dump(mode="json")
    return found


def chart_name(extension_id: str) -> str:
    return f"panel_{extension_id}"


def specs_of(panels: Stored) -> dict[str, Spec | None]:
    """Return the charts of panels, by the names under which they are kept."""
    return {
        chart_name(key): _spec(PanelChart.model_validate(panel["chart"]))
        for key, panel in panels.items()
        if panel.get("chart")
    }


def _spec(chart: PanelChart) -> Spec | None:
    bars = [Estimate(bar.name, bar.value, bar.low, bar.high) for bar in chart.bars]
    if all(bar.value is None for bar in bars):
        return None
    axis = SHARE if chart.unit == "share" else Axis(chart.title)
    return intervals(bars, title=chart.title, axis=axis)


def table_of(panel: Panel) -> Table | None:
    """Return the table of a panel as all tables are drawn."""
    if panel.table is None:
        return None
    first, *others = panel.table.heads
    rows = [
        Row(str(name), [name_cell(str(name)), *map(_cell, cells)])
        for name, *cells in panel.table.rows
        if len(cells) == len(others)
    ]
    heads = [Head(first, css=""), *map(Head, others)]
    return Table(panel.title, heads, rows, css="figures")


def _cell(value: str | float | None) -> Cell:
    if value is None:
        return missing("It is not known.")
    if isinstance(value, str):
        return Cell(value, css="")
    return Cell(f"{value:,}" if isinstance(value, int) else f"{value:z,.4g}")
