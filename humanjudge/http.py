"""What every view shares: typed requests, and errors as answers a person can read."""

from __future__ import annotations

import logging
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

from csp.constants import HEADER
from csp.utils import build_policy
from django.contrib.messages.middleware import MessageMiddleware
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.module_loading import import_string
from django_htmx.middleware import HtmxDetails

API = "/api/"
# In `request.META`: the status and the message for a request that was not read to its end.
REFUSED = "humanjudge.refused"
TITLES = {
    400: "That request cannot be read",
    403: "Closed to you",
    404: "Nothing here",
    408: "Too slow",
    409: "Already answered",
    411: "Its length is missing",
    413: "Too large",
    422: "That cannot be stored",
    429: "A little slower, please",
    500: "Something broke on our side",
    503: "Busy for a moment",
}
# A shorter page arrives no sooner when it is compressed.
ONE_PACKET = 1400
# After so many seconds the same request is worth another try.
RETRY_AFTER = 2

logger = logging.getLogger(__name__)


class HtmxRequest(HttpRequest):
    htmx: HtmxDetails


def is_from_htmx(request: HttpRequest) -> bool:
    """Say whether htmx asks, from one header; `request.htmx` goes through all of them first."""
    return request.META.get("HTTP_HX_REQUEST") == "true"


class Problem(Exception):
    """Raised by a view that cannot do what was asked; the middleware answers for it."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


def on_demand(view: str) -> Callable[..., HttpResponse]:
    """Return a view whose module is imported by its first request, for pages with heavy imports."""

    def load_and_call(request: HttpRequest, **arguments: Any) -> HttpResponse:
        answer: HttpResponse = import_string(view)(request, **arguments)
        return answer

    return load_and_call


class ContentPolicyMiddleware:
    """Sends the Content-Security-Policy of the settings, the same with every answer.

    That of django-csp makes the policy anew each time, and then once more to report only.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._policy = build_policy()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        # A file that people take away has a stricter one of its own.
        response.headers.setdefault(HEADER, self._policy)
        return response


class CompressionMiddleware(GZipMiddleware):
    """Compresses pages where their length tells nobody a secret that stands in them.

    BREACH finds a secret by its repetition: another site has a browser ask for the same page again
    and again, with guesses that the page repeats beside the secret, and looks at the lengths. A
    page whose address has no query repeats nothing of what another site could choose. With a query
    it is compressed only for htmx, whose header no other site can send with a visitor's cookies;
    answers to forms and errors are not. What is left differs each time by itself: tokens of forms
    are masked anew, a ballot has a number of its own, and Django adds up to 100 random bytes.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        compressible = (
            isinstance(response, HttpResponse)
            and len(response.content) >= ONE_PACKET
            and request.method == "GET"
            and response.status_code == 200
            and response.headers.get("Content-Type", "").startswith("text/html")
            and (is_from_htmx(request) or not request.META.get("QUERY_STRING"))
        )
        return super().process_response(request, response) if compressible else response


class AdminMessagesMiddleware(MessageMiddleware):
    """Keeps messages for the admin, the only place that has any."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/admin/"):
            super().process_request(request)


class ProblemMiddleware:
    """Turns a raised `Problem` into its answer, a busy database into 503, a bare 405 into JSON."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if REFUSED in request.META:
            return _bare_problem(request, *request.META[REFUSED])
        response = self._get_response(request)
        if response.status_code == 405 and is_for_api(request):
            allowed = ", ".join(sorted(response.headers["Allow"].split(", ")))
            refused = problem(request, 405, f"{request.method}: this address takes {allowed}")
            refused.headers["Allow"] = allowed
            return refused
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, Problem):
            return _again(problem(request, error.status, error.message), error.retry_after)
        return busy(request, error) if is_busy(error) else None


def is_for_api(request: HttpRequest) -> bool:
    return request.path_info.startswith(API)


def problem(
    request: HttpRequest, status: int, message: str, *, action: tuple[str, str] | None = None
) -> HttpResponse:
    """Answer with an error: JSON to a script, a fragment to htmx, a whole page to a browser.

    `action` is the way out, as (text, address).
    """
    if is_for_api(request):
        return JsonResponse({"detail": message}, status=status)
    template = "_problem.html" if getattr(request, "htmx", False) else "problem.html"
    return render(request, template, _context(status, message, action), status=status)


def _context(
    status: int, message: str, action: tuple[str, str] | None = None
) -> dict[str, int | str | tuple[str, str]]:
    return {
        "status": status,
        "title": TITLES.get(status, "That did not work"),
        "message": message,
        "action": action or ("To the start", "/"),
    }


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return problem(request, 400, "The request was not as this server expects it.")


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return problem(request, 403, str(exception or "") or "You may not see this page.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return problem(
        request,
        403,
        "This page is too old or cookies are blocked, so nothing was recorded. Reload the page.",
    )


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if is_for_api(request):
        return problem(request, 404, "there is no such address; /api/docs shows all that there are")
    return problem(request, 404, "There is no such page, or it is gone.")


def server_error(request: HttpRequest) -> HttpResponse:
    # What middleware raises comes here and not to `process_exception`.
    error = sys.exc_info()[1]
    if is_busy(error):
        return busy(request, error)
    if is_for_api(request):
        return problem(request, 500, "something broke on the server; the error was logged there")
    return _bare_problem(request, 500, "The error was logged. What was recorded before is safe.")


def is_busy(error: BaseException | None) -> bool:
    """Say whether the database is locked, full, away or starting: later it may do the same."""
    # SQLite calls a wrong statement an operational error, too.
    code = getattr(error.__cause__, "sqlite_errorcode", None) if error else None
    return isinstance(error, OperationalError | InterfaceError) and code != sqlite3.SQLITE_ERROR


def busy(request: HttpRequest, error: BaseException | None) -> HttpResponse:
    """Answer 503: the voting page keeps its vote and sends it again, as should a script."""
    logger.warning("the database is busy: %s", error)
    message = "The database cannot take this now. Send the same again: it counts once."
    response = _bare_problem(request, 503, message)
    # Once is enough; Django would log it as an error, and again.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def _bare_problem(request: HttpRequest, status: int, message: str) -> HttpResponse:
    """Answer without sessions, users or anything else that may be what is broken."""
    seconds = RETRY_AFTER if status == 503 else None
    if is_for_api(request):
        return _again(JsonResponse({"detail": message}, status=status), seconds)
    template = "_problem.html" if is_from_htmx(request) else "problem.html"
    text = render_to_string(template, _context(status, message))
    return _again(HttpResponse(text, status=status), seconds)


def _again(response: HttpResponse, seconds: int | None) -> HttpResponse:
    """Say after how many seconds the same request is worth another try, if it is."""
    if seconds is not None:
        response.headers["Retry-After"] = str(seconds)
    return response
