"""The form of an import: what files are taken for, asked in people's words, and what is made of
them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, NamedTuple, cast

from django import forms
from django.contrib.auth.models import User

from humanjudge.core.validation import ConfigInvalid
from judge_eval.imports import containers, fields, import_jobs, import_report, mapping
from judge_eval.imports.formats import READERS
from judge_eval.imports.guesses import judge_at
from judge_eval.imports.preview import Preview
from judge_eval.imports.row_models import ITEMS, JUDGES, METADATA, SHAPES, VOTERS, Shape, Values
from judge_eval.imports.row_models import LABELS as LABELS_BY_TASK
from judge_eval.models import Import
from judge_eval.runs.forms import RunProjectForm
from voting.access.members import start_project
from voting.access.roles import projects_where
from voting.items.choices import LABELS
from voting.models import Project
from voting.people.forms import ProjectField

IN_WORDS: Final = {"pair": "pairs", "item": "single items"}
OWN_FORMATS: Final = {"bundle": "a bundle"}
# What a column may be that has a name of its own for what it holds.
GROUPS: Final = {
    JUDGES: "verdicts of the judge it names",
    VOTERS: "votes of the person it names",
    LABELS_BY_TASK: "a further answer",
    METADATA: "metadata",
}
CHOICE_ROLES: Final = (
    "verdict",
    "vote",
    "pick_ab",
    "pick_ba",
    JUDGES,
    VOTERS,
)
VERDICTS: Final = ("verdict", "pick_ab", "pick_ba", "score_a", "score_b", "score")
# What a column usually is; all else stands behind a button.
MEANINGS: Final = {
    "pair": {
        "prompt": "the prompt",
        "output_a": "the first answer",
        "output_b": "the second answer",
        "vote": "what a person chose",
        "voter": "who the person is",
        "verdict": "what a judge chose",
        "judge": "which judge it is",
        "pair": "an identifier",
    },
    "item": {
        "prompt": "the prompt",
        "output": "the answer",
        "generator": "who wrote the answer",
        "vote": "what a person said",
        "voter": "who the person is",
        "verdict": "what a judge said",
        "judge": "which judge it is",
        "item": "an identifier",
    },
}
RARER_WORDS: Final = {
    "generator_a": "who wrote the first answer",
    "generator_b": "who wrote the second answer",
    "feedback": "why the judge says so",
    "comment": "why the person says so",
    "cost_usd": "what the verdict cost (USD)",
    "latency_ms": "how long the verdict took (ms)",
}
IN_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
NOTHING: Final = "-"
# What a button does that leaves a mapping.
COLUMNS: Final = "columns"
GRADED: Final = "graded"
QUESTION_KINDS: Final = (
    ("comparison", "compare two outputs"),
    ("pass_flag", "pass or flag one output"),
    (GRADED, "grade one output from 0 to 1"),
    ("rating", "rate one output"),
    ("category", "say which label fits"),
    ("labels", "say which labels fit"),
    ("text", "write about one output"),
)


class Choice(NamedTuple):
    name: str
    subject: str
    options: list[tuple[str, str]]
    selected: str


class ColumnChoice(NamedTuple):
    role: Choice
    guess: str
    sample: str
    values: list[Choice]
    # Fields for names that no column has.
    asks: list[forms.BoundField]
    # Whether its name, which is no field of ours, or its values told what it is.
    is_guessed: bool = False


def _name(label: str, help_text: str) -> forms.CharField:
    return forms.CharField(
        label=label, help_text=help_text, max_length=fields.MAX_NAME, required=False
    )


class MappedField(NamedTuple):
    source: str
    meaning: str
    sample: str


def flat_fields(config: Values) -> Iterator[tuple[str, object]]:
    """Yield the fields of a mapping with where they are read, those of groups by their names."""
    for field, spec in config.items():
        if field in GROUPS and isinstance(spec, dict):
            yield from ((f"{field}: {name}", inner) for name, inner in spec.items())
        else:
            yield field, spec


def _words_of_group(field: str) -> str:
    group, _, name = field.partition(": ")
    words = {JUDGES: "what the judge {} said", VOTERS: "what {} said"}
    return words.get(group, "{}" if name else group.replace("_", " ")).format(name)


def words_of_source(spec: object) -> str:
    """Return where a mapping finds a field, as one text.

    Examples
    --------
    >>> words_of_source("input.query"), words_of_source({"value": "ann"})
    ('input.query', 'always ann')
    >>> words_of_source({"scores": ["a", "b"]})
    'a, b'
    """
    if not isinstance(spec, dict):
        return str(spec)
    if "value" in spec:
        return f"always {spec['value']}"
    columns = spec.get("scores") or spec.get("one_hot") or [spec.get("column", "")]
    return ", ".join(map(str, columns.values() if isinstance(columns, dict) else columns))


class ImportForm(RunProjectForm):
    """What files are, and what is made of them; a draft keeps what was posted."""

    name = forms.CharField(label="Name of the run", max_length=200, required=False)
    read_as = forms.ChoiceField(label="Read it as", required=False)
    voter = forms.CharField(
        label="All votes are by",
        max_length=200,
        required=False,
        help_text="If no column says it.",
    )
    judge = forms.CharField(
        label="All verdicts are by",
        max_length=200,
        required=False,
        help_text="If no column says it.",
    )
    kind = forms.ChoiceField(
        label="Kind of outputs",
        required=False,
        choices=[
            ("", "as in the rows, or texts"),
            ("text", "texts"),
            ("svg", "drawings (SVG)"),
            ("code", "code"),
            ("image", "pictures"),
        ],
    )
    separator = forms.ChoiceField(label="Between the columns", required=False)
    encoding = forms.ChoiceField(label="Letters", required=False)
    # All meanings of columns are offered.
    rarer = forms.BooleanField(required=False, widget=forms.HiddenInput)
    written = forms.CharField(
        label="Mapping as JSON",
        required=False,
        max_length=100_000,
        help_text="In place of the choices above: paths into records, winners out of scores …",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )
    rubric = forms.CharField(
        label="Rubric",
        required=False,
        max_length=20_000,
        help_text="What people are asked. Leave empty for the usual question.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    question = forms.CharField(
        label="Question",
        required=False,
        max_length=200,
        help_text="What is asked, in one line for readers: Did the model refuse?",
    )
    descriptions = forms.CharField(
        label="What the judges are",
        required=False,
        max_length=20_000,
        help_text="One per line: keywords: a list of keywords",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    vote_kind = forms.ChoiceField(
        label="What people are asked to do",
        required=False,
        choices=[("", "guess from the answers"), *QUESTION_KINDS],
    )
    empty_cells = forms.ChoiceField(
        label="Empty cells of a judge",
        required=False,
        choices=[
            ("", "guess from its other cells"),
            ("failed", "it did not answer"),
            ("not_asked", "it was not asked"),
        ],
    )
    votes_per_pair = forms.IntegerField(
        label="Votes per item",
        required=False,
        min_value=1,
        max_value=100,
        help_text="Imported votes count. Leave empty for one.",
    )
    separate_voters = forms.BooleanField(
        label="Voters with the same name in different files are different people", required=False
    )
    skip_errors = forms.BooleanField(
        label="Skip invalid rows and import the others", required=False
    )

    def __init__(self, job: Import, posted: Mapping[str, Any] | None, *, user: User) -> None:
        super().__init__(posted, user=user)
        self.user = user
        self.job, self.posted = job, dict((posted or {}).items())
        if self.posted.get("do") == COLUMNS:
            # Whoever leaves a mapping chooses columns from here on.
            self.posted = {name: entry for name, entry in self.posted.items() if name != "written"}
            self.data = self.posted
        self.preview = Preview.model_validate(job.form["found"])
        self.is_import = self.posted.get("do") == "import"
        self._leave_out_fields()
        self._offer_readings()
        titles = {reader.id: reader.title for reader in READERS.values()} | OWN_FORMATS
        formats = sorted({titles.get(name, name) for name in self.preview.formats.values()})
        self.recognised = ", ".join(formats)
        recognised = [("", f"{self.recognised}, as recognised")] if formats else []
        by_columns = [(name, f"{words}, by columns") for name, words in IN_WORDS.items()]
        if "read_as" in self.fields:
            cast(forms.ChoiceField, self.fields["read_as"]).choices = recognised + by_columns
        read_as = self.posted.get("read_as", "" if formats else self.preview.shape)
        self.shape_name = read_as if read_as in SHAPES else ""
        if "read_as" in self.fields:
            self.initial["read_as"] = self.shape_name
        is_proposed = "known" in job.form or mapping.ROWS in (job.form["mapping"] or {})
        if is_proposed and "choices" not in job.form and not self.posted:
            self.initial["written"] = json.dumps(job.form["mapping"], indent=1)
        self.in_use = self._mapping_in_use()
        shape = SHAPES.get(self.shape_name)
        self.usual = mapping.guessed_roles(self.preview.facts, shape) if shape else {}
        self.columns = [self._column(n, entry) for n, entry in enumerate(self.preview.columns)]
        if any(self._is_graded(column) for column in self.columns):
            self.initial["vote_kind"] = GRADED
        self.names, self.questions = dict[str, str](), 0
        if not self.in_use:
            self._ask_names()
        stem = PurePath(job.form["files"][0]).stem[:200]
        self.initial.setdefault("name", stem)
        if "new_project" in self.fields and not self.initial["project"]:
            self.initial["new_project"] = stem

    def _mapping_in_use(self) -> list[MappedField]:
        """Return what a written mapping reads, if there is one; columns are not chosen then."""
        mapping_text = self.posted.get("written") or self.initial.get("written")
        try:
            config = import_report.json_text("written", mapping_text) if mapping_text else {}
            parsed = mapping.parse(config)
        except ConfigInvalid:
            return []
        if not config:
            return []
        self.shape_name = parsed.shape.name
        self.initial["read_as"] = self.shape_name
        words = MEANINGS[self.shape_name] | RARER_WORDS | {mapping.ROWS: "where the rows are"}
        rows_path = cast(Values, config).get(mapping.ROWS, "")
        return [
            MappedField(
                source=words_of_source(spec),
                meaning=words.get(field) or _words_of_group(field),
                sample=self._sample(words_of_source(spec), str(rows_path)),
            )
            for field, spec in flat_fields(cast(Values, config))
        ]

    def _sample(self, path: str, rows_path: str) -> str:
        examples = self.preview.examples
        inner = f"{rows_path.removesuffix('[]')}[0].{path}"
        return " · ".join(examples.get(path, []) or examples.get(inner, []))

    @property
    def has_roles(self) -> bool:
        return bool(self.in_use) or any(entry.role.selected for entry in self.columns)

    @property
    def is_unknown(self) -> bool:
        """Say whether there are columns and nothing tells what any of them is."""
        return bool(self.columns) and not self.has_roles and not self.preview.formats

    @property
    def summary(self) -> str:
        """Return in one line what is made of the files where nothing else is chosen."""
        parts = [f"Name “{self['name'].value()}”"] if "name" in self.fields else []
        project = self["project"].value() if "project" in self.fields else ""
        if project:
            existing_project = projects_where(self.user, "run").filter(pk=project).first()
            parts += [f"project “{existing_project.name}”"] if existing_project else []
        elif "new_project" in self.fields:
            parts.append(f"new project “{self['new_project'].value() or ''}”")
        if "votes_per_pair" in self.fields:
            votes = self["votes_per_pair"].value() or 1
            parts.append(f"{votes} vote{'' if str(votes) == '1' else 's'} per {self.noun}")
            parts.append("its own question" if self["rubric"].value() else "the usual question")
        return ", ".join(parts) or "More settings"

    @property
    def needs_settings(self) -> bool:
        """Say whether something behind the fold must be looked at."""
        has_project = "project" not in self.fields or bool(
            self["project"].value() or ("new_project" in self.fields)
        )
        return not has_project or (self.is_bound and bool(self.errors))

    @property
    def noun(self) -> str:
        return self.shape_name or self.preview.shape

    @property
    def missing(self) -> int:
        """Return how many answers nobody gave and nothing proposes."""
        return sum(not value.selected for column in self.columns for value in column.values)

    def _offer_readings(self) -> None:
        """Offer what may stand between columns and what letters may be, where a text is read."""
        readings = self.preview.readings
        options = self.job.form["options"]
        separators = {entry.separator for entry in readings if entry.separator}
        encodings = {entry.encoding for entry in readings if entry.encoding}
        if separators:
            label = " and ".join(IN_SEPARATORS.get(entry, entry) for entry in separators)
            rest = [(name, IN_SEPARATORS[entry]) for name, entry in containers.SEPARATORS.items()]
            self._offer("separator", options.get("separator"), label, rest)
        else:
            self.fields.pop("separator", None)
        # What nobody could open is perhaps no UTF-8.
        if encodings or (not readings and not self.job.is_bundle):
            words = containers.ENCODINGS
            label = " and ".join(words.get(entry, entry) for entry in encodings) or "as it is found"
            self._offer("encoding", options.get("encoding"), label, [*words.items()])
        else:
            self.fields.pop("encoding", None)

    def _offer(
        self, field: str, selection: str | None, label: str, options: list[tuple[str, str]]
    ) -> None:
        names = dict(options)
        if selection and selection not in names:
            options = [*options, (selection, selection)]
        blank_option = [("", "as found" if selection else label)]
        cast(forms.ChoiceField, self.fields[field]).choices = blank_option + options
        self.initial[field] = selection or ""

    def _leave_out_fields(self) -> None:
        job, left_out = self.job, set[str]()
        if job.is_bundle:
            left_out = self.fields.keys() - {"project"}
            empty = f"its own, {self.preview.project}" if self.preview.project else "its own"
            cast("ProjectField", self.fields["project"]).empty_label = empty
        elif job.run is not None:
            left_out = {"project", "new_project", "name", "kind", "rubric", "votes_per_pair"}
            left_out |= {"vote_kind"}
        for name in left_out & self.fields.keys():
            del self.fields[name]

    def _ask_names(self) -> None:
        """Ask whose votes and which judge's verdicts these are, where no column says it.

        What is proposed holds until it is changed. The people of two files whom nobody names are
        not the same, so that name has the file's in it.
        """
        columns = {entry.role.selected: entry for entry in self.columns if entry.role.selected}
        counts = Preview.model_validate(self.job.form["preview"]).counts
        stem = PurePath(self.job.form["files"][0]).stem
        if (vote := columns.get("vote")) and "voter" not in columns:
            question = f"Who gave these {_count_in_words(counts.votes, counts.is_all)}votes?"
            self._ask(vote, "voter", question, f"Person 1 ({stem})")
        says = [columns[entry] for entry in VERDICTS if entry in columns]
        if says and "judge" not in columns:
            column = says[0].role.subject
            question = (
                f"Which judge gave these {_count_in_words(counts.verdicts, counts.is_all)}verdicts?"
            )
            name = "judge" if column in VERDICTS else judge_at(column)
            self._ask(says[0], "judge", question, name)

    def _ask(self, column: ColumnChoice, field: str, question: str, name: str) -> None:
        self.fields[field].label = question
        self.fields[field].help_text = ""
        self.questions += not self.posted.get(field)
        self.names[field] = self.posted.get(field) or name[: fields.MAX_NAME]
        self.initial[field] = self.names[field]
        if self.is_bound:
            self.data = {**self.posted, field: self.names[field]}
            self.posted = self.data
        column.asks.append(self[field])

    # --- columns ----------------------------------------------------------------------------------

    def _column(self, number: int, column: str) -> ColumnChoice:
        if not self.shape_name:
            return ColumnChoice(Choice("", column, [], ""), "", "", [], [])
        shape = SHAPES[self.shape_name]
        options, usual = self._meanings(shape), self.usual[column]
        role = self.posted.get(f"column-{number}", usual)
        role = role if role in dict(options) else usual
        guess = "" if role else mapping.nearest(column, shape.fields)
        if not self.posted.get("rarer"):
            names = {"", *MEANINGS[self.shape_name], role}
            options = [option for option in options if option[0] in names]
        return ColumnChoice(
            Choice(f"column-{number}", column, options, role),
            guess.replace("_", " "),
            " · ".join(self.preview.examples.get(column, ())),
            self._values(number, column, role),
            [],
            is_guessed=bool(role) and role == usual != column,
        )

    def _is_graded(self, column: ColumnChoice) -> bool:
        """Say whether a judge gives single items numbers between 0 and 1."""
        is_judge = column.role.selected in ("verdict", JUDGES)
        facts = self.preview.facts[column.role.subject]
        return self.shape_name == "item" and is_judge and facts.is_share

    def _meanings(self, shape: Shape) -> list[tuple[str, str]]:
        """Return what a column may be, the rarer behind the usual ones."""
        usual = MEANINGS[shape.name]
        rarer = {
            name: RARER_WORDS.get(name, name.replace("_", " "))
            for name in shape.fields
            if name not in usual
        }
        rarer |= {group: GROUPS[group] for group in shape.groups}
        self.rarer_number = len(rarer)
        return [("", "not read"), *usual.items(), *rarer.items()]

    def _values(self, number: int, column: str, role: str) -> list[Choice]:
        """What each value stands for, where not all of them are choices of a pair."""
        values = self.preview.columns[column]
        if self.shape_name != "pair" or role not in CHOICE_ROLES or all(map(_choice, values)):
            return []
        options = [("", "choose…"), *LABELS.items(), (NOTHING, "leave out")]
        selections = [self.posted.get(f"value-{number}-{n}") for n in range(len(values))]
        return [
            Choice(
                f"value-{number}-{n}",
                value,
                options,
                selected if selected in dict(options) else _proposed_choice(value, values),
            )
            for n, (value, selected) in enumerate(zip(values, selections, strict=True))
        ]

    def chosen_mapping(self) -> Values | None:
        """Return the mapping that is chosen, or None where names of columns say it all."""
        roles = {column.role.subject: column.role.selected for column in self.columns}
        meanings = {
            column.role.subject: {
                value.subject: None if value.selected == NOTHING else value.selected
                for value in column.values
                if value.selected
            }
            for column in self.columns
        }
        meanings = {column: values for column, values in meanings.items() if values}
        shape = SHAPES[self.shape_name]
        is_usual = roles == mapping.roles_of(list(roles), shape) and not (meanings or self.names)
        if is_usual and not self.preview.formats and self.shape_name == self.preview.shape:
            return None
        mapping_config = mapping.config_of(roles, meanings, **self.names)
        if shape is ITEMS and not {"item", "output"} & mapping_config.keys():
            raise ConfigInvalid.at("item", "choose the column that names the item, or its output")
        return mapping_config

    # --- what is asked for ------------------------------------------------------------------------

    def clean(self) -> None:
        if self.is_import and "name" in self.fields:
            named = self.cleaned_data.get("new_project")
            if self.cleaned_data.get("project") and named == self.initial.get("new_project"):
                # It was proposed, and another project was chosen.
                self.cleaned_data["new_project"] = ""
            super().clean()
            if not self.errors and not self.cleaned_data["name"].strip():
                self.add_error("name", "Name the run.")
        if self.errors:
            return
        try:
            self.form = self._import_form() | {"choices": self._choices()}
        except ConfigInvalid as invalid:
            for error in invalid.errors:
                self.add_error(None, str(error).removeprefix("mapping."))

    def _import_form(self) -> Values:
        cleaned = self.cleaned_data
        options = {
            name: cleaned[name]
            for name in import_report.ImportOptions.model_fields
            if cleaned.get(name)
        }
        if "descriptions" in options:
            lines = (line.partition(": ") for line in options["descriptions"].splitlines())
            options["descriptions"] = {name: words for name, _, words in lines if words.strip()}
        if options.get("vote_kind") == GRADED:
            options |= {"vote_kind": "pass_flag", "graded": True}
        columns = self.chosen_mapping() if self.shape_name else None
        if mapping_text := cleaned.get("written"):
            columns = cast(Values, import_report.json_text("written", mapping_text))
        return import_jobs.form_of([], options, columns, None)

    def _choices(self) -> dict[str, str]:
        """Return what was posted, by the names of fields and selects that there are."""
        selects = [
            entry
            for column in self.columns
            for entry in (column.role, *column.values)
            if entry.name
        ]
        assigned = {entry.name: entry.selected for entry in selects}
        return {
            name: str(self.posted.get(name, "")) for name in self.fields if self.posted.get(name)
        } | assigned

    def make_project(self) -> Project | None:
        """Return where the run belongs; a project that is made is chosen from then on."""
        if self.job.run is not None:
            return self.job.project
        project: Project | None = self.cleaned_data["project"]
        if project is None and (name := self.cleaned_data.get("new_project")):
            project = start_project(name, self.user)
            del self.form["choices"]["new_project"]
            self.form["choices"]["project"] = str(project.pk)
        return project


def _count_in_words(number: int, is_all: bool) -> str:
    return f"{number:,} " if is_all and number > 1 else ""


def _proposed_choice(value: str, values: Collection[str]) -> str:
    """Return the choice that a value may stand for: 0 is a tie only where there is a 2."""
    places = {"left": "A", "right": "B"} | (
        {"1": "A", "2": "B", "0": "tie"} if "2" in values else {}
    )
    return _choice(value) or places.get(value.strip().lower(), "")


def _choice(value: str) -> str:
    try:
        return str(fields.choice(value) or "")
    except fields.Unfit:
        return ""
