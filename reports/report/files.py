"""The files of a report: data, tables, charts, a preview card and a badge."""

import re
from collections.abc import Callable
from datetime import datetime
from textwrap import wrap
from typing import Final

from django.template.loader import render_to_string
from django.utils import timezone

from humanjudge.lib.tables import as_csv, percent, percent_span
from humanjudge.lib.text import number_of
from judge_eval.findings.columns import file_rows
from judge_eval.findings.model import RunFindings
from judge_eval.findings.pictures import PICTURE
from judge_eval.stats.estimate import wilson
from reports.report.charts import Rows, charts_of
from reports.report.model import Report

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


# --- card -----------------------------------------------------------------------------------------


def card_svg(report: Report) -> str:
    """Return the preview that a link shows elsewhere: title, first words and picture."""
    charts = charts_of(report)
    # What the words are about, where they are about judges.
    charts.sort(key=lambda chart: chart.key != PICTURE)
    lines = _lines(headline(report))
    width, height = CARD_SIZE
    context = {
        "report": report,
        "width": width,
        "height": height,
        "lines": [(150 + 44 * place, line) for place, line in enumerate(lines)],
        "foot": f"{number_of(report.votes, 'vote')} · {report.made_at:%-d %b %Y} · HumanJudge",
        # As large as there is room, and not as in a file of its own.
        "chart": _SIZE.sub("", charts[0].svg(), count=1) if charts else "",
        "chart_top": 170 + 44 * len(lines),
        "chart_height": 400 - 44 * len(lines),
    }
    return render_to_string("reports/card.svg", context)


def _lines(words: str) -> list[str]:
    """Return as many whole sentences as a card has room for, or else the beginning of the first."""
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
    for of in report.quality:
        votes = number_of(of.last.votes, "vote")
        words.append(f"The quality score of {of.series} is {percent(of.last.score)} of {votes}.")
    return words[0] if words else "Nobody has voted yet."


# --- badge ----------------------------------------------------------------------------------------


def badge_svg(report: Report) -> str:
    """Return the score, or the best judge, with its interval, the votes and how old they are."""
    name, value = _figure(report)
    left = round(LETTER * len(name)) + 14
    right = round(LETTER * len(value)) + 14
    context = {"name": name, "value": value, "left": left, "right": right, "width": left + right}
    return render_to_string("reports/badge.svg", context)


def _figure(report: Report) -> tuple[str, str]:
    if report.quality:
        last = report.quality[0].last
        of = _votes(last.votes, last.at)
        low, high = wilson(last.passes, last.votes) or (0.0, 0.0)
        rate = f"{percent(last.passes / last.votes)} pass ({percent_span(low, high)})"
        return "quality", f"{percent(last.score)} · {rate} · {of}"
    best = _best(report.runs[0].findings) if report.runs else ""
    return "judges", f"{best or 'no votes yet'} · {_votes(report.votes, report.last_vote_at)}"


def _votes(number: int, last: datetime | None) -> str:
    """Say how many votes there are and how old the last is, in days: badges are kept."""
    votes = number_of(number, "vote")
    if last is None:
        return votes
    days = (timezone.now().date() - last.date()).days
    ago = f"{number_of(days, 'day')} ago" if days > 0 else "today"
    return f"{votes}, the last {ago}"


def _best(findings: RunFindings) -> str:
    """Name the best judge, or else the one that agrees most."""
    judges = [judge for judge in findings.best_first() if not judge.is_baseline]
    if not judges or judges[0].overall.value is None:
        return ""
    first, share = judges[0], judges[0].overall
    figure = percent(share.value or 0.0)
    if share.low is not None and share.high is not None:
        figure += f" ({percent_span(share.low, share.high)})"
    if len(judges) == 1:
        return f"{first.name} {figure}"
    verb = "best" if findings.claims.best is not None else "agrees most, not settled"
    return f"{first.name} {figure} {verb}"


FILES: Final[dict[str, Callable[[Report], str]]] = {
    "report.json": Report.as_json,
    "judges.csv": judges_csv,
    "card.svg": card_svg,
    "badge.svg": badge_svg,
}
