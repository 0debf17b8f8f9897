"""Langfuse: exports of scores (CSV or JSON), and of the traces that they are about.

What was annotated on its pages is a vote, each score an answer by its name; all other scores
(``EVAL``, ``API``) are answers of one judge, since nobody is named for them. Traces bring inputs
and outputs; they do not say who gave their scores, so both files belong into one import. In CSV
every cell is JSON, a text in quotes.

Source: github.com/langfuse/langfuse, worker/src/features/database-read-stream and
packages/shared/src/server/utils/transforms.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, TypeAlias

from humanjudge.core.strict_json import NotJson, loads
from judge_eval.imports.formats.shapes import content_of, nested_as, objects, parsed, single
from judge_eval.imports.mapping import own_rows, rows_of
from judge_eval.imports.row_models import Item, MadeUp, Values
from judge_eval.imports.sources import Record

# By what a score is about and who gave it: the line of the first, and the statement.
_Together: TypeAlias = dict[tuple[str, str], tuple[int, Values]]
_ABOUT = ("observationId", "traceId", "sessionId")


def fits(record: Values) -> bool:
    return _is_trace(record) or (
        record.keys() >= {"name", "value", "source"} and bool(record.keys() & {*_ABOUT})
    )


def _is_trace(record: Values) -> bool:
    return record.keys() >= {"id", "timestamp", "input", "output", "sessionId"}


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read a file; the scores of one person or judge on one trace are one statement."""
    together: _Together = {}

    def make(record: Record) -> Iterator[Values | str]:
        line, values = (
            record.line,
            {column: _unquoted_cell(raw) for column, raw in record.values.items()},
        )
        with nested_as("Langfuse"):
            scores = [values]
            if _is_trace(values):
                texts = content_of(values["input"]), content_of(values["output"])
                yield single(*texts, item=values["id"])
                is_detailed = isinstance(parsed(values.get("scores")), list)
                scores = objects(values, "scores") if is_detailed else []
            yield from filter(None, (_add_score(together, line, score) for score in scores))

    yield from rows_of(stream, name, file_format, make)
    for line, values in together.values():
        has_failed = "judge" in values and not values["labels"]
        yield from own_rows(
            name, line, {**values, "error": "no score has a value"} if has_failed else values
        )


def _add_score(together: _Together, line: int, score: Values) -> str:
    """Add a score to the statement that it belongs to, or return why not."""
    trace_id = next((score[column] for column in _ABOUT if score.get(column)), None)
    label = score.get("name")
    if trace_id is None:
        return f"{label} is of no trace"
    author, answer = _score(score)
    first = {"item": trace_id, "vote_kind": "graded", **author, "labels": {}}
    _, statement = together.setdefault((str(trace_id), str(author)), (line, first))
    if answer is None or label in statement["labels"]:
        return f"{label} of {trace_id} {'has no value' if answer is None else 'was given before'}"
    statement["labels"][str(label)] = answer
    comment = score.get("comment")
    facts = {"comment": comment, "voted_at": score.get("timestamp")}
    facts = {"feedback": comment} if "judge" in author else facts
    statement.update({name: fact for name, fact in facts.items() if fact})
    return ""


def _unquoted_cell(raw: object) -> object:
    """Return the text of a cell that is written as JSON, quotes and all."""
    if isinstance(raw, str) and raw[:1] == raw[-1:] == '"' != raw:
        with suppress(NotJson):
            return loads(raw)
    return raw


def _score(score: Values) -> tuple[Values, object]:
    author = {"judge": "Langfuse evaluators"}
    author_name = score.get("authorUserName") or score.get("authorUserId")
    if score.get("source") == "ANNOTATION" or author_name:
        author = {"voter": str(author_name) if author_name else MadeUp("annotator")}
    word, value = score.get("stringValue") or None, score.get("value")
    value = None if value == "" else value
    is_number = score.get("dataType") in (None, "NUMERIC") and value is not None
    return author, value if is_number or word is None else word
