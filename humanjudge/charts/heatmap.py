"""Numbers in cells, and the more of it the darker: everyone against everyone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from humanjudge.charts.spec import (
    DASH,
    LETTER_WIDTH,
    Json,
    Object,
    Side,
    Spec,
    band,
    clean,
    column,
    finished,
    finite,
    marks,
    shortened,
    texts,
    unprefixed,
    unscaled,
)

CELL_HEIGHT: Final = 24
# Between names and cells.
CELL_GAP: Final = 8
# Text in a cell is ink: more of the accent behind it would take the contrast away.
FULLEST_CELL: Final = 0.45
_ROOM: Final = 8
_MOST_IN_WORDS: Final = 40
_STRENGTH: Final = ((0.001, 1.0), (0.01, 0.75), (0.05, 0.5))
_LEAST_P: Final = 0.001

Numbers = Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Cells:
    """How the numbers in cells are written, and how dark their cells are, from 0 to 1."""

    write: Callable[[float], str]
    darkness: Callable[[float], float]


def _write_p(p: float) -> str:
    if p < _LEAST_P:
        return "<.001"
    return "1" if p >= 0.995 else f"{p:.3f}".removeprefix("0") if p < 0.1 else f"{p:.2f}"[1:]


def _strength(p: float) -> float:
    return next((darkness for least, darkness in _STRENGTH if p < least), 0.0)


SHARES: Final = Cells("{:.0%}".format, lambda share: share)
P_VALUES: Final = Cells(_write_p, _strength)


def heat_map(
    names: Sequence[str], cells: Numbers, *, title: str, text: str, form: Cells = SHARES
) -> Spec | None:
    """Draw a square table.

    Parameters
    ----------
    names : sequence of str, shape (n,)
    cells : sequence of sequence of float or None, shape (n, n)
        By row, then by column; None is drawn as a dash.
    title : str
    text : str
        What a cell says, for instance "share of comparisons that the row won against the column".
    form : Cells

    Returns
    -------
    dict or None
        A Vega-Lite specification; None without names.

    Raises
    ------
    ValueError
        When the table is not square.
    """
    if any(len(row) != len(names) for row in cells) or len(cells) != len(names):
        raise ValueError(f"a table of {len(names)} names has as many rows and columns")
    if not names:
        return None
    labels = [shortened(name) for name in unprefixed(names)]
    # Upright: they would not fit beside each other.
    heads = column_heads(labels, "left", angle=270)
    return finished(
        [*drawn_cells(cells, form, len(names)), row_names(labels), heads],
        title=title,
        text=text,
        words=f"{text}: {_in_words(names, cells, form)}.",
        height=CELL_HEIGHT * len(names),
        width=cell_width(cells, form) * len(names),
        names=dict(zip(labels, names, strict=True)),
    )


def row_names(labels: Sequence[str]) -> Object:
    return column(dict(enumerate(labels)), -CELL_GAP, "right", band("row", len(labels)))


def column_heads(words: Sequence[str], side: Side = "center", **options: Json) -> Object:
    rows: list[Object] = [{"column": i, "text": text} for i, text in enumerate(words)]
    x = band("column", len(words))
    return texts(rows, x, {"value": -CELL_GAP}, side, **options)


def cell_width(numbers: Numbers, form: Cells) -> int:
    """Return how many pixels the widest number takes."""
    known = [v for line in numbers for v in line if v is not None and finite(v) is not None]
    longest = max((len(form.write(value)) for value in known), default=1)
    return _ROOM + LETTER_WIDTH * max(longest, 4)


def drawn_cells(
    numbers: Numbers, form: Cells, count: int, bold_from: float | None = None
) -> list[Object]:
    """Return the cells of a table with so many columns; None is a dash."""
    plain: list[Object] = []
    bold: list[Object] = []
    gaps: list[Object] = []
    for row, line in enumerate(numbers):
        for number, value in enumerate(map(finite, line)):
            place: Object = {"row": row, "column": number}
            if value is None:
                gaps.append(place | {"text": DASH})
                continue
            fill = round(min(max(form.darkness(value), 0.0), 1.0) * FULLEST_CELL, 4)
            is_bold = bold_from is not None and value >= bold_from
            (bold if is_bold else plain).append(place | {"text": form.write(value), "fill": fill})
    x, y = band("column", count), band("row", len(numbers))
    filled: Object = {"x": x, "y": y, "fillOpacity": unscaled("fill")}
    return [
        marks([*plain, *bold], "rect", filled, style="cell"),
        marks(gaps, "rect", {"x": x, "y": y}, style="gap"),
        texts(plain, x, y, "center", style="number"),
        texts(bold, x, y, "center", style=["number", "heading"]),
        texts(gaps, x, y, "center", style="quiet"),
    ]


def _in_words(names: Sequence[str], cells: Numbers, form: Cells) -> str:
    figures = [
        f"{clean(names[row])} to {clean(names[number])} {form.write(value)}"
        for row, line in enumerate(cells)
        for number, value in enumerate(line)
        if value is not None and finite(value) is not None
    ]
    rest = len(figures) - _MOST_IN_WORDS
    more = [f"and {rest} more"] if rest > 0 else []
    return "; ".join(figures[:_MOST_IN_WORDS] + more) or "no figures"
