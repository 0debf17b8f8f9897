"""Numbers in cells, and the more of it the darker: what tables of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from humanjudge.charts.layers import layer
from humanjudge.charts.look import FULLEST_CELL
from humanjudge.charts.parts import finite

if TYPE_CHECKING:
    import altair as alt

CELL_HEIGHT: Final = 24
GAP: Final = 8
_LETTER_WIDTH: Final = 7
_ROOM: Final = 8
_DASH: Final = "\N{EN DASH}"

Numbers = Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Cells:
    """How the numbers in cells are written, and how dark their cells are, from 0 to 1."""

    write: Callable[[float], str]
    darkness: Callable[[float], float]


def cell_width(numbers: Numbers, form: Cells) -> int:
    """Return how many pixels the widest number takes."""
    known = [v for line in numbers for v in line if v is not None and finite(v) is not None]
    longest = max((len(form.write(value)) for value in known), default=1)
    return _ROOM + _LETTER_WIDTH * max(longest, 4)


def columns(count: int) -> alt.X:
    """Return a band for each column; `column` is its number."""
    import altair as alt

    return alt.X("column:O", axis=None, scale=alt.Scale(domain=list(range(count))))


def drawn_cells(
    numbers: Numbers, form: Cells, y: alt.Y, count: int, strong_from: float | None = None
) -> list[alt.Chart]:
    """Return the cells of a table with so many columns; None is a dash.

    Numbers from `strong_from` on are bold.
    """
    import altair as alt

    every = [
        _cell(row, column, finite(value), form, strong_from)
        for row, line in enumerate(numbers)
        for column, value in enumerate(line)
    ]
    x = columns(count)
    known = [cell for cell in every if cell["fill"] is not None]
    gaps = layer(cell for cell in every if cell["fill"] is None)
    strong = layer(cell for cell in known if cell["strong"])
    plain = layer(cell for cell in known if not cell["strong"])
    opacity = alt.FillOpacity("fill:Q", scale=None, legend=None)
    return [
        layer(known).mark_rect(style="cell").encode(x=x, y=y, fillOpacity=opacity),
        gaps.mark_rect(style="gap").encode(x=x, y=y),
        plain.mark_text(style="number").encode(x=x, y=y, text="text:N"),
        strong.mark_text(style=["number", "heading"]).encode(x=x, y=y, text="text:N"),
        gaps.mark_text(style="quiet").encode(x=x, y=y, text="text:N"),
    ]


def _cell(
    row: int, column: int, value: float | None, form: Cells, strong_from: float | None
) -> Mapping[str, object]:
    place: dict[str, object] = {"row": row, "column": column}
    if value is None:
        return place | {"text": _DASH, "fill": None}
    darkness = min(max(form.darkness(value), 0.0), 1.0)
    strong = strong_from is not None and value >= strong_from
    fill = round(darkness * FULLEST_CELL, 4)
    return place | {"text": form.write(value), "fill": fill, "strong": strong}
