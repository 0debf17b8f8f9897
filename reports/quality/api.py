from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Schema

from humanjudge.core.validation import ConfigInvalid, Part, json_schema, validated
from judge_eval.board.few import require_votes_first_in_project
from judge_eval.models import Run
from judge_eval.runs.api_access import KeyRouter, Prefix, json_of, keep_blind, key_of, project_of
from judge_eval.stats.estimate import wilson
from reports.models import Quality
from reports.quality.parameters import Parameters, change, parameters_in, parameters_of
from reports.quality.projection import points_of
from voting.ballot.tuning import OF_TUNED
from voting.models import ApiKey
from voting.people.voters import voter_of_key

router = KeyRouter("quality")


class ParameterOptions(Part):
    """What a change of parameters says beside them."""

    apply_reputations: bool = False


_SCHEMA = json_schema(Parameters)
_SCHEMA["properties"] |= json_schema(ParameterOptions)["properties"]
_CONTENT = {"schema": _SCHEMA, "example": {"decay_rate": 0.1, "decay_unit": "day"}}
_CHANGES = {"requestBody": {"required": True, "content": {"application/json": _CONTENT}}}


class ParametersOut(Parameters):
    half_life_seconds: float
    # Whether they hold already; if not, the score follows within seconds.
    applied: bool


class PointOut(Schema):
    at: datetime
    score: float
    freshness: float
    votes: int
    passes: int


class ScoreOut(Schema):
    score: float
    freshness: float
    votes: int
    passes: int
    pass_rate: float
    pass_rate_low: float
    pass_rate_high: float
    last_vote_at: datetime
    history: list[PointOut]


class QualityOut(Schema):
    project: UUID
    name: str
    ledger_seq: int
    parameters: ParametersOut
    # Null where nobody has voted, and while judges are tuned on one half of a run.
    items: ScoreOut | None
    pairs: ScoreOut | None


@router.get("/{project_id}/quality", response=QualityOut)
def quality(request: HttpRequest, project_id: Prefix) -> Any:
    """The quality scores of a project, of single items and of pairs, with their history.

    There are none while judges are tuned on half of a run of the project: they are of both halves.
    The score moves only when votes come: nothing decays while nobody votes. `freshness` says how
    much the last batch of votes moved it. A key that votes blindly, with the scope `vote` and
    without `verdicts`, is refused while it has pairs to vote on.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    project = project_of(api_key, project_id, "see")
    if ApiKey.Scope.VOTE in api_key.scopes:
        for run in Run.objects.filter(queue__project=project).select_related("queue"):
            keep_blind(api_key, run)
    require_votes_first_in_project(api_key, project)
    qualities = project.qualities.filter(votes__gt=0).exclude(OF_TUNED)
    scores = {row.series: _score(row) for row in qualities}
    return {
        "project": project.pk,
        "name": project.name,
        "ledger_seq": project.head_seq,
        "parameters": _parameters(parameters_of(project), applied=True),
        "items": scores.get(Quality.Series.ITEMS),
        "pairs": scores.get(Quality.Series.PAIRS),
    }


@router.patch("/{project_id}/quality", response=ParametersOut, openapi_extra=_CHANGES)
def change_parameters(request: HttpRequest, project_id: Prefix) -> Any:
    """Change parameters: those that are named, for all votes there are.

    It is an entry of the ledger, and the scores are folded anew when that is sealed, within
    seconds: `applied` is false until then. `apply_reputations` gives today's reputations of voters
    to votes that were sealed with others.
    """
    api_key = key_of(request, ApiKey.Scope.MANAGE)
    project = project_of(api_key, project_id, "manage")
    data = json_of(request)
    if not isinstance(data, dict):
        raise ConfigInvalid.at("", "the body must be an object")
    names = [name for name in ParameterOptions.model_fields if name in data]
    options = validated(ParameterOptions, {name: data.pop(name) for name in names})
    actor = voter_of_key(project.pk, api_key)
    entry = change(project, data, actor, apply_reputations=options.apply_reputations)
    if entry is None:
        return _parameters(parameters_of(project), applied=True)
    return _parameters(parameters_in(entry.payload or {}), applied=False)


def _parameters(parameters: Parameters, *, applied: bool) -> ParametersOut:
    half_life = parameters.half_life
    return ParametersOut(**dict(parameters), half_life_seconds=half_life, applied=applied)


def _score(quality: Quality) -> ScoreOut:
    low, high = wilson(quality.passes, quality.votes) or (0.0, 1.0)
    assert quality.last_vote_at is not None  # there are votes
    return ScoreOut(
        score=quality.score,
        freshness=quality.freshness,
        votes=quality.votes,
        passes=quality.passes,
        pass_rate=quality.passes / quality.votes,
        pass_rate_low=low,
        pass_rate_high=high,
        last_vote_at=quality.last_vote_at,
        history=[PointOut.from_orm(point) for point in points_of(quality)],
    )
