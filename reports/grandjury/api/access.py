"""What endpoints of the protocol begin with: whose key it is, who waits, which row is meant."""

import math
from typing import Annotated, Final, TypeAlias

from django.http import HttpRequest
from ninja import Field
from ninja.errors import HttpError

from humanjudge.http import Problem
from humanjudge.lib.ratelimit import RateLimit
from humanjudge.login import address_of
from judge_eval.api.access import key_of
from reports.grandjury import selectors
from reports.models import Benchmark, TracedModel
from voting.models import ApiKey

EITHER_KEY: Final = (ApiKey.Kind.MODEL, ApiKey.Kind.PERSON)
# For who asks without a key, by address.
PUBLIC_LIMIT = RateLimit(per_second=2, burst=60)

# An identifier or a slug. What is none of either is answered as one that is not known.
Named: TypeAlias = Annotated[str, Field(pattern="^[0-9A-Za-z_-]{1,80}$")]


def insist_on_patience(request: HttpRequest) -> None:
    if seconds := PUBLIC_LIMIT.seconds(address_of(request)):
        wait = math.ceil(seconds)
        raise Problem(429, f"too many requests; wait {wait} s", retry_after=wait)


def person_key(request: HttpRequest) -> ApiKey:
    """Return the key of a person who may make and enrol models."""
    api_key = key_of(request)
    if api_key.kind != ApiKey.Kind.PERSON:
        raise HttpError(403, "this takes a person's key (gj_pat_…), not that of a model")
    return key_of(request, ApiKey.Scope.MANAGE)


def model_named(api_key: ApiKey, text: str) -> TracedModel:
    model = selectors.find_model(api_key, text)
    if model is None:
        raise HttpError(404, f"this key knows no model {text!r}")
    return model


def benchmark_named(text: str) -> Benchmark:
    benchmark = selectors.find_benchmark(text)
    if benchmark is None:
        raise HttpError(404, f"there is no benchmark {text!r}")
    return benchmark
