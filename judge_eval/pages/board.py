"""The board of a run: its judges' figures, as of some vote, beside what is live."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from humanjudge.charts.rating_graph import RatingGraph, rating_graph
from humanjudge.http import Context, HtmxRequest
from humanjudge.lib.tables import (
    DASH,
    Cell,
    Head,
    Row,
    Table,
    missing,
    name_cell,
    numbered,
    percent,
)
from humanjudge.lib.text import duration, listed, number_of
from judge_eval import selectors
from judge_eval.access import can, is_voting
from judge_eval.findings.cache import Request
from judge_eval.findings.columns import GROUPS, PENDING, Column
from judge_eval.findings.model import RunFindings
from judge_eval.findings.ranking import ranking
from judge_eval.findings.slices import Slice
from judge_eval.models import JudgeRating, Run
from judge_eval.pages.findings import findings_context, live_part, requested
from judge_eval.pages.runs import run_page
from judge_eval.selectors import BoardView
from judge_eval.stats.estimate import SIGNIFICANCE, best_first

LATER = "The judge joined after these figures were computed; they follow within seconds."
OF_THE_WHOLE = "Prices and times are those of the whole run."
# A matrix of more judges than these is folded away.
MOST_UNFOLDED = 8
PROMPT_LETTERS = 110


@run_page("see board")
def run_board(request: HtmxRequest, run: Run) -> HttpResponse:
    """The board, or a part of it; htmx asks for its live part again while people vote."""
    wanted = requested(request, run)
    board, figures, part = selectors.board(run), wanted.findings, wanted.part
    rows = ranking(board, figures).best_first(board.rows)
    is_voted = bool(figures and figures.as_of.votes)
    # What was computed before anybody voted says nothing of the votes since.
    is_computing = not figures or (bool(board.votes) and not is_voted and not part.kind)
    # On which pairs people and judges disagree says what to look for on the next one.
    hides, runs_it = is_voting(request, run), can(request, "see calls", run)
    context = findings_context(run, wanted, "board")
    # What changes whenever the board does, its findings left aside.
    counts = (run.queue.project.head_seq, board.done, board.preparing, board.unusable)
    seen = f"{'-'.join(map(str, counts))}-{context['seen']}"
    context |= {
        "board": board,
        "words": figures.words if figures and (is_voted or part.kind) else "",
        "computed": _computed(board, wanted) if is_voted else None,
        "is_computing": is_computing and bool(board.votes or part.kind),
        "left_out": selectors.left_out(run) if board.unusable else [],
        "table": _table(run, rows, figures, part) if figures or not part.kind else None,
        "graph": None if part.kind else _graph(run, board, rows),
        "is_voting": hides,
        "disputed": None if hides else _disputed(run, wanted),
        "first_step": None if board.votes else _first_step(run, board, runs_it=runs_it),
        "seen": seen,
        # What is read aloud when it changes.
        "spoken": f"{number_of(board.votes, 'vote')}.",
    }
    if figures and is_voted:
        context["spoken"] = f"{part.in_words}: {figures.words}" if part.kind else figures.words
        context |= _matrices(figures, _order(rows, figures, part))
    if not request.htmx:
        return render(request, "judge_eval/board.html", context)
    return live_part(request, context, "judge_eval/_board.html")


# --- sentences ----------------------------------------------------------------------------------


def _computed(board: BoardView, wanted: Request) -> Context:
    """Say of which votes the figures are, when they were computed, and what came since."""
    at, figures, part = wanted.row.computed_at, wanted.findings, wanted.part
    assert at is not None and figures is not None  # noqa: PT018  the caller looked
    votes, seconds = figures.as_of.votes, max((timezone.now() - at).total_seconds(), 0)
    of = f"{number_of(votes, 'vote')} on this part" if part.kind else f"vote {votes:,}"
    since, behind = max(board.votes - votes, 0), ""
    if wanted.row.seq < board.run.board.seq:
        came = f"{number_of(since, 'vote')} came since" if since else "The ledger has gone on since"
        behind = f"{came}: ELO is up to date, the other figures follow within seconds."
        if part.kind:
            behind = "The ledger has gone on since: these figures follow within seconds."
    return {
        "votes": f"As of {of} (ledger entry {wanted.row.seq:,}), computed",
        "at": at,
        "seconds": round(seconds),
        "ago": duration(seconds),
        "behind": behind,
    }


def _first_step(run: Run, board: BoardView, *, runs_it: bool) -> tuple[str, str, str]:
    """Say what there is to do before there are votes, what to press for it, and where it leads."""
    if run.state == Run.State.DRAFT:
        press = "See what it will do, and start it" if runs_it else ""
        return (
            "This run is a draft: nothing was asked yet.",
            press,
            reverse("run-draft", args=[run.pk]),
        )
    why = "Every judge starts at 1000 and nothing moves until people vote."
    if board.preparing:
        why += (
            f" {board.preparing} of {board.total} pairs are still being drawn and judged; "
            "the others can be voted on already."
        )
    if not run.queue.is_open or run.state == Run.State.COMPLETE:
        return f"{why} Voting is over.", "", ""
    if not runs_it:
        return f"{why} Ask the owner of this run for an invite link to vote.", "", ""
    return why, "Vote on pairs, or invite people", reverse("run-voting", args=[run.pk])


# --- the table ----------------------------------------------------------------------------------


def _order(rows: Sequence[JudgeRating], figures: RunFindings, part: Slice) -> list[int]:
    """Return the places of judges in the findings, from the table's top to its bottom."""
    if part.kind:
        return best_first([judge.overall.value for judge in figures.judges])
    places = {judge.id: place for place, judge in enumerate(figures.judges)}
    ranked = (str(row.judge.pk) for row in rows)
    return [places[judge] for judge in ranked if judge in places]


