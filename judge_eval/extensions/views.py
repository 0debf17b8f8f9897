"""The extensions that were found: what each is, whether it may be used here, and what is broken."""

from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from humanjudge.core import extensions
from humanjudge.core.http import Context, Problem
from judge_eval.judging import extension_check
from judge_eval.models import Extension
from voting.access.roles import require, user_of

# In the order in which a run meets them.
KINDS: Final = ("run mode", "judge type", "provider", "baseline", "scorer", "import format")


@never_cache
@require_safe
def extension_list(request: HttpRequest) -> HttpResponse:
    require(request, "manage", None)
    rows = Extension.objects.select_related("changed_by").in_bulk()
    kinds: dict[str, list[Context]] = {kind: [] for kind in KINDS}
    for extension in extensions.everything():
        kinds[extension.kind].append(_extension_row(extension, rows.pop(extension.id, None)))
    context = {"kinds": kinds, "broken": extensions.broken, "gone": sorted(rows)}
    return render(request, "judge_eval/extensions/extensions.html", context)


def _extension_row(extension: extensions.Extension, row: Extension | None) -> Context:
    changed = f"by {row.changed_by or 'somebody'}, {row.changed_at:%-d %b %Y}" if row else ""
    is_enabled = row is None or row.is_enabled
    return {
        "extension": extension,
        "is_enabled": is_enabled,
        "source": "built in" if extension.package == extensions.OWN_PACKAGE else extension.package,
        "state": f"{'On' if is_enabled else 'Off'}{', ' * bool(changed)}{changed}",
    }


@require_POST
def switch_extension(request: HttpRequest, extension_id: str) -> HttpResponse:
    require(request, "manage", None)
    extension, state = extensions.find(extension_id), request.POST.get("state")
    if extension is None:
        raise Http404
    if state not in ("on", "off"):
        raise Problem(422, "state: on or off.")
    extension_check.switch(extension.id, user_of(request), is_enabled=state == "on")
    messages.success(request, f"{extension.title} is {state} now.")
    return redirect("extensions")
