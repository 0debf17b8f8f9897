"""The forms of a new run. What they say goes through `run_config.parse`, as all configs do."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.urls import reverse
from django.utils.html import format_html

from humanjudge.http import Context
from humanjudge.lib import strict_json
from judge_eval.baselines import BASELINES, names_for
from judge_eval.config import prompt_files
from judge_eval.config.run_config import (
    DEFAULT_PROVIDER,
    RUBRICS,
    ConfigError,
    ConfigInvalid,
    RunConfig,
    parse,
)
from judge_eval.models import Provider
from voting.choices import LABELS, SIDES, WITHOUT_SIDE
from voting.models import Project, Queue

MOST_FILE_BYTES = 5_000_000
MOST_ERRORS = 20
# Of a text field whose lines are names, code or the like.
LINES: Final = {"spellcheck": "false", "autocomplete": "off", "class": "lines"}
# Where a config has what stands in a field; left empty, its default stands there.
_PATHS: Final = {
    "provider": "provider",
    "votes_per_pair": "votes_per_pair",
    "samples": "judging.samples",
    "overlap_percent": "overlap.share",
    "overlap_votes": "overlap.votes",
    "generation_temperature": "generation.temperature",
    "generation_max_tokens": "generation.max_tokens",
    "judging_temperature": "judging.temperature",
    "judging_max_tokens": "judging.max_tokens",
}
_FIELDS: Final = {path: field for field, path in _PATHS.items()}
_LISTED = re.compile(r"(models|judges|prompts)\[(\d+)\](?:\.(.+))?")


class ProjectForm(forms.Form):
    """Where a run belongs: every form of a new run asks for it."""

    project = forms.ModelChoiceField(
        Project.objects.order_by("name"), required=False, empty_label="a new one:"
    )
    new_project = forms.CharField(label="Name of the new project", max_length=200, required=False)
    run_config: RunConfig | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **(kwargs | {"label_suffix": ""}))

    def clean(self) -> Context:
        cleaned = super().clean() or self.cleaned_data
        if not {"project", "new_project"} & self.errors.keys():
            if cleaned.get("project") and cleaned.get("new_project"):
                self.add_error("new_project", "Choose a project or name a new one, not both.")
            elif not cleaned.get("project") and not cleaned.get("new_project"):
                self.add_error("new_project", "Name the new project, or choose one.")
        return cleaned

    @property
    def is_too_large(self) -> bool:
        errors = self.errors.as_data().values()
        return any(error.code == "too_large" for several in errors for error in several)


class SmallFile(forms.FileField):
    """A file of at most 5 MB, which may be left out."""

    def clean(self, data: Any, initial: Any = None) -> UploadedFile[bytes] | None:
        file: UploadedFile[bytes] | None = super().clean(data, initial)
        if file is not None and (file.size or 0) > MOST_FILE_BYTES:
            raise forms.ValidationError("It is larger than 5 MB.", code="too_large")
        return file


def _whole(label: str, help_text: str = "") -> forms.IntegerField:
    widget = forms.NumberInput(attrs={"min": 1})
    return forms.IntegerField(label=label, help_text=help_text, required=False, widget=widget)


def _number(label: str, help_text: str = "") -> forms.FloatField:
    widget = forms.NumberInput(attrs={"min": 0, "step": "any"})
    return forms.FloatField(label=label, help_text=help_text, required=False, widget=widget)


def _one_of(label: str, choices: Sequence[tuple[str, str]]) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=choices, widget=forms.RadioSelect)


def _some_of(label: str, choices: Sequence[tuple[str, str]]) -> forms.MultipleChoiceField:
    widget = forms.CheckboxSelectMultiple
    return forms.MultipleChoiceField(label=label, choices=choices, widget=widget, required=False)


def _lines(label: str, help_text: str, rows: int = 4) -> forms.CharField:
    # Not stripped: what is wrong with a line is said by its number.
    widget = forms.Textarea(attrs=LINES | {"rows": rows})
    return forms.CharField(
        label=label, help_text=help_text, required=False, strip=False, widget=widget
    )


class RunForm(ProjectForm):
    """A new run, field by field."""

    name = forms.CharField(max_length=200)
    kind = _one_of(
        "Kind of output", [("svg", "drawings (SVG)"), ("text", "texts"), ("code", "code")]
    )
    models = _lines("Models that generate", "One per line, by the name that the provider knows.")
    provider = forms.ChoiceField(help_text="Models and judges are asked there.")
    prompts = _lines("Prompts", "One per line.", rows=7)
    prompts_file = SmallFile(
        label="or a file of prompts",
        required=False,
        help_text="A text with one per line, a JSON array, or a CSV with the columns id, text and "
        "tags; UTF-8, at most 5 MB.",
    )
    judges = _lines("Judges", "Models, one per line; they may be among those that generate.")
    baselines = _some_of(
        "Baselines, which know nothing: the floor of the board",
        [(n, n if n in names_for("text") else f"{n} (drawings only)") for n in BASELINES],
    )
    verdict_orders = _one_of(
        "Each judge is asked about a pair",
        [("both", "in both orders"), ("random", "once, in an order left to chance")],
    )
    samples = _whole("Samples", "Answers for each order; the majority counts.")
    ballot = _some_of(
        "Beside A and B one may say", [(choice, LABELS[choice]) for choice in WITHOUT_SIDE]
    )
    rubric = forms.CharField(
        help_text="What voters and judges are told to look for.",
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
    )
    votes_per_pair = _whole("Votes per pair")
    overlap_percent = _number(
        "Of 100 pairs, how many get more votes",
        "So that the agreement between people can be measured.",
    )
    overlap_votes = _whole("Votes on each of those")
    reveal = _one_of("What the judges said is shown to voters", Queue.Reveal.choices)
    budget_usd = _number(
        "Budget in US dollars", "The run stops before it is passed. Empty: no limit."
    )
    generation_temperature = _number("Temperature", "Empty: none is sent.")
    generation_max_tokens = _whole("Max output tokens")
    judging_temperature = _number("Temperature", "Empty: none is sent.")
    judging_max_tokens = _whole("Max verdict tokens")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        provider = self.fields["provider"]
        assert isinstance(provider, forms.ChoiceField)  # as declared above
        names = provider_names()
        provider.choices = [(name, name) for name in sorted(names)]
        if not names:
            provider.required = False
            provider.choices += [("", "none yet")]
            where = reverse("admin:judge_eval_provider_add")
            words = 'There is none yet: <a href="{}">add one</a> before this run starts.'
            provider.help_text = format_html(words, where)
        chosen = str(self["provider"].value() or "")
        if chosen and chosen not in names:
            # Copied from a config; the page of the draft says it too.
            provider.choices += [(chosen, f"{chosen} (there is none of that name)")]
        self._prompts: list[prompt_files.FoundPrompt] = []

    def clean_overlap_percent(self) -> float | None:
        percent: float | None = self.cleaned_data["overlap_percent"]
        if percent is not None and not 0 <= percent <= 100:
            raise forms.ValidationError("Must be from 0 to 100.")
        return percent

    def clean(self) -> Context:
        cleaned = super().clean()
        text, file = cleaned.get("prompts", ""), cleaned.get("prompts_file")
        self._prompts = prompt_files.from_lines(text)
        if text.strip() and file:
            self.add_error("prompts_file", "Paste prompts or give a file, not both.")
        elif file:
            try:
                self._prompts = prompt_files.from_file(file.name or "", file.read())
            except prompt_files.PromptsUnreadable as error:
                self.add_error("prompts_file", f"This file cannot be read: {error}.")
        try:
            config = parse(self._as_config())
        except ConfigInvalid as invalid:
            self._show(invalid.errors)
        else:
            self.run_config = None if self.errors else config
        return cleaned

    def _as_config(self) -> Context:
        # A number that is no number is complained of already; here its default stands for it.
        got = self.cleaned_data
        plain = ("name", "kind", "verdict_orders", "reveal", "budget_usd")
        config: Context = {name: got[name] for name in plain if name in got}
        for field, path in _PATHS.items():
            value: Any = got.get(field)
            part, _, name = path.partition(".")
            # Without a temperature none is sent, which is not its default.
            if value in (None, "") and not (name == "temperature" and field in got):
                continue
            if field == "overlap_percent":
                value /= 100
            if name:
                config.setdefault(part, {})[name] = value
            else:
                config[part] = value
        rubric = "\n".join(str(got.get("rubric", "")).splitlines()).strip()
        if got.get("kind") and rubric in ("", *RUBRICS.values()):
            rubric = RUBRICS[got["kind"]]
        return config | {
            "models": [line for _, line in self._lines("models")],
            "judges": [line for _, line in self._lines("judges")] + got.get("baselines", []),
            "prompts": [found.entry for found in self._prompts],
            "ballot": [*SIDES, *got.get("ballot", [])],
            "rubric": rubric,
        }

    def _lines(self, field: str) -> list[tuple[int, str]]:
        lines = enumerate(self.cleaned_data.get(field, "").splitlines(), start=1)
        return [(number, line.strip()) for number, line in lines if line.strip()]

    def _show(self, errors: Sequence[ConfigError]) -> None:
        """Put each error beside the field that it is about, unless that was complained of."""
        complained = set(self.errors)
        if "prompts_file" in complained:  # without it there are none, which is not news
            complained.add("prompts")
        by_field: dict[str | None, list[str]] = defaultdict(list)
        for error in errors:
            field, message = self._place_of(error)
            if field not in complained:
                by_field[field].append(message)
        for field, messages in by_field.items():
            self.add_error(field, shortened(messages))

    def _place_of(self, error: ConfigError) -> tuple[str | None, str]:
        of_prompts = "prompts_file" if self.cleaned_data.get("prompts_file") else "prompts"
        listed = _LISTED.fullmatch(error.path)
        if listed is None:
            field = _FIELDS.get(error.path, error.path)
            if field not in self.fields:
                return None, f"{error}."
            message = error.message[:1].upper() + error.message[1:] + "."
            return of_prompts if field == "prompts" else field, message
        field, index, lines = listed[1], int(listed[2]), self._lines(listed[1])
        if field == "prompts":
            field, where = of_prompts, self._prompts[index].where
        elif index < len(lines):
            where = f"Line {lines[index][0]}"
        else:
            field = "baselines"
            where = str(self.cleaned_data["baselines"][index - len(lines)])
        part = f", {listed[3]}" if listed[3] not in (None, "id") else ""
        return field, f"{where}{part}: {error.message}."


def provider_names() -> list[str]:
    """Return the providers there are, the usual one first."""
    names = list(Provider.objects.order_by("name").values_list("name", flat=True))
    if settings.PROVIDER_BASE_URL or DEFAULT_PROVIDER in names:
        return [DEFAULT_PROVIDER, *(name for name in names if name != DEFAULT_PROVIDER)]
    return names


def empty_values() -> Context:
    """Return what stands in the form of a new run: the defaults of a config."""
    data = {"name": "-", "models": ["-a", "-b"], "judges": ["-"], "prompts": ["-"]}
    values = form_values(parse(data))
    assert values is not None  # the smallest config there is
    values |= dict.fromkeys(("name", "models", "judges", "prompts"), "")
    return values | {
        "baselines": names_for("text"),
        "provider": next(iter(provider_names()), ""),
        # Without pairs that several people vote on, nobody knows how well people agree.
        "overlap_percent": "20",
    }


def form_values(config: RunConfig) -> Context | None:
    """Return what would have to stand in the form for this config, None if it cannot say it."""
    values = {name: getattr(config, name) for name in RunForm.base_fields if hasattr(config, name)}
    for field, path in _PATHS.items():
        part, _, name = path.partition(".")
        value = getattr(getattr(config, part), name) if name else getattr(config, part)
        if field == "overlap_percent":
            value *= 100
        values[field] = "" if value is None else f"{value:g}" if isinstance(value, float) else value
    chosen = {judge.id for judge in config.judges if judge.is_baseline}
    values |= {
        "models": "\n".join(model.id for model in config.models),
        "prompts": "\n".join(prompt.text for prompt in config.prompts),
        "judges": "\n".join(judge.id for judge in config.judges if not judge.is_baseline),
        "baselines": [name for name in BASELINES if name in chosen],
        "ballot": [choice for choice in config.ballot if choice not in SIDES],
    }
    # Sent as it stands, the form must give the same config.
    form = RunForm(values | {"new_project": "-"})
    return values if form.is_valid() and form.run_config == config else None


def as_json(config: RunConfig, *, name: str) -> str:
    return json.dumps(config.as_dict() | {"name": name}, indent=2, ensure_ascii=False)


class ConfigForm(ProjectForm):
    """The whole config of a run as JSON."""

    config = forms.CharField(
        label="Config", required=False, widget=forms.Textarea(attrs=LINES | {"rows": 22})
    )
    config_file = SmallFile(
        label="or a file", required=False, help_text="JSON in UTF-8, at most 5 MB."
    )

    def clean(self) -> Context:
        cleaned = super().clean()
        text, file = cleaned.get("config", ""), cleaned.get("config_file")
        if "config_file" in self.errors:
            return cleaned
        if bool(file) == bool(text):
            self.add_error("config_file", "Paste a config or give a file: one of the two.")
            return cleaned
        try:
            data = file.read().decode("utf-8-sig") if file else text
            self.run_config = parse(strict_json.loads(data))
        except ConfigInvalid as invalid:
            wrong = shortened([str(error) for error in invalid.errors])
        except UnicodeDecodeError:
            wrong = ["It is not UTF-8."]
        except strict_json.NotJson as error:
            wrong = [f"It is {error}."]
        else:
            return cleaned
        self.add_error("config_file" if file else "config", wrong)
        return cleaned


def shortened(messages: Sequence[str]) -> list[str]:
    more = len(messages) - MOST_ERRORS
    return [*messages[:MOST_ERRORS], *([f"And {more:,} more."] if more > 0 else [])]
