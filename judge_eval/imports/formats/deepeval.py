"""DeepEval: test cases of a run, each metric being a judge that passes or flags the output.

``testCases`` with ``metricsData`` as saved in a results folder or ``.deepeval``, or
``test_results`` with ``metrics_data`` as ``evaluate()`` returns them. A metric without a score
failed.

Source: github.com/confident-ai/deepeval, deepeval/test_run/api.py and deepeval/tracing/api.py.
"""

from collections.abc import Iterator

from judge_eval.imports.formats.shapes import content_of, filled, objects, single
from judge_eval.imports.row_models import Values

_METRICS, _OUTPUTS = ("metricsData", "metrics_data"), ("actualOutput", "actual_output")
# What is None is not written, such as an output.
FITS = [("name", column) for column in _METRICS]


def read(record: Values, name: str) -> Iterator[Values | str]:
    output = next(
        (record[column] for column in (*_OUTPUTS, "turns") if record.get(column) is not None), None
    )
    if output is None:
        yield f"{record.get('name')} has no output"
        return
    prompt = content_of(record.get("input", record.get("scenario")))
    item = single(prompt, content_of(output), generator=record.get("model"))
    metrics = [metric for column in _METRICS for metric in objects(record, column)]
    for metric in metrics:
        score, success = metric.get("score"), metric.get("success")
        answer = {"error": metric.get("error") or "the metric gave no score"}
        if isinstance(score, int | float) and success is not None and not metric.get("error"):
            answer = {"verdict": "pass" if success else "flag"}
            answer |= {"score": score} if 0 <= score <= 1 else {}
        facts = filled({"feedback": metric.get("reason")})
        yield item | {"judge": metric.get("name") or "metric"} | answer | facts
    if not metrics:
        yield item
