"""The back office of runs: sharing is set here; judges and verdicts can be read."""

from __future__ import annotations

from django.contrib import admin

from judge_eval.models import Judge, Run, Verdict
from voting.admin import KeptAdmin, ReadOnlyAdmin


@admin.register(Run)
class RunAdmin(KeptAdmin):
    list_display = ("name", "state", "is_shared", "created_at")
    fields = ("name", "state", "is_shared", "created_at")
    readonly_fields = ("state", "created_at")

    def has_add_permission(self, request: object) -> bool:
        return False


@admin.register(Judge)
class JudgeAdmin(ReadOnlyAdmin):
    list_display = ("name", "run", "position", "provider", "fingerprint")
    list_select_related = ("run",)


@admin.register(Verdict)
class VerdictAdmin(ReadOnlyAdmin):
    list_display = ("judge", "comparison", "state", "winner", "feedback", "error", "latency_ms")
    list_filter = ("state",)
    list_select_related = ("judge", "comparison")
