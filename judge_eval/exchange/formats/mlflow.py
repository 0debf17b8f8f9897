"""MLflow: traces with assessments, which are feedback of people and of judges by its name.

What is expected of an output (``expectation``) is no feedback. Requests and responses are objects,
or JSON that holds one.

Source: mlflow.org/docs/latest/genai/assessments/feedback and mlflow/entities/assessment.py.
"""

from collections.abc import Iterator

from judge_eval.exchange.formats.shapes import content_of, filled, objects, parsed, single
from judge_eval.exchange.row_models import MadeUp, Values

FITS = [("trace_id", "assessments", it) for it in ("request", "response")]


def read(record: Values, name: str) -> Iterator[Values]:
    request, response = (parsed(record.get(it)) for it in ("request", "response"))
    choices = objects(response, "choices") if isinstance(response, dict) else []
    answer = (choices[0].get("message") or {}).get("content") if choices else None
    output = content_of(response) if answer is None else answer
    item = single(content_of(request), output, item=record["trace_id"])
    statements: dict[tuple[str, str], Values] = {}
    for each in objects(record, "assessments"):
        source, feedback = each.get("source") or {}, each.get("feedback") or {}
        is_person = source.get("source_type") == "HUMAN"
        who = str(source.get("source_id") or "") or MadeUp("reviewer" if is_person else "judge")
        if feedback.get("value") is not None:
            said = statements.setdefault(("voter" if is_person else "judge", who), {"labels": {}})
            said["labels"][str(each.get("assessment_name"))] = feedback["value"]
            reason = {"comment" if is_person else "feedback": each.get("rationale") or None}
            said |= filled(reason)
    for (field, who), said in statements.items():
        yield item | {field: who} | said
    if not statements:
        yield item
