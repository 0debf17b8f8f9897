"""Charts of results: their names, what is on them, and nothing outside the folder."""

import re

import pytest
from PIL import Image

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
from reports.report.score_files import write_charts
from reports.report.score_table import ScoreResults

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


def test_charts_have_the_names_that_are_known(tmp_path):
    configs = [
        MetricConfig(ClassificationScorer(), ["winner"]),
        MetricConfig(ClassificationScorer("f1", pos_label="A"), ["winner"]),
        MetricConfig(CohenKappaScorer(), ["winner"]),
        MetricConfig(AltTestScorer(), ["winner"]),
        MetricConfig(TextSimilarityScorer(), ["why"]),
        MetricConfig(Counting("more_as", more_as=3.4), ["winner"]),
    ]
    assert written(tmp_path / "new" / "charts", configs) == [
        "accuracy_scores",
        "aggregate_advantage_probabilities",
        "aggregate_human_vs_llm_advantage",
        "aggregate_winning_rates",
        "cohens_kappa_scores",
        "f1_scores",
        "more_as_scores",
        "text_similarity_scores",
    ]
    for path in tmp_path.rglob("*.png"):
        with Image.open(path) as picture:
            assert picture.width > 400, path.name
    drawing = (tmp_path / "new" / "charts" / "accuracy_scores.svg").read_text()
    assert "gpt &lt;b&gt;" in drawing
    assert ">silent<" in drawing
    assert "no figure" in drawing
    assert "var(" not in drawing, "a file is shown outside our pages"


def test_metrics_that_share_a_name_have_their_unique_names_in_it(tmp_path):
    configs = [
        MetricConfig(ClassificationScorer(), ["winner"]),
        MetricConfig(ClassificationScorer(), ["better"], display_name="Better"),
        MetricConfig(CohenKappaScorer(), ["winner"]),
    ]
    own = f"accuracy_scores_{configs[0].unique_name}"
    assert {*written(tmp_path, configs)} == {own, "accuracy_scores_Better", "cohens_kappa_scores"}


def test_no_chart_overwrites_another_whatever_scorers_are_called(tmp_path):
    configs = [
        MetricConfig(Counting("m", one=1.0), ["winner"], display_name="x_scores"),
        MetricConfig(Counting("M", one=1.0), ["winner"], display_name="y"),
        MetricConfig(Counting("m_scores_x", one=1.0), ["winner"], display_name="z"),
        MetricConfig(Counting("two", one=1.0, other=2.0), ["winner"], display_name="w"),
    ]
    names = written(tmp_path, configs)
    assert len({name.casefold() for name in names}) == 5
    assert {"two_one_scores", "two_other_scores"} <= set(names)


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "a/b", "..", "", "x" * 5000, "a\x00b"])
def test_no_name_leaves_the_folder(tmp_path, name):
    out = tmp_path / "in" / "charts"
    configs = [MetricConfig(Counting(name, one=1.0), ["winner"], display_name="mine")]
    assert len(written(out, configs)) == 1
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {out}


def test_people_and_baselines_are_on_the_chart(tmp_path):
    config = MetricConfig(ClassificationScorer(), ["winner"])
    people = {config.unique_name: among_people(config, PEOPLE)}
    written(tmp_path, [config], among=people, baselines=["longer wins"])
    drawing = (tmp_path / "accuracy_scores.svg").read_text()
    value = people[config.unique_name].figures["accuracy"].value
    assert f"people among themselves {value:.2f}" in drawing
    assert "longer wins · baseline" in drawing


def test_the_alt_test_names_every_person_and_the_line_to_pass(tmp_path):
    written(tmp_path, [MetricConfig(AltTestScorer(), ["winner", "better"], "multitask")])
    against = (tmp_path / "aggregate_human_vs_llm_advantage.svg").read_text()
    assert "ann, winner" in against
    assert "cy, better" in against
    rates = (tmp_path / "aggregate_winning_rates.svg").read_text()
    assert "passes from 0.5" in rates
    assert "silent · no figure" in rates


def test_a_style_restyles_every_chart(tmp_path):
    configs = [
        MetricConfig(ClassificationScorer(), ["winner"]),
        MetricConfig(AltTestScorer(), ["winner"]),
    ]
    written(tmp_path / "ours", configs)
    written(tmp_path / "theirs", configs, style="figure.facecolor: fedcba")
    for ours in (tmp_path / "ours").iterdir():
        theirs = tmp_path / "theirs" / ours.name
        assert ours.read_bytes() != theirs.read_bytes(), ours.name
        if ours.suffix == ".svg":
            assert "#fedcba" in theirs.read_text()


def test_figures_of_any_size_have_an_axis(tmp_path):
    configs = [MetricConfig(Counting("n", n=-12345.6), ["winner"])]
    written(tmp_path, configs)
    drawing = (tmp_path / "n_scores.svg").read_text()
    assert "\N{MINUS SIGN}12,346" in drawing
    assert not re.search(r"NaN|undefined", drawing)


def test_without_judges_there_is_no_chart(tmp_path):
    config = MetricConfig(ClassificationScorer(), ["winner"])
    assert write_charts(report_of([config], {}), tmp_path) == []
    assert list(tmp_path.iterdir()) == []
