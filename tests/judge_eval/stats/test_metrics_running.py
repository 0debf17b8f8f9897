"""Metrics as they are asked for: names, tasks, consensus, one's own scorers, among people."""

import asyncio
import json

import pytest

from judge_eval.stats import (
    SCORERS,
    AltTestScorer,
    AltTestSettings,
    ClassificationScorer,
    CohenKappaScorer,
    Estimate,
    KrippendorffAlphaScorer,
    MetricConfig,
    MetricInvalid,
    Scorer,
    ScorerUnknown,
    SemanticSimilarityScorer,
    TextSimilarityScorer,
    among_people,
    check_names,
    make_scorer,
    register,
    score,
    score_async,
)
from judge_eval.stats.estimate import wilson
from tests.helpers.waiting import PATIENCE

HUMANS = {
    "ann": {
        "winner": {"q1": "A", "q2": "B", "q3": "A", "q4": "tie"},
        "helpful": {"q1": "yes", "q2": "no", "q3": "yes"},
        "why": {"q1": "shorter", "q2": "correct"},
    },
    "ben": {
        "winner": {"q1": "A", "q2": "A", "q3": "B", "q4": "tie"},
        "helpful": {"q1": "yes", "q2": "yes", "q3": "no"},
        "why": {"q1": "short"},
    },
}
JUDGES = {
    "gpt": {
        "winner": {"q1": "A", "q2": "B", "q3": "A", "q4": "A"},
        "helpful": {"q1": "yes", "q2": "no", "q3": "no"},
        "why": {"q1": "shorter", "q2": "right"},
    },
    "mistral": {"winner": {"q1": "B"}},
}


class Embedder:
    model = "letters"

    def __call__(self, batch):
        return [[1, *(text.count(letter) for letter in "ABabcdefghijklmnopqrst")] for text in batch]


def one(scorer, *tasks, judge="gpt", humans=HUMANS, **options):
    config = MetricConfig(scorer, tasks, display_name="it", **options)
    return next(r for r in score([config], JUDGES, humans)["it"] if r.judge_id == judge)


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scorer, tasks, strategy, name",
    [
        (
            ClassificationScorer(),
            ["rejection"],
            "single",
            "classification_accuracy_1tasks_22e76eaf",
        ),
        (TextSimilarityScorer(), ["explanation"], "single", "text_similarity_1tasks_74d08617"),
        (CohenKappaScorer(), ["b", "a"], "multitask", "cohens_kappa_2tasks_dbf08e00"),
        (AltTestScorer(), ["a", "b"], "multilabel", "alt_test_2tasks_dbf08e00"),
    ],
)
def test_unique_names(scorer, tasks, strategy, name):
    assert MetricConfig(scorer, tasks, strategy).unique_name == f"{name}_{strategy}"


def test_a_display_name_takes_its_place():
    assert MetricConfig(AltTestScorer(), ["a"], display_name="Alt-Test").unique_name == "Alt-Test"


def test_two_metrics_of_one_name_are_an_error_that_asks_for_a_display_name():
    twins = [MetricConfig(ClassificationScorer("f1", "flag"), ["a"])] * 2
    with pytest.raises(MetricInvalid, match=r"classification_f1_1tasks.+a display_name$"):
        score(twins, {}, {})
    alike = [MetricConfig(AltTestScorer(), ["a"], display_name=name) for name in ("Alt", "alt")]
    with pytest.raises(MetricInvalid, match="Alt and alt"):
        check_names(alike)


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", ".hidden", "a\\b", "a\0", "a\n", "x" * 121, "a ."]
)
def test_a_name_that_is_no_folder_is_refused(name):
    with pytest.raises(MetricInvalid, match="cannot be a name"):
        MetricConfig(ClassificationScorer(), ["a"], display_name=name)


