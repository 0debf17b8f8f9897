"""The models that wrote the outputs: how people and each judge rank them, as tables."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType

from django.utils.html import format_html

from humanjudge.core.http import Context
from humanjudge.core.tables import DASH, Cell, Head, Row, Table, matrix, name_cell
from humanjudge.core.text import listed, number_of
from judge_eval.board.columns import share_cell
from judge_eval.board.model import PEOPLE, JudgeFindings, Models, RunFindings
from judge_eval.stats.estimate import ModelBoard, Rating

# With more models than this a cell of the heat map has no room for a second number.
MOST_WITH_COUNTS = 10
LEVELS = 10
MOST_SHIFT = 4
MOST_NAMES = 4
MOST_LINES = 5
# What stands beside the names of judges, by their identifiers.
Tags = Mapping[str, str]
UNVOTED = "Nobody has voted on its outputs."
UNJUDGED = "It has given no verdict on its outputs."


def pass_rates_table(figures: RunFindings, tags: Tags = MappingProxyType({})) -> Table:
    heads = [Head("Model", css=""), Head("Outputs"), Head("People", "% passed")]
    heads += [
        Head(_tagged(judge.name, tags, judge.id), css=_turned(judge)) for judge in figures.judges
    ]
    rows = []
    for generator in figures.pass_rates or ():
        people = share_cell(generator.people, "votes", UNVOTED, decimals=1)
        judges = [share_cell(share, "verdicts", UNJUDGED) for share in generator.judges]
        cells = [
            Cell(f"{generator.outputs:,}"),
            people,
            *(replace(cell, small="") for cell in judges),
        ]
        rows.append(Row(generator.name, [name_cell(generator.name or "not named"), *cells]))
    return Table("How often the outputs of each model pass", heads, rows, id="pass-rates")


def boards_of(models: Models, judge_id: str = "", tags: Tags = MappingProxyType({})) -> Context:
    """Lay out boards; that of `judge_id` (a judge's identifier), or the first there is, in full."""
    names = models.names
    rated = [board for board in models.boards if any(r.value is not None for r in board.ratings)]
    people = next((board for board in rated if board.by == PEOPLE), None)
    judges = [board for board in rated if board is not people]
    chosen_boards = [board for board in rated if board.by == judge_id] or rated
    return {
        "words": _in_words(names, people, judges),
        "has_people": people is not None,
        "ranks": _ranks_table(names, people, judges, tags) if judges else None,
        "every": [(board, tags.get(board.by, "")) for board in rated],
        "chosen": _board(names, chosen_boards[0]) if chosen_boards else None,
    }


def _models_by_mean_rank(names: Sequence[str], boards: Sequence[ModelBoard]) -> list[int]:
    def place(model: int) -> tuple[float, str]:
        ranks = [r for board in boards if (r := board.ratings[model].rank) is not None]
        return fmean(ranks) if ranks else float("inf"), names[model]

    return sorted(range(len(names)), key=place)


def _ranks_table(
    names: Sequence[str], people: ModelBoard | None, judges: Sequence[ModelBoard], tags: Tags
) -> Table:
    """Show the rank that each judge gives, shaded the stronger the farther it is from people's."""
    heads = [Head("Model", css=""), *([Head("People")] if people else [])]
    heads += [
        Head(_tagged(_list_boards([judge]), tags, judge.by), css=_turned(judge)) for judge in judges
    ]
    ordering_boards = (
        [people] if people else [judge for judge in judges if not judge.is_baseline] or judges
    )
    rows = []
    for model in _models_by_mean_rank(names, ordering_boards):
        by_people = [_rank_cell(people.ratings[model], "num strong")] if people else []
        by_judges = [_judges_rank_cell(judge, people, model) for judge in judges]
        rows.append(Row(names[model], [name_cell(names[model]), *by_people, *by_judges]))
    label = "Rank of each model by people and by each judge"
    return Table(label, heads, rows, css="crowns", described_by="crowns-key")


def _tagged(name: str, tags: Tags, judge: str) -> str:
    tag = tags.get(judge)
    return format_html('{} <span class="tag">{}</span>', name, tag) if tag else name


def _turned(judge: JudgeFindings | ModelBoard) -> str:
    return "turned muted" if judge.is_baseline else "turned"


def _judges_rank_cell(judge: ModelBoard, people: ModelBoard | None, model: int) -> Cell:
    rating, first = judge.ratings[model], _crowned(people) if people else []
    by_people = people.ratings[model].rank if people else None
    shift = 0 if rating.rank is None or by_people is None else abs(rating.rank - by_people)
    css = f"num shift-{min(MOST_SHIFT, shift)}"
    if rating.rank == 1 and not set(first) & set(_crowned(judge)) and _tells_apart(judge, first):
        return _rank_cell(rating, f"{css} other", ", not people’s first")  # noqa: RUF001
    return _rank_cell(rating, css)


def _rank_cell(rating: Rating, css: str, after: str = "") -> Cell:
    rank = DASH if rating.rank is None else f"{rating.rank}"
    star = "★\N{NO-BREAK SPACE}" if rating.rank == 1 else ""
    # The ranks that are possible, where they are more than one.
    several = "" if rating.best_rank == rating.worst_rank else rating.ranks()
    return Cell(f"{star}{rank}", small=several, css=css, after=after)


def _board(names: Sequence[str], board: ModelBoard) -> Context:
    order = [n for n in _models_by_mean_rank(names, [board]) if board.ratings[n].value is not None]
    with_counts, is_people = len(order) <= MOST_WITH_COUNTS, board.by == PEOPLE
    return {
        "by": board.by,
        "title": "As people see it" if is_people else f"As {board.name} sees it",
        "both_bad": number_of(board.both_bad, "vote" if is_people else "verdict"),
        "of": board,
        "rows": [(names[n], board.ratings[n], board.ties[n]) for n in order],
        "heat": _heat_table(names, board, order, with_counts=with_counts),
        "with_counts": with_counts,
    }


def _heat_table(
    names: Sequence[str], board: ModelBoard, order: Sequence[int], *, with_counts: bool
) -> Table:
    def cell(model: int, opponent: int) -> Cell:
        rate = board.win_rates[model][opponent]
        if rate is None:
            return Cell(DASH, css="num muted")
        votes = board.wins[model][opponent] + board.wins[opponent][model]
        small = f"{votes:.0f}" if with_counts else ""
        return Cell(f"{100 * rate:.0f}", small, css=f"num heat-{round(LEVELS * rate)}")

    table = matrix("How often each model was preferred to each other one", names, order, cell)
    return replace(table, css="heat", described_by="heat-key")


# --- in words -----------------------------------------------------------------------------------


def _crowned(board: ModelBoard) -> list[int]:
    return [n for n, rating in enumerate(board.ratings) if rating.rank == 1]


def _letters(board: ModelBoard, models: Iterable[int]) -> set[str]:
    """Return under which letters models stand: those that share one are not told apart."""
    return {letter for n in models for letter in re.findall(r"[a-z]\d*", board.ties[n])}


def _tells_apart(board: ModelBoard, first: Sequence[int]) -> bool:
    """Say whether whom a board puts first is told apart from whom people put first."""
    board_letters, people_letters = _letters(board, _crowned(board)), _letters(board, first)
    return bool(board_letters and people_letters) and not board_letters & people_letters


def _in_words(
    names: Sequence[str], people: ModelBoard | None, boards: Sequence[ModelBoard]
) -> list[str]:
    """Say whom people put first, and which judges would have crowned another model."""
    # What a baseline would have crowned is luck.
    judges = [board for board in boards if not board.is_baseline]
    if people is None:
        return _crowns(names, judges or boards, ("puts {} first{}", "put {} first{}"))
    first = _crowned(people)
    lines = [f"People put {listed(names[n] for n in first)} first{_level(names, people, first)}."]
    agreeing = [board for board in judges if set(_crowned(board)) & set(first)]
    if agreeing:
        verb = "does" if len(agreeing) == 1 else "do"
        lines.append(f"So {verb} {_list_boards(agreeing, total=len(judges))}.")
    others = [board for board in judges if not set(_crowned(board)) & set(first)]
    return lines + _crowns(names, others, ("would have crowned {}{}",) * 2, first)


def _crowns(
    names: Sequence[str],
    boards: Sequence[ModelBoard],
    words: tuple[str, str],
    first: Sequence[int] = (),
) -> list[str]:
    """Say whom judges put first, a line for each choice unless they are many.

    `words` are said of one judge and of several; `first` are the models that people put first, if
    these judges put others there.
    """
    by_choice: dict[tuple[int, ...], list[ModelBoard]] = defaultdict(list)
    for board in boards:
        by_choice[tuple(_crowned(board))].append(board)
    if len(by_choice) > MOST_LINES:
        doubt = _doubt(names, boards, first)
        many = words[1].format(f"{len(by_choice)} different models", doubt)
        return [f"{len(boards)} judges {many}; they are starred below."]
    lines = []
    for models, judges in sorted(by_choice.items(), key=lambda crown: -len(crown[1])):
        several = len(judges) > 1
        level = _doubt(names, judges, first) if several else _level(names, judges[0], models)
        put = words[several].format(listed(names[n] for n in models), level)
        lines.append(f"{_list_boards(judges)} {put}.")
    return lines


def _doubt(names: Sequence[str], boards: Sequence[ModelBoard], first: Sequence[int]) -> str:
    """Say how many of several judges do not tell their first from that of people."""
    unsure = sum(not _tells_apart(board, first) for board in boards) if first else 0
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
    letters = _letters(board, first)
    level = [
        names[n]
        for n, rating in enumerate(board.ratings)
        if n not in first and rating.rank and letters & _letters(board, [n])
    ]
    if not level:
        return ""
    others = listed(level) if len(level) <= MOST_NAMES else f"{len(level)} others"
    return f" (not told apart from {others})"


def _list_boards(boards: Sequence[ModelBoard], total: int = 0) -> str:
    if len(boards) > MOST_NAMES:
        return f"{len(boards)} of {total} judges" if total else f"{len(boards)} judges"
    return listed(
        f"{board.name} (baseline)" if board.is_baseline else board.name for board in boards
    )
