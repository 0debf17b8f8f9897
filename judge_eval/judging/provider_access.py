"""Whom to ask, and what it costs: endpoints from the settings or the database, and embedders.

An embedder is such a provider, an endpoint, or a local folder.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import pydantic
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet
from pydantic import AfterValidator, Field

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import ConfigInvalid, Line, Name, Part, validated
from judge_eval.judging.config.estimates import Price, Prices
from judge_eval.judging.providers.chat import NO_KEY, Endpoint
from judge_eval.models import Provider, validate_base_url, validate_key_variable
from voting.access.changes import note_change
from voting.access.roles import Actor, projects_where

if TYPE_CHECKING:
    from judge_eval.stats.similarity import Embedder

NANO = 1_000_000_000


def usable_in(project: UUID | None) -> QuerySet[Provider]:
    """Return the providers that runs of a project may ask: its own, and the installation's."""
    return Provider.objects.filter(Q(project=None) | Q(project=project))


def offered_to(user: Actor) -> QuerySet[Provider]:
    """Return the providers that somebody may use in some project."""
    return Provider.objects.filter(Q(project=None) | Q(project__in=projects_where(user, "run")))


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


def save(provider: Provider, changed: Sequence[str], actor: User) -> None:
    """Write what was set of a provider; what workers wrote on its row meanwhile stays."""
    is_new, columns = provider.pk is None, list(changed)
    if "base_url" in columns:
        provider.refused = {}
        columns.append("refused")
    with transaction.atomic():
        provider.save(update_fields=None if is_new else columns)
        note_change(provider, actor, "Made." if is_new else f"Changed: {', '.join(changed)}.")


def endpoint_of(provider: Provider) -> Endpoint:
    return Endpoint(
        name=provider.name,
        base_url=provider.base_url,
        api_key=os.environ.get(provider.key_variable, "") or NO_KEY,
        timeout_s=provider.timeout_s,
        structured_output=provider.structured_output,
        refused=provider.refused,
    )


def lacks_key(provider: Provider) -> str:
    """Say which key this process lacks to call a provider; nothing where it has it."""
    variable = provider.key_variable
    has_it = not variable or os.environ.get(variable)
    return "" if has_it else f"the workers' environment has no {variable}"


def no_such(name: str) -> str:
    return f"There is no provider named {name}."


def price_of(provider: Provider, model: str) -> Price | None:
    try:
        return Price.model_validate(provider.prices.get(model))
    except pydantic.ValidationError:
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
    dollar_count, rest = divmod(nano, NANO)
    return f"${dollar_count:,}.{f'{rest:09}'.rstrip('0'):0<2}"


def _checked(check: Callable[[str], None]) -> AfterValidator:
    """Use a check of Django's for a value of a config."""

    def validator(value: str) -> str:
        try:
            check(value)
        except ValidationError as error:
            raise ValueError(" ".join(error.messages)) from error
        return value

    return AfterValidator(validator)


def _row(name: str) -> Provider | None:
    return find(name, None) or Provider.objects.filter(name=name).first()


def _check_provider(name: str) -> None:
    row = _row(name)
    if row is None:
        raise ValidationError(f"no provider is called {name!r}")
    if lacks_key(row):
        raise ValidationError(f"its key is not here: set {row.key_variable}")


def _check_variable(variable: str) -> None:
    validate_key_variable(variable)
    if not os.environ.get(variable):
        raise ValidationError("no such variable is set here")


def _client(endpoint: Endpoint, model: str) -> "Embedder":
    from judge_eval.judging.providers.embeddings import (
        EmbeddingClient,  # NumPy, for who computes alone
    )

    return EmbeddingClient(endpoint, model)


class _ProviderOptions(Part):
    provider: Annotated[Line, Field(max_length=50), _checked(_check_provider)]
    model: Name

    def embedder(self) -> "Embedder":
        row = _row(self.provider)
        assert row is not None  # as was checked
        return _client(endpoint_of(row), self.model)


class _AddressOptions(Part):
    base_url: Annotated[Line, Field(max_length=500), _checked(validate_base_url)]
    key_variable: Annotated[Line, Field(max_length=100), _checked(_check_variable)] | None = None
    model: Name

    def embedder(self) -> "Embedder":
        fields = {"base_url": self.base_url, "key_variable": self.key_variable or ""}
        row = Provider(name=self.base_url, **fields)
        return _client(endpoint_of(row), self.model)


class _FolderOptions(Part):
    local: Annotated[Line, Field(max_length=4_000)]

    def embedder(self) -> "Embedder":
        from judge_eval.stats.similarity import LocalEncoder

        return LocalEncoder(self.local)


# Exactly one of these keys says where; the last two say it of this machine, or of any other.
_KINDS: Final[dict[str, type[_ProviderOptions | _AddressOptions | _FolderOptions]]] = {
    "provider": _ProviderOptions,
    "base_url": _AddressOptions,
    "local": _FolderOptions,
}


def make_embedder(
    options: JsonObject,
    *,
    project: UUID | None = None,
    is_trusted: bool = False,
    path: str = "embedder",
) -> "Embedder":
    """Return the embedder that a config asks for, or raise ConfigInvalid with all that is wrong.

    Options are ``{"provider": name, "model": …}``, or, only from whom this machine trusts (its
    command line), ``{"base_url": …, "key_variable": …, "model": …}`` or ``{"local": folder}``:
    anybody else could have it send a key anywhere, or look what lies where. A provider is one that
    runs of the project may use; the command line may use all.
    """
    from judge_eval.stats.similarity import EncoderMissing

    named_kinds = [name for name in _KINDS if name in options]
    if len(named_kinds) != 1:
        raise ConfigInvalid.at(path, f"must name exactly one of {', '.join(_KINDS)}")
    place = f"{path}.{named_kinds[0]}"
    if named_kinds != ["provider"] and not is_trusted:
        words = "is taken from the command line only; name a provider"
        raise ConfigInvalid.at(place, words)
    name = options.get("provider")
    if not is_trusted and isinstance(name, str) and find(name, project) is None:
        raise ConfigInvalid.at(place, f"no provider is called {name!r}")
    try:
        return validated(_KINDS[named_kinds[0]], dict(options), path=path).embedder()
    except EncoderMissing as missing:
        raise ConfigInvalid.at(place, str(missing)) from missing