@pytest.mark.parametrize(
    "tasks, options, reason",
    [
        ([], {}, "single takes exactly one task, not 0"),
        (["a", "b"], {}, "single takes exactly one task, not 2"),
        (["a"], {"task_strategy": "multitask"}, "multitask takes two or more tasks, not 1"),
        (["a"], {"task_strategy": "multilabel"}, "multilabel takes two or more tasks, not 1"),
        (["a", "a"], {"task_strategy": "multitask"}, "a task is named twice"),
        (["a"], {"task_strategy": "all"}, "task_strategy must be one of single, multitask"),
        (["a"], {"annotator_aggregation": "mean"}, "annotator_aggregation must be one of"),
    ],
)
def test_a_metric_that_cannot_be_is_refused(tasks, options, reason):
    with pytest.raises(MetricInvalid, match=reason):
        MetricConfig(ClassificationScorer(), tasks, **options)


# --- tasks --------------------------------------------------------------------------------------


def test_one_task():
    found = one(ClassificationScorer(), "winner")
    assert found.scores == {"accuracy": (0.75 + 0.25) / 2}
    assert found.figures["accuracy"].n == 8
    assert (found.task_name, found.judge_id) == ("winner", "gpt")
    assert (found.task_strategy, found.annotator_aggregation) == ("single", "individual_average")
    assert found.by_human["ann"].value == 0.75


def test_every_judge_has_a_result_in_order():
    config = MetricConfig(ClassificationScorer(), ["winner"])
    [results] = score([config], JUDGES, HUMANS).values()
    assert [result.judge_id for result in results] == ["gpt", "mistral"]


def test_several_tasks_are_averaged():
    found = one(ClassificationScorer(), "winner", "helpful", task_strategy="multitask")
    parts = {task: figures["accuracy"].value for task, figures in found.by_task.items()}
    assert parts == {"winner": 0.5, "helpful": pytest.approx(2 / 3)}
    assert found.scores["accuracy"] == pytest.approx(sum(parts.values()) / 2)
    assert found.task_name == "winner, helpful"
    assert set(found.metadata["tasks"]) == {"winner", "helpful"}


@pytest.mark.parametrize("gap", [None, ""])
def test_an_item_without_an_answer_to_one_task_keeps_its_answers_to_the_others(gap):
    full = {1: "x", 2: "y", 3: "x"}
    people = {"ann": {"a": full, "b": full | {3: gap}}, "ben": {"a": full, "b": full}}
    judges = {"gpt": {"a": full, "b": full | {1: gap}}}
    config = MetricConfig(ClassificationScorer(), ["a", "b"], "multitask")
    [found] = score([config], judges, people).popitem()[1]
    assert {task: figures["accuracy"].n for task, figures in found.by_task.items()} == {
        "a": 6,  # three items of two people
        "b": 3,  # of ann the second, of ben the second and the third
    }
    gaps = {gap.why: gap.count for gap in found.figures["accuracy"].left_out}
    assert gaps == {"the judge gave that item no label": 2, "the person's label is missing": 1}


def test_a_task_without_a_figure_is_left_out_of_the_mean():
    found = one(
        ClassificationScorer(), "winner", "helpful", judge="mistral", task_strategy="multitask"
    )
    assert found.scores["accuracy"] == 0
    assert found.figures["accuracy"].left_out[0].why == "the judge gave no label on this task"


def test_several_tasks_as_one_label_must_agree_on_all_of_them():
    found = one(ClassificationScorer(), "winner", "helpful", task_strategy="multilabel")
    assert found.by_human["ann"].value == pytest.approx(2 / 3)
    assert found.by_human["ben"].value == pytest.approx(1 / 3)
    missing = [gap for gap in found.figures["accuracy"].left_out if "missing" in gap.why]
    assert [gap.count for gap in missing] == [2]


