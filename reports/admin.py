"""The admin of reports: what waits for a curator, with the decisions that its own pages offer."""

from typing import cast

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
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
from voting.access import can_anywhere, projects_where
from voting.admin import ReadOnlyAdmin, do_for_each
from voting.curating import AlreadyDecided, CannotDecide, decisions_on
from voting.ledger.decisions import Action
from voting.voters import voter_of_user


@admin.register(Review)
class ReviewAdmin(ReadOnlyAdmin):
    list_display = ("page", "project", "flags", "category", "variance", "decided", "waits", "since")
    list_display_links = None
    list_filter = ("waits", "decided", "category", "item__queue__kind", "project")
    list_select_related = ("project", "item__queue")
    search_fields = ("item__id", "item__external_id", "item__queue__name")
    ordering = ("-waits", "since")
    actions = ("keep_them", "exclude_them", "ask_again")

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return can_anywhere(request.user, "decide")

    @admin.display(description="item")
    def page(self, review: Review) -> str:
        where = reverse("review-item", args=[review.item_id])
        words = f"{review.item.queue.name}: item {review.item.position + 1}"
        return format_html('<a href="{}">{}</a>', where, words)

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

    def _decide(
        self,
        request: HttpRequest,
        reviews: QuerySet[Review],
        action: Action,
        done: str,
        warning: str,
    ) -> HttpResponse | None:
        def decide(review: Review) -> None:
            latest = decisions_on(review.item_id).values_list("uid", flat=True).first()
            curator = voter_of_user(review.project, cast(User, request.user))
            try:
                services.decide(review.item, action, curator, "", after=latest)
            except (AlreadyDecided, CannotDecide) as error:
                self.message_user(request, f"{self.page(review)}: {error}", level="error")

        return do_for_each(
            self,
            request,
            reviews.filter(
                waits=True, project__in=projects_where(request.user, "decide")
            ).select_related("project", "item__queue__project"),
            decide,
            action=request.POST["action"],
            title=f"{done}: is that right?",
            warning=f"{warning} It is in the ledger, and can be reversed on the item's page.",
            button="Decide so",
            done=done,
        )


@admin.register(Share)
class ShareAdmin(ReadOnlyAdmin):
    list_display = (
        *("__str__", "prefix", "project", "run", "made_by", "made_at"),
        *("expires_at", "revoked_at", "views", "viewed_at"),
    )
    list_filter = ("is_public", ("revoked_at", admin.EmptyFieldListFilter), "project")
    list_select_related = ("project", "run", "made_by")
    search_fields = ("label", "prefix", "run__name")
    date_hierarchy = "made_at"
    exclude = ("frozen", "token_sha256")
    ordering = ("-made_at",)

    def view_on_site(self, share: Share) -> str:
        name, of = ("run", share.run_id) if share.run_id else ("project", share.project_id)
        return reverse(f"{name}-shares", args=[of])


@admin.register(CompositeDefinition)
class CompositeAdmin(ReadOnlyAdmin):
    list_display = ("run", "version", "created_at")
    list_select_related = ("run",)
    search_fields = ("run__name", "version")
    date_hierarchy = "created_at"

    def view_on_site(self, composite: CompositeDefinition) -> str:
        return reverse("run-composite", args=[composite.run_id])


@admin.register(ScoreReport)
class ScoreReportAdmin(ReadOnlyAdmin):
    list_display = ("run", "state", "error", "size", "attempts", "requested_at", "done_at")
    list_filter = ("state",)
    list_select_related = ("run",)
    search_fields = ("run__name", "error")
    date_hierarchy = "requested_at"
    exclude = ("table",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScoreReport]:
        return super().get_queryset(request).defer("table")

    def view_on_site(self, report: ScoreReport) -> str:
        return reverse("run-scores", args=[report.run_id])


@admin.register(Quality)
class QualityAdmin(ReadOnlyAdmin):
    list_display = ("project", "series", "score", "freshness", "votes", "passes", "last_vote_at")
    list_filter = ("series",)
    list_select_related = ("project",)
    search_fields = ("project__name",)
    exclude = ("standing",)

    def view_on_site(self, quality: Quality) -> str:
        return reverse("project-quality", args=[quality.project_id])


@admin.register(Benchmark)
class BenchmarkAdmin(ReadOnlyAdmin):
    list_display = ("project", "slug", "is_open", "owner")
    list_filter = ("is_open",)
    list_select_related = ("project", "owner")
    search_fields = ("project__name", "slug")

    def view_on_site(self, benchmark: Benchmark) -> str:
        return reverse("traced-models")


@admin.register(TracedModel)
class TracedModelAdmin(ReadOnlyAdmin):
    list_display = ("name", "slug", "project", "owner", "type", "created_at")
    list_filter = ("type", "project")
    list_select_related = ("project", "owner")
    search_fields = ("name", "slug", "owner__username")
    date_hierarchy = "created_at"

    def view_on_site(self, model: TracedModel) -> str:
        return reverse("traced-models")


@admin.register(Enrollment)
class EnrollmentAdmin(ReadOnlyAdmin):
    list_display = ("model", "benchmark", "created_at")
    list_select_related = ("model", "benchmark__project")
    search_fields = ("model__name", "benchmark__slug")


@admin.register(Trace)
class TraceAdmin(ReadOnlyAdmin):
    list_display = ("trace_id", "logged_by", "item")
    list_select_related = ("enrollment__model", "item")
    search_fields = ("trace_id", "enrollment__model__name")

    @admin.display(ordering="enrollment__model__name")
    def logged_by(self, trace: Trace) -> str:
        return trace.enrollment.model.name

    def view_on_site(self, trace: Trace) -> str:
        return reverse("review-item", args=[trace.item_id])


@admin.register(PublishedHead)
class PublishedHeadAdmin(ReadOnlyAdmin):
    list_display = ("project", "seq", "head", "at")
    list_filter = ("project",)
    list_select_related = ("project",)
    readonly_fields = ("head",)
    ordering = ("-at",)

    def head(self, row: PublishedHead) -> str:
        return bytes(row.hash).hex()


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = ("url", "project", "events", "is_active", "created_at")
    list_filter = ("is_active", "project")
    list_select_related = ("project",)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ("event", "webhook", "state", "tries", "status", "made_at", "next_try_at")
    list_filter = ("state", "event")
    list_select_related = ("webhook",)
    ordering = ("-made_at",)
