"""The board as a page shows it: what is live, and the findings as of some vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from humanjudge.charts import RatingGraph, rating_graph
from humanjudge.lib.text import duration
from judge_eval import selectors
from judge_eval.findings.query import Asked
from judge_eval.findings.slices import Slice
from judge_eval.models import Findings, Run
from judge_eval.pages.board_table import live_table, part_table
from judge_eval.pages.matrix_shown import claims_matrix, same_verdict_matrix
from judge_eval.selectors import BoardRow, BoardView
from judge_eval.stats.estimate import best_first

# A matrix of more judges than these is folded away.
MOST_UNFOLDED = 8
PROMPT_LETTERS = 120
Data = Mapping[str, Any]


def board_context(run: Run, board: BoardView, asked: Asked) -> dict[str, Any]:
    """Return what the live part of the board shows, beside what every page of findings does."""
    data, part = asked.data, asked.part
    overall = selectors.overall_agreement(board, data)
    rows = overall.best_first(board.rows)
    order = _order(rows, data, part)
    context = {
        "board": board,
        "part": part,
        "as_of": _as_of(board, asked.found, data) if data else None,
        "left_out": selectors.left_out(run) if board.unusable else [],
        "disputed": _disputed(run, data),
        **_matrices(data, order),
    }
    if part.kind:
        return context | {"table": part_table(data, order, board.rows) if data else None}
    return context | {"table": live_table(rows, data), "graph": _graph(run, board, rows)}


def board_seen(run: Run, board: BoardView) -> str:
    """Return what changes whenever the board does, its findings left aside."""
    counts = (run.queue.project.head_seq, board.done, board.preparing, board.unusable)
    return "-".join(map(str, counts))


def _as_of(board: BoardView, found: Findings, data: Data) -> dict[str, Any]:
    """Say which votes the figures are made of, and how many there are since."""
    assert found.computed_at is not None  # there are data
    seconds = max((timezone.now() - found.computed_at).total_seconds(), 0)
    votes = data["as_of"]["votes"]
    return {
        **data["as_of"],
        "vote": f"{votes:,}",
        "cast": f"{votes:,} vote{'' if votes == 1 else 's'}",
        "entry": f"{found.seq:,}",
        "computed_at": found.computed_at,
        "seconds": round(seconds),
        "ago": duration(seconds),
        "since": 0 if found.part else max(board.votes - votes, 0),
    }


def _graph(run: Run, board: BoardView, ranked: Sequence[BoardRow]) -> RatingGraph | None:
    if len(board.rows) < 2:  # whoever plays alone stays at 1000
        return None
    series = selectors.rating_series(run, board.votes)
    if board.votes and (not series or series[-1][0] < board.votes):
        series.append((board.votes, [row.elo for row in board.rows]))
    names = [row.judge.name for row in board.rows]
    baselines = {place for place, row in enumerate(board.rows) if row.judge.is_baseline}
    order = [board.rows.index(row) for row in ranked]
    return rating_graph(names, series, baselines, order)


def _order(rows: Sequence[BoardRow], data: Data | None, part: Slice) -> list[int]:
    """Return the places of judges in the findings, from the table's top to its bottom."""
    judges = data["judges"] if data else []
    if part.kind:
        return best_first([judge["overall"]["value"] for judge in judges])
    places = {judge["id"]: place for place, judge in enumerate(judges)}
    ranked = (str(row.judge.pk) for row in rows)
    return [places[judge] for judge in ranked if judge in places]


def _matrices(data: Data | None, order: Sequence[int]) -> dict[str, Any]:
    if not data or len(order) < 2 or not data["as_of"]["votes"]:
        return {"claims": None, "same_verdict": None}
    names = [judge["name"] for judge in data["judges"]]
    return {
        "claims": claims_matrix(data["claims"], names, order),
        "is_folded": len(order) > MOST_UNFOLDED,
        "same_verdict": same_verdict_matrix(data["same_verdict"], names, order),
    }


def _disputed(run: Run, data: Data | None) -> list[dict[str, Any]]:
    """Return the pairs that judges and people disagree on most, with what leads to their pages."""
    worst = data["disputed"] if data else []
    if not worst:
        return []
    pairs = selectors.pairs_at(run, [pair["position"] for pair in worst], PROMPT_LETTERS)
    return [{**pair, **pairs[pair["position"]]} for pair in worst if pair["position"] in pairs]
