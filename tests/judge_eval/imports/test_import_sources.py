"""Records out of CSV, JSON Lines, JSON and Parquet, and what is told of broken files."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from humanjudge.core.strict_json import MAX_RECORD
from judge_eval.imports.containers import UnknownFormat, format_of
from judge_eval.imports.row_models import Note, RowError
from judge_eval.imports.sources import Record, records
from tests.helpers.waiting import PATIENCE

TOO_LARGE = "x" * (MAX_RECORD + 1)


def read(data, name):
    return list(records(io.BytesIO(data if isinstance(data, bytes) else data.encode()), name))


def parquet(table, **options):
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def only_error(items):
    [error] = [item for item in items if isinstance(item, RowError)]
    return error


@pytest.mark.parametrize(
    "name, expected",
    [
        ("a.csv", "csv"),
        ("A.JSON", "json"),
        ("a.b.jsonl", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.parquet", "parquet"),
        ("a.pq", "parquet"),
    ],
)
def test_the_name_tells_the_format(name, expected):
    assert format_of(name) == expected


def test_an_unknown_format_is_refused_at_once():
    with pytest.raises(UnknownFormat, match=r"votes\.doc: the name must end in one of \.csv"):
        records(io.BytesIO(), "votes.doc")
    with pytest.raises(UnknownFormat, match="'xml' is not one of csv"):
        records(io.BytesIO(), "votes.txt", "xml")


def test_a_given_format_goes_before_the_name():
    stream = io.BytesIO(b"pair\n7\n")
    assert list(records(stream, "upload.json", "csv")) == [Record(2, {"pair": "7"})]


# --- CSV ----------------------------------------------------------------------------------------


def test_csv_names_the_line_each_record_begins_on():
    found = read('pair,prompt\n1,"two\nlines"\n\n2,one\r\n3,\n', "v.csv")
    assert found == [
        Record(2, {"pair": "1", "prompt": "two\nlines"}),
        Record(5, {"pair": "2", "prompt": "one"}),
        Record(6, {"pair": "3", "prompt": None}),
    ]


def test_csv_may_begin_with_a_byte_order_mark():
    assert read(b"\xef\xbb\xbfpair\n\xc3\xa9\n", "v.csv") == [Record(2, {"pair": "é"})]


def test_csv_that_is_not_utf8_says_where_and_goes_on_behind_that_record():
    found = read(b"pair,prompt\n1,ok\n2,caf\xe9\n3,ok\n", "v.csv")
    assert found == [
        Record(2, {"pair": "1", "prompt": "ok"}),
        RowError("v.csv", 3, None, "not UTF-8 (byte 0xe9 at 6): save the file as UTF-8"),
        Record(4, {"pair": "3", "prompt": "ok"}),
    ]


def test_csv_that_is_not_utf8_within_quotes_is_one_record():
    found = read(b'pair,prompt\n1,"caf\xe9,\n""2,x""\xe9\n"\n3,ok\n', "v.csv")
    assert found == [
        RowError("v.csv", 2, None, "not UTF-8 (byte 0xe9 at 7): save the file as UTF-8"),
        Record(5, {"pair": "3", "prompt": "ok"}),
    ]


def test_csv_of_another_encoding_altogether():
    [error] = read("pair\n7\n".encode("utf-16"), "v.csv")
    assert "not UTF-8 (byte 0xff at 1)" in error.why
    assert error.is_fatal


@pytest.mark.parametrize(
    "data, name",
    [
        (b'a,b\n1,2\n2,"open\n3,4\n', "v.csv"),
        (b'a,b\n1,2\n"x"y,2\n3,4\n', "v.csv"),
        (b"a,b\n1,2\n" + TOO_LARGE.encode() + b",2\n3,4\n", "v.csv"),
        (b"a,a\n1,2\n", "v.csv"),
        (b'[{"a": 1}, {"a": }, {"a": 3}]', "v.json"),
        (b"PAR1", "v.parquet"),
    ],
    ids=["open quote", "behind a quote", "large", "header", "json", "parquet"],
)
def test_what_cannot_be_read_to_its_end_says_so(data, name):
    *before, error = read(data, name)
    assert error.is_fatal
    assert not any(isinstance(item, RowError) for item in before)


@pytest.mark.parametrize(
    "data, name",
    [
        (b"a,b\n1\n2,3\n", "v.csv"),
        (b"a,b\n1,\xe9\n2,3\n", "v.csv"),
        (b"{\n{}\n", "v.jsonl"),
        (b'{"a": "\xe9"}\n{}\n', "v.jsonl"),
        (b"[3, {}]", "v.json"),
    ],
)
def test_what_is_wrong_with_one_record_alone_is_not_fatal(data, name):
    error, record = read(data, name)
    assert not error.is_fatal
    assert isinstance(record, Record)


@pytest.mark.parametrize("cells, count", [("1", 1), ("1,2,3", 3)])
def test_csv_with_a_wrong_number_of_columns_goes_on_behind_it(cells, count):
    found = read(f"pair,vote\n{cells}\n2,B\n", "v.csv")
    assert found == [
        RowError("v.csv", 2, None, f"{count} columns, the header has 2"),
        Record(3, {"pair": "2", "vote": "B"}),
    ]


def test_csv_may_hold_a_large_field_and_not_too_large_a_one():
    assert len(read(f"a\n{TOO_LARGE[:-10]}\n", "v.csv")[0].values["a"]) == MAX_RECORD - 9
    error = only_error(read(f"a\n1\n{TOO_LARGE}\n3\n", "v.csv"))
    assert (error.row, error.why[:32]) == (3, "a record of more than 2,000,000 ")


def test_csv_with_a_quote_left_open_is_not_read_to_the_end_of_a_large_file():
    stream = io.BytesIO(b'a,b\n1,"open\n' + b"2,more\n" * 1_000_000)
    error = only_error(records(stream, "v.csv"))
    assert "is a quote left open?" in error.why
    assert stream.tell() < MAX_RECORD + 100


def test_csv_with_a_quote_left_open_at_its_end():
    assert only_error(read('a\n1\n"open\n', "v.csv")).why == "not CSV: unexpected end of data"


def test_csv_with_text_behind_a_quote():
    assert only_error(read('a,b\n"x"y,2\n', "v.csv")).row == 2


@pytest.mark.parametrize(
    "data, why",
    [
        ("", "the file is empty"),
        ("a,b,a\n1,2,3\n", "two columns are named 'a'"),
    ],
)
def test_csv_needs_a_header(data, why):
    [error] = read(data, "v.csv")
    assert error.row == 1
    assert why in error.why


def test_a_column_without_a_name_is_not_read_and_said():
    found = read(",a,\n0,1,\n1,2,\n", "v.csv")
    assert found == [
        Note("v.csv", "2 columns without a name: not read"),
        Record(2, {"a": "1"}),
        Record(3, {"a": "2"}),
    ]


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_the_header_tells_what_stands_between_columns(sign):
    text = f"pair{sign}prompt\n7{sign}a, b\n"
    assert read(text, "v.csv") == [Record(2, {"pair": "7", "prompt": "a, b"})]
    assert read(f"sep={sign}\n{text}", "v.csv")[0].values["pair"] == "7"


def test_csv_of_a_header_alone_has_no_records():
    assert read("pair,vote\n", "v.csv") == []


# --- JSON Lines ---------------------------------------------------------------------------------


def test_json_lines_skip_blank_ones_and_keep_their_numbers():
    found = read(b'\xef\xbb\xbf{"a": 1}\n\n  \r\n{"a": [null, true]}', "v.jsonl")
    assert found == [Record(1, {"a": 1}), Record(4, {"a": [None, True]})]


@pytest.mark.parametrize(
    "line, why",
    [
        (b'{"a": 1', "not JSON: Expecting ',' delimiter at character 8"),
        (b'{"a": 1, "a": 2}', "the key 'a' is given twice"),
        (b"[1, 2]", "not an object with named values"),
        (b'{"a": "\xe9"}', "not UTF-8 (byte 0xe9 at 8): save the file as UTF-8"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON: Exceeds the limit"),
        (b'{"a": ' + b"[" * 200_000 + b"}", "nested too deeply"),
        (b'{"a": "' + TOO_LARGE.encode() + b'"}', "a record of more than 2,000,000 bytes"),
    ],
    ids=["open", "twice", "array", "latin", "digits", "deep", "large"],
)
def test_a_broken_line_is_told_and_the_next_is_read(line, why):
    first, second = read(line + b'\n{"a": 2}\n', "v.jsonl")
    assert (first.file, first.row) == ("v.jsonl", 1)
    assert first.why.startswith(why)
    assert second == Record(2, {"a": 2})


def test_a_line_many_times_too_large_is_one_error():
    error, record = read(b"x" * (3 * MAX_RECORD) + b"\n{}\n", "v.jsonl")
    assert error.row == 1
    assert record == Record(2, {})


@pytest.mark.parametrize("name", ["v.json", "v.jsonl"])
def test_what_is_no_number_is_nothing(name):
    """Python's json module writes NaN, and so do the tools of the field."""
    text = '{"a": NaN, "b": -Infinity, "c": 1}'
    found = read(f"[{text}]" if name == "v.json" else text, name)
    assert found == [Record(1, {"a": None, "b": None, "c": 1})]