def test_the_alt_test_of_several_tasks_as_one_label_compares_sets():
    names = ["hateful", "violent"]

    def person(flip):
        return {
            task: {n: task if (n + at * flip) % 3 else "FALSE" for n in range(40)}
            for at, task in enumerate(names)
        }

    humans = {name: person(flip) for flip, name in enumerate(["ann", "ben", "cem"])}
    config = MetricConfig(AltTestScorer(), names, "multilabel", display_name="it")
    [found] = score([config], {"judge": person(0)}, humans)["it"]
    assert found.metadata["scoring_function"] == "jaccard_similarity"
    assert found.metadata["human_advantage_probabilities"]["ann"] == [1, 1]


# --- people -------------------------------------------------------------------------------------


def test_the_consensus_is_compared_where_the_scorer_knows_one():
    found = one(ClassificationScorer(), "winner", annotator_aggregation="majority_vote")
    # q2 and q3 are ties between A and B, decided for A: alphabetical.
    assert found.scores == {"accuracy": 0.5}
    assert found.annotator_aggregation == "majority_vote"
    assert found.metadata["scoring_method"] == "majority_vote"
    last = ClassificationScorer(tie_rule="last")
    assert one(last, "winner", annotator_aggregation="majority_vote").scores == {"accuracy": 0.5}


def test_texts_are_compared_with_the_best_match():
    found = one(TextSimilarityScorer(), "why", annotator_aggregation="majority_vote")
    assert list(found.by_human) == ["best match"]
    assert found.metadata["scoring_method"] == "best_match"


@pytest.mark.parametrize(
    "scorer", [CohenKappaScorer(), AltTestScorer(AltTestSettings(min_humans=2))]
)
def test_measures_of_agreement_fall_back_and_warn(scorer):
    found = one(scorer, "winner", annotator_aggregation="majority_vote")
    assert "individual_average was used instead of majority_vote" in found.warnings[-1]
    assert found.annotator_aggregation == "individual_average"
    assert found.scores == one(scorer, "winner").scores


def test_too_few_people_are_a_reason():
    humans = {"ann": HUMANS["ann"]}
    found = one(AltTestScorer(), "winner", humans=humans)
    assert all(figure.value is None for figure in found.figures.values())
    reason = next(iter(found.figures.values())).why
    assert reason == (
        "alt_test takes labels of at least 3 people, and of this task there are those of 1"
    )


def test_labels_that_a_scorer_cannot_take_are_a_reason():
    said = {"ann": {"stars": {"q1": 4}}}
    config = MetricConfig(TextSimilarityScorer(), ["stars"])
    [[found]] = score([config], said, said).values()
    assert found.figures["similarity"].why == "text_similarity cannot take labels such as 4"


def test_a_task_that_nobody_labelled_is_a_reason():
    config = MetricConfig(ClassificationScorer(), ["winner"])
    [[found]] = score([config], {"gpt": JUDGES["gpt"]}, {"ann": {}}).values()
    assert found.figures["accuracy"].why == "no person labelled this task"


# --- every scorer -------------------------------------------------------------------------------

ALL = [
    ClassificationScorer(),
    ClassificationScorer("f1", average="macro"),
    CohenKappaScorer(),
    KrippendorffAlphaScorer(),
    AltTestScorer(AltTestSettings(min_instances_per_human=2, min_humans=2)),
    TextSimilarityScorer(),
    SemanticSimilarityScorer(Embedder()),
]


@pytest.mark.parametrize("scorer", ALL, ids=lambda scorer: scorer.scorer_name)
def test_every_result_is_json_and_has_the_scorer_s_figures(scorer):
    found = one(scorer, "winner")
    assert tuple(found.figures) == scorer.figure_names
    assert all(figure.value is not None for figure in found.figures.values())
    assert found.scorer_name == scorer.scorer_name
    written = json.loads(json.dumps(found.as_dict("now"), allow_nan=False))
    assert written["scores"] == found.scores
    nothing = scorer.no_result("gpt", "winner", "single", "because")
    assert tuple(nothing.figures) == scorer.figure_names
    assert nothing.scores.keys() == found.scores.keys()
    json.dumps(nothing.as_dict(), allow_nan=False)


