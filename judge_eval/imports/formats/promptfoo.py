"""promptfoo: the results of ``promptfoo eval -o results.json``, or ``.jsonl``.

A result is one output: the prompt, who gave it, and what each assertion says of it. Those that a
model grades (``llm-rubric``, ``g-eval`` …) are judges, ``human`` is what people entered on its
page, with the ``comment`` of the whole grading, and any other is a judge that follows a rule. An
item is asked for pass or flag.

Source: promptfoo.dev/docs/configuration/outputs and .../reference ("EvaluateResult",
"GradingResult").
"""

from collections.abc import Iterator
from typing import Any

from judge_eval.imports.formats.shapes import content_of, single
from judge_eval.imports.row_models import InvalidField, MadeUp, Values

HUMAN = "human"
_BY_HAND = "Manual result"
# A call that failed has no response.
FITS = [("prompt", "provider", "vars", column) for column in ("response", "gradingResult", "error")]


def read(record: Values, name: str) -> Iterator[Values | str]:
    provider, response = _object(record, "provider"), _object(record, "response")
    output = content_of(response.get("output"))
    if output is None:
        yield f"no output: {record.get('error') or response.get('error') or 'the call failed'}"
        return
    generator = provider.get("label") or provider.get("id")
    # A prompt of several messages is the JSON of their list.
    item = single(content_of(_object(record, "prompt").get("raw")), output, generator=generator)
    grading = _object(record, "gradingResult")
    parts = [part for part in grading.get("componentResults") or [] if isinstance(part, dict)]
    kinds = [_object(part, "assertion").get("type") for part in parts]
    if str(grading.get("reason")).startswith(_BY_HAND) and HUMAN not in kinds:
        # A rating without a thumb, or one of an older version, stands in place of the whole.
        parts.append(grading | {"assertion": {"type": HUMAN}})
    judge_names = set[str]()
    for part in parts or [grading]:
        if isinstance(part.get("pass"), bool):
            kind = _object(part, "assertion").get("type") or "promptfoo"
            judge_name = kind if kind not in judge_names else f"{kind} {len(judge_names) + 1}"
            judge_names.add(judge_name)
            yield item | _answer(kind, judge_name, part, grading.get("comment"))
    if not judge_names:
        yield item


def _answer(kind: str, judge_name: str, part: Values, comment: object) -> Values:
    answer, score = "pass" if part["pass"] else "flag", part.get("score")
    if kind == HUMAN:
        is_between = isinstance(score, float) and 0 < score < 1
        vote = score if is_between else answer
        return {"voter": MadeUp(HUMAN), "vote": vote, "comment": part.get("comment") or comment}
    return {"judge": judge_name, "verdict": answer, "feedback": part.get("reason") or None}


def _object(record: Values, name: str) -> Any:
    value = record.get(name) or {}
    if isinstance(value, str):
        return {"id": value, "raw": value, "output": value}
    if not isinstance(value, dict):
        raise InvalidField(name, "must be an object")
    return value