# --- JSON ---------------------------------------------------------------------------------------


def test_json_is_an_array_of_objects():
    assert read(' [ {"a": 1} ,\n{"a": {"b": []}}, 3 ] ', "v.json") == [
        Record(1, {"a": 1}),
        Record(2, {"a": {"b": []}}),
        RowError("v.json", 3, None, "not an object with named values"),
    ]


@pytest.mark.parametrize("key", ["rows", "tasks", "votes"])
def test_json_may_be_an_object_that_holds_the_array(key):
    data = {"total": 2, "more": {"rows": [9]}, "other": [[1], 2], key: [{"a": 1}], "done": None}
    assert read(json.dumps(data), "v.json") == [Record(1, {"a": 1})]


def test_json_with_a_byte_order_mark():
    assert read(b'\xef\xbb\xbf[{"a": "\xc3\xa9"}]', "v.json") == [Record(1, {"a": "é"})]


@pytest.mark.parametrize("data", ["[]", '{"rows": []}'])
def test_json_without_records(data):
    assert read(data, "v.json") == []


@pytest.mark.parametrize(
    "data, good, why",
    [
        ("", 0, "neither an array of objects"),
        ("7", 0, "neither an array of objects"),
        ('{"a": 1}', 0, "the object holds no list named rows, tasks"),
        ('{"rows": {"a": []}}', 0, "the object holds no list named rows, tasks"),
        ('{"votes": [{}], "verdicts": [{}]}', 1, "two lists, 'votes' and 'verdicts'"),
        ("{1: []}", 0, "a key of an object must be text"),
        ('{"rows" []}', 0, "not JSON: ':' expected, found '['"),
        ('[{"a": 1}, {"a": }]', 1, "not JSON: Expecting value"),
        ('[{"a": 1} {"a": 2}]', 1, "not JSON: ',' expected, found '{'"),
        ('[{"a": 1}', 1, "not JSON: ',' expected, found the file's end"),
        ('[{"a": 1}, {"a', 1, "not JSON: Unterminated string"),
        ('[{"a": 1}] x', 1, "something follows where the JSON ends"),
        ('{"rows": []}\n{"rows": []}', 0, "something follows where the JSON ends"),
        ('[{"a": 1, "a": 2}]', 0, "the key 'a' is given twice"),
        pytest.param('[{"a": ' + "[" * 200_000, 0, "nested too deeply", id="deep"),
        pytest.param('[{"a": ' + "9" * 5000 + "}]", 0, "not JSON: Exceeds", id="digits"),
        (b'[{"a": 1}, {"a": "\xe9"}]', 0, "not UTF-8 (byte 0xe9)"),
        (b'[{"a": "\xc3', 0, "not UTF-8 (byte 0xc3)"),
    ],
)
def test_broken_json_is_told_and_ends_the_reading(data, good, why):
    *before, error = read(data, "v.json")
    assert len(before) == good
    assert error.row == good + 1
    assert error.why.startswith(why)


