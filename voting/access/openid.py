"""Login by the team's own identity provider, over OpenID Connect.

Authlib speaks the protocol: discovery, state, nonce, PKCE, the signature and the claims of the
token. Here it is said whose account a proven identity opens. Nobody is a member of a project by
that: whoever is new sees nothing until an owner adds them.
"""

import logging
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import MismatchingStateError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from joserfc.errors import JoseError
from pydantic import BaseModel, Field, field_validator
from requests import RequestException

from humanjudge.core.http import Problem
from humanjudge.core.ratelimit import RateLimit
from voting.access.login import slow_down
from voting.models import Identity

# By keys that are the provider's alone: no `none`, and nothing signed with what others may know.
ALGORITHMS: Final = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
]
WAIT_SECONDS: Final = 5
# Who has left the team is out after so long, or sooner where their account is switched off here.
SESSION_SECONDS: Final = 24 * 60 * 60
TRIES: Final = 3
STARTS = RateLimit(per_second=1, burst=120)
_NEXT = "login_next"
_DOWN = "The identity provider does not answer. Try again in a moment."
_WRONG = (
    "What the identity provider sent cannot be trusted, so nobody was logged in. "
    "Whoever runs this server finds the reason in its log."
)
_OLD = "This login was begun in another window or too long ago. Begin again on the login page."
_OFF = "Your account on this server is switched off."
_ADMINISTERS = (
    "An account with your e-mail address administers this server, and is not handed to anybody "
    "by an address alone. Log in with its password; an admin can link it to your identity."
)

_LINKED = (
    "The account with your e-mail address is linked to another identity at the provider, and only "
    "that identity opens it. An administrator of this server can change the link."
)

logger = logging.getLogger(__name__)


class IdTokenClaims(BaseModel, extra="allow", hide_input_in_errors=True):
    """What is read of a token whose signature, issuer, audience, time and nonce were checked."""

    iss: str = Field(min_length=1, max_length=255)
    sub: str = Field(min_length=1, max_length=255)
    email: str = ""
    email_verified: bool = False
    # What people at the provider call themselves, as they please.
    preferred_username: str = ""
    name: str = ""

    @field_validator("iss", "sub", "email")
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("holds what cannot be printed")
        return value

    @field_validator("preferred_username", "name")
    @classmethod
    def _as_one_line(cls, value: str) -> str:
        return "".join(letter if letter.isprintable() else " " for letter in value).strip()


@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Send somebody to the provider, and remember where they wanted to go."""
    slow_down(STARTS, request, "logins begun")
    page, hosts, is_secure = request.GET.get("next", ""), {request.get_host()}, request.is_secure()
    is_own = url_has_allowed_host_and_scheme(page, hosts, require_https=is_secure)
    request.session[_NEXT] = page if is_own else ""
    back = request.build_absolute_uri(reverse("provider-callback"))
    with _refusing():
        answer: HttpResponse = _provider().authorize_redirect(request, back)
    return answer


@never_cache
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    if "error" in request.GET:
        raise Problem(403, "The identity provider did not let you in. Nobody was logged in.")
    claims = _proven(request)
    user = _account_of(claims)
    if not user.is_active:
        raise Problem(403, _OFF)
    _follow_groups(user, claims)
    page = request.session.pop(_NEXT, "")
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    request.session.set_expiry(SESSION_SECONDS)
    return redirect(page or resolve_url(settings.LOGIN_REDIRECT_URL))


def _proven(request: HttpRequest) -> IdTokenClaims:
    """Return the claims of a token that is the provider's, for us, for this login, and valid."""
    with _refusing():
        provider = _provider()
        metadata = provider.server_metadata
        names_issuer = metadata.get("authorization_response_iss_parameter_supported") is True
        _check_issuer(request, metadata["issuer"], is_required=names_issuer)
        must_be = {
            "iss": {"essential": True, "value": metadata["issuer"]},
            "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
        }
        token = provider.authorize_access_token(request, claims_options=must_be, leeway=60)
        return IdTokenClaims.model_validate(dict(token["userinfo"]))


def _check_issuer(request: HttpRequest, expected: str, *, is_required: bool) -> None:
    """Refuse an answer that another provider gave (RFC 9207), before its code is sent anywhere."""
    issuer = request.GET.get("iss")
    if issuer != expected and (issuer is not None or is_required):
        raise ValueError(f"the answer is of another issuer: {issuer!r}")


