"""The chart of a quality score: level until the next vote, with the pass rate of each day."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from humanjudge.core.charts.time_graph import TABLE_ROWS, Point, quality_graph

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
    assert graph.path == "M44.0 112.0H44.0V12.0H364.0V212.0H684.0V112.0"
    assert graph.end_y == 112.0
    places = [(at, tick.anchor) for at, tick in graph.places]
    assert places == [(0, "start"), (33.33, "middle"), (66.67, "middle"), (100, "end")]


def test_the_line_is_dotted_until_the_start_value_weighs_half():
    three = points((0, 1.0, 1, 1), (50, 0.0, 2, 1), (100, 0.5, 3, 2))
    graph = quality_graph(0.5, three, NOON + timedelta(seconds=75))
    assert graph.early_path == "M44.0 112.0H44.0V12.0H364.0V212.0H524.0"
    assert graph.path == "M524.0 212.0H684.0V112.0"
    # All of it, and nothing of it.
    late = quality_graph(0.5, three, NOON + timedelta(days=1))
    assert late.early_path == "M44.0 112.0H44.0V12.0H364.0V212.0H684.0V112.0H684.0"
    assert late.path == "M684.0 112.0"
    before = quality_graph(0.5, three, NOON - timedelta(days=1))
    assert before.early_path == "M44.0 112.0H44.0"
    assert before.path == quality_graph(0.5, three).path


def test_each_day_with_votes_has_a_dot_at_its_pass_rate():
    day = 86_400
    graph = quality_graph(0.5, points((0, 1, 1, 1), (1, 1, 2, 1), (4 * day, 1, 6, 5)))
    # One of two votes passed on the first day, all four on the last; between there were none.
    assert [dot.y for dot in graph.rates] == [112.0, 12.0]
    assert graph.rates[-1].x == graph.plot_right


def test_votes_of_one_time_are_drawn_as_well():
    graph = quality_graph(0.5, points((0, 0.6, 1, 1), (0, 0.5, 2, 1)))
    assert re.findall("H([0-9.]+)V", graph.path) == ["684.0", "684.0"]
    assert len(graph.rates) == 1
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
