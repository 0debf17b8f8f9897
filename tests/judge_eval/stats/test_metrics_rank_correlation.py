"""Spearman's rho and Kendall's tau against scipy, resampled by item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import Resampling, rank_correlation
from judge_eval.stats.labels import LabelsUnfit
from tests.helpers import oracles

FEW = Resampling(resamples=20)
SCIPY = {"spearman": "spearmanr", "kendall": "kendalltau"}
both_graded = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=25)


def by_scipy(coefficient, judge, human):
    return getattr(oracles.stats, SCIPY[coefficient])(judge, human).statistic


@pytest.mark.parametrize("coefficient", SCIPY)
@given(said=both_graded)
def test_a_coefficient_is_scipy_s(coefficient, said):
    judge, human = zip(*said, strict=True)
    people = {"ann": dict(enumerate(human))}
    found = rank_correlation(dict(enumerate(judge)), people, coefficient, resampling=FEW).figure
    if len(set(judge)) == 1 or len(set(human)) == 1:
        assert "so there is no order to compare" in found.why
    else:
        assert found.value == pytest.approx(by_scipy(coefficient, judge, human), abs=1e-12)


@pytest.mark.parametrize("coefficient", SCIPY)
def test_the_interval_is_of_resampled_items(coefficient):
    drawing = np.random.default_rng(2)
    judge, human = drawing.integers(1, 6, (2, 40))
    human = judge + human
    people = {"ann": dict(enumerate(human.tolist()))}
    settings = Resampling(resamples=2000)
    found = rank_correlation(
        dict(enumerate(judge.tolist())), people, coefficient, resampling=settings
    )
    picks = drawing.integers(0, 40, (1000, 40))
    resampled = [by_scipy(coefficient, judge[pick], human[pick]) for pick in picks]
    # The interval of forty items reaches a little further out than these quantiles.
    assert found.figure.interval == pytest.approx(np.quantile(resampled, (0.02, 0.98)), abs=0.04)
    assert found.figure.method.startswith("bootstrap over 40 items")


def test_the_mean_over_people_leaves_out_whom_it_cannot_compare():
    judge = {1: 1, 2: 2, 3: 3, 4: 4}
    people = {"ann": {1: 1, 2: 2, 3: 4, 4: 3}, "ben": {1: 5, 2: 5, 3: 5}, "cem": {1: 1, 2: 2}}
    found = rank_correlation(judge, people, resampling=FEW)
    assert found.figure.value == pytest.approx(0.8)
    assert found.by_human["cem"].why == "it takes 3 items that both graded, and there are 2"
    assert {gap.names for gap in found.figure.left_out} == {("ben",), ("cem",)}


def test_words_need_an_order_and_texts_of_numbers_do_not():
    words = {1: "bad", 2: "fair", 3: "good"}
    with pytest.raises(LabelsUnfit, match="is no number"):
        rank_correlation(words, {"ann": words}, resampling=FEW)
    order = ["bad", "fair", "good"]
    assert rank_correlation(words, {"ann": words}, order=order, resampling=FEW).figure.value == 1
    tens = {1: "9", 2: "10", 3: "11"}
    assert rank_correlation(tens, {"ann": {1: 1, 2: 2, 3: 3}}, resampling=FEW).figure.value == 1


def test_an_unknown_coefficient_is_an_error():
    with pytest.raises(ValueError, match="must be one of spearman, kendall"):
        rank_correlation({1: 1}, {"ann": {1: 1}}, "pearson")


def test_no_label_of_both():
    assert rank_correlation({1: 1}, {"ann": {2: 1}}).figure.value is None


def test_very_many_different_grades_have_a_tau_but_no_interval():
    grades = dict(enumerate(np.random.default_rng(1).random(2000).tolist()))
    found = rank_correlation(grades, {"ann": grades}, "kendall", resampling=FEW).figure
    assert (found.value, found.interval) == (1.0, None)
    assert found.method == "no interval: too many different grades to resample tau"
