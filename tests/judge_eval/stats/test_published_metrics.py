"""The recorded cases of MetaEvaluator and the published figures, by the metrics of this package."""

import json
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from judge_eval.imports.formats import read
from judge_eval.imports.row_models import MAIN, ImportRow
from judge_eval.stats import (
    AltTestScorer,
    AltTestSettings,
    ClassificationScorer,
    CohenKappaScorer,
    MetricConfig,
    SemanticSimilarityScorer,
    TextSimilarityScorer,
    agreement,
    alt_test,
    benjamini_yekutieli,
    classification,
    cohen_kappa,
    consensus,
    krippendorff_alpha,
    make_scorer,
    paired,
    paired_people,
    score,
)

SHARED = Path(__file__).resolve().parents[4] / "shared"
DATA, CASES = SHARED / "data", SHARED / "cases"
EXACT = 1e-9

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not DATA.exists(), reason="not run: no ../shared/data"),
    pytest.mark.skipif(not CASES.exists(), reason="not run: no ../shared/cases"),
]


def case(name):
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def recorded(scorer, name, *keys, judge=None, humans=None, majority=False):
    """Score a recorded case; return our result, and the recorded one."""
    read_case = case(name)
    data, output = read_case["input"], read_case["output"]
    config = MetricConfig(
        scorer,
        ["t"],
        annotator_aggregation="majority_vote" if majority else "individual_average",
        display_name="it",
    )
    said = {"j": {"t": judge or data["judge"]}}
    people = {name: {"t": given} for name, given in (humans or data["humans"]).items()}
    [found] = score([config], said, people)["it"]
    for key in keys:
        output = output[key]
    return found, output


def value(found):
    [figure] = found.figures.values()
    return figure.value


# --- classification ------------------------------------------------------------------------------

SHARES = ["f1", "precision", "recall"]


def key_of(metric, average, aggregation):
    return f"{metric}|{'macro' if average == 'macro' else 'pos=flag|binary'}|{aggregation}"


@pytest.mark.parametrize(
    "metric, average", [("accuracy", "binary"), *product(SHARES, ["binary", "macro"])]
)
def test_classification_of_people_with_unequal_coverage(metric, average):
    name = "classification_1_binary_unequal_coverage"
    scorer = ClassificationScorer(metric, "flag", average)
    found, expected = recorded(scorer, name, key_of(metric, average, "individual_average"))
    assert found.scores == pytest.approx(expected["scores"], abs=EXACT)
    assert found.figures[metric].n == expected["num_comparisons"]
    assert found.scorer_name == expected["scorer_name"]
    ours = {name: found.metadata.get(name) for name in expected["metadata"]}
    if average == "binary":  # with other averages the recorded pos_label is the default, unused
        assert ours == expected["metadata"]


@pytest.mark.parametrize("average", ["binary", "macro"])
@pytest.mark.parametrize("metric", SHARES)
def test_its_consensus_as_recorded_takes_the_last_of_tied_labels(metric, average):
    """SCORING 5 overrules it: ties go to the alphabetically first label."""
    name = "classification_1_binary_unequal_coverage"
    last = ClassificationScorer(metric, "flag", average, tie_rule="last")
    found, expected = recorded(last, name, key_of(metric, average, "majority_vote"), majority=True)
    assert found.scores == pytest.approx(expected["scores"], abs=EXACT)
    first, _ = recorded(ClassificationScorer(metric, "flag", average), name, majority=True)
    # The only tie is i9, pass against flag; with flag as the consensus the judge is always right.
    assert value(first) == 1


def test_ties_go_to_the_alphabetically_first_label():
    """SCORING 5 overrules the recorded .75; `tie_rule="last"` reproduces it."""
    name, key = "classification_2_ties", "accuracy|majority_vote"
    found, expected = recorded(ClassificationScorer(), name, key, majority=True)
    assert (value(found), expected["scores"]["accuracy"]) == (0.25, 0.75)
    last, _ = recorded(ClassificationScorer(tie_rule="last"), name, majority=True)
    assert value(last) == 0.75


@pytest.mark.parametrize(
    "key, scorer",
    [
        ("accuracy|individual_average", ClassificationScorer()),
        ("f1|macro", ClassificationScorer("f1", average="macro")),
    ],
)
def test_classification_with_ties(key, scorer):
    found, expected = recorded(scorer, "classification_2_ties", key)
    assert found.scores == pytest.approx(expected["scores"], abs=EXACT)


def test_a_positive_label_that_nobody_gave_is_null_with_a_reason_and_not_nan():
    """SCORING 5 overrules the recorded NaN."""
    key = "f1|default pos_label=1 with string labels"
    found, expected = recorded(ClassificationScorer("f1"), "classification_2_ties", key)
    assert (value(found), expected["scores"]["f1"]) == (None, "NaN")
    assert "takes two labels, and these are more: bad, good, ok" in found.figures["f1"].why


