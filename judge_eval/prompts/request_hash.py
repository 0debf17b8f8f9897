"""Two keys, not to be confused: which competitor answers, and which stored reply to reuse.

`judge_fingerprint` names the competitor: a changed one is a new judge and starts anew.
`request_hash` names one question, word for word and picture for picture: the same question need
not be paid for twice. Both are SHA-256 over canonical JSON. That holds no floats, so a float
stands there as the shortest decimal text that reads back as the same float, a whole one as an
integer: a temperature of 0, 0.0 and -0.0 is the same question.
"""

from __future__ import annotations

import math
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from voting.ledger.chain import canonical

# A change of what is hashed must not meet replies stored under the old rule.
VERSION: Final = 1
_DATA: Final = "data:"
_HASHED: Final = "sha256:"


def request_hash(
    *,
    model: str,
    parameters: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    pictures: Sequence[str],
    order: str,
    sample: int,
) -> str:
    """Return the key of a stored reply, in hex.

    Parameters
    ----------
    model : str
        As requested.
    parameters : mapping
        All that is sent beside model and messages and can change the reply. Where one model is
        asked at several endpoints, the endpoint belongs here too.
    messages : sequence of mapping
        In the shape of OpenAI's chat API, pictures as data URLs or already redacted.
    pictures : sequence of str
        SHA-256 in hex of each picture's bytes, in the order in which the messages show them.
    order : str
        In which order the pair is asked.
    sample : int
        Number of the sample, so that several samples of one question are several replies.

    Raises
    ------
    ValueError
        When the pictures are not those of the messages, or a number is not finite.

    Examples
    --------
    >>> asked = {"model": "m", "messages": [], "pictures": [], "order": "AB", "sample": 0}
    >>> cold = request_hash(parameters={"temperature": 0.0}, **asked)
    >>> cold == request_hash(parameters={"temperature": 0}, **asked)
    True
    >>> cold == request_hash(parameters={"temperature": 0.7}, **asked)
    False
    """
    return _digest(
        {
            "version": VERSION,
            "model": model,
            "parameters": parameters,
            "messages": redacted(messages, pictures),
            "order": order,
            "sample": sample,
        }
    )


def judge_fingerprint(
    *,
    model: str,
    provider: str,
    prompt_version: str,
    parameters: Mapping[str, Any],
    renderer: str | None,
) -> str:
    """Return the name of a competitor, in hex.

    Parameters
    ----------
    model : str
        As the endpoint reports it back, else as requested.
    provider, prompt_version : str
    parameters : mapping
        Whatever of temperature, samples, orders and so on makes it another judge.
    renderer : str or None
        What drew the pictures that it sees; None for a judge of texts.

    Examples
    --------
    >>> judge = {"model": "m", "provider": "p", "parameters": {}, "renderer": None}
    >>> judge_fingerprint(prompt_version="1", **judge) == judge_fingerprint(
    ...     prompt_version="2", **judge
    ... )
    False
    """
    return _digest(
        {
            "version": VERSION,
            "model": model,
            "provider": provider,
            "prompt_version": prompt_version,
            "parameters": parameters,
            "renderer": renderer,
        }
    )


def redacted(
    messages: Sequence[Mapping[str, Any]], pictures: Sequence[str]
) -> list[dict[str, Any]]:
    """Return messages in which each picture is its hash, fit to be stored and compared.

    Parameters
    ----------
    messages : sequence of mapping
        Not changed.
    pictures : sequence of str
        As in `request_hash`. A data URL is checked against it; a picture that is redacted
        already need not be sent again.

    Raises
    ------
    ValueError
        When there are more or fewer pictures, or others.

    Examples
    --------
    >>> part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
    >>> shown = redacted([{"role": "user", "content": [part]}], [sha256(b"x").hexdigest()])
    >>> shown[0]["content"][0]["image_url"]["url"][:15]
    'sha256:2d711642'
    """
    hashes = iter(pictures)
    cleared = [
        {**message, "content": _redacted_content(message.get("content"), hashes)}
        for message in messages
    ]
    if next(hashes, None) is not None:
        raise ValueError("there are more pictures than the messages show")
    return cleared


def _redacted_content(content: object, hashes: Iterator[str]) -> object:
    if not isinstance(content, list | tuple):
        return content
    return [_redacted_part(part, hashes) for part in content]


def _redacted_part(part: Mapping[str, Any], hashes: Iterator[str]) -> Mapping[str, Any]:
    if part.get("type") != "image_url":
        return part
    stated = next(hashes, None)
    if stated is None:
        raise ValueError("the messages show more pictures than there are")
    image = dict(part["image_url"])
    if _hash_of(image["url"]) != _HASHED + stated.lower():
        raise ValueError(f"the messages show another picture than {stated}")
    return {**part, "image_url": {**image, "url": _HASHED + stated.lower()}}


def _hash_of(url: str) -> str:
    if not url.startswith(_DATA):
        return url
    try:
        return _HASHED + sha256(b64decode(url.partition(",")[2], validate=True)).hexdigest()
    except NotBase64 as error:
        raise ValueError("the messages show a picture that is not base64") from error


def _digest(content: Mapping[str, Any]) -> str:
    plain = {key: _plain(value) for key, value in content.items()}
    return sha256(canonical(plain)).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be sent to a model")
        return int(value) if value.is_integer() else repr(value)
    return value
