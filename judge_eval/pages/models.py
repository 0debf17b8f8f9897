"""The models that wrote the outputs: ranked by people and by each judge, side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest
from humanjudge.lib.tables import DASH, Cell, Head, Row, Table, name_cell, span, text_cell
from humanjudge.lib.text import listed, number_of
from judge_eval.findings.cache import Request
from judge_eval.findings.columns import Rating
from judge_eval.findings.model import PEOPLE, ModelBoard, Models
from judge_eval.models import Run
from judge_eval.pages.findings import (
    findings_context,
    live_part,
    refuse,
    requested,
    run_with_board,
)

# With more models than this a cell of the heat map has no room for a second number.
MOST_WITH_COUNTS = 10
LEVELS = 10
FAR = 4
MOST_NAMES = 4
MOST_LINES = 5


@never_cache
@require_safe
def run_models(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The boards; htmx asks for them again while votes come in."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    context = _context(request, run, requested(request, run))
    if not request.htmx:
        return render(request, "judge_eval/models.html", context)
    return live_part(request, context, "judge_eval/_models.html")


def _context(request: HtmxRequest, run: Run, wanted: Request) -> dict[str, Any]:
    figures = wanted.findings
    models, why = (figures.models, figures.models_why) if figures else (None, None)
    is_standard = (run.config or {}).get("mode") == "standard"
    return findings_context(run, wanted, "models") | {
        "models": boards_of(models, request.GET.get("by", "")) if models else None,
        "why": why or "Neither people nor judges have compared two generators here yet.",
        "alone": (
            "People do not vote in this run"
            if is_standard
            else "Nobody has voted on pairs of two generators yet"
        )
        + ": these are the judges’ boards alone.",  # noqa: RUF001
    }


@dataclass(frozen=True)
class Board:
    """The board of people or of one judge, with how often each model was preferred."""

    by: str
    title: str
    left_out: str
    ratings: Table
    heat: Table
    with_counts: bool


@dataclass(frozen=True)
class Boards:
    """All boards: what they say in words, their ranks side by side, and one of them in full."""

    words: list[str]
    has_people: bool
    ranks: Table | None
    choices: list[tuple[str, str]]
    chosen: Board | None


def boards_of(models: Models, by: str = "") -> Boards:
    """Lay out boards of models; that of `by`, or the first there is, is shown in full.

    Parameters
    ----------
    models : Models
    by : str
        ``people`` or a judge's identifier.
    """
    names = models.names
    people = models.boards[0] if _is_rated(models.boards[0]) else None
    judges = [board for board in models.boards[1:] if _is_rated(board)]
    boards = [*([people] if people else []), *judges]
    chosen = next((board for board in boards if board.by == by), boards[0] if boards else None)
    return Boards(
        words=in_words(names, people, judges),
        has_people=people is not None,
        ranks=_ranks_table(names, people, judges) if judges else None,
        choices=[(board.by, board.name) for board in boards],
        chosen=_board(names, chosen) if chosen else None,
    )


def _is_rated(board: ModelBoard) -> bool:
    return any(rating.value is not None for rating in board.ratings)


def _order(
    names: Sequence[str], people: ModelBoard | None, judges: Sequence[ModelBoard]
) -> list[int]:
    """Return models best first: as people see it, else by their mean rank among the judges."""
    boards = [people] if people else [j for j in judges if not j.is_baseline] or judges

    def place(model: int) -> float:
        ranks = [board.ratings[model].rank for board in boards]
        known = [rank for rank in ranks if rank is not None]
        return sum(known) / len(known) if known else float("inf")

    return sorted(range(len(names)), key=lambda model: (place(model), names[model]))


# --- ranks side by side -------------------------------------------------------------------------


def _ranks_table(
    names: Sequence[str], people: ModelBoard | None, judges: Sequence[ModelBoard]
) -> Table:
    first = crowned(people) if people else []
    differing = [
        not set(first) & set(crowned(judge)) and tells_apart(judge, first) for judge in judges
    ]
    heads = [
        Head(
            f"{judge.name} (baseline)" if judge.is_baseline else judge.name,
            css="turned muted" if judge.is_baseline else "turned",
        )
        for judge in judges
    ]
    rows = []
    for model in _order(names, people, judges):
        cells = [name_cell(names[model])]
        by_people = people.ratings[model] if people else None
        if by_people:
            cells.append(_rank_cell(by_people, css="num strong"))
        cells += [
            _judged_cell(judge.ratings[model], by_people, differs=differs)
            for judge, differs in zip(judges, differing, strict=True)
        ]
        rows.append(Row(names[model], cells))
    return Table(
        label="Rank of each model by people and by each judge",
        css="crowns",
        described_by="crowns-key",
        heads=[Head("Model", css=""), *([Head("People")] if people else []), *heads],
        rows=rows,
    )


def _rank_cell(rating: Rating, css: str, after: str = "") -> Cell:
    rank = DASH if rating.rank is None else f"{rating.rank}"
    star = "★\N{NO-BREAK SPACE}" if rating.rank == 1 else ""
    return Cell(f"{star}{rank}", small=_range(rating), css=css, after=after)


def _judged_cell(rating: Rating, by_people: Rating | None, *, differs: bool) -> Cell:
    """Show the rank that a judge gives, the stronger shaded the farther it is from people's."""
    known = by_people.rank if by_people else None
    shift = 0 if rating.rank is None or known is None else min(FAR, abs(rating.rank - known))
    if rating.rank == 1 and differs:
        after = ", not people’s first"  # noqa: RUF001
        return _rank_cell(rating, f"num shift-{shift} other", after)
    return _rank_cell(rating, f"num shift-{shift}")


