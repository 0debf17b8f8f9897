"""What a report shall hold: every mistake is named by its place."""

import json

import pytest

from humanjudge.core.validation import ConfigInvalid
from judge_eval.stats import SCORERS, registry
from reports.scores.config import Reach, default_metrics, parse, read_config

TASKS = ("winner", "rejection", "explanation", "helpful")

CUSTOM = """
from judge_eval.stats import Scorer, register


class Custom(Scorer):
    def __init__(self, size=1):
        super().__init__("custom")
        self.size = size


class Wild(Scorer):
    def __init__(self):
        super().__init__("../wild")


def nothing():
    return None


register("custom_of_a_module", Custom)
"""


def metric(**fields):
    return {"scorer": "classification", "task_names": ["winner"]} | fields


def complaints(data, reach=None):
    with pytest.raises(ConfigInvalid) as refused:
        parse(data, TASKS, reach or Reach())
    return [str(error) for error in refused.value.errors]


def test_everything_that_can_be_said_of_a_metric():
    asked = metric(
        options={"metric": "f1", "pos_label": "A", "average": "binary", "seed": 7, "resamples": 9},
        task_names=["winner", "helpful"],
        task_strategy="multitask",
        annotator_aggregation="majority_vote",
        display_name="F1 of both",
    )
    [found] = parse({"metrics": [asked]}, TASKS).metrics
    assert found.scorer.settings.metric == "f1"
    assert found.scorer.settings.pos_label == "A"
    resampling = found.scorer.settings.resampling
    assert (resampling.seed, resampling.resamples) == (7, 9)
    assert found.task_names == ("winner", "helpful")
    assert (found.task_strategy, found.annotator_aggregation) == ("multitask", "majority_vote")
    assert found.unique_name == "F1 of both"


def test_the_options_of_the_alt_test():
    options = {
        "epsilon": 0.1,
        "multiplicative": True,
        "min_humans_per_item": 3,
        "min_instances_per_human": 20,
        "min_humans": 2,
    }
    [found] = parse([metric(scorer="alt_test", options=options)], TASKS).metrics
    assert (found.scorer.settings.epsilon, found.scorer.settings.multiplicative) == (0.1, True)
    assert found.scorer.settings.min_humans_per_item == 3
    assert found.scorer.settings.min_instances_per_human == 20
    assert found.scorer.min_humans == 2


@pytest.mark.parametrize("task, digits", [("rejection", "22e76eaf"), ("explanation", "74d08617")])
def test_names_hold_the_md5_of_their_tasks(task, digits):
    [found] = parse([metric(task_names=[task])], TASKS).metrics
    assert found.unique_name == f"classification_accuracy_1tasks_{digits}_single"


def test_the_winner_is_what_is_scored_where_no_task_is_named():
    [found] = parse([{"scorer": "cohen_kappa", "options": None}], TASKS).metrics
    assert found.task_names == ("winner",)


