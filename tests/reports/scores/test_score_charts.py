"""Charts of score files: what is on them, their names and style; nothing leaves the folder."""

import doctest
import io
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from PIL import Image

from humanjudge.core.charts.graphs import Curve, IntervalRow, Level
from humanjudge.core.charts.labels import SHARE, Axis
from humanjudge.core.charts.matplot import pictures
from humanjudge.core.charts.score_charts import Versus, bars, grouped, lines
from humanjudge.core.charts.style import ALLOWED, StyleRefused, settings_of
from judge_eval.stats import (
    AltTestScorer,
    ClassificationScorer,
    CohenKappaScorer,
    Estimate,
    MetricConfig,
    Scorer,
    TextSimilarityScorer,
    among_people,
    score,
)
from reports.scores.files import write_charts
from reports.scores.table import ScoreResults

pytestmark = pytest.mark.slow

# --- of figures -----------------------------------------------------------------------------------

DOCS = Path(__file__).parents[3] / "docs" / "charts.md"
HOSTILE = [
    "</text><script>alert(1)</script>",
    "&lt;b&gt; ]]> <!-- <![CDATA[",
    r"$\frac{1}{2}$ and $x^2$",
    r"\input{/etc/passwd}",
    "\ud800 lone \x00 null \x0b tab\t\nline \u202egnp.exe",
    "评判模型",
    "🦩 flamingo \U0001f9ff",
    "",
    "x" * 5000,
    *(f"a judge {n}" for n in range(12)),
]


def charts(names):
    rows = [
        IntervalRow(name, 0.3 + n / 100, (0.2, 0.6), is_baseline=n % 3 == 0)
        for n, name in enumerate(names)
    ]
    people = Level(names[0], 0.8, (0.7, 0.9))
    title, axis = f"t {names[0]}", Axis(names[0], ".0%", 0, 1)
    curves = [Curve(name, [(0.0, 0.1), (0.1, 0.9)]) for name in names]
    versus = [Versus(name, name, 0.5, 0.6) for name in names]
    return {
        "bars": bars(rows, title=title, axis=axis, reference=people),
        "lines": lines(curves, title=title, x=axis, y=axis, threshold=people),
        "grouped": grouped(versus, title=title, axis=axis),
    }


KINDS = ["bars", "grouped", "lines"]
PLAIN = charts(["gpt", "claude", "mistralai/mistral-large-2411-instruct-v3"])


