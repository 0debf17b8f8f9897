"""What a generator is told. A change of wording changes every stored reply's key with it."""

from __future__ import annotations

from typing import Final

_SYSTEM: Final = {
    "svg": (
        "You draw with SVG. Answer with exactly one complete, self-contained SVG document and "
        "nothing else: no explanation, no scripts, no external files. Give it a viewBox."
    ),
    "text": "",
    "code": (
        "You write code. Answer with the code in a single fenced block and nothing else, unless "
        "the prompt asks for an explanation."
    ),
}


def messages(kind: str, prompt: str) -> list[dict[str, str]]:
    """Return the messages that ask for one output.

    Parameters
    ----------
    kind : str
        ``svg``, ``text`` or ``code``.
    prompt : str
        Sent as it is.

    Raises
    ------
    KeyError
        For another kind.

    Examples
    --------
    >>> messages("text", "Name a colour.")
    [{'role': 'user', 'content': 'Name a colour.'}]
    >>> [message["role"] for message in messages("svg", "a cat")]
    ['system', 'user']
    """
    system = _SYSTEM[kind]
    asked = [{"role": "user", "content": prompt}]
    return [{"role": "system", "content": system}, *asked] if system else asked
