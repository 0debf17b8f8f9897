"""The board of a run: its judges' figures, as of some vote, beside what is live."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from humanjudge.charts.rating_graph import RatingGraph, rating_graph
from humanjudge.http import HtmxRequest
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
from judge_eval.access import is_voting
from judge_eval.findings.cache import Request
from judge_eval.findings.columns import GROUPS, METHODS, PENDING, Column
from judge_eval.findings.model import Claims, Matrix, RunFindings
from judge_eval.findings.ranking import ranking
from judge_eval.findings.slices import Slice
from judge_eval.models import Run
from judge_eval.pages.findings import (
    findings_context,
    findings_page,
    live_part,
    requested,
)
from judge_eval.selectors import BoardRow, BoardView
from judge_eval.stats.estimate import SIGNIFICANCE, best_first

LATER = "The judge joined after these figures were computed; they follow within seconds."
OF_THE_WHOLE = "Prices and times are those of the whole run."
# A matrix of more judges than these is folded away.
MOST_UNFOLDED = 8
PROMPT_LETTERS = 110


@findings_page
def run_board(request: HtmxRequest, run: Run) -> HttpResponse:
    """The board, or a part of it; htmx asks for its live part again while people vote."""
    wanted = requested(request, run)
    board = selectors.board(run)
    is_owner = request.user.is_authenticated
    # On which pairs people and judges disagree says what to look for on the next one.
    hides = is_voting(request, run)
    context = findings_context(run, wanted, "board") | _context(run, board, wanted)
    context |= {
        "is_voting": hides,
        "disputed": None if hides else _disputed(run, wanted, is_open=is_owner or run.is_shared),
        "first_step": None if board.votes else _first_step(run, board, is_owner=is_owner),
        "seen": f"{_live_counts(run, board)}-{context['seen']}",
        "methods": METHODS,
    }
    context["poll"] = _poll(context, wanted.part)
    if not request.htmx:
        return render(request, "judge_eval/board.html", context)
    return live_part(request, context, "judge_eval/_board.html")


def _poll(context: dict[str, Any], part: Slice) -> str:
    """Return what htmx asks with, so that it is answered only when something is new."""
    known = {"parts": context["parts"].number if context["parts"] else "", "seen": context["seen"]}
    query = {"part": str(part), **known} if part.kind else known
    return urlencode(query, quote_via=quote, safe="")


def _live_counts(run: Run, board: BoardView) -> str:
    """Return what changes whenever the board does, its findings left aside."""
    counts = (run.queue.project.head_seq, board.done, board.preparing, board.unusable)
    return "-".join(map(str, counts))


def _context(run: Run, board: BoardView, wanted: Request) -> dict[str, Any]:
    figures, part = wanted.findings, wanted.part
    rows = ranking(board, figures).best_first(board.rows)
    order = _order(rows, figures, part)
    is_voted = bool(figures and figures.as_of.votes)
    # What was computed before anybody voted says nothing of the votes since.
    is_computing = not figures or (bool(board.votes) and not is_voted and not part.kind)
    context: dict[str, Any] = {
        "board": board,
        "words": figures.words if figures and (is_voted or part.kind) else "",
        "spoken": _spoken(board, figures if is_voted else None, part),
        "computed": _computed(board, wanted, figures) if figures and is_voted else None,
        "is_computing": is_computing and bool(board.votes or part.kind),
        "left_out": selectors.left_out(run) if board.unusable else [],
        "counts": _counts(board, figures, part),
        "not_blind": _not_blind(board.unblinded),
        **_matrices(figures, order),
    }
    if part.kind:
        table = part_table(run, figures, order, board.rows, part) if figures else None
        return context | {"table": table}
    return context | {"table": live_table(run, rows, figures), "graph": _graph(run, board, rows)}


# --- sentences ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Computed:
    """Of which votes the figures are, when they were computed, and what came since."""

    votes: str
    at: datetime
    seconds: int
    ago: str
    behind: str


def _computed(board: BoardView, wanted: Request, figures: RunFindings) -> Computed:
    at = wanted.row.computed_at
    assert at is not None  # there are figures
    seconds = max((timezone.now() - at).total_seconds(), 0)
    votes, part = figures.as_of.votes, wanted.part
    of = f"{number_of(votes, 'vote')} on this part" if part.kind else f"vote {votes:,}"
    since = 0 if part.kind else max(board.votes - votes, 0)
    return Computed(
        votes=f"As of {of} (ledger entry {wanted.row.seq:,}), computed",
        at=at,
        seconds=round(seconds),
        ago=duration(seconds),
        behind=_behind(since, part) if wanted.row.seq < board.run.board.seq else "",
    )


def _behind(since: int, part: Slice) -> str:
    if part.kind:
        return "The ledger has gone on since: these figures follow within seconds."
    came = f"{number_of(since, 'vote')} came since" if since else "The ledger has gone on since"
    elo = ("ELO has it" if since == 1 else "ELO has them") if since else "ELO with it"
    return f"{came}: {elo}, the other figures follow within seconds."


def _spoken(board: BoardView, figures: RunFindings | None, part: Slice) -> str:
    """Return what is read aloud when it changes."""
    if figures is None:
        return f"{number_of(board.votes, 'vote')}."
    return f"{part.in_words}: {figures.words}" if part.kind else figures.words


def _counts(board: BoardView, figures: RunFindings | None, part: Slice) -> list[tuple[str, str]]:
    if part.kind and figures:
        as_of = figures.as_of
        voted = f"{as_of.voted:,} of {as_of.open:,}"
        return [
            ("Votes on this part", f"{as_of.votes:,}"),
            ("Its pairs that were voted on", voted),
        ]
    done = f"{board.done:,} of {board.total:,}"
    return [("Votes", f"{board.votes:,}"), ("Pairs with enough votes", done)]


def _not_blind(number: int) -> str:
    if not number:
        return ""
    was, is_kept = ("was", "it is") if number == 1 else ("were", "they are")
    return (
        f"{number_of(number, 'vote')} {was} cast after the voter had seen that pair’s verdicts, so "  # noqa: RUF001
        f"{is_kept} kept in the ledger and left out of these figures."
    )


def _first_step(run: Run, board: BoardView, *, is_owner: bool) -> dict[str, str]:
    """Say what there is to do before there are votes, with a link for whoever may do it."""
    if run.state == Run.State.DRAFT:
        link = {"url": reverse("run-draft", args=[run.pk]), "link": _START} if is_owner else {}
        return {"why": "This run is a draft: nothing was asked yet.", **link}
    why = "Every judge starts at 1000 and nothing moves until people vote."
    if board.preparing:
        why += (
            f" {board.preparing} of {board.total} pairs are still being drawn and judged; "
            "the others can be voted on already."
        )
    if not run.queue.is_open or run.state == Run.State.COMPLETE:
        return {"why": why, "then": "Voting is over."}
    if is_owner:
        return {"why": why, "url": reverse("run-voting", args=[run.pk]), "button": _VOTE}
    return {"why": why, "then": "Ask the owner of this run for an invite link to vote."}


_START = "See what it will do, and start it"
_VOTE = "Vote on pairs, or invite people"


def _labelled(claims: Claims) -> str:
    """Say which pairs count for who beats whom."""
    one = claims.labelled == 1
    counted = f"{number_of(claims.labelled, 'pair')} {'has' if one else 'have'}"
    counted += f" a strict majority of votes and count{'s' if one else ''} here"
    if not claims.unlabelled:
        return f"{counted}."
    was, has, does = ("was", "has", "does") if claims.unlabelled == 1 else ("were", "have", "do")
    return f"{counted}; {claims.unlabelled:,} that {was} voted on {has} none and {does} not."


# --- the table ----------------------------------------------------------------------------------


def live_table(run: Run, rows: Sequence[BoardRow], figures: RunFindings | None) -> Table:
    """Show the whole run, judges in the order of the rows."""
    judges = {judge.id: judge for judge in figures.judges} if figures else {}
    absent = LATER if figures else PENDING

    def cells(row: BoardRow) -> dict[str, Cell]:
        judge = judges.get(str(row.judge.pk))
        return {
            column.figure: column.live(row, judge)
            or (column.cell(judge) if judge else missing(absent))
            for columns in GROUPS.values()
            for column in columns
        }

    lines = [(row.judge.name, row.judge.is_baseline, cells(row)) for row in rows]
    return _table(run, GROUPS, lines, figures, is_imported=_is_imported(rows))


def part_table(
    run: Run, figures: RunFindings, order: Sequence[int], rows: Sequence[BoardRow], part: Slice
) -> Table:
    """Show a part of the run, which has no ELO and no price of its own."""
    groups = {
        title: [column for column in columns if column.is_of_parts]
        for title, columns in GROUPS.items()
    }
    columns = [column for columns in groups.values() for column in columns]
    lines = [
        (judge.name, judge.is_baseline, {column.figure: column.cell(judge) for column in columns})
        for judge in (figures.judges[place] for place in order)
    ]
    table = _table(run, groups, lines, figures, is_imported=_is_imported(rows), part=part)
    return replace(table, unknown=f"{OF_THE_WHOLE} {table.unknown}".strip())


Line = tuple[str, bool, Mapping[str, Cell]]


def _table(
    run: Run,
    groups: Mapping[str, Sequence[Column]],
    judges: Sequence[Line],
    figures: RunFindings | None,
    *,
    is_imported: bool,
    part: Slice | None = None,
) -> Table:
    """Leave out what nobody has a figure for, and number the reasons that are still needed."""
    people = _people(figures) if figures and figures.as_of.votes else None
    every = [column for columns in groups.values() for column in columns]
    spare = _nowhere_known(every, judges, people) if figures else []
    left = {
        title: [column for column in columns if column not in spare]
        for title, columns in groups.items()
    }
    left = {title: columns for title, columns in left.items() if columns}
    columns = [column for columns in left.values() for column in columns]
    rows = [
        _row(name, "baseline" if is_baseline else "", columns, cells)
        for name, is_baseline, cells in judges
    ]
    if people:
        rows.append(_row("People among themselves", "people", columns, people))
    first = {columns[0].figure for columns in left.values()}
    heads = [
        Head(
            column.title,
            column.unit,
            css="num group" if column.figure in first else "num",
            anchor=column.method.anchor,
            figure=column.figure,
        )
        for column in columns
    ]
    rows, notes = numbered(rows)
    order = "by overall agreement, best first"
    return Table(
        label=f"Judges of {run.name}, {order}",
        caption=f"Judges of {run.name}{f', {part.in_words}' if part else ''}, {order}",
        id="ranking",
        css="ranking",
        groups=[(title, len(columns)) for title, columns in left.items()],
        heads=[Head("Judge", css="who"), *heads],
        rows=rows,
        notes=notes,
        unknown=_unknown(spare, is_imported=is_imported),
    )


def _row(name: str, css: str, columns: Sequence[Column], cells: Mapping[str, Cell]) -> Row:
    figures = [
        replace(cells.get(column.figure, Cell()), figure=column.figure, mark="main")
        for column in columns
    ]
    return Row(name, [name_cell(name, tag=css, css="who"), *figures], css)


def _people(figures: RunFindings) -> dict[str, Cell]:
    """Show people by the same measures."""
    shares = (figures.among_people.pairs, figures.people_first_position)
    return {
        column.figure: column.people(*shares)
        for columns in GROUPS.values()
        for column in columns
        if column.people
    }


def _nowhere_known(
    columns: Sequence[Column], judges: Sequence[Line], people: Mapping[str, Cell] | None
) -> list[Column]:
    """Return columns that nobody has a figure for; that of a baseline counts where all are such."""
    telling = [cells for _, is_baseline, cells in judges if not is_baseline]
    telling = [*(telling or [cells for _, _, cells in judges]), *([people] if people else [])]
    return [
        column
        for column in columns
        if column.without[0]
        and not any(cells.get(column.without[1], Cell()).is_known for cells in telling)
    ]


def _unknown(columns: Sequence[Column], *, is_imported: bool) -> str:
    """Say in a sentence what is not shown."""
    names = dict.fromkeys(column.without[0] for column in columns)
    if not names:
        return ""
    why = ", since the verdicts were imported" if is_imported else ""
    return f"Not known of any judge: {listed(names)}{why}."


def _is_imported(rows: Sequence[BoardRow]) -> bool:
    """Say whether every judge, baselines aside, has answered elsewhere."""
    providers = {row.judge.provider for row in rows if not row.judge.is_baseline}
    return providers == {"imported"}


# --- judges against judges ----------------------------------------------------------------------


def _order(rows: Sequence[BoardRow], figures: RunFindings | None, part: Slice) -> list[int]:
    """Return the places of judges in the findings, from the table's top to its bottom."""
    judges = figures.judges if figures else []
    if part.kind:
        return best_first([judge.overall.value for judge in judges])
    places = {judge.id: place for place, judge in enumerate(judges)}
    ranked = (str(row.judge.pk) for row in rows)
    return [places[judge] for judge in ranked if judge in places]


