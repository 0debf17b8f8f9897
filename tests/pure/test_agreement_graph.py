"""The picture of a board: everything lies inside, and words below the axis do not touch."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.charts.agreement_graph import JudgeShare, Level, agreement_graph

shares = st.floats(0, 1)
ends = st.none() | st.tuples(shares, shares).map(lambda pair: tuple(sorted(pair)))
judges = st.lists(
    st.builds(JudgeShare, st.text(min_size=1, max_size=60), shares, ends, ends, st.booleans()),
    min_size=1,
    max_size=20,
)
levels = st.none() | st.builds(Level, st.text(min_size=1, max_size=60), shares, ends)


@given(judges, levels, levels, st.booleans())
def test_everything_lies_inside(rows, people, floor, is_narrow):
    graph = agreement_graph(rows, people, floor, is_narrow=is_narrow)
    for row in graph.rows:
        for x in (row.x, *(row.thick or ()), *(row.thin or ())):
            assert graph.left <= x <= graph.right
        assert graph.top < row.y < graph.bottom
        assert 0 < row.percent.x < graph.width
    for band in graph.bands:
        assert graph.left <= band.low <= band.low + band.width <= graph.right + 0.2
        assert band.swatch_x >= 0
        assert graph.bottom < band.label.y < graph.height
    assert all(tick.y < graph.height for tick in graph.ticks)
    assert [row.y for row in graph.rows] == sorted(row.y for row in graph.rows)
    assert len(graph.rows) == len(rows)


@pytest.mark.parametrize("is_narrow", [False, True])
def test_words_of_levels_that_lie_close_stand_below_each_other(is_narrow):
    judge = JudgeShare("a judge", 0.6, (0.5, 0.7), (0.4, 0.8), True)
    floor, people = Level("floor: longer-wins", 0.5, None), Level("people", 0.55, (0.5, 0.6))
    close = agreement_graph([judge], people, floor, is_narrow=is_narrow).bands
    assert all(above.label.y < below.label.y for above, below in pairwise(close))
    far = agreement_graph([judge], people._replace(value=0.95), floor._replace(value=0.1))
    assert len({band.label.y for band in far.bands}) == 1


def test_what_is_said_to_those_who_cannot_see_it():
    rows = [
        JudgeShare("good", 0.82, None, None, True),
        JudgeShare("mute", 0, None, None, False, "no verdict"),
    ]
    graph = agreement_graph(rows, Level("people among themselves", 0.8, None))
    assert graph.words == (
        "Overall agreement with people, best first: good 82 %, mute 0 %, no verdict; "
        "people among themselves 80 %"
    )
    assert agreement_graph([]) is None
