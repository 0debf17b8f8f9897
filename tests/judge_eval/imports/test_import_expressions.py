"""Values inside records: by a column's name, or by an expression that may not explode."""

import time

import pytest

from judge_eval.imports.expressions import Expression, TooMuch, paths_of
from judge_eval.imports.mapping import fits, parse
from judge_eval.imports.row_models import ImportRow, LeftOut, RowError
from judge_eval.imports.sources import Record

ARENA = {
    "id": "b0",
    "model_a": "x",
    "model_b": "y",
    "winner": "model_b",
    "conversation_a": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Ho"}]},
    ],
    "conversation_b": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "He"}],
}
PAIR = {"pair": "id", "generator_a": "model_a", "generator_b": "model_b"}


def rows_of(config, record):
    return list(parse(config).rows("f", Record(3, record)))


def vote_of(spec, **record):
    [row] = rows_of({"pair": "id", "voter": {"value": "ann"}, "vote": spec}, {"id": 1, **record})
    return row.vote if isinstance(row, ImportRow) else row.why


def test_expressions_reach_into_conversations():
    [row] = rows_of(
        PAIR
        | {"prompt": "conversation_a[:-1]", "output_a": "conversation_a[-1].content"}
        | {"output_b": "conversation_b[-1].content", "voter": {"value": "u"}, "vote": "winner"},
        ARENA,
    )
    assert (row.prompt, row.output_a, row.output_b, row.vote) == ("Hi", "Ho", "He", "B")


def test_several_people_of_one_record_are_several_rows():
    record = {"id": 7, "responses": [{"user": "ann", "value": "A"}, {"user": "bob", "value": "B"}]}
    config = {"pair": "id", "rows": "responses[].{voter: user, vote: value}"}
    rows = rows_of(config | {"voter": "voter", "vote": "vote"}, record)
    assert [(row.item, row.voter, row.vote) for row in rows] == [
        ("7", "ann", "A"),
        ("7", "bob", "B"),
    ]
    assert rows_of(config, {"id": 7, "responses": []}) == []


@pytest.mark.parametrize(
    "spec, record, vote",
    [
        ({"scores": ["a", "b"]}, {"a": 8, "b": 5}, "A"),
        ({"scores": ["s.a", "s.b"]}, {"s": {"a": 3, "b": 9}}, "B"),
        ({"scores": ["a", "b"], "tie_within": 0.5}, {"a": 6.5, "b": 6}, "tie"),
        ({"one_hot": {"A": "wa", "B": "wb", "tie": "wt"}}, {"wa": 0, "wb": "1", "wt": 0}, "B"),
        ({"one_hot": {"A": "wa", "B": "wb"}}, {"wa": True, "wb": False}, "A"),
        ({"column": "p", "threshold": 1.5}, {"p": 1.0000048}, "A"),
        ({"column": "p", "threshold": 1.5}, {"p": "1,9"}, "B"),
        ({"column": "p", "threshold": 0}, {"p": -2}, "A"),
        ({"column": "p", "threshold": 0, "tie_within": 1}, {"p": 1}, "tie"),
        ({"column": "p", "threshold": 0, "larger": "A"}, {"p": 3}, "A"),
    ],
)
def test_winners_are_made_of_numbers(spec, record, vote):
    assert vote_of(spec, **record) == vote


def test_no_number_is_no_vote():
    for spec in ({"scores": ["a", "b"]}, {"column": "a", "threshold": 1}):
        row, left_out = rows_of(
            {"pair": "id", "voter": "who", "vote": spec}, {"id": 1, "a": None, "b": 2, "who": "ann"}
        )
        assert (row.vote, left_out) == (None, LeftOut("f", 3, "a voter without a vote"))
    one_hot = {"one_hot": {"A": "a", "B": "b"}}
    assert vote_of(one_hot, a=1, b=1).startswith("A and B are marked at once")


@pytest.mark.parametrize(
    "text",
    [
        " | ".join(["[@, @]"] * 30),
        " | ".join(["[@[], @[]][]"] * 200),
        " | ".join(["join('', [@, @])"] * 40),
        "sort_by(map(&[&a, @], l), &[0])",
        "a" * 2000,
    ],
    ids=["pairs", "flat", "text", "map", "long"],
)
def test_an_expression_that_explodes_is_refused_soon(text):
    record = {"a": "x" * 100, "l": list(range(3000))}
    began = time.process_time()
    with pytest.raises((TooMuch, ValueError), match=r"too m|cannot be evaluated|longer"):
        parse({"pair": "id", "labels": {"l": text}}).columns["labels", "l"].sources[0].evaluate(
            record
        )
    assert time.process_time() - began < 5


def test_a_record_that_an_expression_cannot_read_is_an_error_of_its_row():
    [error] = rows_of({"pair": "id", "prompt": "length(n)"}, {"id": 1, "n": 3})
    assert isinstance(error, RowError)
    assert (error.row, error.field) == (3, "prompt")


def test_paths_are_offered_and_read_back():
    record = {"a b": {"c.d": [{"x": 1}, {"x": 2}]}, "plain name": 5}
    paths = dict(paths_of(record))
    assert paths['"a b"."c.d"[-1].x'] == 2
    for path, value in paths.items():
        assert Expression(path).evaluate(record) == value


def test_a_mapping_fits_files_that_have_its_columns():
    config = PAIR | {"vote": "winner", "voter": "user"}
    assert fits(config, ["id", "model_a", "model_b", "winner", "user", "more"])
    assert not fits(config, ["id", "model_a"])
