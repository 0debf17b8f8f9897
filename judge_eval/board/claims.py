"""What may be claimed of a run's judges, and which claims hold no longer."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

import numpy as np

from judge_eval.board import history
from judge_eval.board.agreement import Agreement
from judge_eval.board.history import JOINED
from judge_eval.board.load import RunOutcomes
from judge_eval.board.model import Claims, FormerClaims, Withdrawn
from judge_eval.stats import claims as pure

RECOUNTED = "the votes that count have changed"
BOTH_WAYS = "the evidence points both ways now"
LATER_VOTES = "later votes speak against it"
# Why a claim may be said to hold no longer, and nothing else.
OF_VOTES = {history.TAKEN_BACK, history.EXCLUDED, history.VOTER_EXCLUDED, history.INCLUDED}
REASONS = OF_VOTES | {RECOUNTED, BOTH_WAYS, LATER_VOTES, JOINED, history.CHANGED}


def claims_model(
    computed: pure.JudgeClaims,
    ranked: Agreement,
    outcomes: RunOutcomes,
    before: FormerClaims | None,
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


def _withdrawn(
    computed: pure.JudgeClaims, outcomes: RunOutcomes, before: FormerClaims
) -> list[Withdrawn]:
    """Name claims that hold no longer; those named before, while there are no others.

    Which claims somebody has read depends on when findings were computed, so this alone is not made
    of the ledger.
    """
    places = {str(judge.pk): place for place, judge in enumerate(outcomes.judges)}
    places_now = [places.get(judge) for judge in before.judges]
    former_claims: list[tuple[int, int | None]] = [
        (winner, loser)
        for winner, loser in np.argwhere(np.array(before.claims.beats, bool)).tolist()
    ]
    if before.claims.best is not None:
        former_claims.append((before.claims.best, None))

    def ended_claims(claims: Iterable[tuple[int, int | None]]) -> Iterator[tuple[int, int | None]]:
        for winner, loser in claims:
            winner_now, loser_now = places_now[winner], None if loser is None else places_now[loser]
            is_complete = winner_now is not None and (loser_now is None) == (loser is None)
            if winner_now is None or not is_complete:
                continue
            # Without another it was claimed to be the best.
            is_claimed = computed.best == winner_now
            if loser_now is not None:
                is_claimed = computed.beats[winner_now, loser_now]
            if not is_claimed:
                yield winner_now, loser_now

    withdrawals = []
    for winner, loser in ended_claims(former_claims):
        reason, since = _withdrawal_reason(computed, outcomes, before, winner, loser)
        withdrawals.append(Withdrawn(judge=winner, other=loser, why=reason, seq=since))
    return withdrawals or [
        withdrawal.model_copy(update={"judge": winner, "other": loser})
        for withdrawal in before.claims.withdrawn
        for winner, loser in ended_claims([(withdrawal.judge, withdrawal.other)])
    ]


def _withdrawal_reason(
    computed: pure.JudgeClaims,
    outcomes: RunOutcomes,
    before: FormerClaims,
    winner: int,
    loser: int | None,
) -> tuple[str, int]:
    changes, seq, claims = outcomes.history.changes, outcomes.counted_votes.seq, before.claims
    joined = changes.get(JOINED, 0)
    if loser is None:
        if joined > before.seq:
            return JOINED, joined
    elif computed.reached[winner, loser]:
        was_ahead = computed.pair_state(winner, loser) == "was ahead"
        return LATER_VOTES if was_ahead else BOTH_WAYS, seq
    else:
        is_floor = computed.is_baseline[winner] or computed.is_baseline[loser]
        needed = claims.floor_threshold if is_floor else claims.threshold
        if computed.evidence[winner, loser] >= (needed or np.inf):
            return JOINED, joined or seq
    later = {n: reason for reason, n in changes.items() if n > before.seq and reason != JOINED}
    last = max(later, default=seq)
    if loser is None:
        others = [n for n in range(len(computed.beats)) if n != winner]
        turned = any(computed.pair_state(winner, n) == "was ahead" for n in others)
        return later.get(last, LATER_VOTES if turned else BOTH_WAYS), last
    return later.get(last, RECOUNTED), last
