"""Resamples of items, and the intervals made of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import (
    Estimate,
    LeftOut,
    Resampling,
    ScoreResult,
    classification,
    cohen_kappa,
    no_figure,
)
from judge_eval.stats.bootstrap import bootstrap_tail, draws, interval_of
from judge_eval.stats.estimate import wilson
from judge_eval.stats.pairs import mean_by_rater, mean_over_raters, paired
from judge_eval.stats.scoring import mean_of_tasks

counts = st.lists(st.integers(1, 40), min_size=1, max_size=12).map(lambda n: np.array(n, np.int64))


@given(counts, st.integers(0, 9))
def test_every_resample_has_as_many_items_as_there_are(items, seed):
    blocks = list(draws(items, np.random.default_rng(seed), 7))
    drawn = np.concatenate(blocks, axis=0)
    assert drawn.shape == (7, len(items))
    assert (drawn.sum(axis=1) == items.sum()).all()
    assert (drawn >= 0).all()


@pytest.mark.parametrize("items", [[500, 300, 200], [1] * 60])
def test_items_are_drawn_as_often_as_they_are(items):
    """Both ways of drawing, by pattern and by item: mean n p, variance n p (1 - p)."""
    items = np.array(items)
    drawn = np.concatenate(list(draws(items, np.random.default_rng(0), 4000)), axis=0)
    share = items / items.sum()
    assert drawn.mean(axis=0) == pytest.approx(items, rel=0.1, abs=0.1)
    assert drawn.var(axis=0) == pytest.approx(items.sum() * share * (1 - share), rel=0.2)


@given(counts, st.integers(1, 10**8))
def test_how_many_are_drawn_at_once_makes_no_difference(items, rows):
    together = np.concatenate(list(draws(items, np.random.default_rng(0), 30)), axis=0)
    in_blocks = np.concatenate(list(draws(items, np.random.default_rng(0), 30, rows)), axis=0)
    assert (together == in_blocks).all()


def test_resamples_without_a_value_are_left_out_and_counted():
    found = interval_of(np.array([0.0, 1.0, np.nan, np.nan]), 5, Resampling(4))
    [tail] = bootstrap_tail([5])
    assert (found.low, found.high) == pytest.approx((tail, 1 - tail))
    assert found.method.endswith("2 of them without a value")


@pytest.mark.parametrize("values", [[], [np.nan]])
def test_without_values_there_is_no_interval(values):
    found = interval_of(np.array(values), 0, Resampling())
    assert found == (None, None, "no interval: there is nothing to resample")


def test_at_least_one_resample():
    with pytest.raises(ValueError, match="at least one resample"):
        Resampling(0)


def test_a_mean_over_people_leaves_out_who_has_none():
    values = np.array([[1.0, np.nan, np.nan], [0.0, 0.5, np.nan]])
    assert mean_over_raters(values) == pytest.approx([0.5, 0.5, np.nan], nan_ok=True)


def test_the_interval_of_a_mean_is_close_to_the_normal_one():
    generator = np.random.default_rng(1)
    judge, values = dict.fromkeys(range(400), "x"), generator.random(400)
    pairs = paired(judge, {"ann": {item: str(item) for item in judge}})
    figure = mean_by_rater(pairs, values, Resampling()).figure
    half = 1.96 * values.std() / 20
    assert figure.interval == pytest.approx((values.mean() - half, values.mean() + half), abs=0.005)


# --- figures ------------------------------------------------------------------------------------


def test_a_figure_has_a_value_or_a_reason():
    with pytest.raises(ValueError, match="a value, or a reason"):
        Estimate(None, n=1)


def test_the_mean_of_tasks_leaves_out_those_without_a_figure():
    figure = mean_of_tasks(
        {
            "a": Estimate(0.5, 0.4, 0.6, 10, "Wilson"),
            "b": Estimate(0.7, 0.6, 0.9, 20, "Wilson"),
            "c": no_figure("nobody labelled it"),
        }
    )
    assert figure.value == pytest.approx(0.6)
    assert figure.n == 30
    assert figure.interval == pytest.approx((0.5, 0.75))
    assert figure.left_out == (LeftOut("tasks", 1, "nobody labelled it", ("c",)),)


def test_the_mean_of_no_task_has_a_reason():
    assert "no task has a figure" in mean_of_tasks({"a": no_figure("x")}).why


def test_the_mean_of_tasks_has_an_interval_where_all_of_them_have():
    figures = {"a": Estimate(0.5, 0.4, 0.6, 10, "Wilson"), "b": Estimate(1.0, n=3)}
    assert mean_of_tasks(figures).interval is None


def test_a_result_becomes_what_json_holds():
    import json

    rates = {"0.10": Estimate(0.5, n=30), "0.20": no_figure("why")}
    result = ScoreResult(
        scorer_name="alt_test",
        task_name="winner",
        judge_id="gpt",
        figures={"winning_rate": rates["0.10"], "advantage_probability": Estimate(0.25, n=30)},
        series={"winning_rate": rates},
        by_human={"ann": Estimate(0.25, n=30, left_out=(LeftOut("items", 1, "why", ("q1",)),))},
    )
    assert result.scores == {
        "winning_rate": {"0.10": 0.5, "0.20": None},
        "advantage_probability": 0.25,
    }
    written = json.loads(json.dumps(result.as_dict("2026-11-21T09:00:00Z"), allow_nan=False))
    assert written["timestamp"] == "2026-11-21T09:00:00Z"
    assert written["scores"] == result.scores
    assert written["counts"] == {"winning_rate": 30, "advantage_probability": 30}
    assert written["series"]["winning_rate"]["0.20"]["reason"] == "why"
    assert written["by_human"]["ann"]["left_out"][0]["names"] == ["q1"]


def test_a_rate_that_is_the_same_in_every_resample_is_still_not_certain():
    said = dict.fromkeys(range(20), "A")
    found = classification(said, dict.fromkeys(("ann", "ben", "cem"), said)).figure
    assert (found.value, found.n, found.interval) == (1, 60, wilson(20, 20))
    assert found.method == "Wilson score interval of 20 items, all alike"
    # Ben weighs as much as Ann in the mean, so two items of his make it little surer than four.
    few = classification(said, {"ann": said, "ben": {0: "A", 1: "A"}}).figure
    assert few.interval == wilson(7, 7)
    kappa = cohen_kappa(dict(enumerate("AB" * 9)), {"ann": dict(enumerate("AB" * 9))}).figure
    assert (kappa.value, kappa.interval) == (1, None)