@pytest.mark.parametrize("majority", [False, True])
@pytest.mark.parametrize("average", ["macro", "samples", "micro", None])
def test_classification_of_vectors(average, majority):
    aggregation = "majority_vote" if majority else "individual_average"
    name = "classification_3_multilabel"
    if average is None:
        scorer, key = ClassificationScorer(), f"accuracy(exact match)|{aggregation}"
    else:
        scorer = ClassificationScorer("f1", average=average)
        key = f"f1|{average}|{aggregation}"
    found, expected = recorded(scorer, name, key, majority=majority)
    assert found.scores == pytest.approx(expected["scores"], abs=EXACT)


def test_vectors_of_names_are_compared_too():
    """SCORING 5 (exact match) overrules the recorded NaN of the same data as names."""
    data = case("classification_3_multilabel")["input"]

    def named(said):
        return {
            item: [name if on else "FALSE" for name, on in zip("xyz", vector, strict=True)]
            for item, vector in said.items()
        }

    people = {name: named(said) for name, said in data["humans"].items()}
    found = classification(named(data["judge"]), people)
    assert found.figure.value == pytest.approx(4 / 9)


# --- kappa --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key, majority", [("individual_average", False), ("majority_vote (falls back)", True)]
)
def test_kappa(key, majority):
    found, expected = recorded(CohenKappaScorer(), "kappa_1_same_data", key, majority=majority)
    assert found.scores == pytest.approx(expected["scores"], abs=EXACT)
    assert found.figures["kappa"].n == expected["num_comparisons"]
    assert bool(found.warnings) is majority


def test_a_constant_label_is_null_with_a_reason_and_does_not_poison_the_mean():
    """SCORING 5 overrules the recorded NaN: h1 is null with a reason, the mean 0.0."""
    found, expected = recorded(CohenKappaScorer(), "kappa_2_constant_labels", "both")
    assert (value(found), expected["scores"]["kappa"]) == (0.0, "NaN")
    assert "same label" in found.by_human["h1"].why
    assert found.by_human["h2"].value == 0


@pytest.mark.parametrize("human, expected", [("h1", None), ("h2", 0.0)])
def test_kappa_with_one_person(human, expected):
    data = case("kappa_2_constant_labels")["input"]
    alone = {human: data["humans"][human]}
    assert cohen_kappa(data["judge"], alone).figure.value == expected
    found, _ = recorded(CohenKappaScorer(), "kappa_2_constant_labels", humans=alone)
    assert found.figures["kappa"].value == expected


# --- texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["individual_average", "majority_vote"])
@pytest.mark.parametrize("name", ["text_1_basic", "text_2_identical_and_empty"])
def test_text_similarity(name, key):
    majority = key == "majority_vote"
    found, expected = recorded(TextSimilarityScorer(), name, key, majority=majority)
    assert found.scores == pytest.approx(expected["scores"], abs=EXACT)


@pytest.mark.parametrize("key", ["individual_average", "majority_vote"])
def test_semantic_similarity(key):
    vectors = case("semantic_1")["params"]["embeddings"]

    class Stub:
        model = "stub"

        def __call__(self, texts):
            return [vectors[text] for text in texts]

    scorer = SemanticSimilarityScorer(Stub())
    found, expected = recorded(scorer, "semantic_1", key, majority=key == "majority_vote")
    assert found.scores == pytest.approx(expected["scores"], abs=EXACT)
    assert found.metadata["embedding_model"] == expected["metadata"]["embedding_model"]
    assert found.metadata["batch_size"] == expected["metadata"]["batch_size"]


# --- alt-test -----------------------------------------------------------------------------------

SAME_METADATA = (
    "human_advantage_probabilities",
    "scoring_function",
    "epsilon",
    "multiplicative_epsilon",
    "q_fdr",
    "min_human_annotators",
    "min_instances_per_human",
    "ground_truth_method",
    "scoring_method",
)


@pytest.mark.parametrize(
    "key, settings",
    [
        ("default", AltTestSettings()),
        ("multiplicative", AltTestSettings(multiplicative=True)),
        ("perfect judge = h1 copy", AltTestSettings()),
    ],
)
def test_the_alt_test_of_three_people(key, settings):
    name = "alttest_1_30x3"
    judge = case(name)["input"]["humans"]["h1"] if "copy" in key else None
    found, expected = recorded(AltTestScorer(settings), name, key, judge=judge)
    scores = expected["scores"]
    assert found.scores["winning_rate"] == pytest.approx(scores["winning_rate"], abs=EXACT)
    assert found.scores["advantage_probability"] == pytest.approx(
        scores["advantage_probability"], abs=EXACT
    )
    assert {name: found.metadata[name] for name in SAME_METADATA} == expected["metadata"]
    assert found.figures["winning_rate"].n == expected["num_comparisons"]


