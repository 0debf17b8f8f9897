"""All figures in one table: columns, the best values, and texts that somebody else may read."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.core.text import fixed
from judge_eval.stats import (
    AltTestScorer,
    AltTestSettings,
    ClassificationScorer,
    Estimate,
    KrippendorffAlphaScorer,
    MetricConfig,
    Scorer,
    among_people,
    score,
)
from reports.report.model import PEOPLE as AMONG
from reports.scores.table import ScoreResults, best_of, figure_cell, span_of, table_csv, table_text


class Given(Scorer):
    """Figures that the test gives, by judge."""

    def __init__(self, figures, best=None):
        super().__init__("given")
        self.figures = figures
        if best is not None:
            self.best = best

    def can_score_task(self, sample_label):
        return True

    def compute_score(self, judge_data, human_data, task_name, judge_id, aggregation_mode):
        about = judge_id, task_name, aggregation_mode
        figures = self.figures[judge_id]
        if figures is None:
            return self.no_result(*about, "there is nothing")
        return self.result(*about, {name: Estimate(v, n=1) for name, v in figures.items()})


PEOPLE = {"ann": {"winner": {"q": "A"}}}


def tabulate(configs, results, judges, among=None, baselines=()):
    ids = dict.fromkeys(judges, "")
    return ScoreResults(None, ids, configs, results, among or {}, baselines).table


def table_of(scorer, judges):
    config = MetricConfig(scorer, ["winner"], display_name="it")
    said = {judge: {"winner": {"q": "A"}} for judge in judges}
    return tabulate([config], score([config], said, PEOPLE), judges)


def rows_of(table, judges):
    return list(csv.reader(io.StringIO(table_csv(table, judges))))


def row_of(table, judge):
    return next(row for row in table.judges if row.judge_id == judge)


@pytest.mark.parametrize(
    "best, marked",
    [(None, "b"), ("highest", "b"), ("lowest", "a"), ("nearest_zero", "c"), ("none", "")],
)
def test_a_scorer_says_which_value_is_the_best(best, marked):
    figures = {"a": {"x": -3.0}, "b": {"x": 2.0}, "c": {"x": -0.5}, "d": None}
    table = table_of(Given(figures, best), list(figures))
    assert "".join(row.judge_id for row in table.judges if row.figures[0].is_best) == marked


def test_values_that_are_the_same_share_the_mark_unless_all_are():
    same = {"a": {"x": 0.3}, "b": {"x": 0.1 + 0.2}}
    table = table_of(Given(same | {"c": {"x": 0.0}}), ["a", "b", "c"])
    assert [row_of(table, judge).figures[0].is_best for judge in "abc"] == [True, True, False]
    table = table_of(Given(same | {"c": None}), ["a", "b", "c"])
    assert [row_of(table, judge).figures[0].is_best for judge in "abc"] == [False, False, False]


def test_several_figures_of_a_scorer_are_columns_of_their_own():
    figures = {"a": None, "b": {"x": 1.0, "y": 2.0}}
    table = table_of(Given(figures), ["a", "b"])
    assert rows_of(table, "ab") == [["judge_id", "it", "it_y"], ["a", "", ""], ["b", "1.0", "2.0"]]
    assert row_of(table, "a").figures[1].reason == "there is nothing"
    of_alt_test = ["judge_id", "it_winning_rate", "it_advantage_prob"]
    assert rows_of(table_of(AltTestScorer(), ["a"]), "a") == [of_alt_test, ["a", "", ""]]


def test_what_is_no_matter_of_judges_marks_nobody_and_is_told_once():
    config = MetricConfig(KrippendorffAlphaScorer(), ["winner"])
    people = {name: {"winner": {"q1": "A", "q2": "B"}} for name in ("ann", "ben")}
    judges = {"a": {"winner": {"q1": "A", "q2": "B"}}, "failed": {"winner": {"q1": None}}}
    among = {config.unique_name: among_people(config, people)}
    table = tabulate([config], score([config], judges, people), list(judges), among)
    assert not any(row.figures[0].is_best for row in table.judges)
    figures = config.scorer.figure_names
    assert [best_of(config.scorer, figure) for figure in figures] == [None, "highest"]
    lines = table_text(table).splitlines()
    name = config.unique_name
    assert [line.split()[0] for line in lines[:3]] == ["judge_id", "a", "failed"]
    of_people = f"{AMONG}: 1.000 n=4  Krippendorff's alpha, winner: {name}"
    assert [line for line in lines if "Krippendorff's alpha, winner" in line] == [of_people]
    assert "1.000 n=6" in lines[1]
    assert rows_of(table, judges) == [
        ["judge_id", name, f"{name}_with_judge"],
        ["a", "1.0", "1.0"],
        ["failed", "", ""],
    ]
    assert table.of_people == [True, False]


def test_the_best_stands_first_and_people_and_baselines_are_marked():
    config = MetricConfig(ClassificationScorer(), ["winner"])
    people = {name: {"winner": dict.fromkeys("abcd", "A")} for name in ("ann", "ben")}
    judges = {
        "silent": {},
        "rule": {"winner": dict.fromkeys("abcd", "B")},
        "good": {"winner": dict.fromkeys("abcd", "A")},
    }
    among = {config.unique_name: among_people(config, people)}
    table = tabulate([config], score([config], judges, people), list(judges), among, ["rule"])
    assert [row.judge_id for row in table.judges] == ["good", "rule", "silent"]
    in_csv = [row[0] for row in rows_of(table, judges)]
    assert in_csv == ["judge_id", *judges], "it keeps its order"
    shown = table_text(table).splitlines()
    names = ["good", "rule (baseline)", "silent", AMONG]
    assert [line.split("  ")[0] for line in shown[1:5]] == names
    assert shown[4].split()[3] == "1.000"
    assert shown[5] == f"(1) Accuracy, winner: {config.unique_name}"
    data = table.model_dump()
    assert [row["is_baseline"] for row in data["judges"]] == [False, True, False]
    assert data["people"][0]["value"] == 1.0


def test_the_alt_test_says_who_passes_and_at_which_epsilon():
    items = [f"q{n}" for n in range(40)]
    people = {name: {"winner": dict.fromkeys(items, "A")} for name in ("ann", "ben", "cem")}
    judges = {who: {"winner": dict.fromkeys(items, said)} for who, said in (("a", "A"), ("b", "B"))}
    config = MetricConfig(AltTestScorer(AltTestSettings(epsilon=0.12)), ["winner"])
    table = tabulate([config], score([config], judges, people), list(judges))
    assert table.titles[0] == "Alt-Test at 0.12, winner"
    assert [row.figures[0].said for row in table.judges] == ["passes", "fails"]
    assert [row.figures[1].said for row in table.judges] == ["", ""]
    assert "1.000 passes n=" in table_text(table)


FORMULAS = [
    *("=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "\uff1d1", " =1", "\xa0 @x", "\ufeff=1"),
    '=cmd|"/C calc"!A0',
]


@pytest.mark.parametrize("name", FORMULAS)
def test_no_name_is_a_formula(name):
    table = table_of(Given({name: {"x": -1.0}}), [name])
    assert rows_of(table, [name])[1:] == [[f"'{name}", "-1.0"]]


def test_no_name_speaks_to_the_terminal():
    name = "\x1b[2J\x1b]0;owned\x07gpt\r\nnobody"
    figures = {name: {"x": 1.0}, "b": {"x": 0.0}}
    lines = table_text(table_of(Given(figures), list(figures))).splitlines()
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


def test_the_text_holds_intervals_n_the_best_and_the_names():
    config = MetricConfig(ClassificationScorer(), ["winner"], display_name="accuracy of winner")
    people = {"ann": {"winner": dict.fromkeys("abcd", "A")}}
    judges = {
        "good": {"winner": dict.fromkeys("abcd", "A")},
        "bad": {"winner": {"a": "A", "b": "B", "c": "B", "d": "B"}},
        "silent": {},
    }
    table = tabulate([config], score([config], judges, people), list(judges))
    assert table_text(table).splitlines() == [
        "judge_id  (1)",
        "good      1.000 [0.51, 1.00] n=4 *",
        "bad       0.250 [0.05, 0.70] n=4",
        "silent    \u2013",
        "(1) accuracy of winner",
    ]


def test_no_figure_is_minus_zero():
    table = table_of(Given({"a": {"x": -0.0004}, "b": {"x": -1e-17}, "c": {"x": -0.6}}), "abc")
    found = {name: figure_cell(*scores).main for name, _, scores in table.rows}
    assert found == {"a": "0.000", "b": "0.000", "c": "-0.600"}
    assert "-0.000" not in table_text(table)
    narrow = Estimate(0.0, -0.0004, 0.0, 9)
    assert span_of(narrow) == "0.000 to 0.000"


@given(st.floats(-1e5, 1e5), st.integers(0, 4))
def test_only_what_is_below_zero_as_written_has_a_sign(value, decimals):
    written = fixed(value, decimals)
    assert written.startswith("-") is (float(written) < 0)
    assert float(written) == round(value, decimals)
