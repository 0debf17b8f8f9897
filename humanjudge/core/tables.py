"""Tables for pages and files: figures, how sure each is, and why one is missing."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import urlencode

from django.utils.html import format_html, html_safe
from django.utils.safestring import SafeString

from humanjudge.core.text import fixed, harmless

_BUTTON = '<button type="submit" class="quiet" form="row-form" formaction="{}">{}</button>'
DASH = "\N{EN DASH}"
PER_CENT = "\N{NO-BREAK SPACE}%"


@html_safe
@dataclass(frozen=True)
class Cell:
    """One cell, as HTML where a template places it: tables have thousands of them."""

    main: str = ""
    # How sure the figure is; what is behind it; why it or its interval is missing.
    small: str = ""
    title: str = ""
    reason: str = ""
    # The number of the note that says why, see `numbered`.
    note: int | None = None
    css: str = "num"
    # Class of the figure itself.
    mark: str = ""
    # Read aloud around the figure, and not to be seen.
    before: str = ""
    after: str = ""
    # Behind a name, such as "baseline".
    tag: str = ""
    # Where it leads; or what its button does, by the form `row-form` of the page.
    href: str = ""
    action: str = ""
    # The figure's key, for scripts and styles, and what it is called where its column has no head.
    figure: str = ""
    label: str = ""
    # By what a sortable column is sorted.
    sort: str | None = None
    is_head: bool = False
    direction: str = ""

    @property
    def has_figure(self) -> bool:
        return self.main not in ("", DASH)

    def __str__(self) -> str:
        element = "th" if self.is_head else "td"
        about = {
            "scope": "row" if self.is_head else None,
            "class": self.css or None,
            "dir": self.direction or None,
            "data-figure": self.figure or None,
            "data-label": self.label or None,
            "data-sort": self.sort,
            "title": self.title or None,
        }
        figure = _hidden(self.before) + _escaped(self.main) + _hidden(self.after)
        if self.mark and figure:
            figure = f'<span class="{self.mark}">{figure}</span>'
        if self.href:
            figure = f'<a href="{_escaped(self.href)}">{figure}</a>'
        if self.action:
            figure = _BUTTON.format(_escaped(self.action), figure)
        parts = [
            f"<{element}",
            *[f' {n}="{_escaped(v)}"' for n, v in about.items() if v is not None],
            ">",
            figure,
            f"<sup>{self.note}</sup>" if self.note else "",
            f" <small>{_escaped(self.small)}</small>" if self.small else "",
            f' <span class="tag">{self.tag}</span>' if self.tag else "",
            f"</{element}>",
        ]
        return SafeString("".join(parts))


def _hidden(words: str) -> str:
    return f'<span class="visually-hidden">{_escaped(words)}</span>' if words else ""


def _escaped(text: str) -> str:
    """Escape what is not HTML already; Django's own takes as long as all else of a cell."""
    return text if isinstance(text, SafeString) else escape(text)


@dataclass(frozen=True)
class Head:
    title: str = ""
    unit: str = ""
    css: str = "num"
    figure: str = ""
    hint: str = ""
    after: str = ""
    # What the figure is, and where its method stands.
    about: str = ""
    anchor: str = ""
    # What sorts by it; and whether the table is sorted by it, as `aria-sort` has it.
    href: str = ""
    sorted: str = ""


@dataclass(frozen=True)
class Row:
    """A row of cells; `name` is whose it is."""

    name: str
    cells: Sequence[Cell]
    css: str = ""


@dataclass(frozen=True)
class Table:
    """What `_table.html` draws."""

    # What the table is called where it is read aloud.
    label: str
    heads: Sequence[Head]
    rows: Sequence[Row]
    css: str = ""
    id: str = ""
    # The same for readers who are inside the table already, if it is needed there.
    caption: str = ""
    described_by: str = ""
    # Why figures are missing, in the order of their numbers.
    notes: Sequence[str] = ()
    # Which columns are left out, and why.
    unknown: str = ""
    foot: Sequence[Row] = ()
    # On a narrow page each row is a card of its own, and on a wide one all fits: none scrolls.
    are_cards: bool = False


def missing(reason: str) -> Cell:
    return Cell(DASH, title=reason, reason=reason)


def name_cell(name: str, *, tag: str = "", css: str = "", small: str = "") -> Cell:
    return Cell(name, css=css, tag=tag, small=small, is_head=True)


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
    notes = list(dict.fromkeys(cell.reason for row in rows for cell in row.cells if cell.reason))
    number = {reason: place for place, reason in enumerate(notes, start=1)}

    def noted(cell: Cell) -> Cell:
        return replace(cell, note=number[cell.reason]) if cell.reason else cell

    return [replace(row, cells=[noted(cell) for cell in row.cells]) for row in rows], notes


def matrix(
    label: str, names: Sequence[str], order: Sequence[int], cell: Callable[[int, int], Cell]
) -> Table:
    """Show judges by judges or models by models; columns are called by the numbers of the rows."""
    heads, rows = [Head()], []
    for number, row in enumerate(order, start=1):
        heads.append(Head(f"{number}", hint=names[row], after=f" {names[row]}"))
        head = name_cell(format_html('<span class="muted">{}</span> {}', number, names[row]))
        diagonal = Cell(DASH, css="num muted")
        cells = [diagonal if row == column else cell(row, column) for column in order]
        rows.append(Row(names[row], [head, *cells]))
    return Table(label, heads, rows)


def sort_link(query: Mapping[str, str], sort: str, usual: str) -> str:
    """Return the address of the same page sorted otherwise, from its first row on.

    Examples
    --------
    >>> sort_link({"q": "ann", "page": "3"}, "-votes", "name"), sort_link({}, "name", "name")
    ('?q=ann&sort=-votes', '?')
    """
    passing = ("sort", "page", "seen", "parts")
    parameters = {name: value for name, value in query.items() if name not in passing}
    return "?" + urlencode(parameters | ({} if sort == usual else {"sort": sort}))


def signed(points: float, decimals: int = 1) -> str:
    """Write a difference with its sign; of one that is rounded to nothing that is a plus."""
    return f"{points:+z.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def percent(value: float, decimals: int = 0) -> str:
    return f"{fixed(100 * value, decimals)}{PER_CENT}"


def span(low: float, high: float, decimals: int = 0) -> str:
    return f"{fixed(low, decimals)}{DASH}{fixed(high, decimals)}"


def percent_span(low: float, high: float) -> str:
    return span(100 * low, 100 * high)


def as_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""Write rows under the names of their columns; no text is a formula for a spreadsheet.

    Examples
    --------
    >>> as_csv(["name", "elo", "rank"], [["=1", 1016.0, None]])
    "name,elo,rank\r\n'=1,1016.0,\r\n"
    """
    file = io.StringIO()
    if names:
        writer = csv.writer(file)
        for row in (names, *rows):
            writer.writerow(harmless(value) if isinstance(value, str) else value for value in row)
    return file.getvalue()
