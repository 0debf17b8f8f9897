"""All that an extension imports: a class for each kind, and what its hooks are given and return.

docs/extending.md tells how to write one.
"""

from humanjudge.core.validation import Part
from judge_eval.imports.formats import ImportFormat
from judge_eval.judging.baselines import Baseline, Opinion
from judge_eval.judging.config.judge_types import Answer, JudgeHelpers, JudgeType, NoVerdict
from judge_eval.judging.config.modes import Helpers, Output, PlanHelpers, RunMode
from judge_eval.judging.config.run_config import JudgePart, JudgeSpec, RunConfig
from judge_eval.judging.providers.chat import ChatReply, ChatRequest, Endpoint
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.providers.protocols import Provider
from judge_eval.stats.registry import Scorer

__all__ = [
    "Answer",
    "Baseline",
    "CallFailed",
    "ChatReply",
    "ChatRequest",
    "Endpoint",
    "Helpers",
    "ImportFormat",
    "JudgeHelpers",
    "JudgePart",
    "JudgeSpec",
    "JudgeType",
    "NoVerdict",
    "Opinion",
    "Output",
    "Part",
    "PlanHelpers",
    "Provider",
    "RunConfig",
    "RunMode",
    "Scorer",
]
