"""Whom to ask, and what it costs: endpoints from the settings or the admin."""

import os
from collections.abc import Iterable
from decimal import Decimal

from django.conf import settings
from pydantic import ValidationError

from judge_eval.config.estimates import Price, Prices
from judge_eval.models import Provider
from judge_eval.providers.chat import NO_KEY, Endpoint

NANO = 1_000_000_000
# Why nothing comes of a trial.
NOT_TAKEN_UP = "No worker has taken this up. Is one running?"


def find(name: str) -> Provider | None:
    """Return a provider of the admin, or the one that the settings describe."""
    row = Provider.objects.filter(name=name).first()
    if row is None and name == "default" and settings.PROVIDER_BASE_URL:
        fields = {
            "base_url": settings.PROVIDER_BASE_URL,
            "key_variable": settings.PROVIDER_KEY_VARIABLE,
        }
        row, _ = Provider.objects.get_or_create(name=name, defaults=fields)
    return row


def endpoint_of(provider: Provider) -> Endpoint:
    return Endpoint(
        name=provider.name,
        base_url=provider.base_url,
        api_key=os.environ.get(provider.key_variable, "") or NO_KEY,
        timeout_s=provider.timeout_s,
        structured_output=provider.structured_output,
    )


def lacks_key(provider: Provider) -> str:
    """Say which key this process lacks to call a provider; nothing where it has it."""
    variable = provider.key_variable
    has_it = not variable or os.environ.get(variable)
    return "" if has_it else f"the workers' environment has no {variable}"


def no_such(name: str) -> str:
    return f"There is no provider named {name}."


def price_of(provider: Provider, model: str) -> Price | None:
    """Return what a model costs, None where nobody has said."""
    try:
        return Price.model_validate(provider.prices.get(model))
    except ValidationError:
        return None


def unpriced(*models: str) -> str:
    return f"A budget needs every price, and nobody has said what {', '.join(models)} costs."


def prices(names: Iterable[str]) -> Prices:
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

    >>> dollars(1_500_000_000), dollars(2_500_000), dollars(0)
    ('$1.50', '$0.0025', '$0.00')
    """
    whole, rest = divmod(nano, NANO)
    return f"${whole:,}.{f'{rest:09}'.rstrip('0'):0<2}"