def _range(rating: Rating) -> str:
    """Return the ranks that are possible, where they are more than one."""
    return "" if rating.best_rank == rating.worst_rank else rating.ranks()


# --- one board in full --------------------------------------------------------------------------


def _board(names: Sequence[str], board: ModelBoard) -> Board:
    order = [n for n in _order(names, board, []) if board.ratings[n].value is not None]
    with_counts = len(order) <= MOST_WITH_COUNTS
    is_people = board.by == PEOPLE
    return Board(
        by=board.by,
        title="As people see it" if is_people else f"As {board.name} sees it",
        left_out=_left_out(board, "vote" if is_people else "verdict"),
        ratings=_ratings_table(names, board, order),
        heat=_heat_table(names, board, order, with_counts=with_counts),
        with_counts=with_counts,
    )


def _left_out(board: ModelBoard, thing: str) -> str:
    parts = []
    if board.both_bad:
        ties = f"{number_of(board.both_bad, thing)} of both bad"
        parts.append(f"{ties}, which say nothing about which is better")
    if board.unpaired:
        parts.append(f"{board.unpaired:,} on pairs that do not name two different generators")
    return f"Left out: {'; '.join(parts)}." if parts else ""


def _ratings_table(names: Sequence[str], board: ModelBoard, order: Sequence[int]) -> Table:
    heads = [
        *(Head("Rank (95\N{NO-BREAK SPACE}% range)"), Head("Model", css=""), Head("Rating")),
        *(Head("95\N{NO-BREAK SPACE}% interval"), Head("Ties", css=""), Head("Pairs")),
    ]
    rows = []
    for model in order:
        rating = board.ratings[model]
        ranks = _range(rating)
        interval = text_cell(f"none: {rating.why}", css="num muted")
        if rating.low is not None and rating.high is not None:
            interval = Cell(span(rating.low, rating.high))
        cells = [
            Cell(f"{rating.rank}", small=f"({ranks})" if ranks else ""),
            name_cell(names[model]),
            Cell(f"{rating.value:.0f}", css="num strong"),
            interval,
            text_cell(board.ties[model]),
            Cell(f"{rating.comparisons}"),
        ]
        rows.append(Row(names[model], cells))
    return Table("Ratings of the models", heads, rows)


def _heat_table(
    names: Sequence[str], board: ModelBoard, order: Sequence[int], *, with_counts: bool
) -> Table:
    """Show how often the model of the row was preferred to that of the column."""

    def cell(model: int, other: int) -> Cell:
        rate = None if model == other else board.win_rates[model][other]
        if rate is None:
            return Cell(DASH, css="num muted")
        votes = board.wins[model][other] + board.wins[other][model]
        small = f"{votes:.0f}" if with_counts else ""
        return Cell(f"{100 * rate:.0f}", small=small, css=f"num heat-{round(LEVELS * rate)}")

    heads = [
        Head(f"{number}", after=f" {names[model]}") for number, model in enumerate(order, start=1)
    ]
    rows = [
        Row(
            names[model],
            [
                text_cell(f"{number}", css="num muted"),
                name_cell(names[model]),
                *(cell(model, other) for other in order),
            ],
        )
        for number, model in enumerate(order, start=1)
    ]
    return Table(
        label="How often each model was preferred to each other one",
        css="heat",
        described_by="heat-key",
        heads=[Head(), Head("Model", css=""), *heads],
        rows=rows,
    )


