"""The picture of a board: everything lies inside, and words below the axis do not touch."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.charts.interval_graph import IntervalRow, Level, interval_graph
from humanjudge.charts.labels import RATING


def drawn(rows, levels=(), **options):
    title = "Overall agreement with people"
    return interval_graph(rows, list(levels), title=title, **options)


shares = st.floats(0, 1)
ends = st.none() | st.tuples(shares, shares).map(lambda pair: tuple(sorted(pair)))
judges = st.lists(
    st.builds(IntervalRow, st.text(min_size=1, max_size=60), shares, ends, ends, st.booleans()),
    min_size=1,
    max_size=20,
)
levels = st.none() | st.builds(Level, st.text(min_size=1, max_size=60), shares, ends)


@given(judges, levels, levels, st.booleans())
def test_everything_lies_inside(rows, people, floor, is_narrow):
    graph = drawn(rows, filter(None, [people, floor]), is_narrow=is_narrow)
    for row in graph.rows:
        for x in (row.x, *(row.thick or ()), *(row.thin or ())):
            assert graph.left <= x <= graph.right
        assert graph.top < row.y < graph.bottom
        assert 0 < row.value.x < graph.width
    for band in graph.bands:
        assert graph.left <= band.low <= band.low + band.width <= graph.right + 0.2
        assert band.label.x >= 16
        assert graph.bottom < band.label.y < graph.height
    assert all(tick.y < graph.height for tick in graph.ticks)
    assert [row.y for row in graph.rows] == sorted(row.y for row in graph.rows)
    assert len(graph.rows) == len(rows)


@pytest.mark.parametrize("is_narrow", [False, True])
def test_words_of_levels_that_lie_close_stand_below_each_other(is_narrow):
    judge = IntervalRow("a judge", 0.6, (0.5, 0.7), (0.4, 0.8), True)
    floor, people = Level("floor: longer-wins", 0.5, None), Level("people", 0.55, (0.5, 0.6))
    close = drawn([judge], [people, floor], is_narrow=is_narrow).bands
    assert all(above.label.y < below.label.y for above, below in pairwise(close))
    far = drawn([judge], [people._replace(value=0.95), floor._replace(value=0.1)])
    assert len({band.label.y for band in far.bands}) == 1


def test_what_is_said_to_those_who_cannot_see_it():
    rows = [
        IntervalRow("good", 0.82, None, None, True),
        IntervalRow("mute", 0, None, None, False, "no verdict"),
    ]
    graph = drawn(rows, [Level("people among themselves", 0.8)])
    assert graph.words == (
        "Overall agreement with people, best first: good 82\xa0%, mute 0\xa0%, no verdict; "
        "people among themselves 80\xa0%"
    )
    assert drawn([]) is None


def test_ratings_have_an_axis_as_long_as_they_go_and_what_is_missing_is_no_zero():
    rows = [IntervalRow("a", 1034.2, (990.0, 1080.0)), IntervalRow("b", None)]
    graph = drawn(rows, [Level("start", 1000)], axis=RATING)
    assert [row.value.text for row in graph.rows] == ["1,034", "no figure"]
    assert graph.rows[1].x is None
    assert "0" not in [tick.text for tick in graph.ticks]
    assert graph.bands[0].label.text == "start 1,000"
