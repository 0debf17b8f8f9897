"""A variant against the judge in use, on the same items of the half that nobody tuned on."""

from math import exp, log
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel

from judge_eval.board.filters import HALF, HELD_OUT, Slice
from judge_eval.models import Judge, Run
from voting.ballot import tuning
from voting.items.kinds import is_ordered
from voting.models import Voter

# The evidence that it takes, for each variant that was looked at.
ODDS: Final = 20
# Evidence beyond this is as good.
_MOST: Final = 1e6
Verb: TypeAlias = Literal["keep", "drop", "wait"]


class HeldOutComparison(BaseModel):
    """A variant less the judge in use on the same items: shares, a difference, and evidence.

    `votes_missing` are from how many to how many more votes it takes; an open end is None.
    """

    items: int
    share: float | None
    share_against: float | None
    difference: float | None
    low: float | None
    high: float | None
    evidence: float
    evidence_against: float
    needed: int
    votes_missing: tuple[int, int | None] | None


class HeldOutCheck(HeldOutComparison):
    """What a look has found, and of which judges."""

    judge: str
    against: str

    @property
    def verb(self) -> Verb:
        if self.evidence >= self.needed:
            return "keep"
        return "drop" if self.evidence_against >= self.needed else "wait"


def check_held_out(
    run: Run, judge: Judge, in_use: Judge, voter: Voter | None = None
) -> HeldOutCheck:
    """Look at the half held out, which is an entry of the ledger and counted."""
    looked_at_judges = {*tuning.looks_at(run.queue), str(judge.pk)} - {str(in_use.pk)}
    check = _compare(run, judge, in_use, needed=ODDS * max(1, len(looked_at_judges)))
    tuning.note_look(run.queue, judge.pk, voter, check.model_dump_json())
    return check


def _compare(run: Run, judge: Judge, in_use: Judge, *, needed: int) -> HeldOutCheck:
    # They compute with NumPy, without which web servers start.
    import numpy as np

    from judge_eval.board.agreement import agreement_of
    from judge_eval.board.load import outcomes_of
    from judge_eval.stats.evidence import FEWEST_FOR_FORECAST, evidence, forecast

    outcomes = outcomes_of(run, Slice(HALF, HELD_OUT, run.queue.noun))
    ranked, table = agreement_of(outcomes), outcomes.table
    judge_place, in_use_place = (
        outcomes.judges.index(compared_judge) for compared_judge in (judge, in_use)
    )
    votes, right = table.assigned(), table.right()
    both = (votes[:, judge_place] > 0) & (votes[:, in_use_place] > 0)
    shares = [ranked.overall[place].value for place in (judge_place, in_use_place)]
    if not is_ordered(run.queue):
        total = votes[both].sum(axis=0)
        shares = [
            float(right[both][:, place].sum() / total[place]) if both.any() else None
            for place in (judge_place, in_use_place)
        ]
    entered, judges = ranked.entered, len(outcomes.judges)
    largest = np.zeros((judges, judges))
    missing = None
    if entered.n_judges:
        proof = evidence(entered, np.full((judges, judges), float(needed)))
        largest = proof.log_largest
        if len(entered.prompts) >= FEWEST_FOR_FORECAST:
            ahead = (
                (judge_place, in_use_place)
                if largest[judge_place, in_use_place] >= largest[in_use_place, judge_place]
                else (in_use_place, judge_place)
            )
            growth = proof.growth[(slice(None), *ahead)].tolist()
            missing = forecast(log(needed) - float(largest[ahead]), *growth)
    difference, low, high = (
        None if np.isnan(value) else float(value)
        for value in ranked.differences[:, judge_place, in_use_place]
    )
    return HeldOutCheck(
        judge=str(judge.pk),
        against=str(in_use.pk),
        items=int(both.sum()),
        share=shares[0],
        share_against=shares[1],
        difference=difference,
        low=low,
        high=high,
        evidence=min(_MOST, exp(min(700.0, largest[judge_place, in_use_place]))),
        evidence_against=min(_MOST, exp(min(700.0, largest[in_use_place, judge_place]))),
        needed=needed,
        votes_missing=missing,
    )
