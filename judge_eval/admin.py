"""The admin of runs: sharing and providers are set here; what was asked can be read."""

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from pydantic import RootModel

from humanjudge.lib.validation import ConfigInvalid, validated
from judge_eval.config.estimates import Price
from judge_eval.models import Call, Judge, Provider, Run, RunEvent, Verdict
from judge_eval.providers.protocols import OPENAI_COMPATIBLE, PROTOCOLS
from judge_eval.runs import providers
from voting.admin import KeptAdmin, ReadOnlyAdmin


@admin.register(Run)
class RunAdmin(KeptAdmin):
    fields = list_display = ("name", "state", "is_shared", "created_at")
    readonly_fields = ("state", "created_at")

    def has_add_permission(self, request: object) -> bool:
        return False


class PriceList(RootModel[dict[str, Price]]):
    """What a provider takes, by the names of its models."""


class ProviderForm(forms.ModelForm):  # type: ignore[type-arg]
    protocol = forms.ChoiceField(
        choices=lambda: [(each.id, each.title) for each in PROTOCOLS.values()],
        initial=OPENAI_COMPATIBLE,
        required=False,
    )

    class Meta:
        # An address without a scheme is refused, not guessed at.
        field_classes = {"base_url": forms.CharField}

    def clean_protocol(self) -> str:
        return self.cleaned_data["protocol"] or OPENAI_COMPATIBLE

    def clean_prices(self) -> object:
        prices = self.cleaned_data["prices"]
        try:
            validated(PriceList, {} if prices is None else prices)
        except ConfigInvalid as invalid:
            raise forms.ValidationError([str(error) for error in invalid.errors]) from invalid
        return prices or {}


@admin.register(Provider)
class ProviderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = ProviderForm
    fields = (
        *("name", "protocol", "base_url", "key_variable", "key", "structured_output"),
        *("timeout_s", "concurrency", "requests_per_minute", "prices"),
    )
    list_display = ("name", "base_url", "key_variable", "key", "concurrency", "requests_per_minute")
    readonly_fields = ("key",)

    @admin.display(description="key is set here")
    def key(self, provider: Provider) -> str:
        """Say whether this process has the key; the workers may have another environment."""
        if not provider.key_variable:
            return "none is named"
        return "no" if providers.lacks_key(provider) else "yes"


@admin.register(Judge)
class JudgeAdmin(ReadOnlyAdmin):
    list_display = ("name", "run", "position", "provider", "fingerprint")
    list_select_related = ("run",)


@admin.register(Verdict)
class VerdictAdmin(ReadOnlyAdmin):
    list_display = ("judge", "item", "state", "winner", "feedback", "error", "latency_ms")
    list_filter = ("state",)
    list_select_related = ("judge", "item")


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin):
    list_display = ("id", "run", "purpose", "model", "state", "attempts", "error", "done_at")
    list_filter = ("state", "purpose")
    list_select_related = ("run",)
    ordering = ("-id",)
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Call]:
        # A page of drawings would be megabytes.
        return super().get_queryset(request).defer("reply")


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "run", "kind", "text")
    list_filter = ("kind",)
    list_select_related = ("run",)
    ordering = ("-id",)
    show_full_result_count = False
