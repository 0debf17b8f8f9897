"""The files of a report: data, tables, charts, a preview card and a badge."""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from textwrap import wrap
from typing import Final

from django.template.loader import render_to_string
from django.utils import timezone

from humanjudge.core.charts.time_graph import votes_graph
from humanjudge.core.tables import as_csv, percent, percent_span
from humanjudge.core.text import number_of
from judge_eval.board.columns import Value, file_rows
from judge_eval.board.model import WINNER, RunFindings
from judge_eval.board.pictures import MODEL_RATES, MODEL_RATINGS, PICTURE, draw, graph_of
from judge_eval.stats.estimate import Estimate, wilson
from reports.models import Quality
from reports.quality.views import TITLES, pass_rate_in_words
from reports.report.model import QualityResults, Report, RunResults, VotesOverTime

Rows = list[dict[str, Value]]
# What a drawing takes from the page that it stands in, and its own colour for where it is alone.
_VARIABLE: Final = re.compile(r"var\(--[\w-]+, ([^()]+)\)")
CARD_SIZE: Final = (1200, 630)
# Of the letters of a card, so many stand in a line.
CARD_LETTERS: Final = 64
CARD_LINES: Final = 4
_SIZE: Final = re.compile(r' width="[\d.]+"\s+height="[\d.]+"')
# Of a badge: about so wide is a letter, in units of its drawing.
LETTER: Final = 6.4
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
    "png": "image/png",
}
# Shown in the browser, and not saved.
IN_PLACE: Final = ("card.png", "badge.svg")


def text_of(report: Report, name: str) -> str | None:
    """Return a file of a report, of a PNG the drawing that it is rendered from.

    None where the report has no file of that name.
    """
    base, _, suffix = name.rpartition(".")
    make = FILES.get(f"{base}.svg" if suffix == "png" else name)
    if make is not None:
        return make(report)
    chart = next((chart for chart in charts_of(report) if chart.name == base), None)
    if chart is None or suffix not in ("svg", "png", "csv"):
        return None
    return csv_of(chart.rows()) if suffix == "csv" else chart.svg()


def csv_of(rows: Rows) -> str:
    return as_csv(list(rows[0]) if rows else [], (list(row.values()) for row in rows))


def judges_csv(report: Report) -> str:
    of_runs = ((run, file_rows(run.findings, run.elo)) for run in report.runs)
    return csv_of([{"run": run.name, **row} for run, rows in of_runs for row in rows])


# --- charts ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReportChart:
    """A chart by the name of its files; `key` is what its run's findings call it."""

    name: str
    title: str
    draw: Callable[[], str]
    rows: Callable[[], Rows]
    key: str = ""

    def svg(self) -> str:
        """Return a drawing that needs no page around it, in the colours of a light one."""
        return _VARIABLE.sub(r"\1", self.draw())


def charts_of(report: Report) -> list[ReportChart]:
    """Return what there are figures for, in the order of the report."""
    charts = [chart_of_score(quality) for quality in report.quality]
    charts += [chart_of_votes(report.pace)] if report.pace and report.pace.votes else []
    for number, run in enumerate(report.runs, start=1):
        charts += charts_of_run(run, number)
    return charts


def chart_of_score(quality: QualityResults) -> ReportChart:
    title = f"{TITLES[Quality.Series(quality.series)][0]}: score over time"
    rows: Rows = [asdict(point) | {"at": point.at.isoformat()} for point in quality.points]
    key, template = f"score-{quality.series}", "reports/quality/_quality_svg.html"
    return _over_time(key, title, template, quality.graph, rows)


def chart_of_votes(pace: VotesOverTime) -> ReportChart:
    graph = partial(votes_graph, pace.votes, pace.unit)
    rows: Rows = [{pace.unit: start.isoformat(), "votes": votes} for start, votes in pace.votes]
    return _over_time(
        "votes", f"Votes per {pace.unit}", "judge_eval/board/_votes_svg.html", graph, rows
    )


def _over_time(
    name: str, title: str, template: str, graph: Callable[[], object], rows: Rows
) -> ReportChart:
    def draw() -> str:
        return render_to_string(template, {"graph": graph(), "title": title})

    return ReportChart(name, title, draw, lambda: rows)


def charts_of_run(run: RunResults, number: int) -> list[ReportChart]:
    """Return the charts of a run; those of further runs of a project have a prefix."""
    figures, prefix = run.findings, "" if number == 1 else f"run-{number}-"
    charts: dict[str, tuple[str, Callable[[], Rows]]] = {
        PICTURE: ("Overall agreement with people", partial(file_rows, figures, run.elo))
    }
    for task, key in figures.rate_charts.items():
        title = "Winning rates" if task == WINNER else f"Winning rates: {task}"
        charts[key] = (title, partial(_winning_rates, figures, task))
    charts[MODEL_RATINGS] = ("Ratings of the models by people", partial(_ratings, figures))
    charts[MODEL_RATES] = ("Pass rate of each model by people", partial(_pass_rates, figures))
    drawn = []
    for key, (title, rows) in charts.items():
        if graph := graph_of(figures, key):
            name = "picture" if key == PICTURE else key.replace("_", "-")
            drawing = partial(draw, graph, is_file=True)
            drawn.append(ReportChart(f"{prefix}{name}", title, drawing, rows, key))
    return drawn


