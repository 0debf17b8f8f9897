"""What charts show: every judge once, best first, gaps as gaps, labels apart, numbers readable."""

import doctest
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from humanjudge.charts.draw import ACCENT, INK, PAPER, SOFT, THEMES, svg
from humanjudge.charts.plots import (
    FULLEST_CELL,
    Curve,
    Estimate,
    Versus,
    bars,
    grouped,
    intervals,
    lines,
)
from humanjudge.charts.spec import RATING, SCORE, SHARE, Axis, Reference

DOCS = Path(__file__).parents[2] / "docs" / "charts.md"
NAMESPACE = "{http://www.w3.org/2000/svg}"
SITE_CSS = Path(__file__).parents[2] / "static" / "css" / "site.css"
HALF = Reference(0.5, "half")
JUDGES = [Estimate("low", 0.25, 0.2, 0.3), Estimate("none", None), Estimate("high", 0.75, 0.7, 0.8)]


def drawn(spec):
    return ElementTree.fromstring(svg(spec))


def texts(spec):
    return ["".join(text.itertext()) for text in drawn(spec).iter(f"{NAMESPACE}text")]


def described(spec):
    return drawn(spec).find(f"{NAMESPACE}desc").text


@pytest.mark.parametrize("chart", [bars, intervals])
def test_the_best_judge_stands_first_and_one_without_a_figure_last(chart):
    shown = texts(chart(JUDGES, title="Agreement", axis=SHARE))
    names = [text for text in shown if text in ("low", "none", "high")]
    assert names == ["high", "low", "none"]


@pytest.mark.parametrize("chart", [bars, intervals])
def test_a_missing_figure_is_said_and_is_no_zero(chart):
    spec = chart([Estimate("a", None, 0.1, 0.2)], title="t", axis=Axis("", ".3f", 0, 1))
    shown = texts(spec)
    assert "no figure" in shown
    assert shown.count("0.000") == 1  # only on the axis
    assert "no figure" in described(spec)


@pytest.mark.parametrize("chart", [bars, intervals])
def test_a_baseline_has_a_word_and_a_paler_fill(chart):
    rows = [Estimate("longer wins", 0.5, is_baseline=True), Estimate("gpt", 0.5)]
    spec = chart(rows, title="t", axis=SHARE)
    assert "longer wins · baseline" in texts(spec)
    fills = [
        float(mark.get("fill-opacity"))
        for mark in drawn(spec).iter(f"{NAMESPACE}path")
        if mark.get("fill-opacity")
    ]
    assert fills[0] < fills[1] / 2


@pytest.mark.parametrize("chart", [bars, intervals])
def test_the_people_among_themselves_is_labelled_where_it_stands(chart):
    people = Reference(0.81, "people among themselves", 0.7, 0.9)
    spec = chart(JUDGES, title="t", axis=SHARE, reference=people)
    assert "people among themselves 81%" in texts(spec)
    assert "people among themselves 81%" in described(spec)


def test_bars_start_at_zero_and_ratings_need_not():
    rows = [Estimate("a", 1010.0, 990.0, 1030.0), Estimate("b", 995.0, 980.0, 1010.0)]
    assert "0" in texts(bars(rows, title="t", axis=RATING))
    assert "0" not in texts(intervals(rows, title="t", axis=RATING))


def test_a_bar_of_a_negative_figure_goes_the_other_way():
    spec = bars([Estimate("a", -0.2), Estimate("b", 0.4)], title="kappa", axis=SCORE)
    ends = [
        [float(x) for x in re.findall(r"M([\d.]+),[\d.]+h(-?[\d.]+)", mark.get("d"))[0]]
        for mark in drawn(spec).iter(f"{NAMESPACE}path")
        if mark.get("fill-opacity")
    ]
    (upper, wide), (lower, narrow) = ends
    assert lower + narrow == pytest.approx(upper), "both end at zero"
    assert wide == pytest.approx(2 * narrow)


@pytest.mark.parametrize("judges", [1, 20])
def test_one_judge_fits_and_so_do_twenty(judges):
    rows = [Estimate(f"judge-{n}", 0.5 + n / 50, 0.4, 0.95) for n in range(judges)]
    spec = bars(rows, title="t", axis=SHARE)
    root = drawn(spec)
    assert {f"judge-{n}" for n in range(judges)} <= set(texts(spec))
    assert float(root.get("width")) < 500
    assert root.get("class") == "plot"


