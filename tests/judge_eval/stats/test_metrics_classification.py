"""Accuracy, precision, recall and F1 against scikit-learn, and what they say at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import Resampling, classification
from judge_eval.stats.estimate import wilson
from tests.helpers import oracles

METRICS = ("precision", "recall", "f1")


def by_sklearn(metric):
    return getattr(oracles.metrics, f"{metric}_score")


FEW = Resampling(resamples=20)

words = st.sampled_from(["good", "ok", "bad"])
said_by = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[st.lists(words, min_size=n, max_size=n)] * 3)
)
vectors = st.integers(2, 4).flatmap(
    lambda n: st.lists(
        st.tuples(*[st.tuples(*[st.integers(0, 1)] * n)] * 2), min_size=1, max_size=8
    )
)


def against(judge, *humans, metric="accuracy", **options):
    options.setdefault("resampling", FEW)
    people = {f"h{number}": dict(enumerate(said)) for number, said in enumerate(humans)}
    return classification(dict(enumerate(judge)), people, metric, **options)


@given(said_by)
def test_accuracy_is_scikit_learn_s_of_each_person_and_then_the_mean(said):
    judge, *humans = said
    found = against(judge, *humans)
    expected = [oracles.metrics.accuracy_score(human, judge) for human in humans]
    assert [figure.value for figure in found.by_human.values()] == pytest.approx(expected)
    assert found.figure.value == pytest.approx(np.mean(expected))
    assert found.figure.n == 2 * len(judge)


@given(said_by, st.sampled_from(METRICS), st.sampled_from(["macro", "micro", "weighted"]))
def test_averages_over_classes_are_scikit_learn_s(said, metric, average):
    judge, *humans = said
    found = against(judge, *humans, metric=metric, average=average)
    expected = [
        by_sklearn(metric)(human, judge, average=average, zero_division=0) for human in humans
    ]
    assert found.figure.value == pytest.approx(np.mean(expected), abs=1e-12)


@given(vectors, st.sampled_from(METRICS), st.sampled_from(["macro", "micro", "samples"]))
def test_vectors_are_scikit_learn_s_multilabel_indicators(said, metric, average):
    judge, human = (list(side) for side in zip(*said, strict=True))
    found = against(judge, human, metric=metric, average=average).figure
    if not np.any(judge) and not np.any(human) and average == "micro":
        assert found.value == 0
        return
    expected = by_sklearn(metric)(
        np.array(human).reshape(len(said), -1),
        np.array(judge).reshape(len(said), -1),
        average=average,
        zero_division=0,
    )
    assert found.value == pytest.approx(expected, abs=1e-12)


@given(vectors)
def test_accuracy_of_vectors_is_exact_match(said):
    judge, human = (list(side) for side in zip(*said, strict=True))
    expected = np.mean([a == b for a, b in said])
    assert against(judge, human).figure.value == pytest.approx(expected)


def test_a_vector_of_one_position_is_one_class():
    assert against([[1], [0]], [[1], [1]], metric="f1", average="macro").figure.value == 2 / 3


def test_label_sets_have_no_order():
    judge, human = [["a", "b"], ["c", "FALSE"], ["a"]], [["b", "a"], ["c"], ["b"]]
    assert against(judge, human).figure.value == pytest.approx(2 / 3)
    assert against(judge, human, metric="f1", average="micro").figure.value == pytest.approx(3 / 4)


@given(said_by, st.sampled_from(["good", "bad"]))
def test_binary_figures_are_scikit_learn_s_where_they_exist(said, positive):
    judge, human = ([positive if word == positive else "ok" for word in side] for side in said[:2])
    for metric in METRICS:
        figure = against(judge, human, metric=metric, pos_label=positive).figure
        if figure.value is None:
            assert positive not in judge or positive not in human
        else:
            expected = by_sklearn(metric)(human, judge, pos_label=positive, zero_division=0)
            assert figure.value == pytest.approx(expected)


@pytest.mark.parametrize(
    "judge, human, metric, options, reason",
    [
        ("ab", "ab", "f1", {}, "neither the judge nor the person gave the label 1"),
        ("aa", "aa", "f1", {"pos_label": "b"}, "nor the person gave the label 'b'"),
        ("aa", "ab", "precision", {"pos_label": "b"}, "the judge never gave the label 'b'"),
        ("ab", "aa", "recall", {"pos_label": "b"}, "the person never gave the label 'b'"),
        ("abc", "abc", "f1", {"pos_label": "b"}, "takes two labels, and these are more: a, b, c"),
        ("ab", "ab", "f1", {"average": "samples"}, "samples takes label sets"),
        ([[1]], [[1]], "f1", {}, "need another average than binary"),
        ([[]], [["FALSE"]], "f1", {"average": "macro"}, "every label is empty"),
        ("", "", "accuracy", {}, "no item has a label both of the judge and of a person"),
        ("", "", "f1", {"average": "macro"}, "no item has a label both of the judge"),
    ],
)
def test_what_cannot_be_computed_is_null_with_a_reason(judge, human, metric, options, reason):
    figure = against(judge, human, metric=metric, **options).figure
    assert figure.value is None
    assert figure.interval is None
    assert reason in figure.why


def test_a_judge_that_never_says_the_positive_label_has_recall_and_f1_zero():
    for metric in ("recall", "f1"):
        assert against("aa", "ab", metric=metric, pos_label="b").figure.value == 0


def test_a_person_without_a_figure_is_left_out_of_the_mean_and_named():
    found = against("ab", "ab", "aa", metric="recall", pos_label="b")
    assert found.figure.value == 1
    assert found.figure.n == 2
    [gap] = found.figure.left_out
    assert (gap.what, gap.names) == ("humans", ("h1",))
    assert gap.why == "the person never gave the label 'b', so there is no recall"


def test_labels_may_be_truth_values_and_the_positive_one_is_true():
    assert against([True, False], [True, True], metric="f1").figure.value == pytest.approx(2 / 3)


def test_labels_of_mixed_types_are_compared_too():
    assert against(["4", 4, None], [4, 4, 4]).figure.value == 0.5


def test_people_with_fewer_items_count_as_much():
    people = {"ann": dict.fromkeys(range(9), "A"), "ben": {0: "B"}}
    found = classification(dict.fromkeys(range(9), "A"), people, resampling=FEW)
    assert found.figure.value == 0.5


@given(said_by)
def test_one_person_s_rates_have_wilson_s_interval(said):
    judge, human, _ = said
    figure = against(judge, human).figure
    right = sum(a == b for a, b in zip(judge, human, strict=True))
    assert figure.interval == wilson(right, len(judge))
    assert figure.method == "Wilson score interval"


def test_precision_and_recall_are_rates_among_positive_labels():
    judge, human = "bbba", "baab"
    precision = against(judge, human, metric="precision", pos_label="b").figure
    assert (precision.value, precision.interval) == (1 / 3, wilson(1, 3))
    recall = against(judge, human, metric="recall", pos_label="b").figure
    assert (recall.value, recall.interval) == (1 / 2, wilson(1, 2))


def test_the_mean_over_several_people_is_resampled_by_item():
    found = against("abab", "abba", "aabb")
    assert found.figure.method == "bootstrap over 4 items, 20 resamples, seed 0"
    assert found.by_human["h0"].method == "Wilson score interval"


@given(said_by, st.randoms(use_true_random=False), st.sampled_from(["accuracy", "f1"]))
def test_neither_order_of_items_nor_names_matter(said, random, metric):
    judge, *humans = said
    order = list(range(len(judge)))
    random.shuffle(order)
    shuffled = [[side[place] for place in order] for side in said]
    found = against(judge, *humans, metric=metric, average="macro")
    assert against(shuffled[0], *shuffled[1:], metric=metric, average="macro") == found


@given(said_by)
def test_relabelling_changes_nothing_but_the_labels(said):
    other = {"good": 3, "ok": 1, "bad": 2}
    renamed = [[other[word] for word in side] for side in said]
    for metric in ("accuracy", "f1"):
        one = against(*said, metric=metric, average="macro").figure
        two = against(*renamed, metric=metric, average="macro").figure
        assert one.value == pytest.approx(two.value)


@given(said_by)
def test_the_interval_is_that_of_a_plain_bootstrap(said):
    """Slow, and by another road: draw items, compute F1 of each person by scikit-learn, average."""
    judge, *humans = map(np.array, said)
    many = Resampling(resamples=2000, seed=1)
    figure = against(*said, metric="f1", average="macro", resampling=many).figure
    generator = np.random.default_rng(2)
    means = []
    for _ in range(300):
        drawn = generator.integers(0, len(judge), len(judge))
        means.append(np.mean([_f1_macro(human[drawn], judge[drawn]) for human in humans]))
    if figure.interval is None:
        assert np.ptp(means) < 1e-12
        return
    low, high = figure.interval
    assert np.mean(np.array(means) < low - 1e-9) < 0.08
    assert np.mean(np.array(means) > high + 1e-9) < 0.08


def _f1_macro(human, judge):
    shares = []
    for label in {*human, *judge}:
        both = np.sum((human == label) & (judge == label))
        shares.append(2 * both / (np.sum(human == label) + np.sum(judge == label)))
    return np.mean(shares)


@pytest.mark.parametrize("options", [{"metric": "bleu"}, {"metric": "f1", "average": "mean"}])
def test_an_unknown_metric_or_average_is_refused(options):
    with pytest.raises(ValueError, match="must be one of"):
        against("a", "a", **options)


# --- items without the judge's label ------------------------------------------------------------


def test_an_item_without_the_judge_s_label_is_dropped_or_wrong():
    judge = {"q1": "yes", "q2": None, "q3": "no"}
    people = {"ann": {"q1": "yes", "q2": "yes", "q3": "yes", "q4": "no"}}
    dropped = classification(judge, people).figure
    assert (dropped.value, dropped.n) == (0.5, 2)
    assert [(gap.count, gap.why) for gap in dropped.left_out] == [
        (2, "the judge gave that item no label")
    ]
    wrong = classification(judge, people, missing="wrong").figure
    assert (wrong.value, wrong.n, wrong.left_out) == (0.25, 4, ())


@pytest.mark.parametrize("average", ["binary", "macro", "micro", "weighted"])
@pytest.mark.parametrize("metric", ["precision", "recall", "f1"])
def test_a_missing_label_is_no_class_of_its_own(metric, average):
    judge = {1: "yes", 2: None, 3: "no", 4: "yes", 5: None}
    human = {1: "yes", 2: "yes", 3: "yes", 4: "no", 5: "no"}
    figure = classification(
        judge, {"ann": human}, metric, pos_label="yes", average=average, missing="wrong"
    ).figure
    expected = oracles.metrics.precision_recall_fscore_support(
        list(human.values()),
        [label or "nothing" for label in judge.values()],
        labels=["yes"] if average == "binary" else ["no", "yes"],
        average="macro" if average == "binary" else average,
        zero_division=0.0,
    )
    place = ["precision", "recall", "f1"].index(metric)
    assert figure.value == pytest.approx(expected[place])
    assert figure.interval is None or figure.interval[0] <= figure.value <= figure.interval[1]


def test_a_missing_label_set_is_wrong_even_where_the_person_says_nothing():
    judge = {1: ["a"], 2: None}
    people = {"ann": {1: ["a"], 2: ["FALSE"]}}
    assert classification(judge, people, missing="wrong").figure.value == 0.5
    f1 = classification(judge, people, "f1", average="macro", missing="wrong").figure
    assert f1.value == 1.0
