"""Boards of the models that wrote the outputs: by people and by each judge, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge_eval.pages.findings_shown import DASH
from judge_eval.pages.models_said import crowned, in_words, tells_apart

PEOPLE = "people"
# With more models than this a cell of the heat map has no room for a second number.
MOST_WITH_COUNTS = 10
LEVELS = 10
FAR = 4
Data = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """The rank that one judge gives one model; `shift` is how far that is from people's rank."""

    rank: int | None
    ranks: str
    is_crowned: bool
    shift: int


@dataclass(frozen=True)
class Column:
    """One judge's board, in short.

    `differs` says that it puts another model first than people, and tells the two apart.
    """

    by: str
    name: str
    is_baseline: bool
    differs: bool


@dataclass(frozen=True)
class Row:
    """One model: as people rank it, and as each judge does."""

    name: str
    rating: Data
    ranks: str
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
    ranks: str
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
    first = crowned(people) if people else []
    columns = [_column(board, first) for board in judges]
    return ModelsShown(
        words=in_words(names, people, judges),
        has_people=people is not None,
        columns=columns,
        rows=[
            Row(
                name=names[n],
                rating=people["ratings"][n] if people else {},
                ranks=_ranks(people["ratings"][n]) if people else "",
                in_columns=list(zip(_cells(n, people, judges), columns, strict=True)),
            )
            for n in _order(names, people, judges)
        ],
        boards=[(board["by"], board["name"]) for board in shown],
        chosen=_one_board(names, chosen) if chosen else None,
    )


def _is_rated(board: Data) -> bool:
    return any(rating["value"] is not None for rating in board["ratings"])


def _order(names: Sequence[str], people: Data | None, judges: Sequence[Data]) -> list[int]:
    """Return models best first: as people see it, else by their mean rank among the judges."""
    boards = [people] if people else [j for j in judges if not j["is_baseline"]] or judges

    def place(model: int) -> float:
        ranks = [board["ratings"][model]["rank"] for board in boards]
        known = [rank for rank in ranks if rank is not None]
        return sum(known) / len(known) if known else float("inf")

    return sorted(range(len(names)), key=lambda model: (place(model), names[model]))


def _column(board: Data, first: Sequence[int]) -> Column:
    differs = not set(first) & set(crowned(board)) and tells_apart(board, first)
    return Column(board["by"], board["name"], board["is_baseline"], differs)


def _cells(model: int, people: Data | None, judges: Sequence[Data]) -> list[Cell]:
    by_people = people["ratings"][model]["rank"] if people else None
    return [_cell(board["ratings"][model], by_people) for board in judges]


def _ranks(rating: Data) -> str:
    """Return the ranks that are possible, where they are more than one."""
    best, worst = rating["best_rank"], rating["worst_rank"]
    return "" if best == worst else f"{best}{DASH}{worst}"


def _cell(rating: Data, by_people: int | None) -> Cell:
    rank = rating["rank"]
    shift = 0 if rank is None or by_people is None else min(FAR, abs(rank - by_people))
    return Cell(rank, _ranks(rating), rank == 1, shift)


def _one_board(names: Sequence[str], board: Data) -> OneBoard:
    order = [n for n in _order(names, board, []) if board["ratings"][n]["value"] is not None]
    models = [
        Ranked(
            number=number,
            name=names[model],
            rating=board["ratings"][model],
            ranks=_ranks(board["ratings"][model]),
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
