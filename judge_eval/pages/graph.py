"""The rating graph as coordinates; the template draws an inline SVG in the page's own colours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, LEAST_HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 44, 210, 12, 28
# Two labels nearer than this would overlap.
LABEL_GAP = 14.0
LEAST_SPAN = 40.0
LEADER_LENGTH = 12
LABEL_LETTERS = 24
TABLE_ROWS = 12


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
    width: int = WIDTH
    plot_left: int = LEFT
    plot_right: int = WIDTH - RIGHT


def draw(
    names: Sequence[str],
    series: Sequence[tuple[int, Sequence[float]]],
    baselines: Collection[int] = (),
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
        return round(LEFT + (WIDTH - LEFT - RIGHT) * votes / last, 1)

    def y(rating: float) -> float:
        return round(TOP + (bottom - TOP) * (high - rating) / (high - low), 1)

    best = max(rows[-1][1])
    ends = [y(rating) for rating in rows[-1][1]]
    labels = _spread(ends, float(bottom))
    lines = [
        Line(
            name=name,
            label=name if len(name) <= LABEL_LETTERS else f"{name[: LABEL_LETTERS - 1]}…",
            style=_style(rows[-1][1][judge] == best, judge in baselines),
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
    return Graph(lines, y_ticks, x_ticks, y(1000.0), _thinned(rows), bottom, bottom + BOTTOM)


def _style(is_best: bool, is_baseline: bool) -> str:
    return " ".join(["best"] * is_best + ["baseline"] * is_baseline)


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
