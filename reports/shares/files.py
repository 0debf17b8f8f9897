"""What a report is given away as: data, a table, its picture, a preview card and a badge."""

import re
from collections.abc import Callable
from textwrap import wrap
from typing import Final

from django.template.loader import render_to_string

from humanjudge.lib.tables import as_csv, percent, span
from humanjudge.lib.text import number_of
from judge_eval.findings.columns import file_row, people_file_row
from judge_eval.findings.model import RunFindings
from judge_eval.pages.findings import picture_of
from judge_eval.stats.estimate import best_first, wilson
from reports.shares.report import Report
from voting.pictures.rendering import render

CARD_SIZE: Final = (1200, 630)
# Of the letters of a card, so many stand in a line.
CARD_LETTERS: Final = 64
CARD_LINES: Final = 4
# Of a badge: about so wide is a letter, in units of its drawing.
LETTER: Final = 6.4
_VARIABLE = re.compile(r"var\(--[\w-]+, ([^()]+)\)")


def report_json(report: Report) -> str:
    return report.model_dump_json(indent=1)


def judges_csv(report: Report) -> str:
    rows = []
    for run in report.runs:
        found = run.findings
        order = best_first([judge.overall.value for judge in found.judges])
        judges = [found.judges[place] for place in order]
        lines = [file_row(judge, run.elo.get(judge.id)) for judge in judges]
        lines.append(people_file_row(found.among_people.pairs, found.people_first_position))
        rows += [{"run": run.name, **line} for line in lines]
    return as_csv(list(rows[0]) if rows else [], (list(row.values()) for row in rows))


def picture_svg(report: Report) -> str:
    """Return the picture of the first run's judges, in the colours of a light page."""
    graph = picture_of(report.runs[0].findings) if report.runs else None
    drawn = render_to_string("judge_eval/_agreement.html", {"graph": graph, "is_file": True})
    return _VARIABLE.sub(r"\1", drawn) if graph else ""


def picture_png(report: Report) -> bytes:
    return render(picture_svg(report) or card_svg(report)).png


def card_svg(report: Report) -> str:
    """Return the preview that a link shows elsewhere: title, first words and picture."""
    graph = picture_of(report.runs[0].findings) if report.runs else None
    lines = _lines(headline(report))
    width, height = CARD_SIZE
    context = {
        "report": report,
        "width": width,
        "height": height,
        "lines": [(150 + 44 * place, line) for place, line in enumerate(lines)],
        "foot": f"{number_of(report.votes, 'vote')} · {report.made_at:%-d %b %Y} · HumanJudge",
        "graph": graph,
        "graph_top": 170 + 44 * len(lines),
        "graph_height": 400 - 44 * len(lines),
    }
    return _VARIABLE.sub(r"\1", render_to_string("reports/card.svg", context))


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


def card_png(report: Report) -> bytes:
    return render(card_svg(report)).png


def headline(report: Report) -> str:
    """Return what a reader must know, in words."""
    words = [run.findings.words for run in report.runs if run.findings.words]
    for of in report.quality:
        votes = number_of(of.last.votes, "vote")
        words.append(f"The quality score of {of.series} is {percent(of.last.score)} of {votes}.")
    return words[0] if words else "Nobody has voted yet."


def badge_svg(report: Report) -> str:
    """Return the score, or the best judge, with its interval, the votes and their date."""
    name, value = _figure(report)
    left = round(LETTER * len(name)) + 14
    right = round(LETTER * len(value)) + 14
    context = {"name": name, "value": value, "left": left, "right": right, "width": left + right}
    return render_to_string("reports/badge.svg", context)


def _figure(report: Report) -> tuple[str, str]:
    of = f"{number_of(report.votes, 'vote')}, {report.made_at:%-d %b %Y}"
    if report.quality:
        last = report.quality[0].last
        low, high = wilson(last.passes, last.votes) or (0.0, 0.0)
        rate = f"{percent(last.passes / last.votes)} pass ({span(100 * low, 100 * high)})"
        return "quality", f"{percent(last.score)} · {rate} · {of}"
    best = _best(report.runs[0].findings) if report.runs else ""
    return "judges", f"{best or 'no votes yet'} · {of}"


def _best(found: RunFindings) -> str:
    """Name the judge that is said to be best, or else how many cannot be told apart from it."""
    judges = [judge for judge in found.judges if not judge.is_baseline]
    known = [judge for judge in judges if judge.overall.value is not None]
    if not known:
        return ""
    first = known[best_first([judge.overall.value for judge in known])[0]]
    share = first.overall
    figure = percent(share.value or 0.0)
    if share.low is not None and share.high is not None:
        figure += f" ({span(100 * share.low, 100 * share.high)})"
    verb = "best" if found.claims.best is not None else "leads, not settled"
    return f"{first.name} {figure} {verb}"


Maker = Callable[[Report], str | bytes]
SVG: Final = "image/svg+xml; charset=utf-8"
FILES: Final[dict[str, tuple[Maker, str]]] = {
    "report.json": (report_json, "application/json"),
    "judges.csv": (judges_csv, "text/csv; charset=utf-8"),
    "picture.svg": (picture_svg, SVG),
    "picture.png": (picture_png, "image/png"),
    "card.png": (card_png, "image/png"),
    "badge.svg": (badge_svg, SVG),
}
# Shown where it is asked for, and not saved.
IN_PLACE: Final = ("card.png", "badge.svg")
