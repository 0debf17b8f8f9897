"""The composite of a run: its components first, then what they come to, and whether it holds."""

import json
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Final
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.tables import DASH, percent
from humanjudge.core.text import listed, number_of
from judge_eval.board.cache import parts_of
from judge_eval.board.few import require_votes_first
from judge_eval.board.filters import Slice
from judge_eval.models import Run
from judge_eval.runs.access import can, hidden_from
from judge_eval.runs.run_page import run_action, run_page
from judge_eval.stats.bootstrap import Resampling
from reports.composite import compute, sources
from reports.composite.config import CompositeConfig, source_in_words
from reports.composite.forms import CHECKS, CompositeForm, rows_of
from voting.items.turns import beginning
from voting.models import Inference

MOST_VERSIONS: Final = 4
MOST_QUARTERS: Final = 8
# What nobody has done where there is nothing to check the composite with.
_UNCAST: Final = {"win_rate": "voted on a pair", "pass_rate": "passed or flagged an output"}


@run_page("see")
def run_composite(request: HttpRequest, run: Run) -> HttpResponse:
    return _page(request, run)


@run_action("run")
def save_composite(request: HtmxRequest, run: Run) -> HttpResponse:
    """Save what the form says, or show what that comes to, or it with one row more or less."""
    change = request.POST.get("change", "")
    if change == "add" or change.startswith("remove-"):
        form = CompositeForm.changed(run, request.POST, change)
        if request.htmx:
            context = {"run": run, "form": form, "is_shorter": change != "add"}
            return render(request, "reports/composite/_composite_form.html", context)
        return _page(request, run, form)
    form = CompositeForm(run, rows_of(request.POST), request.POST)
    if change == "try":
        return _show_trial(request, run, form)
    if not form.is_valid() or form.composite is None:
        return _page(request, run, form, status=422)
    sources.store(run, form.composite)
    return redirect("run-composite", run.pk)


def _show_trial(request: HtmxRequest, run: Run, form: CompositeForm) -> HttpResponse:
    require_votes_first(request, run)
    result = None
    if form.is_valid() and (config := form.composite):
        outputs = sources.Outputs(run, [config])
        components = outputs.components(config)
        result = _result(config, components, ranked_by(components, config, outputs), outputs)
    if request.htmx:
        context = {"run": run, "form": form, "result": result}
        return render(request, "reports/composite/_composite_result.html", context)
    return _page(request, run, form, result=result)


def _page(
    request: HttpRequest,
    run: Run,
    form: CompositeForm | None = None,
    status: int = 200,
    result: Context | None = None,
) -> HttpResponse:
    versions = sources.versions_of(run, MOST_VERSIONS)
    if form is None and can(request, "run", run):
        data = versions[0][1].as_data if versions else sources.proposal(run)
        form = CompositeForm.of_data(run, data)
    context = {"run": run, "tab": "models", "form": form}
    if versions:
        configs = [config for _, config in versions]
        context |= {"definition": versions[0][0]} | _composite(request, run, configs)
    if result:
        context |= {"definition": None, "result": result}
    return render(request, "reports/composite/composite.html", context, status=status)


def _composite(request: HttpRequest, run: Run, configs: Sequence[CompositeConfig]) -> Context:
    part = Slice.parse(request.GET.get("part", ""))
    if part.kind == "group":
        raise Problem(400, "part: a composite is of outputs, tag:… or generator:…, not of a group.")
    require_votes_first(request, run, part)
    config, outputs = configs[0], sources.Outputs(run, configs, part)
    components = [outputs.components(version) for version in configs]
    ranked = [ranked_by(*inputs, outputs) for inputs in zip(components, configs, strict=True)]
    page = Paginator(list(ranked[0]), 50).get_page(request.GET.get("page"))
    pairs = {pair for output in page for pair in outputs.pairs[output]}
    closed = hidden_from(request, run.queue.project, pairs)
    starts = Inference.objects.annotate(start=beginning("prompt", 200)).only("generator")
    rows = starts.in_bulk(list(page))
    number, parts = number_of(page.paginator.count, "output"), parts_of(run)
    return {
        "config": config,
        "result": _result(config, components[0], ranked[0], outputs),
        "checks": [check_of(*inputs, outputs) for inputs in zip(configs, ranked, strict=True)],
        "page": page,
        # With a pair that its reader may vote on, an output has no number.
        "rows": [
            {
                "components": components[0][output],
                "composite": ranked[0][output].value,
                "note": _note(ranked[0][output]),
                "output": rows[output],
                "pair": next(iter(outputs.pairs[output]), None),
                "is_closed": not closed.isdisjoint(outputs.pairs[output]),
            }
            for output in page
        ],
        "outputs": f"{number}: {part.in_words}" if part.kind else number,
        "empty": "No output belongs to this part." if part.kind else "This run has no outputs yet.",
        "parts": parts and parts.model_copy(update={"voter_groups": []}),
        "chosen_part": str(part),
    }