def texts(chart):
    root = ElementTree.fromstring(pictures(chart, ["svg"])["svg"])
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_input_gives_the_same_bytes_and_each_theme_its_own(kind):
    first, again = (pictures(PLAIN[kind], ["png", "svg"]) for _ in range(2))
    assert first == again
    assert b"Date" not in first["png"]
    assert b"date" not in first["svg"]
    dark = pictures(PLAIN[kind], ["png"], theme="dark")["png"]
    for png, paper in ((first["png"], (255, 255, 255)), (dark, (0x16, 0x16, 0x15))):
        with Image.open(io.BytesIO(png)) as picture:
            assert picture.convert("RGB").getpixel((0, 0)) == paper
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 20


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_are_text_and_nothing_else(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = pictures(charts(HOSTILE)[kind], ["png", "svg"])
    root = ElementTree.fromstring(drawn["svg"])
    assert not [each for each in root.iter() if each.tag.endswith(("}script", "}image"))]
    written = "".join(root.itertext())
    assert r"$\frac{1}{2}$" in written, "it is no formula"
    assert not set(written) & set("\ud800\x00\x0b\u202e")
    with Image.open(io.BytesIO(drawn["png"])) as picture:
        assert picture.width <= 1600


def test_letters_come_from_the_shipped_fonts():
    first, second = (charts([name])["bars"] for name in ("评判", "模型"))
    assert pictures(first, ["png"]) != pictures(second, ["png"]), "boxes would be the same"


def test_the_best_judge_stands_first_and_one_without_a_figure_last():
    rows = [IntervalRow("low", 0.25), IntervalRow("none", None, (0.1, 0.2))]
    rows += [IntervalRow("high", 0.75), IntervalRow("longer wins", 0.5, is_baseline=True)]
    chart = bars(rows, title="t", axis=SHARE, reference=Level("people", 0.81, (0.7, 0.9)))
    page = texts(chart)
    assert "no figure" in page
    assert "longer wins · baseline   50\xa0%" in page
    assert "people 81\xa0%" in page
    names = [text.split()[0] for text in page if text.startswith(("low", "none", "high"))]
    assert names == ["high", "low", "none"]
    assert chart.words == (
        "t. Best first: high 75\xa0%, longer wins (baseline) 50\xa0%, low 25\xa0%, "
        "none no figure; people 81\xa0%. Lines are 95 % intervals."
    )


def test_lines_name_every_judge_and_one_without_points():
    curves = [Curve("a", [(0.0, None)]), Curve("b", [(0.0, 0.0), (0.3, 1.0)])]
    about = {"x": Axis("epsilon"), "y": SHARE, "threshold": Level("passes from 0.5", 0.5)}
    chart = lines(curves, title="t", **about)
    assert {"a · no figure", "b", "passes from 0.5"} <= set(texts(chart))
    assert "a no figure; b from 0\xa0% at 0.00 to 100\xa0% at 0.30" in chart.words


def test_judges_stand_against_each_person_and_against_very_many_with_their_mean():
    rows = [Versus("gpt", "ann", 0.8, 0.7), Versus("rule", "ann", None, None, True)]
    page = texts(grouped(rows, title="t", axis=SHARE))
    assert {"gpt", "ann   80\xa0%  70\xa0%", "rule · baseline", "no figure"} <= set(page)
    many = [Versus("gpt", f"person {n}", n % 2, 1 - n % 2) for n in range(200)]
    chart = grouped(many, title="t", axis=SHARE)
    assert chart.height < 200
    assert {"t, means over people", "gpt   50\xa0%  50\xa0%"} <= set(texts(chart))


def test_nothing_to_draw_is_no_chart():
    assert bars([], title="t", axis=SHARE) is None
    assert lines([], title="t", x=Axis(), y=SHARE, threshold=Level("", 0.5)) is None
    assert grouped([], title="t", axis=SHARE) is None


def test_the_examples_of_the_documentation_run():
    results = doctest.testfile(str(DOCS), module_relative=False)
    assert results.attempted > 8
    assert results.failed == 0


# --- styles ---------------------------------------------------------------------------------------


STYLES = [
    ('axes.facecolor: "#ff0000"  # red', "#ff0000"),
    ("axes.facecolor: 00ff00\n\n# a comment\nfont.size: 14", "#00ff00"),
    ("axes.prop_cycle: cycler('color', ['123456', 'k'])", "#123456"),
    ({"axes.prop_cycle": ["#123456"]}, "#123456"),
    ({"font.family": "serif", "font.serif": ["Liberation Serif"]}, "Liberation Serif"),
    ({"figure.figsize": [3, 2]}, 'width="216pt"'),
    ("lines.linewidth: 7\naxes.spines.left: True", "stroke-width: 0.8"),
]


def test_a_style_restyles_and_leaves_nothing_behind(plain):
    settings = dict(mpl.rcParams)
    for style, seen in STYLES:
        assert seen in pictures(PLAIN["bars"], ["svg"], style)["svg"].decode(), style
        assert dict(mpl.rcParams) == settings, style
    assert pictures(PLAIN["bars"], ["svg"]) == plain


@pytest.fixture(scope="module")
def plain():
    return pictures(PLAIN["bars"], ["svg"])


SHEETS = sorted(Path(mpl.get_data_path(), "stylelib").glob("[!_]*.mplstyle"))
# Two that are refused; one that is dark, one that names fonts, one with the most keys of all.
ALWAYS = ("classic", "fast", "dark_background", "fivethirtyeight", "Solarize_Light2")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in ALWAYS else pytest.mark.thorough)
        for path in SHEETS
    ],
)
def test_style_sheets_as_people_have_them_apply(plain, path):
    sheet = path.read_text()
    if path.stem in ("classic", "fast"):  # they set how much is computed, and more
        with pytest.raises(StyleRefused, match="this key cannot be set"):
            settings_of(sheet)
    else:
        assert pictures(PLAIN["bars"], ["svg"], sheet) != plain


HARMFUL = re.compile(
    "backend|hooks|usetex|latex|_path|_args|writer|directory|format|texsystem|preamble|distiller|"
    "hashsalt|parse_math|use_mathtext|webagg|keymap|toolbar|path[.]|agg[.]|interactive|timezone|bbox"
)


def test_no_key_that_does_more_than_look_can_be_set():
    for key in mpl.rcParams:
        if HARMFUL.search(key) or not key.startswith(ALLOWED):
            with pytest.raises(StyleRefused, match=re.escape(f"line 2: {key}: this key cannot be")):
                settings_of(f"\n{key}: 1")


