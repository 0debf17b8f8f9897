"""Everyone against everyone: a number in each cell, and the more of it the darker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from humanjudge.charts.cells import CELL_HEIGHT, GAP, Cells, cell_width, columns, drawn_cells
from humanjudge.charts.layers import finished, layer, rows_down, texts
from humanjudge.charts.parts import Spec, clean, finite, shortened, unprefixed

if TYPE_CHECKING:
    import altair as alt

_STRENGTH: Final = ((0.001, 1.0), (0.01, 0.75), (0.05, 0.5))
_LEAST_P: Final = 0.001


def _write_p(p: float) -> str:
    if p < _LEAST_P:
        return "<.001"
    return "1" if p >= 0.995 else f"{p:.3f}".removeprefix("0") if p < 0.1 else f"{p:.2f}"[1:]


def _strength(p: float) -> float:
    return next((darkness for least, darkness in _STRENGTH if p < least), 0.0)


SHARES: Final = Cells(lambda share: f"{share:.0%}", lambda share: share)
P_VALUES: Final = Cells(_write_p, _strength)


def heat_map(
    names: Sequence[str],
    cells: Sequence[Sequence[float | None]],
    *,
    title: str,
    text: str,
    form: Cells = SHARES,
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
    count = len(names)
    y, labels = rows_down(count), [shortened(name) for name in unprefixed(names)]
    layers = [
        *drawn_cells(cells, form, y, count),
        texts(dict(enumerate(labels)), -GAP, "right", y),
        _heads(labels, count),
    ]
    return finished(
        layers,
        title=title,
        text=text,
        words=f"{text}: {_in_words(names, cells, form)}.",
        height=CELL_HEIGHT * count,
        width=cell_width(cells, form) * count,
        names=dict(zip(labels, names, strict=True)),
    )


def _heads(labels: Sequence[str], count: int) -> alt.Chart:
    """Return the names over the columns, upright: they would not fit beside each other."""
    import altair as alt

    told = layer({"column": column, "text": text} for column, text in enumerate(labels))
    heads: alt.Chart = told.mark_text(align="left", angle=270).encode(
        x=columns(count), y=alt.value(-GAP), text="text:N"
    )
    return heads


def _in_words(names: Sequence[str], cells: Sequence[Sequence[float | None]], form: Cells) -> str:
    told = [
        f"{clean(names[row])} to {clean(names[column])} {form.write(value)}"
        for row, line in enumerate(cells)
        for column, value in enumerate(line)
        if value is not None and finite(value) is not None
    ]
    most = 40
    more = [f"and {len(told) - most} more"] if len(told) > most else []
    return "; ".join(told[:most] + more) or "no figures"
