"""The board's columns: one declaration, and what files and terminals make of it."""

from pathlib import Path

import pytest

from humanjudge.core.tables import DASH
from judge_eval.board.columns import (
    COLUMNS,
    FILE_COLUMNS,
    MAIN_COLUMNS,
    elo_cell,
    file_row,
    people_file_row,
    terminal_row,
)
from judge_eval.board.model import JudgeFindings
from judge_eval.board.ranking import UNUSUAL, elo_of
from judge_eval.stats.bradley_terry import NO_GAMES
from judge_eval.stats.elo import ALONE, BASELINE
from judge_eval.stats.estimate import Rating, Share

METHODS = Path(__file__).parents[3] / "templates/judge_eval/board/_board_method.html"


def share(value=None, *, low=None, high=None):
    return Share(value, low, high, why=None if value is not None else "there is nothing to count")


def judge(name, rating, *, low=None, high=None, ranks=(None, None), agreement=None):
    best, worst = ranks
    why = None if rating is not None else NO_GAMES
    shares = ("beside_people", "per_answer", "consistency", "first_position")
    shares += ("sensitivity", "specificity")
    costs = ("cost_usd", "seconds_per_verdict", "cost_per_verdict_usd", "cost_per_correct_usd")
    return JudgeFindings(
        id="1",
        name=name,
        is_baseline=False,
        rating=Rating(rating, low, high, n=9, why=why, rank=best, best_rank=best, worst_rank=worst),
        ties="ab",
        always_low=0.25,
        always_high=0.75,
        two_way_low=None,
        two_way_high=None,
        rank_low=best,
        rank_high=worst,
        beats_floor=True,
        agreement=share(agreement, low=agreement, high=agreement),
        overall=share(agreement, high=agreement),
        coverage=share(None if agreement is None else 1.0),
        elo_other_orders_low=925.3,
        elo_other_orders_high=1130.4,
        is_of_file=False,
        **{each: share() for each in shares},
        **dict.fromkeys((*costs, "cost_why")),
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
        *("rank_low", "rank_high", "beats_floor", "elo"),
        *("elo_other_orders_low", "elo_other_orders_high", "elo_note"),
        *("cost_per_correct_usd", "seconds_per_verdict"),
        *(f"overall_agreement_always_{end}" for end in ("low", "high", "why")),
        *("overall_agreement_two_way_low", "overall_agreement_two_way_high"),
        *(name for names in shares[1:6] for name in names),
        *(f"bradley_terry{part}" for part in rating),
        *("ties", "cost_per_verdict_usd"),
        *(f"self_agreement{end}" for end in ("", "_low", "_high", "_successes", "_n")),
        *(name for names in shares[6:] for name in names),
        *(f"exact_agreement{end}" for end in ("", "_low", "_high", "_successes", "_n")),
        *("quadratic_kappa", "spearman", "kendall", "mean_difference"),
    ]


def test_a_row_of_a_file_has_every_column_and_people_have_only_their_own():
    of = judge("a", 1020, agreement=0.5)
    row = file_row(of, elo_of(1212.2, "", of))
    assert tuple(row) == FILE_COLUMNS
    assert (row["elo"], row["elo_note"], row["bradley_terry"]) == (1212.2, UNUSUAL, 1020)
    assert (row["elo_other_orders_low"], row["elo_other_orders_high"]) == (925.3, 1130.4)
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
    assert len(MAIN_COLUMNS) + 1 <= 7


@pytest.mark.parametrize(
    "elo, small, why",
    [
        (1000.0, "in other orders 925 to 1,130", ""),
        # As they are shown, 1,130 is not above 1,130.
        (1130.49, "in other orders 925 to 1,130", ""),
        (1212.2, "in other orders 925 to 1,130, unusual order", UNUSUAL),
        (900.0, "in other orders 925 to 1,130, unusual order", UNUSUAL),
    ],
)
def test_an_elo_has_its_range_in_other_orders_beside_it(elo, small, why):
    cell = elo_cell(elo_of(elo, "", judge("a", 1020)))
    assert (cell.main, cell.small) == (f"{elo:,.0f}", small)
    assert cell.reason.casefold() == (f"{why}." if why else "")


def test_an_unusual_order_of_a_file_shows_no_elo():
    cell = elo_cell(elo_of(1212.2, "", judge("a", 1020).model_copy(update={"is_of_file": True})))
    assert (cell.main, cell.reason) == (DASH, "Imported: the order means nothing.")


@pytest.mark.parametrize(
    "low, high, small",
    [(None, None, ""), (1015.6, 1016.4, "the same in other orders")],
    ids=["one order only", "any order"],
)
def test_an_elo_without_another_order_or_with_one_value_is_not_more_or_less(low, high, small):
    of = judge("a", 1020)
    of.elo_other_orders_low, of.elo_other_orders_high = low, high
    cell = elo_cell(elo_of(1016.0, "", of))
    assert (cell.main, cell.small, cell.reason) == ("1,016", small, "")


def test_where_there_is_no_elo_only_a_judge_that_is_alone_has_a_footnote():
    baseline, alone = (elo_cell(elo_of(1000.0, why, None)) for why in (BASELINE, ALONE))
    assert (baseline.main, baseline.reason) == ("", "")
    assert (alone.main, alone.reason) == (DASH, "There is no other judge to play against.")