def test_json_records_across_the_pieces_it_is_read_in():
    rows = [{"n": n, "text": "é" * (n * 700 % 90_000)} for n in range(60)]
    found = read(json.dumps(rows, ensure_ascii=False, indent=2), "v.json")
    assert [record.values for record in found] == rows


def test_a_json_number_at_the_edge_of_what_was_read():
    data = '{"x":' + " " * 65_530 + '12345, "rows": [{}]}'
    assert read(data, "v.json") == [Record(1, {})]


def test_too_large_a_json_record_is_not_read_to_its_end():
    data = b'[{"a": 1}, {"a": "' + b"x" * (10 * MAX_RECORD) + b'"}]'
    stream = io.BytesIO(data)
    first, error = records(stream, "v.json")
    assert first == Record(1, {"a": 1})
    assert (error.row, "more than 2,000,000 characters" in error.why) == (2, True)
    assert stream.tell() < 5 * MAX_RECORD


def test_a_json_record_just_too_large():
    [error] = read(json.dumps([{"a": TOO_LARGE}]), "v.json")
    assert error.why == "a record of more than 2,000,000 characters"


# --- Parquet ------------------------------------------------------------------------------------


def test_parquet_values_have_their_own_types():
    values = {"n": 7, "x": 0.5, "s": "é", "b": True, "none": None, "l": ["a"], "o": {"k": "v"}}
    table = pa.Table.from_pylist([values] * 200)
    found = read(parquet(table), "v.parquet")
    assert [record.line for record in found] == list(range(1, 201))
    assert found[199].values == values


