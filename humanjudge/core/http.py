"""What every view shares: typed requests, and errors as answers a person can read."""

import logging
import sqlite3
import sys
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlencode

from csp.constants import HEADER
from csp.utils import build_policy
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import redirect, resolve_url
from django.template.loader import render_to_string
from django.utils.module_loading import import_string
from django_htmx.http import HttpResponseClientRefresh
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

# What a template is given.
Context: TypeAlias = dict[str, Any]


class HtmxRequest(HttpRequest):
    htmx: HtmxDetails


class Problem(Exception):
    """Raised by a view that cannot do what was asked; the middleware answers for it."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class LoginNeeded(Exception):
    """Raised by a view that somebody may see who logs in; the middleware leads to the login."""


def on_demand(view: str, *, only_with: str = "") -> Callable[..., HttpResponse]:
    """Return a view whose module is imported by its first request, for pages with heavy imports.

    There is no such page where the setting `only_with` is empty.
    """

    def load_and_call(request: HttpRequest, **arguments: Any) -> HttpResponse:
        if only_with and not getattr(settings, only_with):
            raise Http404
        answer: HttpResponse = import_string(view)(request, **arguments)
        return answer

    load_and_call.__module__ = view.rpartition(".")[0]
    return load_and_call


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
            and (getattr(request, "htmx", False) or not request.META.get("QUERY_STRING"))
        )
        return super().process_response(request, response) if compressible else response


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Send the policy of the settings with every answer that has none of its own.

    It is the same for all, so it is written once: django-csp's middleware writes it anew for each.
    """
    policy = build_policy()

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault(HEADER, policy)
        return response

    return middleware


class ProblemMiddleware:
    """Turns a raised `Problem` into its answer, a busy database into 503, a bare 405 into JSON."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if REFUSED in request.META:
            status, message = request.META[REFUSED]
            return problem(request, status, message, is_bare=True)
        response = self._get_response(request)
        if response.status_code == 405 and is_for_api(request):
            allowed = ", ".join(sorted(response.headers["Allow"].split(", ")))
            refused = problem(request, 405, f"{request.method}: this address takes {allowed}")
            refused.headers["Allow"] = allowed
            return refused
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, Problem):
            return problem(request, error.status, str(error), retry_after=error.retry_after)
        if isinstance(error, LoginNeeded):
            return log_in(request)
        return busy(request, error) if is_busy(error) else None


def log_in(request: HttpRequest) -> HttpResponse:
    """Lead to the login and back; a fragment's whole page, since no form belongs amid it."""
    if getattr(request, "htmx", False):
        return HttpResponseClientRefresh()
    # Django's own function for it cannot be imported before the apps are loaded, as this is.
    back = urlencode({"next": request.get_full_path()}, safe="/")
    return redirect(f"{resolve_url(settings.LOGIN_URL)}?{back}")


def is_for_api(request: HttpRequest) -> bool:
    return request.path_info.startswith(API)


def problem(
    request: HttpRequest,
    status: int,
    message: str,
    *,
    title: str = "",
    action: tuple[str, str] = ("To the start", "/"),
    retry_after: int | None = None,
    is_bare: bool = False,
) -> HttpResponse:
    """Answer with an error: JSON to a script, a fragment to htmx, a whole page to a browser.

    `action` is the way out, as (text, address). A bare answer is made without sessions, users or
    anything else that may be what is broken.
    """
    if is_for_api(request):
        response: HttpResponse = JsonResponse({"detail": message}, status=status)
    else:
        template = "_problem.html" if getattr(request, "htmx", False) else "problem.html"
        title = title or TITLES.get(status, "That did not work")
        context = {"status": status, "title": title, "message": message, "action": action}
        text = render_to_string(template, context, None if is_bare else request)
        response = HttpResponse(text, status=status)
    seconds = RETRY_AFTER if status == 503 else retry_after
    if seconds is not None:
        response.headers["Retry-After"] = str(seconds)
    return response


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return problem(request, 400, "The request was not as this server expects it.")


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return problem(request, 403, str(exception or "") or "You may not see this page.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    text = "This page is too old or cookies are blocked, so nothing was recorded. Reload the page."
    return problem(request, 403, text)


def no_such_page(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if is_for_api(request):
        return problem(request, 404, "there is no such address; /api/docs shows all that there are")
    return problem(request, 404, "There is no such page, or it is gone.")


def server_error(request: HttpRequest) -> HttpResponse:
    # What middleware raises comes here and not to `process_exception`.
    error = sys.exc_info()[1]
    if is_busy(error):
        return busy(request, error)
    text = "The error was logged on the server. What was recorded before is safe."
    return problem(request, 500, text, is_bare=True)


def is_busy(error: BaseException | None) -> bool:
    """Say whether the database is locked, full, away or starting: later it may do the same."""
    # SQLite calls a wrong statement an operational error, too.
    code = getattr(error.__cause__, "sqlite_errorcode", None) if error else None
    return isinstance(error, OperationalError | InterfaceError) and code != sqlite3.SQLITE_ERROR


def busy(request: HttpRequest, error: BaseException | None) -> HttpResponse:
    """Answer 503: the voting page keeps its vote and sends it again, as should a script."""
    logger.warning("the database is busy: %s", error)
    message = "The database cannot take this now. Send the same again: it counts once."
    response = problem(request, 503, message, is_bare=True)
    # Once is enough; Django would log it as an error, and again.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response
