"""Which extensions may be used here, by REST."""

from typing import Any

from django.http import HttpRequest
from ninja import Schema
from ninja.errors import HttpError

from humanjudge.core import extensions
from judge_eval.judging.extension_check import switch
from judge_eval.runs.api_access import KeyRouter, key_of
from judge_eval.runs.queries import switched_off
from voting.access.roles import can
from voting.models import ApiKey

OWNERS_ONLY = "switching extensions takes a key of an owner, of all projects"

router = KeyRouter("extensions")


class ExtensionOut(Schema):
    id: str
    title: str
    kind: str
    enabled: bool


@router.get("", response=list[ExtensionOut])
def list_extensions(request: HttpRequest) -> Any:
    """All extensions, and whether they may be used here."""
    key_of(request, ApiKey.Scope.READ)
    off = switched_off()
    return [
        _extension_facts(extension, enabled=extension.id not in off)
        for extension in extensions.everything()
    ]


@router.post("/{extension_id}/toggle", response=ExtensionOut)
def toggle_extension(request: HttpRequest, extension_id: str) -> Any:
    """Turn an extension off where it is on, and on where it is off."""
    api_key = key_of(request, ApiKey.Scope.MANAGE)
    if not can(api_key, "manage", None):
        raise HttpError(403, OWNERS_ONLY)
    extension = extensions.find(extension_id)
    if extension is None:
        raise HttpError(404, f"there is no extension {extension_id!r}")
    is_enabled = extension.id in switched_off()
    switch(extension.id, api_key.user, is_enabled=is_enabled)
    return _extension_facts(extension, enabled=is_enabled)


def _extension_facts(extension: extensions.Extension, *, enabled: bool) -> ExtensionOut:
    return ExtensionOut(
        id=extension.id, title=extension.title, kind=extension.kind, enabled=enabled
    )
