"""promptfoo: the results of ``promptfoo eval -o results.json``.

A result is one output: the prompt, who gave it, and what each assertion says of it. Those that a
model grades (``llm-rubric``, ``g-eval`` …) are judges, ``human`` is what people entered on its
page, and any other is a judge that follows a rule. An item is asked for pass or flag.

Source: promptfoo's reference, "EvaluateResult" and "GradingResult" (promptfoo.dev/docs).
"""

from collections.abc import Iterator
from typing import Any

from judge_eval.exchange.row_models import Misfit, Values

HUMAN = "human"


def fits(record: Values) -> bool:
    return record.keys() >= {"prompt", "provider", "vars", "response"} or (
        record.keys() >= {"prompt", "provider", "gradingResult"}
    )


def read(record: Values, name: str) -> Iterator[Values | str]:
    provider, response = _object(record, "provider"), _object(record, "response")
    output = response.get("output")
    if not isinstance(output, str):
        output = None if output is None else str(output)
    if output is None:
        yield f"no output: {record.get('error') or response.get('error') or 'the call failed'}"
        return
    item: Values = {
        "prompt": _object(record, "prompt").get("raw"),
        "kind": "text",
        "generator": provider.get("label") or provider.get("id"),
        "output": output,
    }
    grading = _object(record, "gradingResult")
    seen = set[str]()
    for part in grading.get("componentResults") or [grading]:
        if isinstance(part, dict) and isinstance(part.get("pass"), bool):
            kind = _object(part, "assertion").get("type") or "promptfoo"
            who = kind if kind not in seen else f"{kind} {len(seen) + 1}"
            seen.add(who)
            yield item | _answer(kind, who, part)
    if not seen:
        yield item


def _answer(kind: str, who: str, part: Values) -> Values:
    answer = "pass" if part["pass"] else "flag"
    if kind == HUMAN:
        return {"voter": HUMAN, "vote": answer, "comment": part.get("comment") or None}
    return {"judge": who, "verdict": answer, "feedback": part.get("reason") or None}


def _object(record: Values, name: str) -> Any:
    value = record.get(name) or {}
    if isinstance(value, str):
        return {"id": value, "raw": value, "output": value}
    if not isinstance(value, dict):
        raise Misfit(name, "must be an object")
    return value