def test_the_alt_test_says_what_it_was_made_with():
    scorer = AltTestScorer(AltTestSettings(0.1, min_instances_per_human=2, min_humans=2))
    found = one(scorer, "winner")
    assert list(found.scores["winning_rate"]) == [
        "0.00", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30",
    ]  # fmt: skip
    assert found.figures["winning_rate"] == found.series["winning_rate"]["0.10"]
    metadata = found.metadata
    assert metadata["epsilon"] == 0.1
    assert metadata["human_advantage_probabilities"].keys() == {"ann", "ben"}
    for name, (judge, _) in metadata["human_advantage_probabilities"].items():
        assert found.by_human[name].value == judge
        assert found.by_human[name].interval == wilson(round(judge * 4), 4)
    assert set(metadata["p_values"]["ann"]) == set(found.scores["winning_rate"])
    assert found.warnings


def test_a_kappa_has_its_band():
    assert one(CohenKappaScorer(), "winner").metadata["interpretation"] == "Slight"


NUMBERS = {"ann": {"stars": {"q1": 5, "q2": 3, "q3": 1}}, "ben": {"stars": {"q1": 4, "q2": 4}}}


@pytest.mark.parametrize(
    "name, options, warned",
    [
        ("cohen_kappa", {}, True),
        ("cohen_kappa", {"weights": "linear"}, False),
        ("krippendorff_alpha", {}, True),
        ("krippendorff_alpha", {"level": "ordinal"}, False),
        ("rank_correlation", {}, False),
    ],
)
def test_numbers_that_are_counted_as_categories_are_warned_of(name, options, warned):
    [found] = score(
        [MetricConfig(make_scorer(name, **options), ["stars"])],
        {"gpt": {"stars": {"q1": 5, "q2": 4, "q3": 2}}},
        NUMBERS,
    ).popitem()[1]
    assert any("4 differs from 5 as much as from 1" in text for text in found.warnings) is warned


def test_categories_are_not_warned_of():
    assert one(CohenKappaScorer(), "winner").warnings == ()


def test_an_empty_text_is_a_missing_label_unless_the_task_is_free_text():
    judge, people = {"q1": "A", "q2": ""}, {"q1": "A", "q2": "A"}
    found = {
        scorer.scorer_name: score(
            [MetricConfig(scorer, ["t"])], {"gpt": {"t": judge}}, {"ann": {"t": people}}
        ).popitem()[1][0]
        for scorer in (ClassificationScorer(), TextSimilarityScorer())
    }
    accuracy = found["classification_accuracy"].figures["accuracy"]
    assert (accuracy.value, accuracy.n) == (1.0, 1)
    assert [gap.why for gap in accuracy.left_out] == ["the judge gave that item no label"]
    similarity = found["text_similarity"].figures["similarity"]
    assert (similarity.value, similarity.n) == (0.5, 2)


def test_with_the_judge_as_one_more_rater():
    people = {"ann": {"t": {1: "A", 2: "B"}}, "ben": {"t": {1: "A", 2: "B"}}}
    judges = {"same": {"t": {1: "A", 2: "B"}}, "other": {"t": {1: "B", 2: "A"}}}
    same, other = score([MetricConfig(KrippendorffAlphaScorer(), ["t"])], judges, people).popitem()[
        1
    ]
    assert same.scores == {"krippendorff_alpha": 1.0, "with_judge": 1.0}
    assert other.scores["krippendorff_alpha"] == 1.0
    assert other.scores["with_judge"] == pytest.approx(1 - 5 * (4 + 4) / 2 / (36 - 18))


def test_with_one_reference_it_is_the_alpha_of_judge_and_reference():
    judge, gold = {1: "A", 2: "B", 3: "B", 4: None}, {1: "A", 2: "B", 3: "A", 4: "A"}
    config = MetricConfig(KrippendorffAlphaScorer(), ["t"])
    [found] = score([config], {"gpt": {"t": judge}}, {"gold": {"t": gold}}).popitem()[1]
    people, both = found.figures["krippendorff_alpha"], found.figures["with_judge"]
    assert (people.value, people.why) == (
        None,
        "agreement among people takes labels of at least two",
    )
    # Of 6 labels of items that both labelled 3 are A and 3 are B; one item of three differs.
    assert both.value == pytest.approx(1 - 5 * 2 / (36 - 18))
    assert [(gap.count, gap.why) for gap in both.left_out] == [(1, "only one person labelled it")]