def _table(
    run: Run, ranked: Sequence[JudgeRating], figures: RunFindings | None, part: Slice
) -> Table:
    """Show judges by overall agreement: live, or of a part, which has no ELO and no price."""
    groups = {
        title: [column for column in columns if column.is_of_parts or not part.kind]
        for title, columns in GROUPS.items()
    }
    every = [column for columns in groups.values() for column in columns]
    lines: list[tuple[str, bool, Mapping[str, Cell]]] = []
    if part.kind and figures:
        for place in _order(ranked, figures, part):
            judge = figures.judges[place]
            cells = {column.figure: column.cell(judge) for column in every}
            lines.append((judge.name, judge.is_baseline, cells))
    else:
        judges = {judge.id: judge for judge in figures.judges} if figures else {}
        absent = missing(LATER if figures else PENDING)
        for row in ranked:
            computed = judges.get(str(row.judge.pk))
            cells = {
                column.figure: column.live(row, computed)
                or (column.cell(computed) if computed else absent)
                for column in every
            }
            lines.append((row.judge.name, row.judge.is_baseline, cells))
    people: dict[str, Cell] = {}
    if figures and figures.as_of.votes:
        shares = (figures.among_people.pairs, figures.people_first_position)
        people = {column.figure: column.people(*shares) for column in every if column.people}
    spare = _unknown_columns(every, lines, people) if figures else []
    left = {t: [c for c in columns if c not in spare] for t, columns in groups.items()}
    left = {title: columns for title, columns in left.items() if columns}
    columns = [column for columns in left.values() for column in columns]
    rows = [
        _row(name, "baseline" if is_baseline else "", columns, cells)
        for name, is_baseline, cells in lines
    ]
    if people:
        rows.append(_row("People among themselves", "people", columns, people))
    rows, notes = numbered(rows)
    unknown = ""
    if names := dict.fromkeys(column.without[0] for column in spare):
        # Baselines aside, every judge has answered elsewhere.
        providers = {row.judge.provider for row in ranked if not row.judge.is_baseline}
        why = ", since the verdicts were imported" if providers == {"imported"} else ""
        unknown = f"Not known of any judge: {listed(names)}{why}."
    first = {columns[0].figure for columns in left.values()}
    heads = [
        Head(
            column.title,
            column.unit,
            css="num group" if column.figure in first else "num",
            anchor=column.anchor,
            figure=column.figure,
        )
        for column in columns
    ]
    order = "by overall agreement, best first"
    return Table(
        label=f"Judges of {run.name}, {order}",
        caption=f"Judges of {run.name}{f', {part.in_words}' if part.kind else ''}, {order}",
        id="ranking",
        css="ranking",
        groups=[(title, len(columns)) for title, columns in left.items()],
        heads=[Head("Judge", css="who"), *heads],
        rows=rows,
        notes=notes,
        unknown=f"{OF_THE_WHOLE} {unknown}".strip() if part.kind else unknown,
    )


def _row(name: str, css: str, columns: Sequence[Column], cells: Mapping[str, Cell]) -> Row:
    figures = [
        replace(cells.get(column.figure, Cell()), figure=column.figure, mark="main")
        for column in columns
    ]
    return Row(name, [name_cell(name, tag=css, css="who"), *figures], css)


