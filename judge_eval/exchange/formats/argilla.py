"""Argilla: records with responses of people and suggestions of agents, which are judges.

As ``records.to_list()`` and ``to_json()`` give them (a list by question), as ``FeedbackDataset`` of
version 1 does (by user), or flat as ``to_datasets()``: ``QUESTION.responses``, ``….users`` and
``QUESTION.suggestion.agent``. A ranking of fields is a vote on each two of them. Drafts and what
was discarded are left out.

Source: github.com/argilla-io/argilla, argilla/src/argilla/records/_io/_generic.py and _resource.py.
"""

from collections.abc import Iterator
from typing import Any, Final

from judge_eval.exchange.formats.shapes import item_of, objects, parsed, sides_in, statements
from judge_eval.exchange.row_models import Values

# Who answered, the question, the answer, and whether it was submitted.
_Answer = tuple[str, str, Any, Any]
_USERS, _AGENT = ".responses.users", ".suggestion.agent"
_SUBMITTED: Final = ("submitted", None)


def fits(record: Values) -> bool:
    has_fields = isinstance(parsed(record.get("fields")), dict)
    return (has_fields and bool(record.keys() & {"responses", "suggestions"})) or any(
        column.endswith((_USERS, _AGENT)) for column in record
    )


def read(record: Values, name: str) -> Iterator[Values | str]:
    data = parsed(record.get("fields")) or record
    number = record.get("id") or record.get("external_id") or record.get("_server_id")
    sides = sides_in(data)
    is_empty = True
    for field, found in (("voter", _responses(record)), ("judge", _suggestions(record))):
        by_whom: dict[str, Values] = {}
        for who, question, answer, status in found:
            if status in _SUBMITTED:
                by_whom.setdefault(who, {})[question] = answer
            else:
                yield f"{who}'s answer is {status}"
        for who, answers in by_whom.items():
            is_empty = False
            yield from statements(number, data, sides, {field: who}, answers)
    if is_empty:
        yield item_of(number, data, sides)


def _responses(record: Values) -> Iterator[_Answer]:
    responses = parsed(record.get("responses")) or {}
    if isinstance(responses, list):
        for each in objects(record, "responses"):
            for question, answer in (each.get("values") or {}).items():
                user, value = str(each.get("user_id") or "annotator"), answer.get("value")
                yield user, question, value, each.get("status")
        return
    for question, answers in responses.items():
        for each in answers:
            yield str(each.get("user_id")), question, each.get("value"), each.get("status")
    for column in [column for column in record if column.endswith(_USERS)]:
        bare = column.removesuffix(".users")
        columns = (column, bare, f"{bare}.status")
        users, values, states = (parsed(record.get(it)) or [] for it in columns)
        for place, user in enumerate(users):
            state = states[place] if place < len(states) else None
            yield str(user), bare.removesuffix(".responses"), values[place], state


def _suggestions(record: Values) -> Iterator[_Answer]:
    suggestions = parsed(record.get("suggestions")) or {}
    if isinstance(suggestions, list):
        suggestions = {each.get("question_name"): each for each in suggestions}
    for column in [column for column in record if column.endswith(_AGENT)]:
        bare = column.removesuffix(".agent")
        found = {"agent": record[column], "value": parsed(record.get(bare))}
        suggestions[bare.removesuffix(".suggestion")] = found
    for question, each in suggestions.items():
        if each and each.get("value") is not None:
            yield str(each.get("agent") or "suggestion"), question, each["value"], None