def test_nothing_to_draw_is_no_chart():
    assert bars([], title="t", axis=SHARE) is None
    assert intervals([], title="t", axis=SHARE) is None
    assert lines([], title="t", x=Axis(), y=SHARE, threshold=HALF) is None
    assert grouped([], title="t", axis=SHARE) is None


def luminance(colour):
    short = colour.removeprefix("#")
    digits = "".join(2 * c for c in short) if len(short) == 3 else short
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def blended(over, below, opacity):
    def channel(colour, i):
        return int((2 * colour[1:] if len(colour) == 4 else colour[1:])[i : i + 2], 16)

    mixed = [
        round(opacity * channel(over, i) + (1 - opacity) * channel(below, i)) for i in (0, 2, 4)
    ]
    return "#" + "".join(f"{value:02x}" for value in mixed)


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_can_be_read_in_the_darkest_cell_and_small_text_on_paper(theme):
    colours = THEMES[theme]
    fullest = blended(colours[ACCENT], colours[PAPER], FULLEST_CELL)
    assert contrast(colours[INK], fullest) >= 4.5
    assert contrast(colours[SOFT], colours[PAPER]) >= 4.5


@pytest.mark.parametrize("theme, place", [("light", 0), ("dark", 1)])
def test_the_colours_are_those_of_the_pages(theme, place):
    css = SITE_CSS.read_text()
    for role, variable in THEMES["page"].items():
        name = re.match(r"var\((--[\w-]+)", variable)[1]
        colours = re.search(rf"{name}: light-dark\((#\w+), (#\w+)\);", css).groups()
        assert colours[place] == THEMES[theme][role], name


EPSILONS = [0.0, 0.1, 0.2, 0.3]


def winning(name, *rates, is_baseline=False):
    return Curve(name, list(zip(EPSILONS, rates, strict=True)), is_baseline)


def test_every_line_is_named_at_its_end_and_no_name_covers_another():
    curves = [winning(f"judge-{n}", 0.0, 0.5, 1.0, 1.0) for n in range(6)]
    spec = lines(curves, title="t", x=Axis("epsilon"), y=SHARE, threshold=HALF)
    places = {
        "".join(text.itertext()): [
            float(number) for number in re.findall(r"[-\d.]+", text.get("transform"))
        ]
        for text in drawn(spec).iter(f"{NAMESPACE}text")
    }
    downs = sorted(place[1] for name, place in places.items() if name.startswith("judge-"))
    assert len(downs) == 6
    assert all(below - above >= 12 for above, below in pairwise(downs))


def test_more_lines_than_the_eye_can_follow_are_a_table_the_best_first():
    curves = [winning(f"judge-{n}", 0.0, n / 20, n / 20, 1.0) for n in range(10)]
    curves += [winning("rule", 0.5, 0.0, 0.0, 0.0, is_baseline=True), Curve("silent", [])]
    passes = Reference(0.5, "passes from 0.5")
    spec = lines(curves, title="t", x=Axis("epsilon"), y=SHARE, threshold=passes)
    shown = texts(spec)
    names = [text for text in shown if text.startswith(("judge", "rule", "silent"))]
    assert names == [f"judge-{n}" for n in range(9, -1, -1)] + [
        "rule · baseline",
        "silent · no figure",
    ]
    assert {"0.00", "0.10", "0.20", "0.30"} <= set(shown)
    assert "across: epsilon; bold: passes from 0.5" in shown
    bold = [
        "".join(text.itertext())
        for text in drawn(spec).iter(f"{NAMESPACE}text")
        if text.get("font-weight") == "bold" and "".join(text.itertext()).endswith("%")
    ]
    assert sorted(bold) == ["100%"] * 10 + ["50%"]
    assert shown.count("\N{EN DASH}") == 4
    assert "judge-3 from 0% at 0.00 to 100% at 0.30" in described(spec)


def test_equal_lines_are_drawn_beside_each_other():
    curves = [winning(name, 0.0, 0.5, 1.0, 1.0) for name in ("a", "b", "c")]
    paths = [
        mark.get("d")
        for mark in drawn(lines(curves, title="t", x=Axis(), y=SHARE, threshold=HALF)).iter(
            f"{NAMESPACE}path"
        )
        if (mark.get("d") or "").count("L") == 3
    ]
    assert len(set(paths)) == 3


