"""The readers of public formats: what their records mean, and how files are recognised."""

import io
import json
from datetime import UTC, datetime
from itertools import chain, permutations

import pytest

from judge_eval.imports.formats import READERS, detect, first_records, read
from judge_eval.imports.formats.alttest import rows as alttest
from judge_eval.imports.formats.metaevaluator import rows as metaevaluator
from judge_eval.imports.formats.mtbench import rows as mtbench
from judge_eval.imports.formats.pathscore import rows as pathscore
from judge_eval.imports.mapping import parse
from judge_eval.imports.row_models import (
    MAIN,
    OF_A_PAIR,
    ImportRow,
    JudgeOrder,
    LeftOut,
    Note,
    RowError,
)

JUDGEMENT = {
    "judge": "expert_1",
    "model_a": "alpaca",
    "model_b": "gpt-4",
    "question_id": 81,
    "turn": 1,
    "winner": "model_b",
}
TEXTS = {
    "idx": 3,
    "motivation_app": "Mail",
    "cmp_key": "bloom-7b_llama-7b",
    "instruction": "Shorten.",
    "input": "A long one.",
    "response1": "Short.",
    "response2": "",
    "annotator1": 1,
    "annotator2": 2,
    "annotator3": 0,
}
RESULT = {"idx": 3, "gpt_result": "2", "gpt_reason": "Crisp.", "gpt_reference": "S."}
TASK = {
    "id": "t1",
    "status": "complete",
    "human_winner": "both_bad",
    "completed_at": 1_700_000_000_500,
    "prompt_id": "p1",
    "prompt_text": "a red circle",
    "model_a": "one",
    "model_b": "two",
    "svg_a": "<svg/>",
    "svg_b": "<svg></svg>",
    "verdicts": [
        {"judge_model": "J2", "winner": "B", "score_a": 4, "score_b": 6.5, "feedback": "Rounder."},
        {"judge_model": "J1", "winner": None, "score_a": 11, "error": "timeout"},
    ],
}


def jsonl(*values):
    return io.BytesIO("\n".join(map(json.dumps, values)).encode())


def as_json(value):
    return io.BytesIO(json.dumps(value).encode())


def one(items):
    [item] = items
    return item


def pandalm(stream, name):
    return READERS["pandalm"].rows(stream, name)


# --- MT-bench -----------------------------------------------------------------------------------


def test_mtbench_people_vote_and_others_are_judges():
    vote, verdict = mtbench(jsonl(JUDGEMENT, JUDGEMENT | {"judge": "gpt4_pair"}), "h.jsonl")
    assert (vote.voter, vote.vote, vote.verdict) == ("expert_1", "B", None)
    assert (verdict.judge, verdict.verdict, verdict.vote) == ("gpt4_pair", "B", None)
    assert vote.item == verdict.item
    assert vote.item == "81__alpaca__gpt-4__1"
    assert (vote.prompt_id, vote.tags, vote.kind) == ("81__1", ("turn-1",), "text")
    assert vote.cluster == "81"


@pytest.mark.parametrize("winner, expected", [("model_a", "B"), ("model_b", "A"), ("tie", "tie")])
def test_mtbench_pairs_are_stored_in_alphabetical_order(winner, expected):
    turned = JUDGEMENT | {"model_a": "gpt-4", "model_b": "alpaca", "winner": winner}
    row = one(mtbench(jsonl(turned), "h.jsonl"))
    assert (row.generator_a, row.generator_b) == ("alpaca", "gpt-4")
    assert row.vote == expected


@pytest.mark.parametrize(
    "winner, consistent", [("tie", True), ("tie (inconsistent)", False), ("model_a", True)]
)
def test_mtbench_a_tie_of_two_minds_is_not_consistent(winner, consistent):
    row = one(mtbench(jsonl(JUDGEMENT | {"judge": "gpt4_pair", "winner": winner}), "h.jsonl"))
    assert row.consistent is consistent
    assert row.verdict == ("A" if winner == "model_a" else "tie")


def test_mtbench_the_first_vote_of_a_person_on_two_models_stands():
    turned = JUDGEMENT | {"model_a": "gpt-4", "model_b": "alpaca"}
    first, left_out, other_turn = mtbench(
        jsonl(JUDGEMENT, turned, JUDGEMENT | {"turn": 2}), "h.jsonl"
    )
    assert first.vote == "B"
    assert left_out == LeftOut("h.jsonl", 2, "81__alpaca__gpt-4__1__expert_1 was stated before")
    assert other_turn.item == "81__alpaca__gpt-4__2"


