"""What an import is told, checked with every mistake named by its path, and what it has to say."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from humanjudge.lib.strict_json import NotJson, loads
from humanjudge.lib.text import number_of
from humanjudge.lib.validation import ConfigError, ConfigInvalid, Part, Text
from judge_eval.exchange.rows import Kind, LeftOut, RowError
from voting.choices import Choice

MOST_LISTED: Final = 1000
# Of a source that is to be right in every row, no more is read after so many that are wrong.
MOST_ERRORS: Final = 100
WHAT: Final = ("pairs", "judges", "verdicts", "voters", "votes")
GONE: Final = "The run is gone, or it was not imported to its end."
SIMULATED: Final = "This run holds simulated votes only; import into another one."


class ImportRefused(Exception):
    """Nothing of it can be imported, whatever its rows say; the text says why."""


class ImportTooLarge(ImportRefused):
    """It has more than is taken at once."""


class ImportOptions(Part):
    """How rows become a run; docs/importing.md says what each option does.

    Not given, `kind` is that of the run's other outputs or of the first row that says, `rubric` the
    usual one of the kind, `ballot` the choices that occur and at least A, B and both_bad;
    `open_for_voting` opens a new run if every pair has its outputs; and `baselines` join a run with
    its first judges, unless the source states these in order: with more of them in play the ELO of
    all would be another than there.
    """

    kind: Kind | None = None
    rubric: Annotated[Text, Field(max_length=20_000)] | None = None
    ballot: Annotated[list[Choice], Field(min_length=2)] | None = None
    votes_per_pair: Annotated[int, Field(ge=1, le=100)] = 1
    reveal: Literal["after_each", "at_end", "never"] = "after_each"
    open_for_voting: bool | None = None
    skip_errors: bool = False
    baselines: bool | None = None
    inconsistent: Literal["tie", "wrong", "decided"] = "tie"
    source: Annotated[str, StringConstraints(max_length=200)] = ""


def json_text(path: str, text: str) -> object:
    """Return what a JSON text holds; raises ConfigInvalid with its path."""
    try:
        return loads(text)
    except NotJson as error:
        raise ConfigInvalid([ConfigError(path, str(error))]) from error


@dataclass
class ImportReport:
    """What was imported, what was there already, and what was not taken.

    `new` and `already` count by the words of `WHAT` what was written and what the source holds that
    was there before; `filled` how often a pair that was there got something added. At most
    `MOST_LISTED` errors are listed, the fatal ones first, and as many that were left out. Reading
    `is_cut` after so many errors; because of them nothing was written where it `is_refused`.
    """

    runs: list[UUID] = field(default_factory=list)
    new: Counter[str] = field(default_factory=Counter)
    already: Counter[str] = field(default_factory=Counter)
    filled: int = 0
    errors: list[RowError] = field(default_factory=list)
    more_errors: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    more_left_out: int = 0
    notes: list[str] = field(default_factory=list)
    is_cut: bool = False
    is_refused: bool = False

    @property
    def run(self) -> UUID | None:
        return self.runs[0] if self.runs else None

    @property
    def failures(self) -> int:
        return len(self.errors) + self.more_errors

    @property
    def is_fatal(self) -> bool:
        """Whether an error is about more than its row."""
        return any(error.is_fatal for error in self.errors[:1])

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.filled or any(self.new.values()))

    def fail(self, error: RowError) -> None:
        self.errors.insert(0 if error.is_fatal else len(self.errors), error)
        if len(self.errors) > MOST_LISTED:
            self.errors.pop()
            self.more_errors += 1

    def leave_out(self, item: LeftOut) -> None:
        if len(self.left_out) < MOST_LISTED:
            self.left_out.append(item)
        else:
            self.more_left_out += 1

    def refusal(self) -> str:
        """Say that nothing was imported, in a line."""
        line = number_of(self.failures, "error")
        if self.is_cut:
            line += ", where reading stopped"
        if self.is_fatal:
            line += ", not all of them about single rows"
        return f"{line}; nothing was imported"

    def nothing_written(self) -> None:
        """Take back what was counted: because of the errors, nothing of it is written."""
        self.is_refused = True
        self.filled = 0
        self.runs.clear()
        self.new.clear()
        self.already.clear()

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON can hold it."""
        return {
            "run_id": str(self.run) if self.run else None,
            "runs": [str(run) for run in self.runs],
            "new": {what: self.new[what] for what in WHAT},
            "already": {what: self.already[what] for what in WHAT},
            "filled": self.filled,
            "errors": [asdict(error) for error in self.errors],
            "more_errors": self.more_errors,
            "left_out": [asdict(item) for item in self.left_out],
            "more_left_out": self.more_left_out,
            "notes": self.notes,
        }
