"""Stores and reads how a run's outputs get one number."""

from __future__ import annotations

import json

from django.db import transaction

from judge_eval.config.fields import ConfigError
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.interchange import strict_json
from judge_eval.models import Judge, Run
from reports.composite_config import CompositeConfig
from reports.composite_parsing import as_data, parse
from reports.models import CompositeDefinition


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
    unknown = [
        ConfigError(
            f"sources.{name}.judge",
            f"no judge of this run is called {source.judge!r}; there are {', '.join(judges)}",
        )
        for name, source in config.sources.items()
        if source.judge and source.judge not in judges
    ]
    if unknown:
        raise ConfigInvalid(unknown)
    return config


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