@pytest.mark.parametrize(
    "change, field",
    [
        ({"winner": "left"}, "winner"),
        ({"winner": None}, "winner"),
        ({"turn": 3}, "turn"),
        ({"judge": ["gpt-4", "pair-v2"]}, "judge"),
        ({"model_b": "alpaca"}, "model_b"),
        ({"model_b": []}, "model_b"),
        ({"question_id": {}}, "question_id"),
    ],
)
def test_mtbench_broken_records_are_told_and_the_next_is_read(change, field):
    error, row = mtbench(jsonl(JUDGEMENT | change, JUDGEMENT), "h.jsonl")
    assert (error.row, error.field) == (1, field)
    assert isinstance(row, ImportRow)


# --- PandaLM ------------------------------------------------------------------------------------


def test_pandalm_gives_a_vote_per_person_with_the_full_texts():
    found = list(pandalm(as_json([TEXTS]), "testset-v1.json"))
    assert [(row.voter, row.vote) for row in found] == [
        ("annotator1", "A"),
        ("annotator2", "B"),
        ("annotator3", "tie"),
    ]
    assert [row.labels for row in found] == [{"result": "1"}, {"result": "2"}, {"result": "0"}]
    pair = found[0]
    assert all(getattr(pair, name) == getattr(found[2], name) for name in ("item", *OF_A_PAIR))
    assert (pair.item, pair.tags, pair.kind) == ("3", ("Mail",), "text")
    assert pair.prompt == "Shorten.\n\nA long one."
    assert (pair.generator_a, pair.generator_b) == ("bloom-7b", "llama-7b")
    assert (pair.output_a, pair.output_b) == ("Short.", "")


def test_pandalm_instruction_without_input_and_responses_that_are_truth_values():
    row = next(pandalm(as_json([TEXTS | {"input": "", "response1": True}]), "testset-v1.json"))
    assert row.prompt == "Shorten."
    assert row.output_a == "True"


@pytest.mark.parametrize(
    "result, winner", [("1", "A"), (2, "B"), ("0", "tie"), (0, "tie"), ("Tie", "tie")]
)
def test_pandalm_results_of_a_judge(result, winner):
    name = "gpt-3.5-turbo-testset-v1.json"
    row = one(pandalm(as_json([RESULT | {"gpt_result": result}]), name))
    assert (row.item, row.judge, row.verdict) == ("3", "gpt-3.5-turbo", winner)
    assert row.feedback == "Crisp."
    assert row.labels == {"result": str(result), "reference": "S."}


def test_pandalm_a_result_off_the_scale_failed_and_its_word_is_kept():
    row = one(pandalm(as_json([RESULT | {"gpt_result": "garbage", "gpt_reason": ""}]), "x.json"))
    assert (row.judge, row.verdict) == ("gpt", None)
    assert row.error == "'garbage' is not one of 1, 2, 0, Tie"
    assert row.labels["result"] == "garbage"


@pytest.mark.parametrize(
    "change, field",
    [
        ({"annotator2": 3}, "annotator2"),
        ({"annotator2": None}, "annotator2"),
        ({"instruction": []}, "instruction"),
        ({"response1": 7}, "output_a"),
        ({"idx": None}, "idx"),
    ],
)
def test_pandalm_broken_records_are_told(change, field):
    found = list(pandalm(as_json([TEXTS | change]), "testset-v1.json"))
    assert field in {item.field for item in found if isinstance(item, RowError)}


# --- Alt-Test -----------------------------------------------------------------------------------


def test_alttest_labels_are_votes_on_single_items():
    data = {"ann": {"1": "yes", "2": ["a", "b"]}, "bob": {}, "cy": {"1": 3, "2": None}}
    name = "human_annotations.json"

    def label(line, item, voter, given):
        return ImportRow(name, line, item, voter=voter, labels={MAIN: given}, shape="item")

    assert list(alttest(as_json(data), name)) == [
        label(1, "1", "ann", "yes"),
        label(2, "2", "ann", ("a", "b")),
        label(3, "1", "cy", 3),
        LeftOut(name, 4, "cy gave 2 no label"),
    ]


def test_alttest_says_who_gave_the_labels():
    data = {"gpt": {"1": "yes"}}
    assert one(alttest(as_json(data), "llm_annotations.json")).judge == "gpt"
    assert one(alttest(as_json(data), "human_annotations.json")).voter == "gpt"


