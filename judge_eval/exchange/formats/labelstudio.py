"""Label Studio: tasks with their annotations (JSON), or one annotation a record (JSON-MIN).

A pair is what a ``Pairwise`` tag asks about; its sides are the fields of ``data`` that the tag
names (``to_name``), and ``<side>_model`` or ``model_<side>`` says who generated each. Choices and
ratings are answers on single items: of the first text that no other field names as its prompt. Who
annotated is a voter, a model's ``predictions`` are the verdicts of a judge.

Source: labelstud.io/guide/export and /guide/task_format, "Label Studio JSON format".
"""

from collections.abc import Iterator, Mapping
from typing import Any

from judge_eval.exchange.row_models import Misfit, Values

_PROMPTS = ("prompt", "question", "instruction", "query", "input")
_OUTPUTS = ("output", "answer", "response", "completion", "text")
_SIDES = (("left", "right"), ("a", "b"), ("answer1", "answer2"), ("response_a", "response_b"))
_PLACES = {"left": "A", "right": "B"}


def fits(record: Values) -> bool:
    data, annotations = record.get("data"), record.get("annotations")
    if isinstance(data, dict) and isinstance(annotations, list):
        return True
    return record.keys() >= {"annotation_id", "annotator"}


def read(record: Values, name: str) -> Iterator[Values | str]:
    if "annotations" not in record:
        yield from _minimal(record)
        return
    data: Values = record["data"]
    statements = [
        *((_person(each), each, {}) for each in _objects(record, "annotations")),
        *((None, each, each) for each in _objects(record, "predictions")),
    ]
    item, has_answer = _item(record.get("id"), data, _sides_of(statements)), False
    for who, each, prediction in statements:
        if each.get("was_cancelled"):
            yield f"{who} skipped it"
            continue
        answers, comment = _answers(_objects(each, "result"), item)
        if answers:
            has_answer = True
            judge = prediction.get("model_version") or "prediction"
            yield item | _statement(who, judge, answers, comment, each.get("created_at"))
    if not has_answer:
        yield item


def _minimal(record: Values) -> Iterator[Values]:
    """Read one annotation whose answers stand beside its data."""
    result = [
        {"from_name": name, "value": value}
        for name, raw in record.items()
        if (value := _value_of(raw)) is not None
    ]
    item = _item(record.get("id"), record, ())
    answers, comment = _answers(result, item)
    who = _person({"completed_by": record["annotator"]})
    yield (
        item | _statement(who, "", answers, comment, record.get("created_at")) if answers else item
    )


def _value_of(raw: object) -> Mapping[str, object] | None:
    if isinstance(raw, dict):
        return raw
    if raw in _PLACES:
        return {"selected": raw}
    return None


def _person(annotation: Values) -> str:
    """Return who annotated: a number, or an object with an address."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    return f"annotator {by}" if isinstance(by, int) else str(by or "annotator")


def _sides_of(statements: Any) -> tuple[str, ...]:
    """Return the fields that a pairwise tag compares, as its answers name them."""
    for _, each, _ in statements:
        for part in _objects(each, "result"):
            if part.get("type") == "pairwise":
                return tuple(str(part.get("to_name", "")).split(","))
    return ()


def _item(number: object, data: Values, named: tuple[str, ...]) -> Values:
    prompt = next((data[it] for it in _PROMPTS if isinstance(data.get(it), str)), None)
    sides = [named] if len(named) == 2 and {*named} <= data.keys() else []
    for left, right in (*sides, *_SIDES):
        if left in data and right in data:
            pair = {"pair": number, "prompt": prompt}
            for side, field in (("a", left), ("b", right)):
                model = data.get(f"{field}_model", data.get(f"model_{field}"))
                pair |= {f"output_{side}": data[field], f"generator_{side}": model}
            return pair
    output = next((data[it] for it in _OUTPUTS if isinstance(data.get(it), str)), None)
    return {"item": number, "prompt": prompt, "output": output, "generator": data.get("model")}


def _answers(result: list[Values], item: Values) -> tuple[dict[str, Any], str | None]:
    """Return the answers by their tags, and what was written beside them."""
    answers, comment = dict[str, Any](), None
    for part in result:
        value, tag = part.get("value"), str(part.get("from_name") or "answer")
        if not isinstance(value, dict):
            continue
        if (place := value.get("selected")) in _PLACES and "pair" in item:
            answers["pair"] = _PLACES[place]
        elif "choices" in value:
            choices = value["choices"]
            answers[tag] = choices[0] if len(choices) == 1 else choices
        elif "rating" in value:
            answers[tag] = value["rating"]
        elif isinstance(text := value.get("text"), str | list):
            comment = text if isinstance(text, str) else "\n".join(map(str, text))
    return answers, comment


def _statement(
    who: str | None, judge: str, answers: dict[str, Any], comment: str | None, at: object
) -> Values:
    main = answers.pop("pair", None)
    more: Values = {"labels": answers} if answers else {}
    if who is None:
        return more | {"judge": judge, "verdict": main, "feedback": comment}
    return more | {"voter": who, "vote": main, "comment": comment, "voted_at": at}


def _objects(record: Values, name: str) -> list[Values]:
    found = record.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Misfit(name, "must be a list of objects")
    return found
