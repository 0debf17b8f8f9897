"""A run before it starts: the forms, what it will do and cost, a judge tried, and deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from humanjudge.http import HtmxRequest, Problem
from humanjudge.lib.text import latency, number_of, usd
from judge_eval.access import may_read_verdicts, refuse_calls
from judge_eval.config.estimates import Estimate, Line, Plan, estimate, plan
from judge_eval.config.run_config import RUBRICS, PromptSpec, RunConfig
from judge_eval.models import Judge, Run
from judge_eval.pages.run_form import ConfigForm, RunForm, as_json, empty_values, form_values
from judge_eval.pages.runs import find_run, refusal, run_page
from judge_eval.prompts import generate, judge
from judge_eval.runs import lifecycle, providers, tryout
from judge_eval.runs.lifecycle import LifecycleRefused, config_of
from judge_eval.runs.providers import NANO
from voting.choices import LABELS
from voting.models import Item, Project

# A file of 5 MB and the largest form that Django reads.
MOST_BYTES = 8_000_000
COPY = " (copy)"
FIRST_PROMPTS = 100
DASH = "\N{EN DASH}"


# The token is looked for in the body, and a body that is too large is not even read for that.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_run(request: HttpRequest) -> HttpResponse:
    _refuse_too_large(request)
    return _new_run(request)


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_run_config(request: HttpRequest) -> HttpResponse:
    _refuse_too_large(request)
    return _new_run_config(request)


def _refuse_too_large(request: HttpRequest) -> None:
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise Problem(413, "A file may have 5 MB. Nothing was stored: go back and take another.")
    try:
        request.POST  # noqa: B018  it is read here
    except RequestDataTooBig:
        raise Problem(413, "That is too much to paste. Go back and give it as a file.") from None


@csrf_protect
def _new_run(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _create(request, RunForm(request.POST, request.FILES))
    source = _source(request)
    values: dict[str, Any] | None = empty_values() | _only_project()
    if source is not None:
        values = form_values(lifecycle.config_of(source))
        if values is None:  # the form has no place for all that this config says
            return redirect(f"{reverse('new-run-config')}?from={source.pk}")
        values |= {"name": _copied(source), "project": source.queue.project_id}
    return _page(request, RunForm(initial=values))


@csrf_protect
def _new_run_config(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _create(request, ConfigForm(request.POST, request.FILES))
    source, values = _source(request), _only_project()
    if source is not None:
        config = as_json(lifecycle.config_of(source), name=_copied(source))
        values = {"config": config, "project": source.queue.project_id}
    return _page(request, ConfigForm(initial=values))


def _source(request: HttpRequest) -> Run | None:
    """Return the run whose config is to be changed, if one is named."""
    named = request.GET.get("from")
    if not named:
        return None
    try:
        run = find_run(UUID(named))
    except ValueError:
        raise Http404 from None
    if run.config is None:
        raise Http404
    return run


def _copied(run: Run) -> str:
    longest = Run._meta.get_field("name").max_length or 0
    return f"{run.name[: longest - len(COPY)]}{COPY}"


def _only_project() -> dict[str, Any]:
    """Choose the project where there is no choice."""
    projects = Project.objects.all()[:2]
    return {"project": projects[0] if len(projects) == 1 else None}


def _create(request: HttpRequest, form: RunForm | ConfigForm) -> HttpResponse:
    if form.is_valid() and form.run_config is not None:
        project = form.cleaned_data["project"] or form.cleaned_data["new_project"]
        return run_page(lifecycle.create(project, form.run_config))
    return _page(request, form, status=413 if form.is_too_large else 422)


def _page(request: HttpRequest, form: RunForm | ConfigForm, status: int = 200) -> HttpResponse:
    name = "new_run" if isinstance(form, RunForm) else "new_run_config"
    context = {"form": form, "source": request.GET.get("from", ""), "rubrics": dict(RUBRICS)}
    return render(request, f"judge_eval/{name}.html", context, status=status)


@never_cache
@require_safe
def run_draft(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """What a draft will do; htmx asks for its tryout again while a judge is asked."""
    run = find_run(run_id)
    refused = refuse_calls(request, run)
    if refused is not None:
        return refused
    if run.state != Run.State.DRAFT:
        started = reverse("run-progress", args=[run.pk])
        return HttpResponseClientRedirect(started) if request.htmx else redirect(started)
    if run.config is None:
        raise Problem(409, "This draft has no config, so there is nothing to start.")
    tried = shown_tryout(request, run)
    judges = run.judges.exclude(provider=Judge.BASELINE).order_by("position")
    context = {"run": run, "tab": "draft", "tryout": tried, "judges": judges}
    if not request.htmx:
        return render(request, "judge_eval/draft.html", context | _draft_context(run))
    if tried is not None and request.GET.get("seen") == tried.seen:
        return HttpResponse(status=204)
    return render(request, "judge_eval/_tryout.html", context)


def _draft_context(run: Run) -> dict[str, Any]:
    draft = draft_of(run)
    return {
        "draft": draft,
        "baselines": run.judges.filter(provider=Judge.BASELINE).order_by("position"),
        "generation_messages": generation_messages(draft.config),
        "judge_messages": judge_messages(run, draft.config),
        "has_pairs": bool(tryout.pairs_for(run)),
    }


class CostLine(NamedTuple):
    """One model in one role: what it will be asked, and what that costs."""

    line: Line
    calls: str
    tokens_in: str
    tokens_out: str
    usd: str


@dataclass(frozen=True)
class Draft:
    """What a config will do and cost, and what stands in its way."""

    config: RunConfig
    spent_usd: Decimal
    plan: Plan
    estimate: Estimate
    obstacles: Sequence[str]

    @property
    def total_in_words(self) -> str:
        if not self.estimate.unpriced:
            return f"at most about {usd(self.estimate.known_usd)}"
        unpriced = number_of(len(self.estimate.unpriced), "model")
        if not self.estimate.known_usd:
            return f"not known: no price for {unpriced}"
        return f"at most about {usd(self.estimate.known_usd)}, and {unpriced} of unknown price"

    @property
    def generating_in_words(self) -> str:
        how = self.config.generation
        return _how(how.temperature, how.max_tokens)

    @property
    def judging_in_words(self) -> str:
        how = self.config.judging
        return f"prompt version {how.prompt_version}, {_how(how.temperature, how.max_tokens)}"

    @property
    def budget_in_words(self) -> str:
        budget = self.config.budget_usd
        return "no limit" if budget is None else usd(budget)

    @property
    def spent_in_words(self) -> str:
        return usd(self.spent_usd) if self.spent_usd else ""

    @property
    def counts(self) -> dict[str, str]:
        """Return how many of each thing there will be."""
        return {
            "outputs": f"{self.plan.generations:,}",
            "pairs": f"{self.plan.pairs:,}",
            "calls": f"{self.plan.verdict_calls:,}",
            "prompts": number_of(len(self.config.prompts), "prompt"),
        }

    @property
    def first_prompts(self) -> Sequence[PromptSpec]:
        return self.config.prompts[:FIRST_PROMPTS]

    @property
    def more_prompts(self) -> str:
        more = len(self.config.prompts) - FIRST_PROMPTS
        return f"{more:,}" if more > 0 else ""

    @property
    def ballot_in_words(self) -> str:
        return ", ".join(LABELS[choice] for choice in self.config.ballot)

    @property
    def votes_in_words(self) -> str:
        overlap = self.config.overlap
        more = f", {overlap.votes} on {100 * overlap.share:.3g} % of the pairs"
        votes = number_of(self.config.votes_per_pair, "vote")
        return f"{votes} per pair{more if overlap.share else ''}"

    @property
    def orders_in_words(self) -> str:
        orders = "both orders" if self.config.verdict_orders == "both" else "one order"
        samples = self.config.judging.samples
        return f"{orders}, {samples} samples" if samples > 1 else orders

    @property
    def lacks_overlap(self) -> bool:
        """Say whether no two people will vote on the same pair."""
        more = self.config.overlap.votes if self.config.overlap.share else 1
        return self.config.mode != "standard" and max(self.config.votes_per_pair, more) < 2

    @property
    def lines(self) -> list[CostLine]:
        return [
            CostLine(
                line,
                calls=f"{line.calls:,}",
                tokens_in=f"{line.prompt_tokens:,}",
                tokens_out=f"{line.completion_tokens:,}",
                usd="price not known" if line.usd is None else usd(line.usd),
            )
            for line in self.estimate.lines
        ]


def _how(temperature: float | None, max_tokens: int) -> str:
    warmth = "no temperature" if temperature is None else f"temperature {temperature:g}"
    return f"{warmth}, at most {max_tokens:,} tokens"


def draft_of(run: Run) -> Draft:
    config = config_of(run)
    names = {config.provider} | {j.provider for j in config.judges if not j.is_baseline}
    known = {name: providers.find(name) is not None for name in sorted(names)}
    cost = estimate(config, providers.prices(names))
    return Draft(
        config=config,
        spent_usd=Decimal(run.spent_nano) / providers.NANO,
        plan=plan(config),
        estimate=cost,
        obstacles=_obstacles(config, known, cost),
    )


def _obstacles(config: RunConfig, known: Mapping[str, bool], cost: Estimate) -> list[str]:
    obstacles = [
        f"There is no provider named {name}." for name, is_there in known.items() if not is_there
    ]
    if config.budget_usd is not None and cost.unpriced:
        unpriced = ", ".join(cost.unpriced)
        obstacles.append(f"A budget needs every price, and nobody has said what {unpriced} costs.")
    return obstacles


def generation_messages(config: RunConfig) -> list[dict[str, str]]:
    """Return what a generator is told, with the first prompt."""
    return _as_texts(generate.messages(config.kind, config.prompts[0].text))


def judge_messages(run: Run, config: RunConfig) -> list[dict[str, str]]:
    """Return what a judge is told, with the first prompt and places for the outputs."""
    places: tuple[str | bytes, str | bytes] = ("⟨the first output⟩", "⟨the second output⟩")
    if config.kind == "svg":
        places = (b"1", b"2")
    return _as_texts(
        judge.messages(
            config.judging.prompt_version,
            kind=config.kind,
            prompt=config.prompts[0].text,
            rubric=run.queue.rubric.text,
            ballot=run.queue.ballot,
            first=places[0],
            second=places[1],
        )
    )


def _as_texts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"role": each["role"], "text": _text_of(each["content"])} for each in messages]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)  # texts and pictures
    return "\n".join(part.get("text", "⟨the picture, as PNG⟩") for part in content)


@require_POST
@login_required
def delete_draft(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    try:
        lifecycle.delete(run.pk)
    except LifecycleRefused as refused:
        return refusal(request, run, refused)
    return redirect("runs")


@require_POST
@login_required
def try_judge(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    try:
        tryout.ask(run.pk, UUID(request.POST.get("judge", "")))
    except ValueError:
        raise Problem(422, "judge: choose one of the judges of this run.") from None
    except LifecycleRefused as refused:
        return refusal(request, run, refused)
    return redirect(f"{reverse('run-draft', args=[run.pk])}#tryout")


@dataclass(frozen=True)
class TriedPair:
    """One pair and what the judge said of it; nothing while it is asked."""

    pair: Item
    told: dict[str, Any] | None
    # Whether it is open to whoever reads this, who must vote on it blind.
    is_closed: bool

    @property
    def picked(self) -> str:
        winner = (self.told or {}).get("winner")
        return LABELS[winner] if winner else ""

    @property
    def scores_and_reason(self) -> str:
        """What stands behind the choice."""
        told = self.told or {}
        scores = [told.get("score_a"), told.get("score_b")]
        given = " : ".join(DASH if score is None else str(score) for score in scores)
        reason = f": {told['reason']}" if told.get("reason") else ""
        return reason if scores == [None, None] else f" ({given}){reason}"

    @property
    def details(self) -> str:
        """Whose outputs these are, and what the answer took."""
        told = self.told or {}
        nano = told.get("cost_nano")
        tokens = [
            DASH if told.get(f"{side}_tokens") is None else told[f"{side}_tokens"]
            for side in ("prompt", "completion")
        ]
        parts = [
            "A: {}, B: {}".format(*(output.generator for output in self.pair.pair)),
            *([f"answered as {told['model']}"] if told.get("model") else []),
            "{} tokens in, {} out".format(*(DASH if n is None else n for n in tokens)),
            "price not known" if nano is None else usd(Decimal(nano) / NANO),
            latency(told.get("latency_ms")),
        ]
        return " · ".join(parts)


@dataclass(frozen=True)
class ShownTryout:
    """The last tryout of a draft."""

    judge: Judge
    pairs: Sequence[TriedPair]
    lost: str
    is_over: bool

    @property
    def seen(self) -> str:
        answered = sum(tried.told is not None for tried in self.pairs)
        return f"{answered}{'-over' if self.is_over else ''}"

    @property
    def answered(self) -> int:
        return sum(tried.told is not None for tried in self.pairs)


def shown_tryout(request: HttpRequest, run: Run) -> ShownTryout | None:
    """Return the last tryout of a run as whoever asks may see it."""
    last = tryout.latest(run)
    if last is None:
        return None
    about = Item.objects.select_related("queue__project", "queue__run", "a", "b")
    pairs = about.in_bulk(list(last.pairs))
    return ShownTryout(
        judge=last.judge,
        pairs=[
            _tried(request, pairs[pk], last.told.get(item)) for item, pk in enumerate(last.pairs)
        ],
        lost=last.lost,
        is_over=last.is_over,
    )


def _tried(request: HttpRequest, pair: Item, told: dict[str, Any] | None) -> TriedPair:
    closed = told is not None and not may_read_verdicts(request, pair)
    return TriedPair(pair, told, is_closed=closed)