DEEP: list[object] = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "style, why",
    [
        ("lines.linewidth: 1e9", "line 1: lines.linewidth: numbers must be"),
        ("font.size: inf", "numbers must be"),
        ("font.size: nan", "numbers must be"),
        ("lines.dashed_pattern: 1e-6, 1e-6", "numbers must be"),
        ({"font.size": 10**400}, "numbers must be"),
        ({"figure.figsize": [2000, 2000]}, "at most 12,000,000 pixels"),
        ("savefig.dpi: 2000", "at most 12,000,000 pixels"),
        ("font.size: banana", "line 1: font.size: "),
        ("axes.nothing: 1", "line 1: axes.nothing: Matplotlib has no such key"),
        ("axes.prop_cycle: __import__('os').abort()", "must be cycler"),
        ("axes.prop_cycle: cycler('color', 'k' * 10**10)", "must be cycler"),
        ("axes.prop_cycle: cycler('lw', [1])", "must be cycler"),
        ("axes.facecolor: no colour", "line 1: axes.facecolor: "),
        ("font.family: a\x07b", "a character that cannot be shown"),
        ("just words", "line 1: must be a key, a colon and a value"),
        ({"axes.facecolor": {"a": 1}}, "must be text, a number"),
        ({"axes.prop_cycle": DEEP}, "must be text, a number"),
        ("# " + "x" * 60_000, "at most 50,000 characters"),
        ("figure.subplot.left: 0.9\nfigure.subplot.right: 0.2", "no chart can be drawn with it"),
    ],
)
def test_a_style_that_would_harm_is_refused_in_a_line(style, why):
    with pytest.raises(StyleRefused, match=re.escape(why)) as refused:
        pictures(PLAIN["bars"], ["png"], style)
    assert "\n" not in str(refused.value)


# --- of results -----------------------------------------------------------------------------------

ITEMS = [f"q{n}" for n in range(60)]


