"""Argilla: records with responses of people and suggestions of agents, which are judges.

As ``records.to_list()`` and ``to_json()`` give them (a list by question), as ``FeedbackDataset`` of
version 1 does (by user), or flat as ``to_datasets()``: ``QUESTION.responses``, ``….users`` and
``QUESTION.suggestion.agent``. A ranking of fields is a vote on each two of them. Drafts and what
was discarded are left out.

Source: github.com/argilla-io/argilla, argilla/src/argilla/records/_io/_generic.py and _resource.py.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from judge_eval.imports.formats.shapes import item_of, parsed, sides_in, statements
from judge_eval.imports.row_models import InvalidField, MadeUp, Values

_ENDS = _USERS, _AGENT = ".responses.users", ".suggestion.agent"


def fits(record: Values) -> bool:
    has_fields = isinstance(parsed(record.get("fields")), dict)
    return (has_fields and bool(record.keys() & {"responses", "suggestions"})) or any(
        column.endswith(_ENDS) for column in record
    )


def read(record: Values, name: str) -> Iterator[Values | str]:
    metadata = parsed(record.get("metadata")) or {}
    data = {key: value for key, value in metadata.items() if "model" in key}
    data |= parsed(record.get("fields")) or record
    number = record.get("id") or record.get("external_id") or record.get("_server_id")
    sides, by_whom = sides_in(data), dict[tuple[str, str], Values]()
    responses, suggestions = _answers_by_question(record)
    for question, response in (
        (question, response) for question, answers in responses.items() for response in answers
    ):
        author = str(response.get("user_id") or "") or MadeUp("annotator")
        if response.get("status") in ("submitted", None):
            by_whom.setdefault(("voter", author), {})[question] = response.get("value")
        else:
            yield f"{author}'s answer is {response['status']}"
    for question, suggestion in suggestions.items():
        if suggestion and suggestion.get("value") is not None:
            judge = str(suggestion.get("agent") or "suggestion")
            by_whom.setdefault(("judge", judge), {})[question] = suggestion["value"]
    for (field, author), answers in by_whom.items():
        yield from statements(number, data, sides, {field: author}, answers)
    if not by_whom:
        yield item_of(number, data, sides)


def _answers_by_question(record: Values) -> tuple[dict[str, list[Values]], dict[str, Values]]:
    responses, suggestions = (
        parsed(record.get(column)) or {} for column in ("responses", "suggestions")
    )
    if isinstance(responses, list):
        by_user, responses = responses, {}
        for user in by_user:
            for question, answer in (user.get("values") or {}).items():
                responses.setdefault(question, []).append(user | answer)
    if isinstance(suggestions, list):
        suggestions = {suggestion["question_name"]: suggestion for suggestion in suggestions}
    flat = {
        end: [column.removesuffix(end) for column in record if column.endswith(end)]
        for end in _ENDS
    }
    responses |= {question: _column(record, question) for question in flat[_USERS]}
    for question in flat[_AGENT]:
        value = parsed(record.get(f"{question}.suggestion"))
        suggestions[question] = {"agent": record[question + _AGENT], "value": value}
    return responses, suggestions


def _column(record: Values, question: str) -> list[Values]:
    names = {"user_id": _USERS, "value": ".responses", "status": ".responses.status"}
    lists: list[Any] = [parsed(record.get(question + end)) or [] for end in names.values()]
    if not all(isinstance(cells, list) for cells in lists):
        raise InvalidField(question, "must be a list, or one as JSON")
    return [dict(zip(names, cells, strict=True)) for cells in zip_longest(*lists)]
