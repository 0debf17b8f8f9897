"""Conversations: prompts and outputs that are lists of messages, kept as JSON in fields of text.

Whatever list of messages a file holds is written in one form; any text in such a form is read as
a conversation, wherever it came from. Nothing here is loaded: of a picture its address is left.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from humanjudge.core import strict_json
from humanjudge.core.text import UNSTORABLE

ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "bot", "ai", "chatgpt", "chatbot"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation", "ipython"), "tool"),
}
MOST_MESSAGES: Final = 1_000
# What begins so may be a list of messages; all other texts are told apart without reading them.
OPENING: Final = re.compile(r"\s*\[\s*\{")
_LONGEST_ADDRESS: Final = 200


class Message(NamedTuple):
    """One turn. Its role is system, user, assistant or tool; its content is Markdown."""

    role: str
    content: str


def messages_of(text: str) -> tuple[Message, ...] | None:
    """Return the messages of a text that is a conversation, None of any other text.

    Examples
    --------
    >>> messages_of('[{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]')
    (Message(role='user', content='Hi'), Message(role='assistant', content='Hello'))
    >>> messages_of("Hi"), messages_of('[{"role": "king", "content": "Hi"}]')
    (None, None)
    """
    if not OPENING.match(text) or len(text) > strict_json.MAX_RECORD:
        return None
    try:
        return _messages(strict_json.loads(text))
    except strict_json.NotJson:
        return None


def conversation(value: object) -> str | None:
    """Return a list of messages, as records have it, as the text to keep; None of anything else.

    A content may be text, or a list of parts, of which texts are kept and pictures are named.

    Examples
    --------
    >>> picture = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    >>> conversation([{"role": "human", "content": ["Who is this?", picture]}])
    '[{"role":"user","content":"Who is this?\\\\n\\\\n[picture: https://example.org/cat.png]"}]'
    >>> conversation(["Hi"]), conversation([]), conversation("Hi")
    (None, None, None)
    """
    messages = _messages(value)
    if messages is None:
        return None
    records = [message._asdict() for message in messages]
    return json.dumps(records, ensure_ascii=False, separators=(",", ":"))


def assistant_text(text: str) -> str:
    """Return what the assistant wrote in a conversation; any other text is all the model's own.

    Examples
    --------
    >>> assistant_text('[{"role": "user", "content": "Hi"}, {"role": "model", "content": "Ho"}]')
    'Ho'
    >>> assistant_text("Hello")
    'Hello'
    """
    messages = messages_of(text)
    if messages is None:
        return text
    return "\n\n".join(message.content for message in messages if message.role == "assistant")


def titled(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return what judges are told each turn is, and what is said in it.

    Examples
    --------
    >>> titled([Message("user", "Hi"), Message("assistant", "Ho")])
    [('turn 1 of 2 (user)', 'Hi'), ('turn 2 of 2 (assistant)', 'Ho')]
    """
    total = len(messages)
    return [(f"turn {n} of {total} ({role})", text) for n, (role, text) in enumerate(messages, 1)]


def latest(text: str, role: str = "user") -> str:
    """Return the last message of a role in a conversation, to name it by; else the text itself.

    Examples
    --------
    >>> latest('[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]')
    'Hi'
    >>> latest("Hello")
    'Hello'
    """
    messages = messages_of(text)
    if messages is None:
        return text
    contents = [message.content for message in messages if message.role == role]
    return (contents or [messages[-1].content])[-1]


def _messages(value: object) -> tuple[Message, ...] | None:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_MESSAGES:
        return None
    try:
        messages = tuple(message for record in value if (message := _message(record)))
    except RecursionError:  # arguments of a tool call, nested without end
        return None
    return messages if len(messages) == len(value) else None


def _message(value: object) -> Message | None:
    if not isinstance(value, dict):
        return None
    # A message that calls a tool often has no content.
    calls = value.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    for role_key, content_key in (("role", "content"), ("from", "value")):
        if role_key in value and (content_key in value or calls):
            role = ROLES.get(str(value[role_key]).strip().lower())
            texts = _texts(value.get(content_key))
            if role is None or texts is None:
                return None
            return Message(
                role, UNSTORABLE.sub("\ufffd", "\n\n".join([*texts, *map(_call, calls)]))
            )
    return None


def _texts(content: object) -> list[str] | None:
    parts = content if isinstance(content, list) else [] if content is None else [content]
    texts = [text for part in parts if (text := _part(part)) is not None]
    return texts if len(texts) == len(parts) else None


def _part(part: object) -> str | None:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else None
    text, kind = part.get("text"), part.get("type")
    if isinstance(text, str):
        return text
    if not isinstance(kind, str) or "image" not in kind:
        return f"[{kind}]" if isinstance(kind, str) else None
    picture = part.get(kind)
    address = picture.get("url") if isinstance(picture, dict) else picture
    is_address = isinstance(address, str) and re.match(r"https?://\S+$", address)
    return f"[picture: {str(address)[:_LONGEST_ADDRESS] if is_address else kind}]"


def _call(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "[tool call]"
    arguments = function.get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    return f"[tool call: {function.get('name')}({text})]"
