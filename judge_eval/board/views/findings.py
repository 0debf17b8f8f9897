"""What the pages of a run's findings share, and what they show as files to take away."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from csp.constants import HEADER
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.text import slugify

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.tables import as_csv
from humanjudge.core.text import duration, number_of
from judge_eval.board.cache import FindingsRequest, newer_votes
from judge_eval.board.columns import Value, file_rows
from judge_eval.board.corrected_table import corrected_file_rows
from judge_eval.board.few import findings_for
from judge_eval.board.filters import Slice
from judge_eval.board.model import RunFindings
from judge_eval.board.pictures import (
    INERT,
    MODEL_RATES,
    MODEL_RATINGS,
    PICTURE,
    chart_names,
    draw,
    graph_of,
)
from judge_eval.models import Run
from judge_eval.runs import queries
from judge_eval.runs.run_page import run_page
from voting.items.kinds import kind_of

# The charts of each tab, and what they are called as files.
CHARTS: Final = {
    "board": {PICTURE: "picture"},
    "alt-test": {"winning_rates": "winning rates"},
    "models": {MODEL_RATINGS: "ratings", MODEL_RATES: "pass rates"},
}
# The order of pairs by how much judges and people disagree.
DISPUTED: Final = "disagreement"
COMPUTING = "These figures are still being computed. Ask again in some seconds."
FileRow = dict[str, Value]


def findings_version(run: Run, request: FindingsRequest) -> str:
    """Return what changes whenever findings do, or what is said where there are none."""
    row = request.row
    if not row.computed_at or request.findings is None:
        return "refused" if request.refused else "left" if request.is_left else "none"
    newer = f"{run.board.seq}{'-failed' if row.failure else ''}" if row.seq < run.board.seq else ""
    return f"{row.computed_at.timestamp():.6f}-{newer}"


def live_page(
    request: HtmxRequest, name: str, page_version: str, make_context: Callable[[], Context]
) -> HttpResponse:
    """Answer with a page, and htmx with its live part, or with nothing when nothing is new.

    `page_version` changes whenever the page does: no context is made where a page shows it.
    """
    is_live = request.htmx and not request.htmx.history_restore_request
    if is_live and request.GET.get("seen") == page_version:
        return HttpResponse(status=204)
    context = make_context() | {"seen": page_version}
    if not is_live:
        return render(request, f"judge_eval/board/{name}.html", context)
    number = context["parts_number"]
    context["has_new_parts"] = request.GET.get("parts", number) != number
    return render(request, f"judge_eval/board/_{name}.html", context)


def findings_context(run: Run, request: FindingsRequest, tab: str) -> Context:
    """Return what every page of findings shows, whether there are any yet or not."""
    row, figures, part = request.row, request.findings, request.part
    seconds, as_of_text, behind = 0.0, "", ""
    if figures and row.computed_at:
        snapshot = figures.as_of
        seconds = max((timezone.now() - row.computed_at).total_seconds(), 0)
        people = f"{snapshot.people:,} {'person' if snapshot.people == 1 else 'people'}"
        as_of_text = (
            f"As of {number_of(snapshot.votes, 'vote')} by {people} on {snapshot.voted:,} of "
            f"{snapshot.comparisons:,} {run.queue.noun}s, ledger entry {snapshot.seq:,}"
        )
        if row.seq < run.board.seq:
            since = 0 if part.kind else newer_votes(run, run.board.votes, snapshot.votes)
            newer = f"{since:,} newer {'vote' if since == 1 else 'votes'}"
            newer = newer if since > 0 else "The ledger has newer entries"
            behind = row.failure or f"{newer}; updating."
    drawn = chart_names(figures) if figures else set()
    return {
        "run": run,
        "tab": tab,
        "findings_of": tab,
        "findings": figures,
        "part": part,
        "parts": request.parts,
        "parts_number": str(request.parts.number) if request.parts else "none",
        "chosen_part": str(part),
        "as_of": as_of_text,
        "computed": {"at": row.computed_at, "seconds": round(seconds), "ago": duration(seconds)},
        "behind": behind,
        "refused": request.refused,
        "is_left": request.is_left,
        "chart_files": {c: name for c, name in CHARTS[tab].items() if c in drawn},
    }


def disputed_order(run: Run) -> str:
    """Name the order of items by disagreement; nothing where answers are a run's own words.

    These are not counted with an item.
    """
    return DISPUTED if kind_of(run.queue).choices else ""


def pairs_query(order: str, part: Slice) -> str:
    options = {"sort": order, "part": str(part)}
    query = urlencode({name: value for name, value in options.items() if value})
    return f"?{query}" if query else ""


# --- files --------------------------------------------------------------------------------------


@run_page("see")
def run_table(request: HtmxRequest, run: Run, table: str, form: str) -> HttpResponse:
    """A table of the board, the Alt-Test or the models, as of the findings that there are."""
    if table not in TABLES or form not in ("csv", "json"):
        raise Http404
    requested = findings_for(request, run, request.GET.get("part", ""))
    if requested.findings is None:
        raise Problem(409, requested.refused or COMPUTING)
    rows = TABLES[table](run, requested, requested.findings)
    if form == "csv":
        text = as_csv(list(rows[0]) if rows else [], (list(row.values()) for row in rows))
        answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    else:
        answer = JsonResponse({"as_of": requested.findings.as_of.model_dump(), "rows": rows})
    return _as_download(answer, run, requested, f"{table}.{form}")


@run_page("see")
def run_chart(request: HtmxRequest, run: Run, chart: str) -> HttpResponse:
    requested = findings_for(request, run, request.GET.get("part", ""))
    if requested.findings is None:
        raise Problem(409, requested.refused or COMPUTING)
    graph = graph_of(requested.findings, chart)
    if graph is None:
        raise Http404
    answer = HttpResponse(draw(graph, is_file=True), content_type="image/svg+xml; charset=utf-8")
    answer.headers[HEADER] = INERT
    return _as_download(answer, run, requested, f"{chart}.svg")


def _as_download(
    answer: HttpResponse, run: Run, requested: FindingsRequest, name: str
) -> HttpResponse:
    parts = [slugify(run.name)[:60] or "run", slugify(str(requested.part).replace(":", "-"))[:60]]
    file_name = "-".join(filter(None, [*parts, name]))
    answer.headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return answer


def _alt_test_rows(run: Run, requested: FindingsRequest, figures: RunFindings) -> list[FileRow]:
    tasks_and_judges = [
        (test.task, judge) for test in figures.alt_tests.values() for judge in test.judges
    ]
    keys = sorted({key for _, judge in tasks_and_judges for key in judge.winning_rates or {}})
    rows = []
    for task, judge in tasks_and_judges:
        low, high = judge.advantage_interval or (None, None)
        row: FileRow = {
            "task": task,
            "judge_id": judge.id,
            "name": judge.name,
            "kind": "baseline" if judge.is_baseline else "judge",
            "people_tested": judge.tested,
            "advantage": judge.advantage,
            "advantage_low": low,
            "advantage_high": high,
        }
        rates = judge.winning_rates or {}
        rows.append(row | {f"winning_rate_{key}": rates.get(key) for key in keys})
    return rows


def _pass_rates_rows(figures: RunFindings) -> list[FileRow]:
    named = [("people", "People"), *((judge.id, judge.name) for judge in figures.judges)]
    return [
        {
            "board": board_id,
            "board_name": name,
            "model": rate.name,
            "outputs": rate.outputs,
            "pass_rate": share.value,
            "pass_rate_low": share.low,
            "pass_rate_high": share.high,
            "passed": share.successes,
            "n": share.n,
        }
        for rate in figures.pass_rates or ()
        for (board_id, name), share in zip(named, [rate.people, *rate.judges], strict=True)
    ]


def _models_rows(run: Run, requested: FindingsRequest, figures: RunFindings) -> list[FileRow]:
    models = figures.models
    if figures.pass_rates is not None:
        return _pass_rates_rows(figures)
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
            "pairs": rating.n,
        }
        for board in (models.boards if models else ())
        for name, rating, ties in zip(
            models.names if models else (), board.ratings, board.ties, strict=True
        )
    ]


TABLES: Final[dict[str, Callable[[Run, FindingsRequest, RunFindings], list[FileRow]]]] = {
    # A part has no ELO of its own.
    "board": lambda run, requested, figures: file_rows(
        figures, {} if requested.part.kind else queries.board(run, is_live=requested.is_live).elo
    ),
    "alt-test": _alt_test_rows,
    "models": _models_rows,
    "corrected": lambda run, requested, figures: corrected_file_rows(figures),
}
