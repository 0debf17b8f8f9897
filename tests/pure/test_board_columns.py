"""The board's columns: one declaration, and what files and terminals make of it."""

from pathlib import Path

import pytest

from judge_eval.findings.columns import (
    COLUMNS,
    FILE_COLUMNS,
    MAIN,
    file_row,
    people_file_row,
    terminal_row,
)
from judge_eval.findings.model import JudgeFindings

METHODS = Path(__file__).parents[2] / "templates" / "judge_eval" / "_board_method.html"


def share(value=None, *, low=None, high=None):
    return {
        "value": value,
        "low": low,
        "high": high,
        "successes": 0,
        "trials": 0,
        "comparisons": 0,
        "method": None,
        "why": None,
    }


def judge(name, rating, *, low=None, high=None, ranks=(None, None), agreement=None):
    of_rating = {"value": rating, "low": low, "high": high, "rank": ranks[0], "why": None}
    of_rating |= {"best_rank": ranks[0], "worst_rank": ranks[1], "comparisons": 9}
    names = ("beside_people", "per_answer", "consistency", "first_position")
    names += ("sensitivity", "specificity")
    costs = ("cost_usd", "seconds_per_verdict", "cost_per_verdict_usd", "cost_per_correct_usd")
    return JudgeFindings.model_validate(
        {
            "id": "1",
            "name": name,
            "is_baseline": False,
            "rating": of_rating,
            "ties": "ab",
            "always_low": 0.25,
            "always_high": 0.75,
            "two_way_low": None,
            "two_way_high": None,
            "rank_low": ranks[0],
            "rank_high": ranks[1],
            "beats_floor": True,
            "agreement": share(agreement, low=agreement, high=agreement),
            "overall": share(agreement, high=agreement),
            "coverage": share(None if agreement is None else 1.0),
            "order_luck": 3.0,
            **{name: share() for name in names},
            **dict.fromkeys((*costs, "cost_why")),
        }
    )


@pytest.mark.parametrize(
    "of, row",
    [
        (judge("never asked", None), ["-"] * 11),
        (
            judge("b", 980.4, low=960.5, high=1001, ranks=(2, 2), agreement=0.5),
            "50.0 - 50.0 50.0 50.0 50.0 100.0 980 960 1001 2".split(),
        ),
        (
            judge("a | a", 1020, ranks=(1, 2), agreement=0.6666),
            "66.7 - 66.7 66.7 66.7 66.7 100.0 1020 - - 1-2".split(),
        ),
    ],
)
def test_a_row_of_a_terminal(of, row):
    assert terminal_row(of) == [of.name, *row, "ab"]


def test_files_begin_with_overall_agreement_and_keep_their_columns():
    shares = [
        [name, f"{name}_low", f"{name}_high", f"{name}_successes", f"{name}_n"]
        for name in (
            *("overall_agreement", "agreement", "coverage", "consistency"),
            *("agreement_per_answer", "first_position", "sensitivity", "specificity"),
        )
    ]
    rating = ["", "_low", "_high", "_rank", "_best_rank", "_worst_rank"]
    assert list(FILE_COLUMNS) == [
        *("judge_id", "name", "kind"),
        *shares[0],
        *("rank_low", "rank_high", "beats_floor", "elo", "elo_order_luck"),
        *("cost_per_correct_usd", "seconds_per_verdict"),
        *("overall_agreement_always_low", "overall_agreement_always_high"),
        *("overall_agreement_two_way_low", "overall_agreement_two_way_high"),
        *(name for names in shares[1:6] for name in names),
        *(f"bradley_terry{part}" for part in rating),
        *("ties", "cost_per_verdict_usd"),
        *(name for names in shares[6:] for name in names),
    ]


def test_a_row_of_a_file_has_every_column_and_people_have_only_their_own():
    of = judge("a", 1020, agreement=0.5)
    row = file_row(of, 1016.0)
    assert tuple(row) == FILE_COLUMNS
    assert (row["elo"], row["elo_order_luck"], row["bradley_terry"]) == (1016.0, 3.0, 1020)
    people = people_file_row(of.agreement, of.overall)
    assert tuple(people) == FILE_COLUMNS
    figures = {name for name, value in people.items() if isinstance(value, float)}
    assert figures == {"agreement", "agreement_low", "agreement_high"} | {
        "first_position",
        "first_position_high",
    }


def test_no_two_columns_have_one_key_and_every_one_is_explained():
    assert len({column.figure for column in COLUMNS}) == len(COLUMNS)
    explained = METHODS.read_text("utf-8")
    assert all(f'<dt id="{column.anchor}">' in explained for column in COLUMNS)
    assert all(column.about.endswith(".") for column in COLUMNS)


def test_the_board_has_at_most_seven_columns():
    assert len(MAIN) + 1 <= 7
