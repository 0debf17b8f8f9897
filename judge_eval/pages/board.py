"""The board of a run: words, one picture, one table; everything further folded below them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, Final

from django.db.models import Max
from django.http import HttpResponse
from django.urls import reverse

from humanjudge.charts.rating_graph import RatingGraph, rating_graph
from humanjudge.http import Context, HtmxRequest, Problem
from humanjudge.lib.tables import (
    DASH,
    Cell,
    Head,
    Row,
    Table,
    matrix,
    missing,
    name_cell,
    numbered,
    percent,
    percent_span,
    sort_link,
)
from humanjudge.lib.text import listed, number_of, odds
from judge_eval import selectors
from judge_eval.access import can, is_voting, visible
from judge_eval.findings.cache import Request, request_findings
from judge_eval.findings.columns import (
    COLUMNS,
    FURTHER,
    MAIN,
    PENDING,
    Column,
    elo_cell,
    share_cell,
)
from judge_eval.findings.disputed import disputed_pairs
from judge_eval.findings.few import keep_few_from
from judge_eval.findings.group_table import group_table
from judge_eval.findings.judge_table import (
    BASELINE,
    Figures,
    judge_cells,
    judge_table,
    telling_columns,
    unknown_columns,
    unknown_topics,
    with_people,
)
from judge_eval.findings.model import (
    Claims,
    ConfusionMatrix,
    Matrix,
    McNemar,
    RunFindings,
)
from judge_eval.findings.pictures import picture_of
from judge_eval.findings.ranking import Line, Ranking, ranking
from judge_eval.findings.slices import DECIDED, WHOLE, Slice
from judge_eval.models import Judge, Run, Verdict
from judge_eval.pages.findings import findings_context, live_page, p_text
from judge_eval.pages.pairs import DISPUTED, pairs_query
from judge_eval.selectors import BoardView
from judge_eval.web import citation_of, run_page
from voting.choices import short_name
from voting.kinds import kind_of

LATER = "The judge joined after these figures were computed; they follow within seconds."
OF_THE_WHOLE = "ELO, prices and times are those of the whole run."
NO_SUCH_VOTE = "There is no such vote on what it has a verdict on."
# Of more judges than these, those in front are shown, and the others at one tap.
MOST_IN_FRONT: Final = 12
MOST_DISPUTED: Final = 6
AGREEMENT, NAME = "overall", "name"
BEFORE_VOTES: Final = tuple(
    next(column for column in COLUMNS if column.figure == figure)
    for figure in ("coverage", "consistency", "first", "cost", "seconds")
)
SPACE: Final = "\N{NO-BREAK SPACE}"
DECIDED_PART: Final = str(Slice("ballot", DECIDED))


@run_page("see")
def run_board(request: HtmxRequest, run: Run) -> HttpResponse:
    """The board, or a part of it; htmx asks for its live part again while people vote."""
    order, requested = _order(request), _requested(run, request.GET.get("part"))
    keep_few_from(request, run, requested.part)
    board, part = selectors.board(run), requested.part
    ranked = ranking(board, requested.findings, part)
    figures = requested.findings if ranked.is_computed else None
    lines = _lines(board, ranked, order, part)
    front = _in_front(lines, figures)
    page_lines = lines if "all" in request.GET else front
    is_begun = bool(board.votes or part.kind)
    words = figures.words if figures and is_begun else ""
    # On which pairs people and judges disagree says what to look for on the next one.
    hides, runs_it = is_voting(request, run), can(request, "see calls", run)
    disputed = [] if hides or not figures else figures.disputed[:MOST_DISPUTED]
    context = findings_context(run, requested, "board") | {"citation": citation_of(request, run)}
    # What changes whenever the board does, its findings left aside.
    counts = (run.queue.project.head_seq, board.done, board.preparing, board.unusable)
    context |= {
        "board": board,
        "words": _unbroken(words),
        "more": [_unbroken(each) for each in figures.more] if words and figures else [],
        "has_floor": any(line.is_baseline for line in lines),
        "unanswerable": _unanswerable(requested),
        "is_computing": is_begun and not figures,
        "alarms": [] if part.kind else _alarms(board),
        "runs_it": runs_it,
        "left_out": selectors.left_out(run) if board.unusable else [],
        "judges": sum(not line.is_baseline for line in lines),
        "hidden": len(lines) - len(page_lines),
        "has_all": len(page_lines) > len(front),
        "is_voting": hides,
        "disputed": disputed_pairs(run, visible(request, run, disputed)),
        # The list of pairs is of no part that is made of votes.
        "pairs_query": pairs_query(DISPUTED, WHOLE if part.is_of_votes else part),
        "first_step": None if board.votes else _first_step(run, board, runs_it=runs_it),
        "seen": "-".join(map(str, (*counts, context["seen"]))),
        # What is read aloud when it changes.
        "spoken": (f"{part.in_words}: {words}" if words and part.kind else words)
        or f"{number_of(board.votes, 'vote')}.",
    }
    if figures or not part.kind:
        context |= _tables(request, run, part, figures, lines, page_lines)
        context["graph"] = None if part.kind else _graph(board, page_lines)
    if context["refused"]:
        context["table"] = replace(context["table"], notes=[context["refused"]])
    if figures and figures.as_of.votes:
        ids = [line.id for line in page_lines if line.found]
        both = (picture_of(figures, is_narrow=narrow, only=ids) for narrow in (False, True))
        context["pictures"] = [graph for graph in both if graph]
        context["groups"] = group_table(figures)
        context |= _matrices(run, figures, ids) | _confusion(figures, ids)
    return live_page(request, context, "board")


def _unbroken(words: str) -> str:
    """Keep odds and percentages on one line."""
    return words.replace(" : 1", f"{SPACE}:{SPACE}1").replace(" %", f"{SPACE}%")


def _order(request: HtmxRequest) -> str:
    order = request.GET.get("sort", AGREEMENT)
    if order not in SORTED_BY:
        raise Problem(400, f"sort: one of {', '.join(SORTED_BY)}, not {order[:80]!r}.")
    return order


def _requested(run: Run, part: str | None) -> Request:
    """Return the part that is asked for; where none is, what judges could be right about."""
    requested = request_findings(run, part or "")
    if part is None and requested.findings and requested.findings.unanswerable:
        return request_findings(run, DECIDED_PART)
    return requested


def _unanswerable(requested: Request) -> str:
    """Say how many votes are for what no judge could answer, where there are such."""
    data = requested.whole.data or {}
    if not (counts := data.get("unanswerable")):
        return ""
    choices = listed(short_name(choice) for choice in counts["choices"])
    of = f"{counts['votes']:,} of {number_of(data['as_of']['votes'], 'vote')}"
    return f"{of} say {choices}, which no judge here was offered: none could be right about them."


def _first_step(run: Run, board: BoardView, *, runs_it: bool) -> tuple[str, str, str]:
    """Say what there is to do before there are votes, what to press for it, and where it leads."""
    if run.state == Run.State.DRAFT:
        press = "See what it will do, and start it" if runs_it else ""
        draft = reverse("run-draft", args=[run.pk])
        return "This run is a draft: nothing was asked yet.", press, draft
    noun = run.queue.noun
    why = "As soon as people vote, this page says which judge to trust, and how sure that is."
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


def _alarms(board: BoardView) -> list[tuple[str, str]]:
    """Return judges that have never answered, by the reason, which is said once."""
    silent = {
        row.judge.pk: row.judge.name
        for row in board.rows
        if row.requested and not row.answered and not row.judge.is_baseline
    }
    if not silent:
        return []
    failed = Verdict.objects.filter(judge__in=silent, state=Verdict.State.FAILED)
    reasons: dict[str, list[str]] = {}
    for judge, why in failed.order_by().values_list("judge").annotate(why=Max("error")):
        reasons.setdefault(why, []).append(silent[judge])
    return [(listed(sorted(names)), why) for why, names in reasons.items()]


# --- which judges, in which order ---------------------------------------------------------------


def _lines(board: BoardView, ranked: Ranking, order: str, part: Slice) -> list[Line]:
    """Return a line for each judge, the best first and baselines last; of a part, those in it."""
    lines = [line for line in ranked.lines(board) if line.found or not part.kind]
    return sorted(lines, key=lambda line: (line.is_baseline, SORTED_BY[order](line)))


def _falling(value: float | None) -> float:
    return inf if value is None else -value


def _by(column: Column) -> Callable[[Line], float]:
    return lambda line: _falling(column.order(line.found) if line.found else None)


SORTED_BY: Final[Mapping[str, Callable[[Line], Any]]] = {
    **{column.figure: _by(column) for column in COLUMNS},
    AGREEMENT: lambda line: _falling(line.share),
    "elo": lambda line: _falling(line.elo.value),
    NAME: lambda line: line.row.judge.name.casefold(),
}


def _in_front(lines: Sequence[Line], figures: RunFindings | None) -> list[Line]:
    """Return all, or of very many the best, those not yet told from it, and the floor."""
    judges = [line for line in lines if not line.is_baseline]
    if len(judges) <= MOST_IN_FRONT:
        return list(lines)
    best, beaten = min(judges, key=SORTED_BY[AGREEMENT]), set()
    if figures and best.found:
        beats = figures.claims.beats[figures.judges.index(best.found)]
        beaten = {
            judge.id for judge, is_beaten in zip(figures.judges, beats, strict=True) if is_beaten
        }
    front = [line for line in judges if line.id not in beaten][:MOST_IN_FRONT]
    return [line for line in lines if line in front or line.is_baseline]


# --- the tables ---------------------------------------------------------------------------------


def _tables(
    request: HtmxRequest,
    run: Run,
    part: Slice,
    figures: RunFindings | None,
    lines: Sequence[Line],
    page_lines: Sequence[Line],
) -> Context:
    """Return the table of the board, and the one of further figures, of the same judges."""
    every, rows = ([_figures(line, figures) for line in some] for some in (lines, page_lines))
    is_voted = figures is not None and figures.as_of.votes > 0
    if figures and is_voted:
        every, rows = with_people(every, figures), with_people(rows, figures)
    unknown = unknown_columns(every) if figures else []
    main = MAIN if is_voted or any(line.row.total for line in lines) else BEFORE_VOTES
    by_order = figures is not None and figures.unordered is not None
    possible, further = (
        [
            c
            for c in telling_columns(group, unknown, kind_of(run.queue), by_order=by_order)
            if c.is_of_parts or not part.kind
        ]
        for group in (main, FURTHER)
    )
    with_figures = [
        c for c in possible if any(c.figure in r[2] and r[2][c.figure].has_figure for r in rows)
    ]
    name = f"Judges of {run.name}{f', {part.in_words}' if part.kind else ''}"
    # Before there are votes a table would be of dashes.
    table = _sortable(
        request, judge_table(name, possible if is_voted else with_figures, rows), NAME
    )
    words = _unknown_in_words(unknown_topics(unknown), lines, part)
    context = {"table": replace(table, id="ranking", unknown=words)}
    if is_voted:
        table = _sortable(request, judge_table(f"{name}: further figures", further, rows))
        context["further"] = replace(table, id="further-table")
    return context


def _unknown_in_words(topics: Sequence[str], lines: Sequence[Line], part: Slice) -> str:
    words = [OF_THE_WHOLE] if part.kind else []
    if topics:
        # Baselines aside, every judge has answered elsewhere.
        providers = {line.row.judge.provider for line in lines if not line.is_baseline}
        without = "Imported verdicts have" if providers == {Judge.IMPORTED} else "Judges have"
        words.append(f"{without} no {listed(topics, 'or')}.")
    return " ".join(words)


def _figures(line: Line, figures: RunFindings | None) -> Figures:
    if figures and line.found:
        cells = judge_cells(line.found, figures)
    else:
        absent = missing(LATER if figures else PENDING)
        free = line.is_baseline
        cells = {c.figure: Cell() if free and c.is_of_calls else absent for c in COLUMNS}
        if line.share is not None:
            cells["overall"] = Cell(percent(line.share), why=PENDING)
    tag = BASELINE if line.is_baseline else ""
    return line.row.judge.name, tag, cells | {"elo": elo_cell(line.elo)}


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


# --- judges against judges ----------------------------------------------------------------------


def _matrices(run: Run, figures: RunFindings, ids: Sequence[str]) -> Context:
    places = {judge.id: place for place, judge in enumerate(figures.judges)}
    order, names = [places[pk] for pk in ids], [judge.name for judge in figures.judges]
    if len(order) < 2:
        return {}
    alike = f"Same verdict: percent of the {run.queue.noun}s that both answered"
    tables = {
        "evidence": ("Evidence that the row beats the column", partial(_evidence, figures.claims)),
        "same_verdict": (alike, partial(_alike, figures.same_verdict)),
    }
    if figures.unordered is None:
        label = "Row better than column: corrected p"
        tables["mcnemar"] = (label, partial(_tested, figures.mcnemar))
    matrices = {key: matrix(label, names, order, cell) for key, (label, cell) in tables.items()}
    return {
        key: replace(table, css="matrix", id=f"table-{key}", caption=table.label)
        for key, table in matrices.items()
    }


def _evidence(claims: Claims, row: int, column: int) -> Cell:
    evidence = claims.evidence[row][column]
    if evidence is None:
        return Cell(DASH)
    low, high = claims.difference_low[row][column], claims.difference_high[row][column]
    points = "" if low is None or high is None else percent_span(low, high)
    return _marked(Cell(odds(evidence), points), claims.beats[row][column], "beats, evidence ")


def _marked(cell: Cell, beats: bool, spoken: str) -> Cell:
    return replace(cell, css="num beats", before=spoken) if beats else cell


def _alike(same_verdict: Matrix, row: int, column: int) -> Cell:
    same = same_verdict[row][column]
    alone = Cell(DASH, title="They never answered together.")
    return alone if same is None else Cell(percent(same))


def _tested(tests: McNemar, row: int, column: int) -> Cell:
    # Short, and without the names in the heads: there are hundreds of these.
    alone = f"{tests.ahead[row][column]:,}:{tests.ahead[column][row]:,}"
    p = p_text(tests.p[row][column] or 0.0)
    return _marked(Cell(p, alone), tests.beats[row][column], "better, p = ")


# --- judges set beside people -------------------------------------------------------------------


def _confusion(figures: RunFindings, ids: Sequence[str]) -> Context:
    """Set what each judge said beside what people said, in the order of the board."""
    confusion = figures.confusion
    if confusion is None:
        return {}
    names = {judge.id: judge.name for judge in figures.judges}
    by_judge = {
        of.judge: _confusion_table(names[of.judge], confusion.choices, of)
        for of in confusion.judges
    }
    return {"confusion": [(names[pk], by_judge[pk]) for pk in ids if pk in by_judge]}


def _confusion_table(name: str, choices: Sequence[str], of: ConfusionMatrix) -> Table:
    heads = [Head("People said", css=""), *map(Head, choices), Head("no verdict")]
    heads += [Head("Sensitivity", "%"), Head("Specificity", "%")]
    lines = []
    for choice, counts, rates in zip(choices, of.counts, of.labels, strict=True):
        cells = [
            Cell(f"{count:,}", css="num beats" if answer == choice else "num")
            for answer, count in zip([*choices, None], counts, strict=True)
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


def _graph(board: BoardView, lines: Sequence[Line]) -> RatingGraph | None:
    """Draw the ELO of the judges shown, who are in another order than those of the run."""
    lines = [line for line in lines if line.elo.value is not None]
    series = selectors.rating_series(board.run, board.votes)
    if board.votes and (not series or series[-1][0] < board.votes):
        series.append((board.votes, [row.elo for row in board.rows]))
    places = sorted(board.rows.index(line.row) for line in lines)
    curves = [(votes, [row[n] for n in places if n < len(row)]) for votes, row in series]
    baselines = {at for at, n in enumerate(places) if board.rows[n].judge.is_baseline}
    order = [places.index(board.rows.index(line.row)) for line in lines]
    return rating_graph([board.rows[n].judge.name for n in places], curves, baselines, order)
