"""The forms of a new run. What they say goes through `run_config.parse`, as all configs do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, cast

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import format_html

from humanjudge.core import strict_json
from humanjudge.core.http import Context, Problem
from humanjudge.core.validation import validated
from judge_eval.judging import extension_check, provider_access
from judge_eval.judging.baselines import (
    BASELINES,
    LONGER_HIGHER,
    MOST_FREQUENT,
    RANDOM,
    constants_for,
    names_for,
)
from judge_eval.judging.config.prompt_files import (
    ListedPrompt,
    PromptsUnreadable,
    from_file,
    from_lines,
)
from judge_eval.judging.config.run_config import (
    DEFAULT_PROVIDER,
    RUBRICS,
    SINGLE_RUBRICS,
    ConfigError,
    ConfigInvalid,
    JoiningJudges,
    JudgeSpec,
    ModelSpec,
    RunConfig,
    parse,
)
from judge_eval.models import Provider, Run
from judge_eval.runs.queries import switched_off
from judge_eval.runs.run_page import LINES, shortened
from voting.access.roles import NO_NEW_PROJECTS, Actor, can_make_projects, projects_where
from voting.items.choices import CHOICES, LABELS, SIDES, WITHOUT_SIDE
from voting.models import Queue
from voting.people.forms import ProjectField, completed

MOST_FILE_BYTES = 5_000_000
_WHOLE_FLOOR: Final = (
    "With any of them, those that ignore the outputs are added: chance can beat the others."
)
# On at first, where single outputs are judged.
_USUAL_SINGLE: Final = (MOST_FREQUENT, LONGER_HIGHER, RANDOM)
# Objects of a config: `judging.samples` stands in the field `judging_samples`.
PARTS: Final = ("overlap", "generation", "judging")
SETTINGS: Final = (
    "Settings may follow the name: temperature=none reasoning_effort=low max_tokens=2000."
)
DESCRIBED: Final = "A description may follow a colon: judge-a: a strict reader."
_LISTED = re.compile(r"(models|judges|prompts)\[(\d+)\](?:\.(.+))?")


class RunProjectForm(forms.Form):
    """Where a run belongs: every form of a new run asks for it.

    One is offered those projects in which one may make runs, and a new one if one may make it.
    """

    project = ProjectField(empty_label="a new one:")
    new_project = forms.CharField(label="Name of the new project", max_length=200, required=False)
    run_config: RunConfig | None = None

    def __init__(self, *args: Any, user: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project = cast("ProjectField", self.fields["project"])
        project.queryset = projects_where(user, "run").order_by("name")
        projects = project.queryset[:2]
        self.initial.setdefault("project", projects[0] if len(projects) == 1 else None)
        if not can_make_projects(user):
            if self.data.get("new_project"):
                raise Problem(403, NO_NEW_PROJECTS)
            project.empty_label = "choose one"
            del self.fields["new_project"]

    def clean(self) -> None:
        project, name = (self.cleaned_data.get(field) for field in ("project", "new_project"))
        if {"project", "new_project"} & self.errors.keys():
            return
        if project and name:
            self.add_error("new_project", "Choose a project or name a new one, not both.")
        elif not project and not name and "new_project" in self.fields:
            self.add_error("new_project", "Name the new project, or choose one.")
        elif not project and not name:
            self.add_error("project", "Choose a project.")


def _check_size(file: UploadedFile[bytes]) -> None:
    if (file.size or 0) > MOST_FILE_BYTES:
        raise forms.ValidationError("It is larger than 5 MB.", code="too_large")


def _file(label: str, help_text: str) -> forms.FileField:
    return forms.FileField(
        label=label, help_text=help_text, required=False, validators=[_check_size]
    )


def _number(
    label: str, help_text: str = "", field: type[forms.IntegerField] = forms.IntegerField
) -> forms.IntegerField:
    widget = forms.NumberInput(attrs={"min": 0})
    return field(label=label, help_text=help_text, required=False, widget=widget)


def _radio_field(label: str, choices: Sequence[tuple[str, str]]) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=choices, widget=forms.RadioSelect)


def _checkbox_field(
    label: str, choices: Sequence[tuple[str, str]], help_text: str = ""
) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label,
        choices=choices,
        help_text=help_text,
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )


def _lines(label: str, help_text: str, rows: int = 4) -> forms.CharField:
    # Not stripped: what is wrong with a line is said by its number.
    widget = forms.Textarea(attrs=LINES | {"rows": rows})
    return forms.CharField(
        label=label, help_text=help_text, required=False, strip=False, widget=widget
    )


class RunForm(RunProjectForm):
    name = forms.CharField(
        max_length=200, required=False, help_text="Empty: the names of its models."
    )
    question = forms.CharField(
        max_length=200,
        required=False,
        help_text="One line for readers of the board: Did the model refuse?",
    )
    kind = _radio_field(
        "Kind of output", [("svg", "drawings (SVG)"), ("text", "texts"), ("code", "code")]
    )
    # Pairs are compared where nothing else is said.
    items_kind = forms.ChoiceField(
        label="What people and judges are asked",
        choices=[choice for choice in Queue.Kind.choices if choice[0] != Queue.Kind.TEXT],
        widget=forms.RadioSelect,
        required=False,
    )
    items_choices = _lines("Categories or labels", "One per line. Only for categories and labels.")
    items_task = forms.CharField(
        label="What is asked for",
        help_text="Its name in files and scores.",
        max_length=60,
        required=False,
    )
    items_graded = forms.BooleanField(
        label="Votes and verdicts say how good it is, from 0 to 1", required=False
    )
    models = _lines(
        "Models that generate", f"One per line, by the name that the provider knows. {SETTINGS}"
    )
    provider = forms.ChoiceField(help_text="Models and judges are asked there.")
    prompts = _lines("Prompts", "One per line.", rows=7)
    prompts_file = _file(
        "or a file of prompts",
        "A text with one per line, a JSON array, JSON Lines, or a CSV with the columns id, text "
        "and tags; UTF-8, at most 5 MB. A prompt may be a list of messages.",
    )
    judges = _lines(
        "Judges",
        "Models, one per line; they may be among those that generate. Settings as for models. "
        f"{DESCRIBED}",
    )
    baselines = _checkbox_field(
        "Baselines, which know nothing: the floor of the board",
        [(n, n if n in names_for("text", CHOICES) else f"{n} (drawings only)") for n in BASELINES],
        _WHOLE_FLOOR,
    )
    single_baselines = _checkbox_field(
        "Baselines, which know nothing: the floor of the board",
        [
            (MOST_FREQUENT, "always the same answer: one for each choice, of ratings one"),
            (LONGER_HIGHER, f"{LONGER_HIGHER} (ratings only)"),
            (RANDOM, RANDOM),
        ],
        _WHOLE_FLOOR,
    )
    verdict_orders = _radio_field(
        "Each judge is asked about a pair",
        [("both", "in both orders"), ("random", "once, in an order left to chance")],
    )
    judging_samples = _number("Samples", "Answers per order; the majority counts.")
    ballot = _checkbox_field(
        "Choices beside A and B", [(choice, LABELS[choice]) for choice in WITHOUT_SIDE]
    )
    rubric = forms.CharField(
        help_text="What voters and judges are told to look for.",
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
    )
    votes_per_pair = _number("Votes per pair", "Or per item, where outputs are not paired.")
    overlap_share = _number(
        "Share of pairs with more votes (%)",
        "So that the agreement between people can be measured.",
        forms.FloatField,
    )
    overlap_votes = _number("Votes on each of these")
    reveal = _radio_field("What the judges said is shown to voters", Queue.Reveal.choices)
    budget_usd = _number(
        "Budget in US dollars",
        "The run stops before it exceeds this. Leave empty for no limit.",
        forms.FloatField,
    )
    epsilon = _number(
        "Epsilon of the Alt-Test",
        "How much worse than a person a judge may be: 0.2 beside experts, 0.15 beside skilled "
        "people, 0.1 beside crowd workers.",
        forms.FloatField,
    )
    margin = _number(
        "Judges are practically the same within (points)",
        "Of agreement with people: 10 by default, 25 at most. Fixed once 50 votes are in; "
        "smaller if a baseline is nearly always right.",
        forms.FloatField,
    )
    generation_temperature = _number("Temperature", "Empty: none is sent.", forms.FloatField)
    generation_max_tokens = _number("Max output tokens")
    judging_temperature = _number("Temperature", "Empty: none is sent.", forms.FloatField)
    judging_max_tokens = _number("Max verdict tokens")

    def __init__(self, *args: Any, user: Actor, **kwargs: Any) -> None:
        if args and args[0] is not None and "reveal" not in args[0]:
            args = (completed(args[0], empty_values(user)), *args[1:])
        super().__init__(*args, user=user, **kwargs)
        provider = self.fields["provider"]
        assert isinstance(provider, forms.ChoiceField)  # as declared above
        offered = provider_access.offered_to(user)
        names = provider_names(offered)
        # In which project each may be used.
        self._places = dict(offered.values_list("name", "project"))
        provider.choices = [(name, name) for name in sorted(names)]
        provider.required = bool(names)
        if not names:
            provider.choices += [("", "none yet")]
            address = reverse("providers")
            words = 'No provider yet: <a href="{}">add one</a> before this run starts.'
            provider.help_text = format_html(words, address)
        provider_name = str(self["provider"].value() or "")
        if provider_name and provider_name not in names:
            # Copied from a config; the page of the draft says it too.
            provider.choices += [(provider_name, f"{provider_name} (unknown)")]
        self._leave_out_what_is_off()

    def _leave_out_what_is_off(self) -> None:
        off = switched_off()
        for name in ("baselines", "single_baselines"):
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)  # as declared above
            choices = cast("list[tuple[str, str]]", field.choices)
            field.choices = [
                (baseline, words) for baseline, words in choices if baseline not in off
            ]

    def clean_overlap_share(self) -> float | None:
        percent: float | None = self.cleaned_data["overlap_share"]
        if percent is not None and not 0 <= percent <= 100:
            raise forms.ValidationError("Must be from 0 to 100.")
        return None if percent is None else percent / 100

    def clean_margin(self) -> float | None:
        points: float | None = self.cleaned_data["margin"]
        if points is not None and not 0 < points <= 25:
            raise forms.ValidationError("Must be above 0, and up to 25.")
        return None if points is None else points / 100

    def clean_provider(self) -> str:
        name: str = self.cleaned_data["provider"]
        project, run_project = self._places.get(name), self.cleaned_data.get("project")
        if project is not None and (run_project is None or run_project.pk != project):
            raise forms.ValidationError("This provider belongs to another project.")
        return name

    def clean(self) -> None:
        super().clean()
        cleaned = self.cleaned_data
        text, file = cleaned.get("prompts", ""), cleaned.get("prompts_file")
        prompts = from_lines(text)
        if text.strip() and file:
            self.add_error("prompts_file", "Paste prompts or choose a file, not both.")
        elif file:
            try:
                prompts = from_file(file.name or "", file.read())
            except PromptsUnreadable as error:
                self.add_error("prompts_file", f"This file cannot be read: {error}.")
        baseline_names = cleaned.get("single_baselines" if self._is_single else "baselines", [])
        # What people cannot answer here is no floor.
        absent = {
            b.id for b in BASELINES.values() if b.always not in ("", *cleaned.get("ballot", []))
        }
        absent |= set() if cleaned.get("items_kind") == Queue.Kind.RATING else {LONGER_HIGHER}
        baselines = [ListedPrompt(n, n) for n in baseline_names if n not in absent]
        listed = {
            "models": _models_by_line(cleaned.get("models", "")),
            "judges": _judges_by_line(cleaned.get("judges", "")) + baselines,
            "prompts": prompts,
        }
        try:
            self.run_config = extension_check.new_config(
                self._plain()
                | {name: [prompt.entry for prompt in prompts] for name, prompts in listed.items()}
            )
        except ConfigInvalid as invalid:
            self._show(invalid.errors, listed)

    def _plain(self) -> Context:
        """Return the config but for its lists, as it is written in JSON."""
        # A number that is no number is complained of already; here its default stands for it.
        config: Context = {"items": self._items(), "ballot": []}
        if not self._is_single:
            config["ballot"] = [*SIDES, *self.cleaned_data.get("ballot", [])]
        for field, value in self.cleaned_data.items():
            part, _, name = field.partition("_")
            # Without a temperature none is sent, which is not its default.
            if part in PARTS and (value is not None or name == "temperature"):
                config.setdefault(part, {})[name] = value
            elif field in RunConfig.model_fields and value not in (None, ""):
                config.setdefault(field, value)
        if "name" not in config and "name" not in self.errors:
            models = from_lines(self.cleaned_data.get("models", ""))
            names = ", ".join(str(model.entry).split()[0] for model in models)
            config["name"] = names[:200] or "Run"
        rubric = config.pop("rubric", "").replace("\r\n", "\n")
        # Another kind's is the default of that kind.
        usual = ("", *RUBRICS.values(), *SINGLE_RUBRICS.values())
        return config if rubric in usual else config | {"rubric": rubric}

    @property
    def _is_single(self) -> bool:
        kind = self.cleaned_data.get("items_kind", "")
        return kind not in ("", Queue.Kind.COMPARISON)

    def _items(self) -> Context | None:
        values = self.cleaned_data
        if not self._is_single:
            return None
        has_words = values["items_kind"] in (Queue.Kind.CATEGORY, Queue.Kind.LABELS)
        lines = [choice_line.entry for choice_line in from_lines(values.get("items_choices", ""))]
        task = {"task": values["items_task"]} if values.get("items_task") else {}
        grades = values["items_kind"] == Queue.Kind.PASS_FLAG and values.get("items_graded", False)
        words = {"choices": lines if has_words else [], "graded": grades}
        return {"kind": values["items_kind"]} | words | task

    def _show(
        self, errors: Sequence[ConfigError], listed: Mapping[str, list[ListedPrompt]]
    ) -> None:
        """Put each error beside the field that it is about, unless that was complained of."""
        complained = set(self.errors)
        if "prompts_file" in complained:  # without it there are none: already reported
            complained.add("prompts")
        by_field: dict[str | None, list[str]] = defaultdict(list)
        for error in errors:
            field, message = self._place_of(error, listed)
            if field not in complained:
                by_field[field].append(message)
        for field, messages in by_field.items():
            self.add_error(field, shortened(messages))

    def _place_of(
        self, error: ConfigError, listed: Mapping[str, list[ListedPrompt]]
    ) -> tuple[str | None, str]:
        field, message = error.path.replace(".", "_"), error.message
        if place := _LISTED.fullmatch(error.path):
            field, index, part = place.groups()
            line_title = listed[field][int(index)].place
            if line_title in BASELINES:
                field = "baselines"
            message = f"{line_title}{f', {part}' if part not in (None, 'id') else ''}: {message}."
        else:
            message = f"{message[:1].upper()}{message[1:]}."
        if field == "prompts" and self.cleaned_data.get("prompts_file"):
            field = "prompts_file"
        if field.startswith("items_choices["):
            field = "items_choices"
        return (field, message) if field in self.fields else (None, f"{error}.")


def _models_by_line(text: str) -> list[ListedPrompt]:
    """Return models by line, with the settings that follow a name.

    >>> [each.entry for each in _models_by_line("a\\nb temperature=none max_tokens=9")]
    ['a', {'id': 'b', 'temperature': None, 'max_tokens': 9}]
    """
    return [ListedPrompt(line_title, _model(str(line))) for line_title, line in from_lines(text)]


def _judges_by_line(text: str) -> list[ListedPrompt]:
    """Return judges by line, as `_models_by_line` does, with what follows a colon.

    >>> [each.entry for each in _judges_by_line("a\\nllama:8b samples=3: a quick one")]
    ['a', {'id': 'llama:8b', 'samples': 3, 'description': 'a quick one'}]
    """
    judges = []
    for line_title, line in from_lines(text):
        judge, _, description = str(line).partition(": ")
        entry = _model(judge)
        if description.strip():
            named = entry if isinstance(entry, dict) else {"id": entry}
            entry = named | {"description": description}
        judges.append(ListedPrompt(line_title, entry))
    return judges


def _model(line: str) -> object:
    words = line.split()
    settings = list(takewhile(lambda word: "=" in word, reversed(words[1:])))[::-1]
    if not settings:
        return line
    setting_parts = (word.partition("=") for word in settings)
    values = {name: _setting(value) for name, _, value in setting_parts}
    return {"id": " ".join(words[: -len(settings)])} | values


def _setting(text: str) -> object:
    if text == "none":
        return None
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def _line_of(model: ModelSpec | JudgeSpec) -> str:
    """Write a model and its settings as `_models_by_line` reads them."""
    setting_texts = {n: "none" if v is None else f"{v}" for n, v in model.settings.items()}
    line = " ".join([model.id, *(f"{n}={v}" for n, v in sorted(setting_texts.items()))])
    description = model.description if isinstance(model, JudgeSpec) else ""
    return f"{line}: {description}" if description else line


def provider_names(usable: QuerySet[Provider]) -> list[str]:
    """Return the names of providers that may be used, the usual one first."""
    names = list(usable.order_by("name").values_list("name", flat=True))
    if settings.PROVIDER_BASE_URL or DEFAULT_PROVIDER in names:
        return [DEFAULT_PROVIDER, *(name for name in names if name != DEFAULT_PROVIDER)]
    return names


def empty_values(user: Actor) -> Context:
    """Return what stands in the form of a new run: the defaults of a config."""
    usual = names_for("text", CHOICES)
    data = {"name": "-", "models": ["-a", "-b"], "judges": ["random"], "prompts": ["-"]}
    # Without pairs that several people vote on, nobody knows how well people agree.
    values = _values(parse(data | {"overlap": {"share": 0.2}}))
    values |= dict.fromkeys(("name", "models", "prompts"), "")
    off = switched_off()
    for field, names in (("baselines", usual), ("single_baselines", _USUAL_SINGLE)):
        values[field] = [name for name in names if name not in off]
    return values | {"provider": next(iter(provider_names(provider_access.offered_to(user))), "")}


def form_values(config: RunConfig, user: Actor) -> Context | None:
    """Return what would have to stand in the form for this config, None if it cannot say it."""
    values = _values(config)
    # Sent as it stands, the form must give the same config.
    form = RunForm(values, user=user)
    wrong = form.errors.keys() - {"project", "new_project"}
    return values if form.run_config == config and not wrong else None


def _values(config: RunConfig) -> Context:
    baseline_ids = {judge.id for judge in config.judges if judge.is_baseline}
    values = dict(config) | {
        "models": "\n".join(map(_line_of, config.models)),
        "prompts": "\n".join(prompt.text for prompt in config.prompts),
        "judges": "\n".join(_line_of(spec) for spec in config.judges if not spec.is_baseline),
        "baselines": [name for name in BASELINES if name in baseline_ids],
        "ballot": [choice for choice in config.ballot if choice not in SIDES],
        **_values_of_items(config, baseline_ids),
    }
    for part in PARTS:
        values |= {f"{part}_{name}": value for name, value in getattr(config, part)}
    values["overlap_share"] *= 100
    values["margin"] *= 100
    return {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in values.items()
        if name in RunForm.base_fields
    }


def _values_of_items(config: RunConfig, baseline_ids: Collection[str]) -> Context:
    items = config.items
    if items is None:
        return {"items_kind": Queue.Kind.COMPARISON}
    constant = constants_for(items.kind, items.offered)
    baselines = [MOST_FREQUENT] if {*constant} <= {*baseline_ids} else []
    return {
        "items_kind": items.kind,
        "items_choices": "\n".join(items.choices),
        "items_task": items.task,
        "items_graded": items.graded,
        "baselines": [],
        "single_baselines": [
            *baselines,
            *(n for n in (LONGER_HIGHER, RANDOM) if n in baseline_ids),
        ],
    }


class JoiningForm(forms.Form):
    """Judges that join a run whose items are there."""

    judges = _lines(
        "Judges to add", f"Models or baselines, one per line. {SETTINGS} {DESCRIBED}", rows=3
    )
    provider = forms.ChoiceField(required=False, help_text="Models are asked there.")
    budget_usd = _number(
        "Budget in US dollars",
        "For the whole run. Leave empty to keep the current budget.",
        forms.FloatField,
    )
    joining: JoiningJudges | None = None

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        provider = self.fields["provider"]
        assert isinstance(provider, forms.ChoiceField)  # as declared above
        names = provider_names(provider_access.usable_in(run.queue.project_id))
        provider.choices = [(name, name) for name in names]

    def clean(self) -> None:
        cleaned = self.cleaned_data
        judges = _judges_by_line(cleaned.get("judges", ""))
        data: Context = {"judges": [judge.entry for judge in judges]}
        data |= {name: cleaned[name] for name in ("provider", "budget_usd") if cleaned.get(name)}
        try:
            self.joining = validated(JoiningJudges, data)
        except ConfigInvalid as invalid:
            self.refuse(invalid)

    def refuse(self, invalid: ConfigInvalid) -> None:
        self.add_error("judges", shortened(invalid.errors))


class ConfigForm(RunProjectForm):
    config = forms.CharField(
        label="Config", required=False, widget=forms.Textarea(attrs=LINES | {"rows": 22})
    )
    config_file = _file("or a file", "JSON in UTF-8, at most 5 MB.")

    def clean(self) -> None:
        super().clean()
        text, file = self.cleaned_data.get("config", ""), self.cleaned_data.get("config_file")
        if "config_file" in self.errors:
            return
        if bool(file) == bool(text):
            self.add_error("config_file", "Paste a config or choose a file, not both.")
            return
        try:
            self.run_config = extension_check.new_config(
                strict_json.loads(file.read() if file else text)
            )
        except strict_json.NotJson as error:
            self.add_error("config_file" if file else "config", f"It is {error}.")
        except ConfigInvalid as invalid:
            self.add_error("config_file" if file else "config", shortened(invalid.errors))
