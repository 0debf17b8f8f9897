"""The back office of voting: who may vote and with what. The ledger can only be read here."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm, MultipleChoiceField
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from voting.keys import create_key
from voting.models import (
    ApiKey,
    Comparison,
    Entry,
    Flag,
    Inference,
    Invite,
    Picture,
    Project,
    Queue,
    Voter,
    VoterPrompt,
)
from voting.voters import erase, invite_token

admin.site.site_header = admin.site.site_title = "HumanJudge"
admin.site.index_title = "Back office"


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that only the product itself writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class KeptAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that the ledger refers to: they are changed or withdrawn, never deleted."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Project)
class ProjectAdmin(KeptAdmin):
    list_display = ("name", "head_seq", "created_at")
    readonly_fields = ("id", "head_seq", "head", "created_at")


@admin.register(VoterPrompt)
class VoterPromptAdmin(KeptAdmin):
    list_display = ("name", "version", "project", "created_at")
    list_select_related = ("project",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # A version that was shown never changes: add the next one instead.
        return ("project", "name", "version", "text", "created_at") if obj else ()


@admin.register(Queue)
class QueueAdmin(KeptAdmin):
    list_display = ("name", "project", "votes_per_item", "reveal", "is_open")
    list_select_related = ("project",)
    readonly_fields = ("project", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(Invite)
class InviteAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("__str__", "queue", "link", "expires_at", "revoked_at", "max_voters")
    list_select_related = ("queue",)
    readonly_fields = ("link", "created_at")
    actions = ("revoke",)

    @admin.display(description="link")
    def link(self, invite: Invite) -> str:
        return reverse("join", args=[invite_token(invite)])

    @admin.action(description="Withdraw the selected invites")
    def revoke(self, request: HttpRequest, invites: QuerySet[Invite]) -> None:
        invites.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())


@admin.register(Voter)
class VoterAdmin(KeptAdmin):
    list_display = ("pseudonym", "name", "project", "reputation", "blocked_at", "created_at")
    list_select_related = ("project",)
    fields = ("pseudonym", "name", "project", "reputation", "blocked_at", "created_at")
    readonly_fields = ("pseudonym", "project", "created_at")
    actions = ("erase",)

    @admin.action(description="Erase the selected people (their votes stay, without a name)")
    def erase(self, request: HttpRequest, voters: QuerySet[Voter]) -> None:
        for voter in voters:
            erase(voter)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class ApiKeyForm(ModelForm):  # type: ignore[type-arg]
    scopes = MultipleChoiceField(choices=ApiKey.Scope.choices)

    class Meta:
        model = ApiKey
        fields = ("name", "scopes", "project", "expires_at", "revoked_at")


@admin.register(ApiKey)
class ApiKeyAdmin(KeptAdmin):
    form = ApiKeyForm
    list_display = ("name", "prefix", "scopes", "project", "expires_at", "revoked_at")
    list_select_related = ("project",)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        made, key = create_key(obj.name, obj.scopes, obj.project, obj.expires_at)
        obj.pk = made.pk
        messages.warning(request, f"The key, shown only this once: {key}")


@admin.register(Flag)
class FlagAdmin(ReadOnlyAdmin):
    list_display = ("category", "comparison", "voter", "comment", "created_at")
    list_filter = ("category",)
    list_select_related = ("comparison", "voter")


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    list_display = ("seq", "kind", "at", "project", "voter", "choice", "retracted")
    list_filter = ("kind",)
    list_select_related = ("project", "voter")
    ordering = ("-id",)
    show_full_result_count = False


@admin.register(Comparison)
class ComparisonAdmin(ReadOnlyAdmin):
    list_display = ("id", "queue", "position", "votes", "votes_wanted", "opened_at", "unusable")
    list_select_related = ("queue",)


@admin.register(Inference)
class InferenceAdmin(ReadOnlyAdmin):
    list_display = ("id", "generator", "kind", "created_at")
    list_filter = ("kind",)


@admin.register(Picture)
class PictureAdmin(ReadOnlyAdmin):
    list_display = ("source_sha256", "state", "renderer", "width", "height", "error")
    list_filter = ("state",)
