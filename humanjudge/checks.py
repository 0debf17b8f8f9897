"""Settings that would only show much later, as work that never ends, are refused at the start."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from voting.pictures.rendering import PACKAGES

# The last migrations of the versions that had one for every change.
LAST = {
    ("voting", "0014_answers_wrong"),
    ("judge_eval", "0011_verdict_wrong"),
    ("reports", "0002_score_report"),
}
LEAST = {"WEB_THREADS": 1, "BODY_SECONDS": 1, "JUDGING_THREADS": 1, "VOTES_BURST": 1}


@register("humanjudge")
def renderer(app_configs: Any, **kwargs: Any) -> Iterable[CheckMessage]:
    name = settings.SVG_RENDERER
    if name not in PACKAGES:
        text = f"SVG_RENDERER is {name!r}: nothing of that name draws."
        return [Error(text, hint=f"One of {', '.join(PACKAGES)}.", id="humanjudge.E001")]
    if importlib.util.find_spec(PACKAGES[name]) is None:
        text = f"SVG_RENDERER is {name!r}, and the package {PACKAGES[name]} is not installed."
        return [Error(text, id="humanjudge.E002")]
    return []


@register("humanjudge")
def numbers(app_configs: Any, **kwargs: Any) -> Iterable[CheckMessage]:
    found = [
        Error(f"{name} is {getattr(settings, name)}: at least {least}.", id="humanjudge.E003")
        for name, least in LEAST.items()
        if getattr(settings, name) < least
    ]
    if not settings.VOTES_PER_SECOND > 0:
        text = f"VOTES_PER_SECOND is {settings.VOTES_PER_SECOND}: it must be above 0."
        found.append(Error(text, id="humanjudge.E003"))
    return found


@register(Tags.database)
def earlier_version(
    app_configs: Any, databases: Iterable[str] | None = None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """Refuse a database that an earlier version left half way: nothing here would mend it."""
    for name in databases or ():
        applied = MigrationRecorder(connections[name]).applied_migrations().keys()
        has_more = any(app == "voting" and not step.startswith("0001_") for app, step in applied)
        if has_more and not applied >= LAST:
            text = "This database is of an earlier version and was never brought up to its last."
            hint = "Bring it up to date with that version first, or begin with an empty one."
            return [Error(text, hint=hint, id="humanjudge.E004")]
    return []
