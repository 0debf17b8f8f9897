"""What boards of models say in words: whom people put first, and whom judges would have crowned."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from humanjudge.lib.text import listed

MOST_NAMES = 4
MOST_LINES = 5
Data = Mapping[str, Any]


def crowned(board: Data) -> list[int]:
    return [n for n, rating in enumerate(board["ratings"]) if rating["rank"] == 1]


def tells_apart(board: Data, first: Sequence[int]) -> bool:
    """Say whether whom a board puts first is told apart from whom people put first."""
    own, peoples = (
        {letter for n in of for letter in _letters(board["ties"][n])}
        for of in (crowned(board), first)
    )
    return bool(own and peoples) and not own & peoples


def in_words(names: Sequence[str], people: Data | None, boards: Sequence[Data]) -> list[str]:
    """Say whom people put first, and which judges would have crowned another model."""
    # What a baseline would have crowned is luck.
    judges = [board for board in boards if not board["is_baseline"]]
    if people is None:
        return _crowns(names, judges or boards, "puts {} first{}", "put {} first{}")
    first = crowned(people)
    said = [f"People put {listed(names[n] for n in first)} first{_level(names, people, first)}."]
    others = [board for board in judges if not set(crowned(board)) & set(first)]
    agreeing = [board for board in judges if board not in others]
    if agreeing:
        so = "does" if len(agreeing) == 1 else "do"
        said.append(f"So {so} {_called(agreeing, of=len(judges))}.")
    would = "would have crowned {}{}"
    return said + _crowns(names, others, would, would, first)


def _crowns(
    names: Sequence[str], boards: Sequence[Data], one: str, many: str, first: Sequence[int] = ()
) -> list[str]:
    """Say whom judges put first, a line for each choice unless they are many.

    `first` are the models that people put first, if these judges put others there.
    """
    found: dict[tuple[int, ...], list[Data]] = defaultdict(list)
    for board in boards:
        found[tuple(crowned(board))].append(board)
    crowns = sorted(found.items(), key=lambda crown: -len(crown[1]))
    if len(crowns) > MOST_LINES:
        what = f"{len(crowns)} different models"
        doubt = _doubt(names, boards, first)
        return [f"{len(boards)} judges {many.format(what, doubt)}; they are starred below."]
    return [
        f"{_called(by)} {(one if len(by) == 1 else many).format(*_what(names, by, chosen, first))}."
        for chosen, by in crowns
    ]


def _what(
    names: Sequence[str], boards: Sequence[Data], chosen: Sequence[int], first: Sequence[int]
) -> tuple[str, str]:
    """Name whom judges put first, and whom they do not tell that apart from."""
    level = _level(names, boards[0], chosen) if len(boards) == 1 else _doubt(names, boards, first)
    return listed(names[n] for n in chosen), level


def _doubt(names: Sequence[str], boards: Sequence[Data], first: Sequence[int]) -> str:
    """Say how many of several judges do not tell their first from that of people."""
    unsure = sum(not tells_apart(board, first) for board in boards) if first else 0
    if not unsure:
        return ""
    whom = listed(names[n] for n in first)
    if unsure == len(boards):
        none = "neither" if unsure == 2 else "none"
        return f" ({none} of them tells it apart from {whom})"
    do = "does" if unsure == 1 else "do"
    return f" ({unsure} of these {len(boards)} {do} not tell it apart from {whom})"


def _level(names: Sequence[str], board: Data, first: Sequence[int]) -> str:
    """Name those that the first one is not told apart from: their intervals overlap."""
    letters = {letter for n in first for letter in _letters(board["ties"][n])}
    level = [
        names[n]
        for n, rating in enumerate(board["ratings"])
        if n not in first and rating["rank"] and letters & _letters(board["ties"][n])
    ]
    if not level:
        return ""
    others = listed(level) if len(level) <= MOST_NAMES else f"{len(level)} others"
    return f" (not told apart from {others})"


def _letters(ties: str) -> set[str]:
    return set(re.findall(r"[a-z]\d*", ties))


def _called(boards: Sequence[Data], of: int = 0) -> str:
    if len(boards) > MOST_NAMES:
        return f"{len(boards)} of {of} judges" if of else f"{len(boards)} judges"
    return listed(
        f"{board['name']} (baseline)" if board["is_baseline"] else board["name"] for board in boards
    )
