"""Boards of the models that wrote the outputs: by people and by each judge, side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge_eval.words import listed

PEOPLE = "people"
# With more models than this a cell of the heat map has no room for a second number.
MOST_WITH_COUNTS = 10
LEVELS = 10
MOST_NAMES = 4
MOST_LINES = 5
FAR = 4
Data = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """The rank that one judge gives one model; `shift` is how far that is from people's rank."""

    rank: int | None
    is_crowned: bool
    shift: int


@dataclass(frozen=True)
class Column:
    """One judge's board, in short; `differs` says that people put another model first."""

    by: str
    name: str
    is_baseline: bool
    differs: bool


@dataclass(frozen=True)
class Row:
    """One model: as people rank it, and as each judge does."""

    name: str
    rating: Data
    in_columns: list[tuple[Cell, Column]]


@dataclass(frozen=True)
class Heat:
    """How often a model was preferred to another; `level` is from 0 to `LEVELS`."""

    rate: float | None
    level: int | None
    votes: float

    @property
    def percent(self) -> float | None:
        return None if self.rate is None else 100 * self.rate


@dataclass(frozen=True)
class Ranked:
    """A model on one board, with its share of votes against each other one in the same order."""

    number: int
    name: str
    rating: Data
    ties: str
    heat: list[Heat]


@dataclass(frozen=True)
class OneBoard:
    """The board of people, or of one judge."""

    by: str
    name: str
    models: list[Ranked]
    both_bad: int
    unpaired: int
    with_counts: bool


@dataclass(frozen=True)
class ModelsShown:
    words: list[str]
    has_people: bool
    columns: list[Column]
    rows: list[Row]
    boards: list[tuple[str, str]]
    chosen: OneBoard | None


def models_shown(data: Data, by: str = "") -> ModelsShown:
    """Lay out boards of models; that of `by`, or the first there is, is shown in full.

    Parameters
    ----------
    data : mapping
        ``models`` of a run's findings.
    by : str
        ``people`` or a judge's identifier.
    """
    names, boards = data["names"], data["boards"]
    people = boards[0] if _is_rated(boards[0]) else None
    judges = [board for board in boards[1:] if _is_rated(board)]
    shown = [*([people] if people else []), *judges]
    chosen = next((board for board in shown if board["by"] == by), shown[0] if shown else None)
    first = _crowned(people) if people else []
    columns = [_column(board, first) for board in judges]
    return ModelsShown(
        words=_words(names, people, judges),
        has_people=people is not None,
        columns=columns,
        rows=[
            Row(
                name=names[n],
                rating=people["ratings"][n] if people else {},
                in_columns=list(zip(_cells(n, people, judges), columns, strict=True)),
            )
            for n in _order(names, people, judges)
        ],
        boards=[(board["by"], board["name"]) for board in shown],
        chosen=_one_board(names, chosen) if chosen else None,
    )


def _is_rated(board: Data) -> bool:
    return any(rating["value"] is not None for rating in board["ratings"])


def _crowned(board: Data) -> list[int]:
    return [n for n, rating in enumerate(board["ratings"]) if rating["rank"] == 1]


def _order(names: Sequence[str], people: Data | None, judges: Sequence[Data]) -> list[int]:
    """Return models best first: as people see it, else by their mean rank among the judges."""
    boards = [people] if people else [j for j in judges if not j["is_baseline"]] or judges

    def place(model: int) -> float:
        ranks = [board["ratings"][model]["rank"] for board in boards]
        known = [rank for rank in ranks if rank is not None]
        return sum(known) / len(known) if known else float("inf")

    return sorted(range(len(names)), key=lambda model: (place(model), names[model]))


def _column(board: Data, first: Sequence[int]) -> Column:
    differs = bool(first) and not set(first) & set(_crowned(board))
    return Column(board["by"], board["name"], board["is_baseline"], differs)


def _cells(model: int, people: Data | None, judges: Sequence[Data]) -> list[Cell]:
    by_people = people["ratings"][model]["rank"] if people else None
    return [_cell(board["ratings"][model]["rank"], by_people) for board in judges]


def _cell(rank: int | None, by_people: int | None) -> Cell:
    shift = 0 if rank is None or by_people is None else min(FAR, abs(rank - by_people))
    return Cell(rank, rank == 1, shift)


def _one_board(names: Sequence[str], board: Data) -> OneBoard:
    order = [n for n in _order(names, board, []) if board["ratings"][n]["value"] is not None]
    models = [
        Ranked(
            number=number,
            name=names[model],
            rating=board["ratings"][model],
            ties=board["ties"][model],
            heat=[_heat(board, model, other) for other in order],
        )
        for number, model in enumerate(order, start=1)
    ]
    return OneBoard(
        by=board["by"],
        name=board["name"],
        models=models,
        both_bad=board["both_bad"],
        unpaired=board["unpaired"],
        with_counts=len(order) <= MOST_WITH_COUNTS,
    )


def _heat(board: Data, model: int, other: int) -> Heat:
    rate = None if model == other else board["win_rates"][model][other]
    level = None if rate is None else round(LEVELS * rate)
    return Heat(rate, level, board["wins"][model][other] + board["wins"][other][model])


# --- in words --------------------------------------------------------------------------------


def _words(names: Sequence[str], people: Data | None, judges: Sequence[Data]) -> list[str]:
    """Say whom people put first, and which judges would have crowned another model."""
    if people is None:
        return _crowns(names, judges, "puts {} first{}", "put {} first{}")
    first = _crowned(people)
    said = [f"People put {listed(names[n] for n in first)} first{_level(names, people, first)}."]
    others = [board for board in judges if not set(_crowned(board)) & set(first)]
    agreeing = [board for board in judges if board not in others]
    if agreeing:
        so = "does" if len(agreeing) == 1 else "do"
        said.append(f"So {so} {_called(agreeing, of=len(judges))}.")
    return said + _crowns(names, others, "would have crowned {}{}", "would have crowned {}{}")


def _crowns(names: Sequence[str], boards: Sequence[Data], one: str, many: str) -> list[str]:
    """Say whom judges put first, a line for each choice unless they are many."""
    found: dict[tuple[int, ...], list[Data]] = defaultdict(list)
    for board in boards:
        found[tuple(_crowned(board))].append(board)
    crowns = sorted(found.items(), key=lambda crown: -len(crown[1]))
    if len(crowns) > MOST_LINES:
        what = f"{len(crowns)} different models"
        return [f"{len(boards)} judges {many.format(what, '')}; they are marked below."]
    return [
        f"{_called(by)} {(one if len(by) == 1 else many).format(*_what(names, by, first))}."
        for first, by in crowns
    ]


def _what(names: Sequence[str], boards: Sequence[Data], first: Sequence[int]) -> tuple[str, str]:
    """Name whom judges put first; of one judge alone also whom it cannot tell from that."""
    level = _level(names, boards[0], first) if len(boards) == 1 else ""
    return listed(names[n] for n in first), level


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
