"""What an import is told, checked with every mistake named by its path, and what it has to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    computed_field,
)
from pydantic_core import PydanticCustomError

from humanjudge.core.strict_json import NotJson, loads
from humanjudge.core.text import number_of
from humanjudge.core.validation import INTEGER, Caption, ConfigInvalid, Name, Part, Text
from judge_eval.imports.row_models import Kind, LeftOut, Note, RowError
from judge_eval.judging.config.run_config import Epsilon
from voting.items.choices import CHOICES
from voting.items.kinds import COMPARISON, Criterion, Options, Word

VoteKind = Literal["pass_flag", "category", "rating", "labels", "text"]
MOST_LISTED: Final = 1000
# Of a source that is to be right in every row, no more is read after so many that are wrong.
MOST_ERRORS: Final = 100
# What is counted; of what a run is made, pairs or single items.
COUNTED_NOUNS: Final = ("judges", "verdicts", "voters", "votes")
_NOTHING: Final = Counter(dict.fromkeys(("pairs", *COUNTED_NOUNS), 0))
GONE: Final = "The run was deleted, or its import never finished."
SIMULATED: Final = "This run holds simulated votes only; import into another one."


class ImportRefused(Exception):
    """Nothing of it can be imported; the text says why, and `status` how HTTP calls that."""

    status = 409
    report: ImportReport | None = None


class ImportTooLarge(ImportRefused):
    status = 413


class TooManyWait(ImportRefused):
    """Others come first."""

    status = 429


def _offered(ballot: list[str], info: ValidationInfo) -> list[str]:
    if info.data.get("vote_kind") in (None, COMPARISON.name):
        unknown = [word for word in ballot if word not in CHOICES]
        if unknown:
            words = f"{unknown[0]!r} must be one of {', '.join(CHOICES)}; vote_kind says what else"
            raise PydanticCustomError("ballot", "{words}", {"words": words})
    return ballot


def _graded(criteria: list[Criterion], info: ValidationInfo) -> list[Criterion]:
    if criteria and info.data.get("vote_kind") not in (None, "pass_flag"):
        raise PydanticCustomError("criteria", "is of items that are passed or flagged")
    return criteria


def _text_encoding(name: str) -> str:
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise PydanticCustomError("encoding", "is no encoding of texts") from None
    return name


class ImportOptions(Part):
    """How rows become a run; docs/importing.md says what each option does, and what holds without.

    `baselines` join a run with its first judges, unless the source states these: then the board has
    the same judges as there.
    """

    kind: Kind | None = Field(None, description="of outputs whose rows do not say")
    rubric: Annotated[Text, Field(max_length=20_000)] | None = Field(
        None, description="what people who vote are asked"
    )
    question: Caption = Field("", description="what is asked, in one line for readers")
    descriptions: dict[Name, Caption] = Field(
        {}, description="what judges are, by name, in one line each: JSON"
    )
    vote_kind: Literal["comparison", VoteKind] | None = Field(
        None, description="what they are asked to do; told from the answers"
    )
    ballot: Annotated[list[Word], Field(min_length=2), AfterValidator(_offered)] | None = Field(
        None, description="what they may answer: A,B,tie,both_bad, or words"
    )
    task: Word | None = Field(None, description="which answer is used if a single item has several")
    graded: bool | None = Field(None, description="votes between pass and flag")
    flag_categories: Annotated[list[Word], Field(max_length=9)] | None = Field(
        None, description="what a flag may be for, between commas"
    )
    criteria: Annotated[
        list[Criterion], Field(max_length=20, description="JSON"), AfterValidator(_graded)
    ] = []
    extra_votes: Annotated[int, Field(ge=0, le=100), INTEGER] = Field(
        0, description="more of them on an item where people disagree"
    )
    critical_variance: Annotated[float, Field(gt=0, lt=0.25)] = Field(
        0.05, description="largest variance of graded votes that agree: 0.05"
    )
    epsilon: Epsilon = Field(0.2, description="how much worse than a person a judge may be: 0.2")
    votes_per_pair: Annotated[int, Field(ge=1, le=100), INTEGER] = 1
    reveal: Literal["after_each", "at_end", "never"] = "after_each"
    open_for_voting: bool | None = None
    skip_errors: bool = False
    separate_voters: bool = Field(
        False, description="voters with the same name in different files are different people"
    )
    encoding: Annotated[str, AfterValidator(_text_encoding)] | None = Field(
        None, description="of texts that are not UTF-8, such as cp1252"
    )
    separator: Literal["comma", "semicolon", "tab", "bar"] | None = Field(
        None, description="what stands between the columns of a CSV; told from its header"
    )
    baselines: bool | None = Field(None, description="add baselines to the board")
    inconsistent: Literal["tie", "wrong", "decided"] = Field(
        "tie", description="verdict if a judge's two orders disagree"
    )
    empty_cells: Literal["failed", "not_asked"] | None = Field(
        None, description="what empty cells of a judge are; told from how many there are"
    )
    source: Annotated[str, StringConstraints(max_length=200)] = Field(
        "", description="where the verdicts come from, such as MT-bench"
    )

    @property
    def single_kind(self) -> VoteKind | None:
        if self.vote_kind is None and self.criteria:
            return "pass_flag"
        return None if self.vote_kind == "comparison" else self.vote_kind

    @property
    def queue_options(self) -> Options:
        """What a new queue of single items is to ask beside its kind, where it is stated."""
        stated_options = self.model_dump(include={*Options.model_fields}, exclude_none=True)
        return Options.model_validate(stated_options)


def json_text(path: str, text: str) -> object:
    """Return what a JSON text holds; raises ConfigInvalid with its path."""
    try:
        return loads(text)
    except NotJson as error:
        raise ConfigInvalid.at(path, str(error)) from error


class ImportReport(BaseModel):
    """What was imported, what was there already, and what was not taken.

    `new` and `already` count what was written and what the source holds that was there before;
    `filled` how often a pair that was there got something added. At most 1,000 errors are listed,
    those first that are about more than their row, and as many that were left out.
    """

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    runs: list[UUID] = []
    new: Counter[str] = _NOTHING
    already: Counter[str] = _NOTHING
    filled: int = 0
    # Records that were read, and those of them that hold a row which was taken.
    records: int = 0
    used: int = 0
    # Rows whose A and B were exchanged, other names of items, and items that came with outputs.
    turned: int = 0
    merged: int = 0
    with_outputs: int = 0
    errors: list[RowError] = []
    more_errors: int = 0
    left_out: list[LeftOut] = []
    more_left_out: int = 0
    notes: list[str] = []

    @computed_field  # type: ignore[prop-decorator]
    @property
    def run_id(self) -> UUID | None:
        return self.runs[0] if self.runs else None

    @property
    def counted(self) -> Sequence[str]:
        """What it counts, by name: pairs, or single items in their place."""
        return ("pairs" if "pairs" in self.new else "items", *COUNTED_NOUNS)

    @property
    def counts(self) -> list[str]:
        """What became of the records, in sentences; the numbers add up."""
        left_out = self.records - self.used
        noun = self.counted[0].removesuffix("s")
        lines = [f"{number_of(self.records, 'record')}: {self.used:,} used, {left_out:,} left out"]
        if self.with_outputs:
            lines.append(f"{number_of(self.with_outputs, noun)} came with outputs")
        if self.turned:
            lines.append(f"{number_of(self.turned, 'row')} had A and B swapped: corrected")
        if self.merged:
            lines.append(f"{number_of(self.merged, 'name')} stood for an item of another name")
        return lines if self.records else []

    @property
    def failures(self) -> int:
        return len(self.errors) + self.more_errors

    @property
    def is_fatal(self) -> bool:
        return any(error.is_fatal for error in self.errors[:1])

    @property
    def changed(self) -> bool:
        return bool(self.filled or any(self.new.values()))

    def fail(self, error: RowError) -> None:
        self.errors.insert(0 if error.is_fatal else len(self.errors), error)
        if len(self.errors) > MOST_LISTED:
            self.errors.pop()
            self.more_errors += 1

    def add(self, item: LeftOut | Note | RowError) -> None:
        if isinstance(item, RowError):
            self.fail(item)
        elif isinstance(item, Note):
            self.notes.append(f"{item.file}: {item.text}")
        elif len(self.left_out) < MOST_LISTED:
            self.left_out.append(item)
        else:
            self.more_left_out += 1


class RowsWrong(ImportRefused):
    """Because of errors nothing is written: what was counted as new or known is taken back."""

    status = 422

    def __init__(self, report: ImportReport, *, is_cut: bool = False) -> None:
        line = number_of(report.failures, "error")
        if is_cut:
            line += ", where reading stopped"
        if report.is_fatal:
            line += ", not all of them about single rows"
        super().__init__(f"{line}; nothing was imported")
        nothing = {"runs": [], "new": _NOTHING, "already": _NOTHING, "filled": 0}
        self.report = report.model_copy(update=nothing)
