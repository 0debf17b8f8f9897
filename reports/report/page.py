"""What stands on a report, section by section, wherever it is read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from humanjudge.charts.quality_graph import quality_graph
from humanjudge.charts.votes_graph import votes_graph
from humanjudge.http import Context
from humanjudge.lib.tables import DASH, Cell, Head, Row, Table, name_cell, percent, percent_span
from humanjudge.lib.text import fixed, listed, number_of
from judge_eval.findings.columns import MAIN, Value, elo_cell
from judge_eval.findings.generator_boards import boards_of, pass_rates_table
from judge_eval.findings.model import JudgeFindings
from judge_eval.findings.pictures import PICTURE, on_page, picture_of
from judge_eval.findings.ranking import elo_of
from judge_eval.findings.tables import (
    BASELINE,
    Figures,
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
from reports.report.charts import (
    Chart,
    Rows,
    chart_of_score,
    chart_of_votes,
    charts_of_run,
    score_points,
)
from reports.report.files import headline
from reports.report.model import (
    CompositeResults,
    ModelRate,
    QualityResults,
    Report,
    RunResults,
    Since,
)
from voting.kinds import kind_of
from voting.models import Inference

# The beginnings of outputs that divide people and judges, by their items' places.
Outputs: TypeAlias = Mapping[int, list[tuple[str, Inference, str]]]


class Section(NamedTuple):
    """A part of a report: its template, and what that shows as `of`."""

    template: str
    of: Context


def report_context(report: Report, *, is_frozen: bool, outputs: Outputs) -> Context:
    """Return what stands on a report; `outputs` are those that its link shows."""
    return {
        "report": report,
        "is_frozen": is_frozen,
        "since": _since(report.since),
        "headline": headline(report),
        "sections": [section for make in SECTIONS for section in make(report, outputs)],
        # Methods read as on a board, whose run says what is voted on.
        "method": {"queue": kind_of(report.runs[0])} if report.runs else None,
        "has_composite": any(run.composite for run in report.runs),
        "versions": ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        "seeds": [run.id for run in report.runs],
    }


def _since(since: Since) -> str:
    """Say what was taken out of the records behind a frozen report."""
    gone = []
    if since.people:
        gone.append("1 person was" if since.people == 1 else f"{since.people:,} people were")
    if since.runs:
        gone.append("1 run was" if since.runs == 1 else f"{since.runs:,} runs were")
    if not gone:
        return ""
    return f"Since then {listed(gone)} erased from the records; the figures stand as they were."


# --- the project ----------------------------------------------------------------------------------


def _scores(report: Report, outputs: Outputs) -> Iterator[Section]:
    for of in report.quality:
        yield Section("reports/shared_score.html", _score(of) | {"chart": chart_of_score(of)})


def _score(of: QualityResults) -> Context:
    points = score_points(of)
    return score_in_words(of.series, points[-1]) | {
        "decay": of.decay,
        "half_life": in_words(of.half_life_seconds),
        "graph": quality_graph(of.initial_score, points),
        "models": _models_table(of.models) if len(of.models) > 1 else None,
    }


def _models_table(models: list[ModelRate]) -> Table:
    heads = [Head("Model", css=""), Head("Outputs"), Head("Votes"), Head("Passed", "%")]
    rows = [
        Row(
            of.name,
            [
                name_cell(of.name),
                Cell(f"{of.outputs:,}"),
                Cell(f"{of.votes:,}"),
                _share_cell(of.passes, of.votes),
            ],
        )
        for of in models
    ]
    return Table("Pass rate of each model", heads, rows)


def _share_cell(passes: int, votes: int) -> Cell:
    low, high = wilson(passes, votes) or (0.0, 1.0)
    return Cell(percent(passes / votes), small=percent_span(low, high))


def _pace(report: Report, outputs: Outputs) -> Iterator[Section]:
    pace = report.pace
    if pace and (graph := votes_graph(pace.votes, pace.unit)):
        context = {"pace": pace, "graph": graph, "chart": chart_of_votes(pace)}
        yield Section("reports/shared_pace.html", context)


def _heard(report: Report, outputs: Outputs) -> Iterator[Section]:
    if (of := report.counted) is None:
        return
    shares = {
        "heard": percent(of.voters / of.population) if of.population else DASH,
        "complete": percent(of.done / of.items) if of.items else DASH,
        "of_voters": f"{of.voters:,} of {of.population:,} who may vote have",
        "of_items": f"{of.done:,} of {number_of(of.items, 'item')} have enough votes",
    }
    flags = ", ".join(f"{number:,} {category}" for category, number in of.flags.items())
    context = {"counted": of, "flags": flags or "none"} | shares
    yield Section("reports/shared_heard.html", context)


def _groups(report: Report, outputs: Outputs) -> Iterator[Section]:
    of = report.quality_of_groups
    tables = [
        quality_table(own, title)
        for series, (title, _) in TITLES.items()
        if (own := [each for each in of if each.series == series])
    ]
    if tables:
        yield Section("reports/shared_groups.html", {"tables": tables})


# --- its runs -------------------------------------------------------------------------------------


def _runs(report: Report, outputs: Outputs) -> Iterator[Section]:
    for number, run in enumerate(report.runs, start=1):
        prefix = "" if number == 1 else f"run-{number}-"
        context = _run(run, charts_of_run(run, prefix))
        context["disputed"] = [(item, outputs.get(item.position, [])) for item in run.disputed]
        yield Section("reports/shared_run.html", context | {"is_alone": report.counted is None})


def _run(of: RunResults, charts: list[Chart]) -> Context:
    findings, as_of = of.findings, of.findings.as_of
    people = "person" if as_of.people == 1 else "people"
    sizes = (picture_of(findings, is_narrow=is_narrow) for is_narrow in (False, True))
    drawn = {chart.key: chart for chart in charts}
    tests = [
        (test, [j for j in test.judges if not j.is_baseline], drawn.get(findings.rate_charts[task]))
        for task, test in findings.alt_tests.items()
    ]
    return {
        "run": of,
        "source": of.source.splitlines(),
        "as_of": f"{number_of(as_of.votes, 'vote')} by {as_of.people:,} {people} on "
        f"{as_of.voted:,} of {number_of(as_of.comparisons, of.noun)}",
        "pictures": list(filter(None, sizes)),
        "picture": drawn.get(PICTURE),
        "table": _judges(of) if as_of.votes else None,
        "groups": group_table(findings),
        "tests": [(test, judges, chart and _drawn(chart, of)) for test, judges, chart in tests],
        "models": _models(of, drawn),
        "composite": of.composite and _composite(of.composite),
    }


def _drawn(chart: Chart, of: RunResults) -> Context:
    """Return a chart as a page shows it, with its figures as a table."""
    return {"chart": chart, "svg": on_page(of.findings, chart.key), "table": table_of(chart)}


def table_of(chart: Chart) -> Table:
    """Return the figures of a chart for those who do not see it."""
    rows: Rows = chart.rows()
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


def _models(of: RunResults, drawn: Mapping[str, Chart]) -> Context | None:
    """Return how models stand: by how often they pass, or by the votes between them."""
    findings = of.findings
    if findings.pass_rates:
        chart = drawn.get("pass_rates")
        rates = replace(pass_rates_table(findings), id="")
        return {"rates": rates, "drawn": chart and _drawn(chart, of)}
    boards = boards_of(findings.models) if findings.models else None
    if boards is None or not boards["chosen"]:
        return None
    chart, ranks = drawn.get("model_ratings"), boards["ranks"]
    # A page may show several runs, each with its own key.
    ranks = ranks and replace(ranks, described_by=f"key-{of.id}")
    return {"words": boards["words"], "ranks": ranks, "drawn": chart and _drawn(chart, of)}


def _judges(of: RunResults) -> Table:
    """Return the table of the board, the best first."""
    findings = of.findings
    rows = with_people([_figures(of, judge) for judge in findings.best_first()], findings)
    unknown = unknown_columns(rows)
    by_order = findings.unordered is not None
    columns = telling_columns(MAIN, unknown, kind_of(of), by_order=by_order)
    table = judge_table(f"Judges of {of.name}", columns, rows)
    topics = unknown_topics(unknown)
    return replace(table, unknown=f"Judges have no {listed(topics, 'or')}." if topics else "")


def _figures(of: RunResults, judge: JudgeFindings) -> Figures:
    findings = of.findings
    elo = elo_of(of.elo.get(judge.id), findings.unrated.get(judge.id, ""), judge)
    cells = judge_cells(judge, findings) | {"elo": elo_cell(elo)}
    return judge.name, BASELINE if judge.is_baseline else "", cells


def _composite(of: CompositeResults) -> Context:
    failed = [f"{name} on {number_of(number, 'output')}" for name, number in of.failed.items()]
    lines = [f"Gates that failed, which makes a composite 0: {listed(failed)}."] if failed else []
    if of.without:
        lines.append(f"Without a composite: {number_of(of.without, 'output')}.")
    heads = [Head("Component", css=""), Head("Counts"), Head("Mean"), Head("Outputs")]
    rows = [
        Row(
            part.name,
            [
                name_cell(
                    part.name, small=" ".join(filter(None, [f"{part.source}.", part.reason]))
                ),
                Cell(part.counts),
                Cell(DASH if part.mean is None else f"{part.mean:.2f}"),
                Cell(f"{part.number:,}"),
            ],
        )
        for part in of.components
    ]
    return {
        "of": of,
        "mean": DASH if of.mean is None else f"{of.mean:.2f}",
        "outputs": number_of(of.outputs - of.without, "output"),
        "lines": lines,
        "table": Table(f"Components of {of.label}", heads, rows),
    }


# From top to bottom; each makes as many sections as it has something to say in.
SECTIONS: Final[tuple[Callable[[Report, Outputs], Iterator[Section]], ...]] = (
    _scores,
    _pace,
    _heard,
    _groups,
    _runs,
)
