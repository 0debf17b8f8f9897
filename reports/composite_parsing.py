"""Reads the config of a composite, as JSON or YAML hold it; says all that is wrong at once."""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

from judge_eval.config.fields import ConfigError, Fields
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.dialogue.reply_text import excerpt
from reports.composite_config import (
    CHECKS,
    KINDS,
    OF_JUDGES,
    CompositeConfig,
    Source,
    Weight,
    as_text,
)

MOST_COMPONENTS: Final = 30
LONGEST_NAME: Final = 60
LONGEST_REASON: Final = 500
LARGEST: Final = 1_000_000_000
_SCALED: Final = {"judge_score", "label", "metadata"}
_SCORES: Final = (0.0, 10.0)
_NAME: Final = re.compile(r"[^\W\d]\w*(?:[ .-]\w+)*")
Entries: TypeAlias = list[tuple[str, object]]


def parse(data: object, *, needs_sources: bool = False) -> CompositeConfig:
    """Check a config, as JSON or YAML hold it.

    Parameters
    ----------
    data : mapping
        ``weights`` maps each component to ``weight`` (above 0) and ``reason``; ``gates`` lists
        components; ``label``, ``sources`` (component to ``from`` and its options) and ``check``
        (``pass_rate`` or ``win_rate``) may be there.
    needs_sources : bool
        Whether every component must have a source.

    Raises
    ------
    ConfigInvalid
        With all that is wrong, each mistake named by its path.

    Examples
    --------
    >>> parse({"weights": {"brevity": {"weight": 1, "reason": " "}}, "gate": []})
    Traceback (most recent call last):
        ...
    judge_eval.config.run_config.ConfigInvalid: weights.brevity.reason: is empty
    gate: unknown; did you mean 'gates'?
    """
    errors: list[ConfigError] = []
    fields = Fields(data, "", errors)
    label = fields.text("label", "", most=LONGEST_NAME) if isinstance(data, dict) else ""
    weights = _weights(_named(fields, "weights", errors), errors)
    gates = fields.texts("gates", most=MOST_COMPONENTS, longest=LONGEST_NAME)
    sources = _sources(_named(fields, "sources", errors), errors)
    check = fields.choice("check", CHECKS, CHECKS[0])
    fields.close()
    config = CompositeConfig(weights, gates, label, sources, check)
    if isinstance(data, dict):
        _match(config, errors, needs_sources=needs_sources)
    if errors:
        raise ConfigInvalid(errors)
    return config


def as_data(config: CompositeConfig) -> dict[str, object]:
    """Return what `parse` reads as this config again."""
    weights = {n: {"weight": w.value, "reason": w.reason} for n, w in config.weights.items()}
    data: dict[str, object] = {"label": config.label} if config.label else {}
    data |= {"weights": weights, "gates": list(config.gates)}
    if config.sources:
        data |= {"sources": {name: _source_data(s) for name, s in config.sources.items()}}
    return data | {"check": config.check}


def _source_data(source: Source) -> dict[str, object]:
    data: dict[str, object] = {"from": source.kind}
    if source.judge:
        data["judge"] = source.judge
    if source.key:
        data["task" if source.kind == "label" else "key"] = source.key
    if source.equals:
        data["equals"] = json.loads(source.equals)
    elif source.kind in _SCALED:
        data["range"] = [source.low, source.high]
    return data


def _weights(entries: Entries, errors: list[ConfigError]) -> dict[str, Weight]:
    weights = {}
    for name, entry in entries:
        part = Fields(entry, f"weights.{name}", errors)
        number = part.number("weight", 1.0, low=0, high=LARGEST, is_above=True)
        if part.anything("weight") is None:
            part.complain("weight", "is missing")
        weights[name] = Weight(number or 1.0, part.text("reason", most=LONGEST_REASON))
        part.close()
    return weights


def _sources(entries: Entries, errors: list[ConfigError]) -> dict[str, Source]:
    sources = {}
    for name, entry in entries:
        part = Fields(entry, f"sources.{name}", errors, "from")
        sources[name] = _source(part)
        part.close()
    return sources


def _source(part: Fields) -> Source:
    if part.anything("from") is None:
        part.complain("from", f"is missing: one of {', '.join(KINDS)}")
        return Source(KINDS[0])
    kind = part.choice("from", KINDS, KINDS[0])
    judge = key = equals = ""
    if kind in {*OF_JUDGES, "label"}:
        judge = part.text("judge", "" if kind == "label" else None, most=200)
    if kind in {"label", "metadata"}:
        key = part.text("task" if kind == "label" else "key", most=LONGEST_NAME)
        equals = _equals(part)
    low, high = _range(part, kind) if kind in _SCALED and not equals else (0.0, 1.0)
    return Source(kind, judge, key, low, high, equals)


def _equals(part: Fields) -> str:
    value = part.anything("equals")
    if value is None:
        return ""
    if not isinstance(value, str | int | float | bool):
        part.complain("equals", "must be text, a number, true or false")
    return as_text(value)


def _range(part: Fields, kind: str) -> tuple[float, float]:
    value = part.anything("range")
    if value is None and kind == "judge_score":
        return _SCORES
    if value is None:
        part.complain("range", "say which range becomes 0 to 1, as [1, 5], or what it 'equals'")
    elif (
        not isinstance(value, list | tuple)
        or len(value) != 2
        or any(isinstance(end, bool) or not isinstance(end, int | float) for end in value)
        or not -LARGEST <= value[0] < value[1] <= LARGEST
    ):
        part.complain("range", "must be two numbers, the lower one first, as [1, 5]")
    else:
        return float(value[0]), float(value[1])
    return 0.0, 1.0


def _named(fields: Fields, key: str, errors: list[ConfigError]) -> Entries:
    """Return the entries of an object of components."""
    value = fields.anything(key)
    if value is None:
        return []
    if not isinstance(value, dict):
        fields.complain(key, "must be an object, by component")
        return []
    if len(value) > MOST_COMPONENTS:
        fields.complain(key, f"has {len(value):,}, the most is {MOST_COMPONENTS}")
    entries = []
    for name, entry in list(value.items())[:MOST_COMPONENTS]:
        if isinstance(name, str) and len(name) <= LONGEST_NAME and _NAME.fullmatch(name):
            entries.append((name, entry))
        else:
            fields.complain(key, f"{excerpt(str(name), 40)} is no name: take a few plain words")
    return entries


def _match(config: CompositeConfig, errors: list[ConfigError], *, needs_sources: bool) -> None:
    """Complain of what is named in one place and not in the other."""
    if not config.weights and not any(error.path.startswith("weights") for error in errors):
        errors.append(ConfigError("weights", "must name at least one component"))
    for place, gate in enumerate(config.gates):
        if gate in config.gates[:place]:
            errors.append(ConfigError(f"gates[{place}]", "stands twice"))
    if needs_sources or config.sources:
        missing = [name for name in config.components if name not in config.sources]
        idle = [name for name in config.sources if name not in config.components]
        errors += [ConfigError(f"sources.{name}", "is missing") for name in missing]
        errors += [ConfigError(f"sources.{name}", "is not used") for name in idle]
