"""Whom to ask: endpoints from the settings or the admin, and baselines, which answer here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from time import perf_counter
from typing import Any

from django.conf import settings

from judge_eval.baselines import BASELINES
from judge_eval.config.estimates import PICTURE_TOKENS, Price, Prices
from judge_eval.models import Judge, Provider, Verdict
from judge_eval.prompts.orders import answer_in
from judge_eval.prompts.parse import ParsedVerdict
from judge_eval.providers.chat import Endpoint
from voting.models import Item

NANO = 1_000_000_000


class ProviderFailed(Exception):
    """No verdict came; the text says why. It is never made into a score."""


def ask_baseline(judge: Judge, item: Item, orders: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a baseline's verdict on a comparison whose pictures are ready.

    It is asked in the orders in which the run's judges are, ``AB``, ``BA`` or both.
    """
    baseline = BASELINES.get(judge.name) if judge.is_baseline else None
    if baseline is None:
        raise ProviderFailed(f"no provider answers for {judge.name!r}")
    # A pair that is imported twice is the same pair, whatever its number here.
    seed = item.external_id or str(item.pk)
    a, b = (output.output for output in item.pair)
    started = perf_counter()
    said = {
        order: baseline(*((a, b) if order == Verdict.Order.STORED else (b, a)), f"{seed} {order}")
        for order in orders
    }
    latency_ms = (perf_counter() - started) * 1000
    raw = {order: ParsedVerdict(each.winner, reason=each.reason) for order, each in said.items()}
    found = answer_in(raw)
    return {
        "state": Verdict.State.DONE,
        "order": Verdict.Order.BOTH if len(raw) == 2 else next(iter(raw)),
        "winner": found.winner,
        "consistent": found.consistent,
        "picks": list(found.picks),
        "first_picks": found.first_picks,
        "feedback": found.reason,
        "latency_ms": latency_ms,
    }


def find(name: str) -> Provider | None:
    """Return a provider of the admin, or the one that the settings describe."""
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
