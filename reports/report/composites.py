"""A composite with its components, and whether it holds: as reports say it."""

import json
from statistics import fmean
from typing import Final

from judge_eval.models import Run
from reports.composite import compute, sources
from reports.composite.config import CompositeConfig, parse
from reports.composite.views import check_of, described, ranked_by
from reports.models import CompositeDefinition
from reports.report.model import Component, CompositeResults
from voting.models import Inference

# What a composite reads of metadata and of pictures is not in a bundle, which has no outputs.
_OF_OUTPUTS: Final = frozenset({"metadata", "rendered"})


def composite_results(run: Run, definition: CompositeDefinition) -> CompositeResults:
    config = parse(json.loads(definition.config), needs_sources=True)
    outputs = sources.Outputs(run, [config])
    values = outputs.components(config)
    ranked = ranked_by(values, config)
    whole = compute.whole(ranked.values())
    components = []
    for name in config.components:
        present = [value for each in values.values() if (value := each[name]) is not None]
        mean = fmean(present) if present else None
        components.append(Component(mean=mean, number=len(present), **described(config, name)))
    return CompositeResults(
        label=config.label or "Composite",
        version=definition.version,
        config=config.as_data,
        mean=whole.mean,
        outputs=len(values),
        without=whole.without,
        failed=dict(whole.failed.most_common()),
        components=components,
        check=check_of(config, ranked, outputs)["result"],
    )


def define_again(run: Run, given: CompositeResults) -> bool:
    """Define the composite of a report for a restored run; say whether it can be computed."""
    config: CompositeConfig = parse(given.config, needs_sources=True)
    of_outputs = {source.kind for source in config.sources.values()} & _OF_OUTPUTS
    drawings = Inference.objects.filter(project=run.queue.project_id, kind=Inference.Kind.SVG)
    if "metadata" in of_outputs or (of_outputs and drawings.exists()):
        return False
    sources.store(run, config)
    return True
