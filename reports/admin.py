"""The admin of reports: what waits for a curator, with the decisions that its own pages offer."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from reports.models import (
    Benchmark,
    CompositeDefinition,
    Delivery,
    Enrollment,
    PublishedHead,
    Quality,
    Review,
    ScoreReport,
    Share,
    Trace,
    TracedModel,
    Webhook,
)
from reports.review import services
from voting.access.roles import can_anywhere, projects_where
from voting.admin import ReadOnlyAdmin, do_for_each
from voting.ballot.tuning import HIDDEN, OF_TUNED
from voting.curating.services import AlreadyDecided, CannotDecide, decisions_on
from voting.ledger.decisions import Action
from voting.models import Entry, Voter
from voting.people.voters import voter_of_user


class SendBackForm(forms.Form):
    voter = forms.ModelChoiceField(Voter.objects.none())
    why = forms.CharField(
        label="What the voter reads", max_length=services.LONGEST_WHY, widget=forms.Textarea
    )


@admin.register(Review)
class ReviewAdmin(ReadOnlyAdmin):
    list_display = ("page", "project", "flags", "category", "variance", "decided", "waits", "since")
    list_display_links = None
    list_filter = ("waits", "decided", "category", "item__queue__kind", "project")
    list_select_related = ("project", "item__queue")
    search_fields = ("item__id", "item__external_id", "item__queue__name")
    ordering = ("-waits", "since")
    actions = ("keep_them", "exclude_them", "ask_again", "send_back")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Review]:
        return super().get_queryset(request).exclude(HIDDEN)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return can_anywhere(request.user, "decide")

    @admin.display(description="item")
    def page(self, review: Review) -> str:
        address = reverse("review-item", args=[review.item_id])
        words = f"{review.item.queue.name}: item {review.item.position + 1}"
        return format_html('<a href="{}">{}</a>', address, words)

    @admin.action(description="Keep the selected items", permissions=["decide"])
    def keep_them(self, request: HttpRequest, reviews: QuerySet[Review]) -> HttpResponse | None:
        return self._decide(request, reviews, "keep", "Kept", "Their votes count on.")

    @admin.action(description="Exclude the selected items from the scores", permissions=["decide"])
    def exclude_them(self, request: HttpRequest, reviews: QuerySet[Review]) -> HttpResponse | None:
        warning = "Their votes leave every score and nobody is handed them."
        return self._decide(request, reviews, "exclude", "Excluded", warning)

    @admin.action(description="Ask for another round of votes", permissions=["decide"])
    def ask_again(self, request: HttpRequest, reviews: QuerySet[Review]) -> HttpResponse | None:
        warning = "Each wants as many votes again as its queue asks for."
        return self._decide(request, reviews, "another_round", "Sent into another round", warning)

    @admin.action(description="Send back to a voter", permissions=["decide"])
    def send_back(self, request: HttpRequest, reviews: QuerySet[Review]) -> HttpResponse | None:
        form = SendBackForm(request.POST if "confirmed" in request.POST else None)
        projects = projects_where(request.user, "decide")
        votes = Entry.objects.filter(kind=Entry.Kind.VOTE, retracted=False, project__in=projects)
        voters = votes.filter(item__in=reviews.values("item")).values("voter")
        cast(Any, form.fields["voter"]).queryset = Voter.objects.filter(pk__in=voters)
        warning = "The voter reads your words beside each item. The new answer is not blind."
        return self._decide(request, reviews, "send_back", "Sent back", warning, form)

    def _decide(
        self,
        request: HttpRequest,
        reviews: QuerySet[Review],
        action: Action,
        done: str,
        warning: str,
        form: SendBackForm | None = None,
    ) -> HttpResponse | None:
        def decide(review: Review) -> bool:
            latest = decisions_on(review.item_id).values_list("uid", flat=True).first()
            curator = voter_of_user(review.project, cast(User, request.user))
            reason, voter = "", None
            if form:
                reason, voter = form.cleaned_data["why"], form.cleaned_data["voter"].pk
            try:
                services.decide(review.item, action, curator, reason, after=latest, voter=voter)
            except (AlreadyDecided, CannotDecide) as error:
                self.message_user(request, f"{self.page(review)}: {error}", level="error")
                return False
            return True

        return do_for_each(
            self,
            request,
            reviews.filter(
                waits=True, project__in=projects_where(request.user, "decide")
            ).select_related("project", "item__queue__project"),
            decide,
            form,
            action=request.POST["action"],
            title=f"{done}: is that right?",
            warning=f"{warning} It is in the ledger, and can be reversed on the item's page.",
            button="Decide so",
            done=done,
        )


class RowAdmin(ReadOnlyAdmin):
    # Rows that would tell votes which are held out while judges are tuned.
    hidden = Q()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).exclude(self.hidden)
        return rows.defer(*(self.exclude or ()))


def listed(
    model: type[models.Model],
    columns: Sequence[Any],
    page: Callable[[Any], str] | None = None,
    **options: Any,
) -> None:
    """List rows that are only read; `page` is the page of the site that one leads to."""
    related = [field.name for field in model._meta.fields if field.is_relation]
    options = {"list_select_related": [name for name in columns if name in related]} | options
    options |= {"list_display": columns, "view_on_site": staticmethod(page) if page else False}
    admin.register(model)(type(f"{model.__name__}Admin", (RowAdmin,), options))


@admin.display(ordering="enrollment__model__name")
def logged_by(trace: Trace) -> str:
    return trace.enrollment.model.name


listed(
    Share,
    (
        *("__str__", "prefix", "project", "run", "made_by", "made_at"),
        *("expires_at", "revoked_at", "views", "viewed_at"),
    ),
    lambda share: share.page,
    list_filter=("is_public", ("revoked_at", admin.EmptyFieldListFilter), "project"),
    search_fields=("label", "prefix", "run__name"),
    date_hierarchy="made_at",
    exclude=("frozen", "token_sha256"),
    ordering=("-made_at",),
)
listed(
    CompositeDefinition,
    ("run", "version", "created_at"),
    lambda composite: reverse("run-composite", args=[composite.run_id]),
    search_fields=("run__name", "version"),
    date_hierarchy="created_at",
)
listed(
    ScoreReport,
    ("run", "state", "error", "size", "attempts", "requested_at", "done_at"),
    lambda report: reverse("run-scores", args=[report.run_id]),
    list_filter=("state",),
    search_fields=("run__name", "error"),
    date_hierarchy="requested_at",
    exclude=("table",),
)
listed(
    Quality,
    ("project", "series", "score", "freshness", "votes", "passes", "last_vote_at"),
    lambda quality: reverse("project-quality", args=[quality.project_id]),
    list_filter=("series",),
    search_fields=("project__name",),
    exclude=("standing",),
    hidden=OF_TUNED,
)
listed(
    Benchmark,
    ("project", "slug", "is_open", "owner"),
    lambda benchmark: reverse("traced-models"),
    list_filter=("is_open",),
    search_fields=("project__name", "slug"),
)
listed(
    TracedModel,
    ("name", "slug", "project", "owner", "type", "created_at"),
    lambda model: reverse("traced-models"),
    list_filter=("type", "project"),
    search_fields=("name", "slug", "owner__username"),
    date_hierarchy="created_at",
)
listed(
    Enrollment,
    ("model", "benchmark", "created_at"),
    list_select_related=("model", "benchmark__project"),
    search_fields=("model__name", "benchmark__slug"),
)
listed(
    Trace,
    ("trace_id", logged_by, "item"),
    lambda trace: reverse("review-item", args=[trace.item_id]),
    list_select_related=("enrollment__model", "item"),
    search_fields=("trace_id", "enrollment__model__name"),
)
listed(
    PublishedHead,
    ("project", "seq", "head", "at"),
    list_filter=("project",),
    readonly_fields=("head",),
    ordering=("-at",),
)
listed(
    Webhook,
    ("url", "project", "events", "is_active", "created_at"),
    list_filter=("is_active", "project"),
)
listed(
    Delivery,
    ("event", "webhook", "state", "tries", "status", "made_at", "next_try_at"),
    list_filter=("state", "event"),
    ordering=("-made_at",),
)