def test_the_embedding_model_is_named():
    found = one(SemanticSimilarityScorer(Embedder()), "why")
    assert found.metadata["embedding_model"] == "letters"
    assert found.metadata["similarities"]["count"] == 3


@pytest.mark.parametrize("scorer", ALL, ids=lambda scorer: scorer.scorer_name)
def test_people_among_themselves_have_the_same_figure_between_people(scorer):
    found = among_people(MetricConfig(scorer, ["winner"]), HUMANS)
    if scorer.scorer_name == "alt_test":
        assert found is None
    elif scorer.scorer_name == "krippendorff_alpha":
        assert tuple(found.figures) == ("krippendorff_alpha",)
    else:
        assert tuple(found.figures) == scorer.figure_names
        assert found.judge_id == "people among themselves"


def test_figures_of_people_are_those_of_every_two_people():
    config = MetricConfig(ClassificationScorer(), ["winner"])
    assert among_people(config, HUMANS).scores == {"accuracy": 0.5}
    both = MetricConfig(ClassificationScorer(), ["winner", "helpful"], "multitask")
    assert among_people(both, HUMANS).scores == {"accuracy": pytest.approx((0.5 + 1 / 3) / 2)}
    precision = MetricConfig(ClassificationScorer("precision", "yes"), ["helpful"])
    assert among_people(precision, HUMANS).scores == {"precision": 0.5}


def test_a_task_that_people_have_no_figure_of_does_not_cost_the_others_theirs():
    """The alpha of people among themselves is one figure, and a task without any names two."""
    humans = {"ann": {"a": {1: "x", 2: "y"}, "b": {1: 1, 2: 2}}}
    humans["ben"] = {"a": {1: "x", 2: "y"}, "b": {1: 1, 2: 2}}
    scorer = KrippendorffAlphaScorer(level="interval")
    found = among_people(MetricConfig(scorer, ["a", "b"], "multitask"), humans)
    assert found.scores == {"krippendorff_alpha": 1.0}
    assert "is no number" in found.figures["krippendorff_alpha"].left_out[0].why


# --- one's own ----------------------------------------------------------------------------------


class MoreAs(Scorer):
    figure_names = ("more_as",)

    def can_score_task(self, sample_label):
        return isinstance(sample_label, str)

    def compute_score(self, judge_data, human_data, task_name, judge_id, aggregation_mode):
        wrote = judge_data.by_item
        more = [
            wrote[item].count("A") - label.count("A")
            for item, _, label in human_data
            if item in wrote
        ]
        figure = Estimate(sum(more) / len(more), n=len(more))
        return self.result(judge_id, task_name, aggregation_mode, {"more_as": figure})


class Slow(MoreAs):
    """Waits until all judges are waiting: only at once they ever get on."""

    def __init__(self, judges):
        super().__init__("slow")
        self.left, self.everybody = judges, asyncio.Event()

    async def compute_score_async(self, *about):
        self.left -= 1
        if not self.left:
            self.everybody.set()
        async with asyncio.timeout(PATIENCE):
            await self.everybody.wait()
        return super().compute_score(*about)


def test_one_s_own_scorer():
    assert one(MoreAs("more_as"), "winner").scores == {"more_as": 0.25}


def test_one_s_own_scorer_knows_no_consensus():
    found = one(MoreAs("more_as"), "winner", annotator_aggregation="majority_vote")
    assert found.scores == {"more_as": 0.25}
    assert found.warnings[0].startswith("more_as measures how far people agree")


