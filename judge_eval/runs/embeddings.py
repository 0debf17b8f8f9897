"""Where embeddings come from: a provider of the admin, an endpoint, or a local folder."""

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from pydantic import AfterValidator, Field

from humanjudge.lib.validation import ConfigInvalid, Line, Name, Part, validated
from judge_eval.models import Provider, validate_base_url, validate_key_variable
from judge_eval.providers.embeddings import EmbeddingClient
from judge_eval.runs import providers
from judge_eval.stats.similarity import Embedder, EncoderMissing, LocalEncoder


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
    return providers.find(name, None) or Provider.objects.filter(name=name).first()


def _check_provider(name: str) -> None:
    row = _row(name)
    if row is None:
        raise ValidationError(f"no provider is called {name!r}")
    if providers.lacks_key(row):
        raise ValidationError(f"its key is not here: set {row.key_variable}")


def _check_variable(variable: str) -> None:
    validate_key_variable(variable)
    if not os.environ.get(variable):
        raise ValidationError("no such variable is set here")


class _OfProvider(Part):
    provider: Annotated[Line, Field(max_length=50), _checked(_check_provider)]
    model: Name

    def embedder(self) -> Embedder:
        row = _row(self.provider)
        assert row is not None  # as was checked
        return EmbeddingClient(providers.endpoint_of(row), self.model)


class _OfAddress(Part):
    base_url: Annotated[Line, Field(max_length=500), _checked(validate_base_url)]
    key_variable: Annotated[Line, Field(max_length=100), _checked(_check_variable)] | None = None
    model: Name

    def embedder(self) -> Embedder:
        fields = {"base_url": self.base_url, "key_variable": self.key_variable or ""}
        row = Provider(name=self.base_url, **fields)
        return EmbeddingClient(providers.endpoint_of(row), self.model)


class _OfFolder(Part):
    local: Annotated[Line, Field(max_length=4_000)]

    def embedder(self) -> Embedder:
        return LocalEncoder(self.local)


# Exactly one of these keys says where; the last two say it of this machine, or of any other.
_KINDS: Final[dict[str, type[_OfProvider | _OfAddress | _OfFolder]]] = {
    "provider": _OfProvider,
    "base_url": _OfAddress,
    "local": _OfFolder,
}


def make_embedder(
    options: Mapping[str, object],
    *,
    project: UUID | None = None,
    is_trusted: bool = False,
    path: str = "embedder",
) -> Embedder:
    """Return the embedder that a config asks for, or raise ConfigInvalid with all that is wrong.

    Options are ``{"provider": name, "model": …}``, or, only from whom this machine trusts (its
    command line), ``{"base_url": …, "key_variable": …, "model": …}`` or ``{"local": folder}``:
    anybody else could have it send a key anywhere, or look what lies where. A provider is one that
    runs of the project may use; the command line may use all.
    """
    chosen = [name for name in _KINDS if name in options]
    if len(chosen) != 1:
        raise ConfigInvalid.at(path, f"must name exactly one of {', '.join(_KINDS)}")
    place = f"{path}.{chosen[0]}"
    if chosen != ["provider"] and not is_trusted:
        words = "is taken from the command line only; name a provider"
        raise ConfigInvalid.at(place, words)
    name = options.get("provider")
    if not is_trusted and isinstance(name, str) and providers.find(name, project) is None:
        raise ConfigInvalid.at(place, f"no provider is called {name!r}")
    try:
        return validated(_KINDS[chosen[0]], dict(options), path=path).embedder()
    except EncoderMissing as missing:
        raise ConfigInvalid.at(place, str(missing)) from missing
