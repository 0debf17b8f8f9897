"""Reports as whoever has the link sees them: the page, its data, its pictures and its badge.

A wrong link, an expired and a revoked one get the same answer.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from hashlib import sha256
from pathlib import Path

from csp.constants import HEADER
from django.contrib.staticfiles.finders import find
from django.core.cache import cache
from django.db.models import Exists, Max, OuterRef
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotModified,
)
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.http import parse_etags
from django.utils.safestring import SafeString
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from pydantic import ValidationError

from humanjudge.charts.quality_graph import Point, quality_graph
from humanjudge.http import Context, problem
from humanjudge.lib.tables import Table, percent, span
from humanjudge.lib.text import duration, listed, number_of
from judge_eval.access import VOTE_FIRST, has_pairs_left
from judge_eval.findings.columns import MAIN, elo_cell
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
from judge_eval.findings.model import JudgeFindings
from judge_eval.models import Findings, Run
from judge_eval.pages.findings import INERT, picture_of
from judge_eval.stats.estimate import best_first, wilson
from reports.models import Quality, Share
from reports.quality.views import TITLES, in_words
from reports.shares.bundle import bundle_file
from reports.shares.files import FILES, IN_PLACE, headline
from reports.shares.make import NotComputed, report_of
from reports.shares.report import QualityResults, Report, RunResults
from reports.shares.services import count_view, find_share
from voting import access
from voting.models import Assignment, Entry
from voting.voters import voter_here

View = Callable[..., HttpResponseBase]
PAGE = "report.html"
# While a bundle is made, who asks for another is told to come back after so long.
BUNDLE_SECONDS = 10
_bundling = threading.Lock()
SHORT_SECONDS = 300
# What a name is changed to shows after so long.
KEPT_SECONDS = 300
OTHER_VERSION = "Another version froze this report, and this one cannot read it."


def public(view: View) -> View:
    """Make a view one of a report, for whoever has the link and is not still to vote on it."""

    @require_safe
    @wraps(view)
    def open_report(request: HttpRequest, token: str, **options: object) -> HttpResponseBase:
        share = find_share(token)
        if share is None:
            raise Http404
        if refused := _votes_first(request, share):
            return refused
        try:
            answer = view(request, share, token, **options)
        except NotComputed as pending:
            return problem(request, 409, str(pending), title="Not there yet")
        if not share.is_public:
            answer.headers["X-Robots-Tag"] = "noindex, nofollow"
        return answer

    return open_report


def _votes_first(request: HttpRequest, share: Share) -> HttpResponse | None:
    """Refuse who would read here what others think of items that are still to be voted on."""
    voter = voter_here(request, share.project_id)
    if voter is None or access.can(request.user, "see", share.project_id):
        return None
    asked = Assignment.objects.filter(voter=voter, item__queue=OuterRef("queue"))
    runs = Run.objects.filter(Exists(asked), queue__project=share.project_id)
    for run in [share.run] if share.run else runs.select_related("queue"):
        if has_pairs_left(voter, run):
            return problem(request, 403, VOTE_FIRST.format(noun=run.queue.noun))
    return None


def current(share: Share) -> Report:
    """Return what a link shows: what was frozen, or what holds at the ledger's present head."""
    if share.frozen is not None:
        try:
            return Report.model_validate(share.frozen)
        except ValidationError:
            raise NotComputed(OTHER_VERSION) from None
    findings = Findings.objects.filter(run__queue__project=share.project_id, part="")
    computed = findings.aggregate(last=Max("computed_at"))["last"]
    state = f"{share.project.head_seq}-{computed and computed.timestamp()}"
    key = f"report-{share.project_id}-{share.run_id or ''}-{state}"
    known = cache.get(key)
    if known is None:
        known = report_of(share.project, share.run).model_dump_json()
        cache.set(key, known, KEPT_SECONDS)
    return Report.model_validate_json(known)


@never_cache
@public
def shared_report(request: HttpRequest, share: Share, token: str) -> HttpResponse:
    report = current(share)
    if request.method == "GET":
        count_view(share)
    return render(request, "reports/shared.html", page_context(request, share, token, report))


def page_context(request: HttpRequest, share: Share, token: str, report: Report) -> Context:
    def whole(name: str) -> str:
        return request.build_absolute_uri(reverse("shared-file", args=[token, name]))

    here = reverse("shared-report", args=[token])
    return report_context(report, is_frozen=share.frozen is not None) | {
        "share": share,
        "erased": _erased_since(share, report),
        "here": here,
        "address": request.build_absolute_uri(here),
        "card": whole("card.png"),
    }


def report_context(report: Report, *, is_frozen: bool) -> Context:
    """Return what stands on a report, wherever it is read."""
    return {
        "report": report,
        "is_frozen": is_frozen,
        "headline": headline(report),
        "quality": [_quality(of) for of in report.quality],
        "runs": [_run(of) for of in report.runs],
        "flags": _flags(report),
        # Methods are told as on a board, whose run says what is voted on.
        "method": {"queue": report.runs[0]} if report.runs else None,
    }


