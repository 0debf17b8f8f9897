"""Labels, pairs of them, and what most people said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import (
    HumanLabels,
    JudgeLabels,
    Vector,
    agreement,
    consensus,
    human_labels,
    judge_labels,
    paired,
    paired_people,
)
from judge_eval.stats.estimate import wilson
from judge_eval.stats.labels import Vocabulary, clean, elements_of, kind_of
from judge_eval.stats.pairs import partners, patterns_of

votes = st.sampled_from(["A", "B", "tie", "both_bad"])
items = st.integers(0, 8)
judges = st.dictionaries(items, st.none() | votes)
people = st.dictionaries(st.sampled_from(["ann", "ben", "cem", "dia"]), judges, max_size=4)


def gaps_of(pairs):
    return {(gap.what, gap.count, gap.why) for gap in pairs.left_out}


# --- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw, label",
    [
        ("A", "A"),
        ("", None),
        (" ", None),
        (True, True),
        (3, 3),
        (2.5, 2.5),
        (["a", "b"], ("a", "b")),
        ({"a", "b"}, frozenset({"a", "b"})),
        (np.int64(3), 3),
        (np.array([1, 0]), (1, 0)),
        (None, None),
        (float("nan"), None),
        (np.float64("nan"), None),
        ([1, None], None),
    ],
)
def test_what_a_label_may_be(raw, label):
    assert clean(raw) == label
    assert type(clean(raw)) is type(label)


def test_an_infinite_number_is_no_label():
    with pytest.raises(ValueError, match="inf cannot be a label"):
        clean(float("inf"))


def test_an_object_is_no_label():
    with pytest.raises(TypeError, match="a dict cannot be a label"):
        clean({"a": 1})


def test_a_truth_value_is_no_number():
    assert [kind_of(label) for label in (True, 1, "1", (True, False), ("a",), Vector(["a"]))] == [
        "truth",
        "number",
        "text",
        "vector",
        "set",
        "vector",
    ]


def test_rows_and_mappings_say_the_same():
    rows = [("q1", "ann", "A"), ("q2", "ann", "B"), ("q1", "ben", "tie")]
    mapping = {"ann": {"q1": "A", "q2": "B"}, "ben": {"q1": "tie"}}
    assert list(human_labels(rows)) == list(human_labels(mapping)) == rows
    assert judge_labels([("q1", "A")]) == judge_labels({"q1": "A"}) == {"q1": "A"}
    assert human_labels(labels := HumanLabels(rows)) is labels


def test_nobody_labels_an_item_twice():
    with pytest.raises(ValueError, match="ann labelled q1 twice"):
        HumanLabels([("q1", "ann", "A"), ("q1", "ann", None)])
    with pytest.raises(ValueError, match="the judge labelled q1 twice"):
        JudgeLabels([("q1", None), ("q1", "A")])


def test_missing_labels_are_dropped_and_counted():
    labels = HumanLabels([("q1", "ann", None), ("q1", "ben", "A"), ("q2", "ann", float("nan"))])
    assert (len(labels), labels.humans, dict(labels.missing)) == (1, ("ben",), {"ann": 2})
    assert JudgeLabels({"q1": None, "q2": "A"}.items()).by_item == {"q2": "A"}


def test_rows_are_a_sequence():
    labels = HumanLabels([("q1", "ann", "A"), ("q2", "ann", "B")])
    assert labels[0].item == "q1"
    assert [row.label for row in labels[1:]] == ["B"]


@given(st.lists(st.integers() | votes | st.booleans() | st.tuples(votes, votes)))
def test_codes_are_in_order_and_lead_back(labels):
    vocabulary = Vocabulary(labels)
    assert [vocabulary.labels[code] for code in vocabulary.codes(labels)] == labels
    assert vocabulary.labels == Vocabulary(labels[::-1]).labels


def test_numbers_are_ordered_by_size_and_texts_by_letter():
    assert Vocabulary(["b", "B", 10, 9.5, "a"]).labels == (9.5, 10, "B", "a", "b")


@pytest.mark.parametrize(
    "label, elements",
    [
        (("hateful", "FALSE", ""), {(None, "hateful")}),
        (frozenset({"a", "false"}), {(None, "a")}),
        ((1, 0, True, False), {(0, 1), (2, True)}),
        (Vector(["yes", "no", "FALSE"]), {(0, "yes"), (1, "no")}),
        ((), set()),
    ],
)
def test_what_a_multilabel_label_is_made_of(label, elements):
    assert elements_of(label) == elements


# --- pairs --------------------------------------------------------------------------------------


@given(judges, people)
def test_pairs_are_the_items_that_both_labelled(judge, humans):
    pairs = paired(judge, humans)
    expected = sorted(
        (human, item, judge[item], label)
        for human, said in humans.items()
        for item, label in said.items()
        if label is not None and judge.get(item) is not None
    )
    word = pairs.vocabulary.labels
    assert expected == sorted(
        (pairs.raters[rater], pairs.names[item], word[left], word[right])
        for rater, item, left, right in zip(
            pairs.rater, pairs.item, pairs.left, pairs.right, strict=True
        )
    )
    assert list(pairs.item) == sorted(pairs.item)


def test_what_is_left_out_of_pairs_is_counted_and_named():
    humans = {"ann": {"q1": "A", "q2": "B"}, "ben": {"q3": "A", "q1": None}}
    pairs = paired({"q1": "A", "q9": "B"}, humans)
    assert gaps_of(pairs) == {
        ("labels", 2, "the judge gave that item no label"),
        ("items", 1, "no person labelled it"),
        ("humans", 1, "they labelled no item that the judge labelled"),
        ("labels", 1, "the person's label is missing"),
    }
    assert {gap.names for gap in pairs.left_out} == {("q2", "q3"), ("q9",), ("ben",)}


def test_of_many_only_some_are_named_but_all_counted():
    [gap] = paired({"q": "A"}, {"ann": dict.fromkeys(["q", *range(50)], "A")}).left_out
    assert (gap.count, len(gap.names)) == (50, 20)


@given(people)
def test_every_two_people_are_paired_on_every_item_that_both_labelled(humans):
    said = {name: {i: x for i, x in given.items() if x} for name, given in humans.items()}
    expected = sum(
        len(said[one].keys() & said[other].keys()) for one in said for other in said if one < other
    )
    assert len(paired_people(humans)) == expected
    assert len(paired_people(humans, ordered=True)) == 2 * expected


@given(st.lists(st.integers(0, 5)))
def test_partners_are_all_others_of_the_group(groups):
    groups = np.array(sorted(groups), np.int64)
    one, other = partners(groups)
    assert list(zip(one, other, strict=True)) == [
        (a, b)
        for a in range(len(groups))
        for b in range(len(groups))
        if a != b and groups[a] == groups[b]
    ]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2))))
def test_patterns_are_the_items_with_the_same_values_in_any_order(said):
    said.sort(key=lambda pair: pair[0])
    group = np.array([item for item, _ in said], np.int64)
    values = np.array([value for _, value in said], np.uint64)
    found = patterns_of(group, values)
    by_item = {item: tuple(sorted(v for i, v in said if i == item)) for item in dict(said)}
    alike = sorted(list(by_item.values()).count(value) for value in set(by_item.values()))
    assert sorted(found.counts) == alike
    kept = [tuple(sorted(values[found.pick[found.pattern == p]])) for p in range(len(alike))]
    assert sorted(kept) == sorted(set(by_item.values()))


# --- agreement ----------------------------------------------------------------------------------


@given(judges, people)
def test_agreement_is_the_share_of_all_pairs(judge, humans):
    said = [
        judge[item] == label
        for given in humans.values()
        for item, label in given.items()
        if label is not None and judge.get(item) is not None
    ]
    figure = agreement(paired(judge, humans))
    if said:
        assert figure.value == pytest.approx(sum(said) / len(said))
        assert figure.n == len(said)
    else:
        assert figure.why == "no item has a label both of the judge and of a person"


def test_agreement_has_wilson_s_interval_where_labels_are_independent():
    alone = agreement(paired({"q1": "A", "q2": "B"}, {"ann": {"q1": "A", "q2": "A"}}))
    assert alone.method == "Wilson score interval"
    both = {"ann": {"q1": "A", "q2": "A"}, "ben": {"q2": "B"}}
    assert "bootstrap over 2 items" in agreement(paired({"q1": "A", "q2": "B"}, both)).method


def test_an_agreement_that_is_the_same_in_every_resample_is_still_not_certain():
    said = dict.fromkeys(range(20), "A")
    found = agreement(paired(said, {"ann": said, "ben": said}))
    assert (found.value, found.interval) == (1, wilson(20, 20))


def test_agreement_among_nobody_has_a_reason():
    assert agreement(paired_people({})).why == "no item has labels of two people"


# --- consensus ----------------------------------------------------------------------------------


def consensus_of(humans, tie_rule="alphabetical"):
    return {row.item: row.label for row in consensus(humans, tie_rule)}


@given(people, st.sampled_from(["alphabetical", "last"]))
def test_the_consensus_is_the_label_most_people_gave(humans, tie_rule):
    by_item = {}
    for given_labels in humans.values():
        for item, label in given_labels.items():
            if label is not None:
                by_item.setdefault(item, []).append(label)
    choose = max if tie_rule == "last" else min
    expected = {}
    for item, said in by_item.items():
        most = max(said.count(label) for label in said)
        expected[item] = choose(label for label in said if said.count(label) == most)
    assert consensus_of(humans, tie_rule) == expected


def test_of_numbers_a_tie_goes_to_the_smaller():
    assert consensus_of({"ann": {"q": 10}, "ben": {"q": 9}}) == {"q": 9}
    assert consensus_of({"ann": {"q": 10}, "ben": {"q": 9}}, "last") == {"q": 10}


def test_vectors_are_decided_by_position():
    humans = {"ann": {"q": [1, 0, 1]}, "ben": {"q": [1, 1, 0]}, "cem": {"q": [0, 1, 0]}}
    assert consensus_of(humans) == {"q": (1, 1, 0)}


def test_label_sets_are_decided_by_element():
    humans = {
        "ann": {"q": ["hateful", "FALSE"], "r": []},
        "ben": {"q": ["violent", "hateful"], "r": ["violent"]},
    }
    assert consensus_of(humans) == {"q": {"hateful"}, "r": frozenset()}
    assert consensus_of(humans, "last") == {"q": {"hateful", "violent"}, "r": {"violent"}}
    assert consensus_of({"ann": {"q": []}}) == {"q": frozenset()}


@pytest.mark.parametrize(
    "humans, reason",
    [
        ({"ann": {"q": [1, 0]}, "ben": {"q": [1]}}, "different lengths"),
        ({"ann": {"q": [1, 0]}, "ben": {"q": "x"}}, "have no consensus"),
    ],
)
def test_what_has_no_consensus_is_refused(humans, reason):
    with pytest.raises(ValueError, match=reason):
        consensus(humans)


def test_an_unknown_tie_rule_is_refused():
    with pytest.raises(ValueError, match="tie_rule must be one of alphabetical, last"):
        consensus({}, "first")
