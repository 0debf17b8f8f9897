"""Cohen's kappa against scikit-learn, Krippendorff's alpha against its definition."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import (
    Resampling,
    band,
    classification,
    cohen_kappa,
    krippendorff_alpha,
    paired_people,
)
from judge_eval.stats.labels import LabelsUnfit
from tests.helpers import oracles

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


def alpha_by_definition(humans, level="nominal"):
    """Compare every two labels of an item, and every two labels at all."""
    items = {}
    for said in humans.values():
        for item, label in said.items():
            items.setdefault(item, []).append(label)
    units = [labels for labels in items.values() if len(labels) > 1]
    every = [label for labels in units for label in labels]
    if len(set(every)) < 2:
        return None

    def apart(a, b):
        if level == "nominal":
            return a != b
        if level == "interval":
            return (a - b) ** 2
        low, high = sorted((a, b))
        between = sum(low <= label <= high for label in every)
        return (between - (every.count(a) + every.count(b)) / 2) ** 2 if a != b else 0

    observed = sum(
        apart(a, b) / (len(labels) - 1) for labels in units for a, b in permutations(labels, 2)
    )
    expected = sum(apart(a, b) for a, b in permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected


# Counts of (human, judge) of four judges on 3,200 free answers with one gold label each, from the
# published labels of TriviaQA judged by models (UMass-Meta-LLM-Eval/llm_eval), and what is printed.
GOLD = {
    "GPT-4": ((1945, 94, 66, 1095), 0.950, 0.892),
    "Llama3-70B": ((2005, 34, 145, 1016), 0.944, 0.876),
    "Gemma-2B": ((1848, 191, 1003, 158), 0.627, 0.050),
    "JudgeLM": ((582, 1457, 77, 1084), 0.521, 0.174),
}


@pytest.mark.parametrize("name", GOLD)
def test_one_reference_is_enough_and_kappa_is_what_was_published(name):
    counts, accuracy, kappa = GOLD[name]
    cells = (("A", "A"), ("A", "B"), ("B", "A"), ("B", "B"))
    both = [cell for cell, count in zip(cells, counts, strict=True) for _ in range(count)]
    human, judge = (dict(enumerate(side)) for side in zip(*both, strict=True))
    found = cohen_kappa(judge, {"gold": human}, resampling=FEW).figure
    assert (round(found.value, 3), found.n) == (kappa, 3200)
    right = classification(judge, {"gold": human}, resampling=FEW).figure
    assert round(right.value, 3) == accuracy


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
@given(said=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=20))
def test_weighted_kappa_is_scikit_learn_s(weights, said):
    # All five grades are there, so that places among the grades are the grades.
    judge, human = zip(*said, *((n, n) for n in range(1, 6)), strict=True)
    people = {"ann": dict(enumerate(human))}
    found = cohen_kappa(dict(enumerate(judge)), people, weights=weights, resampling=FEW).figure
    assert found.value == pytest.approx(
        oracles.metrics.cohen_kappa_score(judge, human, weights=weights), abs=1e-12
    )


def test_words_have_the_order_they_are_given():
    words, order = ["bad", "fair", "good"], {"bad": 0, "fair": 1, "good": 2}
    judge = dict(enumerate(["bad", "good", "fair", "good"]))
    people = {"ann": dict(enumerate(["fair", "good", "good", "bad"]))}
    found = cohen_kappa(judge, people, weights="linear", order=words, resampling=FEW).figure
    places = [[order[label] for label in said.values()] for said in (judge, people["ann"])]
    assert found.value == pytest.approx(
        oracles.metrics.cohen_kappa_score(*places, weights="linear")
    )
    with pytest.raises(LabelsUnfit, match="'bad' is no number"):
        cohen_kappa(judge, people, weights="linear")
    with pytest.raises(LabelsUnfit, match="does not hold 'fair'"):
        cohen_kappa(judge, people, weights="linear", order=["bad", "good"])


# --- kappa --------------------------------------------------------------------------------------


@given(two_raters)
def test_kappa_is_scikit_learn_s(said):
    judge, human = zip(*said, strict=True)
    value = kappa_of(judge, human).figure.value
    if len(set(human)) == 1:
        assert value is None
    else:
        assert value == pytest.approx(oracles.metrics.cohen_kappa_score(judge, human), abs=1e-12)
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
    assert "the same label" in found.by_human["h1"].why
    assert [(gap.what, gap.names) for gap in found.figure.left_out] == [("humans", ("h1",))]


def test_a_judge_with_one_label_agrees_as_by_chance():
    assert kappa_of("AAAA", "AABB").figure.value == 0


def test_without_anybody_else_the_reason_is_the_figure_s():
    assert "the same label" in kappa_of("AB", "AA").figure.why
    assert kappa_of("", "").figure.why.startswith("no item has a label both")


def test_between_people_both_must_vary():
    people = {"ann": dict(enumerate("AABB")), "ben": dict(enumerate("AAAA"))}
    found = cohen_kappa(paired_people(people), resampling=FEW)
    assert found.figure.value is None
    assert "one of the two" in found.by_human["ann & ben"].why


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
        assert figure.why
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
    assert reason in figure.why


def test_alpha_of_label_sets_does_not_mind_their_order():
    people = {"ann": {"q": ["a", "b"], "r": ["a"]}, "ben": {"q": ["b", "a"], "r": ["a"]}}
    assert krippendorff_alpha(people).value == 1


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


grades = st.dictionaries(
    st.sampled_from(["ann", "ben", "cem", "dia"]),
    st.dictionaries(st.integers(0, 7), st.integers(1, 5), min_size=1),
    min_size=2,
)


@pytest.mark.parametrize("level", ["ordinal", "interval"])
@given(humans=grades)
def test_alpha_of_grades_is_its_definition(level, humans):
    expected = alpha_by_definition(humans, level)
    figure = krippendorff_alpha(humans, level, resampling=FEW)
    assert figure.value == (None if expected is None else pytest.approx(expected, abs=1e-9))


@pytest.mark.parametrize(
    "level, value", [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_s_own_example(level, value):
    ann = {1: 1, 2: 2, 3: 3, 4: 3, 5: 2, 6: 1, 7: 4, 8: 1, 9: 2}
    ben = {1: 1, 2: 2, 3: 3, 4: 3, 5: 2, 6: 2, 7: 4, 8: 1, 9: 2, 10: 5, 12: 3}
    cem = {2: 3, 3: 3, 4: 3, 5: 2, 6: 3, 7: 4, 8: 2, 9: 2, 10: 5, 11: 1}
    dia = {1: 1, 2: 2, 3: 3, 4: 3, 5: 2, 6: 4, 7: 4, 8: 1, 9: 2, 10: 5, 11: 1}
    found = krippendorff_alpha({"A": ann, "B": ben, "C": cem, "D": dia}, level, resampling=FEW)
    assert round(found.value, 3) == value
