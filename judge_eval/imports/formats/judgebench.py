"""JudgeBench: pairs of one model's answers with an objective label, and the outputs of judges.

``judgments``, as ``run_judge.py`` writes them, are one in each order, where ``A>B`` is about what
was shown first. The label is the vote of a voter "label".

Source: github.com/ScalerLab/JudgeBench, README.md and run_judge.py.
"""

from collections.abc import Iterator

from judge_eval.imports.formats import shapes
from judge_eval.imports.row_models import MadeUp, Values, need

_NEEDED = ("pair_id", "question", "response_A", "response_B")
FITS = ((*_NEEDED, "label"),)


def read(record: Values, name: str) -> Iterator[Values]:
    number, *texts = need(record, *_NEEDED)
    model, about = record.get("response_model"), {"tags": shapes.tags(record, "source")}
    item = shapes.pair(*texts, pair=number, generator_a=model, generator_b=model, **about)
    label = shapes.decision(record["label"])
    yield item | ({"voter": MadeUp("label"), "vote": label} if label else {})
    if "judgments" not in record:
        return
    played = shapes.games(record, "judgments")
    judgments = [judgment for game in played if isinstance(judgment := game.get("judgment"), dict)]
    judge = next((judgment.get("judge_model") for judgment in judgments), None)
    kind = record.get("judge_name")
    yield (
        item
        | shapes.both_orders([shapes.decision(game.get("decision")) for game in played])
        | {
            "judge": f"{judge} ({kind})" if judge and kind else judge or kind or "judge",
            "feedback": shapes.in_both_orders([judgment.get("response") for judgment in judgments]),
        }
    )
