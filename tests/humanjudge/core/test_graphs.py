"""Charts of judges: everything lies inside, and no words cover others."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.core.charts.graphs import (
    LABEL_GAP,
    LEADING,
    LEAST_HEIGHT,
    MOST_EQUAL,
    Curve,
    IntervalRow,
    Level,
    interval_graph,
    line_graph,
)
from humanjudge.core.charts.graphs import rating_graph as draw
from humanjudge.core.charts.labels import RATING, SHARE, Axis
from humanjudge.core.charts.plot import lay_out_plot


def intervals(rows, levels=(), **options):
    title = "Overall agreement with people"
    return interval_graph(rows, list(levels), title=title, **options)


shares = st.floats(0, 1)
ends = st.none() | st.tuples(shares, shares).map(lambda pair: tuple(sorted(pair)))
names = st.text(min_size=1, max_size=60)
levels = st.none() | st.builds(Level, names, shares, ends)
judges = st.lists(
    st.builds(IntervalRow, names, shares, ends, ends, st.booleans(), second_level=levels),
    min_size=1,
    max_size=20,
)


@given(judges, levels, levels)
def test_everything_lies_inside(rows, people, floor):
    graph = intervals(rows, filter(None, [people, floor]))
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


def test_words_of_levels_that_lie_close_stand_below_each_other():
    judge = IntervalRow("a judge", 0.6, (0.5, 0.7), (0.4, 0.8), True)
    floor, people = Level("floor: longer-wins", 0.5, None), Level("people", 0.55, (0.5, 0.6))
    close = intervals([judge], [people, floor]).bands
    assert all(above.label.y < below.label.y for above, below in pairwise(close))
    far = intervals([judge], [people._replace(value=0.95), floor._replace(value=0.1)])
    assert len({band.label.y for band in far.bands}) == 1


def test_what_is_said_to_those_who_cannot_see_it():
    rows = [
        IntervalRow("good", 0.82, None, None, True),
        IntervalRow("mute", 0, None, None, False, "no verdict"),
    ]
    graph = intervals(rows, [Level("people among themselves", 0.8)])
    assert graph.words == (
        "Overall agreement with people, best first: good 82\xa0%, mute 0\xa0%, no verdict; "
        "people among themselves 80\xa0%"
    )
    assert intervals([]) is None


def test_ratings_have_an_axis_as_long_as_they_go_and_what_is_missing_is_no_zero():
    rows = [IntervalRow("a", 1034.2, (990.0, 1080.0)), IntervalRow("b", None)]
    graph = intervals(rows, [Level("start", 1000)], axis=RATING)
    assert [row.value.text for row in graph.rows] == ["1,034", "no figure"]
    assert graph.rows[1].x is None
    assert "0" not in [tick.text for tick in graph.ticks]
    assert graph.bands[0].label.text == "start 1,000"


# --- lines ---------------------------------------------------------------------------------------

ratings = st.floats(-500, 3000)
series = st.integers(1, 30).flatmap(
    lambda judges: st.lists(
        st.lists(ratings, min_size=judges, max_size=judges), min_size=1, max_size=12
    )
)


def drawn(rows):
    names = [f"judge {n}" for n in range(len(rows[0]))]
    return draw(names, [(votes, row) for votes, row in enumerate(rows, start=1)])


def points_of(line):
    return [tuple(map(float, point.split(","))) for point in line.points.split()]


@given(series)
def test_every_point_tick_and_label_is_inside(rows):
    graph = drawn(rows)
    for line in graph.lines:
        for x, y in points_of(line):
            assert graph.plot_left <= x <= graph.plot_right < graph.width
            assert 0 <= y <= graph.plot_bottom < graph.height
        assert 0 <= line.label_y <= graph.plot_bottom
    assert all(0 <= tick.position <= graph.plot_bottom for tick in graph.y_ticks)
    assert all(graph.plot_left <= tick.position <= graph.plot_right for tick in graph.x_ticks)
    assert 0 <= graph.rule.position <= graph.plot_bottom
    assert graph.height >= LEAST_HEIGHT


@given(series)
def test_labels_stand_apart_in_the_order_of_the_lines(rows):
    lines = sorted(drawn(rows).lines, key=lambda line: line.label_y)
    assert all(
        below.label_y - above.label_y >= LABEL_GAP - 1e-9 for above, below in pairwise(lines)
    )
    assert [line.end_y for line in lines] == sorted(line.end_y for line in lines)


def test_every_line_starts_at_1000_and_ends_at_its_rating():
    graph = draw(["up", "down"], [(1, [1016.0, 984.0]), (2, [1030.0, 970.0])])
    up, down = graph.lines
    assert points_of(up)[0] == points_of(down)[0] == (graph.plot_left, graph.rule.position)
    assert up.value == "1,030"
    assert points_of(up)[-1] == (graph.plot_right, up.end_y)
    assert up.end_y < graph.rule.position < down.end_y
    assert len(points_of(up)) == 3


def test_a_judge_that_joined_later_stood_at_1000_before():
    graph = draw(["old", "new"], [(1, [1016.0]), (2, [1016.0, 984.0])])
    assert [y for _, y in points_of(graph.lines[1])][:2] == [graph.rule.position] * 2


@pytest.mark.parametrize("names, rows", [(["a"], []), ([], [(1, [])])])
def test_nothing_to_draw(names, rows):
    assert draw(names, rows) is None


def test_ticks_are_round_and_votes_are_spoken():
    graph = draw(["a"], [(1200, [1500.0])])
    assert {int(tick.label.replace(",", "")) % 100 for tick in graph.y_ticks} == {0}
    assert [tick.label for tick in graph.x_ticks] == ["0", "1,200 votes"]
    assert draw(["a"], [(1, [1016.0])]).x_ticks[-1].label == "1 vote"


@given(series)
def test_on_a_page_ticks_lie_in_per_cent_of_the_plot_and_names_are_short(rows):
    graph = drawn(rows)
    assert [x for x, _ in graph.places] == [0, 100]
    assert all(len(line.short) <= 14 for line in graph.lines)
    assert graph.names_width + graph.label_x == graph.width


def test_equal_ratings_still_have_room():
    assert draw(["a", "b"], [(1, [1000.0, 1000.0])]).rule.position > 0


def test_labels_leave_out_what_all_names_begin_with_and_the_middle_of_long_ones():
    names = [
        "open/v1/judge",
        "open/a-judge-with-a-name-that-goes-on-and-on-until-version-7",
        "random",
    ]
    first, long, last = (line.label for line in draw(names, [(1, [1000.0] * 3)]).lines)
    assert (first, last) == ("v1/judge", "random")
    assert long.startswith("a-judge-with")
    assert long.endswith("version-7")


@pytest.mark.parametrize("name", ["j", "judge-of-drawings", "JUDGE-OF-DRAWINGS", "\u5bb6" * 20])
def test_there_is_room_for_the_longest_label_and_its_rating(name):
    short, long = (draw([it], [(1, [1000.0])]) for it in ("j", name))
    room = long.width - long.label_x
    # Letters are 12 units high, and few but the Chinese ones wider than two thirds of that.
    wide = sum(12 if letter > "\u2000" else 8 if letter.isupper() else 6 for letter in name)
    assert room >= wide + 40
    assert long.width >= short.width


def test_of_many_lines_those_that_agree_most_stand_out_and_none_is_set_in_bold():
    names = [f"judge {n}" for n in range(MOST_EQUAL + 1)]
    order = [2, 0, 6, 1, 3, 4, 5]
    lines = draw(names, [(1, list(range(1000, 1007)))], order=order).lines
    assert {n for n, line in enumerate(lines) if "many" not in line.style} == set(order[:LEADING])
    few = draw(names[:-1], [(1, list(range(1000, 1006)))], [1], order).lines
    assert [line.style == "baseline" for line in few] == [n == 1 for n in range(6)]


def test_every_judge_has_a_colour_and_a_dash_of_its_own():
    lines = draw([f"judge {n}" for n in range(40)], [(1, [1000.0] * 40)]).lines
    assert len({line.style for line in lines}) == 40


def test_winning_rates_are_named_and_said_with_the_rule_to_pass():
    curves = [Curve("good", [(0.0, 0.0), (0.3, 1.0)]), Curve("rule", [(0.0, 0.2)], True)]
    about = {"title": "Rates", "x": Axis("epsilon"), "y": SHARE, "rule": Level("passes", 0.5)}
    graph = line_graph([*curves, Curve("silent", [])], **about)
    drawn_as = {line.label: line.style for line in graph.lines}
    assert drawn_as == {"good": "hue-0 dash-0", "rule": "baseline"}
    assert graph.rule.label == "passes"
    assert graph.words == "Rates: good from 0\xa0% to 100\xa0%; rule from 20\xa0% to 20\xa0%."
    assert [tick.label for tick in graph.x_ticks][::3] == ["0.00", "0.30"]
    assert line_graph([], **about) is None


# --- plots of a page -----------------------------------------------------------------------------


@given(judges, levels, levels)
def test_a_plot_lies_within_its_axis_at_any_width(rows, people, floor):
    plot = lay_out_plot(rows, [*filter(None, [people, floor])], title="Agreement")
    for row in plot.rows:
        for x in (row.x, *(row.thick or ()), *(row.thin or ()), getattr(row.second, "x", 0)):
            assert 0 <= x <= 100
    for band in plot.bands:
        assert 0 <= band.low <= band.low + band.width <= 100.01
        assert 0 <= band.label.x <= 100
    assert [tick.x for tick in plot.ticks] == sorted({tick.x for tick in plot.ticks})
    assert all(0 <= tick.x <= 100 for tick in plot.ticks)


def test_a_plot_begins_at_the_ten_below_the_floor_and_says_so():
    rows = [IntervalRow("good", 0.84, (0.82, 0.85), (0.81, 0.86))]
    people = Level("people among themselves", 0.96, None, "people")
    plot = lay_out_plot(rows, [people, Level("floor: coin", 0.48, (0.45, 0.52))], title="Agreement")
    assert [tick.text for tick in plot.ticks] == [*"40 50 60 70 80 90".split(), "100\xa0%"]
    assert plot.start == "The axis begins at 40\xa0%."
    assert [band.label.text for band in plot.bands] == ["floor 48\xa0%", "people 96\xa0%"]
    assert plot.rows[0].beside == "82\N{EN DASH}85"
    assert plot.lines == 1
    near = lay_out_plot(rows, [people, people._replace(value=0.93)], title="Agreement")
    assert near.lines == 2


def test_a_dumbbell_has_both_figures_on_one_axis_and_says_both():
    people = Level("people alone", 0.42)
    rows = [IntervalRow("gpt", 0.55, (0.5, 0.6), second_level=people), IntervalRow("o4", 0.6)]
    plot = lay_out_plot(rows, title="Corrected rate")
    # From 40 to 100 %: what people say is the lowest.
    assert [row.second and row.second.x for row in plot.rows] == [3.33, None]
    assert plot.words == (
        "Corrected rate, best first: gpt 55\xa0% 50\N{EN DASH}60 people alone 42\xa0%; o4 60\xa0%"
    )


def test_a_plot_of_ratings_and_of_nothing():
    rows = [IntervalRow("a", 1034.2, (990.0, 1080.0)), IntervalRow("b", None, note="no verdict")]
    start = Level("start", 1000, style="start")
    plot = lay_out_plot(rows, [start], title="Rating", axis=RATING)
    assert (
        plot.words
        == "Rating, best first: a 1,034 990\N{EN DASH}1,080; b no figure no verdict; start 1,000"
    )
    assert plot.rows[1].x is None
    assert not plot.start
    assert lay_out_plot([], title="Rating") is None