def report_html(report: Report, *, is_frozen: bool) -> str:
    """Return the report as one page that needs nothing else: no server, no network, no script."""
    css = Path(str(find("css/site.css"))).read_text()
    context = report_context(report, is_frozen=is_frozen)
    context |= {"base": "reports/report_file.html", "css": SafeString(css)}
    return render_to_string("reports/shared.html", context)


def _flags(report: Report) -> list[str]:
    counted = report.counted.flags if report.counted else {}
    return [f"{number:,} {category}" for category, number in counted.items()]


def _erased_since(share: Share, report: Report) -> int:
    if share.frozen is None:
        return 0
    later = Entry.objects.filter(project=share.project_id, kind=Entry.Kind.ERASURE)
    return later.filter(seq__gt=report.head.seq).count()


# --- what stands on the page ----------------------------------------------------------------------


def _quality(of: QualityResults) -> Context:
    title, about = TITLES[Quality.Series(of.series)]
    last = of.last
    low, high = wilson(last.passes, last.votes) or (0.0, 0.0)
    ago = max((timezone.now() - last.at).total_seconds(), 0)
    points = [
        Point(each.at, each.score, each.freshness, each.votes, each.passes) for each in of.points
    ]
    return {
        "title": title,
        "about": about,
        "series": of.series,
        "score": percent(last.score),
        "freshness": percent(last.freshness),
        "votes": last.votes,
        "pass_rate": percent(last.passes / last.votes),
        "interval": f"{span(100 * low, 100 * high)} %",
        "last_at": last.at,
        "ago": duration(ago),
        "decay": of.decay,
        "half_life": in_words(of.half_life_seconds),
        "graph": quality_graph(of.initial_score, points),
    }


def _run(of: RunResults) -> Context:
    found = of.findings
    people = "person" if found.as_of.people == 1 else "people"
    return {
        "run": of,
        "source": of.source.splitlines(),
        "as_of": f"{number_of(found.as_of.votes, 'vote')} by {found.as_of.people:,} {people} on "
        f"{found.as_of.voted:,} of {number_of(found.as_of.comparisons, of.noun)}",
        "pictures": [g for narrow in (False, True) if (g := picture_of(found, is_narrow=narrow))],
        "table": _judges(of) if found.as_of.votes else None,
        "tests": list(found.alt_tests.values()),
    }


def _judges(of: RunResults) -> Table:
    """Return the table of the board, the best first."""
    found = of.findings
    order = best_first([judge.overall.value for judge in found.judges])
    judges = sorted((found.judges[place] for place in order), key=lambda judge: judge.is_baseline)
    rows = with_people([_figures(of, judge) for judge in judges], found)
    unknown = unknown_columns(rows)
    table = judge_table(f"Judges of {of.name}", telling_columns(MAIN, unknown, of.kind), rows)
    topics = unknown_topics(unknown)
    return replace(table, unknown=f"Not known of any judge: {listed(topics)}." if topics else "")


def _figures(of: RunResults, judge: JudgeFindings) -> Figures:
    cells = judge_cells(judge, of.findings)
    if judge.id in of.elo:
        cells["elo"] = elo_cell(of.elo[judge.id], judge.order_luck)
    return judge.name, BASELINE if judge.is_baseline else "", cells


# --- files ----------------------------------------------------------------------------------------


@never_cache
@public
def shared_bundle(request: HttpRequest, share: Share, token: str) -> HttpResponseBase:
    """The report with its ledger, for whoever wants to compute it anew; one at a time is made."""
    if share.frozen is not None:
        raise Http404
    if not _bundling.acquire(blocking=False):
        return problem(request, 429, "Another bundle is being made.", retry_after=BUNDLE_SECONDS)
    try:
        file = bundle_file(current(share), share.project)
    finally:
        _bundling.release()
    name = f"{slugify(share.project.name)[:60] or 'report'}-bundle.zip"
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/zip")


@public
def shared_file(request: HttpRequest, share: Share, token: str, name: str) -> HttpResponse:
    """The report as JSON, its judges as CSV, its picture, its preview card or its badge."""
    if name != PAGE and name not in FILES:
        raise Http404
    report = current(share)
    tag = f'"{sha256(f"{name}{report.made_at}{report.head.hash}".encode()).hexdigest()[:32]}"'
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        answer: HttpResponse = HttpResponseNotModified()
    else:
        make, content_type = FILES.get(name, (None, "text/html; charset=utf-8"))
        made = make(report) if make else report_html(report, is_frozen=share.frozen is not None)
        answer = HttpResponse(made, content_type=content_type)
        if name not in IN_PLACE:
            base = slugify(report.title)[:60] or "report"
            answer.headers["Content-Disposition"] = f'attachment; filename="{base}-{name}"'
    answer.headers["ETag"] = tag
    answer.headers[HEADER] = INERT
    patch_cache_control(answer, max_age=SHORT_SECONDS, private=not share.is_public)
    return answer
