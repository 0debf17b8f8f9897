"""The admin of runs: sharing is set here; what was asked can be read."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from judge_eval.judging import provider_access
from judge_eval.judging.views.providers import FIELDS
from judge_eval.models import Call, Findings, Import, Judge, Provider, Run, RunEvent, Verdict
from voting.access.changes import record_queues
from voting.admin import ListAdmin, ReadOnlyAdmin, SeenAdmin, UnmakeableAdmin
from voting.ballot.tuning import held_out
from voting.models import Queue


def dollars(nano: int | None) -> str:
    return "" if nano is None else f"${nano / 1_000_000_000:,.4f}"


@admin.register(Run)
class RunAdmin(UnmakeableAdmin):
    list_display = ("name", "project", "state", "is_shared", "spent", "created_at", "archived_at")
    list_filter = (
        *("state", "is_shared", ("archived_at", admin.EmptyFieldListFilter)),
        *("queue__kind", "queue__project"),
    )
    list_select_related = ("queue__project",)
    search_fields = ("id", "name", "queue__project__name")
    date_hierarchy = "created_at"
    fields = (
        *("name", "project", "queue", "state", "note", "is_shared"),
        *("spent", "created_at", "started_at", "archived_at"),
    )
    readonly_fields = tuple(name for name in fields if name not in ("name", "is_shared"))

    @admin.display(ordering="queue__project__name")
    def project(self, run: Run) -> str:
        return run.queue.project.name

    @admin.display(ordering="spent_nano")
    def spent(self, run: Run) -> str:
        return dollars(run.spent_nano)

    def save_model(self, request: HttpRequest, obj: Run, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        record_queues(Queue.objects.filter(pk=obj.queue_id))

    def view_on_site(self, run: Run) -> str:
        return reverse("run", args=[run.pk])


@admin.register(Provider)
class ProviderAdmin(ListAdmin):
    """Listed and deleted here; made and changed on a page of their own."""

    fields = (*FIELDS, "key")
    list_display = (
        *("name", "project", "base_url", "key_variable", "key"),
        *("concurrency", "requests_per_minute"),
    )
    list_filter = ("structured_output", "project")
    list_select_related = ("project",)
    search_fields = ("name", "base_url")
    readonly_fields = ("key",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def view_on_site(self, provider: Provider) -> str:
        return reverse("change-provider", args=[provider.pk])

    @admin.display(description="key is set here")
    def key(self, provider: Provider) -> str:
        """Say whether this process has the key; the workers may have another environment."""
        if not provider.key_variable:
            return "none is named"
        return "no" if provider_access.lacks_key(provider) else "yes"


@admin.register(Judge)
class JudgeAdmin(ReadOnlyAdmin):
    list_display = ("name", "run", "position", "provider", "reported_model", "fingerprint")
    list_filter = ("provider",)
    list_select_related = ("run",)
    search_fields = ("name", "run__name", "model", "reported_model", "fingerprint")

    def view_on_site(self, judge: Judge) -> str:
        return reverse("run", args=[judge.run_id])


@admin.register(Verdict)
class VerdictAdmin(SeenAdmin):
    list_display = ("judge", "item", "state", "error", "latency_ms")
    list_filter = ("state", "order", "consistent")
    list_select_related = ("judge", "item")
    search_fields = ("judge__name", "judge__run__name", "item__external_id", "error")

    def view_on_site(self, verdict: Verdict) -> str:
        return reverse("run-pair", args=[verdict.judge.run_id, verdict.item_id])


@admin.register(Call)
class CallAdmin(SeenAdmin):
    list_display = (
        "id",
        "run",
        "purpose",
        "model",
        "state",
        "attempts",
        "cost",
        "error",
        "done_at",
    )
    list_filter = ("state", "purpose", "provider")
    list_select_related = ("run",)
    search_fields = ("run__name", "model", "request_hash", "error")
    ordering = ("-id",)
    hidden = held_out("item__") | held_out("verdict__item__")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Call]:
        # A page of drawings would be megabytes.
        return super().get_queryset(request).defer("reply")

    @admin.display(ordering="cost_nano")
    def cost(self, call: Call) -> str:
        return dollars(call.cost_nano)

    def view_on_site(self, call: Call) -> str:
        return reverse("run-call", args=[call.run_id, call.pk])


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "run", "kind", "text")
    list_filter = ("kind",)
    list_select_related = ("run",)
    search_fields = ("run__name", "text")
    ordering = ("-id",)

    def view_on_site(self, event: RunEvent) -> str:
        return reverse("run-progress", args=[event.run_id])


@admin.register(Findings)
class FindingsAdmin(ReadOnlyAdmin):
    list_display = ("run", "part", "seq", "seconds", "computed_at", "not_before", "requested_at")
    list_select_related = ("run",)
    search_fields = ("run__name", "part")
    exclude = ("data", "people")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Findings]:
        return super().get_queryset(request).defer(*self.exclude)

    def view_on_site(self, findings: Findings) -> str:
        return reverse("run", args=[findings.run_id])


@admin.register(Import)
class ImportAdmin(ReadOnlyAdmin):
    list_display = (
        *("id", "state", "name", "project", "run", "user", "rows_read", "written", "detail"),
        *("requested_at", "done_at"),
    )
    list_filter = ("state", "is_bundle", "is_local", "project")
    list_select_related = ("project", "run", "user")
    search_fields = ("id", "name", "run__name", "detail")
    date_hierarchy = "requested_at"
    exclude = ("form", "report", "lease")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Import]:
        return super().get_queryset(request).defer("form", "report")

    def view_on_site(self, job: Import) -> str:
        return reverse("import", args=[job.pk])
