"""The admin of voting: who may vote and with what. The ledger can only be read here."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import CheckboxSelectMultiple, ModelChoiceField, ModelForm, MultipleChoiceField
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from voting import models
from voting.choices import Choice, in_order
from voting.curating import decisions_on_voters, exclude_voter
from voting.forms import GroupField
from voting.keys import create_key
from voting.kinds import COMPARISON, kind_of
from voting.models import ApiKey, Entry, Invite, Queue, Voter, VoterPrompt
from voting.voters import erase, invite_token, voter_of_user, withdraw

admin.site.site_header = admin.site.site_title = "HumanJudge"
admin.site.index_title = "Admin"


def do_for_each(
    page: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    chosen: QuerySet[Any],
    do: Callable[[Any], None],
    **words: str,
) -> HttpResponse | None:
    """Ask before what cannot be undone, and do it once that is confirmed."""
    rows = list(chosen)
    if request.POST.get("confirmed") != "yes":
        own = {"title": words["title"], "about": words, "rows": rows, "opts": page.opts}
        context = page.admin_site.each_context(request) | own | {"media": page.media}
        return TemplateResponse(request, "voting/admin_confirm.html", context)
    for row in rows:
        do(row)
        row.refresh_from_db()  # the history must not name who was just forgotten
        page.log_change(request, row, f"{words['done']}.")
    page.message_user(request, f"{words['done']}: {len(rows)}.")
    return None


class KeptAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that the ledger refers to: they are changed or withdrawn, never deleted."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UnmakeableAdmin(KeptAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class ReadOnlyAdmin(UnmakeableAdmin):
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(VoterPrompt)
class VoterPromptAdmin(KeptAdmin):
    list_display = ("name", "version", "project", "created_at")
    list_select_related = ("project",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # A version that was shown never changes: add the next one instead.
        return ("project", "name", "version", "text", "created_at") if obj else ()


class QueueForm(ModelForm):  # type: ignore[type-arg]
    ballot = MultipleChoiceField(
        choices=COMPARISON.labels.items(),
        widget=CheckboxSelectMultiple,
        help_text="What voters are offered: A and B always.",
    )

    class Meta:
        model = Queue
        settled = ("votes_per_item", "overlap_share", "overlap_votes")
        fields = ("name", "rubric", "ballot", *settled, "reveal", "is_open")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rubrics = VoterPrompt.objects.filter(project=self.instance.project_id)
        cast("ModelChoiceField[VoterPrompt]", self.fields["rubric"]).queryset = rubrics
        if kind_of(self.instance) is not COMPARISON:
            del self.fields["ballot"]  # settled when the queue is made

    def clean_ballot(self) -> list[Choice]:
        chosen = self.cleaned_data["ballot"]
        if not set(kind_of(self.instance).required) <= set(chosen):
            raise ValidationError("A ballot without A and B cannot be voted with.")
        return in_order(chosen)


@admin.register(Queue)
class QueueAdmin(UnmakeableAdmin):
    form = QueueForm
    list_display = ("name", "project", "votes_per_item", "reveal", "is_open")
    list_select_related = ("project",)
    fields = ("project", *QueueForm.Meta.fields, "created_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # How many votes it wants is settled when it is made.
        has_pairs = obj is not None and obj.items.exists()
        return ("project", "created_at", *(QueueForm.Meta.settled if has_pairs else ()))


class InviteForm(ModelForm):  # type: ignore[type-arg]
    group = GroupField(help_text="Whoever joins by it and has no group yet belongs to this one.")

    class Meta:
        model = Invite
        fields = ("queue", "label", "group", "expires_at", "revoked_at", "max_voters")


@admin.register(Invite)
class InviteAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = InviteForm
    list_display = ("__str__", "queue", "link", "expires_at", "revoked_at", "max_voters")
    list_select_related = ("queue__project",)
    readonly_fields = ("link", "created_at")
    actions = ("revoke",)

    @admin.display(description="link")
    def link(self, invite: Invite) -> str:
        return reverse("join", args=[invite_token(invite)])

    @admin.action(description="Withdraw the selected invites", permissions=["change"])
    def revoke(self, request: HttpRequest, invites: QuerySet[Invite]) -> HttpResponse | None:
        return do_for_each(
            self,
            request,
            invites.filter(revoked_at__isnull=True).select_related("queue__project"),
            withdraw,
            action="revoke",
            title="Withdraw invites",
            warning="Nobody new gets in by these links any more, and this cannot be undone. "
            "Whoever is in already may go on voting.",
            button="Withdraw them",
            done="Withdrawn",
        )


class VoterForm(ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Voter
        fields = ("name", "reputation", "blocked_at")
        help_texts = {
            "reputation": "Weight of each vote in a quality score, in millionths: "
            "1000000 is the weight 1, 500000 counts half as much."
        }


def exclude_everywhere(voter: Voter, by: User) -> None:
    """Exclude a voter, as somebody with a login does, from all queues that they have voted in."""
    curator = voter_of_user(voter.project, by)
    votes = Entry.objects.filter(voter=voter, kind=Entry.Kind.VOTE)
    for queue in Queue.objects.filter(pk__in=votes.values("queue")):
        latest = decisions_on_voters(queue).filter(voter=voter).first()
        if latest is None or (latest.payload or {}).get("action") != "exclude":
            exclude_voter(voter.pk, queue, curator, after=latest.uid if latest else None)


@admin.register(Voter)
class VoterAdmin(UnmakeableAdmin):
    list_display = ("pseudonym", "name", "project", "reputation", "blocked_at", "created_at")
    list_select_related = ("project",)
    form = VoterForm
    fields = ("pseudonym", "name", "project", "reputation", "blocked_at", "created_at")
    readonly_fields = ("pseudonym", "project", "created_at")
    actions = ("exclude_them", "erase")

    @admin.action(description="Exclude the votes of the selected people", permissions=["change"])
    def exclude_them(self, request: HttpRequest, voters: QuerySet[Voter]) -> HttpResponse | None:
        return do_for_each(
            self,
            request,
            voters.select_related("project"),
            lambda voter: exclude_everywhere(voter, cast(User, request.user)),
            action="exclude_them",
            title="Exclude people",
            warning="Their votes leave every figure of every run in which they have voted. It is "
            "in the ledger, and can be taken back on a run's page People.",
            button="Exclude them",
            done="Excluded",
        )

    @admin.action(
        description="Erase the selected people (their votes stay, without a name)",
        permissions=["change"],
    )
    def erase(self, request: HttpRequest, voters: QuerySet[Voter]) -> HttpResponse | None:
        return do_for_each(
            self,
            request,
            voters,
            erase,
            action="erase",
            title="Erase people",
            warning="Names, comments and every way from these people to their pseudonyms are "
            "forgotten, and they may vote no more. Their votes stay. This cannot be undone.",
            button="Erase them",
            done="Erased",
        )


class ApiKeyForm(ModelForm):  # type: ignore[type-arg]
    scopes = MultipleChoiceField(choices=ApiKey.Scope.choices)

    class Meta:
        model = ApiKey
        fields = ("name", "scopes", "project", "expires_at", "revoked_at")


@admin.register(ApiKey)
class ApiKeyAdmin(KeptAdmin):
    form = ApiKeyForm
    list_display = (
        *("name", "kind", "prefix", "scopes", "project"),
        *("last_used_at", "expires_at", "revoked_at"),
    )
    list_filter = ("kind",)
    list_select_related = ("project",)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        made, key = create_key(obj.name, obj.scopes, obj.project, obj.expires_at)
        obj.shown_once = key  # type: ignore[attr-defined]
        obj.pk = made.pk

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key in this answer alone: a message would take it through a cookie."""
        context = self.admin_site.each_context(request) | {
            "title": "The new key",
            "made": obj,
            "opts": self.opts,
        }
        return TemplateResponse(request, "voting/admin_key.html", context)


admin.site.register(
    models.Project,
    KeptAdmin,
    list_display=("name", "head_seq", "created_at"),
    readonly_fields=("id", "head_seq", "head", "created_at"),
)
admin.site.register(
    models.Flag,
    ReadOnlyAdmin,
    list_display=("category", "item", "voter", "comment", "created_at"),
    list_filter=("category",),
    list_select_related=("item", "voter"),
)
admin.site.register(
    models.Entry,
    ReadOnlyAdmin,
    list_display=("seq", "kind", "at", "project", "voter", "choice", "retracted"),
    list_filter=("kind",),
    list_select_related=("project", "voter"),
    ordering=("-id",),
    show_full_result_count=False,
)
admin.site.register(
    models.Item,
    ReadOnlyAdmin,
    list_display=("id", "queue", "position", "votes", "votes_wanted", "opened_at", "unusable"),
    list_select_related=("queue__project",),
)
admin.site.register(
    models.Inference,
    ReadOnlyAdmin,
    list_display=("id", "generator", "kind", "created_at"),
    list_filter=("kind",),
)
admin.site.register(
    models.Picture,
    ReadOnlyAdmin,
    list_display=("source_sha256", "state", "renderer", "width", "height", "error"),
    list_filter=("state",),
)
