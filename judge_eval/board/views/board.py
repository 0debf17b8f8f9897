"""The board of a run: words, one picture, one table; everything further folded below them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.markdown import unbroken
from humanjudge.core.tables import Table, sort_link
from humanjudge.core.text import listed, number_of
from judge_eval.board.board_parts import comparisons, elo_graph, judge_tables
from judge_eval.board.cache import FindingsRequest
from judge_eval.board.columns import COLUMNS, BoardColumn
from judge_eval.board.disputed import visible_disputed
from judge_eval.board.few import findings_for
from judge_eval.board.filters import WHOLE_RUN, Slice
from judge_eval.board.model import RunFindings
from judge_eval.board.ranking import BoardLine, Ranking, ranking
from judge_eval.board.views.findings import (
    disputed_order,
    findings_context,
    findings_version,
    live_page,
    pairs_query,
)
from judge_eval.gate.drift import state_of, watches_of
from judge_eval.models import Run
from judge_eval.runs import queries
from judge_eval.runs.access import can, has_pairs_left, may_be_stopped, note_runs_seen, voters_of
from judge_eval.runs.exclusion import left_out_of
from judge_eval.runs.queries import BoardView
from judge_eval.runs.run_page import citation_of, invites_address, run_action, run_page
from judge_eval.stats.points import MOST_POINTS, BoardPoint
from voting.ballot.queries import queue_counts
from voting.items.choices import short_name

# Of more judges than these, those in front are shown, and the others at one tap.
MOST_IN_FRONT: Final = 12
MOST_DISPUTED: Final = 6
AGREEMENT, NAME = "overall", "name"


@run_page("see")
def run_board(request: HtmxRequest, run: Run) -> HttpResponse:
    """The board, or a part of it; htmx asks for its live part again while people vote."""
    order = _order(request)
    requested = findings_for(request, run, request.GET.get("part"))
    counts = queue_counts(run.queue)
    # What changes whenever the board does.
    parts = (run.queue.project.head_seq, run.state, *counts, findings_version(run, requested))
    page_version = "-".join(map(str, parts))
    return live_page(
        request, "board", page_version, lambda: _context(request, run, requested, counts, order)
    )


@run_action("see")
def see_figures(request: HttpRequest, run: Run) -> HttpResponse:
    """Show the figures to a member who has items to vote on: later votes on them are not blind."""
    note_runs_seen(request, [run])
    return redirect("run", run.pk)


def _context(
    request: HtmxRequest,
    run: Run,
    requested: FindingsRequest,
    counts: tuple[int, int, int],
    order: str,
) -> Context:
    # On which pairs people and judges disagree says what to look for on the next one.
    hides, runs_it = not requested.is_live, can(request, "see calls", run)
    board = queries.board(run, counts, is_live=requested.is_live)
    left_out = queries.left_out(run) if board.unusable else []
    part = requested.part
    ranked = ranking(board, requested.findings, part)
    figures = requested.findings if ranked.is_computed else None
    lines = _lines(board, ranked, order, part)
    front = _front_lines(lines, figures)
    page_lines = lines if "all" in request.GET else front
    is_asked = runs_it and any(row.judge.is_asked for row in board.rows)
    workshop = reverse("run-workshop", args=[run.pk]) if is_asked else ""
    disputed = [] if hides or not figures else figures.disputed[:MOST_DISPUTED]
    return {
        "disputed": visible_disputed(request, run, disputed),
        **_tables(request, run, board, requested, figures, lines, page_lines, workshop),
        # Once its tuning has ended no wording can be tried.
        "workshop": workshop if run.queue.is_tuning or run.queue.held_out_from is None else "",
        **findings_context(run, requested, "board"),
        **_headline(request, board, part, figures, _extra_points(request, run, requested)),
        "board": board,
        "counts": counts,
        "has_floor": any(line.is_baseline for line in lines),
        "silent": figures.answered_nothing if figures else [],
        "judges_left_out": left_out_of(run),
        "unanswerable": _unanswerable(requested),
        "alarms": [] if part.kind else _alarms(board),
        "runs_it": runs_it,
        "citation": citation_of(request, run),
        "left_out": left_out,
        "judges": sum(not line.is_baseline for line in lines),
        "hidden": len(lines) - len(page_lines),
        "has_all": len(page_lines) > len(front),
        "is_voting": hides,
        # The list of pairs is of no part that is made of votes.
        "pairs_query": pairs_query(disputed_order(run), WHOLE_RUN if part.is_of_votes else part),
        "first_step": None if board.votes else _first_step(run, board, runs_it=runs_it),
    }


def _extra_points(request: HtmxRequest, run: Run, requested: FindingsRequest) -> list[BoardPoint]:
    """Return points that findings do not say: how watched judges do, and on whom a lead depends.

    Whose votes carry a lead is for leads alone who have nothing left to vote on.
    """
    states: dict[str, list[str]] = {}
    for watch in [] if requested.part.kind else watches_of(run):
        states.setdefault("Changed" if watch.direction else "Watched", []).append(state_of(watch))
    points = [BoardPoint(lead, " ".join(states[lead])) for lead in sorted(states)]
    carrier = requested.row.carrier if can(request, "run", run) else None
    if carrier and not has_pairs_left(voters_of(request, run.queue.project_id), run):
        words = f"Without the votes of {carrier} the first judge is no longer ahead."
        points.append(BoardPoint("One voter", words))
    return points


def _headline(
    request: HtmxRequest,
    board: BoardView,
    part: Slice,
    figures: RunFindings | None,
    beside: list[BoardPoint],
) -> Context:
    words, points = "", list[BoardPoint]()
    if figures and (board.votes or part.kind):
        is_at_work = figures.may_stop and may_be_stopped(request, board.run)
        words, points = figures.words_to(is_at_work=is_at_work), figures.points
    points = [*beside, *points][:MOST_POINTS]
    return {
        "words": unbroken(words),
        "points": [point._replace(text=unbroken(point.text)) for point in points],
        "notes": figures.notes if figures else [],
        "without_thin": figures.without_thin if figures else [],
        "is_computing": bool(board.votes or part.kind) and not figures,
        "spoken": words or f"{number_of(board.votes, 'vote')}.",
    }


def _tables(
    request: HtmxRequest,
    run: Run,
    board: BoardView,
    requested: FindingsRequest,
    figures: RunFindings | None,
    lines: Sequence[BoardLine],
    page_lines: Sequence[BoardLine],
    workshop: str,
) -> Context:
    """Return the tables and graphs, none of a part that was not computed."""
    part = requested.part
    context: Context = {}
    if figures or not part.kind:
        table, further_table = judge_tables(run, part, figures, lines, page_lines, workshop)
        notes = [requested.refused] if requested.refused else table.notes
        context["table"] = replace(_sortable(request, table, NAME), notes=notes)
        context["further"] = _sortable(request, further_table) if further_table else None
        context["graph"] = None if part.kind else elo_graph(board, page_lines)
    if figures and figures.as_of.votes:
        context |= comparisons(run, figures, page_lines)
    return context


def _order(request: HtmxRequest) -> str:
    order = request.GET.get("sort", AGREEMENT)
    if order not in SORTED_BY:
        raise Problem(400, f"sort: one of {', '.join(SORTED_BY)}, not {order[:80]!r}.")
    return order


def _unanswerable(requested: FindingsRequest) -> str:
    """Say how many votes are for what no judge could answer, where there are such."""
    data = requested.whole_run.data or {}
    if not (counts := data.get("unanswerable")):
        return ""
    choices, votes = listed(map(short_name, counts["choices"]), "or"), counts["votes"]
    singular, plural = choices.replace("tie", "a tie"), choices.replace("tie", "ties")
    are = f"One vote is {singular}" if votes == 1 else f"{votes:,} votes are {plural}"
    left = f"{'it is' if votes == 1 else 'they are'} left out here"
    if not requested.part.kind:
        left = f"none could be right about {'it' if votes == 1 else 'them'}"
    return f"{are}; judges had no {choices} to choose, so {left}."


def _first_step(run: Run, board: BoardView, *, runs_it: bool) -> tuple[str, str, str]:
    """Say what there is to do before there are votes, what to press for it, and where it leads."""
    if run.state == Run.State.DRAFT:
        press = "See what it will do, and start it" if runs_it else ""
        draft = reverse("run-draft", args=[run.pk])
        return "This run is a draft: nothing was asked yet.", press, draft
    noun = run.queue.noun
    promise = "As soon as people vote, this page says which judge to trust, and how sure that is."
    if board.preparing:
        promise += (
            f" {board.preparing} of {board.total} {noun}s are still being drawn and judged; "
            "the others can be voted on already."
        )
    if not run.queue.is_open or run.state == Run.State.COMPLETE:
        return f"{promise} Voting is over.", "", ""
    if not runs_it:
        return f"{promise} Ask the owner of this run for an invite link to vote.", "", ""
    return promise, f"Vote on {noun}s, or invite people", invites_address(run)


def _alarms(board: BoardView) -> list[tuple[str, str, str]]:
    """Return judges that have never answered by the reason, which is said once; the first alone."""
    silent = {
        row.judge.pk: row.judge.name
        for row in board.rows
        if row.requested and not row.answered and not row.judge.is_baseline
    }
    if not silent:
        return []
    reasons: dict[str, list[str]] = {}
    for judge, reason in queries.failures_of(silent).items():
        reasons.setdefault(reason, []).append(silent[judge])
    return [(listed(sorted(names)), reason, min(names)) for reason, names in reasons.items()]


# --- which judges, in which order ---------------------------------------------------------------


def _lines(board: BoardView, ranked: Ranking, order: str, part: Slice) -> list[BoardLine]:
    """Return a line for each judge, the best first and baselines last; of a part, those in it.

    Judges that answered nothing are named below the table.
    """
    lines = [line for line in ranked.lines(board) if line.findings or not part.kind]
    lines = [line for line in lines if line.rank is not None]
    return sorted(lines, key=lambda line: (line.is_baseline, SORTED_BY[order](line)))


def _falling_key(value: float | None) -> float:
    return inf if value is None else -value


def _column_sort_key(column: BoardColumn) -> Callable[[BoardLine], float]:
    return lambda line: _falling_key(column.order(line.findings) if line.findings else None)


SORTED_BY: Final[Mapping[str, Callable[[BoardLine], Any]]] = {
    **{column.figure: _column_sort_key(column) for column in COLUMNS},
    AGREEMENT: lambda line: _falling_key(line.share),
    "elo": lambda line: _falling_key(line.elo.value),
    NAME: lambda line: line.row.judge.name.casefold(),
}


def _front_lines(lines: Sequence[BoardLine], figures: RunFindings | None) -> list[BoardLine]:
    """Return all lines; of very many the best, those not distinguishable yet, baselines."""
    judges = [line for line in lines if not line.is_baseline]
    if len(judges) <= MOST_IN_FRONT:
        return list(lines)
    best, beaten = min(judges, key=SORTED_BY[AGREEMENT]), set()
    if figures and best.findings:
        beats = figures.claims.beats[figures.judges.index(best.findings)]
        beaten = {
            judge.id for judge, is_beaten in zip(figures.judges, beats, strict=True) if is_beaten
        }
    front = [line for line in judges if line.id not in beaten][:MOST_IN_FRONT]
    return [line for line in lines if line in front or line.is_baseline]


# --- the tables ---------------------------------------------------------------------------------


def _sortable(request: HtmxRequest, table: Table, names: str = "") -> Table:
    """Let the heads of a table sort it; `names` is the order of its first column, if it has one."""
    order, heads = _order(request), []
    for head in table.heads:
        figure = head.figure or names
        direction = _direction(order) if figure == order else ""
        href = sort_link(request.GET, figure, AGREEMENT) if figure else ""
        heads.append(replace(head, figure=figure, href=href, sorted=direction))
    return replace(table, heads=heads)


def _direction(order: str) -> str:
    least = {column.figure for column in COLUMNS if column.best.startswith("-")}
    return "ascending" if order in {*least, NAME} else "descending"
