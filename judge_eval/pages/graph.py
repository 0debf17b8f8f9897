"""The rating graph as coordinates; the template draws an inline SVG in the page's own colours."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

PLOT_WIDTH, LEAST_HEIGHT = 560, 260
LEFT, TOP, BOTTOM = 44, 12, 28
PLOT_RIGHT = LEFT + PLOT_WIDTH
# Room for a letter of a label: of fonts that a page may come to be shown in, a wide one.
LETTER, VALUE = 7.6, 48
# Two labels nearer than this would overlap.
LABEL_GAP = 14.0
LEAST_SPAN = 40.0
LEADER_LENGTH = 12
LABEL_LETTERS = 40
TABLE_ROWS = 12
# Where there are more lines than these, all step back but those that agree most.
MOST_EQUAL, LEADING = 6, 3


@dataclass(frozen=True)
class Line:
    """One judge's line: SVG points, and where its label stands."""

    name: str
    label: str
    style: str
    points: str
    end_x: float
    end_y: float
    label_x: float
    label_y: float
    rating: float


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Graph:
    lines: list[Line]
    y_ticks: list[Tick]
    x_ticks: list[Tick]
    start_y: float
    table: list[tuple[int, list[float]]]
    plot_bottom: int
    height: int
    width: int
    plot_left: int = LEFT
    plot_right: int = PLOT_RIGHT


def draw(
    names: Sequence[str],
    series: Sequence[tuple[int, Sequence[float]]],
    baselines: Collection[int] = (),
    order: Sequence[int] = (),
) -> Graph | None:
    """Lay out ratings over votes.

    Parameters
    ----------
    names : sequence of str, shape (n_judges,)
        Labels in the run's order of judges.
    series : sequence of (int, sequence of float)
        Votes so far and the ratings after them, oldest first. A judge that joined later is
        missing at the end of earlier rows and stood at 1000 there.
    baselines : collection of int
        Which of the judges are baselines; they are drawn dashed.
    order : sequence of int
        Judges by overall agreement: of many, the first few stand out.

    Returns
    -------
    Graph or None
        None when there is nothing to draw yet.

    Examples
    --------
    >>> draw(["a"], []) is None
    True
    >>> graph = draw(["a", "b"], [(1, [1016.0, 984.0])])
    >>> [line.name for line in graph.lines]
    ['a', 'b']
    """
    if not series or not names:
        return None
    rows = [(0, [1000.0] * len(names))]
    rows += [(votes, _padded(ratings, len(names))) for votes, ratings in series]
    lowest = min(min(ratings) for _, ratings in rows)
    highest = max(max(ratings) for _, ratings in rows)
    slack = max((LEAST_SPAN - (highest - lowest)) / 2, 0.0)
    low, high, last = lowest - slack, highest + slack, rows[-1][0]
    # As high as its labels under each other, however many judges there are.
    bottom = max(LEAST_HEIGHT - BOTTOM, round(TOP + LABEL_GAP * len(names)))

    def x(votes: float) -> float:
        return round(LEFT + PLOT_WIDTH * votes / last, 1)

    def y(rating: float) -> float:
        return round(TOP + (bottom - TOP) * (high - rating) / (high - low), 1)

    styles = _styles(len(names), baselines, order)
    shown = [_clipped(name) for name in shortened(names)]
    ends = [y(rating) for rating in rows[-1][1]]
    labels = _spread(ends, float(bottom))
    lines = [
        Line(
            name=name,
            label=shown[judge],
            style=styles[judge],
            points=" ".join(f"{x(votes)},{y(ratings[judge])}" for votes, ratings in rows),
            end_x=x(last),
            end_y=ends[judge],
            label_x=x(last) + LEADER_LENGTH,
            label_y=labels[judge],
            rating=rows[-1][1][judge],
        )
        for judge, name in enumerate(names)
    ]
    y_ticks = [Tick(y(value), str(value)) for value in _round_values(low, high)]
    x_ticks = [Tick(x(0), "0"), Tick(x(last), f"{last:,} vote{'s' if last > 1 else ''}")]
    width = round(PLOT_RIGHT + LEADER_LENGTH + LETTER * max(map(_letters, shown)) + VALUE)
    height = bottom + BOTTOM
    return Graph(lines, y_ticks, x_ticks, y(1000.0), _thinned(rows), bottom, height, width)


def shortened(names: Sequence[str]) -> list[str]:
    """Leave out the folders that all names with folders begin with; others stay as they are.

    Examples
    --------
    >>> shortened(["router/one/judge-a", "router/two/judge-a", "random"])
    ['one/judge-a', 'two/judge-a', 'random']
    >>> shortened(["router/a", "a"])
    ['router/a', 'a']
    """
    folders = [name.split("/")[:-1] for name in names if "/" in name]
    if len(folders) < 2:
        return list(names)
    common = 0
    for places in zip(*folders, strict=False):
        if len(set(places)) > 1:
            break
        common += 1
    short = ["/".join(name.split("/")[common:]) if "/" in name else name for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)


def _clipped(name: str) -> str:
    """Take letters out of the middle of a long name: names differ at their ends."""
    if len(name) <= LABEL_LETTERS:
        return name
    half = (LABEL_LETTERS - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _letters(text: str) -> float:
    """Return how wide a text is, in small Latin letters."""
    return sum(
        2.0
        if unicodedata.east_asian_width(letter) in "WF"
        else 1.4
        if letter.isupper() or letter in "mw@%"
        else 1.0
        for letter in text
    )


def _styles(judges: int, baselines: Collection[int], order: Sequence[int]) -> list[str]:
    """Say of each line whether it is a baseline, and whether it steps back among many."""
    stepping_back = set(order[LEADING:]) if judges > MOST_EQUAL else set()
    return [
        " ".join(["baseline"] * (judge in baselines) + ["many"] * (judge in stepping_back))
        for judge in range(judges)
    ]


def _thinned(rows: Sequence[tuple[int, list[float]]]) -> list[tuple[int, list[float]]]:
    """Return about a dozen rows, always with the first and the last."""
    step = -(-(len(rows) - 1) // TABLE_ROWS) or 1
    return [*rows[:-1:step], rows[-1]]


def _padded(ratings: Sequence[float], judges: int) -> list[float]:
    return [*ratings, *[1000.0] * (judges - len(ratings))][:judges]


def _round_values(low: float, high: float) -> list[int]:
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000) if (high - low) / s <= 6 or s == 1000)
    first = -(-int(low) // step) * step
    return [value for value in range(first, int(high) + 1, step) if low <= value <= high]


def _spread(positions: Sequence[float], lowest: float) -> list[float]:
    """Move labels apart, keeping their order, as little as a single sweep down and up can."""
    order = sorted(range(len(positions)), key=positions.__getitem__)
    placed = list(positions)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + LABEL_GAP)
    for index in reversed(order):
        placed[index] = min(placed[index], lowest)
        lowest = placed[index] - LABEL_GAP
    return placed
