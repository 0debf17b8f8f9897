"""LangSmith: results of an experiment as a table, with a column for each feedback.

``inputs``, ``outputs`` and ``feedback``, each an object in one column or, as ``to_pandas()`` of the
results writes them, columns ``inputs.NAME``, ``outputs.NAME`` and ``feedback.KEY``. A list of
feedback says where each came from: what was given on its pages (``app``) is a vote, all else the
answers of one judge, by key.

Sources: docs.langchain.com/langsmith/analyze-an-experiment, and github.com/langchain-ai/
langsmith-sdk, python/langsmith/evaluation/_runner.py.
"""

from collections.abc import Iterator
from typing import Any

from judge_eval.imports.formats.shapes import content_of, filled, parsed, single
from judge_eval.imports.row_models import MadeUp, Values


def fits(record: Values) -> bool:
    roots = {column.partition(".")[0] for column in record}
    return roots >= {"inputs", "outputs", "feedback"}


def read(record: Values, name: str) -> Iterator[Values | str]:
    number = record.get("id") or record.get("run_id")
    texts = [content_of(_object_at(record, root) or None) for root in ("inputs", "outputs")]
    item = single(*texts, item=number, prompt_id=record.get("example_id"))
    if texts[1] is None:
        yield f"no output: {record.get('error') or 'the run failed'}"
        return
    statements: dict[tuple[str, str], Values] = {}
    for key, source, answer in _feedback(_object_at(record, "feedback")):
        is_person = source.get("type") == "app"
        author = (
            str(source.get("user_id") or "") or MadeUp("reviewer") if is_person else "evaluators"
        )
        statement = statements.setdefault(
            ("voter" if is_person else "judge", author), {"labels": {}}
        )
        score = answer.get("score", answer.get("value"))
        statement["labels"] |= filled({key: answer.get("value") if score is None else score})
        if answer.get("comment"):
            statement.setdefault("comment" if is_person else "feedback", answer["comment"])
    for (field, author), statement in statements.items():
        failed = {"error": "no feedback has a value"}
        common_fields = item | {"vote_kind": "graded", field: author}
        yield common_fields | (statement if statement["labels"] or field == "voter" else failed)
    if not statements:
        yield item


def _object_at(record: Values, root: str) -> Any:
    """Return an object that stands in one column, or in several whose names begin with its own."""
    if root in record:
        return parsed(record[root])
    start = f"{root}."
    return filled(
        {
            column.removeprefix(start): parsed(raw)
            for column, raw in record.items()
            if column.startswith(start)
        }
    )


def _feedback(feedback: Any) -> Iterator[tuple[str, Values, Values]]:
    if isinstance(feedback, list):
        for answer in feedback:
            yield str(answer.get("key")), answer.get("feedback_source") or {}, answer
    for key, value in feedback.items() if isinstance(feedback, dict) else ():
        yield key, {}, {"value": value}
