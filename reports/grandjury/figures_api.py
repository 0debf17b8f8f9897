"""Figures of votes that are sent along: nothing is stored."""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Schema
from pydantic import BeforeValidator, StrictBool, StrictFloat, StrictInt

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import INTEGER, ConfigInvalid
from judge_eval.runs.api_access import KeyRouter, insist, key_of
from reports.grandjury import analysis, queries
from reports.grandjury.api import EITHER_KEY, insist_on_patience
from reports.quality.parameters import DEFAULT, parameters_of
from reports.quality.score import SECONDS, step
from voting.models import ApiKey

figures = KeyRouter("figures", kinds=())
scoring = KeyRouter("scoring", EITHER_KEY)

Identifier: TypeAlias = StrictInt | StrictFloat | str
Share: TypeAlias = float | dict[str, float]
Unit: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1)]
Reputation: TypeAlias = Annotated[float, Field(strict=True, gt=0, le=1_000_000)]


class VotesIn(Schema):
    """Rows with `inference_id`, `voter_id`, `vote` and `vote_time`, as far as a figure needs."""

    data: list[JsonObject]


class HistogramIn(VotesIn):
    duration_minutes: Annotated[
        int, Field(strict=True, ge=1, le=analysis.MOST_MINUTES), INTEGER
    ] = 60
    gross: StrictBool = True


class PopulationIn(VotesIn):
    voter_list: list[Identifier] = Field(min_length=1)
    inference_ids: list[Identifier] | None = None


class CompletenessIn(PopulationIn):
    gross: StrictBool = False


class MajorityIn(VotesIn):
    good_vote: StrictBool | StrictInt | StrictFloat | str = True
    threshold: Unit = 0.5


class DistributionIn(VotesIn):
    inference_ids: list[Identifier] | None = None


class Count(Schema):
    count: int


Histogram: TypeAlias = dict[str, int] | dict[str, dict[str, int]]


@figures.post("/verdict/histogram", response=Histogram)
def histogram(request: HttpRequest, body: HistogramIn) -> Any:
    """Votes per `duration_minutes`, by when each stretch begins (UTC, from 1970 on).

    With `gross` false there is a histogram for each item, by its identifier.
    """
    insist_on_patience(request)
    return analysis.histogram(body.data, body.duration_minutes, body.gross)


@figures.post("/verdict/completeness", response=Share)
def completeness(request: HttpRequest, body: CompletenessIn) -> Any:
    """The share of `voter_list` that has voted: of each of `inference_ids`, or one in all.

    With `gross` it is one share, over all of `inference_ids` together where they are given.
    """
    insist_on_patience(request)
    return analysis.completeness(body.data, body.voter_list, body.inference_ids, body.gross)


@figures.post("/verdict/population-confidence", response=Share)
def population_confidence(request: HttpRequest, body: PopulationIn) -> Any:
    """The share of the population that was heard: the same figure as completeness."""
    insist_on_patience(request)
    return analysis.population_confidence(body.data, body.voter_list, body.inference_ids)


@figures.post("/verdict/majority-good", response=Count)
def majority_good(request: HttpRequest, body: MajorityIn) -> Any:
    """How many items have a share of good votes, null ones left out, above `threshold`."""
    insist_on_patience(request)
    return analysis.majority_good(body.data, body.good_vote, body.threshold)


@figures.post("/verdict/votes-distribution", response=dict[str, int])
def votes_distribution(request: HttpRequest, body: DistributionIn) -> Any:
    """How many rows each item has, the most first."""
    insist_on_patience(request)
    return analysis.votes_distribution(body.data, body.inference_ids)


# --- a step of the quality score ----------------------------------------------------------------


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a time as text, such as 2026-03-01T09:00:00Z")  # noqa: TRY004
    return value


class EvaluateIn(Schema):
    previous_score: Unit
    previous_timestamp: Annotated[datetime, BeforeValidator(_text)]
    votes: list[Unit]
    reputations: list[Reputation] = []


class Evaluated(Schema):
    score: float
    freshness: float
    timestamp: datetime


@scoring.post("/evaluate", response=Evaluated)
def evaluate(request: HttpRequest, body: EvaluateIn) -> Any:
    """The score after one batch of votes, cast now, by the parameters of the key's project.

    Without votes nothing moves: the previous score and time, freshness 0. Without reputations all
    are 1. A time without a zone is UTC; one that is still to come counts as now.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    if body.reputations and len(body.reputations) != len(body.votes):
        message = f"{len(body.reputations)} reputations for {len(body.votes)} votes"
        raise ConfigInvalid.at("reputations", message)
    timestamp = body.previous_timestamp
    previous = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    now = timezone.now()
    project = queries.project_of(api_key)
    if project is not None:
        insist(api_key, "see", project.pk)
    rules = parameters_of(project) if project else DEFAULT
    elapsed = max((now - previous).total_seconds(), 0) / SECONDS[rules.decay_unit]
    moved = step(
        body.previous_score, elapsed, rules.decay_rate, body.votes, body.reputations or None
    )
    return {
        "score": moved.score,
        "freshness": moved.freshness,
        "timestamp": max(now, previous) if body.votes else previous,
    }
