"""Whom to ask for a verdict. Baselines answer here; they take the same path as any judge."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from judge_eval.baselines import BASELINES
from judge_eval.models import Judge
from voting.models import Comparison


class ProviderFailed(Exception):
    """No verdict came; the text says why. It is never made into a score."""


@dataclass(frozen=True)
class Reply:
    winner: str
    feedback: str
    latency_ms: float
    score_a: float | None = None
    score_b: float | None = None


def ask(judge: Judge, comparison: Comparison) -> Reply:
    """Return the judge's verdict on a comparison whose pictures are ready."""
    baseline = BASELINES.get(judge.name) if judge.is_baseline else None
    if baseline is None:
        raise ProviderFailed(f"no provider answers for {judge.name!r}")
    started = perf_counter()
    opinion = baseline(comparison.a.output, comparison.b.output, str(comparison.pk))
    latency_ms = (perf_counter() - started) * 1000
    return Reply(opinion.winner, opinion.reason, latency_ms)