def _winning_rates(figures: RunFindings, task: str) -> Rows:
    judges = figures.alt_tests[task].judges
    return [{"judge": judge.name, **judge.winning_rates} for judge in judges if judge.winning_rates]


def _ratings(figures: RunFindings) -> Rows:
    assert figures.models is not None  # they are drawn
    rated = zip(figures.models.names, figures.models.boards[0].ratings, strict=True)
    return [
        {"model": name, "rank": row.rank, "rating": row.value, **_ends(row), "pairs": row.n}
        for name, row in rated
    ]


def _pass_rates(figures: RunFindings) -> Rows:
    return [
        {
            "model": row.name,
            "outputs": row.outputs,
            "pass rate": row.people.value,
            **_ends(row.people),
            "votes": row.people.n,
        }
        for row in figures.pass_rates or ()
    ]


def _ends(estimate: Estimate) -> dict[str, Value]:
    return {"low": estimate.low, "high": estimate.high}


# --- card -----------------------------------------------------------------------------------------


def card_svg(report: Report) -> str:
    """Return the preview that a link shows elsewhere: title, first words and picture."""
    charts = charts_of(report)
    # What the words are about, where they are about judges.
    charts.sort(key=lambda chart: chart.key != PICTURE)
    lines = _lines(headline(report))
    question = report.runs[0].question if len(report.runs) == 1 else ""
    top = 150 + 44 * bool(question)
    width, height = CARD_SIZE
    context = {
        "report": report,
        "width": width,
        "height": height,
        "question": question,
        "lines": [(top + 44 * place, line) for place, line in enumerate(lines)],
        # As large as there is room, and not as in a file of its own.
        "chart": _SIZE.sub("", charts[0].svg(), count=1) if charts else "",
        "chart_top": top + 20 + 44 * len(lines),
        "chart_height": 550 - top - 44 * len(lines),
    }
    return render_to_string("reports/report/card.svg", context)


def _lines(words: str) -> list[str]:
    sentences = words.removesuffix(".").split(". ")
    fitting: list[str] = []
    for number in range(1, len(sentences) + 1):
        lines = wrap(f"{'. '.join(sentences[:number])}.", CARD_LETTERS)
        if len(lines) > CARD_LINES:
            return fitting or [*lines[: CARD_LINES - 1], f"{lines[CARD_LINES - 1][:-1]}…"]
        fitting = lines
    return fitting


def headline(report: Report) -> str:
    """Return what a reader must know, in words."""
    words = [run.findings.words for run in report.runs if run.findings.words]
    for quality in report.quality:
        last = quality.last
        score = f"; their quality score is {percent(last.score)}" if quality.has_score else ""
        words.append(f"{pass_rate_in_words(last, f' on {quality.series}')}{score}.")
    return words[0] if words else "Nobody has voted yet."


# --- badge ----------------------------------------------------------------------------------------


def badge_svg(report: Report) -> str:
    """Return the score, or the best judge, with its interval, the votes and how old they are."""
    name, value = _figure(report)
    left = round(LETTER * len(name)) + 14
    right = round(LETTER * len(value)) + 14
    context = {"name": name, "value": value, "left": left, "right": right, "width": left + right}
    return render_to_string("reports/report/badge.svg", context)


def _figure(report: Report) -> tuple[str, str]:
    if report.quality:
        has_score, last = report.quality[0].has_score, report.quality[0].last
        votes = _votes(last.votes, last.at)
        low, high = wilson(last.passes, last.votes) or (0.0, 0.0)
        rate = f"{percent(last.passes / last.votes)} pass ({percent_span(low, high)})"
        score = f"{percent(last.score)} · " if has_score else ""
        return "quality", f"{score}{rate} · {votes}"
    best = _best(report.runs[0].findings) if report.runs else ""
    return "judges", f"{best or 'no votes yet'} · {_votes(report.votes, report.last_vote_at)}"


def _votes(number: int, last: datetime | None) -> str:
    votes = number_of(number, "vote")
    if last is None:
        return votes
    days = (timezone.now().date() - last.date()).days
    ago = f"{number_of(days, 'day')} ago" if days > 0 else "today"
    return f"{votes}, the last {ago}"


def _best(findings: RunFindings) -> str:
    judges = [judge for judge in findings.best_first() if not judge.is_baseline]
    if not judges or judges[0].overall.value is None:
        return ""
    share, words = judges[0].overall, [judges[0].name, percent(judges[0].overall.value or 0.0)]
    if share.interval:
        words.append(f"({percent_span(*share.interval)})")
    if len(judges) > 1:
        best = findings.claims.best
        words.append("best" if best is not None else "agrees most, not settled")
        if best is not None and any(findings.claims.by_one[best]):
            words.append("by one voter's votes alone")
    return " ".join(words)


FILES: Final[dict[str, Callable[[Report], str]]] = {
    "report.json": Report.as_json,
    "judges.csv": judges_csv,
    "card.svg": card_svg,
    "badge.svg": badge_svg,
}
