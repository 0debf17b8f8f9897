"""What the pages of a run's findings share, and what they show as files to take away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from csp.constants import HEADER
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from humanjudge.http import HtmxRequest, Problem
from humanjudge.lib.tables import as_csv
from humanjudge.lib.text import number_of
from judge_eval import selectors
from judge_eval.access import refuse_board
from judge_eval.findings.cache import PartUnknown, Request, TooManyParts, request_findings
from judge_eval.findings.columns import Value, file_row, people_file_row
from judge_eval.findings.model import AltTestJudge, AsOf, RunFindings
from judge_eval.findings.slices import SliceInvalid, part_choices
from judge_eval.models import Run
from judge_eval.stats.estimate import best_first

# Of which tab a chart is, by which name it is kept, and what it is called where it is a file.
CHARTS: Final = (
    ("board", "agreement", "agreement"),
    ("board", "ratings", "ratings"),
    ("board", "same_verdict", "same verdict"),
    ("alt-test", "winning_rates", "winning rates"),
    ("models", "model_ratings", "ratings"),
)
BUSY = "Many parts of this run are being looked at. Look at the whole run, or come back later."
COMPUTING = "These figures are still being computed. Ask again in some seconds."
# A drawing needs nothing from anywhere, whoever opens it and whatever the names in it say.
INERT = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
FileRow = dict[str, Value]


def run_with_board(run_id: UUID) -> Run:
    runs = Run.objects.select_related("queue__project", "board")
    return get_object_or_404(runs, pk=run_id)


def refuse(request: HtmxRequest, run: Run) -> HttpResponse | None:
    """Return the answer to who may not see a run's findings, None to who may."""
    refused = refuse_board(request, run)
    if refused is not None and refused.status_code == 302 and request.htmx:
        return HttpResponseClientRefresh()  # the login has ended: not its form amid the page
    return refused


def requested(request: HtmxRequest, run: Run) -> Request:
    """Return the findings of the part that the address names."""
    try:
        return request_findings(run, request.GET.get("part", ""))
    except SliceInvalid as invalid:
        raise Problem(400, f"{invalid}.") from invalid
    except PartUnknown as unknown:
        raise Problem(404, f"{unknown}.") from unknown
    except TooManyParts as busy:
        raise Problem(429, BUSY) from busy


def live_part(request: HtmxRequest, context: dict[str, Any], template: str) -> HttpResponse:
    """Answer htmx with the live part of a page, or with nothing when nothing is new."""
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    number = context["parts"].number if context["parts"] else ""
    context["has_new_parts"] = request.GET.get("parts", "") != str(number)
    return render(request, template, context)


def findings_context(run: Run, request: Request, tab: str) -> dict[str, Any]:
    """Return what every page of findings shows, whether there are any yet or not."""
    row, figures = request.row, request.findings
    is_behind = row.seq < run.board.seq
    return {
        "run": run,
        "tab": tab,
        "findings": figures,
        "charts": row.charts,
        "part": request.part,
        "parts": part_choices(request.parts, str(request.part)) if request.parts else None,
        "as_of": _as_of(figures.as_of, request, is_behind=is_behind) if figures else "",
        "chart_files": [
            (chart, name) for of, chart, name in CHARTS if of == tab and chart in row.charts
        ],
        "is_behind": is_behind,
        "seen": f"{row.computed_at.timestamp():.6f}-{is_behind:d}" if row.computed_at else "none",
    }


def _as_of(as_of: AsOf, request: Request, *, is_behind: bool) -> str:
    """Say of how many votes the figures are, and of which part."""
    votes = number_of(as_of.votes, "vote")
    by = f"{as_of.people:,} {'person' if as_of.people == 1 else 'people'}"
    pairs = f"{as_of.voted:,} of {as_of.comparisons:,} pairs"
    part = f"; {request.part.in_words}" if request.part.kind else ""
    behind = " Newer entries are being counted." if is_behind else ""
    return f"As of {votes} by {by} on {pairs}, ledger entry {as_of.seq:,}{part}.{behind}"


# --- files --------------------------------------------------------------------------------------


