"""The providers: what is set of each, and one call to see whether it answers."""

from collections import defaultdict

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from humanjudge.http import Context, HtmxRequest, Problem, problem
from judge_eval.config.run_config import DEFAULT_PROVIDER
from judge_eval.models import Call, Judge, Provider, Run
from judge_eval.runs import providers, trial
from judge_eval.runs.lifecycle import LifecycleRefused
from voting.access import projects_where, require_anywhere

MOST_LETTERS = Judge._meta.get_field("model").max_length or 0
# Whose models are offered to try a provider with.
NEWEST_RUNS = 50


@never_cache
@require_safe
def provider_list(request: HtmxRequest) -> HttpResponse:
    """The providers that one may use; htmx asks for the trial of one again until it is answered."""
    require_anywhere(request, "run")
    offered = providers.offered_to(request.user)
    if name := request.GET.get("trial", ""):
        provider = get_object_or_404(offered, name=name)
        return render(
            request, "judge_eval/_provider_trial.html", {"each": _provider_row(provider, [])}
        )
    # The one that the settings describe is a row from now on.
    providers.find(DEFAULT_PROVIDER, None)
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
    return render(request, "judge_eval/providers.html", {"providers": listed})


def _provider_row(provider: Provider, models: list[str]) -> Context:
    call, names = provider.trial, sorted({*provider.prices, *models})
    is_answered = call is not None and call.state == Call.State.DONE
    return {
        "provider": provider,
        "lacks_key": providers.lacks_key(provider),
        "key": f"{provider.key_variable} is set" if provider.key_variable else "no key is named",
        "models": names,
        "model": call.model if call else next(iter(names), ""),
        "trial": call,
        "is_waiting": trial.is_waiting(call),
        "lost": trial.why_lost(call),
        "answer": trial.answer_in_words(call) if call and is_answered else "",
        "price": trial.price_in_words(provider, call) if call and is_answered else "",
    }


@require_POST
def try_provider(request: HtmxRequest, name: str) -> HttpResponse:
    """Spend a few tokens where one may: an installation's provider is for whoever runs anything."""
    require_anywhere(request, "run")
    provider = providers.offered_to(request.user).filter(name=name).first()
    if provider is None:
        raise Problem(404, providers.no_such(name))
    model = request.POST.get("model", "").strip()
    if not 0 < len(model) <= MOST_LETTERS or "\x00" in model:
        raise Problem(422, "model: the name of a model, as its provider calls it, is needed.")
    try:
        trial.try_provider(name, model)
    except LifecycleRefused as refused:
        back = ("Back to the providers", reverse("providers"))
        return problem(request, 409, str(refused), title="That cannot be done now", action=back)
    return redirect(f"{reverse('providers')}#provider-{name}")
