"""What may be claimed of a run's judges, and which claims do not stand any more."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np

from judge_eval.findings.history import JOINED, History
from judge_eval.findings.model import Before, Claims, Withdrawn
from judge_eval.stats import claims as pure
from judge_eval.stats.bootstrap import FloatArray

RECOUNTED = "the votes that count have changed"
BOTH_WAYS = "the evidence points both ways now"
PER_PROMPT = "it is ahead per prompt, but not per vote any more"


def claims_model(
    found: pure.Claims,
    differences: FloatArray,
    judges: Sequence[str],
    history: History,
    seq: int,
    before: Before | None,
) -> Claims:
    """Return claims as they are stored, with those that were said before and do not stand."""
    gone = [] if before is None else _withdrawn(found, judges, history, seq, before)
    names = ("difference", "difference_low", "difference_high")
    beside = dict(zip(names, differences, strict=True)) | {"withdrawn": gone}
    return Claims.model_validate(asdict(found) | beside)


def _withdrawn(
    found: pure.Claims, judges: Sequence[str], history: History, seq: int, before: Before
) -> list[Withdrawn]:
    """Name claims that were said and do not stand; those named before, while there are no others.

    Which claims somebody has read depends on when findings were computed, so this alone is not made
    of the ledger.
    """
    places = {judge: place for place, judge in enumerate(judges)}
    now = [places.get(judge) for judge in before.judges]
    new = []
    for one, other in np.argwhere(np.array(before.claims.beats, dtype=bool)).tolist():
        a, b = now[one], now[other]
        if a is not None and b is not None and not found.beats[a, b]:
            why, since = _why(found, history, seq, before, a, b)
            new.append(Withdrawn(judge=a, other=b, why=why, seq=since))
    return new or list(_still(found, now, before.claims.withdrawn))


def _still(
    found: pure.Claims, now: Sequence[int | None], named: Sequence[Withdrawn]
) -> Iterator[Withdrawn]:
    for each in named:
        a, b = now[each.judge], now[each.other]
        if a is not None and b is not None and not found.beats[a, b]:
            yield each.model_copy(update={"judge": a, "other": b})


def _why(
    found: pure.Claims, history: History, seq: int, before: Before, one: int, other: int
) -> tuple[str, int]:
    """Return why a claim does not stand any more, and since which entry."""
    if found.reached[one, other]:
        return (BOTH_WAYS if found.reached[other, one] else PER_PROMPT), seq
    claims = before.claims
    needed = claims.floor_threshold if found.is_baseline[other] else claims.threshold
    if found.evidence[one, other] >= (needed or np.inf):
        return JOINED, history.changes.get(JOINED, seq)
    later = {at: why for why, at in history.changes.items() if at > before.seq and why != JOINED}
    last = max(later, default=seq)
    return later.get(last, RECOUNTED), last
