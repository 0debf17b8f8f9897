"""Columns into rows: the mapping, its mistakes, and what may stand beside what in one row."""

import io
import json
import re
from datetime import UTC, datetime

import pytest

from humanjudge.core.validation import ConfigInvalid
from judge_eval.imports.mapping import own_names, parse, rows
from judge_eval.imports.row_models import ITEMS, MAIN, PAIRS, ImportRow, LeftOut, Note, RowError
from judge_eval.imports.sources import Record, records

VOTE = {"pair": "7", "voter": "ann", "vote": "A"}
VERDICT = {"pair": "7", "judge": "gpt", "verdict": "B"}


def row_of(values, config=None):
    mapping = own_names(PAIRS, tuple(values)) if config is None else parse(config)
    [row] = mapping.rows("f", Record(3, values))
    return row


def problems(config):
    with pytest.raises(ConfigInvalid) as caught:
        parse(config)
    return {error.path.removeprefix("mapping."): error.message for error in caught.value.errors}


# --- our own names ------------------------------------------------------------------------------


def test_every_field_by_its_own_name():
    row = row_of(
        {
            "pair": 7,
            "prompt": "Draw.",
            "prompt_id": "p1",
            "tags": "icon; logo",
            "kind": "SVG",
            "generator_a": "one",
            "generator_b": "two",
            "output_a": "<svg/>",
            "output_b": "",
            "judge": "gpt",
            "verdict": "tie",
            "score_a": "5",
            "score_b": 6,
            "feedback": "Even.",
            "consistent": "false",
            "voter": "ann",
            "vote": "model_b",
            "voted_at": "2026-11-21T10:00:00+01:00",
            "comment": "ok",
            "left_side": "b",
            "seq": 12,
        }
    )
    assert row == ImportRow(
        "f",
        3,
        "7",
        prompt="Draw.",
        prompt_id="p1",
        tags=("icon", "logo"),
        kind="svg",
        generator_a="one",
        generator_b="two",
        output_a="<svg/>",
        output_b="",
        judge="gpt",
        verdict="tie",
        score_a=5.0,
        score_b=6.0,
        feedback="Even.",
        consistent=False,
        voter="ann",
        vote="B",
        voted_at=datetime(2026, 11, 21, 9, tzinfo=UTC),
        comment="ok",
        left_side="B",
    )


def test_a_row_may_only_declare_its_pair():
    assert row_of({"pair": "7", "output_a": "x"}) == ImportRow("f", 3, "7", output_a="x")


def test_labels_stand_in_an_object_or_in_columns_of_their_own():
    nested = row_of(VOTE | {"labels": {"rating": 4, "why": None, "tags": ["a"]}})
    assert nested.labels == {"rating": 4, "tags": ("a",)}
    flat = row_of(VERDICT | {"labels.rating": "4", "labels.why": None})
    assert flat.labels == {"rating": "4"}


@pytest.mark.parametrize(
    "values, field, why",
    [
        ({}, "pair", "missing, and neither a prompt nor outputs tell which pair it is"),
        ({"pair": ""}, "pair", "missing: every row must name its pair"),
        (VERDICT | {"error": "x"}, "error", "stands beside a verdict: it is one or the other"),
        (
            {"pair": "7", "judge": "g", "error": "x", "score_b": 1},
            "score_b",
            "a failed verdict has none",
        ),
        (
            {"pair": "7", "judge": "g", "pick_ab": "A"},
            "pick_ba",
            "missing: the other order's pick is there",
        ),
        (
            {"pair": "7", "judge": "g", "pick_ab": "A", "pick_ba": "A", "consistent": False},
            "consistent",
            "the picks A and A say otherwise",
        ),
        (VOTE | {"vote": "left"}, "vote", "'left' is not one of A, B, tie, both_bad"),
        (VOTE | {"kind": "video"}, "kind", "'video' is not one of svg, text, code, image"),
        (VOTE | {"labels": {"r": {}}}, "labels.r", None),
        (VOTE | {"labels": "x"}, "labels", "must be an object of answers by task"),
        ({"pair": "7", "labels": {"r": 1}}, "labels", None),
        (VOTE | VERDICT | {"labels": {"r": 1}}, "labels", None),
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
        ({"pair": "7", "left_side": "A"}, "a voter without a vote"),
        (VERDICT | {"judge": None}, "a verdict without its judge"),
        ({"pair": "7", "score_a": 3}, "a judge without a verdict"),
    ],
)
def test_a_statement_that_lacks_a_part_is_left_out_and_its_item_kept(values, why):
    row, left_out = own_names(PAIRS, tuple(values)).rows("f", Record(3, values))
    assert row == ImportRow("f", 3, "7")
    assert left_out == LeftOut("f", 3, why)


