"""Lists on pages: their columns, search, order and pages, each declared once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final, Generic, TypeAlias, TypedDict, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet

from humanjudge.core.http import Problem
from humanjudge.core.tables import Cell, Head, Row, Table, sort_link

T = TypeVar("T")
Rows: TypeAlias = Sequence[Any] | QuerySet[Any]
Params = Mapping[str, str]
LONGEST_SEARCH: Final = 100


@dataclass(frozen=True)
class Column(Generic[T]):
    title: str
    cell: Callable[[T], Cell | str]
    css: str = ""
    # By their names in the address, that of the first click first: the fields to order by.
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)


class ListContext(TypedDict):
    page: Page[Any]
    table: Table
    # The words searched for, and the order where it is not the usual one.
    q: str
    sort: str


@dataclass(frozen=True)
class Listing(Generic[T]):
    label: str
    columns: Sequence[Column[T]]
    usual: str = ""
    search: Sequence[str] = ()
    per_page: int = 50
    row_css: Callable[[T], str] = lambda row: ""

    def context(
        self,
        rows: Rows,
        params: Params,
        prepare: Callable[[Page[Any]], Iterable[T]] = lambda page: page,
    ) -> ListContext:
        """Return what the template is given of the page of rows that an address asks for.

        `prepare` makes what the columns show of the rows of this page alone.
        """
        words, sort = searched_words(params), self._sort(params)
        rows = matching(rows, self.search, words)
        if sort:
            rows = in_order(rows, self._orders[sort])
        page = page_of(rows, params, self.per_page)
        return {
            "page": page,
            "table": self.table(prepare(page), params),
            "q": words,
            "sort": "" if sort == self.usual else sort,
        }

    def table(self, rows: Iterable[T], params: Params | None = None) -> Table:
        sort = self._sort(params) if params is not None else ""
        heads = [self._head(column, params or {}, sort) for column in self.columns]
        return Table(self.label, heads, [self._row(row) for row in rows], css="list as-cards")

    @property
    def _orders(self) -> dict[str, Sequence[str]]:
        return {name: fields for column in self.columns for name, fields in column.orders.items()}

    def _sort(self, params: Params) -> str:
        sort = params.get("sort") or self.usual
        if sort and self._orders and sort not in self._orders:
            raise Problem(400, f"sort: must be one of {', '.join(self._orders)}.")
        return sort if self._orders else ""

    def _head(self, column: Column[T], params: Params, sort: str) -> Head:
        if not column.orders:
            return Head(column.title, css=column.css)
        names = list(column.orders)
        place = names.index(sort) if sort in names else -1
        href = sort_link(params, names[(place + 1) % len(names)], self.usual)
        figure, direction = names[0].removeprefix("-"), ""
        if place >= 0:
            falls = column.orders[sort][0].startswith("-")
            direction = "descending" if falls else "ascending"
        return Head(column.title, css=column.css, figure=figure, href=href, sorted=direction)

    def _row(self, row: T) -> Row:
        cells = []
        for column in self.columns:
            cell = column.cell(row)
            if isinstance(cell, str):
                # What people and models wrote goes the way of its own letters.
                cell = Cell(cell, css=column.css, direction="" if "num" in column.css else "auto")
            label = "" if cell.is_head else cell.label or column.title
            cells.append(replace(cell, label=label))
        return Row(
            next((cell.main for cell in cells if cell.is_head), ""), cells, self.row_css(row)
        )


def both_ways(name: str, attribute: str, *, largest_first: bool = False) -> dict[str, list[str]]:
    """Return the two orders of a column by an attribute, that of the first click first.

    Examples
    --------
    >>> both_ways("seen", "last_seen", largest_first=True)
    {'-seen': ['-last_seen'], 'seen': ['last_seen']}
    """
    rising, falling = {name: [attribute]}, {f"-{name}": [f"-{attribute}"]}
    return falling | rising if largest_first else rising | falling


def searched_words(params: Params) -> str:
    return params.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]


def matching(rows: Rows, fields: Sequence[str], words: str) -> Rows:
    """Return the rows with some words in one of their fields, whatever their case."""
    if not words or not fields:
        return rows
    if isinstance(rows, QuerySet):
        return rows.filter(Q(*((f"{name}__icontains", words) for name in fields), _connector=Q.OR))
    text = words.casefold()
    return [row for row in rows if any(text in getattr(row, name).casefold() for name in fields)]


def in_order(rows: Rows, fields: Sequence[str]) -> Rows:
    """Sort rows by fields, with "-" before a name the largest first; rows without a value last.

    Examples
    --------
    >>> from fractions import Fraction
    >>> in_order([Fraction(1, 2), Fraction(3, 4)], ["-denominator"])
    [Fraction(3, 4), Fraction(1, 2)]
    """
    if isinstance(rows, QuerySet):
        return rows.order_by(*fields)
    for sign_and_name in reversed(fields):
        value = attrgetter(sign_and_name.removeprefix("-"))
        with_value = [row for row in rows if value(row) is not None]
        without = [row for row in rows if value(row) is None]
        rows = sorted(with_value, key=value, reverse=sign_and_name.startswith("-")) + without
    return rows


def page_of(rows: Rows, params: Params, per_page: int) -> Page[Any]:
    return Paginator(rows, per_page).get_page(params.get("page"))
