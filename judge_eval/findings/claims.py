"""What may be claimed of a run's judges, and which claims hold no longer."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

import numpy as np

from judge_eval.findings import history
from judge_eval.findings.agreement import Agreement
from judge_eval.findings.history import JOINED
from judge_eval.findings.load import RunOutcomes
from judge_eval.findings.model import Before, Claims, Withdrawn
from judge_eval.stats import claims as pure

RECOUNTED = "the votes that count have changed"
BOTH_WAYS = "the evidence points both ways now"
LATER_VOTES = "later votes speak against it"
# Why a claim may be said to hold no longer, and nothing else.
OF_VOTES = {history.TAKEN_BACK, history.EXCLUDED, history.VOTER_EXCLUDED, history.INCLUDED}
REASONS = OF_VOTES | {RECOUNTED, BOTH_WAYS, LATER_VOTES, JOINED, history.CHANGED}


def claims_model(
    computed: pure.Claims, ranked: Agreement, outcomes: RunOutcomes, before: Before | None
) -> Claims:
    """Return claims as they are stored, with those that were made before and hold no longer."""
    gone = [] if before is None else _withdrawn(computed, outcomes, before)
    names = ["difference", *(f"difference_{end}" for end in ("low", "high"))]
    names += [f"difference_always_{end}" for end in ("low", "high")]
    always = pure.differences_always_valid(ranked.entered)
    lopsided = np.array(ranked.entered.lopsided, dtype=bool)
    always[:, lopsided], always[:, :, lopsided] = np.nan, np.nan
    matrices = (*ranked.differences, *always)
    beside = dict(zip(names, matrices, strict=True)) | {"withdrawn": gone}
    return Claims.model_validate(asdict(computed) | beside)


def _withdrawn(computed: pure.Claims, outcomes: RunOutcomes, before: Before) -> list[Withdrawn]:
    """Name claims that hold no longer; those named before, while there are no others.

    Which claims somebody has read depends on when findings were computed, so this alone is not made
    of the ledger.
    """
    places = {str(judge.pk): place for place, judge in enumerate(outcomes.judges)}
    now = [places.get(judge) for judge in before.judges]
    made: list[tuple[int, int | None]] = [
        (one, other) for one, other in np.argwhere(np.array(before.claims.beats, bool)).tolist()
    ]
    if before.claims.best is not None:
        made.append((before.claims.best, None))

    def gone(claims: Iterable[tuple[int, int | None]]) -> Iterator[tuple[int, int | None]]:
        for one, other in claims:
            a, b = now[one], None if other is None else now[other]
            is_complete = a is not None and (b is None) == (other is None)
            if a is None or not is_complete:
                continue
            # Without another it was claimed to be the best.
            is_claimed = computed.best == a if b is None else computed.beats[a, b]
            if not is_claimed:
                yield a, b

    new = []
    for one, other in gone(made):
        why, since = _why(computed, outcomes, before, one, other)
        new.append(Withdrawn(judge=one, other=other, why=why, seq=since))
    return new or [
        each.model_copy(update={"judge": one, "other": other})
        for each in before.claims.withdrawn
        for one, other in gone([(each.judge, each.other)])
    ]


def _why(
    computed: pure.Claims, outcomes: RunOutcomes, before: Before, one: int, other: int | None
) -> tuple[str, int]:
    changes, seq, claims = outcomes.history.changes, outcomes.as_of.seq, before.claims
    joined = changes.get(JOINED, 0)
    if other is None:
        if joined > before.seq:
            return JOINED, joined
    elif computed.reached[one, other]:
        was_ahead = computed.standing(one, other) == "was ahead"
        return LATER_VOTES if was_ahead else BOTH_WAYS, seq
    else:
        is_floor = computed.is_baseline[one] or computed.is_baseline[other]
        needed = claims.floor_threshold if is_floor else claims.threshold
        if computed.evidence[one, other] >= (needed or np.inf):
            return JOINED, joined or seq
    later = {at: why for why, at in changes.items() if at > before.seq and why != JOINED}
    last = max(later, default=seq)
    if other is None:
        others = [n for n in range(len(computed.beats)) if n != one]
        turned = any(computed.standing(one, n) == "was ahead" for n in others)
        return later.get(last, LATER_VOTES if turned else BOTH_WAYS), last
    return later.get(last, RECOUNTED), last