def test_an_empty_cell_of_a_judge_is_told_beside_its_item():
    row, blank = own_names(PAIRS, ("pair", "judge", "verdict")).rows(
        "f", Record(3, VERDICT | {"verdict": None})
    )
    assert row == ImportRow("f", 3, "7")
    assert blank == ImportRow("f", 3, "7", judge=VERDICT["judge"], is_blank=True)


def test_what_a_mapping_takes_for_nothing_is_no_empty_cell():
    spec = {"column": "c", "values": {"1": "A", "?": None}}
    for mapping in (
        {"pair": "id", "judges": {"j": spec}},
        {"pair": "id", "judge": {"value": "j"}, "verdict": spec},
    ):
        for raw, are_blank in (("?", [False]), ("", [False, True]), (None, [False, True])):
            found = parse(mapping).rows("f", Record(1, {"id": 7, "c": raw}))
            assert [row.is_blank for row in found] == are_blank


def test_a_failed_verdict_keeps_what_the_judge_wrote():
    row = row_of({"pair": "7", "judge": "g", "error": "refused", "feedback": "I cannot."})
    assert row == ImportRow("f", 3, "7", judge="g", feedback="I cannot.", error="refused")


def test_an_error_says_where_it_is():
    assert str(row_of(VOTE | {"vote": "D"})).startswith("f:3: vote: 'D' is not one of")
    assert str(RowError("f", 3, None, "not JSON")) == "f:3: not JSON"


# --- a mapping ----------------------------------------------------------------------------------


def test_a_mapping_reads_what_it_names_and_nothing_else():
    config = {
        "pair": "idx",
        "voter": {"value": "first"},
        "vote": {"column": "annotator1", "values": {"1": "A", "2": "model_b", "0": "tie"}},
        "labels": {"category": "cat", "stars": {"column": "s", "type": "number"}},
    }
    raw = {"idx": 3, "annotator1": 2, "cat": "poem", "s": "4", "judge": "someone", "pair": "no"}
    assert row_of(raw, config) == ImportRow(
        "f", 3, "3", voter="first", vote="B", labels={"category": "poem", "stars": 4}
    )


def test_a_value_that_a_mapping_does_not_list_is_an_error_that_names_the_column():
    config = {"pair": "idx", "judge": {"value": "g"}}
    config["verdict"] = {"column": "result", "values": {"1": "A", "2": "B", "0": "tie"}}
    error = row_of({"idx": 1, "result": "Tie"}, config)
    assert error.field == "verdict"
    assert error.why == "'Tie' is not one of 1, 2, 0 (column 'result')"


def test_a_mapped_value_may_mean_nothing():
    config = {
        "pair": "idx",
        "voter": {"value": "ann"},
        "vote": {"column": "v", "values": {"x": "A", "skip": None}},
    }
    assert row_of({"idx": 1, "v": "skip"}, config).vote is None
    assert row_of({"idx": 1, "v": " "}, config).vote is None
    assert row_of({"idx": 1}, config).vote is None


@pytest.mark.parametrize("raw, expected", [(True, "A"), (1, "B"), (1.0, "B"), ("1", "B")])
def test_values_are_looked_up_by_their_text(raw, expected):
    config = {
        "pair": "idx",
        "voter": {"value": "ann"},
        "vote": {"column": "v", "values": {"true": "A", "1": "B"}},
    }
    assert row_of({"idx": 1, "v": raw}, config).vote == expected


def test_separators_zones_and_types():
    config = {
        "pair": "id",
        "voter": "who",
        "vote": "v",
        "voted_at": {"column": "t", "timezone": "+02:00"},
        "tags": {"column": "g", "separator": "|"},
        "labels": {
            "topics": {"column": "x", "separator": ","},
            "safe": {"column": "y", "type": "truth"},
            "raw": "z",
        },
    }
    raw = {"id": "1", "who": "ann", "v": "A", "t": "2026-11-21 11:00", "g": "a;b|c"}
    row = row_of(raw | {"x": "p, q", "y": "TRUE", "z": "4"}, config)
    assert row.voted_at == datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert row.tags == ("a;b", "c")
    assert row.labels == {"topics": ("p", "q"), "safe": True, "raw": "4"}


