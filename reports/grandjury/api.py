"""The GrandJury protocol over HTTP, as the public client `grandjury` speaks it: `/api/v1`."""

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Schema

from humanjudge.http import Problem
from humanjudge.lib.ratelimit import RateLimit
from humanjudge.lib.validation import ConfigInvalid
from humanjudge.login import address_of
from judge_eval.api.access import KeyRouter, key_of
from reports.grandjury import analysis
from voting.models import ApiKey

EITHER_KEY: Final = (ApiKey.Kind.MODEL, ApiKey.Kind.PERSON)
# For who asks without a key, by address.
PUBLIC_LIMIT = RateLimit(per_second=2, burst=60)

figures = KeyRouter("figures", kinds=())
scoring = KeyRouter("scoring", EITHER_KEY)

Identifier: TypeAlias = int | str
Share: TypeAlias = float | dict[str, float]
Unit: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Reputation: TypeAlias = Annotated[float, Field(gt=0, le=1_000_000)]


def insist_on_patience(request: HttpRequest) -> None:
    if seconds := PUBLIC_LIMIT.seconds(address_of(request)):
        wait = math.ceil(seconds)
        raise Problem(429, f"too many requests; wait {wait} s", retry_after=wait)


# --- figures of votes that are sent along: nothing is stored, and no key is asked for -----------


class VotesIn(Schema):
    """Rows with `inference_id`, `voter_id`, `vote` and `vote_time`, as far as a figure needs."""

    data: list[dict[str, Any]]


class HistogramIn(VotesIn):
    duration_minutes: int = Field(60, ge=1, le=analysis.MOST_MINUTES)
    gross: bool = True


class PopulationIn(VotesIn):
    voter_list: list[Identifier] = Field(min_length=1)
    inference_ids: list[Identifier] | None = None


class CompletenessIn(PopulationIn):
    gross: bool = False


class MajorityIn(VotesIn):
    good_vote: bool | float | str = True
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
    """How many items have a share of good votes, among those that are not null, above `threshold`."""
    insist_on_patience(request)
    return analysis.majority_good(body.data, body.good_vote, body.threshold)


@figures.post("/verdict/votes-distribution", response=dict[str, int])
def votes_distribution(request: HttpRequest, body: DistributionIn) -> Any:
    """How many rows each item has, the most first."""
    insist_on_patience(request)
    return analysis.votes_distribution(body.data, body.inference_ids)


# --- a step of the quality score ----------------------------------------------------------------


class EvaluateIn(Schema):
    previous_score: Unit
    previous_timestamp: datetime
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
        said = f"{len(body.reputations)} reputations for {len(body.votes)} votes"
        raise ConfigInvalid.at("reputations", said)
    given = body.previous_timestamp
    previous = given if given.tzinfo else given.replace(tzinfo=UTC)
    now = timezone.now()
    rate, unit = parameters_of(api_key.project_id)
    elapsed = max((now - previous).total_seconds(), 0) / SECONDS[unit]
    score, freshness = step(
        body.previous_score, elapsed, rate, body.votes, body.reputations or None
    )
    return {
        "score": score,
        "freshness": freshness,
        "timestamp": max(now, previous) if body.votes else previous,
    }


SECONDS = {"second": 1, "hour": 3600, "day": 86_400}


def parameters_of(project: Any) -> tuple[float, str]:
    return 0.01, "second"


def step(
    previous: float, elapsed: float, rate: float, votes: list[float], reputations: Any
) -> tuple[float, float]:
    weights = reputations or [1.0] * len(votes)
    if not votes:
        return previous, 0.0
    decay = math.exp(-rate * elapsed)
    mean = sum(w * v for w, v in zip(weights, votes, strict=True)) / sum(weights)
    return decay * previous + (1 - decay) * mean, 1 - decay
