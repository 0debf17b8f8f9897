"""What people voted as data for trainers and annotation tools: each is read by its reader.

`datasets` reads what trl trains on; the columns and types of trl are those that its documentation
gives for preference and unpaired preference data. `argilla` reads its own records. Label Studio's
reader is too large to install here, so its tasks are held against the documented format.
"""

import io
import json
import re
import warnings
from pathlib import Path

import pytest

from judge_eval.exports.files import FORMATS
from judge_eval.exports.training import majority_of
from judge_eval.imports.formats import read
from tests.helpers.imports import import_run, imported, pair, run_of, verdict, vote
from tests.makers import make_project, pairs_of
from voting.models import Entry, Voter

pytestmark = pytest.mark.django_db

AT = "2026-03-04T05:06:07.000008Z"
CHAT = [{"role": "user", "content": "Hi"}]
DOCS = Path(__file__).resolve().parents[3] / "docs/exporting.md"


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """Read an export as `datasets.load_dataset("json", ...)` does, without any network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import datasets

        datasets.disable_progress_bars()

    def load(run, name):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(FORMATS[name].pieces(run)), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return datasets.load_dataset(
                "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
            )

    return load


def exported(run, name):
    text = "".join(FORMATS[name].pieces(run))
    if FORMATS[name].content_type == "application/json":
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines()]


def a_run_of_pairs(**fields):
    """Six pairs on which people say: A of 3, B, tie, both bad, nothing for sure, nothing."""
    return imported(
        *(pair(n, **fields) for n in range(1, 7)),
        vote(1, "ann", "A", comment="It is shorter.", voted_at=AT),
        vote(1, "bob", "A"),
        vote(1, "cy", "B", comment="It is longer."),
        vote(2, "ann", "B"),
        vote(3, "ann", "tie"),
        vote(4, "ann", "both_bad"),
        vote(5, "ann", "A"),
        vote(5, "bob", "B"),
        verdict(1, "x", "A", feedback="Right and short."),
        verdict(1, "y", "B", feedback="Nicer."),
        verdict(2, "x", "tie"),
        {"pair": "p3", "judge": "x", "error": "no reply"},
    )


def single_items(kind, said, **options):
    return imported(
        *({"item": f"i{n}", "output": f"Answer {n}", "prompt": "Q"} for n in range(len(said))),
        *({"item": f"i{n}", "voter": "ann", "vote": each} for n, each in enumerate(said)),
        *({"item": f"i{n}", "judge": "x", "verdict": each} for n, each in enumerate(said)),
        vote_kind=kind,
        **options,
    )


@pytest.mark.parametrize("choices", [[], ["A", "B"], ["A", "A", "B", "tie"], [""]])
def test_half_is_no_majority(choices):
    assert majority_of(choices) is None


# --- trainers -------------------------------------------------------------------------------------


def test_pairs_with_a_preferred_output_are_preference_data(loaded):
    data = loaded(a_run_of_pairs(), "dpo")
    assert {name: data.features[name].dtype for name in ("prompt", "chosen", "rejected")} == {
        "prompt": "string",
        "chosen": "string",
        "rejected": "string",
    }
    assert [row["item"] for row in data] == ["p1", "p2"]
    first, second = data
    assert first == {
        "prompt": "Question 1",
        "chosen": "Answer 1 of ada",
        "rejected": "Answer 1 of bob",
        "item": "p1",
        "agreement": 2 / 3,
        "n": 3,
    }
    assert (second["chosen"], second["rejected"]) == ("Answer 2 of bob", "Answer 2 of ada")


def test_conversations_go_as_messages_and_all_texts_beside_them(loaded):
    whole = [*CHAT, {"role": "assistant", "content": "Hello 1"}]
    run = imported(
        pair(1, prompt=json.dumps(CHAT)),
        pair(2, output_a=json.dumps(whole), prompt="Hi"),
        vote(1, "ann", "A"),
        vote(2, "ann", "B"),
    )
    data = loaded(run, "dpo")
    # trl: a column of messages, each with a role and a content.
    for name in ("prompt", "chosen", "rejected"):
        assert {*data.features[name].feature} == {"role", "content"}
    one, two = data
    assert one["prompt"] == CHAT
    assert one["chosen"] == [{"role": "assistant", "content": "Answer 1 of ada"}]
    assert (two["prompt"], two["rejected"]) == (CHAT, whole[1:])
    assert loaded(run, "kto")[0]["completion"] == one["chosen"]


def test_outputs_are_true_or_false(loaded):
    data = loaded(a_run_of_pairs(), "kto")
    types = {name: data.features[name].dtype for name in ("prompt", "completion", "label")}
    assert types == {"prompt": "string", "completion": "string", "label": "bool"}
    assert [(row["completion"], row["label"]) for row in data] == [
        ("Answer 1 of ada", True),
        ("Answer 1 of bob", False),
        ("Answer 2 of ada", False),
        ("Answer 2 of bob", True),
        ("Answer 4 of ada", False),
        ("Answer 4 of bob", False),
    ]
    assert (data[0]["agreement"], data[0]["n"]) == (2 / 3, 3)
    items = loaded(single_items("pass_flag", ["pass", "flag"]), "kto")
    assert [(row["completion"], row["label"]) for row in items] == [
        ("Answer 0", True),
        ("Answer 1", False),
    ]


def test_words_and_ratings_are_no_preference():
    for kind, said in {"category": ["spam", "pass"], "rating": [1, 5]}.items():
        run = single_items(kind, said)
        assert exported(run, "kto") == exported(run, "dpo") == []
        assert [row["majority"] for row in exported(run, "judge-training")] == list(map(str, said))


def test_a_judge_learns_what_most_people_say_and_why(loaded):
    data = loaded(a_run_of_pairs(), "judge-training")
    assert [row["majority"] for row in data] == ["A", "B", "tie", "both_bad"]
    assert data[0] == {
        "item": "p1",
        "prompt": "Question 1",
        "outputs": ["Answer 1 of ada", "Answer 1 of bob"],
        "majority": "A",
        "share": 2 / 3,
        "n": 3,
        "reason": "It is shorter.",
        "judge_reason": "Right and short.",
    }


def test_only_votes_of_people_that_count_train_anything():
    run = a_run_of_pairs()
    items = {item.external_id: item for item in pairs_of(run)}
    Entry.objects.filter(item=items["p1"], choice="B").update(excluded=True)
    Entry.objects.filter(item=items["p2"], kind="vote").update(unblinded=True)
    items["p4"].unusable = "a curator left it out"
    items["p4"].save()
    assert [(row["item"], row["agreement"], row["n"]) for row in exported(run, "dpo")] == [
        ("p1", 1.0, 2)
    ]
    assert {row["item"] for row in exported(run, "kto")} == {"p1"}


def test_outputs_that_are_not_here_train_nothing():
    run = imported(vote(1, "ann", "A"))
    assert [exported(run, name) for name in ("dpo", "kto", "judge-training")] == [[], [], []]


# --- annotation tools -----------------------------------------------------------------------------


def controls():
    """The tags of the labelling configs that docs/exporting.md shows: what, name, of which."""
    text = DOCS.read_text()
    tags = re.findall(r"<(\w+) name=\"(\w+)\"(?: toName=\"([\w,]+)\")?", text)
    return {(tag.lower(), name, to) for tag, name, to in tags}


RESULTS = {"pairwise": "selected", "choices": "choices", "rating": "rating", "textarea": "text"}


def assert_as_documented(task, names):
    """A task as on labelstud.io/guide/task_format and /guide/predictions, of the config in docs."""
    known = controls()
    assert task.keys() == {"data", "annotations", "predictions"}
    assert task["data"].keys() == names
    assert all(isinstance(value, str) for value in task["data"].values())
    for answer in (*task["annotations"], *task["predictions"]):
        assert len({result["id"] for result in answer["result"]}) == len(answer["result"]) > 0
        for result in answer["result"]:
            assert result["value"].keys() == {RESULTS[result["type"]]}
            if result["from_name"] != "answer":  # what this is depends on what is asked
                assert (result["type"], result["from_name"], result["to_name"]) in known
            assert all(each in task["data"] for each in result["to_name"].split(","))


def values(answers):
    return [[result["value"] for result in answer["result"]] for answer in answers]


def test_pairs_are_tasks_of_a_pairwise_project():
    tasks = exported(a_run_of_pairs(), "label-studio")
    for task in tasks:
        assert_as_documented(task, {"item", "prompt", "left", "right", "left_model", "right_model"})
    first, _, third, fourth, _, last = tasks
    assert first["data"]["left"] == "Answer 1 of ada"
    assert values(first["annotations"]) == [
        [{"selected": "left"}, {"text": ["It is shorter."]}],
        [{"selected": "left"}],
        [{"selected": "right"}, {"text": ["It is longer."]}],
    ]
    assert [each["model_version"] for each in first["predictions"]] == ["x", "y"]
    assert values(third["annotations"]) == [[{"choices": ["tie"]}]]
    assert values(fourth["annotations"]) == [[{"choices": ["both_bad"]}]]
    assert third["predictions"] == last["annotations"] == []


@pytest.mark.parametrize(
    "kind, said, expected",
    [
        ("pass_flag", ["pass", "flag"], [{"choices": ["pass"]}, {"choices": ["flag"]}]),
        ("category", ["spam", "a;b"], [{"choices": ["spam"]}, {"choices": ["a;b"]}]),
        ("rating", [4, 1], [{"rating": 4}, {"rating": 1}]),
        ("labels", [["x", "y"], []], [{"choices": ["x", "y"]}, {"choices": []}]),
        ("text", ["Right, but long.", "So"], [{"text": ["Right, but long."]}, {"text": ["So"]}]),
    ],
)
def test_single_items_are_tasks_with_their_answers(kind, said, expected):
    tasks = exported(single_items(kind, said), "label-studio")
    for task, value in zip(tasks, expected, strict=True):
        assert_as_documented(task, {"item", "prompt", "output", "model"})
        assert values(task["annotations"]) == values(task["predictions"]) == [[value]]


@pytest.fixture(scope="module")
def argilla():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import argilla

        return argilla


def records(argilla, run, tmp_path):
    from argilla.records._io import JsonIO

    path = tmp_path / "records.json"
    path.write_text("".join(FORMATS["argilla"].pieces(run)), encoding="utf-8")
    return JsonIO._records_from_json(path)


def test_argilla_reads_its_records(argilla, tmp_path):
    run = a_run_of_pairs()
    first, second, *_, last = records(argilla, run, tmp_path)
    assert first.id == "p1"
    assert first.fields.to_dict()["response_b"] == "Answer 1 of bob"
    answers = [response.value for response in first.responses["answer"]]
    assert (answers, len({r.user_id for r in first.responses["answer"]})) == (["A", "A", "B"], 3)
    assert [r.value for r in first.responses["comment"]] == ["It is shorter.", "It is longer."]
    # Judges are of two minds on the first pair, and there is one of them on the second.
    assert list(first.suggestions) == []
    [suggestion] = second.suggestions
    assert (suggestion.value, suggestion.agent, suggestion.score) == ("tie", "x", 1.0)
    assert list(last.responses) == []
    assert last.metadata.to_dict() == {"model_a": "ada", "model_b": "bob"}


@pytest.mark.parametrize(
    "kind, said, expected",
    [
        ("pass_flag", ["flag"], "flag"),
        ("rating", [4], 4),
        ("labels", [["x", "y"]], ["x", "y"]),
        ("text", ["Right, but long."], "Right, but long."),
    ],
)
def test_argilla_has_the_type_of_each_answer(argilla, tmp_path, kind, said, expected):
    [record] = records(argilla, single_items(kind, said), tmp_path)
    [response] = record.responses["answer"]
    [suggestion] = record.suggestions
    assert response.value == suggestion.value == expected
    assert suggestion.question_name == "answer"


@pytest.mark.parametrize("name", ["dpo", "argilla", "rows"])
def test_pairs_are_imported_again(name):
    run = a_run_of_pairs()
    lines, end = "".join(FORMATS[name].pieces(run)), FORMATS[name].ending.rpartition(".")[2]
    items = read(io.BytesIO(lines.encode()), f"run.{end}")
    back = run_of(import_run(make_project(), "Back", items))
    [one, *_] = pairs_of(back)
    assert {one.a.output, one.b.output} == {"Answer 1 of ada", "Answer 1 of bob"}
    assert {each.noun for each in (run.queue, back.queue)} == {"pair"}
    assert Entry.objects.filter(queue=back.queue_id, kind="vote").count() == (
        2 if name == "dpo" else 8
    )


def test_people_are_in_all_of_them_by_pseudonym():
    run = a_run_of_pairs()
    Voter.objects.filter(external_id="ann").update(name="Zzz Name")
    for name in ("judge-training", "label-studio", "argilla"):
        assert "zzz" not in "".join(FORMATS[name].pieces(run)).lower()


def test_tasks_for_label_studio_come_back_with_the_same_people():
    run = a_run_of_pairs()
    text = "".join(FORMATS["label-studio"].pieces(run)).encode()
    back = import_run(make_project(), "Back", read(io.BytesIO(text), "tasks.json"))
    assert back.errors == []

    def votes_in(queue):
        votes = Entry.objects.filter(kind=Entry.Kind.VOTE, queue=queue)
        return sorted(votes.values_list("voter__external_id", "voter__pseudonym", "choice"))

    before = [(pseudonym, choice) for _, pseudonym, choice in votes_in(run.queue)]
    after = [(name, choice) for name, _, choice in votes_in(run_of(back).queue)]
    assert set(after) <= set(before)
    assert len(after) > 0