def test_a_parquet_map_is_an_object():
    table = pa.table({"labels": pa.array([[("a", "1")]], pa.map_(pa.string(), pa.string()))})
    assert read(parquet(table), "v.parquet") == [Record(1, {"labels": {"a": "1"}})]


def test_parquet_times_lose_what_is_below_a_microsecond():
    at = pa.array([1_700_000_000_000_000_001], pa.timestamp("ns", "UTC"))
    [record] = read(parquet(pa.table({"at": at})), "v.parquet")
    assert record.values["at"].isoformat() == "2023-11-14T22:13:20+00:00"


def test_a_parquet_record_too_large_is_one_error():
    table = pa.table({"a": ["1", TOO_LARGE, "3"]})
    found = read(parquet(table), "v.parquet")
    assert found == [
        Record(1, {"a": "1"}),
        RowError("v.parquet", 2, None, "a record of more than 2,000,000 bytes"),
        Record(3, {"a": "3"}),
    ]


def test_a_parquet_text_that_is_not_utf8_is_one_error():
    wrong = pa.array([b"ok", b"\xff\xfe", b"ok"]).view(pa.string())
    found = read(parquet(pa.table({"a": wrong})), "v.parquet")
    assert [type(item) for item in found] == [Record, RowError, Record]
    assert found[1].row == 2
    assert "utf-8" in found[1].why


@pytest.mark.parametrize(
    "number,kind",
    [(2**31 - 1, "date32"), (2**62, "timestamp[us]"), (2**62, "duration[s]")],
)
def test_a_parquet_value_that_python_cannot_hold_is_one_error(number, kind):
    values = pa.array([number], kind)
    [error] = read(parquet(pa.table({"at": values})), "v.parquet")
    assert (error.row, error.why.partition(":")[0]) == (1, "a value cannot be read")


def test_a_parquet_column_whose_name_is_not_utf8_is_told():
    data = parquet(pa.table({"column": ["some text"]})).replace(b"column", b"col\xff\xfemn")
    [error] = read(data, "v.parquet")
    assert "not readable as Parquet" in error.why


def test_parquet_columns_must_have_different_names():
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert read(parquet(table), "v.parquet")[0].why == "two columns have the same name"


@pytest.mark.parametrize("cut", [0, 3, 40, 200])
def test_what_is_no_parquet_is_told(cut):
    data = parquet(pa.table({"a": ["some text"] * 50}))
    [error] = read(data[:cut], "v.parquet")
    assert error.why.startswith("not readable as Parquet:")


def test_damaged_parquet_is_told():
    data = bytearray(parquet(pa.table({"a": [str(n) for n in range(999)]}), use_dictionary=False))
    data[4:900] = b"\xff" * 896
    assert "not readable as Parquet" in read(bytes(data), "v.parquet")[-1].why


def test_only_parquet_pays_for_pyarrow():
    script = (
        "import io, sys\n"
        "from judge_eval.imports.formats import read\n"
        "assert len(list(read(io.BytesIO(b'pair\\n1\\n'), 'v.csv'))) == 1\n"
        "assert not {'pyarrow', 'django'} & set(sys.modules)\n"
    )
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True, timeout=PATIENCE)
