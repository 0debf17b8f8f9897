"""MetaEvaluator: one file per judge or annotator, ``original_id`` and a column for each task.

As people write them, the files hold nothing else, and their names say whose they are:
``judge_gpt-4o.csv``, ``annotator_1_results.csv``. As the tool writes them, ``judge_id`` or
``annotator_id`` names whose a row is, and a ``status`` other than ``success`` says what became of
it: a judge's verdict has failed, or nothing was asked or answered.

``annotation_timestamp`` names no time zone; it is read as UTC.

A file of ``original_id`` that says by neither whose it is holds the data itself, as does one called
``main_state_data``, whose ``id`` or first column is that id: the first column that is called like a
prompt, and the first that is called like a response. Files of a project that hold its state are
known by their names and not read.

Source: github.com/govtech-responsibleai/meta-evaluator, docs/guides/results.md and evaldata.md.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from functools import partial
from pathlib import PurePath
from typing import BinaryIO

from judge_eval.imports import fields
from judge_eval.imports.formats.shapes import single
from judge_eval.imports.mapping import rows_of
from judge_eval.imports.row_models import InvalidField, Item, Note, RowError, Values, checked, plain
from judge_eval.imports.sources import Record

ITEM, JUDGE, PERSON, TIME = "original_id", "judge_id", "annotator_id", "annotation_timestamp"
AUTHOR_COLUMNS = f"{JUDGE} or {PERSON}"
# What is no task.
SYSTEM = {
    *(ITEM, JUDGE, PERSON, TIME, "run_id", "sample_example_id"),
    *("status", "error_message", "error_details_json"),
    *("llm_raw_response_content", "llm_call_duration_seconds"),
    *("llm_prompt_tokens", "llm_completion_tokens", "llm_total_tokens"),
}
ANSWERED = ("success", "partial")
FAILED = ("llm_error", "parsing_error", "other_error")
_OF_A_JUDGE = re.compile(r"judge|llm", re.IGNORECASE)
_OF_A_PERSON = re.compile(r"human|annotat|person|rater|expert", re.IGNORECASE)
_OF_STATE = re.compile(r".*(_state|_metadata)\.json", re.IGNORECASE)
# Others of that ending are of judges: the tool calls them by its runs.
_OF_DATA = re.compile(r"main_state_data\.(json|csv|parquet)", re.IGNORECASE)
_PROMPT = re.compile(r"prompt|question|instruction|input", re.IGNORECASE)
_OUTPUT = re.compile(r"response|output|answer|completion", re.IGNORECASE)
_moment = partial(fields.moment, zone=UTC)
_ENDING = re.compile(r"[-_ ](results?|annotations?|data)$", re.IGNORECASE)
FITS = ((ITEM,),)


def fits_name(name: str) -> bool:
    """Say whether a file holds the state of a project."""
    return _OF_STATE.fullmatch(PurePath(name).name) is not None


def holds_data(name: str) -> bool:
    return _OF_DATA.fullmatch(PurePath(name).name) is not None


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read a file of one judge or annotator: a statement per row, with an answer to each task."""
    if fits_name(name):
        yield Note(name, "it holds the state of a project, and no answers: not read")
        return
    for item in rows_of(stream, name, file_format, partial(_read_record, name)):
        if isinstance(item, RowError) and item.field == AUTHOR_COLUMNS:
            yield replace(item, is_fatal=True)
            return
        yield item


def _read_record(name: str, record: Record) -> Iterator[Values | str]:
    values = record.values
    if item := _item(name, values):
        yield item
        return
    common: Values = {"item": values.get(ITEM)} | _author_of(name, values)
    tasks = {task: answer for task, answer in values.items() if task not in SYSTEM}
    status = plain("status", values.get("status") or ANSWERED[0]).lower()
    if status in FAILED and "judge" in common:
        yield common | {"error": values.get("error_message") or status}
    elif status in ANSWERED and any(answer not in (None, "") for answer in tasks.values()):
        times = {} if "judge" in common else {"voted_at": checked(TIME, values.get(TIME), _moment)}
        yield common | times | {"labels": tasks}
    else:
        yield f"it says {status!r}" if status not in ANSWERED else "it answers no task"


def _item(name: str, values: Values) -> Values | None:
    """Return the item that a record of the data is; None where it holds answers."""
    # Who a row names says more than what its file is called.
    if values.get(JUDGE) is not None or values.get(PERSON) is not None:
        return None
    stem, columns = PurePath(name).stem, [column for column in values if column not in SYSTEM]
    prompt, output = (next(filter(pattern.search, columns), "") for pattern in (_PROMPT, _OUTPUT))
    is_owned = _OF_A_JUDGE.search(stem) or _OF_A_PERSON.search(stem)
    if not holds_data(name) and (is_owned or not prompt or not output):
        return None
    number = next(column for column in (ITEM, "id", *values) if column in values)
    metadata = {
        column: values[column] for column in columns if column not in (number, prompt, output)
    }
    texts = values.get(prompt), values.get(output)
    return single(*texts, item=values[number], metadata=metadata)


def _author_of(name: str, values: Values) -> Values:
    """Return who made the statement: a column says it, or else the file's name."""
    for column, field in ((JUDGE, "judge"), (PERSON, "voter")):
        if values.get(column) is not None:
            return {field: values[column]}
    stem = PurePath(name).stem
    by_judge, by_person = _OF_A_JUDGE.search(stem), _OF_A_PERSON.search(stem)
    if bool(by_judge) == bool(by_person):
        reason = "the file's name does not say whose it is: call it judge_… or annotator_…"
        raise InvalidField(AUTHOR_COLUMNS, f"missing, and {reason}")
    return {"judge" if by_judge else "voter": _ENDING.sub("", stem)}
