"""HelpSteer2 and HelpSteer3: people's preferences, from -3 (the first response) to 3 (the second).

Each single preference is a vote; they are numbered in each record, so "annotator 1" is nobody in
particular. Where there are none, the overall one is the vote of "annotators".

Sources: huggingface.co/datasets/nvidia/HelpSteer2 (preference) and .../nvidia/HelpSteer3.
"""

from collections.abc import Iterator
from typing import Final

from judge_eval.imports.formats.shapes import objects, pair, parsed, signed, tags
from judge_eval.imports.row_models import MadeUp, Values, need

# Of each edition: prompt and responses, overall, single preferences, their strength and reason.
_SECOND: Final = (
    *("prompt", "response_1", "response_2", "preference_strength"),
    *("three_most_similar_preferences", "strength", "statement"),
)
_THIRD: Final = (
    *("context", "response1", "response2", "overall_preference"),
    *("individual_preference", "score", "reasoning"),
)
FITS = (_SECOND[:4], _THIRD[:4])


def read(record: Values, name: str) -> Iterator[Values | str]:
    names = _THIRD if "response1" in record else _SECOND
    overall, singles, strength, reason = names[3:]
    texts = map(parsed, need(record, *names[:3]))
    item = pair(*texts, tags=tags(record, "domain", "language"))
    votes = objects(record, singles)
    people = [(f"annotator {number}", vote) for number, vote in enumerate(votes, start=1)]
    for voter, vote in people or [("annotators", {strength: record[overall]})]:
        if choice := signed(overall, vote.get(strength)):
            labels = {"strength": vote[strength]}
            facts = {"vote": choice, "comment": vote.get(reason), "labels": labels}
            yield item | {"voter": MadeUp(voter)} | facts
        else:
            yield item
            yield f"{voter} has no preference"
