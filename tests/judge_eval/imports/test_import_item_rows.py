"""Rows about single items: their columns, what may stand beside what, and how files are told."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.core.validation import ConfigInvalid
from judge_eval.imports.formats import read
from judge_eval.imports.mapping import own_names, parse, rows
from judge_eval.imports.row_models import ITEMS, MAIN, ImportRow, LeftOut, Note, RowError
from judge_eval.imports.sources import Record, records
from tests.judge_eval.imports.test_import_round_trip import WRITERS

VOTE = {"item": "7", "voter": "ann", "vote": "pass"}
VERDICT = {"item": "7", "judge": "gpt", "verdict": "flag"}


def rows_of(values, config=None):
    mapping = own_names(ITEMS, tuple(values)) if config is None else parse(config)
    return list(mapping.rows("f", Record(3, values)))


def row_of(values, config=None):
    [row] = rows_of(values, config)
    return row


def single(item="7", **fields):
    return ImportRow("f", 3, item, shape="item", **fields)


def table(text):
    return list(read(io.BytesIO(text.encode()), "v.csv"))


def test_every_field_by_its_own_name():
    at = "2026-11-21T10:00:00+01:00"
    about = {
        "item": 7,
        "prompt": "Tell a joke.",
        "prompt_id": "p1",
        "tags": "short; pun",
        "kind": "text",
        "cluster": "c",
        "generator": "ada",
        "output": "",
        "time": at,
        "metadata": {"latency": 3, "run": {"id": "x"}},
        "metadata.language": "en",
    }
    vote = {"voter": "ann", "vote": "flag", "category": "unsafe", "voted_at": at, "comment": "no"}
    verdict = {"judge": "gpt", "verdict": 0.25, "score": "0.25", "feedback": "Weak."}
    known = {
        "prompt": "Tell a joke.",
        "prompt_id": "p1",
        "tags": ("short", "pun"),
        "kind": "text",
        "cluster": "c",
        "generator_a": "ada",
        "output_a": "",
        "generated_at": datetime(2026, 11, 21, 9, tzinfo=UTC),
        "metadata": {"latency": 3, "run": {"id": "x"}, "language": "en"},
    }
    judged = {"judge": "gpt", "score_a": 0.25, "feedback": "Weak.", "labels": {MAIN: 0.25}}
    voted = {
        "voter": "ann",
        "category": "unsafe",
        "voted_at": datetime(2026, 11, 21, 9, tzinfo=UTC),
        "comment": "no",
        "labels": {MAIN: "flag"},
    }
    assert rows_of(about) == [single(**known)]
    assert rows_of(about | verdict | vote) == [single(**known, **judged), single(**known, **voted)]


def test_others_call_an_item_by_its_id_and_a_generator_a_model():
    assert row_of({"id": 7, "model": "ada", "output": "x"}) == single(
        generator_a="ada", output_a="x"
    )
    assert row_of({"item": "7", "id": "row-1", "output": "x"}) == single(output_a="x")
    error = row_of({"id": "7", "model": True, "output": "x"})
    assert (error.field, error.why[-16:]) == ("generator", "(column 'model')")


def test_answers_to_tasks_are_a_vote_or_a_verdict_by_themselves():
    tasks = {"labels": {"toxic": "no", "stars": 4}, "labels.tags": ["a", "b"]}
    answers = {"toxic": "no", "stars": 4, "tags": ("a", "b")}
    assert row_of({"item": "7", "voter": "ann"} | tasks) == single(voter="ann", labels=answers)
    assert row_of({"item": "7", "judge": "g"} | tasks) == single(judge="g", labels=answers)
    assert row_of(VOTE | tasks).labels == {MAIN: "pass"} | answers
    scored = row_of({"item": "7", "judge": "g", "score": 1} | tasks)
    assert (scored.score_a, scored.labels) == (1.0, answers)


def test_a_score_alone_is_a_verdict():
    assert row_of({"item": "7", "judge": "g", "score": 0.5}).labels == {MAIN: 0.5}


def test_a_failed_verdict_keeps_what_the_judge_wrote():
    row = row_of({"item": "7", "judge": "g", "error": "refused", "feedback": "I cannot."})
    assert row == single(judge="g", feedback="I cannot.", error="refused")


def test_an_item_without_a_name_is_named_by_its_content():
    one = row_of({"prompt": "p", "generator": "ada", "output": "x"})
    assert one.item == row_of({"prompt": "p", "model": "ada", "output": "x", "tags": "t"}).item
    assert one.item != row_of({"prompt": "p", "generator": "ada", "output": "y"}).item
    assert row_of({"output": "x"}).item == row_of({"output": "x", "voter": "a", "vote": 1}).item


@pytest.mark.parametrize(
    "values, field, why",
    [
        ({}, "item", "missing, and neither a prompt nor an output tells which item it is"),
        ({"item": ""}, "item", "missing: every row must name its item"),
        (VERDICT | {"error": "x"}, "error", "stands beside a verdict: it is one or the other"),
        (VERDICT | {"score": 1.5}, "score", "1.5 is not within 0..1"),
        (
            {"item": "7", "judge": "g", "error": "x", "score": 1},
            "score",
            "a failed verdict has none",
        ),
        (VOTE | {"vote": {}}, "vote", None),
        (VOTE | {"time": "2026-11-21T10:00"}, "time", "2026-11-21T10:00:00 names no time zone"),
        (VOTE | {"metadata": "x"}, "metadata", "must be an object of values by name"),
        (VOTE | {"metadata": {"a": "\0"}}, "metadata.a", None),
        ({"item": "7", "labels": {"r": 1}}, "labels", None),
        (VOTE | VERDICT | {"labels": {"r": 1}}, "labels", None),
        ({"item": "7", "voter": "a", "judge": "g", "labels": {"r": 1}}, "labels", None),
    ],
)
def test_what_is_no_row(values, field, why):
    error = row_of(values)
    assert isinstance(error, RowError)
    assert (error.file, error.row, error.field) == ("f", 3, field)
    assert error.why == why or why is None


@pytest.mark.parametrize(
    "values, why",
    [
        (VOTE | {"voter": None}, "a vote without its voter"),
        (VOTE | {"vote": None}, "a voter without a vote"),
        ({"item": "7", "category": "unsafe"}, "a voter without a vote"),
        (VERDICT | {"judge": None}, "a verdict without its judge"),
        ({"item": "7", "feedback": "x"}, "a judge without a verdict"),
    ],
)
def test_a_statement_that_lacks_a_part_is_left_out_and_its_item_kept(values, why):
    row, left_out = rows_of(values)
    assert row == single()
    assert left_out == LeftOut("f", 3, why)


# --- files ----------------------------------------------------------------------------------------


def test_a_column_tells_that_a_file_is_of_single_items():
    assert table("item,voter,vote\n7,ann,yes\n")[0].labels == {MAIN: "yes"}
    assert table("prompt,output,model\np,x,ada\n")[0].shape == "item"
    assert table("prompt,output_a,output_b\np,x,y\n")[0].shape == "pair"
    text = b"id,voter,vote\n7,ann,yes\n"
    [row] = read(io.BytesIO(text), "v.csv", shape=ITEMS)
    assert (row.item, row.labels) == ("7", {MAIN: "yes"})


def test_several_people_and_judges_stand_beside_each_other():
    wide = table("item,output,vote.ann,vote.b y,verdict.gpt\n7,x,yes,,no\n8,y,no,yes,\n")
    *wide, blank = wide
    assert (blank.item, blank.judge, blank.is_blank) == ("8", "gpt", True)
    said = [(row.item, row.voter or row.judge, row.labels[MAIN]) for row in wide]
    assert said == [
        ("7", "gpt", "no"),
        ("7", "ann", "yes"),
        ("8", "ann", "no"),
        ("8", "b y", "yes"),
    ]
    assert [row.output_a for row in wide] == ["x", "x", "y", "y"]


@pytest.mark.parametrize(
    "header, why",
    [
        ("itme,output,voter,vote", "no column is called 'item': is it 'itme'?"),
        ("voter,vote,item,verdict", "beside 'verdict' there is no column 'judge'"),
        ("item,votr,vote", "beside 'vote' there is no column 'voter': is it 'votr'?"),
        ("item,voter,score", "beside 'voter' there is no column 'vote'"),
    ],
)
def test_a_fault_of_the_header_is_said_once(header, why):
    line = ",".join("1" for _ in header.split(","))
    found = table("\n".join([header, *[line] * 5]))
    faults = [item for item in found if isinstance(item, RowError)]
    assert len(faults) == 1
    assert faults[0].why.startswith(why)


def test_columns_that_nothing_is_made_of_are_a_note():
    *_, note = table("item,id,outptu,voter,labels.x,metadata.y\n7,1,x,ann,yes,z\n")
    assert note == Note("v.csv", "not read: 'id', 'outptu': is it 'output'?")


# --- a mapping ------------------------------------------------------------------------------------


def test_a_mapping_of_items():
    config = {
        "item": "key",
        "output": "answer",
        "voter": {"value": "ann"},
        "vote": {"column": "good", "values": {"y": "pass", "n": "flag"}},
        "metadata": {"language": "lang"},
        "time": {"column": "at", "timezone": "UTC"},
    }
    values = {"key": 7, "answer": "x", "good": "y", "lang": "en", "at": "2026-11-21T10:00"}
    assert row_of(values, config) == single(
        output_a="x",
        voter="ann",
        labels={MAIN: "pass"},
        metadata={"language": "en"},
        generated_at=datetime(2026, 11, 21, 10, tzinfo=UTC),
    )
    people = {"item": "key", "voters": {"ann": "a", "bob": "b"}}
    said = [(row.voter, row.labels[MAIN]) for row in rows_of({"key": 7, "a": 1, "b": 2}, people)]
    assert said == [("ann", 1), ("bob", 2)]


def test_mistakes_in_a_mapping_of_items():
    with pytest.raises(ConfigInvalid) as wrong:
        parse({"output": "x", "outptu": "y", "consistent": "z", "metadata": "m"})
    assert [error.path for error in wrong.value.errors] == [
        "mapping.outptu",
        "mapping.consistent",
        "mapping.metadata",
    ]
    assert wrong.value.errors[0].message == "unknown; did you mean 'output'?"


# --- formats --------------------------------------------------------------------------------------

characters = st.characters(codec="utf-8", exclude_characters="\0")
# A CSV file cannot tell an empty text from none.
texts = st.text(characters, min_size=1, max_size=40)
names = texts.filter(str.strip)
tasks = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=8)


@st.composite
def any_rows(draw):
    who = draw(st.sampled_from(["voter", "judge"]))
    said = {"vote" if who == "voter" else "verdict": draw(texts), who: draw(names)}
    about = {"item": draw(names), "prompt": draw(st.none() | texts), "output": draw(texts)}
    return about | said | {f"labels.{task}": draw(texts) for task in draw(st.sets(tasks))}


@given(st.lists(any_rows(), min_size=1, max_size=4))
def test_rows_are_read_alike_from_every_format(given_rows):
    def read_from(name, file):
        found = rows(records(io.BytesIO(file), name), ITEMS, "f")
        return [replace(row, line=0) for row in found]

    lines = "".join(f"{json.dumps(row)}\n" for row in given_rows).encode()
    expected = read_from("f.jsonl", lines)
    assert all(isinstance(row, ImportRow) for row in expected)
    for name, write in WRITERS.items():
        assert read_from(name, write(given_rows)) == expected, name
