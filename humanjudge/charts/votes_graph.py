"""Votes over time as coordinates of columns: a template draws them in a page's own colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from humanjudge.charts.line_graph import Tick

_LEFT, _TOP, _WIDTH = 40, 14, 420
_RIGHT: Final = _LEFT + _WIDTH
_BOTTOM: Final = 130
_FORMS: Final = {"hour": "%d %b %H:%M", "day": "%d %b", "week": "%d %b", "month": "%b %Y"}


class Column(NamedTuple):
    x: float
    y: float
    height: float
    label: str
    votes: int


@dataclass(frozen=True)
class VotesGraph:
    columns: list[Column]
    x_ticks: list[Tick]
    most: int
    column_width: float
    plot_left: int = _LEFT
    plot_right: int = _RIGHT
    plot_top: int = _TOP
    plot_bottom: int = _BOTTOM
    height: int = _BOTTOM + 24
    width: int = _RIGHT + 8


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
    width = _WIDTH / max(4, places[-1] + 1)
    most = max(number for _, number in votes)
    columns = []
    for place, (begins, number) in zip(places, votes, strict=True):
        height = round((_BOTTOM - _TOP) * number / most, 1)
        label = begins.strftime(_FORMS[unit])
        columns.append(
            Column(round(_LEFT + place * width, 1), _BOTTOM - height, height, label, number)
        )
    ends = [Tick(columns[0].x, columns[0].label)]
    if len(columns) > 1:
        ends.append(Tick(round(columns[-1].x + width, 1), columns[-1].label))
    return VotesGraph(columns, ends, most, round(max(1.0, min(width - 1, 40.0)), 1))


def _place(begins: datetime, unit: str) -> int:
    """Return the number of a stretch of time among all of its kind."""
    if unit == "month":
        return 12 * begins.year + begins.month
    hours = int(begins.timestamp()) // 3600
    return hours // {"hour": 1, "day": 24, "week": 168}[unit]
