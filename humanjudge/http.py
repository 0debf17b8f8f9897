"""What every view shares: typed requests, and errors as answers a person can read."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django_htmx.middleware import HtmxDetails

TITLES = {
    400: "That request cannot be read",
    403: "Closed to you",
    404: "Nothing here",
    409: "Already answered",
    413: "Too large",
    422: "That cannot be stored",
    429: "A little slower, please",
    500: "Something broke on our side",
}


class HtmxRequest(HttpRequest):
    htmx: HtmxDetails


class Problem(Exception):
    """Raised by a view that cannot do what was asked; the middleware answers for it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class ProblemMiddleware:
    """Turns a raised `Problem` into its answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, Problem):
            return None
        return problem(request, error.status, error.message)


def problem(
    request: HttpRequest, status: int, message: str, *, action: tuple[str, str] | None = None
) -> HttpResponse:
    """Answer with an error: a fragment for htmx, a whole page for a browser.

    `action` is the way out, as (text, address).
    """
    template = "_problem.html" if getattr(request, "htmx", False) else "problem.html"
    return render(request, template, _context(status, message, action), status=status)


def _context(status: int, message: str, action: tuple[str, str] | None = None) -> dict[str, object]:
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
    return problem(request, 404, "There is no such page, or it is gone.")


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer without sessions, users or anything else that may be what is broken."""
    is_fragment = request.headers.get("HX-Request") == "true"
    context = _context(500, "The error was logged. What was recorded before is safe.")
    template = "_problem.html" if is_fragment else "problem.html"
    return HttpResponse(render_to_string(template, context), status=500)