def _matrices(figures: RunFindings | None, order: Sequence[int]) -> dict[str, Any]:
    if not figures or len(order) < 2 or not figures.as_of.votes:
        return {"claims": None, "same_verdict": None}
    names = [judge.name for judge in figures.judges]
    return {
        "claims": _claims_matrix(figures.claims, names, order),
        "labelled": _labelled(figures.claims),
        "folded": f"{len(order)} judges against each other" if len(order) > MOST_UNFOLDED else "",
        "same_verdict": _same_verdict_matrix(figures.same_verdict, names, order),
    }


def _claims_matrix(claims: Claims, names: Sequence[str], order: Sequence[int]) -> Table:
    """Show who beats whom, with the corrected p of each test."""

    def cell(row: int, column: int) -> Cell:
        ahead, behind = claims.ahead[row][column], claims.ahead[column][row]
        # Short, and without the names in the heads: there are hundreds of these.
        both = claims.together[row][column]
        title = f"alone right: {ahead:,} to {behind:,}, of {both:,} that both answered"
        p = p_text(claims.p[row][column] or 0.0)
        if claims.beats[row][column]:
            return Cell(p, title=title, css="num beats", before="beats, p = ")
        return Cell(p, title=title)

    return _matrix("claims", "Row beats column: corrected p", names, order, cell)


