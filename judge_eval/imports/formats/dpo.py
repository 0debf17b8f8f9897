"""Rows for DPO and reward models: ``chosen`` and ``rejected``, mostly with ``prompt``.

Texts or lists of messages, which may repeat the prompt. RewardBench names ``chosen_model``. The one
voter is called as a column ``annotator`` or ``dataset`` says, or else "chosen". Which of the two is
stored as A follows from their texts, so that A is no better than B.

Sources: huggingface.co/docs/trl/dataset_formats (preference), and the data cards of
allenai/reward-bench and HuggingFaceH4/ultrafeedback_binarized on huggingface.co/datasets.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from judge_eval.imports.formats.arena import sides
from judge_eval.imports.formats.shapes import filled, pair, parsed, tags
from judge_eval.imports.row_models import MadeUp, Values, need

_ANSWER = "\n\nAssistant:"
FITS = (("chosen", "rejected"),)


def read(record: Values, name: str) -> Iterator[Values]:
    texts = map(parsed, need(record, "chosen", "rejected"))
    prompt, *outputs = _split_prompt(parsed(record.get("prompt")), *texts)
    sides = [
        (sha256(json.dumps(output, sort_keys=True, default=str).encode()).hexdigest(), role, output)
        for role, output in zip(("chosen", "rejected"), outputs, strict=True)
    ]
    (mark_a, a, output_a), (mark_b, b, output_b) = sorted(sides, key=lambda option: option[0])
    models = {
        f"generator_{side}": record.get(f"{role}_model") for side, role in (("a", a), ("b", b))
    }
    voter = record.get("annotator") or MadeUp(record.get("dataset") or "chosen")
    vote = "tie" if mark_a == mark_b else "A" if a == "chosen" else "B"
    scores = filled({column: record.get(column) for column in ("score_chosen", "score_rejected")})
    facts = {
        "tags": tags(record, "subset", "source"),
        "voter": voter,
        "vote": vote,
        "labels": scores or None,
    }
    yield pair(prompt, output_a, output_b, prompt_id=record.get("prompt_id"), **models, **facts)


def _split_prompt(prompt: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    if isinstance(a, list) and isinstance(b, list):
        shared, output_a, output_b = sides(a, b)
        return (prompt if shared is None else shared), output_a, output_b
    if prompt is None and isinstance(a, str) and isinstance(b, str):
        heads = [text.rpartition(_ANSWER)[0] for text in (a, b)]
        if heads[0] and heads[0] == heads[1]:
            a, b = (text[len(heads[0] + _ANSWER) :].strip() for text in (a, b))
            return heads[0].strip(), a, b
    return prompt, a, b
