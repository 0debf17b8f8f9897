"""What the pages of findings show, to take away: tables as CSV and JSON, charts as SVG."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from csp.constants import HEADER
from django.http import Http404, HttpResponse, JsonResponse
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest, Problem
from judge_eval import selectors
from judge_eval.findings.query import Asked
from judge_eval.models import Run
from judge_eval.pages.findings_page import asked_for, refuse, run_with_board
from judge_eval.pages.tables import BOARD, ROWS, Row, as_csv, board_rows

COMPUTING = "These figures are still being computed. Ask again in some seconds."
# A drawing needs nothing from anywhere, whoever opens it and whatever the names in it say.
INERT = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@never_cache
@require_safe
def run_table(request: HtmxRequest, run_id: UUID, table: str, form: str) -> HttpResponse:
    """A table of the board, the Alt-Test or the models, as of the findings that there are."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    if table not in (BOARD, *ROWS) or form not in ("csv", "json"):
        raise Http404
    asked = asked_for(request, run)
    data = _data(asked)
    rows = _board(run, asked, data) if table == BOARD else ROWS[table](data)
    if form == "csv":
        answer = HttpResponse(as_csv(rows), content_type="text/csv; charset=utf-8")
    else:
        answer = JsonResponse({"as_of": data["as_of"], "rows": rows})
    return _attached(answer, run, asked, f"{table}.{form}")


@never_cache
@require_safe
def run_chart(request: HtmxRequest, run_id: UUID, chart: str) -> HttpResponse:
    """A chart as it was drawn with the findings."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    asked = asked_for(request, run)
    _data(asked)
    svg = asked.found.charts.get(chart)
    if svg is None:
        raise Http404
    answer = HttpResponse(svg, content_type="image/svg+xml; charset=utf-8")
    answer.headers[HEADER] = INERT
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return _attached(answer, run, asked, f"{chart}.svg")


def _data(asked: Asked) -> dict[str, Any]:
    if asked.data is None:
        raise Problem(409, COMPUTING)
    return asked.data


def _board(run: Run, asked: Asked, data: dict[str, Any]) -> list[Row]:
    if asked.part.kind:
        return board_rows(data, {})
    rows = selectors.board(run).rows
    return board_rows(data, {str(row.judge.pk): row.elo for row in rows})


def _attached(answer: HttpResponse, run: Run, asked: Asked, name: str) -> HttpResponse:
    of = [slugify(run.name)[:60] or "run", slugify(str(asked.part).replace(":", "-"))[:60]]
    answer.headers["Content-Disposition"] = (
        f'attachment; filename="{"-".join(filter(None, of))}-{name}"'
    )
    return answer
