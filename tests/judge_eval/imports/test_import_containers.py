"""What is packed, or in another encoding, is read; what would unpack to too much is refused."""

import gzip
import io
import json
import random
from contextlib import ExitStack

import pytest

from judge_eval.imports import containers
from judge_eval.imports.containers import SourceFile, unpacked
from judge_eval.imports.formats import read
from judge_eval.imports.row_models import ImportRow, Note, RowError, UnreadableFile
from judge_eval.imports.sources import Record, records
from tests.helpers.workbooks import BOMB, workbook, zipped

TABLE = "pair,voter,vote,comment\n7,ann,A,größer\n8,bob,B,\n"


def rows_in(name, data, **how):
    with ExitStack() as copies:
        sources = unpacked([SourceFile(name, io.BytesIO(data))], copies, **how).tables
        return [row for name, stream, *_ in sources for row in read(stream, name)]


@pytest.mark.parametrize(
    "name, data",
    [
        ("v.csv.gz", gzip.compress(TABLE.encode())),
        ("v.csv", TABLE.encode("utf-16")),
        ("v.txt", TABLE.replace(",", "\t").encode("utf-16-be").join([b"\xfe\xff", b""])),
        ("v.csv", TABLE.encode("utf-32")),
        ("all.zip", zipped({"a/v.csv": TABLE, "__MACOSX/._v.csv": b"\0", "cat.png": b"?"})),
    ],
    ids=["gz", "utf-16", "utf-16-be", "utf-32", "zip"],
)
def test_the_same_rows_come_out_of_every_container(name, data):
    assert [(row.item, row.vote, row.comment) for row in rows_in(name, data)] == [
        ("7", "A", "größer"),
        ("8", "B", None),
    ]


def test_windows_1252_is_tried_first_after_utf_8_and_may_be_said_otherwise():
    text = "pair,voter,vote,comment\n7,ann,A,naïve “Größe”\n"
    data = text.encode("cp1252")
    with ExitStack() as copies:
        [source] = unpacked([SourceFile("v.csv", io.BytesIO(data))], copies).tables
        assert "read as Western European (Windows); if that is wrong, say its" in source.note
        [row] = read(source.stream, "v.csv")
    assert row.comment == "naïve “Größe”"
    assert rows_in("v.csv", text.encode("cp1250", "replace"), encoding="cp1250")[0].vote == "A"


def test_a_chosen_separator_holds_against_the_header_and_lines_keep_their_numbers():
    data = b"\xef\xbb\xbfpair,voter,vote,a;b;c;d;e\n7,ann,A,x\n"
    with ExitStack() as copies:
        [source] = unpacked(
            [SourceFile("v.csv", io.BytesIO(data))], copies, separator="comma"
        ).tables
        [row, *_] = read(source.stream, "v.csv")
    assert (row.line, row.item, row.vote) == (2, "7", "A")


def test_words_of_other_letters_are_not_taken_for_windows_1252():
    data = "pair,voter,vote,comment\n7,ann,A,Привет\n".encode("cp1251")
    with ExitStack() as copies:
        [source] = unpacked([SourceFile("v.csv", io.BytesIO(data))], copies).tables
    assert source.note.startswith("not UTF-8")
    assert "1252" not in source.note
    assert rows_in("v.csv", data, encoding="cp1251")[0].comment == "Привет"


def test_a_workbook_is_read_as_its_cells_are_shown():
    data = workbook([["pair", "voter", "vote"], [7, "ann", "A"], [8.5, "bob", "tie"]], [["x"]])
    *rows, note = rows_in("v.xlsx", data)
    assert [(row.item, row.voter, row.vote) for row in rows] == [
        ("7", "ann", "A"),
        ("8.5", "bob", "tie"),
    ]
    assert note == Note("v.xlsx", "only the first sheet is read, 'S1'")


