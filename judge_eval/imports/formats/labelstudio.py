"""Label Studio: tasks with their annotations (JSON), or one annotation a record (JSON-MIN, CSV).

A pair is what a ``Pairwise`` tag asks about; its sides are the fields of ``data`` that the tag
names (``to_name``), and ``<side>_model`` or ``model_<side>`` says who generated each. What a
``Ranker`` has put in order is a vote on each two of its items. Choices, ratings, numbers and texts
are answers on single items: of the first text that no other field names as its prompt. Who
annotated is a voter, a model's ``predictions`` are the verdicts of a judge.

In JSON-MIN the answers follow ``id``, unless the data has an ``id`` of its own: then some data does
too, and a record is refused where it does not show which is which. In CSV, whose columns are
sorted, what is short and no text of the task is an answer; but one of bare words at most.

Sources: labelstud.io/guide/export, .../guide/task_format, .../tags/pairwise and .../tags/ranker;
github.com/HumanSignal/label-studio-sdk, label_studio_sdk/converter (JSON-MIN and CSV).
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from judge_eval.imports.formats.shapes import (
    OUTPUTS,
    PROMPTS,
    filled,
    item_of,
    objects,
    parsed,
    sides_in,
    statements,
)
from judge_eval.imports.row_models import InvalidField, MadeUp, Values

_OF_THE_TOOL = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time")
_MORE_OF_THE_TOOL = ("id", "agreement", "history")
_LONGEST_ANSWER = 60


def fits(record: Values) -> bool:
    data, annotations = record.get("data"), record.get("annotations")
    if isinstance(data, dict) and isinstance(annotations, list):
        return True
    return record.keys() >= {"annotation_id", "annotator"}


def read(record: Values, name: str) -> Iterator[Values | str]:
    if "annotations" not in record:
        yield from _minimal_rows(record)
        return
    annotations, predictions = objects(record, "annotations"), objects(record, "predictions")
    data = _with_items(record["data"])
    parts = [
        part for statement in (*annotations, *predictions) for part in objects(statement, "result")
    ]
    compared = [str(part.get("to_name", "")) for part in parts if part.get("type") == "pairwise"]
    sides = sides_in(data, compared[0].split(",") if compared else ())
    annotators = set[str]()
    for annotation in annotations:
        author, results = annotation.get("completed_by"), objects(annotation, "result")
        # Where nobody has done it there, an export of ours names the person in its results.
        metas = [] if author else [part["meta"] for part in results if part.get("meta")]
        if metas and metas[0].get("text"):
            author = metas[0]["text"][0]
        annotator = _person(author)
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            yield f"{annotator} skipped it"
        elif annotator in annotators:
            yield f"{annotator} annotated it before"
        else:
            annotators.add(annotator)
            voted_at = annotation.get("created_at")
            answers = _answers(results)
            yield from statements(
                record.get("id"), data, sides, {"voter": annotator}, answers, voted_at=voted_at
            )
    for prediction in predictions:
        judge = {"judge": prediction.get("model_version") or "prediction"}
        answers = _answers(objects(prediction, "result"))
        yield from statements(record.get("id"), data, sides, judge, answers)
    if not annotations and not predictions:
        yield item_of(record.get("id"), data, sides)


def _minimal_rows(record: Values) -> Iterator[Values | str]:
    data = _with_items({name: raw for name, raw in record.items() if name not in _OF_THE_TOOL})
    sides = sides_in(data)
    result = [
        {"from_name": question, "value": value}
        for question in _answer_names(record, sides)
        if (value := _value(record[question])) is not None
    ]
    author, voted_at = {"voter": _person(record["annotator"])}, record.get("created_at")
    yield from statements(
        record.get("id"), data, sides, author, _answers(result), voted_at=voted_at
    )


def _answer_names(record: Values, sides: Sequence[str]) -> Sequence[str]:
    """Raises InvalidField where nothing tells answers from the data."""
    names, texts = [*record], {*PROMPTS, *OUTPUTS, *sides}
    data = {*_OF_THE_TOOL, *_MORE_OF_THE_TOOL, *texts, "model", "items"}
    data |= {name for name in names if "model" in name or not _is_short(record[name])}
    if names == sorted(names) or not {"id", "annotator"} <= record.keys():
        answers = [name for name in names if name not in data]
        plain = [name for name in answers if not isinstance(parsed(record[name]), list | dict)]
        doubtful = plain[1:]
    else:
        before, behind = names[: names.index("id")], names[names.index("id") + 1 :]
        behind = behind[: behind.index("annotator")]
        # A free text may be called as an output is.
        outputs = () if {*before} & {*OUTPUTS} else OUTPUTS
        if before and not {*PROMPTS, *sides, *outputs} & {*behind}:
            return behind
        # The data has an `id` of its own, so some of it stands behind that, and then the answers.
        ends = [place for place, name in enumerate(behind, start=1) if name in data]
        answers = behind[max(ends, default=0) :]
        doubtful = list(takewhile(lambda name: not isinstance(record[name], list | dict), answers))
        if len(doubtful) == 1 and (not ends) == (len(answers) > 1):
            return answers if ends else answers[1:]
    if doubtful:
        reason = "export as JSON, or map the columns: which are answers and which data is not said"
        raise InvalidField(", ".join(answers), reason)
    return answers


def _is_short(raw: object) -> bool:
    return not isinstance(raw, str) or parsed(raw) is not raw or len(raw) <= _LONGEST_ANSWER


def _value(raw: Any) -> Values | None:
    """Return the value of an answer that stands bare, in a list of one, or as JSON."""
    value = parsed(raw)
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) or value is None:
        return value
    return {"choices": value if isinstance(value, list) else [value]}


def _with_items(data: Values) -> Values:
    items = parsed(data.get("items"))
    listed = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    texts = {
        str(item.get("id")): item.get("body") or item.get("html") or item.get("title")
        for item in listed
    }
    return {**data, **filled(texts)}


def _person(annotator: object) -> str:
    if isinstance(annotator, dict):
        annotator = annotator.get("email") or annotator.get("id")
    if not annotator or str(annotator).isdigit():
        return MadeUp(f"annotator {annotator or ''}".strip())
    return str(annotator)


def _answers(result: list[Values]) -> Values:
    answers: Values = {}
    for part in result:
        value = part.get("value")
        if not isinstance(value, dict):
            continue
        ranker = value.get("ranker")
        if isinstance(ranker, dict):
            # Buckets have no order among them.
            ranker = next(iter(ranker.values())) if len(ranker) == 1 else None
        texts = value.get("text")
        values = (
            *(value.get("selected"), value.get("choices"), value.get("rating")),
            *(value.get("number"), ranker, "\n".join(texts) if isinstance(texts, list) else texts),
        )
        answer: Any = next((content for content in values if content is not None), None)
        is_one = isinstance(answer, list) and len(answer) == 1
        answers[str(part.get("from_name") or "answer")] = answer[0] if is_one else answer
    return answers
