"""The same rows, written as CSV, JSON Lines, JSON or Parquet, are read back equal."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.exchange.mapping import FIELDS, OWN_NAMES, rows
from judge_eval.exchange.rows import PairPart, Row, VerdictPart, VotePart
from judge_eval.exchange.sources import records

characters = st.characters(codec="utf-8", exclude_characters="\0")
# A CSV file cannot tell an empty text from none.
texts = st.text(characters, min_size=1, max_size=40)
names = texts.filter(str.strip)
tags = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=8)
scores = st.none() | st.floats(0, 10).map(lambda score: score + 0.0)
choices = st.sampled_from(["A", "B", "tie", "both_bad"])
pairs = st.builds(
    PairPart,
    names,
    st.none() | texts,
    st.none() | names,
    st.lists(tags, max_size=3).map(tuple),
    st.sampled_from([None, "svg", "text", "code"]),
    st.none() | names,
    st.none() | names,
    st.none() | texts,
    st.none() | texts,
)
failed = st.builds(VerdictPart, names, st.none(), feedback=st.none() | texts, error=texts)
given_verdicts = st.builds(
    VerdictPart,
    names,
    choices,
    scores,
    scores,
    st.none() | texts,
    consistent=st.sampled_from([None, True]),
)
votes = st.builds(
    VotePart,
    names,
    choices,
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.none() | texts,
    st.sampled_from([None, "A", "B"]),
)
labels = st.dictionaries(tags, texts, max_size=3)


@st.composite
def any_rows(draw):
    pair = draw(pairs)
    verdict = draw(st.none() | failed | given_verdicts)
    vote = draw(st.none() | votes)
    said = draw(labels) if (verdict is None) != (vote is None) else {}
    return Row("f", 0, pair, verdict, vote, said, draw(st.none() | names))


def record_of(row):
    """Lay a row out flat, one column per field and one per label."""
    pair, verdict, vote = row.pair, row.verdict, row.vote
    said = dict.fromkeys(FIELDS) | {"pair": pair.id, "external_id": row.external_id}
    said |= {name: getattr(pair, name) for name in PairPart.__slots__ if name != "id"}
    said["tags"] = ";".join(pair.tags) or None
    if verdict:
        names = ("judge", "score_a", "score_b", "feedback", "error", "consistent")
        said |= {name: getattr(verdict, name) for name in names} | {"verdict": verdict.winner}
    if vote:
        at = vote.at and vote.at.isoformat()
        said |= {"voter": vote.voter, "vote": vote.choice, "comment": vote.comment}
        said |= {"voted_at": at, "left_side": vote.left}
    return said | {f"labels.{task}": answer for task, answer in row.labels.items()}


def as_csv(table):
    buffer = io.StringIO()
    columns = dict.fromkeys(column for record in table for column in record) or FIELDS
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    writer.writerows(table)
    return buffer.getvalue().encode()


def as_json_lines(table):
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in table).encode()


def as_json(table):
    return json.dumps({"exported": 1, "rows": table}, indent=1).encode()


def as_parquet(table):
    columns = dict.fromkeys(column for record in table for column in record)
    stream = io.BytesIO()
    filled = {column: [record.get(column) for record in table] for column in columns}
    pq.write_table(pa.table(filled), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "name, write",
    [
        ("f.csv", as_csv),
        ("f.jsonl", as_json_lines),
        ("f.json", as_json),
        ("f.parquet", as_parquet),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@given(expected=st.lists(any_rows(), max_size=4))
def test_rows_are_read_back_equal(name, write, expected):
    stream = io.BytesIO(write([record_of(row) for row in expected]))
    found = rows(records(stream, name), OWN_NAMES, "f")
    assert [replace(row, line=0) for row in found] == expected
