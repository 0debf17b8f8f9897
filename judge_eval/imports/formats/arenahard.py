"""Arena-Hard: judgments of a model's answer against a baseline's, a game in each order.

The baseline is A in the first game and B in the second; a ``score`` such as ``A>>B`` is null where
none could be read. Version 0.1 does not name the baseline. The texts are taken out of what the
judge was asked.

Source: github.com/lmarena/arena-hard-auto, gen_judgment.py (0.1 and 2.0) and show_result.py.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from judge_eval.imports.formats.shapes import both_orders, decision, games, in_both_orders
from judge_eval.imports.row_models import Values, need

_REQUEST: Final = re.compile(
    r"<\|User Prompt\|>\n(?P<prompt>.*?)\n\n"
    r"<\|The Start of Assistant A's Answer\|>\n(?P<output_a>.*?)\n<\|The End of Assistant A's .*?"
    r"<\|The Start of Assistant B's Answer\|>\n(?P<output_b>.*?)\n<\|The End of Assistant B's ",
    re.DOTALL,
)
FITS = (("games", "judge", "model"),)


def read(record: Values, name: str) -> Iterator[Values]:
    judge, model = need(record, "judge", "model")
    number, baseline = record.get("uid", record.get("question_id")), record.get("baseline")
    baseline, played = baseline or "baseline", games(record, "games")
    request = _REQUEST.search(_text(played[0].get("prompt", played[0].get("user_prompt"))))
    yield (
        (request.groupdict() if request else {})
        | {
            "pair": f"{number}__{baseline}__{model}",
            "prompt_id": number,
            "kind": "text",
            "generator_a": baseline,
            "generator_b": model,
            "judge": judge,
            "feedback": in_both_orders([_text(game.get("judgment")) for game in played]),
        }
        | both_orders([decision(game.get("score")) for game in played])
    )


def _text(raw: Any) -> str:
    """Return what was asked or answered: a text, the last message, or an object that holds it."""
    if isinstance(raw, list) and raw:
        return _text(raw[-1])
    if isinstance(raw, dict):
        return _text(raw.get("content", raw.get("answer")))
    return raw if isinstance(raw, str) else ""
