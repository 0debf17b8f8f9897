"""Stores and reads how a run's outputs get one number."""

from __future__ import annotations

import json

from django.db import transaction

from judge_eval.config.fields import ConfigError
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.interchange import strict_json
from judge_eval.models import Judge, Run, Verdict
from reports.composite_config import CompositeConfig, Source, Weight
from reports.composite_parsing import as_data, parse
from reports.models import CompositeDefinition

# Stands where somebody is to say why; it is no reason.
PLACEHOLDER = "Say here why it counts as much as it does."
MOST_PROPOSED = 2


def read_config(run: Run, text: str) -> CompositeConfig:
    """Check the JSON that somebody typed in.

    Raises
    ------
    ConfigInvalid
        With all that is wrong, each mistake named by its path.
    """
    try:
        config = parse(strict_json.loads(text), needs_sources=True)
    except strict_json.NotJson as error:
        raise ConfigInvalid([ConfigError("", f"It is {error}.")]) from error
    judges = judge_names(run)
    wrong = [
        ConfigError(f"weights.{name}.reason", "is still the example's: say why it counts so much")
        for name, weight in config.weights.items()
        if weight.reason.strip() == PLACEHOLDER
    ]
    wrong += [
        ConfigError(
            f"sources.{name}.judge",
            f"no judge of this run is called {source.judge!r}; there are {', '.join(judges)}",
        )
        for name, source in config.sources.items()
        if source.judge and source.judge not in judges
    ]
    if wrong:
        raise ConfigInvalid(wrong)
    return config


def example(run: Run) -> CompositeConfig:
    """Return something to start from: what judges say, checked by whom people choose."""
    judges, kind = _heard(run)
    if not judges:
        weights = {"preferred": Weight(1, "What people choose is what the work is for.")}
        sources = {"preferred": Source("win_rate"), "rendered": Source("rendered")}
        return CompositeConfig(weights, ("rendered",), "first", sources)
    names = [f"judge {place}" for place in range(1, len(judges) + 1)]
    said = {
        name: Source(kind, judge=judge, high=10 if kind == "judge_score" else 1)
        for name, judge in zip(names, judges, strict=True)
    }
    return CompositeConfig(
        weights={name: Weight(1, PLACEHOLDER) for name in names},
        gates=("rendered",),
        label="first",
        sources=said | {"rendered": Source("rendered")},
        check="win_rate",
    )


def _heard(run: Run) -> tuple[list[str], str]:
    """Return judges that said something of the run's outputs, and what: scores where there are."""
    done = Verdict.objects.filter(judge__run=run, state=Verdict.State.DONE)
    for kind, verdicts in (
        ("judge_score", done.filter(score_a__isnull=False)),
        ("judge_wins", done.exclude(winner="")),
    ):
        heard = set(verdicts.order_by().values_list("judge__name", flat=True).distinct())
        judges = [name for name in judge_names(run, with_baselines=False) if name in heard]
        if judges:
            return judges[:MOST_PROPOSED], kind
    return [], ""


@transaction.atomic
def store(run: Run, config: CompositeConfig) -> CompositeDefinition:
    """Make this the run's composite. New words for the same version replace the old ones."""
    Run.objects.select_for_update().get(pk=run.pk)
    newest = CompositeDefinition.objects.filter(run=run).order_by("-id").first()
    if newest is None or newest.version != config.version:
        newest = CompositeDefinition(run=run, version=config.version)
    newest.config = as_json(config)
    newest.save()
    return newest


def versions_of(run: Run, most: int) -> list[tuple[CompositeDefinition, CompositeConfig]]:
    """Return the run's composites, each version once, the one that counts first."""
    rows = CompositeDefinition.objects.filter(run=run).order_by("-id")[: 4 * most]
    newest: dict[str, CompositeDefinition] = {}
    for row in rows:
        newest.setdefault(row.version, row)
    return [
        (row, parse(json.loads(row.config), needs_sources=True))
        for row in [*newest.values()][:most]
    ]


def judge_names(run: Run, *, with_baselines: bool = True) -> list[str]:
    """Return the names of a run's judges in its order, each once; baselines give no scores."""
    judges = Judge.objects.filter(run=run).order_by("position")
    if not with_baselines:
        judges = judges.exclude(provider=Judge.BASELINE)
    return list(dict.fromkeys(judges.values_list("name", flat=True)))


def as_json(config: CompositeConfig) -> str:
    return json.dumps(as_data(config), ensure_ascii=False, indent=2)
