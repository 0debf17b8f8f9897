"""Where embeddings come from: a provider of the admin, an endpoint, or a local folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from django.core.exceptions import ValidationError

from judge_eval.config.fields import ConfigError, Fields
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.models import validate_base_url, validate_key_variable
from judge_eval.providers.chat import Endpoint
from judge_eval.providers.embeddings import EmbeddingClient, FloatArray
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import providers
from judge_eval.stats.local_encoder import EncoderMissing, LocalEncoder
from judge_eval.stats.semantic import Embedder, EmbeddingFailed

# Exactly one of these says where; the last two say it of this machine, or of any other.
_WHERE: Final = ("provider", "base_url", "local")
_LONGEST: Final = 500


class EndpointEmbedder:
    """Embeds texts at an endpoint; `model` is what the endpoint says that it is."""

    def __init__(self, client: EmbeddingClient) -> None:
        self._client = client

    @property
    def model(self) -> str:
        return self._client.model

    def __call__(self, texts: Sequence[str], /) -> list[FloatArray | EmbeddingFailed]:
        return [
            EmbeddingFailed(row.reason) if isinstance(row, CallFailed) else row
            for row in self._client.embed(texts)
        ]


def make_embedder(
    options: Mapping[str, object], *, is_trusted: bool = False, path: str = "embedder"
) -> Embedder:
    """Return the embedder that a config asks for.

    Options are ``{"provider": name, "model": …}``, or, only from whom this machine trusts (its
    command line), ``{"base_url": …, "key_variable": …, "model": …}`` or ``{"local": folder}``:
    anybody else could have it send a key anywhere, or look what lies where.

    Raises
    ------
    ConfigInvalid
        With all that is wrong, each mistake named by its path.
    """
    errors: list[ConfigError] = []
    fields = Fields(dict(options), path, errors)
    chosen = [name for name in _WHERE if name in options]
    if len(chosen) != 1:
        fields.complain("", f"must name exactly one of {', '.join(_WHERE)}")
    elif chosen[0] != "provider" and not is_trusted:
        fields.complain(chosen[0], "is taken from the command line only; name a provider")
    if errors:
        raise ConfigInvalid(errors)
    make = {"provider": _of_provider, "base_url": _of_address, "local": _of_folder}[chosen[0]]
    embedder = make(fields)
    fields.close()
    if errors or embedder is None:
        raise ConfigInvalid(errors)
    return embedder


def _of_provider(fields: Fields) -> Embedder | None:
    name = fields.text("provider", most=50)
    model = fields.text("model", most=200)
    row = providers.find(name) if name else None
    if name and row is None:
        fields.complain("provider", f"no provider is called {name!r}")
    elif row is not None and providers.lacks_key(row):
        fields.complain("provider", f"its key is not here: set {row.key_variable}")
    elif row is not None:
        return EndpointEmbedder(EmbeddingClient(providers.endpoint_of(row), model))
    return None


def _of_address(fields: Fields) -> Embedder | None:
    base_url = fields.text("base_url", most=_LONGEST)
    variable = fields.text("key_variable", "", most=100)
    model = fields.text("model", most=200)
    for key, value, check in (
        ("base_url", base_url, validate_base_url),
        ("key_variable", variable, validate_key_variable),
    ):
        try:
            if value:
                check(value)
        except ValidationError as error:
            fields.complain(key, " ".join(error.messages))
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        fields.complain("key_variable", "no such variable is set here")
    endpoint = Endpoint(name=base_url, base_url=base_url, api_key=key or "none")
    return EndpointEmbedder(EmbeddingClient(endpoint, model))


def _of_folder(fields: Fields) -> Embedder | None:
    folder = fields.text("local", most=4_000)
    try:
        return LocalEncoder(folder) if folder else None
    except EncoderMissing as missing:
        fields.complain("local", str(missing))
    return None
