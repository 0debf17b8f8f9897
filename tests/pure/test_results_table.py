"""All figures in one table: columns, the best values, and texts that somebody else may read."""

import csv
import io

import pytest

from judge_eval.metrics import (
    AltTestScorer,
    ClassificationScorer,
    Figure,
    KrippendorffAlphaScorer,
    MetricConfig,
    Scorer,
    score,
)
from reports.results.table import as_csv, as_text, tabulate


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
        return self.result(*about, {name: Figure(v, n=1) for name, v in figures.items()})


PEOPLE = {"ann": {"winner": {"q": "A"}}}


def table_of(scorer, judges):
    config = MetricConfig(scorer, ["winner"], display_name="it")
    said = {judge: {"winner": {"q": "A"}} for judge in judges}
    return tabulate([config], score([config], said, PEOPLE), judges)


def rows_of(table):
    return list(csv.reader(io.StringIO(as_csv(table))))


@pytest.mark.parametrize(
    "best, marked",
    [(None, "b"), ("highest", "b"), ("lowest", "a"), ("nearest_zero", "c"), ("none", "")],
)
def test_a_scorer_says_which_value_is_the_best(best, marked):
    figures = {"a": {"x": -3.0}, "b": {"x": 2.0}, "c": {"x": -0.5}, "d": None}
    table = table_of(Given(figures, best), list(figures))
    assert "".join(row.judge for row in table.rows if row.cells[0].is_best) == marked


def test_values_that_are_the_same_share_the_mark_unless_all_are():
    same = {"a": {"x": 0.3}, "b": {"x": 0.1 + 0.2}}
    table = table_of(Given(same | {"c": {"x": 0.0}}), ["a", "b", "c"])
    assert [row.cells[0].is_best for row in table.rows] == [True, True, False]
    table = table_of(Given(same | {"c": None}), ["a", "b", "c"])
    assert [row.cells[0].is_best for row in table.rows] == [False, False, False]


def test_several_figures_of_a_scorer_are_columns_of_their_own():
    figures = {"a": None, "b": {"x": 1.0, "y": 2.0}}
    table = table_of(Given(figures), ["a", "b"])
    assert rows_of(table) == [["judge_id", "it", "it_y"], ["a", "", ""], ["b", "1.0", "2.0"]]
    assert table.rows[0].cells[1].figure.reason == "there is nothing"


def test_the_alt_test_has_two_columns():
    table = table_of(AltTestScorer(), ["a"])
    assert rows_of(table) == [["judge_id", "it_winning_rate", "it_advantage_prob"], ["a", "", ""]]


def test_what_is_no_matter_of_judges_marks_nobody():
    config = MetricConfig(KrippendorffAlphaScorer(), ["winner"], display_name="it")
    people = {
        "ann": {"winner": {"q1": "A", "q2": "B"}},
        "ben": {"winner": {"q1": "A", "q2": "B"}},
    }
    judges = {name: {"winner": {"q1": "A"}} for name in ("a", "b")}
    table = tabulate([config], score([config], judges, people), list(judges))
    assert [row.cells[0].figure.value for row in table.rows] == [1.0, 1.0]
    assert not any(row.cells[0].is_best for row in table.rows)


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "\uff1d1", '=cmd|"/C calc"!A0']
)
def test_no_name_is_a_formula(name):
    table = table_of(Given({name: {"x": -1.0}}), [name])
    assert rows_of(table)[1:] == [[f"'{name}", "-1.0"]]


def test_no_name_speaks_to_the_terminal():
    name = "\x1b[2J\x1b]0;owned\x07gpt\r\nnobody"
    lines = as_text(table_of(Given({name: {"x": 1.0}, "b": {"x": 0.0}}), [name, "b"])).splitlines()
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
    assert as_text(table).splitlines() == [
        "judge_id  (1)",
        "good      1.000 [0.51, 1.00] n=4 *",
        "bad       0.250 [0.05, 0.70] n=4",
        "silent    \u2013",
        "(1) accuracy of winner",
    ]
