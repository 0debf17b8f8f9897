"""MLflow: traces with assessments, which are feedback of people and of judges by its name.

What is expected of an output (``expectation``) is no feedback. Requests and responses are objects,
or JSON that holds one.

Source: mlflow.org/docs/latest/genai/assessments/feedback and mlflow/entities/assessment.py.
"""

from collections.abc import Iterator

from judge_eval.imports.formats.shapes import content_of, filled, objects, parsed, single
from judge_eval.imports.row_models import MadeUp, Values

FITS = [("trace_id", "assessments", key) for key in ("request", "response")]


def read(record: Values, name: str) -> Iterator[Values]:
    request, response = (parsed(record.get(key)) for key in ("request", "response"))
    choices = objects(response, "choices") if isinstance(response, dict) else []
    answer = (choices[0].get("message") or {}).get("content") if choices else None
    output = content_of(response) if answer is None else answer
    item = single(content_of(request), output, item=record["trace_id"])
    statements: dict[tuple[str, str], Values] = {}
    for assessment in objects(record, "assessments"):
        source, feedback = assessment.get("source") or {}, assessment.get("feedback") or {}
        is_person = source.get("source_type") == "HUMAN"
        source_name = str(source.get("source_id") or "") or MadeUp(
            "reviewer" if is_person else "judge"
        )
        if feedback.get("value") is not None:
            statement = statements.setdefault(
                ("voter" if is_person else "judge", source_name), {"labels": {}}
            )
            statement["labels"][str(assessment.get("assessment_name"))] = feedback["value"]
            reason = {"comment" if is_person else "feedback": assessment.get("rationale") or None}
            statement |= filled(reason)
    for (field, source_name), statement in statements.items():
        yield item | {field: source_name} | statement
    if not statements:
        yield item