def test_scorers_that_wait_wait_for_all_judges_at_once():
    config = MetricConfig(Slow(len(JUDGES)), ["winner"])
    [results] = score([config], JUDGES, HUMANS).values()
    assert [result.scores["more_as"] for result in results] == [0.25, -1]


def test_in_an_event_loop_scores_are_awaited():
    async def main():
        return await score_async([MetricConfig(MoreAs("m"), ["winner"])], JUDGES, HUMANS)

    assert asyncio.run(main()) == score([MetricConfig(MoreAs("m"), ["winner"])], JUDGES, HUMANS)


def test_what_belongs_to_all_judges_is_written_where_there_is_a_folder(tmp_path):
    class Writing(MoreAs):
        def aggregate_results(self, results, scores_dir, unique_name):
            folder = scores_dir / self.scorer_name / unique_name
            folder.mkdir(parents=True)
            (folder / "all.txt").write_text(" ".join(result.judge_id for result in results))

    config = MetricConfig(Writing("more_as"), ["winner"], display_name="As")
    score([config], JUDGES, HUMANS)
    assert not list(tmp_path.iterdir())
    score([config], JUDGES, HUMANS, tmp_path)
    assert (tmp_path / "more_as" / "As" / "all.txt").read_text() == "gpt mistral"


def test_an_error_of_a_scorer_says_where():
    class Broken(MoreAs):
        def compute_score(self, *about):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        score([MetricConfig(Broken("broken"), ["winner"])], JUDGES, HUMANS)
    assert caught.value.__notes__ == ["while broken scored gpt on winner"]


@pytest.mark.parametrize("method", ["can_score_task", "compute_score"])
def test_a_scorer_that_defines_too_little_says_what(method):
    class Nothing(Scorer):
        if method == "compute_score":

            def can_score_task(self, sample_label):
                return True

    with pytest.raises(NotImplementedError, match=f"Nothing must define {method}"):
        score([MetricConfig(Nothing("nothing"), ["winner"])], JUDGES, HUMANS)


# --- by name ------------------------------------------------------------------------------------


def test_every_scorer_is_found_by_name():
    assert set(SCORERS) >= {
        "classification",
        "cohen_kappa",
        "alt_test",
        "text_similarity",
        "semantic_similarity",
        "krippendorff_alpha",
        "rank_correlation",
    }
    scorer = make_scorer("classification", metric="recall", pos_label="flag", resamples=10, seed=3)
    assert (scorer.scorer_name, scorer.settings.resampling.resamples) == (
        "classification_recall",
        10,
    )
    alt = make_scorer("alt_test", min_humans=2, epsilon=0.15, seed=4)
    assert (alt.min_humans, alt.settings.epsilon, alt.settings.resampling.seed) == (2, 0.15, 4)


@pytest.mark.parametrize(
    "name, options, reason",
    [
        ("bleu", {}, "no scorer is called 'bleu'; there are alt_test, classification"),
        ("cohen_kappa", {"weights": "cubic"}, "weights must be one of linear, quadratic"),
        ("krippendorff_alpha", {"level": "ratio"}, "level must be one of nominal, ordinal"),
        ("classification", {"missing": "guess"}, "missing must be one of drop, wrong"),
        ("classification", {"metric": "auc"}, "metric must be one of"),
        ("alt_test", {"resamples": 0}, "at least one resample"),
    ],
)
def test_what_cannot_be_made_is_an_error(name, options, reason):
    with pytest.raises(ScorerUnknown, match=reason):
        make_scorer(name, **options)


def test_one_s_own_scorer_can_be_made_known(monkeypatch):
    monkeypatch.setattr("judge_eval.stats.registry.SCORERS", known := dict(SCORERS))
    register("more_as", MoreAs)
    register("more_as", MoreAs)
    assert known["more_as"].factory is MoreAs
    assert make_scorer("more_as", scorer_name="m").scorer_name == "m"
    with pytest.raises(ValueError, match="another scorer is called more_as"):
        register("more_as", Slow)
