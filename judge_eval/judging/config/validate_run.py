"""The config of a new run, checked with all that it names: nothing falls back on something else."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from humanjudge.core import extensions
from humanjudge.core.extensions import Extension, HookFailed, calling
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import excerpt
from humanjudge.core.validation import ConfigError, ConfigInvalid, Part, Place, meant, validated
from judge_eval.judging.baselines import BASELINES, MOST_FREQUENT, is_baseline
from judge_eval.judging.config.judge_types import JUDGE_TYPES
from judge_eval.judging.config.modes import MODES, Mistake
from judge_eval.judging.config.run_config import (
    BASELINE,
    JUDGE_EVAL,
    NO_OTHERS,
    ONE_MODEL,
    JudgeSpec,
    RunConfig,
    old_name,
    parse,
)

TURNED_OFF: Final = "{} is turned off; a superuser can turn it on, on the page Extensions"


def validate_run(data: object, off: Collection[str] = ()) -> RunConfig:
    """Return the config of a new run, or raise ConfigInvalid with every mistake.

    What it names must be here and not turned `off`.

    >>> run = {"name": "r", "models": ["m", "n"], "judges": ["j"], "prompts": ["p"]}
    >>> validate_run(run | {"mode": "judge_eval"}).mode
    'builtin-judge-eval'
    >>> validate_run(run | {"mode": "judge-eval"})
    Traceback (most recent call last):
        ...
    humanjudge.core.validation.ConfigInvalid: mode: there is no run mode 'judge-eval'; did you \
mean 'builtin-judge-eval'?
    """
    absences = list(_absences(data, off)) if isinstance(data, dict) else []
    config = parse(data, absences)
    if mistakes := list(_mistakes(config)):
        raise ConfigInvalid(mistakes)
    return config


def absent(config: JsonObject, off: Collection[str]) -> list[ConfigError]:
    """Say which extensions of a config, as it is stored, are not here or turned off by now."""
    places = _absences(config, off)
    errors = []
    for place, problem in places:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
        errors.append(ConfigError("".join(steps).lstrip("."), problem))
    return errors


def _absences(config: JsonObject, off: Collection[str]) -> Iterator[tuple[Place, str]]:
    mode = old_name(config.get("mode", JUDGE_EVAL))
    if isinstance(mode, str):
        if reason := absence_reason(mode.strip(), MODES, "run mode", off):
            yield ("mode",), reason
        else:
            yield from _too_few_models(config, mode.strip())
    judges = config.get("judges")
    for number, judge in enumerate(judges[:50] if isinstance(judges, list | tuple) else ()):
        spec = judge if isinstance(judge, dict) else {"id": judge}
        yield from ((("judges", number, *place), reason) for place, reason in _judge(spec, off))


def _too_few_models(config: JsonObject, mode: str) -> Iterator[tuple[Place, str]]:
    least = MODES[mode].fewest_models[config.get("items") is not None]
    models = config.get("models")
    if config.get("outputs") != "given" and isinstance(models, list) and len(models) < least:
        number = {1: "one model", 2: "two models"}.get(least, f"{least} models")
        yield ("models",), f"enter at least {number}"


def _judge(judge: JsonObject, off: Collection[str]) -> Iterator[tuple[Place, str]]:
    name, kind = judge.get("id"), judge.get("type", ONE_MODEL)
    if isinstance(name, str):
        name = name.strip()
        if judge.get("provider") == BASELINE and not is_baseline(name):
            yield ("provider",), NO_OTHERS + meant(name, [*BASELINES, MOST_FREQUENT])
        elif name in off and name in BASELINES:
            yield ("id",), TURNED_OFF.format(name)
    # A baseline is asked nowhere, so what asks models does not matter to it.
    is_model = not (isinstance(name, str) and is_baseline(name))
    if is_model and isinstance(kind, str):
        reason = absence_reason(kind.strip(), JUDGE_TYPES, "judge type", off)
        yield from [(("type",), reason)] if reason else ()


def absence_reason(
    name: str, registered: Mapping[str, Extension], noun: str, off: Collection[str]
) -> str:
    """Say why an extension cannot be used; nothing where it can."""
    if name not in registered:
        broken = "; see what is broken on the page Extensions" if extensions.broken else ""
        usable = [candidate for candidate in registered if candidate not in off]
        return f"there is no {noun} {excerpt(name, 60)}{meant(name, usable)}{broken}"
    return TURNED_OFF.format(name) if name in off else ""


def _mistakes(config: RunConfig) -> Iterator[ConfigError]:
    """Let modes and types say what is wrong, once all that is common to them is right."""
    mode = MODES[config.mode]
    yield from _wrong_options(mode.Options, config.mode_options, "mode_options")
    yield from _hook_errors(mode, "mode", lambda: mode.check(config))
    for number, judge in enumerate(config.judges):
        for error in _wrong_parts(judge) if judge.is_baseline else _wrong_judge(judge):
            yield ConfigError(f"judges[{number}].{error.path}", error.message)


def _wrong_judge(judge: JudgeSpec) -> Iterator[ConfigError]:
    kind = JUDGE_TYPES[judge.type]
    least, most = kind.parts
    if not least <= len(judge.parts) <= most:
        expected = f"{least} to {most}" if most else "none"
        yield ConfigError("parts", f"has {len(judge.parts)}; of type {kind.id} it has {expected}")
    yield from _wrong_parts(judge)
    yield from _wrong_options(kind.Options, judge.options, "options")
    yield from _hook_errors(kind, "type", lambda: kind.check(judge))


def _wrong_parts(judge: JudgeSpec) -> Iterator[ConfigError]:
    if judge.is_baseline and judge.parts:
        yield ConfigError("parts", "are of a judge that asks models")
    for place, part in enumerate(judge.parts):
        if part in judge.parts[:place]:
            yield ConfigError(f"parts[{place}]", f"{part.id} is given twice")
        if part.provider == BASELINE or is_baseline(part.id):
            yield ConfigError(f"parts[{place}]", f"{part.id} is a baseline, no model")


def _hook_errors(
    extension: Extension, path: str, check: Callable[[], Iterable[Mistake]]
) -> Iterator[ConfigError]:
    try:
        with calling(extension, "check"):
            mistakes = [ConfigError(mistake_path, reason) for mistake_path, reason in check()]
    except HookFailed as failed:
        mistakes = [ConfigError(path, str(failed))]
    yield from mistakes


def _wrong_options(options: type[Part], values: JsonObject, path: str) -> Iterator[ConfigError]:
    try:
        validated(options, values, path=path)
    except ConfigInvalid as invalid:
        yield from invalid.errors