def said(shift):
    winner = {item: "AB"[(n // 2 + (n % 7 == shift)) % 2] for n, item in enumerate(ITEMS)}
    return {
        "winner": winner,
        "better": dict(winner),
        "why": {item: f"{label} is longer" for item, label in winner.items()},
    }


PEOPLE = {"ann": said(1), "ben": said(2), "cy": said(3)}
JUDGES = {"gpt <b>": said(1), "longer wins": said(4), "silent": {"winner": {}}}


class Counting(Scorer):
    """A scorer of one's own, with any figures."""

    def __init__(self, name, **figures):
        super().__init__(name)
        self.figures, self.figure_names = figures, tuple(figures)

    def can_score_task(self, sample_label):
        return True

    def compute_score(self, judge_data, human_data, task_name, judge_id, aggregation_mode):
        figures = {name: Estimate(value, n=1) for name, value in self.figures.items()}
        return self.result(judge_id, task_name, aggregation_mode, figures)


def report_of(configs, judges, among=(), baselines=()):
    results = score(configs, judges, PEOPLE)
    return ScoreResults(None, judges, configs, results, dict(among), frozenset(baselines))


def written(out, configs, style="", **people):
    drawings = write_charts(report_of(configs, JUDGES, **people), out, style)
    paths = [path for path in out.rglob("*") if path.is_file()]
    assert len(paths) == 2 * len(drawings)
    return sorted({path.stem for path in paths})


def text_of_chart(out, name):
    [path] = out.rglob(f"{name}.svg")
    return path.read_text()


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder with a chart of each name that is known, drawn in our style, and the names."""
    folder = tmp_path_factory.mktemp("drawn")
    configs = [
        MetricConfig(ClassificationScorer(), ["winner"]),
        MetricConfig(ClassificationScorer("f1", pos_label="A"), ["winner"]),
        MetricConfig(CohenKappaScorer(), ["winner"]),
        MetricConfig(AltTestScorer(), ["winner"]),
        MetricConfig(TextSimilarityScorer(), ["why"]),
        MetricConfig(Counting("more_as", more_as=3.4), ["winner"]),
    ]
    return folder, written(folder, configs)


def test_charts_have_the_names_that_are_known(drawn):
    folder, names = drawn
    assert names == [
        "accuracy_scores",
        "aggregate_advantage_probabilities",
        "aggregate_human_vs_llm_advantage",
        "aggregate_winning_rates",
        "cohens_kappa_scores",
        "f1_scores",
        "more_as_scores",
        "text_similarity_scores",
    ]
    for path in folder.rglob("*.png"):
        with Image.open(path) as picture:
            assert picture.width > 400, path.name
    drawing = text_of_chart(folder, "accuracy_scores")
    assert "gpt &lt;b&gt;" in drawing
    assert ">silent<" in drawing
    assert "no figure" in drawing
    assert "var(" not in drawing, "a file is shown outside our pages"


def test_a_chart_lies_in_the_folder_of_its_metric(tmp_path):
    configs = [
        MetricConfig(ClassificationScorer(), ["winner"]),
        MetricConfig(ClassificationScorer(), ["better"], display_name="Better"),
    ]
    assert written(tmp_path, configs) == ["accuracy_scores"]
    folders = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")}
    assert folders == {f"classification_accuracy/{config.unique_name}" for config in configs}


def test_a_chart_overwrites_neither_another_nor_what_the_scorer_drew(tmp_path):
    configs = [
        MetricConfig(Counting("m", one=1.0), ["winner"], display_name="x_scores"),
        MetricConfig(Counting("M", one=1.0), ["winner"], display_name="y"),
        MetricConfig(Counting("m_scores_x", one=1.0), ["winner"], display_name="z"),
        MetricConfig(Counting("two", one=1.0, other=2.0), ["winner"], display_name="w"),
    ]
    mine = tmp_path / "m" / "x_scores" / "m_scores.png"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    write_charts(report_of(configs, JUDGES), tmp_path)
    assert mine.read_bytes() == b"mine"
    drawn = {path.relative_to(tmp_path).as_posix().casefold() for path in tmp_path.rglob("*.svg")}
    assert drawn == {
        "m/x_scores/m_scores-2.svg",
        "m/y/m_scores.svg",
        "m_scores_x/z/m_scores_x_scores.svg",
        "two/w/two_one_scores.svg",
        "two/w/two_other_scores.svg",
    }


def test_no_name_leaves_the_folder(tmp_path):
    names = ["../../evil", "/etc/evil", "a/b", "..", "", "x" * 5000, "a\x00b"]
    scorer = Counting("counting", **dict.fromkeys([*names, "other"], 1.0))
    config = MetricConfig(scorer, ["winner"], display_name="mine")
    assert len(written(tmp_path / "in", [config])) == len(names) + 1
    folder = tmp_path / "in" / "counting" / "mine"
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {folder}


def test_people_and_baselines_are_on_the_chart(tmp_path):
    config = MetricConfig(ClassificationScorer(), ["winner"])
    people = {config.unique_name: among_people(config, PEOPLE)}
    written(tmp_path, [config], among=people, baselines=["longer wins"])
    drawing = text_of_chart(tmp_path, "accuracy_scores")
    value = people[config.unique_name].figures["accuracy"].value
    assert f"people among themselves {value:.2f}" in drawing
    assert "longer wins · baseline" in drawing


def test_the_alt_test_names_every_person_and_the_line_to_pass(tmp_path):
    written(tmp_path, [MetricConfig(AltTestScorer(), ["winner", "better"], "multitask")])
    against = text_of_chart(tmp_path, "aggregate_human_vs_llm_advantage")
    assert "ann, winner" in against
    assert "cy, better" in against
    rates = text_of_chart(tmp_path, "aggregate_winning_rates")
    assert "passes from 0.5" in rates
    assert "silent · no figure" in rates


def test_a_style_restyles_every_chart(drawn, tmp_path):
    folder, _ = drawn
    configs = [
        MetricConfig(ClassificationScorer(), ["winner"]),
        MetricConfig(AltTestScorer(), ["winner"]),
    ]
    names = written(tmp_path, configs, style="figure.facecolor: fedcba")
    restyled = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(restyled) == 2 * len(names) == 8
    for theirs in restyled:
        ours = folder / theirs.relative_to(tmp_path)
        assert ours.read_bytes() != theirs.read_bytes(), ours.name
        if ours.suffix == ".svg":
            assert "#fedcba" in theirs.read_text()


def test_figures_of_any_size_have_an_axis(tmp_path):
    configs = [MetricConfig(Counting("n", n=-12345.6), ["winner"])]
    written(tmp_path, configs)
    drawing = text_of_chart(tmp_path, "n_scores")
    assert "\N{MINUS SIGN}12,346" in drawing
    assert not re.search(r"NaN|undefined", drawing)


def test_without_judges_there_is_no_chart(tmp_path):
    config = MetricConfig(ClassificationScorer(), ["winner"])
    assert write_charts(report_of([config], {}), tmp_path) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