def test_a_time_without_a_zone_needs_one_in_the_mapping():
    config = {"pair": "id", "voter": "who", "vote": "v", "voted_at": "t"}
    error = row_of({"id": 1, "who": "ann", "v": "A", "t": "2026-11-21T09:00:00"}, config)
    assert error.why == "2026-11-21T09:00:00 names no time zone (column 't')"


@pytest.mark.parametrize(
    "config, path, why",
    [
        ([], "mapping", "must be an object of columns by field"),
        ({"pair": "p", "votes": "v"}, "votes", "unknown; did you mean 'voters'?"),
        ({"pair": 3}, "pair", "must be an object, not a number"),
        ({"pair": {}}, "pair", "needs one of column and value"),
        ({"pair": {"column": "a", "value": "b"}}, "pair", "needs one of column and value"),
        ({"pair": ""}, "pair.column", "is empty"),
        ({"pair": {"column": 1}}, "pair.column", "must be text, not a number"),
        ({"pair": {"value": "7"}}, "pair.value", "cannot stand here: it is the same for every row"),
        (
            {"pair": "p", "vote": {"column": "v", "values": {"1": "left"}}},
            'vote.values["1"]',
            "'left' is not one of A, B, tie, both_bad",
        ),
        (
            {"pair": "p", "vote": {"column": "v", "values": []}},
            "vote.values",
            "must be an object, not a list",
        ),
        (
            {"pair": "p", "vote": {"column": "v", "colour": 1}},
            "vote.colour",
            "unknown; did you mean 'column'?",
        ),
        ({"pair": "p", "judge": {"value": ""}}, "judge.value", "must not be empty"),
        (
            {"pair": "p", "kind": {"value": "x"}},
            "kind.value",
            "'x' is not one of svg, text, code, image",
        ),
        (
            {"pair": "p", "vote": {"column": "v", "timezone": "UTC"}},
            "vote.timezone",
            "does not belong here",
        ),
        (
            {"pair": "p", "voted_at": {"column": "v", "timezone": "CET"}},
            "voted_at.timezone",
            "must be UTC or an offset such as +01:00",
        ),
        (
            {"pair": "p", "tags": {"column": "v", "separator": ""}},
            "tags.separator",
            "is empty",
        ),
        ({"pair": "p", "labels": "cat"}, "labels", "must be an object of columns by task"),
        (
            {"pair": "p", "labels": {"r": {"column": "x", "type": "int"}}},
            "labels.r.type",
            "'int' must be one of text, number, truth",
        ),
        ({"pair": "p", "labels": {"r": 1}}, "labels.r", None),
    ],
)
def test_a_mistake_in_a_mapping_is_named_by_its_path(config, path, why):
    found = problems(config)
    assert list(found) == [path]
    assert found[path] == why or why is None


def test_every_mistake_is_told_at_once():
    config = {"votes": "v", "kind": {"value": "x"}}
    assert list(problems(config)) == ["votes", "kind.value"]
    told = r"^mapping\.votes: unknown; .*\nmapping\.kind\.value: 'x' is"
    with pytest.raises(ConfigInvalid, match=told):
        parse(config)


# --- a whole file -------------------------------------------------------------------------------


def test_errors_stand_among_the_rows_they_were_found_between():
    stream = io.BytesIO(b"pair,voter,vote\n1,ann,A\n2,ann\n3,ann,D\n4,ann,B\n")
    found = list(rows(records(stream, "v.csv"), PAIRS, "v.csv"))
    assert [type(item) for item in found] == [ImportRow, RowError, RowError, ImportRow]
    assert [found[1].row, found[2].row, found[3].line] == [3, 4, 5]


def test_a_misspelt_column_is_an_error_and_not_a_file_without_votes():
    stream = io.BytesIO(b'{"idx": 1}\n{"idx": 2}\n')
    mapping = parse({"pair": "idx", "voter": {"value": "a"}, "vote": "winer"})
    *good, error = rows(records(stream, "v.jsonl"), mapping, "v.jsonl")
    assert len(good) == 2
    assert error == RowError("v.jsonl", 2, None, "no record has a column 'winer'", is_fatal=True)


def test_a_column_that_some_records_lack_is_no_error():
    stream = io.BytesIO(b'{"idx": 1}\n{"idx": 2, "winner": "A"}\n')
    mapping = parse({"pair": "idx", "voter": {"value": "a"}, "vote": "winner"})
    first, second = rows(records(stream, "v.jsonl"), mapping, "v.jsonl")
    assert (first.vote, second.vote) == (None, "A")


