"""Whom to ask, and what it costs: endpoints from the settings or the admin."""

import os
from collections.abc import Iterable
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from pydantic import ValidationError

from judge_eval.config.estimates import Price, Prices
from judge_eval.models import Provider
from judge_eval.providers.chat import NO_KEY, Endpoint
from voting.access import Who, projects_where

NANO = 1_000_000_000


def usable_in(project: UUID | None) -> QuerySet[Provider]:
    """Return the providers that runs of a project may ask: its own, and the installation's."""
    return Provider.objects.filter(Q(project=None) | Q(project=project))


def offered_to(who: Who) -> QuerySet[Provider]:
    """Return the providers that somebody may use in some project."""
    return Provider.objects.filter(Q(project=None) | Q(project__in=projects_where(who, "run")))


def is_usable(provider: Provider, project: UUID | None) -> bool:
    return provider.project_id is None or provider.project_id == project


def find(name: str, project: UUID | None) -> Provider | None:
    """Return a provider that runs of a project may ask, or the one that the settings describe.

    One of another project is answered as one that there is not: not even its name is told.
    """
    row = Provider.objects.filter(name=name).first()
    if row is None and name == "default" and settings.PROVIDER_BASE_URL:
        fields = {
            "base_url": settings.PROVIDER_BASE_URL,
            "key_variable": settings.PROVIDER_KEY_VARIABLE,
        }
        row, _ = Provider.objects.get_or_create(name=name, defaults=fields)
    return row if row is not None and is_usable(row, project) else None


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


def prices(names: Iterable[str], project: UUID | None) -> Prices:
    return {
        (provider.name, model): price
        for provider in usable_in(project).filter(name__in=list(names))
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
