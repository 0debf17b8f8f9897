"""One verdict of a judge, from its calls in both orders and all samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from judge_eval import events
from judge_eval.config_parts import RunConfig
from judge_eval.judging import open_if_final
from judge_eval.models import Call, Judge, Run, Verdict
from judge_eval.orders import AllSamplesFailed, Combined, Majority, alone, combine, majority
from judge_eval.run_config import parse
from judge_eval.services import add_judges, model_fingerprint
from judge_eval.verdict_text import ParsedVerdict

ORDERS = {"AB": "as stored", "BA": "swapped"}


class _NoVerdict(Exception):
    """The calls give none; the text says why."""


def settle(verdicts: Collection[int]) -> None:
    """Make verdicts of calls that are all final, and open the pairs that this completes."""
    by_verdict: dict[int, list[Call]] = defaultdict(list)
    calls = Call.objects.filter(verdict__in=verdicts).order_by("order", "sample")
    for call in calls.select_related("verdict__judge__run"):
        assert call.verdict_id is not None  # it was asked for
        by_verdict[call.verdict_id].append(call)
    comparisons = set()
    for pk, answers in by_verdict.items():
        if any(call.state == Call.State.WAITING for call in answers):
            continue
        verdict = answers[0].verdict
        assert verdict is not None  # it was asked for
        fields = _fields(verdict, answers)
        waiting = Verdict.objects.filter(pk=pk, state=Verdict.State.WAITING)
        waiting.update(decided_at=timezone.now(), **fields)
        comparisons.add(verdict.comparison_id)
    for comparison in sorted(comparisons):
        open_if_final(comparison, amend=True)


def _fields(verdict: Verdict, calls: Sequence[Call]) -> dict[str, Any]:
    try:
        orders = {order: _majority(order, calls) for order in sorted({c.order for c in calls})}
        judge = _competitor(verdict, calls)
    except _NoVerdict as reason:
        return {"state": Verdict.State.FAILED, "error": str(reason)}
    both = len(orders) == 2
    said = _combined({order: most.verdict for order, most in orders.items()})
    latencies = [call.latency_ms for call in calls if call.latency_ms is not None]
    several = len(calls) > len(orders)
    rates = [most.consistency_rate for most in orders.values()]
    return {
        "state": Verdict.State.DONE,
        "judge": judge,
        "order": Verdict.Order.BOTH if both else next(iter(orders)),
        "winner": said.winner,
        "consistent": said.consistent,
        "picks": list(said.picks),
        "first_picks": said.first_picks,
        "sample_consistency": sum(rates) / len(rates) if several else None,
        "score_a": said.score_a,
        "score_b": said.score_b,
        "feedback": said.reason,
        "latency_ms": sum(latencies) if latencies else None,
    }


def _majority(order: str, calls: Sequence[Call]) -> Majority:
    samples = [call for call in calls if call.order == order]
    try:
        return majority([_said(call) for call in samples])
    except AllSamplesFailed as failed:
        error = next(call.error for call in samples if call.error)
        raise _NoVerdict(f"{ORDERS[order]}: {error}") from failed


def _said(call: Call) -> ParsedVerdict | None:
    if call.state != Call.State.DONE:
        return None
    return ParsedVerdict(call.winner, call.score_a, call.score_b, call.reason)  # type: ignore[arg-type]


def _combined(raw: dict[str, ParsedVerdict]) -> Combined:
    if len(raw) == 2:
        return combine(raw["AB"], raw["BA"])
    [(order, said)] = raw.items()
    return alone(said, was_swapped=order == "BA")


def _competitor(verdict: Verdict, calls: Sequence[Call]) -> Judge:
    """Return who has answered: the judge that was asked, or a new one if the model has changed."""
    names = sorted({call.reported_model for call in calls if call.state == Call.State.DONE})
    if len(names) > 1:
        raise _NoVerdict(f"it answered as {' and as '.join(names)}, which are two judges")
    judge, reported = verdict.judge, names[0]
    if judge.reported_model == reported:
        return judge
    config = parse(judge.run.config)
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).get(pk=judge.run_id)
        return _resolve(run, config, Judge.objects.get(pk=judge.pk), reported)


def _resolve(run: Run, config: RunConfig, judge: Judge, reported: str) -> Judge:
    fingerprint = model_fingerprint(config, judge.provider, reported)
    same = run.judges.filter(fingerprint=fingerprint).first()
    if judge.reported_model in ("", reported):
        if same is None or same == judge:
            judge.fingerprint = fingerprint
        # Otherwise two names of the config lead to one model: each keeps its own place.
        judge.reported_model = reported
        judge.save(update_fields=["fingerprint", "reported_model"])
        return judge
    if same is not None and same.model == judge.model:
        return same
    text = f"{judge.name} now answers as {reported}: it is a new judge and starts at 1000."
    events.record(run, "judge_changed", text, judge=str(judge.pk))
    changed = Judge(
        run=run,
        name=f"{judge.name} ({reported})"[:200],
        provider=judge.provider,
        model=judge.model,
        reported_model=reported,
        fingerprint=fingerprint,
    )
    return add_judges(run, [changed])[0]
