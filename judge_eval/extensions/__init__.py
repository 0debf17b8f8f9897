"""All that an extension imports: a class for each kind, and what its hooks are given and return.

docs/extending.md tells how to write one.
"""

from typing import TYPE_CHECKING, Any

from humanjudge.lib.extensions import imported
from humanjudge.lib.validation import Part
from judge_eval.baselines import Baseline, Opinion
from judge_eval.config.judge_types import Answer, JudgeHelpers, JudgeType, NoVerdict
from judge_eval.config.modes import Helpers, Output, PlanHelpers, RunMode
from judge_eval.config.run_config import JudgePart, JudgeSpec, RunConfig
from judge_eval.exchange.formats import ImportFormat
from judge_eval.providers.chat import ChatReply, ChatRequest, Endpoint
from judge_eval.providers.errors import CallFailed
from judge_eval.providers.protocols import Provider
from judge_eval.stats.registry import Scorer

if TYPE_CHECKING:
    from judge_eval.findings.model import RunFindings
    from judge_eval.findings.panels import Bar, Panel, PanelChart, PanelTable, ResultsPanel

__all__ = [
    "Answer",
    "Bar",
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
    "Panel",
    "PanelChart",
    "PanelTable",
    "Part",
    "PlanHelpers",
    "Provider",
    "ResultsPanel",
    "RunConfig",
    "RunFindings",
    "RunMode",
    "Scorer",
]

_OF_FINDINGS = {
    "RunFindings": "judge_eval.findings.model",
    **dict.fromkeys(
        ("Bar", "Panel", "PanelChart", "PanelTable", "ResultsPanel"), "judge_eval.findings.panels"
    ),
}


def __getattr__(name: str) -> Any:
    """Import what needs Django when it is asked for: where files are looked at, there is none."""
    if name not in _OF_FINDINGS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return imported(f"{_OF_FINDINGS[name]}:{name}")