@contextmanager
def _refusing() -> Iterator[None]:
    """Answer in words for what a provider does; the log says why, and has no token."""
    try:
        yield
    except MismatchingStateError as error:
        raise Problem(400, _OLD) from error
    except RequestException as error:
        logger.warning("login by the identity provider: %s", error)
        raise Problem(503, _DOWN) from error
    except (AuthlibBaseError, JoseError, ValueError, TypeError, KeyError, RuntimeError) as error:
        logger.warning("login by the identity provider: %s: %s", type(error).__name__, error)
        raise Problem(403, _WRONG) from error


def _provider() -> Any:
    provider = _client(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET)
    metadata = provider.load_server_metadata()
    if str(metadata.get("issuer", "")).rstrip("/") != settings.OIDC_ISSUER.rstrip("/"):
        _client.cache_clear()
        raise ValueError(f"OIDC_ISSUER is not what it calls itself: {metadata.get('issuer')!r}")
    metadata["id_token_signing_alg_values_supported"] = ALGORITHMS
    return provider


@cache
def _client(issuer: str, client_id: str, client_secret: str) -> Any:
    """Return the client of a provider; its addresses and keys are fetched at the first login."""
    return OAuth().register(
        "provider",
        client_id=client_id,
        client_secret=client_secret or None,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": settings.OIDC_SCOPE,
            "code_challenge_method": "S256",
            "default_timeout": WAIT_SECONDS,
        },
    )


def _account_of(claims: IdTokenClaims) -> User:
    """Return the account of an identity: the linked one, one of its verified address, or a new."""
    identity = {"issuer": claims.iss, "subject": claims.sub}
    for _ in range(TRIES):
        linked = Identity.objects.select_related("user").filter(**identity).first()
        if linked is not None:
            return linked.user
        # Somebody of the same name, or this person in another window, may log in at once.
        with suppress(IntegrityError), transaction.atomic():
            user = _of_address(claims) or _new_account(claims)
            Identity.objects.create(user=user, **identity)
            return user
    raise Problem(503, "Too many people log in at once. Try again in a moment.")


def _of_address(claims: IdTokenClaims) -> User | None:
    if not claims.email or not claims.email_verified:
        return None
    # Locked: two identities with this address may log in at once.
    same = User.objects.select_for_update(no_key=True).filter(email__iexact=claims.email)
    users = list(same[:2])
    if any(user.is_superuser or user.is_staff for user in users):
        raise Problem(403, _ADMINISTERS)
    if Identity.objects.filter(user__in=users).exists():
        raise Problem(403, _LINKED)
    return users[0] if len(users) == 1 else None


def _new_account(claims: IdTokenClaims) -> User:
    email = claims.email if claims.email_verified else ""
    names = (claims.preferred_username, email.partition("@")[0], claims.name, "member")
    base = next(name for name in map(_plain, names) if name)[:140]
    alike = User.objects.filter(username__istartswith=base).values_list("username", flat=True)
    taken_names = {name.casefold() for name in alike}
    numbered = (f"{base}-{number}" for number in range(2, len(taken_names) + 3))
    name = next(name for name in (base, *numbered) if name.casefold() not in taken_names)
    return User.objects.create_user(name, email=email[:254], first_name=_plain(claims.name)[:150])


def _plain(name: str) -> str:
    """Return a name that somebody chose, or nothing where it could be taken for another's.

    Owners add members by their names and addresses, so no name is an address, and all letters are
    ASCII: a Cyrillic "a" looks like a Latin one. Accents are left out.

    Examples
    --------
    >>> _plain("José  García"), _plain("ada@example.org"), _plain("\u0430da")
    ('Jose Garcia', '', '')
    """
    parts = unicodedata.normalize("NFKD", name)
    letters = "".join(letter for letter in parts if not unicodedata.combining(letter))
    is_plain = letters.isascii() and "@" not in letters
    return " ".join(letters.split()) if is_plain else ""


def _follow_groups(user: User, claims: IdTokenClaims) -> None:
    """Where a group of the provider administers this server, being in it is what decides."""
    if not settings.OIDC_ADMIN_GROUP:
        return
    groups = (claims.model_extra or {}).get(settings.OIDC_GROUPS_CLAIM)
    is_admin = isinstance(groups, list) and settings.OIDC_ADMIN_GROUP in groups
    if (user.is_staff, user.is_superuser) != (is_admin, is_admin):
        user.is_staff = user.is_superuser = is_admin
        user.save(update_fields=["is_staff", "is_superuser"])
        logger.warning("%s administers this server: %s", user.get_username(), is_admin)