def _result(
    config: CompositeConfig,
    components: Mapping[UUID, Mapping[str, float | None]],
    ranked: Mapping[UUID, compute.Composite],
    outputs: sources.Outputs,
) -> Context:
    totals = compute.totals_of(ranked.values())
    failed = [f"{name} on {number_of(n, 'output')}" for name, n in totals.failed.most_common()]
    lines = [f"Failed gates (the composite is 0): {listed(failed)}."] if failed else []
    missing = [f"{name} on {number_of(n, 'output')}" for name, n in totals.missing.most_common()]
    if missing:
        lines.append(f"Gates without a value (the composite is 0): {listed(missing)}.")
    if totals.without:
        has = "has" if totals.without == 1 else "have"
        lines.append(
            f"{number_of(totals.without, 'output')} {has} no composite; the list says why."
        )
    return {
        "config": config,
        "mean": DASH if totals.mean is None else f"{totals.mean:.2f}",
        "outputs": f"mean composite of {number_of(totals.items, 'output')}",
        "lines": lines,
        "components": _components(config, components.values()),
        "without": outputs.without(config),
    }


def _note(composite: compute.Composite) -> str:
    if composite.is_missing:
        return f"gate without a value: {composite.failed_gate}"
    return composite.reason.removeprefix(compute.OK)


def ranked_by(
    components: Mapping[UUID, Mapping[str, float | None]],
    config: CompositeConfig,
    outputs: sources.Outputs,
) -> dict[UUID, compute.Composite]:
    """Return the composites by output, the highest first, those without one last.

    None has one while a judge of it is left out: a gate without a value would make it 0.
    """
    if reason := outputs.without(config):
        return dict.fromkeys(components, compute.Composite(None, reason))
    weights, gates = config.weighting, config.gates
    composites = [
        (output, compute.composite_of_item(values, weights, gates))
        for output, values in components.items()
    ]
    composites.sort(key=lambda pair: (pair[1].value is None, -(pair[1].value or 0)))
    return dict(composites)


def _components(
    config: CompositeConfig, outputs: Collection[Mapping[str, float | None]]
) -> list[Context]:
    described_ones = []
    for name in config.components:
        values = [value for components in outputs if (value := components[name]) is not None]
        figures = {"number": len(values), "outputs": len(outputs)}
        mean = f"{fmean(values):.2f}" if values else DASH
        described_ones.append(described(config, name) | figures | {"mean": mean})
    return described_ones


def described(config: CompositeConfig, name: str) -> dict[str, str]:
    """Say what a component is, how much it counts and why."""
    weight, source = config.weights.get(name), config.as_data["sources"][name]
    if "equals" in source:
        rule = f", 1 where it is {json.dumps(source['equals'], ensure_ascii=False)}"
    else:
        rule = ", {:g} to {:g}".format(*source["range"]) if "range" in source else ""
    share = weight.weight / sum(config.weighting.values()) if weight else 0
    counts = [percent(share)] if weight else []
    return {
        "name": name,
        "counts": ", ".join([*counts, *(["gate"] if name in config.gates else [])]),
        "source": source_in_words(source) + rule,
        "reason": weight.reason if weight else "",
    }


def check_of(
    config: CompositeConfig, ranked: Mapping[UUID, compute.Composite], outputs: sources.Outputs
) -> Context:
    check = {"config": config, "against": CHECKS[config.check]}
    check["result"] = f"Nobody has {_UNCAST[config.check]} yet."
    if config.is_circular:
        return check | {"result": "Not checked: it contains what it would be checked against."}
    if reason := outputs.without(config):
        return check | {"result": f"Not checked: {reason}."}
    votes = outputs.votes(config.check)
    if not votes:
        return check
    newest = {quarter: votes[quarter] for quarter in sorted(votes)[-MOST_QUARTERS:]}
    # A page may not wait for the narrowest interval.
    resampling = Resampling(max(200, min(1000, 300_000 // max(1, len(ranked)))))
    values = {output: composite.value for output, composite in ranked.items()}
    quarters = compute.drift(values, newest, resampling)
    return check | {
        "headline": compute.headline(quarters),
        "result": compute.drift_in_words(quarters),
        "quarters": quarters[::-1],
        "earlier": len(votes) - len(newest),
    }
