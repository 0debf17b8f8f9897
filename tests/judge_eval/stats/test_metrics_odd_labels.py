"""Labels that a scorer cannot take cost the others nothing: dropped, counted, or the reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import (
    AltTestScorer,
    AltTestSettings,
    ClassificationScorer,
    CohenKappaScorer,
    KrippendorffAlphaScorer,
    MetricConfig,
    Resampling,
    Scorer,
    SemanticSimilarityScorer,
    TextSimilarityScorer,
    among_people,
    score,
)
from judge_eval.stats.estimate import left_out

TEXTS = {"q1": "a cat", "q2": "a dog", "q3": "a fish"}
FEW = Resampling(5)


def scored(scorer, judge, people, majority=False):
    aggregation = "majority_vote" if majority else "individual_average"
    config = MetricConfig(scorer, ["t"], annotator_aggregation=aggregation, display_name="it")
    said = {name: {"t": labels} for name, labels in people.items()}
    [found] = score([config], {"j": {"t": judge}}, said)["it"]
    return found


def gaps_of(figure):
    return [(gap.what, gap.count, gap.names, gap.why) for gap in figure.left_out]


def test_a_person_s_odd_label_is_dropped_and_counted():
    found = scored(TextSimilarityScorer(), TEXTS, {"ann": TEXTS | {"q3": 5}, "ben": TEXTS})
    assert found.figures["similarity"].value == 1
    assert found.figures["similarity"].n == 5
    why = "text_similarity cannot take labels such as 5"
    assert ("labels", 1, ("ann",), why) in gaps_of(found.figures["similarity"])


def test_a_judge_s_odd_label_is_dropped_and_counted_wherever_it_stands():
    for place in TEXTS:
        found = scored(TextSimilarityScorer(), TEXTS | {place: 5}, {"ann": TEXTS})
        assert (found.figures["similarity"].value, found.figures["similarity"].n) == (1, 2)
        why = "text_similarity cannot take labels such as 5"
        assert ("labels", 1, (place,), why) in gaps_of(found.figures["similarity"])


def test_an_odd_label_does_not_cost_empty_texts_theirs():
    judge, person = {"q1": "", "q2": "a"}, {"q1": "", "q2": "a", "q3": 5}
    figure = scored(TextSimilarityScorer(), judge, {"ann": person}).figures["similarity"]
    assert (figure.value, figure.n) == (1, 2)


@pytest.mark.parametrize("odd", ["judge", "people"])
def test_nothing_but_odd_labels_is_a_reason(odd):
    numbers = dict.fromkeys(TEXTS, 4)
    judge, person = (numbers, TEXTS) if odd == "judge" else (TEXTS, numbers)
    figure = scored(TextSimilarityScorer(), judge, {"ann": person}).figures["similarity"]
    assert figure.why == "text_similarity cannot take labels such as 4"


def test_people_among_themselves_drop_them_too():
    config = MetricConfig(TextSimilarityScorer(), ["t"])
    people = {"ann": {"t": TEXTS | {"q3": 5}}, "ben": {"t": TEXTS}}
    figure = among_people(config, people).figures["similarity"]
    assert (figure.value, figure.n) == (1, 2)
    assert any(gap.why.endswith("such as 5") for gap in figure.left_out)


def test_labels_without_a_consensus_are_a_reason_for_that_figure_only():
    """Other judges, tasks and metrics keep theirs."""
    people = {"ann": {"t": {"q1": "A"}}, "ben": {"t": {"q1": ["A", "B"]}}}
    configs = [
        MetricConfig(
            ClassificationScorer(), ["t"], annotator_aggregation="majority_vote", display_name="m"
        ),
        MetricConfig(ClassificationScorer(), ["t"], display_name="i"),
    ]
    found = score(configs, {"j": {"t": {"q1": "A"}}}, people)
    [majority], [individual] = found["m"], found["i"]
    assert majority.figures["accuracy"].why == (
        "label sets or vectors and single labels have no consensus"
    )
    assert individual.figures["accuracy"].value == 0.5


def test_a_mistake_in_a_scorer_is_none_of_its_labels():
    class Broken(Scorer):
        def can_score_task(self, sample_label):
            return True

        def compute_score(self, *data):
            raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        scored(Broken("broken"), TEXTS, {"ann": TEXTS})


class Lengths:
    model = "lengths"

    def __call__(self, batch):
        return [[1.0, len(text)] for text in batch]


SCORERS = [
    ClassificationScorer(resampling=FEW),
    ClassificationScorer("f1", pos_label="A", resampling=FEW),
    ClassificationScorer("recall", average="macro", resampling=FEW),
    CohenKappaScorer(FEW),
    KrippendorffAlphaScorer(FEW),
    TextSimilarityScorer(FEW),
    SemanticSimilarityScorer(Lengths(), resampling=FEW),
    *(
        AltTestScorer(
            AltTestSettings(min_instances_per_human=1, min_humans=1, resampling=FEW, **options)
        )
        for options in (
            {},
            {"scoring": "neg_rmse"},
            {"scoring": "jaccard_similarity"},
            {"scoring": "jaccard_similarity", "jaccard": "positional"},
        )
    ),
]
labels = (
    st.sampled_from(["A", "B", "", "a text", 0, 1, 4, 2.5, True, False, None, float("nan")])
    | st.lists(st.sampled_from(["A", "B", "FALSE"]), max_size=3)
    | st.lists(st.sampled_from([0, 1]), max_size=3)
)
annotator = st.dictionaries(st.sampled_from(["q1", "q2", "q3", "q4"]), labels, max_size=4)


@given(annotator, st.dictionaries(st.sampled_from(["ann", "ben", "cem"]), annotator), st.booleans())
def test_whatever_the_labels_are_there_is_a_figure_or_a_reason(judge, people, majority):
    for scorer in SCORERS:
        found = scored(scorer, judge, people, majority)
        for figure in found.figures.values():
            assert (figure.value is None) == (figure.why is not None)
        json.dumps(found.as_dict(), allow_nan=False)
        said = {name: {"t": given_} for name, given_ in people.items()}
        among = among_people(MetricConfig(scorer, ["t"]), said)
        assert among is None or json.dumps(among.as_dict(), allow_nan=False)


def test_names_of_what_is_left_out_are_each_there_once():
    [gap] = left_out("labels", [*"abab", *range(30)], "why")
    assert gap.count == 34
    assert len(gap.names) == len(set(gap.names)) == 20
    assert left_out("labels", [20, 20, 21], "why")[0].names == ("20", "21")
