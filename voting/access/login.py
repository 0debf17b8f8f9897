"""Login with a password, and limits on guessing: for each address, each account, and both together.

A try that is refused costs no hashing, and no limit keeps the right person out for longer than it
says: they are no locks that somebody else's tries could close for good.
"""

import math
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest

from humanjudge.core.http import Context, Problem
from humanjudge.core.ratelimit import RateLimit

BY_ADDRESS = RateLimit(per_second=1 / 3, burst=30)
BY_BOTH = RateLimit(per_second=1 / 15, burst=5)
BY_ACCOUNT = RateLimit(per_second=1 / 5, burst=20)
# From where an account was logged in, other people's guesses at it keep nobody out.
_owners: set[tuple[str, str]] = set()


class LoginPage(LoginView):
    """Asks for a password, or leads to the team's identity provider."""

    template_name = "login.html"

    def get_context_data(self, **context: Any) -> Context:
        options = {"provider": settings.OIDC_NAME, "takes_passwords": settings.PASSWORD_LOGIN}
        return super().get_context_data(**context) | options


class LimitedBackend(ModelBackend):
    """Checks passwords for every page that asks for one."""

    def authenticate(  # type: ignore[override]
        self, request: HttpRequest | None, **credentials: Any
    ) -> User | None:
        if request is None or "username" not in credentials:
            return super().authenticate(request, **credentials)
        if not settings.PASSWORD_LOGIN:
            raise Problem(403, "This server takes no passwords. Log in by your identity provider.")
        both = address, account = address_of(request), credentials["username"].casefold()
        seconds = (
            BY_ADDRESS.seconds(address)
            or BY_BOTH.seconds(both)
            or (both not in _owners and BY_ACCOUNT.seconds(account))
        )
        if wait := math.ceil(seconds):
            text = f"Too many tries to log in. Wait {wait} seconds, then try again."
            raise Problem(429, text, retry_after=wait)
        user = super().authenticate(request, **credentials)
        if user is not None:
            _owners.add(both)
            # A class that logs in at once from one address makes no guesses.
            BY_ADDRESS.give_back(address)
        return user


def slow_down(limit: RateLimit, request: HttpRequest, attempts: str) -> None:
    """Refuse an address that does something too often; `attempts` is what it does too often."""
    if wait := math.ceil(limit.seconds(address_of(request))):
        text = f"Too many {attempts} from your address. Wait {wait} seconds, then try again."
        raise Problem(429, text, retry_after=wait)


def address_of(request: HttpRequest) -> str:
    """Return where a request comes from: what the proxy saw, where there is one."""
    client_addresses: str = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.HTTPS else ""
    return client_addresses.rpartition(",")[2].strip() or request.META["REMOTE_ADDR"]
