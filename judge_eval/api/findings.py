"""The findings of a run by REST: everything a board shows, as of one ledger entry."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, JsonResponse
from ninja.errors import HttpError
from pydantic import WithJsonSchema

from judge_eval.api.access import KeyRouter, Prefix, Problem, keep_blind, key_of, own_votes, run_of
from judge_eval.api.findings_schema import Computing, Ready
from judge_eval.findings.cache import TooManyParts
from judge_eval.findings.query import Asked, PartUnknown, findings_asked
from judge_eval.findings.slices import LONGEST, SliceInvalid
from judge_eval.models import Run
from judge_eval.selectors import pairs_at
from voting.models import ApiKey

router = KeyRouter("runs")

Part = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": LONGEST,
            "pattern": r"^((tag|generator):[^\u0000]+|ballot:decided)?$",
        }
    ),
]


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
    asked = _asked(run, part)
    if asked.data is None:
        return {"state": "computing"}
    about = {
        "state": "ready",
        "computed_at": asked.found.computed_at,
        "behind": not is_sealed or asked.found.seq < run.board.seq,
        "newer": _newer(run, asked),
        "ledger_seq": run.board.seq,
        "sealed": is_sealed,
    }
    # As they are stored: they may be large, and a new figure is given before it is described.
    return JsonResponse(about | asked.data | {"disputed": _disputed(run, asked.data)})


def _newer(run: Run, asked: Asked) -> int:
    """Return how many votes of the run came since; of a part, at most so many."""
    known = (asked.whole.data or {}).get("as_of", {}).get("votes", 0)
    return max(run.board.votes - int(known), 0) if asked.found.seq < run.board.seq else 0


def _disputed(run: Run, data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs that are disputed most, with what each is called here and elsewhere."""
    named = pairs_at(run, [pair["position"] for pair in data["disputed"]], letters=1)
    return [
        {**pair, **{name: named[pair["position"]][name] for name in ("id", "external_id")}}
        for pair in data["disputed"]
        if pair["position"] in named
    ]


def _asked(run: Run, part: str) -> Asked:
    try:
        return findings_asked(run, part)
    except SliceInvalid as invalid:
        raise HttpError(422, str(invalid)) from invalid
    except PartUnknown as unknown:
        raise HttpError(404, str(unknown)) from unknown
    except TooManyParts as many:
        raise HttpError(429, "too many parts of this run are being looked at") from many