def table(text):
    return list(rows(records(io.BytesIO(text.encode()), "v.csv"), PAIRS, "v.csv"))


def test_columns_that_nothing_is_made_of_are_a_note_behind_the_rows():
    row, note = table("pair,Prompt,voter,vote,labels.sure,seq\n7,Why?,ann,A,yes,3\n")
    assert row.labels == {"sure": "yes"}
    assert note == Note("v.csv", "not read: 'Prompt', 'seq': is it 'prompt'?")
    assert [type(item) for item in table("pair,voter,vote\n7,ann,A\n")] == [ImportRow]


def test_of_many_and_long_columns_some_are_named():
    columns = ",".join(f"{n:02}{'x' * 50}" for n in range(25))
    note = table(f"pair,{columns}\n7{',' * 25}\n")[-1]
    assert note.text.count("'") == 2 * 20
    assert note.text.endswith(f"'19{'x' * 38}', and more")


def test_a_record_of_nothing_but_unknown_columns_names_them():
    unknown = [Record(n, {"id": 7, "who": "ann"}) for n in (1, 2, 3)]
    error, *others, row = rows([*unknown, Record(4, {"pair": 7})], PAIRS, "f")
    assert (error.row, [other.row for other in others]) == (1, [2, 3])
    assert error.why.startswith("unknown columns: 'id', 'who'; expected: pair,")
    assert row.item == "7"


@pytest.mark.parametrize(
    "header, why",
    [
        ("Pair,voter,vote", "no column is called 'pair': is it 'Pair'?"),
        ("pairs,prompt,voter,vote", "no column is called 'pair': is it 'pairs'?"),
        ("voter,vote,output_a", "no column says which pair a row is about: neither pair, nor"),
        ("pair,votr,vote", "beside 'vote' there is no column 'voter': is it 'votr'?"),
        ("pair,voter,feedback", "beside 'voter' there is no column 'vote'"),
        ("pair,verdict,feedback", "beside 'verdict' there is no column 'judge'"),
    ],
)
def test_a_fault_of_the_header_is_said_once(header, why):
    line = ",".join("A" for _ in header.split(","))
    found = table("\n".join([header, *[line] * 5]))
    faults = [item for item in found if isinstance(item, RowError)]
    assert len(faults) == 1
    assert faults[0].row == 2
    assert faults[0].why.startswith(why)
    assert faults[0].why.endswith("(so with every row that has these columns)")


def test_rows_of_a_file_without_ids_are_of_one_pair_where_their_content_is():
    header = "prompt,generator_a,generator_b,output_a,output_b,voter,vote,tags\n"
    found = table(f"{header}p,x,y,1,2,ann,A,t\np,x,y,1,2,bob,B,\np,x,y,1,3,ann,A,\n")
    one, two, other = (row.item for row in found)
    assert one == two != other
    mapping = parse({"prompt": "q", "voter": "who", "vote": "pick"})
    [mapped] = rows([Record(1, {"q": "p", "who": "ann", "pick": "A"})], mapping, "f")
    assert mapped.vote == "A"
    assert len(mapped.item) == 32


def test_several_judges_stand_beside_each_other():
    header = "pair,prompt,cluster,verdict.gpt,verdict.x y,voter,vote"
    wide = table(f"{header}\n7,p,c,A,,ann,B\n8,p,c,A,tie,,\n")
    blank = [row for row in wide if row.is_blank]
    assert [(row.item, row.judge) for row in blank] == [("7", "x y")]
    wide = [row for row in wide if not row.is_blank]
    said = [(row.item, row.verdict and (row.judge, row.verdict), bool(row.vote)) for row in wide]
    assert said == [
        ("7", None, True),
        ("7", ("gpt", "A"), False),
        ("8", ("gpt", "A"), False),
        ("8", ("x y", "tie"), False),
    ]
    assert {(row.prompt, row.cluster) for row in wide} == {("p", "c")}


