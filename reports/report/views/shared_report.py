"""Reports as whoever has the link sees them: the page, its data, its pictures and its badge.

A wrong link, an expired and a revoked one get the same answer.
"""

import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from hashlib import sha256
from pathlib import Path

from csp.constants import HEADER
from django.conf import settings
from django.contrib.staticfiles.finders import find
from django.core.cache import cache
from django.db.models import Count, Exists, Max, OuterRef, Q
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import parse_etags
from django.utils.safestring import SafeString
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from pydantic import ValidationError

from humanjudge.core.citation import Citation, version
from humanjudge.core.http import Context, Problem, problem
from humanjudge.core.ratelimit import RateLimit
from judge_eval.board.disputed import outputs_beginning, pairs_beginning
from judge_eval.board.few import require_votes_first
from judge_eval.board.pictures import INERT
from judge_eval.models import Findings, Run
from judge_eval.runs.access import VOTE_FIRST, has_pairs_left, note_runs_seen, visible, voters_of
from reports.models import CompositeDefinition, FrozenRows, Share
from reports.report.before_tuning import leave_out_held_out, report_before_tuning
from reports.report.bundle import bundle_file
from reports.report.files import IN_PLACE, TYPES, text_of
from reports.report.make import NotComputed, report_of
from reports.report.model import Removals, Report
from reports.report.page import Outputs, report_context
from reports.report.views.shares import count_view, find_share
from voting.access import roles
from voting.access.login import slow_down
from voting.ballot.queries import left_to
from voting.ballot.tuning import OF_ALL
from voting.models import NO_VOTE, Assignment, Entry
from voting.people.voters import VOTER_COOKIE
from voting.pictures.rendering import render as render_picture

View = Callable[..., HttpResponseBase]
PAGE = "report.html"
# One answer for a wrong link, one that was revoked, and one that expired.
GONE = "This report was withdrawn or has expired. Ask whoever sent it."
# While a bundle is made, another one is refused, to be requested again after so long.
BUNDLE_SECONDS = 10
_bundling, _rendering = threading.Lock(), threading.Lock()
# Of each web process; a picture has some 50 KB.
MOST_PICTURES = 64
# Of each address. A class that opens a report together is behind one.
LIMIT = RateLimit(per_second=5, burst=200)
SHORT_SECONDS = 300
# What a name is changed to shows after so long.
KEPT_SECONDS = 300
OTHER_VERSION = "Another version froze this report, and this one cannot read it."


def public(view: View) -> View:
    """Make a view one of a report, for whoever has the link and is not still to vote on it."""

    @require_safe
    @wraps(view)
    def open_report(request: HttpRequest, token: str, **options: object) -> HttpResponseBase:
        slow_down(LIMIT, request, "requests for reports")
        share = find_share(token)
        if share is None:
            return problem(request, 404, GONE)
        try:
            answer = _votes_first(request, share) or view(request, share, token, **options)
        except NotComputed as pending:
            return problem(request, 409, str(pending), title="Not there yet")
        if not share.is_public:
            answer.headers["X-Robots-Tag"] = "noindex, nofollow"
        # What a browser or a proxy keeps for strangers is not for voters, nor the other way round.
        patch_vary_headers(answer, ["Cookie", "Authorization"])
        cookies = request.COOKIES
        is_voter = any(name.startswith(VOTER_COOKIE) for name in cookies)
        is_login = settings.SESSION_COOKIE_NAME in cookies or "Authorization" in request.headers
        if is_voter or is_login:
            answer.headers["Cache-Control"] = "private, no-store"
        return answer

    return open_report


def _votes_first(request: HttpRequest, share: Share) -> HttpResponse | None:
    """Refuse who would read here what others think of items that are still to be voted on."""
    voters = voters_of(request, share.project_id)
    if not voters or roles.can(request.user, "see", share.project_id):
        return None
    assigned = Assignment.objects.filter(voter__in=voters, item__queue=OuterRef("queue"))
    runs = Run.objects.filter(Exists(assigned), queue__project=share.project_id)
    for run in [share.run] if share.run else runs.select_related("queue"):
        if has_pairs_left(voters, run):
            return problem(request, 403, VOTE_FIRST.format(noun=run.queue.noun))
    return None


def _may_vote(request: HttpRequest, share: Share) -> bool:
    """Say whether a reader is a voter of the project, or a member who may become one."""
    is_member = roles.can(request.user, "see", share.project_id)
    return is_member or bool(voters_of(request, share.project_id))


def _readable_report(request: HttpRequest, share: Share) -> Report:
    """Return what a link shows, without the items that its reader has to vote on first."""
    report = current(share)
    if not _may_vote(request, share):
        return report
    runs = Run.objects.select_related("queue__project", "board")
    for results in report.runs:
        # What was frozen of a run that was deleted since, nobody can vote on.
        if run := runs.filter(pk=results.id).first():
            require_votes_first(request, run)
            results.findings.disputed = visible(request, run, results.findings.disputed)
            visible_places = {pair.position for pair in results.findings.disputed}
            disputed = [item for item in results.disputed if item.position in visible_places]
            results.disputed = disputed
    return report


