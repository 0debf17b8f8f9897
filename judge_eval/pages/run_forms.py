"""The forms of a new run. What they say goes through `run_config.parse`, as all configs do."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.urls import reverse
from django.utils.html import format_html

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
from judge_eval.pages.config_form import LINES, ProjectForm, shortened, small_file
from voting.choices import LABELS, WITHOUT_SIDE
from voting.models import Inference, Queue

# Where the form asks for what a config has at this path.
_FIELDS = {
    "overlap.share": "overlap_percent",
    "overlap.votes": "overlap_votes",
    "generation.temperature": "generation_temperature",
    "generation.max_tokens": "generation_max_tokens",
    "judging.temperature": "judging_temperature",
    "judging.max_tokens": "judging_max_tokens",
    "judging.samples": "samples",
}
_LISTED = re.compile(r"(models|judges|prompts)\[(\d+)\](?:\.(.+))?")


def _whole(label: str, help_text: str = "") -> forms.IntegerField:
    widget = forms.NumberInput(attrs={"min": 1})
    return forms.IntegerField(label=label, help_text=help_text, required=False, widget=widget)


def _number(label: str, help_text: str = "") -> forms.FloatField:
    widget = forms.NumberInput(attrs={"min": 0, "step": "any"})
    return forms.FloatField(label=label, help_text=help_text, required=False, widget=widget)


def _lines(label: str, help_text: str, rows: int = 4) -> forms.CharField:
    # Not stripped: what is wrong with a line is said by its number.
    widget = forms.Textarea(attrs=LINES | {"rows": rows})
    return forms.CharField(
        label=label, help_text=help_text, required=False, strip=False, widget=widget
    )


class RunForm(ProjectForm):
    """A new run, field by field."""

    name = forms.CharField(max_length=200)
    kind = forms.ChoiceField(
        label="Kind of output",
        choices=[(Inference.Kind.SVG, "drawings (SVG)"), ("text", "texts"), ("code", "code")],
        widget=forms.RadioSelect,
    )
    models = _lines("Models that generate", "One per line, by the name that the provider knows.")
    provider = forms.ChoiceField(help_text="Models and judges are asked there.")
    prompts = _lines("Prompts", "One per line.", rows=7)
    prompts_file = forms.FileField(
        label="or a file of prompts",
        required=False,
        help_text="A text with one per line, a JSON array, or a CSV with the columns id, text and "
        "tags; UTF-8, at most 5 MB.",
    )
    judges = _lines("Judges", "Models, one per line; they may be among those that generate.")
    baselines = forms.MultipleChoiceField(
        label="Baselines, which know nothing: the floor of the board",
        required=False,
        choices=[(n, n if n in names_for("text") else f"{n} (drawings only)") for n in BASELINES],
        widget=forms.CheckboxSelectMultiple,
    )
    verdict_orders = forms.ChoiceField(
        label="Each judge is asked about a pair",
        choices=[("both", "in both orders"), ("random", "once, in an order left to chance")],
        widget=forms.RadioSelect,
    )
    samples = _whole("Samples", "Answers for each order; the majority counts.")
    ballot = forms.MultipleChoiceField(
        label="Beside A and B one may say",
        required=False,
        choices=[(choice, LABELS[choice]) for choice in WITHOUT_SIDE],
        widget=forms.CheckboxSelectMultiple,
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
    reveal = forms.ChoiceField(
        label="What the judges said is shown to voters",
        choices=Queue.Reveal.choices,
        widget=forms.RadioSelect,
    )
    budget_usd = _number(
        "Budget in US dollars", "The run stops before it is passed. Empty: no limit."
    )
    generation_temperature = _number("Temperature", "Empty: none is sent.")
    generation_max_tokens = _whole("Max output tokens")
    judging_temperature = _number("Temperature", "Empty: none is sent.")
    judging_max_tokens = _whole("Max verdict tokens")

    run_config: RunConfig | None = None

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

    def clean_prompts_file(self) -> UploadedFile[bytes] | None:
        return small_file(self.cleaned_data["prompts_file"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        self._prompts = self._found_prompts()
        try:
            config = parse(self._as_config())
        except ConfigInvalid as invalid:
            self._show(invalid.errors)
        else:
            self.run_config = None if self.errors else config
        return cleaned

    def _found_prompts(self) -> list[prompt_files.FoundPrompt]:
        text, file = self.cleaned_data.get("prompts", ""), self.cleaned_data.get("prompts_file")
        if text.strip() and file:
            self.add_error("prompts_file", "Paste prompts or give a file, not both.")
        elif file:
            try:
                return prompt_files.from_file(file.name or "", file.read())
            except prompt_files.PromptsUnreadable as error:
                self.add_error("prompts_file", f"This file cannot be read: {error}.")
        return prompt_files.from_lines(text)

    def _as_config(self) -> dict[str, Any]:
        got = self.cleaned_data
        # A number that is no number is complained of already; here its default stands for it.
        config = {
            name: got[name]
            for name in ("name", "kind", "verdict_orders", "reveal", "budget_usd")
            if name in got
        } | _given(provider=got.get("provider") or None, votes_per_pair=got.get("votes_per_pair"))
        percent = got.get("overlap_percent")
        return config | {
            "models": [line for _, line in self._lines("models")],
            "judges": [line for _, line in self._lines("judges")] + got.get("baselines", []),
            "prompts": [found.entry for found in self._prompts],
            "ballot": ["A", "B", *got.get("ballot", [])],
            "rubric": self._rubric(),
            "overlap": _given(
                share=None if percent is None else percent / 100, votes=got.get("overlap_votes")
            ),
            "generation": self._asked("generation"),
            "judging": self._asked("judging") | _given(samples=got.get("samples")),
        }

    def _asked(self, role: str) -> dict[str, Any]:
        got, temperature = self.cleaned_data, f"{role}_temperature"
        # Left empty, a temperature is not sent at all, which is not its default.
        sent = {"temperature": got[temperature]} if temperature in got else {}
        return sent | _given(max_tokens=got.get(f"{role}_max_tokens"))

    def _rubric(self) -> str:
        """Return what was written, or the rubric of the kind where none of one's own was."""
        text = "\n".join(str(self.cleaned_data.get("rubric", "")).splitlines()).strip()
        kind = self.cleaned_data.get("kind")
        return RUBRICS[kind] if kind and (not text or text in RUBRICS.values()) else text

    def _lines(self, field: str) -> list[tuple[int, str]]:
        lines = enumerate(self.cleaned_data.get(field, "").splitlines(), start=1)
        return [(number, line.strip()) for number, line in lines if line.strip()]

    def _show(self, errors: Sequence[ConfigError]) -> None:
        """Put each error beside the field that it is about."""
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
        listed = _LISTED.fullmatch(error.path)
        if listed is None:
            field = _FIELDS.get(error.path, error.path)
            if field == "prompts" and self.cleaned_data.get("prompts_file"):
                field = "prompts_file"
            known = field in self.fields
            message = error.message[:1].upper() + error.message[1:] + "."
            return (field, message) if known else (None, f"{error}.")
        name, index, within = listed[1], int(listed[2]), listed[3]
        field, where = self._place_in(name, index)
        part = f", {within}" if within and within != "id" else ""
        return field, f"{where}{part}: {error.message}."

    def _place_in(self, name: str, index: int) -> tuple[str, str]:
        if name == "prompts":
            uploaded = bool(self.cleaned_data.get("prompts_file"))
            return "prompts_file" if uploaded else "prompts", self._prompts[index].where
        lines = self._lines(name)
        if index < len(lines):
            return name, f"Line {lines[index][0]}"
        return "baselines", str(self.cleaned_data["baselines"][index - len(lines)])


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def provider_names() -> list[str]:
    """Return the providers there are, the usual one first."""
    names = list(Provider.objects.order_by("name").values_list("name", flat=True))
    if settings.PROVIDER_BASE_URL or DEFAULT_PROVIDER in names:
        return [DEFAULT_PROVIDER, *(name for name in names if name != DEFAULT_PROVIDER)]
    return names


