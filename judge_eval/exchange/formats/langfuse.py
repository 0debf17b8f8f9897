"""Langfuse: exports of scores (CSV or JSON), and of the traces that they are about.

What was annotated on its pages is a vote, each score an answer by its name; all other scores
(``EVAL``, ``API``) are answers of one judge, since nobody is named for them. Traces bring inputs
and outputs; they do not say who gave their scores, so both files belong into one import.

Source: github.com/langfuse/langfuse, worker/src/features/database-read-stream, and
langfuse.com/docs/api-and-data-platform/features/export-from-ui.
"""

from collections.abc import Iterator
from typing import BinaryIO

from judge_eval.exchange.formats.shapes import nested_as, objects, parsed, said, single
from judge_eval.exchange.mapping import own_rows, rows_of
from judge_eval.exchange.row_models import Item, LeftOut, Misfit, Values
from judge_eval.exchange.sources import Record

_ABOUT = ("observationId", "traceId", "sessionId")


def fits(record: Values) -> bool:
    return _is_trace(record) or (
        record.keys() >= {"name", "value", "source"} and bool(record.keys() & {*_ABOUT})
    )


def _is_trace(record: Values) -> bool:
    return record.keys() >= {"id", "timestamp", "input", "output", "sessionId"}


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read a file; the scores of one person or judge on one trace are one statement."""
    together: dict[tuple[str, str], tuple[int, Values]] = {}

    def make(record: Record) -> Iterator[Item]:
        with nested_as("Langfuse"):
            yield from statements(record)

    def statements(record: Record) -> Iterator[Item]:
        scores, line = [record.values], record.line
        if _is_trace(record.values):
            yield from own_rows(name, line, _trace(record.values))
            is_detailed = isinstance(parsed(record.values.get("scores")), list)
            scores = objects(record.values, "scores") if is_detailed else []
        for score in scores:
            about, who, answer = _score(score)
            _, known = together.setdefault((about, str(who)), (line, {"item": about, **who}))
            label = str(score.get("name"))
            if answer is None or label in known.get("labels", {}):
                why = "has no value" if answer is None else "was given before"
                yield LeftOut(name, line, f"{label} of {about} {why}")
            else:
                known.setdefault("labels", {})[label] = answer
                known.update(_beside(score, "judge" in who))

    yield from rows_of(stream, name, file_format, make)
    for line, values in together.values():
        if "labels" not in values and "judge" in values:
            values["error"] = "no score has a value"
        yield from own_rows(name, line, values)


def _trace(values: Values) -> Values:
    return single(said(values["input"]), said(values["output"]), item=values["id"])


def _score(score: Values) -> tuple[str, Values, object]:
    """Return what a score is about, who gave it, and what it is."""
    about = next((score[it] for it in _ABOUT if score.get(it)), None)
    if about is None:
        raise Misfit("traceId", "missing")
    who = {"judge": "Langfuse evaluators"}
    author = score.get("authorUserName") or score.get("authorUserId")
    if score.get("source") == "ANNOTATION" or author:
        who = {"voter": str(author or "annotator")}
    is_number = score.get("dataType") in (None, "NUMERIC") and score.get("value") is not None
    return str(about), who, score.get("value") if is_number else _word(score)


def _word(score: Values) -> object:
    word = score.get("stringValue")
    return score.get("value") if word in (None, "") else word


def _beside(score: Values, is_judge: bool) -> Values:
    comment = score.get("comment")
    at = str(score.get("timestamp") or "").strip('"')
    found = {"feedback": comment} if is_judge else {"comment": comment, "voted_at": at}
    return {name: value for name, value in found.items() if value}
