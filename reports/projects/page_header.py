"""What every page of a project shares: who may open it, and the row of tabs above it."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from django import template
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from humanjudge.core.http import Context
from judge_eval.runs.run_page import Tab
from voting.access.roles import Action, can, require
from voting.models import Project

View: TypeAlias = Callable[..., HttpResponse]
# Key, title, address, and what somebody must be allowed to do.
TABS: Final[tuple[tuple[str, str, str, Action], ...]] = (
    ("quality", "Quality", "project-quality", "see"),
    ("people", "People", "project-people", "see people"),
    ("audit", "Audit", "project-audit", "see people"),
    ("share", "Share", "project-shares", "share"),
    ("keys", "Keys", "project-keys", "manage"),
    ("webhooks", "Webhooks", "webhooks", "manage"),
    ("settings", "Settings", "project-settings", "manage"),
)

register = template.Library()


class ProjectHeader(NamedTuple):
    tabs: list[Tab]
    about: str


@register.simple_tag(takes_context=True)
def project_header(context: Context) -> ProjectHeader:
    project, user = context["project"], context["user"]
    tabs = [
        Tab(key, title, reverse(page, args=[project.pk]))
        for key, title, page, action in TABS
        if can(user, action, project)
    ]
    return ProjectHeader(tabs, f"A project, its ledger at entry {project.head_seq:,}")


def _require_action(method: Callable[[View], View], action: Action) -> Callable[[View], View]:
    def decorated(view: View) -> View:
        @never_cache
        @method
        @wraps(view)
        def guarded(request: HttpRequest, /, project_id: UUID, **options: object) -> HttpResponse:
            require(request, action, project_id)
            return view(request, get_object_or_404(Project, pk=project_id), **options)

        return guarded

    return decorated


# Views of those who may: pages that are read and never kept, and what is done with a project.
project_page = partial(_require_action, require_safe)
project_action = partial(_require_action, require_POST)
