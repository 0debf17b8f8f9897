"""Conversations as templates place them: turns, those that are folded, a line that names one."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from django import template
from django.db.models import Case, F, TextField, When
from django.db.models.functions import Left

from humanjudge.core.text import number_of
from voting.items.conversations import Message, latest, messages_of, titled

# A conversation of more turns, or one whose earlier turns are longer, is folded.
MOST_OPEN: Final = 4
LONGEST_OPEN: Final = 1_500
# Of the first words of a turn that is folded alone.
_LETTERS: Final = 80

register = template.Library()
register.filter("latest", latest)


class Turn(NamedTuple):
    """One turn as it is shown, or, of some that are folded, what is written on the fold."""

    role: str
    content: str
    folded: "Sequence[Turn]" = ()


class Prompt(NamedTuple):
    """A prompt that is a conversation: who says what it is named by, and the turns around that."""

    role: str
    turns: Sequence[Turn]


@register.filter
def turns(text: str) -> Sequence[Turn] | None:
    """Return what is shown of a conversation, None of any other text.

    The system's words are folded, and of a long conversation all but the last turn of the user
    and of the assistant.
    """
    messages = messages_of(text)
    return None if messages is None else _folded(messages)


@register.filter
def prompt(text: str) -> Prompt | None:
    """Return the turns of a prompt without its last one, if that is the user's: it is the heading.

    Where something follows what the user says last, that stands among the turns too.
    """
    messages = messages_of(text)
    if messages is None:
        return None
    role = "user" if any(message.role == "user" for message in messages) else messages[-1].role
    return Prompt(role, _folded(messages[:-1] if messages[-1].role == "user" else messages))


@register.filter
def as_sent(text: str) -> str:
    """Return a text as judges are sent it, to the letter: a conversation turn by turn."""
    return "\n\n".join(map("\n".join, titled(messages_of(text) or ()))) or text


def beginning(field: str, letters: int) -> Case:
    """Return the SQL of how a text begins; of a conversation all of it, which `latest` names."""
    conversation = When(**{f"{field}__startswith": "["}, then=F(field))
    return Case(conversation, default=Left(field, letters), output_field=TextField())


def _folded(messages: Sequence[Message]) -> Sequence[Turn]:
    spoken = [number for number, message in enumerate(messages) if message.role != "system"]
    last = {messages[number].role: number for number in spoken}
    is_open = {last.get("user"), last.get("assistant")}
    earlier = sum(len(messages[number].content) for number in spoken if number not in is_open)
    if len(spoken) <= MOST_OPEN and earlier <= LONGEST_OPEN:
        is_open = {*spoken}
    turns: list[Turn] = []
    groups = groupby(range(len(messages)), lambda n: (n in is_open, messages[n].role == "system"))
    for (opens, _), group in groups:
        inside = [Turn(*messages[number]) for number in group]
        turns += inside if opens else [Turn("", _fold_label(inside), inside)]
    return turns


def _fold_label(inside: Sequence[Turn]) -> str:
    if len(inside) > 1:
        return number_of(len(inside), "earlier turn")
    words = " ".join(inside[0].content[: 4 * _LETTERS].split())
    cut = f"{words[:_LETTERS].rstrip()}…" if len(words) > _LETTERS else words
    return f"{inside[0].role.capitalize()}: {cut}"
