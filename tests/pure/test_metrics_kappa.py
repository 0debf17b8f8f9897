"""Cohen's kappa against scikit-learn, Krippendorff's alpha against its definition."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge_eval.metrics import Resampling, band, cohen_kappa, krippendorff_alpha, paired_people
from judge_eval.metrics.kappa import kappas

FEW = Resampling(resamples=20)

words = st.sampled_from(["A", "B", "tie"])
two_raters = st.lists(st.tuples(words, words), min_size=1, max_size=15)
tables = st.dictionaries(
    st.sampled_from(["ann", "ben", "cem", "dia"]),
    st.dictionaries(st.integers(0, 7), words, min_size=1),
    min_size=1,
)


def kappa_of(judge, *humans, resampling=FEW):
    people = {f"h{number}": dict(enumerate(said)) for number, said in enumerate(humans)}
    return cohen_kappa(dict(enumerate(judge)), people, resampling=resampling)


def alpha_by_definition(humans):
    """Compare every two labels of an item, and every two labels at all."""
    items = {}
    for said in humans.values():
        for item, label in said.items():
            items.setdefault(item, []).append(label)
    units = [labels for labels in items.values() if len(labels) > 1]
    every = [label for labels in units for label in labels]
    if len(set(every)) < 2:
        return None
    observed = sum(
        (a != b) / (len(labels) - 1) for labels in units for a, b in permutations(labels, 2)
    )
    expected = sum(a != b for a, b in permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected


# --- kappa --------------------------------------------------------------------------------------


@given(two_raters)
def test_kappa_is_scikit_learn_s(said):
    judge, human = zip(*said, strict=True)
    value = kappa_of(judge, human).figure.value
    if len(set(human)) == 1:
        assert value is None
    else:
        assert value == pytest.approx(cohen_kappa_score(judge, human), abs=1e-12)
        assert -1 <= value <= 1


@given(two_raters)
def test_kappa_is_symmetric_and_knows_no_names(said):
    judge, human = zip(*said, strict=True)
    if len(set(judge)) > 1 and len(set(human)) > 1:
        value = kappa_of(judge, human).figure.value
        assert kappa_of(human, judge).figure.value == pytest.approx(value)
        renamed = [{"A": 3, "B": 1, "tie": 2}[word] for word in judge]
        as_well = [{"A": 3, "B": 1, "tie": 2}[word] for word in human]
        assert kappa_of(renamed, as_well).figure.value == pytest.approx(value)


def test_a_person_with_one_label_is_null_and_does_not_poison_the_mean():
    found = kappa_of("AABB", "AABB", "AAAA")
    assert found.figure.value == 1
    assert found.by_human["h1"].value is None
    assert "the same label" in found.by_human["h1"].reason
    assert [(gap.what, gap.names) for gap in found.figure.left_out] == [("humans", ("h1",))]


def test_a_judge_with_one_label_agrees_as_by_chance():
    assert kappa_of("AAAA", "AABB").figure.value == 0


def test_without_anybody_else_the_reason_is_the_figure_s():
    assert "the same label" in kappa_of("AB", "AA").figure.reason
    assert kappa_of("", "").figure.reason.startswith("no item has a label both")


def test_between_people_both_must_vary():
    people = {"ann": dict(enumerate("AABB")), "ben": dict(enumerate("AAAA"))}
    found = kappas(paired_people(people), FEW)
    assert found.figure.value is None
    assert "one of the two" in found.by_human["ann & ben"].reason


def test_all_agreement_has_no_interval_and_says_so():
    figure = kappa_of("ABAB", "ABAB").figure
    assert (figure.value, figure.interval) == (1, None)
    assert figure.method == "no interval: every resample of these items gives the same"


def test_the_interval_covers_what_the_data_were_drawn_from():
    """Of 60 studies of 120 items about 57 intervals must hold the kappa of the population."""
    generator, truth, covered = np.random.default_rng(5), 0.5, 0
    for _ in range(60):
        human = generator.integers(0, 2, 120)
        judge = np.where(generator.random(120) < truth, human, generator.integers(0, 2, 120))
        low, high = kappa_of(judge, human, resampling=Resampling(400)).figure.interval
        covered += low <= truth <= high
    assert covered >= 51


@given(two_raters)
def test_the_same_seed_gives_the_same_interval(said):
    judge, human = zip(*said, strict=True)
    assert kappa_of(judge, human) == kappa_of(judge, human)


def test_another_seed_gives_another_interval():
    judge, human = "ABABABABAB" * 3, "AABBABABBA" * 3
    one, two = (kappa_of(judge, human, resampling=Resampling(100, seed)) for seed in (1, 2))
    assert one.figure.value == two.figure.value
    assert one.figure.interval != two.figure.interval


@pytest.mark.parametrize(
    "value, name",
    [
        (-0.01, "Poor"),
        (0.0, "Slight"),
        (0.2, "Slight"),
        (0.200001, "Fair"),
        (0.4, "Fair"),
        (0.41, "Moderate"),
        (0.6, "Moderate"),
        (0.61, "Substantial"),
        (0.8, "Substantial"),
        (0.81, "Almost Perfect"),
        (1.0, "Almost Perfect"),
        (1 + 1e-15, "Almost Perfect"),
        (-1e-16, "Slight"),
        (np.mean([0.1, 0.2, 0.3]), "Slight"),  # 0.20000000000000004
    ],
)
def test_bands(value, name):
    assert band(value) == name


# --- alpha --------------------------------------------------------------------------------------


@given(tables)
def test_alpha_is_what_its_definition_says(humans):
    figure = krippendorff_alpha(humans, resampling=FEW)
    expected = alpha_by_definition(humans)
    if expected is None:
        assert figure.value is None
        assert figure.reason
    else:
        assert figure.value == pytest.approx(expected, abs=1e-12)
        assert figure.value <= 1


def test_alpha_of_krippendorff_s_own_example():
    """Data of "Computing Krippendorff's Alpha-Reliability" (2011), C: nominal alpha .743."""
    rows = {
        "A": [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        "B": [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        "C": [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        "D": [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    }
    humans = {name: dict(enumerate(said)) for name, said in rows.items()}
    figure = krippendorff_alpha(humans)
    assert round(figure.value, 3) == 0.743
    assert figure.n == 40
    assert [(gap.what, gap.count) for gap in figure.left_out] == [("items", 1)]
    low, high = figure.interval
    assert low < figure.value < high


@settings(max_examples=40)
@given(tables, st.randoms(use_true_random=False))
def test_alpha_knows_neither_order_nor_names(humans, random):
    renamed = {"A": "z", "B": "y", "tie": "x"}
    shuffled = list(humans.items())
    random.shuffle(shuffled)
    other = {f"{name}!": {i: renamed[x] for i, x in said.items()} for name, said in shuffled}
    one, two = (krippendorff_alpha(people, resampling=FEW) for people in (humans, other))
    assert one.value == pytest.approx(two.value) if one.value is not None else two.value is None
    again = {name: dict(reversed(said.items())) for name, said in shuffled}
    assert krippendorff_alpha(again, resampling=FEW) == one


@pytest.mark.parametrize(
    "humans, reason",
    [
        ({}, "takes labels of at least two"),
        ({"ann": {"q": "A"}}, "takes labels of at least two"),
        ({"ann": {"q": "A"}, "ben": {"r": "A"}}, "no item has labels of two people"),
        ({"ann": {"q": "A"}, "ben": {"q": "A"}}, "everybody gave every item the same label"),
    ],
)
def test_alpha_that_cannot_be_computed_has_a_reason(humans, reason):
    figure = krippendorff_alpha(humans)
    assert figure.value is None
    assert reason in figure.reason


def test_alpha_of_label_sets_does_not_mind_their_order():
    people = {"ann": {"q": ["a", "b"], "r": ["a"]}, "ben": {"q": ["b", "a"], "r": ["a"]}}
    assert krippendorff_alpha(people).value == 1


@settings(max_examples=20)
@given(tables)
def test_the_interval_of_alpha_is_that_of_a_plain_bootstrap(humans):
    counts = {}
    for said in humans.values():
        for item in said:
            counts[item] = counts.get(item, 0) + 1
    shared = [item for item, count in counts.items() if count > 1]
    figure = krippendorff_alpha(humans, resampling=Resampling(1000))
    if figure.interval is None:
        return
    generator, values = np.random.default_rng(3), []
    for _ in range(200):
        drawn = generator.choice(shared, len(shared))
        resample = {
            name: {at: said[item] for at, item in enumerate(drawn) if item in said}
            for name, said in humans.items()
        }
        values.append(alpha_by_definition(resample))
    values = np.array([value for value in values if value is not None])
    low, high = figure.interval
    assert np.mean(values < low - 1e-9) < 0.09
    assert np.mean(values > high + 1e-9) < 0.09
