"""Tables for pages and files: figures, how sure each is, and why one is missing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils.html import conditional_escape, format_html, html_safe
from django.utils.safestring import SafeString

from humanjudge.lib.text import harmless

DASH = "\N{EN DASH}"
PER_CENT = "\N{NO-BREAK SPACE}%"


@html_safe
@dataclass(frozen=True)
class Cell:
    """One cell, as HTML where a template places it.

    It is written here and not in a template because tables have thousands of them.

    Attributes
    ----------
    main, small : str
        The figure, and in small print how sure it is.
    title : str
        What is behind it, for whoever points at it.
    why : str
        Why a figure or its interval is missing; `numbered` makes `note` of it.
    bar : tuple of float, optional
        A value in percent with its interval, which are drawn.
    css : str
        Of the cell.
    mark : str
        Class of the figure itself.
    before, after : str
        Read aloud around the figure, and not to be seen.
    tag : str
        Behind a name, such as ``baseline``.
    figure : str
        The figure's key, for scripts and styles.
    sort : str, optional
        By what a sortable column is sorted.
    is_head : bool
        It names its row.
    """

    main: str = ""
    small: str = ""
    title: str = ""
    why: str = ""
    note: int | None = None
    bar: tuple[float, float, float] | None = None
    css: str = "num"
    mark: str = ""
    before: str = ""
    after: str = ""
    tag: str = ""
    figure: str = ""
    sort: str | None = None
    is_head: bool = False

    @property
    def is_known(self) -> bool:
        return self.main not in ("", DASH)

    def __str__(self) -> str:
        element = "th" if self.is_head else "td"
        about = {
            "scope": "row" if self.is_head else None,
            "class": self.css or None,
            "data-figure": self.figure or None,
            "data-sort": self.sort,
            "title": self.title or None,
        }
        attributes = "".join(
            f' {name}="{conditional_escape(value)}"'
            for name, value in about.items()
            if value is not None
        )
        return SafeString(f"<{element}{attributes}>{self._content()}</{element}>")

    def _content(self) -> str:
        main: str = conditional_escape(self.main)
        if self.before or self.after:
            main = f"{_aloud(self.before)}{main}{_aloud(self.after)}"
        if self.mark:
            main = f'<span class="{self.mark}">{main}</span>'
        return "".join(
            [
                _drawn(self.bar) if self.bar else "",
                main,
                f"<sup>{self.note}</sup>" if self.note else "",
                f" <small>{conditional_escape(self.small)}</small>" if self.small else "",
                f' <span class="tag">{self.tag}</span>' if self.tag else "",
            ]
        )


def _aloud(words: str) -> str:
    return format_html('<span class="visually-hidden">{}</span>', words) if words else ""


def _drawn(bar: tuple[float, float, float]) -> str:
    value, low, high = (f"{part:.1f}" for part in bar)
    return (
        '<svg class="interval" viewBox="0 0 100 14" width="72" height="10" aria-hidden="true">'
        '<path class="track" d="M0 7H100M50 3V11"/>'
        f'<path class="whisker" d="M{low} 3V11M{low} 7H{high}M{high} 3V11"/>'
        f'<circle cx="{value}" cy="7" r="3.5"/></svg>'
    )


@dataclass(frozen=True)
class Head:
    """The head of a column; `anchor` is where its figure is explained."""

    title: str = ""
    unit: str = ""
    css: str = "num"
    anchor: str = ""
    figure: str = ""
    hint: str = ""
    after: str = ""


@dataclass(frozen=True)
class Row:
    """A row of cells; `name` is whose it is."""

    name: str
    cells: Sequence[Cell]
    css: str = ""


@dataclass(frozen=True)
class Table:
    """What `_table.html` draws.

    Attributes
    ----------
    label : str
        What the table is called where it is read aloud.
    caption : str
        The same for whoever is inside the table already, if it is needed there.
    groups : sequence of (title, number of columns)
        Above the heads, if there are any; the first column stands beside them.
    notes : sequence of str
        Why figures are missing, in the order of their numbers.
    unknown : str
        Which columns are left out, and why.
    """

    label: str
    heads: Sequence[Head]
    rows: Sequence[Row]
    css: str = ""
    id: str = ""
    caption: str = ""
    described_by: str = ""
    groups: Sequence[tuple[str, int]] = ()
    notes: Sequence[str] = ()
    unknown: str = ""
    foot: Sequence[Row] = ()


def missing(why: str) -> Cell:
    return Cell(DASH, title=why, why=why)


def name_cell(name: str, *, tag: str = "", css: str = "") -> Cell:
    return Cell(name, css=css, tag=tag, is_head=True)


def text_cell(text: str, css: str = "", mark: str = "") -> Cell:
    return Cell(text, css=css, mark=mark)


def numbered(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Number the reasons why figures are missing, each once, and return both.

    Examples
    --------
    >>> rows, notes = numbered([Row("a", [missing("No votes."), missing("No votes.")])])
    >>> [cell.note for cell in rows[0].cells], notes
    ([1, 1], ['No votes.'])
    """
    notes = list(dict.fromkeys(cell.why for row in rows for cell in row.cells if cell.why))
    number = {why: place for place, why in enumerate(notes, start=1)}
    return [
        replace(
            row,
            cells=[
                replace(cell, note=number[cell.why]) if cell.why else cell for cell in row.cells
            ],
        )
        for row in rows
    ], notes


def percent(value: float, decimals: int = 0) -> str:
    return f"{100 * value:.{decimals}f}{PER_CENT}"


def span(low: float, high: float, decimals: int = 0) -> str:
    return f"{low:.{decimals}f}{DASH}{high:.{decimals}f}"


def as_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""Write rows under the names of their columns; what is missing stays empty.

    No text is taken for a formula by a spreadsheet.

    Examples
    --------
    >>> as_csv(["name", "elo", "rank"], [["=1", 1016.0, None]])
    "name,elo,rank\r\n'=1,1016.0,\r\n"
    """
    file = io.StringIO()
    if names:
        writer = csv.writer(file)
        writer.writerow(map(harmless, names))
        writer.writerows(
            [harmless(value) if isinstance(value, str) else value for value in row] for row in rows
        )
    return file.getvalue()
