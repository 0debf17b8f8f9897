"""What every view shares: typed requests, and errors as answers a person can read."""

from __future__ import annotations

from collections.abc import Callable

from csp.constants import HEADER
from csp.utils import build_policy
from django.contrib.messages.middleware import MessageMiddleware
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django_htmx.middleware import HtmxDetails

API = "/api/"
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


def is_from_htmx(request: HttpRequest) -> bool:
    """Say whether htmx asks, from one header; `request.htmx` goes through all of them first."""
    return request.META.get("HTTP_HX_REQUEST") == "true"


class Problem(Exception):
    """Raised by a view that cannot do what was asked; the middleware answers for it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


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


class BackOfficeMessages(MessageMiddleware):
    """Keeps messages for the back office, the only place that has any."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/admin/"):
            super().process_request(request)


class ProblemMiddleware:
    """Turns a raised `Problem` into its answer, and the API's bare 405 into JSON."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.status_code == 405 and is_for_api(request):
            allowed = ", ".join(sorted(response.headers["Allow"].split(", ")))
            refused = problem(request, 405, f"{request.method}: this address takes {allowed}")
            refused.headers["Allow"] = allowed
            return refused
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, Problem):
            return None
        return problem(request, error.status, error.message)


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
    if is_for_api(request):
        return problem(request, 404, "there is no such address; /api/docs shows all that there are")
    return problem(request, 404, "There is no such page, or it is gone.")


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer without sessions, users or anything else that may be what is broken."""
    if is_for_api(request):
        return problem(request, 500, "something broke on the server; the error was logged there")
    context = _context(500, "The error was logged. What was recorded before is safe.")
    template = "_problem.html" if is_from_htmx(request) else "problem.html"
    return HttpResponse(render_to_string(template, context), status=500)
