"""The admin of voting: who may do what, vote, and with what. The ledger can only be read here."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.forms import (
    BaseForm,
    CheckboxSelectMultiple,
    ModelChoiceField,
    ModelForm,
    MultipleChoiceField,
)
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from voting.access.changes import record_queues
from voting.access.keys import create_key
from voting.ballot.services import record_exposure
from voting.ballot.tuning import HIDDEN
from voting.items.choices import CHOICES, LABELS, Choice, in_order
from voting.items.kinds import COMPARISON, kind_of
from voting.models import (
    ApiKey,
    Entry,
    Flag,
    Identity,
    Inference,
    Invite,
    Item,
    Member,
    Picture,
    Project,
    Queue,
    Voter,
    VoterPrompt,
)
from voting.people.forms import GroupField
from voting.people.voters import erase, invite_token, voter_of_user

admin.site.site_header = admin.site.site_title = "HumanJudge"
admin.site.index_title = "Admin"


def do_for_each(
    page: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    selection: QuerySet[Any],
    do: Callable[[Any], object],
    form: BaseForm | None = None,
    **words: str,
) -> HttpResponse | None:
    """Ask before what cannot be undone, and do it once that is confirmed.

    `do` returns False where it could not be done, and `form` is filled in on the page that asks.
    """
    rows = list(selection)
    if request.POST.get("confirmed") != "yes" or (form and not form.is_valid()):
        details = {"title": words["title"], "about": words, "rows": rows, "opts": page.opts}
        details |= {"media": page.media, "form": form}
        context = page.admin_site.each_context(request) | details
        return TemplateResponse(request, "voting/curating/admin_confirm.html", context)
    done_rows = [row for row in rows if do(row) is not False]
    for row in done_rows:
        row.refresh_from_db()  # the history must not name who was just forgotten
        page.log_change(request, row, f"{words['done']}.")
    page.message_user(request, f"{words['done']}: {len(done_rows)}.")
    return None


class FirstPages(Paginator):  # type: ignore[type-arg]
    """Counts so far and no further: a million rows are searched, and never leafed through."""

    MOST = 10_000

    @cached_property
    def count(self) -> int:
        return cast("QuerySet[Any]", self.object_list).order_by()[: self.MOST].count()


class ListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list whose cost does not grow with it."""

    paginator = FirstPages
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        try:
            return super().get_changelist_instance(request)
        except OverflowError as error:  # a year of twenty digits
            raise IncorrectLookupParameters from error


class KeptAdmin(ListAdmin):
    """Rows that the ledger refers to: they are changed or withdrawn, never deleted."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UnmakeableAdmin(KeptAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class ReadOnlyAdmin(UnmakeableAdmin):
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class SeenAdmin(ReadOnlyAdmin):
    """Rows with a vote, or with a verdict; the list has neither.

    A later vote of who has read one is not blind. Those on items that are held out while judges are
    tuned are not there.
    """

    hidden = HIDDEN

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).exclude(self.hidden)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        # Of a call, that of its verdict.
        item = getattr(getattr(row, "verdict", row), "item", None)
        if item is not None:
            voter = voter_of_user(item.queue.project, cast(User, request.user))
            record_exposure(voter.pk, [item.pk], timezone.now())
        return row


@admin.register(VoterPrompt)
class VoterPromptAdmin(KeptAdmin):
    list_display = ("name", "version", "project", "created_at")
    list_filter = ("project",)
    list_select_related = ("project",)
    search_fields = ("name", "text")
    autocomplete_fields = ("project",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # A version that was shown never changes: add the next one instead.
        return ("project", "name", "version", "text", "created_at") if obj else ()


class QueueForm(ModelForm):  # type: ignore[type-arg]
    ballot = MultipleChoiceField(
        choices=[(choice, LABELS[choice]) for choice in CHOICES],
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

    def clean_ballot(self) -> list[Choice]:
        choices = self.cleaned_data["ballot"]
        if not set(kind_of(self.instance).required) <= set(choices):
            raise ValidationError("A ballot without A and B cannot be voted with.")
        return in_order(choices)


@admin.register(Queue)
class QueueAdmin(UnmakeableAdmin):
    form = QueueForm
    list_display = ("name", "project", "kind", "votes_per_item", "done", "reveal", "is_open")
    list_filter = ("is_open", "kind", "is_simulated", "project")
    search_fields = ("name", "project__name")
    ordering = ("name", "created_at")
    date_hierarchy = "created_at"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fields = ("project", "kind", *QueueForm.Meta.fields, "done", "created_at")
        # A ballot of single items is settled when the queue is made.
        is_settled = obj is not None and kind_of(obj) is not COMPARISON
        return tuple(name for name in fields if name != "ballot" or not is_settled)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # How many votes it wants is settled when it is made.
        has_pairs = obj is not None and obj.items.exists()
        settled = QueueForm.Meta.settled if has_pairs else ()
        return ("project", "kind", "done", "created_at", *settled)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Queue]:
        # Its name says its project, where it is chosen too.
        return super().get_queryset(request).select_related("project")

    def save_model(self, request: HttpRequest, obj: Queue, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        record_queues(Queue.objects.filter(pk=obj.pk))

    def view_on_site(self, queue: Queue) -> str:
        return reverse("vote", args=[queue.pk])


class InviteAdminForm(ModelForm):  # type: ignore[type-arg]
    group = GroupField(help_text="Whoever joins by it and has no group yet belongs to this one.")

    class Meta:
        model = Invite
        fields = ("queue", "label", "group", "expires_at", "revoked_at", "max_voters")


@admin.register(Invite)
class InviteAdmin(ListAdmin):
    form = InviteAdminForm
    list_display = ("__str__", "queue", "group", "link", "expires_at", "revoked_at", "max_voters")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "queue__project")
    list_select_related = ("queue__project",)
    search_fields = ("label", "group", "queue__name")
    date_hierarchy = "created_at"
    autocomplete_fields = ("queue",)
    readonly_fields = ("link", "created_at")

    @admin.display(description="link")
    def link(self, invite: Invite) -> str:
        return reverse("join", args=[invite_token(invite)])


class VoterForm(ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Voter
        fields = ("name", "reputation", "blocked_at")
        help_texts = {
            "reputation": "Weight of each vote in a quality score, in millionths: "
            "1000000 is the weight 1, 500000 counts half as much."
        }


@admin.register(Voter)
class VoterAdmin(UnmakeableAdmin):
    list_display = (
        *("pseudonym", "name", "project", "group"),
        *("reputation", "blocked_at", "created_at"),
    )
    list_filter = (("blocked_at", admin.EmptyFieldListFilter), "project")
    list_select_related = ("project",)
    search_fields = ("pseudonym", "name", "external_id", "group")
    form = VoterForm
    readonly_fields = (
        *("pseudonym", "project", "group", "external_id"),
        *("invite", "user", "api_key", "created_at"),
    )
    fields = (*readonly_fields[:2], "name", "reputation", "blocked_at", *readonly_fields[2:])
    actions = ("erase",)

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
        *("name", "kind", "prefix", "scopes", "project", "user"),
        *("last_used_at", "expires_at", "revoked_at"),
    )
    list_filter = ("kind", ("revoked_at", admin.EmptyFieldListFilter), "project")
    list_select_related = ("project", "user")
    search_fields = ("name", "prefix", "user__username")
    autocomplete_fields = ("project",)
    readonly_fields = ("kind", "prefix", "user", "created_at", "last_used_at")

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        new_key, key = create_key(obj.name, obj.scopes, obj.project, obj.expires_at)
        obj.key = key  # type: ignore[attr-defined]
        obj.pk = new_key.pk

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key in this answer alone: a message would take it through a cookie."""
        context = self.admin_site.each_context(request) | {
            "title": "The new key",
            "made": obj,
            "opts": self.opts,
        }
        return TemplateResponse(request, "voting/curating/admin_key.html", context)


