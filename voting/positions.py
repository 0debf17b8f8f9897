"""Who sees what on the left: decided by a keyed hash, so that it is fair and can be checked."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final, Literal

Side = Literal["A", "B"]
Choice = Literal["A", "B", "tie", "both_bad"]
Position = Literal["left", "right", "tie", "both_bad"]

# The order in which figures count them.
CHOICES: Final[tuple[Choice, ...]] = ("A", "B", "tie", "both_bad")
# What a judge's verdict may be beside them: right for no vote.
WRONG: Final = "wrong"
VERDICTS: Final = (*CHOICES, WRONG)
POSITIONS: Final[tuple[Position, ...]] = ("left", "right", "tie", "both_bad")


def keyed_number(key: str, *parts: object) -> int:
    """Return a 64-bit number that only the holder of the key can predict.

    Examples
    --------
    >>> keyed_number("k", "a", 1) == keyed_number("k", "a", 1)
    True
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hmac.digest(key.encode(), text.encode(), sha256)[:8], "big")


def left_side(key: str, voter: object, comparison: object) -> Side:
    """Decide which stored output a voter sees on the left.

    Parameters
    ----------
    key : str
        Secret of the installation.
    voter, comparison
        Anything with a stable text; the same two always give the same side.

    Examples
    --------
    >>> left_side("k", "voter", "comparison") in ("A", "B")
    True
    """
    return "B" if keyed_number(key, "side", voter, comparison) & 1 else "A"


def choice_at(position: Position, left: Side) -> Choice:
    """Translate what was pressed into the stored comparison's A and B.

    Raises
    ------
    ValueError
        When the position is not one of `POSITIONS`.

    Examples
    --------
    >>> choice_at("left", "B"), choice_at("right", "B"), choice_at("both_bad", "B")
    ('B', 'A', 'both_bad')
    """
    if position in ("tie", "both_bad"):
        return position
    if position not in ("left", "right"):
        raise ValueError(f"{position!r} is none of {', '.join(POSITIONS)}")
    if position == "left":
        return left
    return "A" if left == "B" else "B"


def position_of(choice: str, left: str) -> Position:
    """Translate a stored choice into what a voter with this left side would see.

    Examples
    --------
    >>> position_of("A", "B"), position_of("tie", "B")
    ('right', 'tie')
    """
    if choice == "tie":
        return "tie"
    if choice == "both_bad":
        return "both_bad"
    return "left" if choice == left else "right"