def test_a_log_of_inspect_is_its_samples_with_its_settings():
    log = zipped(
        {
            "header.json": json.dumps({"eval": {"model": "m"}}),
            "samples/1_epoch_1.json": json.dumps({"id": 1}),
        }
    )
    assert list(records(io.BytesIO(log), "l.eval")) == [
        Record(1, {"eval": {"model": "m"}, "id": 1})
    ]


def test_fifty_files_are_read_and_no_more():
    members = {f"{n}.csv": f"pair,voter,vote\n{n},ann,A\n" for n in range(50)}
    assert len(rows_in("all.zip", zipped(members))) == 50
    with pytest.raises(UnreadableFile, match="51 files with records; at most 50"):
        rows_in("all.zip", zipped(members | {"x.csv": "pair\n1\n"}))


@pytest.mark.parametrize(
    "name, data",
    [
        ("b.jsonl.gz", gzip.compress(b'{"pair": "1", "prompt": "%s"}\n' % (b"x" * 500) * 3_000)),
        ("b.csv.gz", gzip.compress(b"\n" * 2_000_000)),
        ("b.zip", zipped({"b.csv": b"pair,prompt\n" + b"1,%s\n" % (b"x" * 500) * 3_000})),
    ],
    ids=["rows", "blank", "zip"],
)
def test_a_bomb_breaks_off_where_it_is_too_much(name, data):
    *_, error = rows_in(name, data, most=1 << 20)
    assert isinstance(error, RowError)
    assert error.is_fatal
    assert "unpacks to more than 1 MB" in error.why


def test_a_workbook_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(containers, "MOST_WORKBOOK", 1 << 16)
    data = workbook([["pair"], *([["x" * 1000]] * 100)])
    [error] = rows_in("b.xlsx", data)
    assert "a workbook of more than" in error.why


def test_a_workbook_whose_last_cell_lies_far_out_is_refused_before_it_is_read(monkeypatch):
    [error] = rows_in("b.xlsx", workbook(BOMB))
    assert "its last cell is XFD1048576, so 17,179,869,184 cells would be read" in error.why
    # A block may end within a cell.
    monkeypatch.setattr(containers, "_BLOCK", 7)
    [error] = rows_in("b.xlsx", workbook(BOMB))
    assert "its last cell is XFD1048576" in error.why


def test_a_cell_that_has_a_style_and_nothing_in_it_is_no_last_cell():
    styled = '<row r="1048576"><c r="XFD1048576" s="1"/></row>'
    rows = [("pair", "voter", "vote"), ("7", "ann", "A")]
    cells = "".join(
        f'<row r="{number}">'
        + "".join(
            f'<c r="{column}{number}" t="inlineStr"><is><t>{text}</t></is></c>'
            for column, text in zip("ABC", row, strict=True)
        )
        + "</row>"
        for number, row in enumerate(rows, start=1)
    )
    [row] = rows_in("v.xlsx", workbook(cells + styled))
    assert (row.item, row.voter, row.vote) == ("7", "ann", "A")


@pytest.mark.parametrize("name", ["v.csv.gz", "v.xlsx", "v.eval", "v.zip", "v.parquet.gz"])
def test_damaged_containers_are_an_error_and_no_traceback(name):
    good = {
        "v.csv.gz": gzip.compress(TABLE.encode()),
        "v.parquet.gz": gzip.compress(b"PAR1"),
        "v.xlsx": workbook([["pair"], ["7"]]),
    }.get(name, zipped({"header.json": "{}", "samples/1.json": "{", "v.csv": TABLE}))
    noise = random.Random(3)
    for _ in range(40):
        data = bytearray(good)
        for _ in range(3):
            data[noise.randrange(len(data))] = noise.randrange(256)
        data = data[: noise.randrange(len(data) // 2, len(data) + 1)]
        try:
            found = rows_in(name, bytes(data))
        except UnreadableFile:
            continue
        assert all(isinstance(item, ImportRow | RowError | Note) for item in found)