def _same_verdict_matrix(shares: Matrix, names: Sequence[str], order: Sequence[int]) -> Table:
    def cell(row: int, column: int) -> Cell:
        share = shares[row][column]
        if share is None:
            return Cell(DASH, title="They never answered together.")
        return Cell(percent(share))

    caption = "Same verdict: percent of the pairs that both answered"
    return _matrix("same-table", caption, names, order, cell)


def _matrix(
    name: str,
    caption: str,
    names: Sequence[str],
    order: Sequence[int],
    cell: Callable[[int, int], Cell],
) -> Table:
    """Show judges by judges; the columns are called by the numbers of the rows."""
    heads = [
        Head(f"{number}", hint=names[place], after=f" {names[place]}")
        for number, place in enumerate(order, start=1)
    ]
    rows = [
        Row(
            names[row],
            [
                name_cell(format_html('<span class="muted">{}</span> {}', number, names[row])),
                *(Cell() if row == column else cell(row, column) for column in order),
            ],
        )
        for number, row in enumerate(order, start=1)
    ]
    return Table(caption, [Head(), *heads], rows, css="matrix", id=name, caption=caption)


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


def _disputed(run: Run, wanted: Request, *, is_open: bool) -> dict[str, Any] | None:
    """Return the pairs that judges and people disagree on most, with what leads to their pages."""
    worst = wanted.findings.disputed if wanted.findings else []
    if not worst:
        return None
    part = {"part": str(wanted.part)} if wanted.part.kind in ("tag", "generator") else {}
    query = urlencode({"sort": "disagreement", **part}, quote_via=quote, safe="")
    about = selectors.pairs_at(run, [pair.position for pair in worst], PROMPT_LETTERS + 1)

    def url(name: str, *ids: UUID) -> str:
        return f"{reverse(name, args=[run.pk, *ids])}?{query}" if is_open else ""

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