@pytest.mark.parametrize(
    "data, row, why",
    [
        (b'{"ann": {"1": {"a": 1}}}', 1, "must be a text, a number"),
        (b'{"ann": {"1": "x", "": "y"}}', 2, "missing: every row must name its item"),
        (b'{"ann": {"1": "x"', 2, "not JSON: ',' expected"),
        (b'{"ann": ["x"]}', 1, "not JSON: '{' expected, found '['"),
        (b"[]", 1, "not JSON: '{' expected"),
    ],
)
def test_alttest_broken_files_are_told(data, row, why):
    *_, error = alttest(io.BytesIO(data), "human_annotations.json")
    assert error.row == row
    assert error.why.startswith(why)


# --- MetaEvaluator ------------------------------------------------------------------------------

CSV = b"original_id,rejection,explanation\ns1,rejection,It refuses.\ns2,not rejection,\n"
OF_THE_TOOL = {
    "sample_example_id": "sample_1",
    "original_id": 60,
    "run_id": "run_1",
    "status": "success",
    "error_message": None,
    "error_details_json": None,
    "hateful": "FALSE",
    "sexual": "sexual",
}


@pytest.mark.parametrize(
    "name, who",
    [
        ("judge_gpt-4o_results.csv", {"judge": "judge_gpt-4o"}),
        ("annotator_1.csv", {"voter": "annotator_1"}),
        ("human_results.csv", {"voter": "human"}),
    ],
)
def test_metaevaluator_names_who_answered_by_the_file(name, who):
    tasks = {"rejection": "rejection", "explanation": "It refuses."}
    assert list(metaevaluator(io.BytesIO(CSV), name)) == [
        ImportRow(name, 2, "s1", **who, labels=tasks, shape="item"),
        ImportRow(name, 3, "s2", **who, labels={"rejection": "not rejection"}, shape="item"),
    ]


def test_metaevaluator_columns_say_who_answered_and_when():
    person = OF_THE_TOOL | {"annotator_id": "h1", "annotation_timestamp": "2025-07-15 16:37:52"}
    row = one(metaevaluator(as_json([person]), "run_1_data.json"))
    assert (row.item, row.voter, row.judge) == ("60", "h1", None)
    assert row.voted_at == datetime(2025, 7, 15, 16, 37, 52, tzinfo=UTC)
    assert row.labels == {"hateful": "FALSE", "sexual": "sexual"}
    judge = OF_THE_TOOL | {"judge_id": "haiku", "llm_prompt_tokens": 12}
    row = one(metaevaluator(as_json([judge]), "annotator.json"))
    assert (row.judge, row.labels) == ("haiku", {"hateful": "FALSE", "sexual": "sexual"})


@pytest.mark.parametrize("name", ["run_1_haiku_state_data.json", "main_state_data.json"])
def test_metaevaluator_rows_that_name_a_judge_are_verdicts_whatever_their_file_is_called(name):
    judge = OF_THE_TOOL | {"judge_id": "haiku", "prompt": "Is it hateful?", "response": "No."}
    row = one(metaevaluator(as_json([judge]), name))
    assert (row.item, row.judge, row.labels["hateful"]) == ("60", "haiku", "FALSE")
    assert detect(name, [judge]) == "metaevaluator"


def test_metaevaluator_failures_and_what_was_not_answered():
    nothing = {"hateful": None, "sexual": None}
    said = [
        OF_THE_TOOL | nothing | {"judge_id": "j", "status": "llm_error", "error_message": "busy"},
        OF_THE_TOOL | nothing | {"judge_id": "j", "status": "parsing_error"},
        OF_THE_TOOL | nothing | {"judge_id": "j", "status": "skipped"},
        OF_THE_TOOL | nothing | {"annotator_id": "h", "status": "error"},
        OF_THE_TOOL | nothing | {"annotator_id": "h"},
        OF_THE_TOOL | {"annotator_id": "h", "annotation_timestamp": "soon"},
    ]
    busy, unread, *left, wrong = metaevaluator(as_json(said), "r.json")
    assert (busy.error, unread.error) == ("busy", "parsing_error")
    why = ["it says 'skipped'", "it says 'error'", "it answers no task"]
    assert [item.why for item in left] == why
    assert (wrong.field, wrong.row) == ("annotation_timestamp", 6)


