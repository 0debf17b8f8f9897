"""The providers: made, changed, and tried with one call to see whether they answer."""

from collections import defaultdict
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.core.validators import MinValueValidator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from pydantic import RootModel

from humanjudge.core.http import Context, HtmxRequest, Problem, problem
from humanjudge.core.validation import ConfigInvalid, Name, validated
from judge_eval.judging import provider_access, trial
from judge_eval.judging.config.estimates import Price
from judge_eval.judging.config.run_config import DEFAULT_PROVIDER
from judge_eval.judging.providers.protocols import OPENAI_COMPATIBLE, PROTOCOLS
from judge_eval.models import Call, Judge, Provider, Run
from judge_eval.runs.lifecycle import LifecycleRefused
from voting.access.roles import (
    can_administer,
    projects_where,
    require_administering,
    require_anywhere,
    user_of,
)
from voting.models import Project
from voting.people.forms import ProjectField

MOST_LETTERS = Judge._meta.get_field("model").max_length or 0
# Whose models are offered to try a provider with.
NEWEST_RUNS = 20
FIELDS = (
    *("name", "project", "protocol", "base_url", "key_variable", "structured_output"),
    *("timeout_s", "concurrency", "requests_per_minute", "prices"),
)
_ADD, _CHANGE = "judge_eval.add_provider", "judge_eval.change_provider"


class PriceList(RootModel[dict[Name, Price]]):
    """What a provider takes, by the names of its models."""


class ProviderForm(forms.ModelForm):  # type: ignore[type-arg]
    project = ProjectField(label="Who may use it", empty_label="every project")
    protocol = forms.ChoiceField(
        choices=lambda: [(protocol.id, protocol.title) for protocol in PROTOCOLS.values()],
        initial=OPENAI_COMPATIBLE,
        required=False,
    )

    class Meta:
        model = Provider
        fields = FIELDS
        # An address without a scheme is refused, not guessed at.
        field_classes: ClassVar = {"base_url": forms.CharField}
        widgets: ClassVar = {"prices": forms.Textarea({"rows": 4})}
        labels: ClassVar = {"base_url": "Address", "key_variable": "Variable of the key"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        projects = cast("ProjectField", self.fields["project"])
        projects.queryset = Project.objects.order_by("name")
        for name in ("timeout_s", "concurrency", "requests_per_minute"):
            self.fields[name].validators.append(MinValueValidator(1))

    def clean_protocol(self) -> str:
        return self.cleaned_data["protocol"] or OPENAI_COMPATIBLE

    def clean_prices(self) -> object:
        prices = self.cleaned_data["prices"]
        try:
            validated(PriceList, {} if prices is None else prices)
        except ConfigInvalid as invalid:
            raise forms.ValidationError([str(error) for error in invalid.errors]) from invalid
        return prices or {}


@never_cache
@require_safe
def provider_list(request: HtmxRequest) -> HttpResponse:
    """The providers that one may use; htmx asks for the trial of one again until it is answered."""
    may_add, may_change = (
        can_administer(request.user, permission) for permission in (_ADD, _CHANGE)
    )
    if not may_change:
        require_anywhere(request, "run")
    offered = provider_access.offered_to(request.user)
    if name := request.GET.get("trial", ""):
        provider = get_object_or_404(offered, name=name)
        return render(
            request,
            "judge_eval/judging/_provider_trial.html",
            {"each": _provider_row(provider, [])},
        )
    # The one that the settings describe is a row from now on.
    provider_access.find(DEFAULT_PROVIDER, None)
    mine = Run.objects.filter(queue__project__in=projects_where(request.user, "see calls"))
    newest = list(mine.order_by("-created_at").values_list("pk", flat=True)[:NEWEST_RUNS])
    judges = Judge.objects.filter(run__in=newest)
    called = judges.exclude(provider=Judge.BASELINE).exclude(model="").order_by("model")
    models = defaultdict(list)
    for name, model in called.values_list("provider", "model").distinct():
        models[name].append(model)
    listed = [
        _provider_row(row, models[row.name])
        for row in offered.select_related("project", "trial").order_by("name")
    ]
    context = {"providers": listed, "may_add": may_add, "may_change": may_change}
    return render(request, "judge_eval/judging/providers.html", context)


def _provider_row(provider: Provider, models: list[str]) -> Context:
    call, names = provider.trial, sorted({*provider.prices, *models})
    is_answered = call is not None and call.state == Call.State.DONE
    return {
        "provider": provider,
        "lacks_key": provider_access.lacks_key(provider),
        "key": f"{provider.key_variable} is set" if provider.key_variable else "no key is named",
        "models": names,
        "model": call.model if call else next(iter(names), ""),
        "trial": call,
        "is_waiting": trial.is_waiting(call),
        "lost": trial.why_lost(call),
        "answer": trial.answer_in_words(call) if call and is_answered else "",
        "price": trial.price_in_words(provider, call) if call and is_answered else "",
    }


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit_provider(request: HtmxRequest, provider_id: int | None = None) -> HttpResponse:
    """Make a provider, or change one; its key itself is never typed in."""
    require_administering(request, _CHANGE if provider_id else _ADD)
    provider = get_object_or_404(Provider, pk=provider_id) if provider_id else Provider()
    title = f"Change {provider}" if provider_id else "New provider"
    posted = request.POST if request.method == "POST" else None
    form = ProviderForm(posted, instance=provider, label_suffix="")
    if form.is_valid():
        provider_access.save(provider, form.changed_data, user_of(request))
        messages.success(request, f"{provider} is saved. Try it with one of its models.")
        return redirect(f"{reverse('providers')}#provider-{provider}")
    if form.has_error("key_variable"):
        # A key that somebody typed in is not shown again.
        form.data = {**request.POST.dict(), "key_variable": ""}
    context = {"form": form, "title": title}
    status = 422 if form.errors else 200
    return render(request, "judge_eval/judging/provider_form.html", context, status=status)


@require_POST
def try_provider(request: HtmxRequest, name: str) -> HttpResponse:
    """Require permission to spend on this provider; try it with a few tokens.

    A provider of the whole server may be tried by anyone who can run something.
    """
    require_anywhere(request, "run")
    provider = provider_access.offered_to(request.user).filter(name=name).first()
    if provider is None:
        raise Problem(404, provider_access.no_such(name))
    model = request.POST.get("model", "").strip()
    if not 0 < len(model) <= MOST_LETTERS or "\x00" in model:
        raise Problem(422, "model: the name of a model, as its provider calls it, is needed.")
    try:
        trial.try_provider(name, model)
    except LifecycleRefused as refused:
        back = ("Back to the providers", reverse("providers"))
        return problem(request, 409, str(refused), title="That cannot be done now", action=back)
    return redirect(f"{reverse('providers')}#provider-{name}")
