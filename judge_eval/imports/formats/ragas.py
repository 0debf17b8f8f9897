"""ragas: what a metric that answers 0 or 1 said of samples, and what a person accepted of it.

Who accepts an answer says the same; who does not says what they wrote in its place, or the other.

Source: docs.ragas.io, "Train and align a metric", and ragas/dataset_schema.py.
"""

from collections.abc import Iterator

from judge_eval.imports.formats.shapes import content_of, filled, single
from judge_eval.imports.row_models import MadeUp, Values

FITS = [("metric_input", "metric_output", "is_accepted")]
_ANSWERS = {0: "flag", 1: "pass"}


def read(record: Values, name: str) -> Iterator[Values | str]:
    sample, answer = record["metric_input"], record["metric_output"]
    if answer not in _ANSWERS:
        yield f"metric_output is {answer!r}: nobody can say the opposite of it"
        return
    item = single(content_of(sample.get("user_input")), content_of(sample.get("response")))
    prompts: dict[str, Values] = record.get("prompts") or {"metric": {}}
    key, prompt = next(iter(prompts.items()))
    judge = key.removeprefix("single_turn_").removesuffix("_prompt").replace("_", " ")
    reason = (prompt.get("prompt_output") or {}).get("reason")
    yield item | {"judge": judge, "verdict": _ANSWERS[answer]} | filled({"feedback": reason})
    is_accepted, edited = record["is_accepted"], prompt.get("edited_output") or {}
    if is_accepted is not None:
        reviewed_answer = answer if is_accepted else edited.get("verdict", 1 - answer)
        statement = {"voter": MadeUp("reviewer"), "vote": _ANSWERS[reviewed_answer]}
        yield item | statement | filled({"comment": edited.get("reason")})
