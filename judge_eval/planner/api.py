from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import Field

from humanjudge.core.validation import ConfigInvalid
from judge_eval.runs.api_access import KeyRouter, key_of
from voting.models import ApiKey

router = KeyRouter("planner")


class Supposed(Schema):
    """What is supposed of a study; shares between 0 and 1."""

    judges: Annotated[int, Field(ge=2, le=50)] = 3
    people_agreement: Annotated[float, Field(gt=0.5, le=1)] = 0.7
    difference: Annotated[float, Field(gt=0, le=1)] = 0.1
    votes_per_item: Annotated[int, Field(ge=1, le=99)] = 1
    ties: Annotated[float, Field(ge=0, le=0.95)] = 0.1
    power: Annotated[float, Field(ge=0.5, le=0.99)] = 0.8
    seconds_per_vote: Annotated[float, Field(ge=1, le=3600)] = 20
    hours_per_person: Annotated[float, Field(ge=0.1, le=1000)] = 2


class PlanOut(Schema):
    votes_per_item: int
    items: int | None
    votes: int | None
    hours: float | None
    people: int | None


class Planned(Schema):
    """What it needs by evidence and by interval; null where more than 20,000 items would be.

    `saving` is the share of the votes on models' win rates that a judge as good as a person saves
    at most, however many items it judges. Of less than 0.05 pages say that it saves nothing.
    """

    evidence: PlanOut
    interval: PlanOut
    saving: float


@router.get("", response=Planned)
def planner(request: HttpRequest, supposed: Query[Supposed]) -> Any:
    """How many items, votes, hours and people it takes to tell two judges apart.

    `difference` is that of their overall agreement, `people_agreement` how often any two people
    would choose the same. By `evidence` one may look as often as one likes; `interval` is for a
    number of items that is fixed beforehand.
    """
    key_of(request, ApiKey.Scope.READ)
    # Computes with NumPy, without which web servers start.
    from judge_eval.stats.planning import POWERS, Study, most_saved, plan

    values = supposed.model_dump()
    costs = {name: values.pop(name) for name in ("seconds_per_vote", "hours_per_person")}
    try:
        study = Study(**values)
    except ValueError as odd:
        path, _, reason = str(odd).partition(": ")
        raise ConfigInvalid.at(path, reason) from odd
    plans = {method: asdict(plan(study, method, **costs)) for method in POWERS}
    return plans | {"saving": most_saved(study)}