def current(share: Share) -> Report:
    """Return what a link shows: what was frozen, or what holds at the ledger's present head.

    While judges are tuned a live one shows what held before that.
    """
    stands_still = share.is_waiting
    if not share.is_frozen and not stands_still:
        return _live(share)
    report = _frozen(share) if share.is_frozen else report_before_tuning(share.project, share.run)
    if stands_still:
        leave_out_held_out(report)
    erasures = Entry.objects.filter(NO_VOTE, project=share.project_id, kind=Entry.Kind.ERASURE)
    counted = erasures.filter(seq__gt=report.head.seq).aggregate(
        people=Count("pk", filter=Q(payload__has_key="voter")),
        runs=Count("pk", filter=Q(payload__has_key="queue")),
    )
    report.since = Removals(**counted)
    return report


def _frozen(share: Share) -> Report:
    try:
        return Report.model_validate(share.frozen)
    except ValidationError:
        raise NotComputed(OTHER_VERSION) from None


def _live(share: Share) -> Report:
    findings = Findings.objects.filter(run__queue__project=share.project_id, part="")
    computed = findings.aggregate(last=Max("computed_at"))["last"]
    defined = CompositeDefinition.objects.filter(run__queue__project=share.project_id)
    newest = defined.aggregate(newest=Max("pk"))["newest"]
    state = f"{share.project.head_seq}-{computed and computed.timestamp()}-{newest}"
    key = f"report-{share.project_id}-{share.run_id or ''}-{state}"
    cached = cache.get(key)
    if cached is None:
        cached = report_of(share.project, share.run).model_dump_json()
        cache.set(key, cached, KEPT_SECONDS)
    return Report.model_validate_json(cached)


@never_cache
@public
def shared_report(request: HttpRequest, share: Share, token: str) -> HttpResponse:
    report = _readable_report(request, share)
    if request.method == "GET":
        count_view(share)
    path, head = reverse("shared-report", args=[token]), report.head
    card = reverse("shared-file", args=[token, "card.png"])
    address = request.build_absolute_uri(path)
    context = _context(share, report) | {
        "share": share,
        "is_tuned": share.is_project_tuned,
        "has_bundle": not share.is_frozen or FrozenRows.objects.filter(share=share).exists(),
        "here": path,
        "address": address,
        "card": request.build_absolute_uri(card),
        "citation": Citation(report.title, address, report.made_at, head.seq, head.hash, version()),
    }
    return render(request, "reports/report/shared.html", context)


def report_html(share: Share, report: Report) -> str:
    """Return the report as one page that needs nothing else: no server, no network, no script."""
    css = Path(str(find("css/site.css"))).read_text()
    base = {"base": "reports/report/report_file.html", "css": SafeString(css), "is_file": True}
    return render_to_string("reports/report/shared.html", _context(share, report) | base)


def _context(share: Share, report: Report) -> Context:
    outputs: Outputs = {}
    if share.shows_outputs and share.run is not None and report.runs:
        pairs = pairs_beginning(share.run, [item.position for item in report.runs[0].disputed])
        outputs = {position: outputs_beginning(pair) for position, pair in pairs.items()}
    is_waiting_now = not share.is_frozen and share.is_waiting
    about = {"is_frozen": share.is_frozen, "is_waiting": is_waiting_now}
    return report_context(report, **about, outputs=outputs)


# --- files ----------------------------------------------------------------------------------------


@never_cache
@public
def shared_bundle(request: HttpRequest, share: Share, token: str) -> HttpResponseBase:
    """The report with its ledger, for whoever wants to compute it anew; one at a time is made."""
    if share.is_project_tuned:
        raise Problem(403, OF_ALL)
    frozen_rows = get_object_or_404(FrozenRows, share=share) if share.is_frozen else None
    voters = voters_of(request, share.project_id)
    if voters and left_to(voters).exists():
        raise Problem(403, VOTE_FIRST.format(noun="item"))
    if _may_vote(request, share):
        # Its reader is given all votes and verdicts.
        runs = Run.objects.filter(queue__project=share.project_id)
        note_runs_seen(request, runs.select_related("queue__project"))
    if not _bundling.acquire(blocking=False):
        return problem(request, 429, "Another bundle is being made.", retry_after=BUNDLE_SECONDS)
    try:
        lines = bytes(frozen_rows.lines) if frozen_rows else None
        file = bundle_file(current(share), share.project, lines)
    finally:
        _bundling.release()
    name = f"{slugify(share.project.name)[:60] or 'report'}-bundle.zip"
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/zip")


@public
def shared_file(request: HttpRequest, share: Share, token: str, name: str) -> HttpResponse:
    report = _readable_report(request, share)
    text = report_html(share, report) if name == PAGE else text_of(report, name)
    if text is None:
        raise Http404
    # A picture is what its drawing is, which takes less time to make.
    tag = f'"{sha256(f"{name}{text}".encode()).hexdigest()[:32]}"'
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        answer: HttpResponse = HttpResponseNotModified()
    else:
        suffix = name.rpartition(".")[2]
        content = png_of(text) if suffix == "png" else text
        answer = HttpResponse(content, content_type=TYPES[suffix])
        if name not in IN_PLACE:
            base = slugify(report.title)[:60] or "report"
            answer.headers["Content-Disposition"] = f'attachment; filename="{base}-{name}"'
    answer.headers["ETag"] = tag
    answer.headers[HEADER] = INERT
    cacheability = {"public": True} if share.is_public else {"private": True}
    patch_cache_control(answer, max_age=SHORT_SECONDS, **cacheability)
    return answer


def png_of(drawing: str) -> bytes:
    """Return the picture of a drawing, which is rendered once however many readers want it."""
    with _rendering:
        return _png_of(drawing)


@lru_cache(maxsize=MOST_PICTURES)
def _png_of(drawing: str) -> bytes:
    return render_picture(drawing).png