def test_judges_as_columns_are_mapped_by_their_names():
    spec = {"column": "c1", "values": {"1": "A", "2": "B", "0": "tie", "?": None}}
    mapping = parse({"pair": "id", "judges": {"gpt": spec, "claude": "c2"}})
    records = [Record(1, {"id": 7, "c1": "0", "c2": "b"}), Record(2, {"id": 8, "c1": "?"})]
    found = list(rows(records, mapping, "f"))
    said = [(row.judge, row.verdict) for row in found[:2]]
    assert said == [("gpt", "tie"), ("claude", "B")]
    assert found[2].verdict is None
    with pytest.raises(ConfigInvalid) as wrong:
        parse({"pair": "id", "judges": {"gpt": {"column": "c", "type": "text"}}, "judgs": {}})
    assert str(wrong.value) == (
        "mapping.judgs: unknown; did you mean 'judges'?\n"
        "mapping.judges.gpt.type: does not belong here"
    )


def test_columns_that_are_not_used_can_be_told():
    mapping = parse({"pair": "idx", "labels": {"c": "cat"}})
    assert mapping.unused(["idx", "cat", "seq", "labels.x"]) == ["seq", "labels.x"]
    columns = ["pair", "labels", "labels.x", "x", "hash"]
    assert own_names(PAIRS, tuple(columns)).unused(columns) == ["x", "hash"]


NESTED = {"id": 1, "output": "x", "input": {"question": "Why?"}, "scores": {"human": 1}}


@pytest.mark.parametrize(
    "record, lost, prompt",
    [
        (NESTED, "nothing is read of 'input', 'scores'", "input.question"),
        (NESTED | {"prompt": "p", "input": "more"}, "nothing is read of 'scores'", "prompt"),
        ({"id": 1, "output": "x", "question": "Why?"}, "nothing is read of 'question'", "question"),
    ],
)
def test_what_holds_prompts_or_votes_is_not_passed_over(record, lost, prompt):
    error, left_out = rows([Record(1, record), Record(2, record)], ITEMS, "f")
    assert error.why.startswith(lost)
    proposed = re.search(r"may be: (.*) \(so", error.why)[1]
    assert json.loads(proposed)["prompt"] == prompt
    assert lost in left_out.why
    # A mapping reads what it names, and the rest is left on purpose.
    row, *_ = rows([Record(1, record)], parse(json.loads(proposed)), "f")
    assert row.prompt == ("p" if prompt == "prompt" else "Why?")


def test_other_columns_and_nested_values_beside_a_prompt_are_noted():
    record = {"id": 1, "output": "x", "prompt": "p", "question": "q", "extra": {"a": 1}}
    row, note = rows([Record(1, record)], ITEMS, "f")
    assert (row.prompt, note.text) == ("p", "not read: 'question', 'extra'")


@pytest.mark.parametrize("config", [{"vote": "who[0"}, {"rows": "answers[].{a: b"}])
def test_a_mistyped_expression_is_no_name_of_a_column(config):
    mapping = parse({"item": "id", "output": "output", "voter": {"value": "ann"}, **config})
    *_, error = rows([Record(1, {"id": 7, "output": "x"})], mapping, "f")
    assert error.is_fatal
    [text] = config.values()
    assert f"no record has a column {text!r}" in error.why
    assert "and it is no expression: " in error.why


def test_what_baselines_said_elsewhere_is_left_out_of_our_own_columns():
    def judges(shape, **values):
        names = ["always-first", "random", "always-pass", "always-left-copy", "longer-wins", "j"]
        records = [Record(n, {"judge": name, **values}) for n, name in enumerate(names)]
        return [row.judge for row in rows(records, shape, "f") if isinstance(row, ImportRow)]

    assert judges(PAIRS, pair="7", verdict="A") == ["always-pass", "always-left-copy", "j"]
    judged = judges(ITEMS, item="7", verdict="pass")
    assert judged == ["always-first", "always-left-copy", "longer-wins", "j"]


def test_single_items_may_be_mapped_by_either_name():
    mapping = parse({"id": "key", "output": "text", "model": "by"})
    [row] = rows([Record(1, {"key": 7, "text": "x", "by": "ada"})], mapping, "f")
    assert (row.item, row.generator_a) == ("7", "ada")


def test_a_threshold_says_which_single_items_pass():
    spec = {"column": "s", "threshold": 0.5}
    mapping = parse({"item": "id", "judges": {"j": spec}})
    records = [Record(n, {"id": n, "s": s}) for n, s in enumerate((0.2, "0.5", None))]
    assert [row.labels.get(MAIN) for row in rows(records, mapping, "f")][:2] == ["flag", "pass"]
    with pytest.raises(ConfigInvalid, match="larger: does not belong here"):
        parse({"item": "id", "vote": spec | {"larger": "A"}, "voter": "w"})
