"""The chart of a quality score: level until the next vote, with every vote beneath it."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from humanjudge.charts.time_graph import COLUMNS, TABLE_ROWS, Point, quality_graph

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def points(*rows):
    """Return points given as (seconds, score, votes, passes)."""
    return [
        Point(NOON + timedelta(seconds=at), score, 0.1, votes, passes)
        for at, score, votes, passes in rows
    ]


def test_without_votes_there_is_nothing_to_draw():
    assert quality_graph(0.5, []) is None


def test_the_line_begins_at_the_initial_score_and_is_level_until_the_next_vote():
    graph = quality_graph(0.5, points((0, 1.0, 1, 1), (50, 0.0, 2, 1), (100, 0.5, 3, 2)))
    assert graph.path == "M44 112.0H44.0V12.0H364.0V212.0H684.0V112.0"
    assert graph.end_y == 112.0


def test_every_vote_stands_beneath_passes_below_flags():
    graph = quality_graph(0.5, points((0, 1, 1, 1), (1, 1, 2, 1), (100, 1, 6, 4)))
    bars = [(bar.style, bar.height) for bar in graph.bars]
    # Two votes of one time, four of another: the fullest column is as high as there is room.
    assert bars == [("passed", 11.0), ("flagged", 11.0), ("passed", 33.0), ("flagged", 11.0)]
    assert graph.bars[1].y + graph.bars[1].height == graph.bars[0].y
    assert max(bar.x + graph.bar_width for bar in graph.bars) <= graph.plot_right


def test_votes_of_one_time_are_drawn_as_well():
    graph = quality_graph(0.5, points((0, 0.6, 1, 1), (0, 0.5, 2, 1)))
    assert re.findall("H([0-9.]+)V", graph.path) == ["684.0", "684.0"]
    assert len(graph.bars) == 2
    assert len(graph.x_ticks) == 1


@pytest.mark.parametrize(
    "seconds, label",
    [
        (300, "12:05:00"),
        (3600, "21 Nov 13:00"),
        (30 * 86_400, "21 Dec"),
        (1000 * 86_400, "Aug 2029"),
    ],
)
def test_times_are_as_exact_as_they_are_apart(seconds, label):
    graph = quality_graph(0.5, points((0, 1, 1, 1), (seconds, 1, 2, 2)))
    assert graph.x_ticks[-1].label == label


def test_the_table_is_short_and_begins_with_the_newest():
    many = points(*((n, 0.5, n + 1, 0) for n in range(200)))
    graph = quality_graph(0.5, many)
    assert len(graph.table) <= TABLE_ROWS
    assert graph.table[0] == many[-1]
    assert len(graph.bars) == COLUMNS