def test_the_alt_test_at_an_epsilon_off_the_grid():
    """SCORING 5 overrules the recorded NaN: the advantage probability does not depend on it."""
    settings = AltTestSettings(epsilon=0.12)
    key = "epsilon=0.12 (off grid)"
    found, expected = recorded(AltTestScorer(settings), "alttest_1_30x3", key)
    assert expected["scores"]["advantage_probability"] == "NaN"
    assert found.scores["advantage_probability"] == pytest.approx(0.888889, abs=5e-7)
    rates = dict(found.scores["winning_rate"])
    assert rates.pop("0.12") == 0
    assert rates == pytest.approx(expected["scores"]["winning_rate"], abs=EXACT)


def test_the_alt_test_of_label_sets():
    """SCORING 5 overrules the recorded positional Jaccard, which counts what is absent."""
    found, _ = recorded(AltTestScorer(), "alttest_3_multilabel_jaccard", "multilabel")
    assert {key: round(rate, 3) for key, rate in found.scores["winning_rate"].items()} == {
        "0.00": 0.333, "0.05": 0.667, "0.10": 0.667, "0.15": 0.667, "0.20": 0.667,
        "0.25": 1.0, "0.30": 1.0,
    }  # fmt: skip
    assert round(found.scores["advantage_probability"], 6) == 0.854167


def test_the_alt_test_of_labels_by_position_as_recorded():
    scorer = AltTestScorer(AltTestSettings(jaccard="positional"))
    found, expected = recorded(scorer, "alttest_3_multilabel_jaccard", "multilabel")
    scores = expected["scores"]
    assert found.scores["winning_rate"] == pytest.approx(scores["winning_rate"], abs=EXACT)
    assert found.scores["advantage_probability"] == pytest.approx(
        scores["advantage_probability"], abs=EXACT
    )
    assert {name: found.metadata[name] for name in SAME_METADATA} == expected["metadata"]


def test_the_alt_test_of_label_sets_is_the_same_as_of_three_tasks():
    data = case("alttest_3_multilabel_jaccard")["input"]
    tasks = ["hateful", "violent", "sexual"]

    def by_task(said):
        return {
            task: {item: vector[at] for item, vector in said.items()}
            for at, task in enumerate(tasks)
        }

    config = MetricConfig(AltTestScorer(), tasks, "multilabel", display_name="it")
    people = {name: by_task(said) for name, said in data["humans"].items()}
    [found] = score([config], {"j": by_task(data["judge"])}, people)["it"]
    assert round(found.scores["advantage_probability"], 6) == 0.854167
    assert found.scores["winning_rate"]["0.25"] == 1


def test_the_by_procedure():
    for example in case("by_procedure"):
        found = benjamini_yekutieli(np.array(example["p"]), example["q"])
        assert sorted(np.flatnonzero(found)) == sorted(example["rejected"])


# --- published: Alt-Test ------------------------------------------------------------------------


def items_of(path):
    with (DATA / path).open("rb") as stream:
        return list(read(stream, Path(path).name))


def labels_of(path):
    said = defaultdict(dict)
    for row in items_of(path):
        said[row.judge or row.voter][row.item] = row.labels[MAIN]
    return said


PUBLISHED = {
    "mtbench": (
        0.2,
        {
            "gemini_flash": (0, 0.72),
            "gemini_pro": (0, 0.76),
            "gpt-4o": (0, 0.77),
            "gpt-4o-mini": (0, 0.74),
            "llama-31": (0, 0.69),
            "mistral-v03": (0, 0.68),
        },
    ),
    "framing": (
        0.15,
        {
            "gemini_flash": (1, 0.83),
            "gemini_pro": (1, 0.91),
            "gpt-4o": (1, 0.92),
            "gpt-4o-mini": (1, 0.87),
            "llama-31": (0.5, 0.80),
            "mistral-v03": (0.25, 0.80),
        },
    ),
}


@pytest.mark.parametrize("folder", PUBLISHED)
def test_the_alt_test_is_as_published_in_all_cells(folder):
    epsilon, expected = PUBLISHED[folder]
    judges = labels_of(f"alttest/{folder}/llm_annotations.json")
    people = labels_of(f"alttest/{folder}/human_annotations.json")
    found = alt_test(judges, people, AltTestSettings(epsilon))
    assert {
        judge: (
            result.winning_rate[result.epsilon].value,
            round(result.advantage_probability.value, 2),
        )
        for judge, result in found.items()
    } == expected


