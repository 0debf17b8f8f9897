"""Formats that a mapping reads whole: by their id, what they are, and the columns that they have.

Sources: huggingface.co/docs/trl/dataset_formats (KTO: unpaired preference), and the data cards of
openai/webgpt_comparisons, openai/summarize_from_feedback, PKU-Alignment/PKU-SafeRLHF,
HannahRoseKirk/prism-alignment and nvidia/HelpSteer2 on huggingface.co/datasets.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple

from judge_eval.imports.mapping import ColumnMapping, parse
from judge_eval.imports.row_models import MadeUp

_ZERO_OR_ONE: Final = {"0": "A", "1": "B"}
_GOOD_OR_BAD: Final = {
    **dict.fromkeys(("true", "True", "1"), "pass"),
    **dict.fromkeys(("false", "False", "0"), "flag"),
}
_ASPECTS: Final = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")


class Mapped(NamedTuple):
    id: str
    title: str
    description: str
    columns: Sequence[str]
    # Made by the first file that is read by it: a server that starts has none.
    mapping: Callable[[], ColumnMapping]


def _lazy_mapping(
    voter_name: str, prompt: str, *outputs: str, **fields: Any
) -> Callable[[], ColumnMapping]:
    names = ("output_a", "output_b") if len(outputs) == 2 else ("output",)
    texts = {"kind": {"value": "text"}, "prompt": prompt} | dict(zip(names, outputs, strict=True))
    return cache(partial(parse, texts | {"voter": {"value": MadeUp(voter_name)}} | fields))


FORMATS: Final = (
    Mapped(
        id="kto",
        title="KTO rows",
        description="Prompt, completion, and whether it is good.",
        columns=("prompt", "completion", "label"),
        mapping=_lazy_mapping(
            "label",
            "prompt",
            "completion",
            vote={"column": "label", "values": _GOOD_OR_BAD},
            generator="model",
        ),
    ),
    Mapped(
        id="webgpt",
        title="WebGPT comparisons",
        description="Two answers and a preference from -1 to 1.",
        columns=("question", "answer_0", "answer_1", "score_0", "score_1"),
        mapping=_lazy_mapping(
            "labeler",
            "question.full_text || question",
            "answer_0",
            "answer_1",
            vote={"scores": ["score_0", "score_1"]},
        ),
    ),
    Mapped(
        id="summaries",
        title="Summaries with feedback",
        description="OpenAI's comparisons of two summaries.",
        columns=("info", "summaries", "choice", "worker"),
        mapping=_lazy_mapping(
            "",
            "info.post || info.article",
            "summaries[0].text",
            "summaries[1].text",
            vote={"column": "choice", "values": _ZERO_OR_ONE},
            voter="worker",
            prompt_id="info.id",
            generator_a="summaries[0].policy",
            generator_b="summaries[1].policy",
        ),
    ),
    Mapped(
        id="saferlhf",
        title="PKU-SafeRLHF",
        description="Which of two responses is better, and which is safer.",
        columns=("prompt", "response_0", "response_1", "better_response_id"),
        mapping=_lazy_mapping(
            "annotator",
            "prompt",
            "response_0",
            "response_1",
            vote={"column": "better_response_id", "values": _ZERO_OR_ONE},
            labels={"safer": {"column": "safer_response_id", "values": _ZERO_OR_ONE}},
            generator_a="response_0_source",
            generator_b="response_1_source",
        ),
    ),
    Mapped(
        id="prism",
        title="PRISM",
        description="Conversations whose first answers people rate from 1 to 100.",
        columns=("opening_prompt", "conversation_history", "user_id"),
        # Later answers have prompts of their own.
        mapping=_lazy_mapping(
            "",
            "opening_prompt",
            "content",
            rows="conversation_history[?role == 'model' && turn == `0`]",
            voter="user_id",
            vote="score",
            generator="model_name",
        ),
    ),
    Mapped(
        id="helpsteer_ratings",
        title="HelpSteer2 ratings",
        description="From 0 to 4, by all annotators together.",
        columns=("prompt", "response", *_ASPECTS),
        mapping=_lazy_mapping(
            "annotators", "prompt", "response", labels={aspect: aspect for aspect in _ASPECTS}
        ),
    ),
)