@pytest.mark.parametrize(
    "data, complaint",
    [
        (7, "must be an object with a list of metrics"),
        ("classification", "must be an object with a list of metrics"),
        ({"metrics": []}, "metrics: must have at least 1, has 0"),
        ({"metrics": {}}, "metrics: must be a list, not an object"),
        ({"metrics": [7]}, "metrics[0]: must be text or an object, not a number"),
        ({"metrics": [metric()], "metrik": 1}, "metrik: unknown"),
        ([metric(), {"task_names": ["winner"]}], "metrics[1].scorer: is missing"),
        ([metric(scorer=4)], "metrics[0].scorer: must be text, not a number"),
        (
            [metric(), metric(scorer="alttest")],
            "metrics[1].scorer: no scorer is called 'alttest'; did you mean 'alt_test'?",
        ),
        ([metric(epsilon=0.1)], "metrics[0].epsilon: unknown"),
        (
            [metric(options={"resamples": 10**9})],
            "metrics[0].options.resamples: must be at most 100,000",
        ),
        ([metric(options=[1])], "metrics[0].options: must be an object"),
        ([metric(options={"average": "medium"})], "metrics[0].options: classification: "),
        ([metric(options={"epsilon": 1})], "metrics[0].options: classification: "),
        (
            [metric(scorer="alt_test", options={"min_humans_per_item": 1})],
            "metrics[0].options: alt_test: min_humans_per_item must be at least 2",
        ),
        (
            [metric(task_names=["winner", "winer"])],
            "metrics[0].task_names[1]: this run has no labels of the task 'winer'; there are ",
        ),
        ([metric(task_names="winner")], "metrics[0].task_names: must be a list, not text"),
        (
            [metric(task_names=["winner", "helpful"])],
            "metrics[0]: task_strategy single takes exactly one task, not 2",
        ),
        (
            [metric(task_strategy="multitask")],
            "metrics[0]: task_strategy multitask takes two or more tasks, not 1",
        ),
        (
            [metric(task_strategy="all")],
            "metrics[0].task_strategy: 'all' must be one of single, multitask, multilabel",
        ),
        (
            [metric(annotator_aggregation="majority")],
            "metrics[0].annotator_aggregation: 'majority' must be one of",
        ),
        ([metric(display_name="../up")], "metrics[0]: '../up' cannot be a name"),
        ([metric(display_name="..")], "metrics[0]: '..' cannot be a name"),
        ([metric(display_name="a/b")], "metrics[0]: 'a/b' cannot be a name"),
        ({"metrics": [metric()], "vega_config": {}}, "vega_config: charts take a Matplotlib style"),
        ({"metrics": [metric()], "style": 7}, "style"),
        ({"style": "# ours\ntext.usetex: True"}, "style: line 2: text.usetex: this key cannot"),
        ({"metrics": [metric()], "modules": ["os"]}, "modules: code is named on the command line"),
        ([metric(scorer="os.getcwd")], "metrics[0].scorer: no scorer is called 'os.getcwd'"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(data, complaint):
    assert any(text.startswith(complaint) for text in complaints(data)), complaints(data)


def test_all_mistakes_are_found_at_once():
    found = complaints([metric(scorer="x"), metric(options=3), metric(task_names=["y"])])
    assert sorted(text.split(":")[0] for text in found) == [
        "metrics[0].scorer",
        "metrics[1].options",
        "metrics[2].task_names[0]",
    ]


def test_two_metrics_of_one_name_ask_for_a_display_name():
    told = "metrics: two metrics are called classification_accuracy_1tasks_978f6f60_single: give "
    assert complaints([metric(), metric()]) == [f"{told}one of them a display_name"]
    [first, second] = parse([metric(), metric(display_name="again")], TASKS).metrics
    assert first.unique_name != second.unique_name


def test_an_embedder_is_made_of_its_options():
    asked = metric(scorer="semantic_similarity", options={"embedder": {"provider": "p"}})

    class Embedder:
        model = "stub"

        def __call__(self, texts):
            return [[1.0] for _ in texts]

    made = []

    def embed(options, path):
        made.append((options, path))
        return Embedder()

    [found] = parse([asked], TASKS, Reach(embed=embed)).metrics
    assert made == [({"provider": "p"}, "metrics[0].options.embedder")]
    assert found.scorer.embed.model == "stub"
    wrong = metric(scorer="semantic_similarity", options={"embedder": "p"})
    assert complaints([wrong], Reach(embed=embed)) == [
        "metrics[0].options.embedder: must be an object"
    ]


@pytest.mark.parametrize(
    "humans, names",
    [
        (0, ["classification_accuracy", "cohens_kappa"]),
        (1, ["classification_accuracy", "cohens_kappa"]),
        (2, ["classification_accuracy", "cohens_kappa", "krippendorff_alpha"]),
        (3, ["classification_accuracy", "cohens_kappa", "alt_test", "krippendorff_alpha"]),
    ],
)
def test_what_is_scored_where_nobody_said_what(humans, names):
    assert [each.scorer.scorer_name for each in default_metrics(humans)] == names
    assert parse({"part": "tag:animals"}, TASKS).metrics == (), "left to what suits the run"
    assert parse(None, TASKS) == parse({}, TASKS), "so does a configuration that is not there"


# --- as files -----------------------------------------------------------------------------------


def written(folder, text, name="metrics.yaml"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_yaml_and_json_say_the_same(tmp_path):
    data = {"metrics": [metric(options={"metric": "f1", "pos_label": "A"})]}
    yaml = "metrics:\n  - scorer: classification\n    task_names: [winner]\n"
    yaml += "    options: {metric: f1, pos_label: A}\n"
    assert read_config(written(tmp_path, yaml)) == data
    assert read_config(written(tmp_path, json.dumps(data), "metrics.json")) == data


@pytest.mark.parametrize(
    "text, why",
    [
        ("metrics: [", "cannot be read"),
        ("metrics: 1\nmetrics: 2\n", "the key 'metrics' is given twice"),
        ("metrics: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("? [a, b]\n: 1\n? [a, b]\n: 2\n", "cannot be read"),
        ("\x00", "cannot be read"),
    ],
)
def test_yaml_that_is_not_plain_is_refused(tmp_path, text, why):
    with pytest.raises(ConfigInvalid, match=why):
        read_config(written(tmp_path, text))


def test_json_with_a_key_twice_is_refused(tmp_path):
    with pytest.raises(ConfigInvalid, match="is given twice"):
        read_config(written(tmp_path, '{"metrics": 1, "metrics": 2}', "metrics.json"))


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigInvalid, match="cannot be read: No such file"):
        read_config(tmp_path / "no.yaml")


def test_a_style_sheet_is_read_from_beside_the_file(tmp_path):
    written(tmp_path, "font.size: 12", "house.mplstyle")
    path = written(tmp_path, "metrics: []\nstyle: house.mplstyle\n")
    assert read_config(path) == {"metrics": [], "style": "font.size: 12"}
    with pytest.raises(ConfigInvalid, match=r"^style: "):
        read_config(written(tmp_path, "style: gone.mplstyle\n"))


@pytest.fixture
def _registry(monkeypatch):
    monkeypatch.setattr("judge_eval.stats.registry.SCORERS", dict(SCORERS))


@pytest.mark.usefixtures("_registry")
def test_code_is_found_by_its_dotted_path_beside_the_file(tmp_path):
    written(tmp_path, CUSTOM, "dotted_scorers.py")
    reach = Reach(tmp_path)
    asked = metric(scorer="dotted_scorers.Custom", options={"size": 4})
    [found] = parse([asked], TASKS, reach).metrics
    assert (found.scorer.scorer_name, found.scorer.size) == ("custom", 4)
    for name, why in {
        "dotted_scorers.Nobody": "'dotted_scorers.Nobody' cannot be imported",
        "no_such_module.X": "'no_such_module.X' cannot be imported",
        "dotted_scorers.__name__": "'dotted_scorers.__name__' is no scorer",
        "dotted_scorers.nothing": "dotted_scorers.nothing makes no Scorer",
        "dotted_scorers.Wild": "dotted_scorers.Wild makes no Scorer with a scorer_name of letters",
    }.items():
        [told] = complaints([metric(scorer=name)], reach)
        assert told.startswith(f"metrics[0].scorer: {why}")
    [told] = complaints([metric(scorer="dotted_scorers.Custom", options={"sise": 1})], reach)
    assert told.startswith("metrics[0].options: ")


@pytest.mark.usefixtures("_registry")
def test_a_module_registers_its_scorers(tmp_path):
    written(tmp_path, CUSTOM, "registering_scorers.py")
    parse({"modules": ["registering_scorers"]}, TASKS, Reach(tmp_path))
    assert registry.SCORERS["custom_of_a_module"]().scorer_name == "custom"
    [told] = complaints({"modules": ["no_such_module"]}, Reach(tmp_path))
    assert told.startswith("modules[0]: 'no_such_module' cannot be imported")
    [told] = complaints({"modules": "os"}, Reach(tmp_path))
    assert told.startswith("modules: must be a list")