def test_a_line_without_points_is_named_as_having_no_figure():
    spec = lines(
        [winning("a", None, None, None, None), winning("b", 0.0, None, 0.5, 1.0)],
        title="t",
        x=Axis("epsilon"),
        y=SHARE,
        threshold=Reference(0.5, "passes from 0.5"),
    )
    assert "a · no figure" in texts(spec)
    assert "passes from 0.5" in texts(spec)
    assert "a no figure; b from 0% at 0.00 to 100% at 0.30" in described(spec)


def test_judges_are_shown_against_each_person():
    rows = [
        Versus("gpt", "ann", 0.8, 0.7),
        Versus("gpt", "ben", 0.6, 0.5),
        Versus("rule", "ann", None, None, is_baseline=True),
    ]
    shown = texts(grouped(rows, title="t", axis=SHARE))
    assert [text for text in shown if text in ("ann", "ben")] == ["ann", "ben", "ann"]
    assert {"gpt", "rule · baseline", "80%", "70%", "60%", "50%", "no figure"} <= set(shown)


def test_against_very_many_people_a_judge_is_shown_with_its_mean():
    rows = [Versus("gpt", f"person {n}", n % 2, 1 - n % 2) for n in range(200)]
    spec = grouped(rows, title="t", axis=SHARE)
    assert texts(spec).count("50%") == 2
    assert "means over people" in " ".join(texts(spec))
    assert float(drawn(spec).get("height")) < 200


def test_long_names_lose_their_middle_and_keep_it_in_a_tooltip():
    name = "organisation/a-very-long-model-name-2026-01-31-instruct"
    root = drawn(bars([Estimate(name, 0.5)], title="t", axis=SHARE))
    (text,) = [t for t in root.iter(f"{NAMESPACE}text") if "…" in "".join(t.itertext())]
    tooltip = text.find(f"{NAMESPACE}title")
    assert tooltip.text == name
    assert tooltip.tail.startswith("organisati")
    assert tooltip.tail.endswith("instruct")
    assert float(root.get("width")) < 610, "two of them stand beside each other on a page"


NAMES = [f"open/vendor/{name}" for name in ("gpt", "claude", "o4")]
SAME = [Curve(name, [(0.0, 0.5)], name.endswith("o4")) for name in [*NAMES, "rule"]]


@pytest.mark.parametrize(
    "spec",
    [
        bars(
            [Estimate(c.name, 0.5, None, None, c.is_baseline) for c in SAME], title="t", axis=SHARE
        ),
        grouped(
            [Versus(c.name, "ann", 0.5, 0.5, c.is_baseline) for c in SAME], title="t", axis=SHARE
        ),
        lines(SAME, title="t", x=Axis(), y=SHARE, threshold=HALF),
        lines(
            [*SAME, *(Curve(str(n), []) for n in range(9))],
            title="t",
            x=Axis(),
            y=SHARE,
            threshold=HALF,
        ),
    ],
    ids=["bars", "grouped", "lines", "many lines"],
)
def test_the_folder_that_all_names_share_is_left_to_the_tooltip(spec):
    tooltips = {title.text: title.tail for title in drawn(spec).iter(f"{NAMESPACE}title")}
    assert [tooltips[name] for name in NAMES] == ["gpt", "claude", "o4 · baseline"]
    assert "rule" in texts(spec)


def test_numbers_stand_beside_the_names_where_a_telephone_shows_them():
    rows = [Estimate("a judge of some length", 0.25, 0.1, 0.9), Estimate("b", 0.75)]
    versus = grouped([Versus("gpt", "ann", 0.25, 0.75)], title="t", axis=SHARE)
    for spec in (bars(rows, title="t", axis=SHARE), versus):
        places = {
            "".join(text.itertext()): float(re.findall(r"[-\d.]+", text.get("transform"))[0])
            for text in drawn(spec).iter(f"{NAMESPACE}text")
        }
        assert places["25%"] < places["0%"], "left of where the axis begins"
        assert places["75%"] < places["0%"]


def test_two_judges_of_one_name_are_two_rows():
    shown = texts(bars([Estimate("a", 0.2), Estimate("a", 0.4)], title="t", axis=SHARE))
    assert shown.count("a") == 2
    assert {"20%", "40%"} <= set(shown)


def test_the_example_of_the_documentation_runs():
    found = doctest.testfile(str(DOCS), module_relative=False)
    assert found.attempted > 2
    assert found.failed == 0