def _unknown_columns(
    columns: Sequence[Column],
    lines: Sequence[tuple[str, bool, Mapping[str, Cell]]],
    people: Mapping[str, Cell],
) -> list[Column]:
    """Return columns that nobody has a figure for; that of a baseline counts where all are such."""
    telling = [cells for _, is_baseline, cells in lines if not is_baseline]
    telling = [*(telling or [cells for _, _, cells in lines]), people]
    return [
        column
        for column in columns
        if column.without[0]
        and not any(cells.get(column.without[1], Cell()).is_known for cells in telling)
    ]


# --- judges against judges ----------------------------------------------------------------------


def _matrices(figures: RunFindings, order: Sequence[int]) -> Context:
    """Return who beats whom, with the corrected p of each test, and who says the same."""
    if len(order) < 2:
        return {}
    claims, names = figures.claims, [judge.name for judge in figures.judges]

    def claim(row: int, column: int) -> Cell:
        ahead, behind = claims.ahead[row][column], claims.ahead[column][row]
        # Short, and without the names in the heads: there are hundreds of these.
        both = claims.together[row][column]
        title = f"alone right: {ahead:,} to {behind:,}, of {both:,} that both answered"
        p = p_text(claims.p[row][column] or 0.0)
        if claims.beats[row][column]:
            return Cell(p, title=title, css="num beats", before="beats, p = ")
        return Cell(p, title=title)

    def share(row: int, column: int) -> Cell:
        same = figures.same_verdict[row][column]
        if same is None:
            return Cell(DASH, title="They never answered together.")
        return Cell(percent(same))

    alike = "Same verdict: percent of the pairs that both answered"
    return {
        "claims": _matrix("claims", "Row beats column: corrected p", names, order, claim),
        "folded": f"{len(order)} judges against each other" if len(order) > MOST_UNFOLDED else "",
        "same_verdict": _matrix("same-table", alike, names, order, share),
    }


def _matrix(
    name: str,
    caption: str,
    names: Sequence[str],
    order: Sequence[int],
    cell: Callable[[int, int], Cell],
) -> Table:
    """Show judges by judges; the columns are called by the numbers of the rows."""
    heads, rows = [Head()], []
    for number, row in enumerate(order, start=1):
        heads.append(Head(f"{number}", hint=names[row], after=f" {names[row]}"))
        head = name_cell(format_html('<span class="muted">{}</span> {}', number, names[row]))
        cells = [Cell() if row == column else cell(row, column) for column in order]
        rows.append(Row(names[row], [head, *cells]))
    return Table(caption, heads, rows, css="matrix", id=name, caption=caption)


def p_text(p: float) -> str:
    """Write a p-value, never as nothing, and never so that it seems to pass where it does not.

    Examples
    --------
    >>> p_text(0.0000042), p_text(0.0312), p_text(0.0501), p_text(1.0)
    ('<0.001', '0.031', '0.0501', '1')
    """
    if p < 0.001:
        return "<0.001"
    if p == 1:
        return "1"
    short = f"{p:.3f}"
    return f"{p:.4f}" if (float(short) <= SIGNIFICANCE) != (p <= SIGNIFICANCE) else short


# --- pairs, and the curve -----------------------------------------------------------------------


def _disputed(run: Run, wanted: Request) -> Context | None:
    """Return the pairs that judges and people disagree on most, with what leads to their pages."""
    worst = wanted.findings.disputed if wanted.findings else []
    if not worst:
        return None
    part = {"part": str(wanted.part)} if wanted.part.kind in ("tag", "generator") else {}
    query = urlencode({"sort": "disagreement", **part}, quote_via=quote, safe="")
    about = selectors.pairs_at(run, [pair.position for pair in worst], PROMPT_LETTERS + 1)

    def url(name: str, *ids: UUID) -> str:
        return f"{reverse(name, args=[run.pk, *ids])}?{query}"

    pairs = [
        about[pair.position]
        | {
            "position": pair.position,
            "name": f"Pair {pair.position + 1:,}",
            "url": url("run-pair", about[pair.position]["id"]),
            "differ": f"{pair.wrong} of {pair.of} differ",
        }
        for pair in worst
        if pair.position in about
    ]
    return {"pairs": pairs, "url": url("run-pairs")}


def _graph(run: Run, board: BoardView, ranked: Sequence[JudgeRating]) -> RatingGraph | None:
    if len(board.rows) < 2:  # whoever plays alone stays at 1000
        return None
    series = selectors.rating_series(run, board.votes)
    if board.votes and (not series or series[-1][0] < board.votes):
        series.append((board.votes, [row.elo for row in board.rows]))
    names = [row.judge.name for row in board.rows]
    baselines = {place for place, row in enumerate(board.rows) if row.judge.is_baseline}
    order = [board.rows.index(row) for row in ranked]
    return rating_graph(names, series, baselines, order)
