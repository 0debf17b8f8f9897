"""Which extensions may be used here, and what becomes of a run that needs one that may not."""

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import ConfigError, ConfigInvalid
from judge_eval.judging.config.judge_types import JUDGE_TYPES
from judge_eval.judging.config.run_config import RunConfig
from judge_eval.judging.config.validate_run import TURNED_OFF, absence_reason, absent, validate_run
from judge_eval.judging.providers.protocols import PROTOCOLS
from judge_eval.models import Extension, Provider, Run
from judge_eval.runs.queries import switched_off


def switch(extension_id: str, user: User | None, *, is_enabled: bool) -> None:
    """Turn an extension on or off, and note who did."""
    now = {"is_enabled": is_enabled, "changed_by": user, "changed_at": timezone.now()}
    with transaction.atomic():
        row, _ = Extension.objects.update_or_create(pk=extension_id, defaults=now)
        message = "Turned on." if is_enabled else "Turned off."
        if user is not None:
            LogEntry.objects.log_actions(user.pk, [row], CHANGE, message, single_object=True)


def new_config(data: object) -> RunConfig:
    """Return the config of a new run, or raise ConfigInvalid with all that is wrong.

    Nothing that is not here, or turned off, may be named in it.
    """
    off = switched_off()
    config = validate_run(data, off)
    if wrong := _providers_without(config.as_dict(), off):
        raise ConfigInvalid(wrong)
    return config


def absent_from(config: JsonObject, off: frozenset[str] | None = None) -> list[ConfigError]:
    """Say what a config that is stored names and what is not here, or turned off, by now."""
    off = switched_off() if off is None else off
    return [*absent(config, off), *_providers_without(config, off)]


def _providers_without(config: JsonObject, off: frozenset[str]) -> list[ConfigError]:
    """Name the providers of a config whose protocol is not here; others may be made later."""
    places = {} if config.get("outputs") == "given" else {config["provider"]: "provider"}
    for number, judge in enumerate(config["judges"]):
        for model in judge.get("parts") or [judge]:
            places.setdefault(model["provider"], f"judges[{number}].provider")
    rows = Provider.objects.filter(name__in=places).values_list("name", "protocol")
    return [
        ConfigError(places[name], f"{name}: {reason}")
        for name, protocol in rows
        if (reason := absence_reason(protocol, PROTOCOLS, "provider type", off))
    ]


def obstacle(run: Run) -> str:
    """Say why a run cannot go on with the extensions that are here; nothing where it can."""
    off = switched_off()
    if run.config and (wrong := absent_from(run.config, off)):
        return f"{wrong[0]}."
    for judge in run.judges.all():
        if judge.is_baseline and (name := judge.model or judge.name) in off:
            return TURNED_OFF.format(name) + "."
        if judge.recipe and not judge.is_baseline:
            kind, recipe_version = judge.recipe["type"], judge.recipe["version"]
            installed_version = JUDGE_TYPES[kind].version
            if recipe_version != installed_version:
                is_another = (
                    f"{kind} {installed_version} is installed, which makes another judge of it"
                )
                return f"{judge.name} is judged by {kind} {recipe_version}; {is_another}."
    return ""