@never_cache
@require_safe
def run_table(request: HtmxRequest, run_id: UUID, table: str, form: str) -> HttpResponse:
    """A table of the board, the Alt-Test or the models, as of the findings that there are."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    if table not in TABLES or form not in ("csv", "json"):
        raise Http404
    wanted = requested(request, run)
    figures = _computed(wanted)
    rows = TABLES[table](run, wanted, figures)
    if form == "csv":
        text = as_csv(list(rows[0]) if rows else [], (list(row.values()) for row in rows))
        answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    else:
        answer = JsonResponse({"as_of": figures.as_of.model_dump(), "rows": rows})
    return _attached(answer, run, wanted, f"{table}.{form}")


@never_cache
@require_safe
def run_chart(request: HtmxRequest, run_id: UUID, chart: str) -> HttpResponse:
    """A chart as it was drawn with the findings."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    wanted = requested(request, run)
    _computed(wanted)
    svg = wanted.row.charts.get(chart)
    if svg is None:
        raise Http404
    answer = HttpResponse(svg, content_type="image/svg+xml; charset=utf-8")
    answer.headers[HEADER] = INERT
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return _attached(answer, run, wanted, f"{chart}.svg")


def _computed(wanted: Request) -> RunFindings:
    if wanted.findings is None:
        raise Problem(409, COMPUTING)
    return wanted.findings


def _attached(answer: HttpResponse, run: Run, wanted: Request, name: str) -> HttpResponse:
    of = [slugify(run.name)[:60] or "run", slugify(str(wanted.part).replace(":", "-"))[:60]]
    answer.headers["Content-Disposition"] = (
        f'attachment; filename="{"-".join(filter(None, of))}-{name}"'
    )
    return answer


def _board_rows(run: Run, wanted: Request, figures: RunFindings) -> list[FileRow]:
    """Return a line for each judge by overall agreement, and one for people."""
    # A part has no ELO of its own.
    board = () if wanted.part.kind else selectors.board(run).rows
    elo = {str(row.judge.pk): row.elo for row in board}
    order = best_first([judge.overall.value for judge in figures.judges])
    judges = [figures.judges[place] for place in order]
    people = people_file_row(figures.among_people.pairs, figures.people_first_position)
    return [*(file_row(judge, elo.get(judge.id)) for judge in judges), people]


def _alt_test_rows(run: Run, wanted: Request, figures: RunFindings) -> list[FileRow]:
    """Return a line for each judge, with its winning rate at every epsilon."""
    judges = figures.alt_test.judges if figures.alt_test else []
    keys = sorted({key for judge in judges for key in judge.winning_rates or {}})
    return [_alt_test_row(judge, keys) for judge in judges]


def _alt_test_row(judge: AltTestJudge, keys: Sequence[str]) -> FileRow:
    rates = judge.winning_rates or {}
    low, high = judge.advantage_interval or (None, None)
    return {
        "judge_id": judge.id,
        "name": judge.name,
        "kind": "baseline" if judge.is_baseline else "judge",
        "people_tested": sum(human.why is None for human in judge.humans),
        "advantage": judge.advantage,
        "advantage_low": low,
        "advantage_high": high,
        **{f"winning_rate_{key}": rates.get(key) for key in keys},
    }


def _models_rows(run: Run, wanted: Request, figures: RunFindings) -> list[FileRow]:
    """Return a line for each model on each board: that of people first, then those of judges."""
    models = figures.models
    return [
        {
            "board": board.by,
            "board_name": board.name,
            "model": name,
            "rank": rating.rank,
            "best_rank": rating.best_rank,
            "worst_rank": rating.worst_rank,
            "ties": ties,
            "rating": rating.value,
            "rating_low": rating.low,
            "rating_high": rating.high,
            "pairs": rating.comparisons,
        }
        for board in (models.boards if models else ())
        for name, rating, ties in zip(
            models.names if models else (), board.ratings, board.ties, strict=True
        )
    ]


TABLES: Final[dict[str, Callable[[Run, Request, RunFindings], list[FileRow]]]] = {
    "board": _board_rows,
    "alt-test": _alt_test_rows,
    "models": _models_rows,
}
