"""The findings of a run by REST: everything a board shows, as of one ledger entry."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from ninja import Schema
from ninja.errors import HttpError
from pydantic import WithJsonSchema

from judge_eval.api.access import KeyRouter, Prefix, Problem, keep_blind, key_of, own_votes, run_of
from judge_eval.findings.cache import PartUnknown, TooManyParts, request_findings
from judge_eval.findings.columns import terminal_row
from judge_eval.findings.model import DisputedPair, RunFindings
from judge_eval.findings.slices import LONGEST, SliceInvalid
from judge_eval.selectors import pairs_at
from judge_eval.stats.estimate import best_first
from voting.models import ApiKey

router = KeyRouter("runs")

PART = r"^((tag|generator):[^\u0000]+|ballot:decided)?$"
Part = Annotated[str, WithJsonSchema({"type": "string", "maxLength": LONGEST, "pattern": PART})]


class Computing(Schema):
    """Nothing is known yet; ask again in a second."""

    state: Literal["computing"]


class Disputed(DisputedPair):
    """A pair on which judges were wrong so often; `external_id` is what an import called it."""

    id: UUID
    external_id: str


class Ready(RunFindings):
    """All figures, as of one ledger entry; `newer` votes are being counted, up to `ledger_seq`.

    `sealed`: all votes of this key are among those. `behind`: newer entries are being counted.
    `rows` are the judges by overall agreement as the command line prints them.
    """

    state: Literal["ready"]
    computed_at: datetime
    behind: bool
    newer: int
    ledger_seq: int
    sealed: bool
    disputed: list[Disputed]  # type: ignore[assignment]  # of the same, with more about each
    rows: list[list[str]]


@router.get("/{run_id}/findings", response={200: Ready | Computing, 429: Problem})
def findings(request: HttpRequest, run_id: Prefix, part: Part = "") -> Any:
    """Judges and models with intervals, significance, the Alt-Test: all that the boards show.

    They are computed in the background: `state` is `computing` until there is something, and
    `behind` says that newer votes are being counted. `part` is `tag:…`, `generator:…` or
    `ballot:decided` (only votes and verdicts for A or B); `parts` says what there is. What cannot
    be computed is null with a reason beside it. A key that votes blindly, with the scope `vote`
    and without `verdicts`, is refused while it has pairs to vote on.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    run = run_of(api_key, run_id)
    keep_blind(api_key, run)
    _, is_sealed = own_votes(api_key, run)
    try:
        requested = request_findings(run, part)
    except SliceInvalid as invalid:
        raise HttpError(422, str(invalid)) from invalid
    except PartUnknown as unknown:
        raise HttpError(404, str(unknown)) from unknown
    except TooManyParts as many:
        raise HttpError(429, "too many parts of this run are being looked at") from many
    figures = requested.findings
    if figures is None:
        return {"state": "computing"}
    is_behind = requested.row.seq < run.board.seq
    # Of a part, at most so many.
    counted = (requested.whole.data or {}).get("as_of", {}).get("votes", 0)
    pairs = pairs_at(run, [pair.position for pair in figures.disputed], letters=1)
    order = best_first([judge.overall.value for judge in figures.judges])
    about = {
        "state": "ready",
        "computed_at": requested.row.computed_at,
        "behind": not is_sealed or is_behind,
        "newer": max(run.board.votes - counted, 0) if is_behind else 0,
        "ledger_seq": run.board.seq,
        "sealed": is_sealed,
        "disputed": [
            pair.model_dump() | {name: pairs[pair.position][name] for name in ("id", "external_id")}
            for pair in figures.disputed
            if pair.position in pairs
        ],
        "rows": [terminal_row(figures.judges[place]) for place in order],
    }
    # It may be large, and was checked when it was read.
    return JsonResponse(figures.stored() | about)
