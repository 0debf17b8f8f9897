"""The same rows, written as CSV, JSON Lines, JSON or Parquet, are read back equal."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.imports.mapping import rows
from judge_eval.imports.row_models import FIELDS, PAIRS, ImportRow
from judge_eval.imports.sources import records

characters = st.characters(codec="utf-8", exclude_characters="\0")
# A CSV file cannot tell an empty text from none.
texts = st.text(characters, min_size=1, max_size=40)
names = texts.filter(str.strip)
tags = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=8)
scores = st.none() | st.floats(0, 10).map(lambda score: score + 0.0)
choices = st.sampled_from(["A", "B", "tie", "both_bad"])
some_texts, some_names = st.none() | texts, st.none() | names
pairs = st.fixed_dictionaries(
    {
        "item": names,
        "prompt": some_texts,
        "prompt_id": some_names,
        "tags": st.lists(tags, max_size=3).map(tuple),
        "kind": st.sampled_from([None, "svg", "text", "code"]),
        "generator_a": some_names,
        "generator_b": some_names,
        "output_a": some_texts,
        "output_b": some_texts,
    }
)
failed = st.fixed_dictionaries({"judge": names, "feedback": some_texts, "error": texts})
given_verdicts = st.fixed_dictionaries(
    {
        "judge": names,
        "verdict": choices,
        "score_a": scores,
        "score_b": scores,
        "feedback": some_texts,
        "consistent": st.sampled_from([None, True]),
    }
)
votes = st.fixed_dictionaries(
    {
        "voter": names,
        "vote": choices,
        "voted_at": st.none() | st.datetimes(timezones=st.just(UTC)),
        "comment": some_texts,
        "left_side": st.sampled_from([None, "A", "B"]),
        "voter_group": st.sampled_from([None, "nurses", "=night nurses"]),
    }
)
labels = st.dictionaries(tags, texts, max_size=3)


@st.composite
def any_rows(draw):
    verdict = draw(st.just({}) | failed | given_verdicts)
    vote = draw(st.just({}) | votes)
    said = draw(labels) if bool(verdict) != bool(vote) else {}
    stated = draw(pairs) | verdict | vote
    return ImportRow("f", 0, **stated, labels=said)


def record_of(row):
    """Lay a row out flat, one column per field and one per label."""
    said = {name: getattr(row, "item" if name == "pair" else name) for name in FIELDS}
    said["tags"] = ";".join(row.tags) or None
    said["voted_at"] = row.voted_at and row.voted_at.isoformat()
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


WRITERS = {
    "f.csv": as_csv,
    "f.jsonl": as_json_lines,
    "f.json": as_json,
    "f.parquet": as_parquet,
}


@given(st.lists(any_rows(), max_size=4))
def test_rows_are_read_back_equal(expected):
    for name, write in WRITERS.items():
        stream = io.BytesIO(write([record_of(row) for row in expected]))
        found = rows(records(stream, name), PAIRS, "f")
        assert [replace(row, line=0) for row in found] == expected, name
