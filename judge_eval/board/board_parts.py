"""What the board shows of its lines: tables of judges, judges against judges, and the graphs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypedDict

from humanjudge.core.charts.graphs import LineGraph, rating_graph
from humanjudge.core.charts.plot import Plot
from humanjudge.core.tables import (
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
)
from humanjudge.core.text import listed, odds
from judge_eval.board.columns import (
    COLUMNS,
    FURTHER_COLUMNS,
    MAIN_COLUMNS,
    PENDING,
    elo_cell,
    share_cell,
)
from judge_eval.board.filters import Slice
from judge_eval.board.model import Claims, ConfusionMatrix, Matrix, RunFindings
from judge_eval.board.pictures import course_graph, lead_in_words, plot_of
from judge_eval.board.ranking import BoardLine
from judge_eval.board.tables import (
    RowFigures,
    group_table,
    judge_cells,
    judge_table,
    telling_columns,
    unknown_columns,
    unknown_topics,
    with_people,
)
from judge_eval.models import Judge, Run
from judge_eval.runs import queries
from judge_eval.runs.queries import BoardView
from judge_eval.stats.estimate import SIGNIFICANCE, McNemar
from voting.items.kinds import kind_of

LATER: Final = "The judge joined after these figures were computed; they follow within seconds."
OF_THE_WHOLE: Final = "ELO, prices and times are those of the whole run."
NO_SUCH_VOTE: Final = "There is no such vote on what it has a verdict on."
BEFORE_VOTES: Final = tuple(
    next(column for column in COLUMNS if column.figure == figure)
    for figure in ("coverage", "consistency", "first", "cost", "seconds")
)


class JudgeTables(NamedTuple):
    main: Table
    further_figures: Table | None


def judge_tables(
    run: Run,
    part: Slice,
    figures: RunFindings | None,
    lines: Sequence[BoardLine],
    page_lines: Sequence[BoardLine],
    workshop: str = "",
) -> JudgeTables:
    """Return tables of the judges of a page; their columns are those that tell of some judge.

    The names of judges that are asked lead to the address of the `workshop`, if there is one.
    """
    all_rows, page_rows = (
        [_figures(line, figures, workshop) for line in table_lines]
        for table_lines in (lines, page_lines)
    )
    is_voted = figures is not None and figures.as_of.votes > 0
    if figures and is_voted:
        all_rows, page_rows = with_people(all_rows, figures), with_people(page_rows, figures)
    unknown = unknown_columns(all_rows) if figures else []
    main = MAIN_COLUMNS if is_voted or any(line.row.total for line in lines) else BEFORE_VOTES
    by_order = figures is not None and figures.unordered is not None
    possible, further_columns = (
        [
            c
            for c in telling_columns(group, unknown, kind_of(run.queue), by_order=by_order)
            if c.is_of_parts or not part.kind
        ]
        for group in (main, FURTHER_COLUMNS)
    )
    with_figures = [
        c
        for c in possible
        if any(c.figure in r.cells and r.cells[c.figure].has_figure for r in page_rows)
    ]
    name = f"Judges of {run.name}{f', {part.in_words}' if part.kind else ''}"
    # Before there are votes a table would be of dashes.
    table = judge_table(name, possible if is_voted else with_figures, page_rows)
    words = _unknown_in_words(unknown_topics(unknown), lines, part)
    main_table = replace(table, id="ranking", unknown=words)
    if not is_voted:
        return JudgeTables(main_table, None)
    table = judge_table(f"{name}: further figures", further_columns, page_rows)
    return JudgeTables(main_table, replace(table, id="further-table"))


def _unknown_in_words(topics: Sequence[str], lines: Sequence[BoardLine], part: Slice) -> str:
    words = [OF_THE_WHOLE] if part.kind else []
    if topics:
        # Baselines aside, every judge has answered elsewhere.
        providers = {line.row.judge.provider for line in lines if not line.is_baseline}
        without = "Imported verdicts have" if providers == {Judge.IMPORTED} else "Judges have"
        words.append(f"{without} no {listed(topics, 'or')}.")
    return " ".join(words)


def _figures(line: BoardLine, figures: RunFindings | None, workshop: str) -> RowFigures:
    if figures and line.findings:
        cells = judge_cells(line.findings, figures)
    else:
        absent = missing(LATER if figures else PENDING)
        free = line.is_baseline
        cells = {c.figure: Cell() if free and c.is_of_calls else absent for c in COLUMNS}
        if line.share is not None:
            cells["overall"] = Cell(percent(line.share), reason=PENDING)
    judge = line.row.judge
    cells |= {"elo": elo_cell(line.elo)}
    href = f"{workshop}?judge={judge.pk}" if workshop and judge.is_asked else ""
    return RowFigures(judge.name, judge.tag, cells, judge.description, href)


# --- judges against judges ----------------------------------------------------------------------


class Comparisons(TypedDict, total=False):
    """Judges set against each other and against people, for the template; some runs lack some."""

    plot: Plot | None
    # The leading judges as votes came in, and from when on the first was in front.
    course: LineGraph | None
    lead: str
    groups: Table | None
    evidence: Table
    same_verdict: Table
    mcnemar: Table
    # The name of each judge, and the table of its answers.
    confusion: list[tuple[str, Table]]


def comparisons(run: Run, figures: RunFindings, page_lines: Sequence[BoardLine]) -> Comparisons:
    ids = [line.id for line in page_lines if line.findings]
    return {
        "plot": plot_of(figures, ids),
        "course": course_graph(figures),
        "lead": lead_in_words(figures),
        "groups": group_table(figures),
        **_matrices(run, figures, ids),
        **_confusion(figures, ids),
    }


def _matrices(run: Run, figures: RunFindings, ids: Sequence[str]) -> Comparisons:
    places = {judge.id: place for place, judge in enumerate(figures.judges)}
    order, names = [places[pk] for pk in ids], [judge.name for judge in figures.judges]
    if len(order) < 2:
        return {}

    def table(key: str, label: str, cell: Callable[[int, int], Cell]) -> Table:
        drawn = matrix(label, names, order, cell)
        return replace(drawn, css="matrix", id=f"table-{key}", caption=label)

    alike = f"Same verdict: percent of the {run.queue.noun}s that both answered"
    floor = {n for n, judge in enumerate(figures.judges) if judge.is_baseline}
    evidence = partial(_evidence_cell, figures.claims, floor)
    tables: Comparisons = {
        "evidence": table("evidence", "Evidence that the row beats the column", evidence),
        "same_verdict": table("same_verdict", alike, partial(_alike, figures.same_verdict)),
    }
    if figures.unordered is None:
        label = "Row better than column: corrected p"
        tables["mcnemar"] = table("mcnemar", label, partial(_p_value_cell, figures.mcnemar))
    return tables


def _evidence_cell(claims: Claims, floor: Collection[int], row: int, column: int) -> Cell:
    evidence = claims.evidence[row][column]
    is_held = claims.floor[row][column] or claims.floor[column][row]
    if evidence is None or (not is_held and (row in floor) != (column in floor)):
        # Who was asked in other orders is no baseline of a judge.
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


def _p_value_cell(tests: McNemar, row: int, column: int) -> Cell:
    # Short, and without the names in the heads: there are hundreds of these.
    alone = f"{tests.ahead[row][column]:,}:{tests.ahead[column][row]:,}"
    p = p_text(tests.p[row][column] or 0.0)
    return _marked(Cell(p, alone), tests.beats[row][column], "better, p = ")


# --- judges set beside people -------------------------------------------------------------------


def _confusion(figures: RunFindings, ids: Sequence[str]) -> Comparisons:
    confusion = figures.confusion
    if confusion is None:
        return {}
    names = {judge.id: judge.name for judge in figures.judges}
    by_judge = {
        judge_matrix.judge: _confusion_table(
            names[judge_matrix.judge], confusion.choices, judge_matrix
        )
        for judge_matrix in confusion.judges
    }
    return {"confusion": [(names[pk], by_judge[pk]) for pk in ids if pk in by_judge]}


def _confusion_table(name: str, choices: Sequence[str], judge_matrix: ConfusionMatrix) -> Table:
    heads = [Head("People said", css=""), *map(Head, choices), Head("no verdict")]
    heads += [Head("Sensitivity", "%"), Head("Specificity", "%")]
    lines = []
    for choice, counts, rates in zip(
        choices, judge_matrix.counts, judge_matrix.labels, strict=True
    ):
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


# --- the curve --------------------------------------------------------------------------------


def elo_graph(board: BoardView, lines: Sequence[BoardLine]) -> LineGraph | None:
    """Draw the ELO of the judges shown, who are in another order than those of the run."""
    lines = [line for line in lines if line.elo.value is not None]
    if not lines:
        return None
    series = queries.rating_series(board.run, board.votes)
    if board.votes and (not series or series[-1][0] < board.votes):
        series.append((board.votes, [row.elo for row in board.rows]))
    places = sorted(board.rows.index(line.row) for line in lines)
    curves = [(votes, [row[n] for n in places if n < len(row)]) for votes, row in series]
    baselines = {index for index, n in enumerate(places) if board.rows[n].judge.is_baseline}
    order = [places.index(board.rows.index(line.row)) for line in lines]
    return rating_graph([board.rows[n].judge.name for n in places], curves, baselines, order)