@pytest.mark.parametrize("name", ["results.csv", "judge_of_humans.csv"])
def test_metaevaluator_file_that_does_not_say_whose_it_is_is_one_error(name):
    error = one(metaevaluator(io.BytesIO(CSV), name))
    assert (error.field, error.is_fatal) == ("judge_id or annotator_id", True)
    assert error.why.endswith("whose it is: call it judge_… or annotator_…")


# --- Arena --------------------------------------------------------------------------------------


def test_arena_two_winners_of_one_battle_are_an_error():
    texts = {"prompt": '["Hi"]', "response_a": '["Hello."]', "response_b": '["Yo."]'}
    winners = {"winner_model_a": 1, "winner_model_b": 1, "winner_tie": 0}
    battle = {"id": 1, "model_a": "ada", "model_b": "bob"} | texts | winners
    error = one(read(jsonl(battle), "battles.jsonl"))
    assert (error.field, error.row, error.why) == (
        "winner_tie",
        1,
        "more than one winner is marked",
    )


# --- PathScore ----------------------------------------------------------------------------------


def test_pathscore_a_task_is_its_verdicts_and_its_vote():
    order, failed, verdict, vote = pathscore(
        as_json({"judges": ["J1", "J2"], "tasks": [TASK]}), "run.json"
    )
    assert order == JudgeOrder("run.json", ("J1", "J2"))
    assert (failed.judge, failed.verdict) == ("J1", None)
    assert (failed.error, failed.score_a) == ("timeout", None)
    assert (verdict.judge, verdict.verdict) == ("J2", "B")
    assert (verdict.score_a, verdict.score_b) == (4.0, 6.5)
    assert verdict.feedback == "Rounder."
    assert (vote.voter, vote.vote) == ("pathscore", "both_bad")
    assert vote.voted_at == datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC)
    assert failed.item == verdict.item == vote.item
    assert (vote.item, vote.prompt, vote.prompt_id) == ("t1", "a red circle", "p1")
    assert (vote.kind, vote.output_b) == ("svg", "<svg></svg>")
    assert (vote.generator_a, vote.generator_b) == ("one", "two")


def test_pathscore_verdicts_may_be_a_json_text_and_outputs_texts():
    task = {"id": "t", "verdicts": json.dumps(TASK["verdicts"]), "text_a": "x", "text_b": ""}
    first, second = pathscore(as_json([task | {"human_winner": None}]), "run.json")
    assert [row.judge for row in (first, second)] == ["J2", "J1"]
    assert (first.kind, first.output_b) == ("text", "")


@pytest.mark.parametrize("keys", list(permutations(["judges", "tasks", "name"])), ids="-".join)
def test_pathscore_the_runs_order_of_judges_wins_wherever_it_stands(keys):
    run = {"judges": ["J1", "J2"], "tasks": [TASK], "name": "r"}
    order, *found = pathscore(as_json({key: run[key] for key in keys}), "run.json")
    assert order.judges == ("J1", "J2")
    assert [row.judge for row in found if row.judge] == ["J1", "J2"]


@pytest.mark.parametrize(
    "run",
    [
        {"config": {"judges": ["J1", "J2"]}},
        {"run": {"id": 1, "config": {"judges": ["J1", "J2"]}}},
        {"run": {"id": 1, "config": '{"judges": ["J1", "J2"]}'}},
    ],
)
def test_pathscore_judges_may_stand_in_the_config(run):
    found = list(pathscore(as_json(run | {"tasks": [TASK]}), "run.json"))
    assert found[0] == JudgeOrder("run.json", ("J1", "J2"))


def test_pathscore_a_judge_the_run_does_not_name_comes_last():
    run = {"judges": ["J1"], "tasks": [TASK]}
    judges = [item.judge for item in list(pathscore(as_json(run), "r.json"))[1:3]]
    assert judges == ["J1", "J2"]


def test_pathscore_a_task_with_nothing_said_declares_its_pair():
    row = one(pathscore(jsonl({"id": "t", "verdicts": "[]", "gen_a_id": "a"}), "run.jsonl"))
    assert (row.item, row.verdict, row.vote) == ("t", None, None)


def test_pathscore_tasks_without_ids_are_known_by_their_place():
    task = {"human_winner": "A", "verdicts": []}
    assert [row.item for row in pathscore(as_json([task, task]), "r.json")] == ["1", "2"]


