"""What every form of a new run asks for, and the form that takes a whole config as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.core.files.uploadedfile import UploadedFile

from humanjudge.lib import strict_json
from judge_eval.config.run_config import ConfigInvalid, RunConfig, parse
from voting.models import Project

MOST_FILE_BYTES = 5_000_000
MOST_ERRORS = 20
# Of a text field whose lines are names, code or the like.
LINES: Final = {"spellcheck": "false", "autocomplete": "off", "class": "lines"}


class ProjectForm(forms.Form):
    """Where a run belongs: every form of a new run asks for it."""

    project = forms.ModelChoiceField(
        Project.objects.order_by("name"), required=False, empty_label="a new one:"
    )
    new_project = forms.CharField(label="Name of the new project", max_length=200, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **(kwargs | {"label_suffix": ""}))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if "project" not in self.errors and "new_project" not in self.errors:
            if cleaned.get("project") and cleaned.get("new_project"):
                self.add_error("new_project", "Choose a project or name a new one, not both.")
            elif not cleaned.get("project") and not cleaned.get("new_project"):
                self.add_error("new_project", "Name the new project, or choose one.")
        return cleaned

    @property
    def is_too_large(self) -> bool:
        return any(
            error.code == "too_large"
            for errors in self.errors.as_data().values()
            for error in errors
        )


def small_file(file: UploadedFile[bytes] | None) -> UploadedFile[bytes] | None:
    if file is not None and (file.size or 0) > MOST_FILE_BYTES:
        raise forms.ValidationError("It is larger than 5 MB.", code="too_large")
    return file


class ConfigForm(ProjectForm):
    """The whole config of a run as JSON."""

    config = forms.CharField(
        label="Config", required=False, widget=forms.Textarea(attrs=LINES | {"rows": 22})
    )
    config_file = forms.FileField(
        label="or a file", required=False, help_text="JSON in UTF-8, at most 5 MB."
    )
    run_config: RunConfig | None = None

    def clean_config_file(self) -> UploadedFile[bytes] | None:
        return small_file(self.cleaned_data["config_file"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        text, file = cleaned.get("config", ""), cleaned.get("config_file")
        if "config_file" in self.errors:
            return cleaned
        field = "config_file" if file else "config"
        if bool(file) == bool(text):
            self.add_error("config_file", "Paste a config or give a file: one of the two.")
            return cleaned
        try:
            self.run_config = parse(strict_json.loads(_utf8(file) if file else text))
        except ConfigInvalid as invalid:
            self.add_error(field, shortened([str(error) for error in invalid.errors]))
        except (strict_json.NotJson, UnicodeDecodeError) as error:
            not_utf8 = isinstance(error, UnicodeDecodeError)
            self.add_error(field, "It is not UTF-8." if not_utf8 else f"It is {error}.")
        return cleaned


def _utf8(file: UploadedFile[bytes]) -> str:
    return bytes(file.read()).decode("utf-8-sig")


def shortened(messages: Sequence[str]) -> list[str]:
    more = len(messages) - MOST_ERRORS
    return [*messages[:MOST_ERRORS], *([f"And {more:,} more."] if more > 0 else [])]
