"""The board of a run: its judges' figures, as of some vote, beside what is live."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.http import HttpResponse
from django.urls import reverse

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
from humanjudge.lib.text import listed, number_of
from judge_eval import selectors
from judge_eval.access import can, is_voting
from judge_eval.findings.cache import Request, request_findings
from judge_eval.findings.columns import (
    COLUMNS,
    PENDING,
    Column,
    columns_of,
    live_cells,
    people_cells,
    share_cell,
)
from judge_eval.findings.model import ConfusionMatrix, RunFindings
from judge_eval.findings.ranking import Ranking, ranking
from judge_eval.findings.slices import WHOLE, Slice
from judge_eval.models import JudgeRating, Run
from judge_eval.pages.findings import findings_context, live_page, matrix, p_text
from judge_eval.pages.pairs import DISPUTED, pairs_query
from judge_eval.pages.runs import run_page
from judge_eval.selectors import BoardView

LATER = "The judge joined after these figures were computed; they follow within seconds."
OF_THE_WHOLE = "Prices and times are those of the whole run."
# A matrix of more judges than these is folded away.
MOST_UNFOLDED = 8
PROMPT_LETTERS = 110
NO_SUCH_VOTE = "There is no such vote on what it has a verdict on."
# A row of the table: its name, what stands behind it, and its cells by the keys of the columns.
Line = tuple[str, str, dict[str, Cell]]


@run_page("see board")
def run_board(request: HtmxRequest, run: Run) -> HttpResponse:
    """The board, or a part of it; htmx asks for its live part again while people vote."""
    wanted = request_findings(run, request.GET.get("part", ""))
    board, part = selectors.board(run), wanted.part
    ranked = ranking(board, wanted.findings, part)
    rows, figures = ranked.best_first(board.rows), wanted.findings if ranked.is_computed else None
    is_begun = bool(board.votes or part.kind)
    words = figures.words if figures and is_begun else ""
    spoken = f"{part.in_words}: {words}" if words and part.kind else words
    # On which pairs people and judges disagree says what to look for on the next one.
    hides, runs_it = is_voting(request, run), can(request, "see calls", run)
    context = findings_context(run, wanted, "board")
    # What changes whenever the board does, its findings left aside.
    counts = (run.queue.project.head_seq, board.done, board.preparing, board.unusable)
    context |= {
        "board": board,
        "words": words,
        "is_computing": is_begun and not figures,
        "left_out": selectors.left_out(run) if board.unusable else [],
        "table": _table(wanted, run, ranked, rows) if figures or not part.kind else None,
        "graph": None if part.kind else _graph(board, rows),
        "is_voting": hides,
        "disputed": [] if hides else _disputed(run, wanted.findings),
        # The list of pairs is of no part that is made of votes.
        "pairs_query": pairs_query(DISPUTED, WHOLE if part.kind == "ballot" else part),
        "first_step": None if board.votes else _first_step(run, board, runs_it=runs_it),
        "seen": "-".join(map(str, (*counts, context["seen"]))),
        # What is read aloud when it changes.
        "spoken": spoken or f"{number_of(board.votes, 'vote')}.",
    }
    if figures and figures.as_of.votes:
        context |= _matrices(run, figures, rows) | _confusion(figures, rows)
    return live_page(request, context, "board")


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
    noun = run.queue.noun
    if board.preparing:
        why += (
            f" {board.preparing} of {board.total} {noun}s are still being drawn and judged; "
            "the others can be voted on already."
        )
    if not run.queue.is_open or run.state == Run.State.COMPLETE:
        return f"{why} Voting is over.", "", ""
    if not runs_it:
        return f"{why} Ask the owner of this run for an invite link to vote.", "", ""
    return why, f"Vote on {noun}s, or invite people", reverse("run-voting", args=[run.pk])


# --- the table ----------------------------------------------------------------------------------


def _table(wanted: Request, run: Run, ranked: Ranking, judges: Sequence[JudgeRating]) -> Table:
    """Show judges by overall agreement: live, or of a part, which has no ELO and no price."""
    part, figures = wanted.part, wanted.findings
    columns = [c for c in columns_of(run.queue.kind) if c.is_of_parts or not part.kind]
    lines = _lines(ranked, judges, part)
    if figures and figures.as_of.votes:
        cells = people_cells(figures.among_people.pairs, figures.people_first_position)
        lines.append(("People among themselves", "people", cells))
    unknown = [OF_THE_WHOLE] if part.kind else []
    if ranked.is_computed and (topics := _unknown_topics(columns, lines)):
        columns = [column for column in columns if column.topic not in topics]
        # Baselines aside, every judge has answered elsewhere.
        providers = {row.judge.provider for row in judges if not row.judge.is_baseline}
        why = ", since the verdicts were imported" if providers == {"imported"} else ""
        unknown.append(f"Not known of any judge: {listed(topics)}{why}.")
    first = {column.group: column.figure for column in reversed(columns)}.values()
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
    rows, notes = numbered([_row(columns, *line) for line in lines])
    order = "by overall agreement, best first"
    return Table(
        label=f"Judges of {run.name}, {order}",
        caption=f"Judges of {run.name}{f', {part.in_words}' if part.kind else ''}, {order}",
        id="ranking",
        css="ranking",
        groups=list(Counter(column.group for column in columns).items()),
        heads=[Head("Judge", css="who"), *heads],
        rows=rows,
        notes=notes,
        unknown=" ".join(unknown),
    )


def _lines(ranked: Ranking, judges: Sequence[JudgeRating], part: Slice) -> list[Line]:
    """Return a line for each judge; of a part, for those that are in its findings."""
    absent, lines = missing(LATER if ranked.is_computed else PENDING), []
    for row in judges:
        judge = ranked.findings.get(str(row.judge.pk))
        if judge or not part.kind:
            cells = {c.figure: c.cell(judge) if judge else absent for c in COLUMNS}
            tag = "baseline" if row.judge.is_baseline else ""
            lines.append((row.judge.name, tag, cells | live_cells(row, judge)))
    return lines


def _unknown_topics(columns: Sequence[Column], lines: Sequence[Line]) -> list[str]:
    """Return of what nobody has a figure; that of a baseline counts where all are such."""
    tags = {tag for _, tag, _ in lines}
    telling = [cells for _, tag, cells in lines if tag != "baseline" or "" not in tags]
    unknown = dict.fromkeys(column.topic for column in columns if column.topic)
    for column in columns:
        if any(cells.get(column.figure, Cell()).is_known for cells in telling):
            unknown.pop(column.topic, None)
    return list(unknown)


def _row(columns: Sequence[Column], name: str, tag: str, cells: Mapping[str, Cell]) -> Row:
    figures = [
        replace(cells.get(column.figure, Cell()), figure=column.figure, mark="main")
        for column in columns
    ]
    return Row(name, [name_cell(name, tag=tag, css="who"), *figures], tag)


# --- judges against judges ----------------------------------------------------------------------


def _matrices(run: Run, figures: RunFindings, rows: Sequence[JudgeRating]) -> Context:
    places = {judge.id: place for place, judge in enumerate(figures.judges)}
    order = [places[pk] for row in rows if (pk := str(row.judge.pk)) in places]
    if len(order) < 2:
        return {}
    claims, names = figures.mcnemar, [judge.name for judge in figures.judges]

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

    beats = matrix("Row beats column: corrected p", names, order, claim)
    same = f"Same verdict: percent of the {run.queue.noun}s that both answered"
    alike = matrix(same, names, order, share)
    return {
        "claims": replace(beats, css="matrix", id="claims", caption=beats.label),
        "folded": f"{len(order)} judges against each other" if len(order) > MOST_UNFOLDED else "",
        "same_verdict": replace(alike, css="matrix", id="same-table", caption=alike.label),
    }


def _confusion(figures: RunFindings, rows: Sequence[JudgeRating]) -> Context:
    """Set what each judge said beside what people said, in the order of the board."""
    found = figures.confusion
    if found is None:
        return {}
    by_judge = {matrix.judge: matrix for matrix in found.judges}
    tables = [
        (row.judge.name, _confusion_table(row.judge.name, found.choices, of))
        for row in rows
        if (of := by_judge.get(str(row.judge.pk)))
    ]
    return {"confusion": tables}


def _confusion_table(name: str, choices: Sequence[str], of: ConfusionMatrix) -> Table:
    heads = [Head("People said", css=""), *map(Head, choices), Head("no verdict")]
    heads += [Head("Sensitivity", "%"), Head("Specificity", "%")]
    lines = []
    for place, (choice, counts, rates) in enumerate(
        zip(choices, of.counts, of.labels, strict=True)
    ):
        cells = [
            Cell(f"{count:,}", css="num beats" if column == place else "num")
            for column, count in enumerate(counts)
        ]
        shares = [
            share_cell(rates.sensitivity, f"votes for {choice}", NO_SUCH_VOTE),
            share_cell(rates.specificity, "other votes", NO_SUCH_VOTE),
        ]
        lines.append(Row(choice, [name_cell(choice), *cells, *shares]))
    rows, notes = numbered(lines)
    label = f"What {name} said beside what people said, in votes"
    return Table(label, heads, rows, css="matrix", notes=notes)


# --- pairs, and the curve -----------------------------------------------------------------------


def _disputed(run: Run, figures: RunFindings | None) -> list[Context]:
    worst = figures.disputed if figures else []
    about = selectors.pairs_at(run, [pair.position for pair in worst], PROMPT_LETTERS + 1)
    return [about[pair.position] | pair.model_dump() for pair in worst if pair.position in about]


def _graph(board: BoardView, ranked: Sequence[JudgeRating]) -> RatingGraph | None:
    if len(board.rows) < 2:  # whoever plays alone stays at 1000
        return None
    series = selectors.rating_series(board.run, board.votes)
    if board.votes and (not series or series[-1][0] < board.votes):
        series.append((board.votes, [row.elo for row in board.rows]))
    names = [row.judge.name for row in board.rows]
    baselines = {place for place, row in enumerate(board.rows) if row.judge.is_baseline}
    order = [board.rows.index(row) for row in ranked]
    return rating_graph(names, series, baselines, order)
