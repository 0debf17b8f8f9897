"""Settings that would only show much later, as work that never ends, are refused at the start."""

import importlib.util
from collections.abc import Iterable, Iterator
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import WARNING, CheckMessage, Error, Tags, register
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from humanjudge.core import extensions
from voting.pictures.rendering import PACKAGES

APPS = ("voting", "judge_eval", "reports")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# The names of earlier migrations differ from 0001_schema, so an earlier database is told apart.
EARLIER = (
    "Commit 0c489a9b is the last that reads it: run `manage.py export_run --project NAME "
    "--out FILE` there for each project, and `manage.py import_run FILE` here."
)
LATER = "Run the version that made it, or start with an empty database."
LEAST = {
    "WEB_PROCESSES": 1,
    "WEB_THREADS": 1,
    "BODY_SECONDS": 1,
    "JUDGING_THREADS": 1,
    "VOTES_BURST": 1,
}


@register("humanjudge")
def values(app_configs: Any, **kwargs: Any) -> Iterator[CheckMessage]:
    name = settings.SVG_RENDERER
    if name not in PACKAGES:
        text = f"SVG_RENDERER is {name!r}: nothing of that name draws."
        yield Error(text, hint=f"One of {', '.join(PACKAGES)}.", id="humanjudge.E001")
    elif importlib.util.find_spec(PACKAGES[name]) is None:
        text = f"SVG_RENDERER is {name!r}, and the package {PACKAGES[name]} is not installed."
        yield Error(text, id="humanjudge.E002")
    storage = settings.STORAGES["default"]["BACKEND"].partition(".")[0]
    if importlib.util.find_spec(storage) is None:
        text = "PICTURES_BUCKET is set, and the package django-storages is not installed."
        yield Error(text, hint="pip install humanjudge[s3]", id="humanjudge.E002")
    for name, least in LEAST.items():
        if getattr(settings, name) < least:
            text = f"{name} is {getattr(settings, name)}: at least {least}."
            yield Error(text, id="humanjudge.E003")
    yield from _login()
    if settings.LOG_FORMAT not in ("lines", "json"):
        text = f"LOG_FORMAT is {settings.LOG_FORMAT!r}: lines or json."
        yield Error(text, id="humanjudge.E003")
    if not settings.VOTES_PER_SECOND > 0:
        text = f"VOTES_PER_SECOND is {settings.VOTES_PER_SECOND}: it must be above 0."
        yield Error(text, id="humanjudge.E003")


def _login() -> Iterator[CheckMessage]:
    issuer = urlsplit(settings.OIDC_ISSUER)
    if settings.OIDC_ISSUER and not settings.OIDC_CLIENT_ID:
        text = "OIDC_ISSUER is set, and OIDC_CLIENT_ID is not."
        yield Error(text, hint="The provider gives it to this application.", id="humanjudge.E005")
    if settings.OIDC_ISSUER and issuer.scheme != "https" and issuer.hostname not in LOOPBACK:
        text = f"OIDC_ISSUER is {settings.OIDC_ISSUER!r}: an https address."
        yield Error(text, id="humanjudge.E005")
    if not settings.PASSWORD_LOGIN and not settings.OIDC_ISSUER:
        text = "PASSWORD_LOGIN is false, and without OIDC_ISSUER nobody can log in."
        yield Error(text, id="humanjudge.E005")


@register("humanjudge")
def networks(app_configs: Any, **kwargs: Any) -> Iterator[CheckMessage]:
    for network in settings.WEBHOOK_ALLOW_PRIVATE:
        try:
            ip_network(network)
        except ValueError as error:
            yield Error(f"WEBHOOK_ALLOW_PRIVATE: {error}.", id="humanjudge.E003")


@register("humanjudge")
def broken_extensions(app_configs: Any, **kwargs: Any) -> Iterator[CheckMessage]:
    """Warn of extensions that were left out; the product does without them."""
    for extension in extensions.broken:
        name = f"{extension.name} of {extension.package}"
        text = f"The extension {name} could not be loaded: {extension.error}"
        hint = "It is left out until this is put right."
        yield CheckMessage(WARNING, text, hint=hint, id="humanjudge.W001")


@register(Tags.database)
def other_version(
    app_configs: Any, databases: Iterable[str] | None = None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """Refuse a database that another version made: nothing here would bring it up to date."""
    shipped_migrations = MigrationLoader(None).disk_migrations.keys()
    for name in databases or ():
        applied = MigrationRecorder(connections[name]).applied_migrations().keys()
        if any(app in APPS and (app, step) not in shipped_migrations for app, step in applied):
            is_later = ("voting", "0001_schema") in applied
            text = "This database was made by another version, and this one cannot read it."
            yield Error(text, hint=LATER if is_later else EARLIER, id="humanjudge.E004")
