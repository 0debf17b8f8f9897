"""How rows become a run, as people write it: checked, every mistake named by its path."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from humanjudge.lib.strict_json import NotJson, loads
from judge_eval.config.fields import ConfigError
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.exchange.import_report import ImportOptions
from judge_eval.exchange.rows import Kind
from voting.choices import Choice

_Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Kind | None = None
    rubric: _Text | None = None
    ballot: Annotated[list[Choice], Field(min_length=2)] | None = None
    votes_per_pair: Annotated[int, Field(ge=1, le=100)] = 1
    reveal: Literal["after_each", "at_end", "never"] = "after_each"
    open_for_voting: bool | None = None
    skip_errors: bool = False
    baselines: bool | None = None
    inconsistent: Literal["tie", "wrong", "decided"] = "tie"
    source: Annotated[str, StringConstraints(max_length=200)] = ""


def parse(data: object) -> ImportOptions:
    """Check options by name, the attributes of `ImportOptions`.

    Raises
    ------
    ConfigInvalid
        With all that is wrong.

    Examples
    --------
    >>> parse({"votes_per_pair": 3}).votes_per_pair
    3
    >>> parse({"ballot": ["A", "left"]})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    judge_eval.config.run_config.ConfigInvalid: ballot[1]: Input should be ...
    """
    try:
        return ImportOptions(**_Options.model_validate(data).model_dump())
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        raise ConfigInvalid([ConfigError(_path(p["loc"]), p["msg"]) for p in problems]) from error


def json_text(path: str, text: str) -> object:
    """Return what a JSON text holds.

    Raises
    ------
    ConfigInvalid

    Examples
    --------
    >>> json_text("mapping", '{"pair": "idx"}')
    {'pair': 'idx'}
    """
    try:
        return loads(text)
    except NotJson as error:
        raise ConfigInvalid([ConfigError(path, str(error))]) from error


def _path(places: tuple[int | str, ...]) -> str:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in places)
    return path.removeprefix(".")