def test_with_three_people_per_item_mtbench_yields_nothing():
    judges = labels_of("alttest/mtbench/llm_annotations.json")
    people = labels_of("alttest/mtbench/human_annotations.json")
    found = alt_test(judges, people, AltTestSettings(min_humans_per_item=3))
    assert {result.passes for result in found.values()} == {None}


# --- published: MT-bench ------------------------------------------------------------------------


def without_ties(pairs):
    tie = pairs.vocabulary.code("tie")
    return pairs.select((pairs.left != tie) & (pairs.right != tie))


@pytest.fixture(scope="module")
def mtbench():
    """Return what GPT-4 and every expert said, by turn."""
    judge, people = defaultdict(dict), defaultdict(lambda: defaultdict(dict))
    for row in items_of("mtbench/gpt4_pair.jsonl"):
        judge[row.tags[0]][row.item] = row.verdict
    for row in items_of("mtbench/human.jsonl"):
        if isinstance(row, ImportRow) and row.voter.startswith("expert"):
            people[row.tags[0]][row.voter][row.item] = row.vote
    return judge, people


@pytest.mark.parametrize(
    "turn, ties, with_gpt4, among_people",
    [
        ("turn-1", True, (66, 1343), (63, 721)),
        ("turn-1", False, (85, 859), (81, 479)),
        ("turn-2", True, (66, 1325), (67, 707)),
        ("turn-2", False, (85, 864), (82, 474)),
    ],
)
def test_mtbench_agreement_is_as_published(mtbench, turn, ties, with_gpt4, among_people):
    judge, people = mtbench
    compared = paired(judge[turn], people[turn]), paired_people(people[turn])
    if not ties:
        compared = tuple(map(without_ties, compared))
    figures = [agreement(pairs) for pairs in compared]
    assert [(round(100 * figure.value), figure.n) for figure in figures] == [
        with_gpt4,
        among_people,
    ]
    assert all(low < f.value < high for f in figures for low, high in [f.interval])


# --- published: PandaLM -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pandalm():
    people = defaultdict(dict)
    for row in items_of("pandalm/testset-v1.json"):
        people[row.voter][row.item] = row.labels["result"]
    return people


@pytest.mark.parametrize(
    "judge, percent, kappa", [("pandalm-7b", 66.77, 0.435), ("gpt-3.5-turbo", 69.27, 0.470)]
)
def test_pandalm_agreement_with_the_majority_is_as_published(pandalm, judge, percent, kappa):
    said = {row.item: row.labels["result"] for row in items_of(f"pandalm/{judge}-testset-v1.json")}
    majority = consensus(pandalm)
    accuracy = classification(said, majority).figure
    assert (round(100 * accuracy.value, 2), accuracy.n) == (percent, 999)
    assert round(cohen_kappa(said, majority).figure.value, 3) == kappa


def test_pandalm_people_agree_as_published(pandalm):
    found = cohen_kappa(paired_people(pandalm))
    assert [round(figure.value, 3) for figure in found.by_human.values()] == [0.852, 0.879, 0.862]
    assert found.figure.value == pytest.approx(krippendorff_alpha(pandalm).value, abs=0.001)


def test_four_published_judges_with_one_reference():
    """Accuracy and kappa as published, and the alpha of judge and reference from their counts."""
    data = case("umass_tables")
    judges, gold = {}, {}
    for judge, rows in data["tables"].items():
        cells = {(row["human"], row["judge"]): row["count"] for row in rows}
        pairs = [cell for cell, count in sorted(cells.items()) for _ in range(count)]
        # The same items in the same order: those that people call right come first.
        gold = {item: human for item, (human, _) in enumerate(pairs)}
        judges[judge] = {"right": {item: said for item, (_, said) in enumerate(pairs)}}
    scorers = ("classification", "cohen_kappa", "krippendorff_alpha")
    found = score(
        [MetricConfig(make_scorer(name), ["right"], display_name=name) for name in scorers],
        judges,
        {"gold": {"right": gold}},
    )
    accuracies, kappas, alphas = (
        {result.judge_id: result.figures for result in found[name]} for name in scorers
    )
    for judge, published in data["published"].items():
        assert accuracies[judge]["accuracy"].value == pytest.approx(published["accuracy"], abs=5e-4)
        assert kappas[judge]["kappa"].value == pytest.approx(published["kappa"], abs=5e-4)
        differing = sum(gold[item] != said for item, said in judges[judge]["right"].items())
        labels = Counter([*gold.values(), *judges[judge]["right"].values()])
        n = labels.total()
        by_chance = n * n - sum(count * count for count in labels.values())
        alpha = alphas[judge]["with_judge"]
        assert alpha.value == pytest.approx(1 - (n - 1) * 2 * differing / by_chance, abs=EXACT)
        assert alpha.n == n == 2 * 3200
        assert alphas[judge]["krippendorff_alpha"].value is None