class MembersInline(admin.TabularInline):  # type: ignore[type-arg]
    """Who is in it, with which role; owners and superusers change that on the project's page."""

    model = Member
    readonly_fields = ("project", "user", "role", "created_at")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("user" if self.parent_model is Project else "project", "role", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Member]:
        return super().get_queryset(request).select_related("project", "user")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


@admin.register(Project)
class ProjectAdmin(KeptAdmin):
    list_display = ("name", "head_seq", "created_at")
    search_fields = ("name",)
    ordering = ("name", "created_at")
    date_hierarchy = "created_at"
    readonly_fields = ("id", "head_seq", "ledger_head", "created_at")
    inlines = (MembersInline,)

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        record_queues(obj.queues.all())


class IdentityInline(admin.TabularInline):  # type: ignore[type-arg]
    """Who the identity provider says they are: an account that administers is linked here alone."""

    model = Identity
    fields = ("issuer", "subject", "created_at")
    readonly_fields = ("created_at",)
    extra = 0


admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    inlines = (MembersInline, IdentityInline)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        # The audit would lose what they changed: whoever leaves is set inactive instead.
        if obj and LogEntry.objects.filter(user=obj).exists():
            return False
        return super().has_delete_permission(request, obj)


@admin.register(Flag)
class FlagAdmin(ReadOnlyAdmin):
    list_display = ("category", "item", "voter", "comment", "created_at")
    list_filter = ("category", "item__queue__project")
    list_select_related = ("item", "voter")
    search_fields = ("comment", "voter__name", "voter__pseudonym")
    date_hierarchy = "created_at"


@admin.register(Entry)
class EntryAdmin(SeenAdmin):
    list_display = ("seq", "kind", "at", "project", "voter", "retracted", "excluded")
    list_filter = ("kind", "retracted", "excluded", "simulated", "project")
    list_select_related = ("project", "voter")
    search_fields = ("uid", "voter__pseudonym", "voter__name", "queue__name")
    readonly_fields = ("uid", "sealed_as")
    exclude = ("salt",)
    ordering = ("-id",)

    @admin.display(description="hash")
    def sealed_as(self, entry: Entry) -> str:
        return bytes(entry.hash).hex() if entry.hash else "not sealed yet"


@admin.register(Item)
class ItemAdmin(ReadOnlyAdmin):
    list_display = ("id", "queue", "position", "votes", "votes_wanted", "opened_at", "unusable")
    list_filter = (("unusable", admin.EmptyFieldListFilter), "queue__kind", "queue__project")
    list_select_related = ("queue__project",)
    search_fields = ("id", "external_id", "prompt_key", "queue__name")


@admin.register(Inference)
class InferenceAdmin(ReadOnlyAdmin):
    list_display = ("id", "project", "generator", "kind", "created_at")
    list_filter = ("kind", "project")
    list_select_related = ("project",)
    search_fields = ("id", "generator", "prompt")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Inference]:
        # A page of outputs would be megabytes.
        return super().get_queryset(request).defer("output", "prompt")


@admin.register(Picture)
class PictureAdmin(ReadOnlyAdmin):
    list_display = ("source_sha256", "state", "renderer", "width", "height", "error")
    list_filter = ("state", "is_refused")
    search_fields = ("source_sha256", "png_sha256", "error")