def empty_values() -> dict[str, Any]:
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


def form_values(config: RunConfig) -> dict[str, Any] | None:
    """Return what would have to stand in the form for this config, None if it cannot say it."""
    judges = [judge.id for judge in config.judges if not judge.is_baseline]
    chosen = {judge.id for judge in config.judges if judge.is_baseline}
    prompts = [prompt.text for prompt in config.prompts]
    values = {
        "name": config.name,
        "kind": config.kind,
        "models": "\n".join(model.id for model in config.models),
        "provider": config.provider,
        "prompts": "\n".join(prompts),
        "judges": "\n".join(judges),
        "baselines": [name for name in BASELINES if name in chosen],
        "verdict_orders": config.verdict_orders,
        "samples": config.judging.samples,
        "ballot": [choice for choice in config.ballot if choice not in ("A", "B")],
        "rubric": config.rubric,
        "votes_per_pair": config.votes_per_pair,
        "overlap_percent": _plain(100 * config.overlap.share),
        "overlap_votes": config.overlap.votes,
        "reveal": config.reveal,
        "budget_usd": config.budget_usd,
        "generation_temperature": _plain(config.generation.temperature),
        "generation_max_tokens": config.generation.max_tokens,
        "judging_temperature": _plain(config.judging.temperature),
        "judging_max_tokens": config.judging.max_tokens,
    }
    return values if _says_all(config, values) else None


def _plain(number: float | None) -> str:
    return "" if number is None else f"{number:g}"


def _says_all(config: RunConfig, values: dict[str, Any]) -> bool:
    """Say whether the form, sent as it stands, would give the same config."""
    form = RunForm(values | {"new_project": "-"})
    return form.is_valid() and form.run_config == config


def as_json(config: RunConfig, **changed: Any) -> str:
    return json.dumps(config.as_dict() | changed, indent=2, ensure_ascii=False)