# --- in words -----------------------------------------------------------------------------------


def crowned(board: ModelBoard) -> list[int]:
    return [n for n, rating in enumerate(board.ratings) if rating.rank == 1]


def tells_apart(board: ModelBoard, first: Sequence[int]) -> bool:
    """Say whether whom a board puts first is told apart from whom people put first."""
    own, peoples = (
        {letter for n in of for letter in _letters(board.ties[n])} for of in (crowned(board), first)
    )
    return bool(own and peoples) and not own & peoples


def in_words(
    names: Sequence[str], people: ModelBoard | None, boards: Sequence[ModelBoard]
) -> list[str]:
    """Say whom people put first, and which judges would have crowned another model."""
    # What a baseline would have crowned is luck.
    judges = [board for board in boards if not board.is_baseline]
    if people is None:
        return _crowns(names, judges or boards, "puts {} first{}", "put {} first{}")
    first = crowned(people)
    lines = [f"People put {listed(names[n] for n in first)} first{_level(names, people, first)}."]
    agreeing = [board for board in judges if set(crowned(board)) & set(first)]
    others = [board for board in judges if not set(crowned(board)) & set(first)]
    if agreeing:
        so = "does" if len(agreeing) == 1 else "do"
        lines.append(f"So {so} {_called(agreeing, of=len(judges))}.")
    would = "would have crowned {}{}"
    return lines + _crowns(names, others, would, would, first)


def _crowns(
    names: Sequence[str],
    boards: Sequence[ModelBoard],
    one: str,
    many: str,
    first: Sequence[int] = (),
) -> list[str]:
    """Say whom judges put first, a line for each choice unless they are many.

    `first` are the models that people put first, if these judges put others there.
    """
    by_choice: dict[tuple[int, ...], list[ModelBoard]] = defaultdict(list)
    for board in boards:
        by_choice[tuple(crowned(board))].append(board)
    crowns = sorted(by_choice.items(), key=lambda crown: -len(crown[1]))
    if len(crowns) > MOST_LINES:
        what = f"{len(crowns)} different models"
        doubt = _doubt(names, boards, first)
        return [f"{len(boards)} judges {many.format(what, doubt)}; they are starred below."]
    return [
        f"{_called(by)} {(one if len(by) == 1 else many).format(*_what(names, by, chosen, first))}."
        for chosen, by in crowns
    ]


def _what(
    names: Sequence[str], boards: Sequence[ModelBoard], chosen: Sequence[int], first: Sequence[int]
) -> tuple[str, str]:
    """Name whom judges put first, and whom they do not tell that apart from."""
    level = _level(names, boards[0], chosen) if len(boards) == 1 else _doubt(names, boards, first)
    return listed(names[n] for n in chosen), level


def _doubt(names: Sequence[str], boards: Sequence[ModelBoard], first: Sequence[int]) -> str:
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


def _level(names: Sequence[str], board: ModelBoard, first: Sequence[int]) -> str:
    """Name those that the first one is not told apart from: their intervals overlap."""
    letters = {letter for n in first for letter in _letters(board.ties[n])}
    level = [
        names[n]
        for n, rating in enumerate(board.ratings)
        if n not in first and rating.rank and letters & _letters(board.ties[n])
    ]
    if not level:
        return ""
    others = listed(level) if len(level) <= MOST_NAMES else f"{len(level)} others"
    return f" (not told apart from {others})"


def _letters(ties: str) -> set[str]:
    return set(re.findall(r"[a-z]\d*", ties))


def _called(boards: Sequence[ModelBoard], of: int = 0) -> str:
    if len(boards) > MOST_NAMES:
        return f"{len(boards)} of {of} judges" if of else f"{len(boards)} judges"
    return listed(
        f"{board.name} (baseline)" if board.is_baseline else board.name for board in boards
    )
