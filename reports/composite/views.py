"""The composite of a run: its components first, then what they come to, and whether it holds."""

import json
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from django import forms
from django.core.paginator import Paginator
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from humanjudge.http import Context
from humanjudge.lib.tables import DASH
from humanjudge.lib.text import number_of
from humanjudge.lib.validation import ConfigInvalid
from judge_eval.access import can, pairs_to_vote_on, remember_seen
from judge_eval.findings.cache import parts_of
from judge_eval.findings.slices import Slice
from judge_eval.models import Run
from judge_eval.pages.run_form import LINES, shortened
from judge_eval.pages.runs import run_action, run_page
from judge_eval.stats.bootstrap import Resampling
from reports.composite import compute, sources
from reports.composite.config import CompositeConfig
from voting.models import Inference

MOST_VERSIONS: Final = 4
MOST_QUARTERS: Final = 8
_SOURCES: Final = {
    "win_rate": "share of votes it won in its pairs, a tie half",
    "pass_rate": "share of people's votes that passed it",
    "rendered": "1 where it could be rendered, 0 where not",
    "judge_score": "mean score by {judge}, {rule}",
    "judge_wins": "share of its pairs that {judge} said it won, a tie half",
    "agreement": "mean share of votes on its pairs that agree with {judge}",
    "label": "{task}, mean of what {judge} said, {rule}",
    "metadata": "{key} of the output, {rule}",
}
# What each check compares the composite with, and what nobody has done where it cannot.
_CHECKS: Final = {
    "win_rate": ("the share of votes won", "voted on a pair"),
    "pass_rate": ("the share of passes", "passed or flagged an output"),
}


class CompositeForm(forms.Form):
    config = forms.CharField(
        label="Config", max_length=50_000, widget=forms.Textarea(attrs=LINES | {"rows": 20})
    )


@run_page("see board")
def run_composite(request: HttpRequest, run: Run) -> HttpResponse:
    return _page(request, run)


@run_action
def save_composite(request: HttpRequest, run: Run) -> HttpResponse:
    form = CompositeForm(request.POST, label_suffix="")
    if form.is_valid():
        try:
            sources.store(run, sources.read_config(run, form.cleaned_data["config"]))
        except ConfigInvalid as invalid:
            form.add_error("config", shortened([str(each) for each in invalid.errors]))
        else:
            return redirect("run-composite", run.pk)
    return _page(request, run, form, status=422)


def _page(
    request: HttpRequest, run: Run, form: CompositeForm | None = None, status: int = 200
) -> HttpResponse:
    versions = sources.versions_of(run, MOST_VERSIONS)
    if form is None and can(request, "see calls", run):
        text = versions[0][1].as_json() if versions else sources.example(run)
        form = CompositeForm(initial={"config": text}, label_suffix="")
    context = {"run": run, "tab": "composite", "form": form}
    if versions:
        configs = [config for _, config in versions]
        context |= {"definition": versions[0][0]} | _composite(request, run, configs)
    return render(request, "reports/composite.html", context, status=status)


def _composite(request: HttpRequest, run: Run, configs: Sequence[CompositeConfig]) -> Context:
    part = Slice.parse(request.GET.get("part", ""))
    config, outputs = configs[0], sources.Outputs(run, configs, part)
    components = [outputs.components(each) for each in configs]
    ranked = [_ranked(*each) for each in zip(components, configs, strict=True)]
    page = Paginator(list(ranked[0]), 50).get_page(request.GET.get("page"))
    pairs = {pair for output in page for pair in outputs.pairs[output]}
    closed = pairs_to_vote_on(request, run, pairs)
    if config.judges:
        remember_seen(request, run, pairs - closed)
    starts = Inference.objects.annotate(start=Left("prompt", 200)).only("generator")
    shown = starts.in_bulk(list(page))
    number = number_of(page.paginator.count, "output")
    return {
        "config": config,
        "weights": [_weight(config, name) for name in config.components],
        "checks": [_check(*each, outputs) for each in zip(configs, ranked, strict=True)],
        "page": page,
        # With a pair that its reader may vote on, an output has no number.
        "rows": [
            {
                "components": components[0][output].values(),
                "composite": ranked[0][output].value,
                "note": ranked[0][output].reason.removeprefix(compute.OK),
                "output": shown[output],
                "pair": next(iter(outputs.pairs[output]), None),
                "is_closed": not closed.isdisjoint(outputs.pairs[output]),
            }
            for output in page
        ],
        "outputs": f"{number}: {part.in_words}" if part.kind else number,
        "empty": "No output belongs to this part." if part.kind else "This run has no outputs yet.",
        "parts": parts_of(run),
        "chosen_part": str(part),
    }


def _ranked(
    components: Mapping[UUID, Mapping[str, float | None]], config: CompositeConfig
) -> dict[UUID, compute.Composite]:
    """Return the composites by output, the highest first, those without one last."""
    weights, gates = config.weighting, config.gates
    composites = [
        (output, compute.composite_of_item(values, weights, gates))
        for output, values in components.items()
    ]
    composites.sort(key=lambda each: (each[1].value is None, -(each[1].value or 0)))
    return dict(composites)


def _weight(config: CompositeConfig, name: str) -> Context:
    weight, source = config.weights.get(name), config.sources[name]
    options = dict(source)
    if options.get("equals") is not None:
        rule = f"1 where it is {json.dumps(options['equals'], ensure_ascii=False)}"
    else:
        rule = "{:g} to {:g}".format(*options.get("range") or (0, 1))
    options |= {"rule": rule, "judge": options.get("judge") or "people"}
    share = 100 * weight.weight / sum(config.weighting.values()) if weight else 0
    return {
        "name": name,
        "weight": f"{weight.weight:g}" if weight else DASH,
        "share": f"{share:.0f} %" if weight else DASH,
        "gate": "must be 1" if name in config.gates else "",
        "source": _SOURCES[source.kind].format(**options),
        "reason": weight.reason if weight else "",
    }


def _check(
    config: CompositeConfig, ranked: Mapping[UUID, compute.Composite], outputs: sources.Outputs
) -> Context:
    against, cast = _CHECKS[config.check]
    check = {"config": config, "against": against, "result": f"Nobody has {cast} yet."}
    if config.is_circular:
        return check | {"result": "Not checked: it contains what it would be checked against."}
    votes = outputs.votes(config.check)
    if not votes:
        return check
    newest = {quarter: votes[quarter] for quarter in sorted(votes)[-MOST_QUARTERS:]}
    # A page may not wait for the narrowest interval.
    resampling = Resampling(max(200, min(1000, 300_000 // max(1, len(ranked)))))
    values = {output: composite.value for output, composite in ranked.items()}
    quarters = compute.drift(values, newest, resampling)
    return check | {
        "result": compute.drift_in_words(quarters),
        "quarters": quarters[::-1],
        "earlier": len(votes) - len(newest),
    }
