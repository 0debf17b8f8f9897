"""The rating graph of a board as coordinates: a template draws it, since a live page cannot wait
for a renderer, in the page's own colours."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final, NamedTuple

from humanjudge.charts.spec import shortened, spread, unprefixed, width_of
from humanjudge.lib.text import number_of

_PLOT_WIDTH: Final = 560
LEAST_HEIGHT: Final = 260
_LEFT, _TOP, _BOTTOM = 44, 12, 28
_RIGHT: Final = _LEFT + _PLOT_WIDTH
# Room for a letter of a label, of fonts that a page may come to be shown in a wide one; and for
# the rating behind it.
_LETTER, _VALUE = 7.6, 48
# Two labels nearer than this would overlap.
LABEL_GAP: Final = 14.0
_LEADER: Final = 12
_START: Final = 1000.0
# Of lines: no two of the first 40 have both in common.
HUES: Final = 8
DASHES: Final = 5
# Where there are more lines than these, all step back but those that agree most.
MOST_EQUAL: Final = 6
LEADING: Final = 3


class Tick(NamedTuple):
    at: float
    label: str


@dataclass(frozen=True)
class Line:
    name: str
    label: str
    style: str
    points: str
    end_y: float
    label_y: float
    rating: float


@dataclass(frozen=True)
class RatingGraph:
    lines: list[Line]
    y_ticks: list[Tick]
    x_ticks: list[Tick]
    start_y: float
    table: list[tuple[int, list[float]]]
    plot_bottom: int
    height: int
    width: int
    plot_left: int = _LEFT
    plot_right: int = _RIGHT
    label_x: int = _RIGHT + _LEADER


def rating_graph(
    names: Sequence[str],
    series: Sequence[tuple[int, Sequence[float]]],
    baselines: Collection[int] = (),
    order: Sequence[int] = (),
) -> RatingGraph | None:
    """Lay out ratings over votes; None when there is nothing to draw yet.

    `series` has votes so far and the ratings after them, oldest first, judges in the order of
    `names`: one that joined later is missing at the end of earlier rows and stood at 1000 there.
    `baselines` are drawn dashed. `order` is judges by agreement: of many, the first stand out.
    """
    if not series or not names:
        return None
    start = [_START] * len(names)
    padded = ((votes, [*known, *start[len(known) :]][: len(names)]) for votes, known in series)
    rows = [(0, start), *padded]
    lowest = min(min(ratings) for _, ratings in rows)
    highest = max(max(ratings) for _, ratings in rows)
    slack = max((40.0 - (highest - lowest)) / 2, 0.0)
    low, high, (votes_cast, last) = lowest - slack, highest + slack, rows[-1]
    # As high as its labels under each other, however many judges there are.
    bottom = max(LEAST_HEIGHT - _BOTTOM, round(_TOP + LABEL_GAP * len(names)))

    def x(votes: float) -> float:
        return round(_LEFT + _PLOT_WIDTH * votes / votes_cast, 1)

    def y(rating: float) -> float:
        return round(_TOP + (bottom - _TOP) * (high - rating) / (high - low), 1)

    labels = [shortened(name, 40) for name in unprefixed(names)]
    label_ys = spread([y(rating) for rating in last], LABEL_GAP, float(bottom))
    stepping_back = order[LEADING:] if len(names) > MOST_EQUAL else ()
    lines = [
        Line(
            name=name,
            label=labels[judge],
            style=" ".join(
                ["baseline" if judge in baselines else f"hue-{judge % HUES} dash-{judge % DASHES}"]
                + ["many"] * (judge in stepping_back)
            ),
            points=" ".join(f"{x(votes)},{y(ratings[judge])}" for votes, ratings in rows),
            end_y=y(last[judge]),
            label_y=label_ys[judge],
            rating=last[judge],
        )
        for judge, name in enumerate(names)
    ]
    # About a dozen rows, always with the first and the last.
    step = -(-(len(rows) - 1) // 12)
    return RatingGraph(
        lines=lines,
        y_ticks=[Tick(y(value), f"{value:.0f}") for value in ticks(low, high)],
        x_ticks=[Tick(_LEFT, "0"), Tick(_RIGHT, number_of(votes_cast, "vote"))],
        start_y=y(_START),
        table=[*rows[:-1:step], rows[-1]],
        plot_bottom=bottom,
        height=bottom + _BOTTOM,
        width=round(_RIGHT + _LEADER + _LETTER * max(map(width_of, labels)) + _VALUE),
    )


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers of an axis.

    Examples
    --------
    >>> ticks(0.0, 1.0), ticks(-150.0, 0.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-150.0, -100.0, -50.0, 0.0])
    """
    least = (high - low) / 5 * 0.999
    power = 10.0 ** floor(log10(least))
    step = next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= least)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]
