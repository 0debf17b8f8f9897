"""Two keys, not to be confused: which competitor answers, and which stored reply to reuse.

`judge_fingerprint` names the competitor: a changed one is a new judge and starts anew.
`request_hash` names one question, word for word and picture for picture: the same question need
not be paid for twice. Both are SHA-256 over canonical JSON. That holds no floats, so a float
stands there as the shortest decimal text that reads back as the same float, a whole one as an
integer: a temperature of 0, 0.0 and -0.0 is the same question.
"""

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from humanjudge.core.strict_json import JsonObject
from voting.ledger.chain import canonical

# A change of what is hashed must not meet replies stored under the old rule.
VERSION: Final = 1


def request_hash(
    *, model: str, parameters: JsonObject, messages: Sequence[JsonObject], order: str, sample: int
) -> str:
    """Return the key of a stored reply, in hex; each order and sample is a reply of its own.

    `parameters` are all that is sent beside model and messages and can change the reply, the
    endpoint too. In `messages`, as OpenAI's chat API has them, a picture stands by its hash.

    >>> same = {"model": "m", "messages": [], "order": "AB", "sample": 0}
    >>> cold = request_hash(parameters={"temperature": 0.0}, **same)
    >>> cold == request_hash(parameters={"temperature": 0}, **same)
    True
    """
    hashed = [
        {**message, "content": _without_bytes(message.get("content"))} for message in messages
    ]
    return _digest(model=model, parameters=parameters, messages=hashed, order=order, sample=sample)


def judge_fingerprint(
    *, model: str, provider: str, prompt_version: str, parameters: JsonObject, renderer: str | None
) -> str:
    """Return the name of a competitor, in hex.

    The model is as the endpoint reports it back, else as requested; the parameters are whatever of
    temperature, samples, orders and so on makes it another judge; the renderer is what drew the
    pictures that it sees, None for a judge of texts.
    """
    return _digest(
        model=model,
        provider=provider,
        prompt_version=prompt_version,
        parameters=parameters,
        renderer=renderer,
    )


def _without_bytes(content: object) -> object:
    if not isinstance(content, list):
        return content
    parts = []
    for part in content:
        parts.append(part)
        if image := part.get("image_url"):
            png = b64decode(image["url"].partition(",")[2], validate=True)
            hashed = {**image, "url": f"sha256:{sha256(png).hexdigest()}"}
            parts[-1] = {**part, "image_url": hashed}
    return parts


def _digest(**content: object) -> str:
    return sha256(canonical({"version": VERSION, **_plain(content)})).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be sent to a model")
        return int(value) if value.is_integer() else repr(value)
    return value
