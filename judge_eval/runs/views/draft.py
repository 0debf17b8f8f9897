"""A run before it starts: the forms, what it will do and cost, a judge tried, and deletion."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.text import latency, number_of, usd
from judge_eval.judging import provider_access, trial
from judge_eval.judging.baselines import most_over_floor
from judge_eval.judging.config.estimates import Estimate, plan
from judge_eval.judging.config.modes import wants_votes
from judge_eval.judging.config.run_config import RUBRICS, SINGLE_RUBRICS, RunConfig
from judge_eval.judging.prompts import judge
from judge_eval.models import Judge, Run
from judge_eval.runs import lifecycle, queries
from judge_eval.runs.access import hidden_from
from judge_eval.runs.forms import ConfigForm, RunForm, empty_values, form_values
from judge_eval.runs.run_page import lead_to, run_action, run_page, scores_in_words
from judge_eval.runs.services import floor_of
from voting.access.members import start_project
from voting.access.roles import projects_where, require_making_runs, user_of
from voting.items.choices import LABELS
from voting.items.kinds import is_ordered
from voting.models import Item

# A file of 5 MB and the largest form that Django reads.
MOST_BYTES = 8_000_000
FIRST_PROMPTS = 100


# The token is looked for in the body, and a body that is too large is not even read for that.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_run(request: HttpRequest, *, as_config: bool = False) -> HttpResponse:
    """The form of a new run, field by field or as one config."""
    require_making_runs(request)
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise Problem(413, "A file may have 5 MB. Nothing was stored: go back and take another.")
    try:
        request.POST  # noqa: B018  it is read here
    except RequestDataTooBig:
        raise Problem(413, "That is too much to paste. Go back and give it as a file.") from None
    return _new_run(request, as_config=as_config)


@csrf_protect
def _new_run(request: HttpRequest, *, as_config: bool) -> HttpResponse:
    form_class, user = ConfigForm if as_config else RunForm, user_of(request)
    status, source = 200, request.GET.get("from", "")
    if request.method == "POST":
        form = form_class(request.POST, request.FILES, user=user)
        if form.is_valid() and form.run_config is not None:
            with transaction.atomic():
                cleaned = form.cleaned_data
                project = cleaned["project"] or start_project(cleaned["new_project"], user)
                draft = lifecycle.create(project, form.run_config, actor=user)
            return redirect("run-draft", draft.pk)
        status = 413 if any(form.has_error(name, "too_large") for name in form.errors) else 422
    elif source:
        readable = Run.objects.filter(queue__project__in=projects_where(user, "see calls"))
        run = queries.by_prefix(readable.filter(config__isnull=False), source)
        if run is None:
            raise Http404
        config = lifecycle.copied_config(run)
        text = json.dumps(config.as_dict(), indent=2, ensure_ascii=False)
        values = {"config": text} if as_config else form_values(config, user)
        if values is None:  # the form has no place for all that this config says
            return redirect(f"{reverse('new-run-config')}?from={run.pk}")
        form = form_class(initial=values | {"project": run.queue.project_id}, user=user)
    else:
        form = form_class(initial={} if as_config else empty_values(user), user=user)
    rubrics = dict[str, str]([*RUBRICS.items(), *SINGLE_RUBRICS.items()])
    context = {"form": form, "source": source, "rubrics": rubrics}
    template = (
        "judge_eval/runs/new_run_config.html" if as_config else "judge_eval/runs/new_run.html"
    )
    return render(request, template, context, status=status)


@run_page("see calls")
def run_draft(request: HtmxRequest, run: Run) -> HttpResponse:
    """What a draft will do; htmx asks for its trial again while a judge is tried."""
    if run.state != Run.State.DRAFT:
        return lead_to(request, "run-progress", run)
    if run.config is None:
        raise Problem(409, "This draft has no config, so there is nothing to start.")
    models = run.judges.exclude(provider=Judge.BASELINE).filter(recipe__isnull=True)
    judges = models.order_by("position")
    context = {"run": run, "tab": "run", "judges": judges, **_trial(request, run)}
    if not request.htmx:
        return render(request, "judge_eval/runs/draft.html", context | _draft(run))
    if context["trial"] and request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    return render(request, "judge_eval/runs/_judge_trial.html", context)


def _draft(run: Run) -> Context:
    config = lifecycle.config_of(run)
    project, budget, overlap = run.queue.project_id, config.budget_usd, config.overlap
    cost = lifecycle.cost_of(config, project)
    noun, samples = run.queue.noun, config.judging.samples
    votes = f"{number_of(config.votes_per_pair, 'vote')} per {noun}"
    if overlap.share:
        votes += f", {overlap.votes} on {100 * overlap.share:.3g} % of the {noun}s"
    orders = "both orders" if config.verdict_orders == "both" else "one order"
    details = [] if config.items else [orders]
    details += [f"{samples} samples"] if samples > 1 else []
    return {
        "config": config,
        "plan": plan(config),
        "prompts": number_of(len(config.prompts), "prompt"),
        "too_few_prompts": _too_few(run, config),
        "first_prompts": config.prompts[:FIRST_PROMPTS],
        "more_prompts": max(len(config.prompts) - FIRST_PROMPTS, 0),
        "orders": ", ".join(details),
        "cost": _cost_in_words(cost),
        "budget": "no limit" if budget is None else usd(budget),
        "spent": usd(Decimal(run.spent_nano) / provider_access.NANO) if run.spent_nano else "",
        "obstacles": lifecycle.obstacles(config, cost, project),
        "lacks_overlap": wants_votes(run.config)
        and max(config.votes_per_pair, overlap.votes if overlap.share else 1) < 2,
        "lines": [(line, "" if line.usd is None else usd(line.usd)) for line in cost.lines],
        "baselines": run.judges.filter(provider=Judge.BASELINE).order_by("position"),
        "generation_messages": _texts(
            judge.generation_messages(config.kind, config.prompts[0].text)
        ),
        # With the first prompt, and places for the outputs.
        "judge_messages": _texts(
            judge.messages(
                config.judging.prompt_version,
                config.judge_question,
                kind=config.kind,
                prompt=config.prompts[0].text,
                rubric=run.queue.rubric.text,
                outputs=_places_of_outputs(config),
            )
        ),
        "generating": _sampling(config.generation.temperature, config.generation.max_tokens),
        "judging": f"prompt version {config.judging.prompt_version}, "
        + _sampling(config.judging.temperature, config.judging.max_tokens),
        "ballot": ", ".join(LABELS.get(choice, choice) for choice in config.judge_question.ballot),
        "votes": votes,
        "has_pairs": bool(trial.items_for(run)),
    }


def _too_few(run: Run, config: RunConfig) -> str | None:
    # Loads numpy, which few pages need.
    from numpy import ones

    from judge_eval.stats.claims import too_few

    baselines = run.judges.filter(provider=Judge.BASELINE).count()
    # Each judge is held against those of its own way of asking.
    floor = floor_of(run)
    by_order = is_ordered(run.queue)
    # Those of one output are coupled.
    prompts = len(config.prompts) // (2 if by_order and len(config.models) == 1 else 1)
    most = most_over_floor(floor, by_order=by_order)
    return too_few(ones(prompts, int), run.judges.count() - baselines, len(floor), most)


def _places_of_outputs(config: RunConfig) -> list[str | bytes]:
    names = ["the output"] if config.items else ["the first output", "the second output"]
    if config.kind == "svg":
        return [name.encode() for name in names]
    return [f"⟨{name}⟩" for name in names]


def _cost_in_words(cost: Estimate) -> str:
    about = f"at most about {usd(cost.known_usd)}"
    unpriced = number_of(len(cost.unpriced), "model")
    if cost.unpriced and not cost.known_usd:
        return f"not known: no price for {unpriced}"
    return f"{about}, and {unpriced} of unknown price" if cost.unpriced else about


def _sampling(temperature: float | None, max_tokens: int) -> str:
    warmth = "no temperature" if temperature is None else f"temperature {temperature:g}"
    return f"{warmth}, at most {max_tokens:,} tokens"


def _texts(messages: Iterable[Any]) -> list[tuple[str, str]]:
    texts = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):
            content = "\n".join(part.get("text", "⟨the picture, as PNG⟩") for part in content)
        texts.append((message["role"], content))
    return texts


@run_action("run")
def delete_draft(request: HttpRequest, run: Run) -> HttpResponse:
    lifecycle.delete(run.pk)
    return redirect("runs")


@run_action("run")
def try_judge(request: HttpRequest, run: Run) -> HttpResponse:
    try:
        trial.try_judge(run.pk, UUID(request.POST.get("judge", "")))
    except ValueError:
        raise Problem(422, "judge: choose one of the judges of this run.") from None
    return redirect(f"{reverse('run-draft', args=[run.pk])}#trial")


def _makers(item: Item) -> str:
    if item.b is None:
        return f"By {item.a.generator}"
    return f"A: {item.a.generator}, B: {item.b.generator}"


def _trial(request: HtmxRequest, run: Run) -> Context:
    last = trial.latest(run)
    if last is None:
        return {"trial": None}
    rows = Item.objects.select_related("queue__project", "queue__run", "a", "b")
    items = rows.in_bulk([call.item_id for call in last.calls])
    answered = [call.item_id for call in last.answered if call.item_id]
    closed = hidden_from(request, run.queue.project, answered)
    tried = [
        {
            "pair": items[call.item_id],
            "call": call,
            "is_waiting": trial.is_waiting(call),
            "is_closed": call.item_id in closed,
            "picked": LABELS.get(call.winner, call.winner),
            "made_by": _makers(items[call.item_id]),
            "scores": scores_in_words(call.score_a, call.score_b),
            "cost": "price not known"
            if call.cost_nano is None
            else usd(Decimal(call.cost_nano) / provider_access.NANO),
            "latency": latency(call.latency_ms),
        }
        for call in last.calls
        if call.item_id
    ]
    trial_version = f"{len(answered)}{'-over' if last.is_over else ''}"
    return {"trial": last, "tried": tried, "answered": len(answered), "seen": trial_version}