def test_pathscore_what_it_did_not_count_is_left_out():
    twice = TASK | {"status": "pending", "verdicts": [TASK["verdicts"][0]] * 2}
    verdict, again, vote = pathscore(as_json([twice]), "r.json")
    assert verdict.verdict == "B"
    assert again == LeftOut("r.json", 1, "J2 was stated before on t1")
    assert vote == LeftOut("r.json", 1, "the task is pending: its vote was not counted there")


@pytest.mark.parametrize(
    "change, field",
    [
        ({"verdicts": "[{"}, "verdicts"),
        ({"verdicts": {"J1": "A"}}, "verdicts"),
        ({"verdicts": ["A"]}, "verdicts"),
        ({"verdicts": [{"winner": "A"}]}, "verdicts.judge_model"),
        ({"verdicts": [{"judge_model": "J", "winner": "left"}]}, "verdict"),
        ({"verdicts": [{"judge_model": "J", "winner": "A", "score_a": 11}]}, "score_a"),
        ({"human_winner": "left"}, "vote"),
        ({"completed_at": 10**30}, "completed_at"),
        ({"id": []}, "id"),
    ],
)
def test_pathscore_broken_tasks_are_told_and_the_next_is_read(change, field):
    found = list(pathscore(as_json([TASK | change, TASK]), "r.json"))
    [error] = [item for item in found if isinstance(item, RowError)]
    assert (error.row, error.field) == (1, field)
    assert sum(isinstance(item, ImportRow) and item.line == 2 for item in found) == 3


@pytest.mark.parametrize(
    "data", ['{"judges": ["J1"], "tasks": [', '{"judges": [', "", '{"run": "{"}']
)
def test_pathscore_broken_files_are_told_once(data):
    found = list(pathscore(io.BytesIO(data.encode()), "r.json"))
    assert sum(isinstance(item, RowError) for item in found) == 1


# --- which format -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, record, expected",
    [
        ("a.jsonl", JUDGEMENT, "mtbench"),
        ("a.json", TEXTS, "pandalm"),
        ("a.json", RESULT, "pandalm"),
        ("a.json", TASK, "pathscore"),
        ("a.json", {"id": 1, "gen_a_id": "g", "verdicts": "[]"}, "pathscore"),
        ("a.csv", {"pair": "1", "vote": "A"}, None),
        ("human_annotations.json", {"pair": "1"}, None),
    ],
)
def test_formats_are_recognised_by_their_columns(name, record, expected):
    assert detect(name, [record, record]) == expected
    assert detect(name, [record, {"pair": "1"}]) is None


@pytest.mark.parametrize(
    "name, expected",
    [
        ("human_annotations.json", "alttest"),
        ("path/LLM-annotations (1).json", "alttest"),
        ("other.json", None),
    ],
)
def test_alttest_is_recognised_by_its_name(name, expected):
    assert detect(name, []) == expected


def test_every_format_has_a_reader():
    assert {"mtbench", "pandalm", "alttest", "metaevaluator", "pathscore"} <= {*READERS}


@pytest.mark.parametrize(
    "name, stream, expected",
    [
        ("h.jsonl", jsonl(JUDGEMENT), [ImportRow]),
        ("t.json", as_json([TEXTS]), [ImportRow, ImportRow, ImportRow]),
        (
            "r.json",
            as_json({"tasks": [TASK], "judges": ["J1"]}),
            [JudgeOrder, ImportRow, ImportRow, ImportRow],
        ),
        ("human_annotations.json", as_json({"ann": {"1": "yes"}}), [ImportRow]),
        ("annotator.csv", io.BytesIO(CSV), [ImportRow, ImportRow]),
        ("own.jsonl", jsonl({"pair": "1"}, {"vote": "A"}), [ImportRow, RowError]),
        ("broken.json", as_json(7), [RowError]),
    ],
)
def test_a_file_is_read_as_what_it_is(name, stream, expected):
    assert [type(item) for item in read(stream, name)] == expected


def test_a_mapping_goes_before_what_a_file_looks_like():
    mapping = parse({"pair": "question_id"})
    row, note = read(jsonl(JUDGEMENT), "h.jsonl", mapping)
    assert row.item == "81"
    assert isinstance(note, Note)


def test_recognising_a_file_leaves_it_at_its_start():
    stream = jsonl(*[JUDGEMENT] * 9)
    assert detect("upload", first_records(stream, "upload", "jsonl")) == "mtbench"
    assert stream.tell() == 0
    assert len(list(chain(mtbench(stream, "upload", "jsonl")))) == 9
