"""What stands on a report, section by section, wherever it is read."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from humanjudge.core.charts.time_graph import votes_graph
from humanjudge.core.http import Context
from humanjudge.core.listing import Column, Listing
from humanjudge.core.tables import DASH, Cell, Head, Row, Table, name_cell, percent, percent_span
from humanjudge.core.text import fixed, listed, number_of
from judge_eval.board.columns import MAIN_COLUMNS, Value, elo_cell
from judge_eval.board.corrected_table import corrected_rates
from judge_eval.board.generator_boards import boards_of, pass_rates_table
from judge_eval.board.model import JudgeFindings
from judge_eval.board.pictures import MODEL_RATES, MODEL_RATINGS, PICTURE, on_page, plot_of
from judge_eval.board.ranking import elo_of
from judge_eval.board.tables import (
    BASELINE,
    TUNED,
    RowFigures,
    group_table,
    judge_cells,
    judge_table,
    telling_columns,
    unknown_columns,
    unknown_topics,
    with_people,
)
from judge_eval.stats.estimate import wilson
from reports.quality.groups import quality_table
from reports.quality.views import TITLES, in_words, score_in_words
from reports.report.files import (
    ReportChart,
    chart_of_score,
    chart_of_votes,
    charts_of_run,
    headline,
)
from reports.report.model import (
    Component,
    CompositeResults,
    ModelRate,
    QualityResults,
    Removals,
    Report,
    RunResults,
)
from reports.report.not_covered import NOT_COVERED, UNCOVERED_FIGURES
from voting.items.kinds import kind_of
from voting.models import Inference

# The beginnings of outputs that divide people and judges, by their items' places.
Outputs: TypeAlias = Mapping[int, list[tuple[str, Inference, str]]]


def report_context(
    report: Report, *, is_frozen: bool, outputs: Outputs, is_waiting: bool = False
) -> Context:
    """Return what stands on a report; `outputs` are those that its link shows.

    `is_waiting` says that it stays as it is while judges are tuned.
    """
    return {
        "report": report,
        "is_frozen": is_frozen,
        "is_waiting": is_waiting,
        "since": _since(report.since),
        "headline": headline(report),
        "sections": list(_sections(report, outputs)),
        # Methods read as on a board, whose run says what is voted on.
        "method": {"queue": kind_of(report.runs[0])} if report.runs else None,
        "uncovered": NOT_COVERED,
        "not_covered": UNCOVERED_FIGURES,
        "has_composite": any(run.composite for run in report.runs),
    }


def _since(since: Removals) -> str:
    gone = []
    if since.people:
        gone.append("1 person was" if since.people == 1 else f"{since.people:,} people were")
    if since.runs:
        gone.append("1 run was" if since.runs == 1 else f"{since.runs:,} runs were")
    if not gone:
        return ""
    return f"Since then {listed(gone)} erased from the records; the figures stand as they were."


def _sections(report: Report, outputs: Outputs) -> Iterator[tuple[str, Context]]:
    # Each with its template.
    for quality in report.quality:
        yield ("reports/report/shared_score.html", _score(quality))
    if (pace := report.pace) and (graph := votes_graph(pace.votes, pace.unit)):
        context = {"pace": pace, "graph": graph, "chart": chart_of_votes(pace)}
        yield ("reports/report/shared_pace.html", context)
    if counted := report.counted:
        turnout = {
            "counted": counted,
            "heard": percent(counted.voters / counted.population) if counted.population else DASH,
            "complete": percent(counted.done / counted.items) if counted.items else DASH,
        }
        yield ("reports/report/shared_heard.html", turnout)
    tables = [
        quality_table(groups, title)
        for series, (title, _) in TITLES.items()
        if (groups := [group for group in report.quality_of_groups if group.series == series])
    ]
    if tables:
        yield ("reports/report/shared_groups.html", {"tables": tables})
    for number, run in enumerate(report.runs, start=1):
        about = {
            "disputed": [(item, outputs.get(item.position, [])) for item in run.disputed],
            "is_alone": report.counted is None,
        }
        yield ("reports/report/shared_run.html", _run(run, charts_of_run(run, number)) | about)


# --- the project ----------------------------------------------------------------------------------

MODELS: Final = Listing[ModelRate](
    "Pass rate of each model",
    [
        Column("Model", lambda row: name_cell(row.name)),
        Column("Outputs", lambda row: f"{row.outputs:,}", css="num"),
        Column("Votes", lambda row: f"{row.votes:,}", css="num"),
        Column("Passed, %", lambda row: _share_cell(row.passes, row.votes), css="num"),
    ],
)


def _share_cell(passes: int, votes: int) -> Cell:
    low, high = wilson(passes, votes) or (0.0, 1.0)
    return Cell(percent(passes / votes), small=percent_span(low, high))


def _score(quality: QualityResults) -> Context:
    half_life, graph = quality.half_life_seconds, quality.graph()
    return score_in_words(quality.series, quality.last, quality.begins, half_life, graph) | {
        "decay": quality.decay,
        "half_life": in_words(half_life),
        "models": MODELS.table(quality.models) if len(quality.models) > 1 else None,
        "chart": chart_of_score(quality),
    }


# --- its runs -------------------------------------------------------------------------------------

COMPONENTS: Final = Listing[Component](
    "Components",
    [
        Column(
            "Component",
            lambda row: name_cell(row.name, small=f"{row.source}. {row.reason}".strip()),
        ),
        Column("Counts", lambda row: row.counts, css="num"),
        Column("Mean", lambda row: _mean(row.mean), css="num"),
        Column("Outputs", lambda row: f"{row.number:,}", css="num"),
    ],
)


def _mean(mean: float | None) -> str:
    return DASH if mean is None else f"{mean:.2f}"


def _composite(composite: CompositeResults) -> Context:
    failed = [f"{name} on {number_of(n, 'output')}" for name, n in composite.failed.items()]
    return {
        "of": composite,
        "mean": _mean(composite.mean),
        "outputs": number_of(composite.outputs - composite.without, "output"),
        "failed": listed(failed),
        "table": replace(
            COMPONENTS.table(composite.components), label=f"Components of {composite.label}"
        ),
    }


def _run(run: RunResults, charts: list[ReportChart]) -> Context:
    findings = run.findings
    drawn = {chart.key: chart for chart in charts}
    tests = [
        (test, [j for j in test.judges if not j.is_baseline], drawn.get(findings.rate_charts[task]))
        for task, test in findings.alt_tests.items()
    ]
    return {
        "run": run,
        "plot": plot_of(findings),
        "picture": drawn.get(PICTURE),
        "table": _judges(run) if findings.as_of.votes else None,
        "groups": group_table(findings),
        "tests": [
            (test, judges, chart and _chart_context(chart, run)) for test, judges, chart in tests
        ],
        "models": _models(run, drawn),
        "corrected": corrected_rates(findings),
        "composite": run.composite and _composite(run.composite),
    }


def _chart_context(chart: ReportChart, run: RunResults) -> Context:
    return {"chart": chart, "svg": on_page(run.findings, chart.key), "table": table_of(chart)}


def table_of(chart: ReportChart) -> Table:
    """Return the figures of a chart for those who do not see it."""
    rows = chart.rows()
    names = list(rows[0]) if rows else []
    heads = [Head(names[0].capitalize(), css=""), *(Head(name) for name in names[1:])]
    table_rows = []
    for row in rows:
        name, *figures = row.values()
        cells = [name_cell(str(name)), *(Cell(_figure(figure)) for figure in figures)]
        table_rows.append(Row(str(name), cells))
    return Table(chart.title, heads, table_rows)


def _figure(figure: Value) -> str:
    """Write a share to three digits, and a number that is larger as a whole one.

    Examples
    --------
    >>> [_figure(each) for each in (0.5, 1034.2, 12, -1e-9)]
    ['0.500', '1,034', '12', '0.000']
    """
    if figure is None:
        return DASH
    if isinstance(figure, str):
        return figure
    is_share = not isinstance(figure, int) and abs(figure) <= 1
    return fixed(figure, 3) if is_share else f"{figure:,.0f}"


def _models(run: RunResults, drawn: Mapping[str, ReportChart]) -> Context | None:
    findings = run.findings
    if findings.pass_rates:
        chart = drawn.get(MODEL_RATES)
        rates = replace(pass_rates_table(findings), id="")
        return {"rates": rates, "drawn": chart and _chart_context(chart, run)}
    boards = boards_of(findings.models) if findings.models else None
    if boards is None or not boards["chosen"]:
        return None
    chart, ranks = drawn.get(MODEL_RATINGS), boards["ranks"]
    # A page may show several runs, each with its own key.
    ranks = ranks and replace(ranks, described_by=f"key-{run.id}")
    return {"words": boards["words"], "ranks": ranks, "drawn": chart and _chart_context(chart, run)}


def _judges(run: RunResults) -> Table:
    findings = run.findings
    rows = with_people([_figures(run, judge) for judge in findings.best_first()], findings)
    unknown = unknown_columns(rows)
    by_order = findings.unordered is not None
    columns = telling_columns(MAIN_COLUMNS, unknown, kind_of(run), by_order=by_order)
    table = judge_table(f"Judges of {run.name}", columns, rows)
    topics = unknown_topics(unknown)
    return replace(table, unknown=f"Judges have no {listed(topics, 'or')}." if topics else "")


def _figures(run: RunResults, judge: JudgeFindings) -> RowFigures:
    findings = run.findings
    elo = elo_of(run.elo.get(judge.id), findings.unrated.get(judge.id, ""), judge)
    cells = judge_cells(judge, findings) | {"elo": elo_cell(elo)}
    tag = BASELINE if judge.is_baseline else TUNED if judge.is_tuned else ""
    return RowFigures(judge.name, tag, cells, judge.description)
