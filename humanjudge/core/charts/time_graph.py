"""Votes over time, and the quality score with daily pass rates, as coordinates for a template."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, NamedTuple

from humanjudge.core.charts.graphs import PlacedGraph, Tick

_LEFT, _TOP, _WIDTH = 44, 12, 640
_RIGHT: Final = _LEFT + _WIDTH
_BOTTOM: Final = 212
_X_TICKS: Final = 4
PER_CENT: Final = "\N{NO-BREAK SPACE}%"
TABLE_ROWS: Final = 12


@dataclass(frozen=True, slots=True)
class Point:
    """The score behind a vote, how many votes there were then, and how many of them passed."""

    at: datetime
    score: float
    freshness: float
    votes: int
    passes: int


class Dot(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class QualityGraph(PlacedGraph):
    # While the start value weighs more than half, and from then on.
    early_path: str
    path: str
    rates: list[Dot]
    end_y: float
    y_ticks: list[Tick]
    x_ticks: list[Tick]
    table: list[Point]
    plot_left: int = _LEFT
    plot_right: int = _RIGHT
    plot_width: int = _WIDTH
    height: int = _BOTTOM + 24
    width: int = _RIGHT + 16


def quality_graph(
    initial: float, points: Sequence[Point], half: datetime | None = None
) -> QualityGraph | None:
    """Lay out a score over time; None when there is nothing to draw yet.

    `points` are in the order of their times. The line goes level until the next vote: nothing
    decays while nobody votes. Until `half` the start value weighs more than half. Of very many
    votes not each has a point; those since the last point count on the day of the next.
    """
    if not points:
        return None
    first, end = points[0].at, points[-1].at
    seconds = (end - first).total_seconds()

    def x(voted_at: datetime) -> float:
        return _LEFT + _WIDTH * (voted_at - first).total_seconds() / seconds if seconds else _RIGHT

    def line(from_x: float, score: float, steps_to: Sequence[Point]) -> str:
        steps = (f"H{x(point.at):.1f}V{_y(point.score)}" for point in steps_to)
        return f"M{from_x:.1f} {_y(score)}{''.join(steps)}"

    turn = max(first, min(half or first, end))
    number = sum(point.at <= turn for point in points) if half and half >= first else 0
    score = points[number - 1].score if number else initial
    turn_x = x(turn) if number else _LEFT
    stride = -(-len(points) // TABLE_ROWS)
    return QualityGraph(
        early_path=f"{line(_LEFT, initial, points[:number])}H{turn_x:.1f}",
        path=line(turn_x, score, points[number:]),
        rates=_daily_rates(points, x),
        end_y=_y(points[-1].score),
        y_ticks=[Tick(_y(part / 4), f"{25 * part}{PER_CENT}") for part in range(5)],
        x_ticks=_time_ticks(first, end),
        table=list(points[::-1][::stride]),
    )


def _y(score: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * score, 1)


def _daily_rates(points: Sequence[Point], x: Callable[[datetime], float]) -> list[Dot]:
    """Return a dot for each day with votes: the share of them that passed, at the last of them."""
    dots, votes, passes = [], 0, 0
    for _, of_day in groupby(points, lambda point: point.at.date()):
        *_, last = of_day
        rate = (last.passes - passes) / (last.votes - votes)
        dots.append(Dot(round(x(last.at), 1), _y(rate)))
        votes, passes = last.votes, last.passes
    return dots


def _time_ticks(first: datetime, end: datetime) -> list[Tick]:
    """Return the first and the last moment and some between, as exact as they are apart.

    Examples
    --------
    >>> from datetime import UTC
    >>> noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    >>> [tick.label for tick in _time_ticks(noon, noon + timedelta(days=30))]
    ['21 Nov', '01 Dec', '11 Dec', '21 Dec']
    >>> [tick.label for tick in _time_ticks(noon, noon)]
    ['21 Nov 12:00']
    """
    span = end - first
    form = "%d %b %H:%M" if span < timedelta(days=4) else "%d %b"
    if span > timedelta(days=700):
        form = "%b %Y"
    elif timedelta(0) < span < timedelta(minutes=10):
        form = "%H:%M:%S"
    if not span:
        return [Tick(_RIGHT, end.strftime(form), "end")]
    anchors = ["start", *["middle"] * (_X_TICKS - 2), "end"]
    return [
        Tick(round(_LEFT + _WIDTH * share, 1), (first + span * share).strftime(form), anchor)
        for number, anchor in enumerate(anchors)
        for share in [number / (_X_TICKS - 1)]
    ]


# --- votes alone ----------------------------------------------------------------------------------

_VOTES_LEFT, _VOTES_TOP, _VOTES_WIDTH, _VOTES_BOTTOM = 40, 14, 420, 130
_FORMS: Final = {"hour": "%d %b %H:%M", "day": "%d %b", "week": "%d %b", "month": "%b %Y"}


class DayColumn(NamedTuple):
    x: float
    y: float
    height: float
    label: str
    votes: int


@dataclass(frozen=True)
class VotesGraph(PlacedGraph):
    columns: list[DayColumn]
    x_ticks: list[Tick]
    most: int
    column_width: float
    plot_left: int = _VOTES_LEFT
    plot_right: int = _VOTES_LEFT + _VOTES_WIDTH
    plot_width: int = _VOTES_WIDTH
    plot_top: int = _VOTES_TOP
    plot_bottom: int = _VOTES_BOTTOM
    height: int = _VOTES_BOTTOM + 24
    width: int = _VOTES_LEFT + _VOTES_WIDTH + 8


def votes_graph(votes: Sequence[tuple[datetime, int]], unit: str) -> VotesGraph | None:
    """Lay out how many votes came in each stretch of time; None where there is none.

    `votes` are the beginnings of stretches (each an hour, day, week or month, as `unit` says) with
    their votes, oldest first; a stretch without votes may be left out, and its place stays empty.

    Examples
    --------
    >>> from datetime import UTC
    >>> days = [(datetime(2026, 11, day, tzinfo=UTC), votes) for day, votes in ((1, 5), (4, 10))]
    >>> [(column.label, column.x, column.height) for column in votes_graph(days, "day").columns]
    [('01 Nov', 40.0, 58.0), ('04 Nov', 355.0, 116.0)]
    """
    if not votes:
        return None
    first = _place(votes[0][0], unit)
    places = [_place(begins, unit) - first for begins, _ in votes]
    width = _VOTES_WIDTH / max(4, places[-1] + 1)
    most = max(number for _, number in votes)
    columns = []
    for place, (begins, number) in zip(places, votes, strict=True):
        height = round((_VOTES_BOTTOM - _VOTES_TOP) * number / most, 1)
        label = begins.strftime(_FORMS[unit])
        columns.append(
            DayColumn(
                round(_VOTES_LEFT + place * width, 1), _VOTES_BOTTOM - height, height, label, number
            )
        )
    ends = [Tick(columns[0].x, columns[0].label, "start")]
    if len(columns) > 1:
        ends.append(Tick(round(columns[-1].x + width, 1), columns[-1].label, "end"))
    return VotesGraph(columns, ends, most, round(max(1.0, min(width - 1, 40.0)), 1))


def _place(begins: datetime, unit: str) -> int:
    if unit == "month":
        return 12 * begins.year + begins.month
    hours = int(begins.timestamp()) // 3600
    return hours // {"hour": 1, "day": 24, "week": 168}[unit]
