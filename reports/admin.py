"""The admin of reports: what waits for a curator, with the decisions that its own pages offer."""

from typing import cast

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from reports.models import Review, Share
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
    list_filter = ("is_public", "project")
    list_select_related = ("project", "run", "made_by")
    search_fields = ("label", "prefix")
    exclude = ("frozen", "token_sha256")
    ordering = ("-made_at",)
