"""Whom to ask: endpoints from the settings or the back office, and baselines, which answer here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from time import perf_counter

from django.conf import settings

from judge_eval.baselines import BASELINES
from judge_eval.config.estimates import PICTURE_TOKENS, Price, Prices
from judge_eval.endpoints.chat import Endpoint
from judge_eval.models import Judge, Provider
from voting.models import Comparison

NANO = 1_000_000_000


class ProviderFailed(Exception):
    """No verdict came; the text says why. It is never made into a score."""


@dataclass(frozen=True)
class Reply:
    winner: str
    feedback: str
    latency_ms: float
    score_a: float | None = None
    score_b: float | None = None


def ask_baseline(judge: Judge, comparison: Comparison) -> Reply:
    """Return a baseline's verdict on a comparison whose pictures are ready."""
    baseline = BASELINES.get(judge.name) if judge.is_baseline else None
    if baseline is None:
        raise ProviderFailed(f"no provider answers for {judge.name!r}")
    # A pair that is imported twice is the same pair, whatever its number here.
    seed = comparison.external_id or str(comparison.pk)
    started = perf_counter()
    opinion = baseline(comparison.a.output, comparison.b.output, seed)
    latency_ms = (perf_counter() - started) * 1000
    return Reply(opinion.winner, opinion.reason, latency_ms)


def find(name: str) -> Provider | None:
    """Return a provider of the back office, or the one that the settings describe."""
    row = Provider.objects.filter(name=name).first()
    if row is None and name == "default" and settings.PROVIDER_BASE_URL:
        row, _ = Provider.objects.get_or_create(
            name=name,
            defaults={
                "base_url": settings.PROVIDER_BASE_URL,
                "key_variable": settings.PROVIDER_KEY_VARIABLE,
            },
        )
    return row


def endpoint_of(provider: Provider) -> Endpoint:
    return Endpoint(
        name=provider.name,
        base_url=provider.base_url,
        # A local endpoint wants none, but the protocol sends one.
        api_key=os.environ.get(provider.key_variable, "") or "none",
        timeout_s=provider.timeout_s,
        structured_output=provider.structured_output,
    )


def lacks_key(provider: Provider) -> bool:
    """Say whether the key that a provider wants is not in this process's environment."""
    return bool(provider.key_variable) and not os.environ.get(provider.key_variable)


def price_of(provider: Provider, model: str) -> Price | None:
    """Return what a model costs, None where nobody has said."""
    price = provider.prices.get(model)
    try:
        rates = [Decimal(str(price[name])) for name in ("input", "output")]
        picture_tokens = int(price.get("picture_tokens", PICTURE_TOKENS))
    except (AttributeError, TypeError, KeyError, ValueError, OverflowError, InvalidOperation):
        return None
    if not all(rate.is_finite() and rate >= 0 for rate in (*rates, Decimal(picture_tokens))):
        return None
    return Price(rates[0], rates[1], picture_tokens)


def unpriced(*models: str) -> str:
    """Say why nothing is asked within a budget."""
    return f"A budget needs every price, and nobody has said what {', '.join(models)} costs."


def prices(names: Iterable[str]) -> Prices:
    """Return every known price of these providers."""
    return {
        (provider.name, model): price
        for provider in Provider.objects.filter(name__in=list(names))
        for model in provider.prices
        if (price := price_of(provider, model)) is not None
    }


def nano(usd: Decimal) -> int:
    return int((usd * NANO).to_integral_value())


def dollars(nano: int) -> str:
    """Return an amount exactly, as short as it can be said.

    Examples
    --------
    >>> dollars(1_500_000_000), dollars(2_500_000), dollars(0)
    ('$1.50', '$0.0025', '$0.00')
    """
    whole, rest = divmod(nano, NANO)
    return f"${whole:,}.{f'{rest:09}'.rstrip('0'):0<2}"
