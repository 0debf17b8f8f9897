"""The bundle: everything of a run, or of a project, as JSON Lines of typed records.

docs/importing.md describes their order and fields. They are checked strictly: what is read here can
be written into the database but for what only the database knows.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Final, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from humanjudge.core.strict_json import JsonObject, NotJson, loads
from humanjudge.core.validation import Caption
from judge_eval.judging.config.run_config import Epsilon
from voting.items.choices import MILLION, PASS_FLAG
from voting.items.kinds import KINDS, LONGEST_CHOICE, Options
from voting.ledger.chain import canonical
from voting.ledger.decisions import Decision, groups_in, margin_in, votes_required_in

FORMAT: Final = "humanjudge"
# A run's config holds all its prompts in one line.
MOST_BYTES: Final = 32_000_000
_HEADER_BYTES: Final = 1_000_000
# The escape of the one character that a database cannot hold, not behind a backslash.
_ESCAPE: Final = rb"\u0000"
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

Name: TypeAlias = Annotated[str, Field(max_length=200)]
Hex: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Pseudonym: TypeAlias = Annotated[str, Field(min_length=1, max_length=16)]
Small: TypeAlias = Annotated[int, Field(ge=0, le=32_767)]
Natural: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
Big: TypeAlias = Annotated[int, Field(ge=0, le=2**63 - 1)]
# What a person or a judge may choose: of a single item, a word of its ballot.
ChoiceText: TypeAlias = Annotated[str, Field(max_length=LONGEST_CHOICE)]


def _question_options(options: JsonObject) -> JsonObject:
    Options.model_validate(options)
    return options


def _hashable(payload: Any) -> Any:
    try:
        canonical({"payload": payload})
    except TypeError as error:
        raise ValueError(str(error)) from error
    return payload


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class ProjectPart(_Record):
    """The project, and the end of its ledger when this was written."""

    id: UUID
    name: Name
    created_at: AwareDatetime
    head_seq: Big
    head: Hex


class RubricRef(_Record):
    name: Annotated[str, Field(max_length=100)]
    version: Positive


class Header(_Record):
    type: Literal["header"] = "header"
    format: Literal["humanjudge"] = "humanjudge"
    version: Literal[1] = 1
    project: ProjectPart
    runs: list[UUID]


class Rubric(_Record):
    type: Literal["rubric"] = "rubric"
    name: Annotated[str, Field(max_length=100)]
    version: Positive
    text: str
    created_at: AwareDatetime


class RunPart(_Record):
    """A run and the rules of voting on its items. Only a draft's config is taken over."""

    type: Literal["run"] = "run"
    id: UUID
    queue: UUID
    name: Name
    question: Caption = ""
    state: Literal["draft", "generating", "judging", "voting", "complete", "stopped", "failed"]
    note: str
    rubric: RubricRef
    kind: Literal["comparison", "pass_flag", "category", "rating", "labels", "text"] = "comparison"
    options: Annotated[JsonObject, AfterValidator(_question_options)] = {}
    ballot: list[ChoiceText]
    votes_per_item: Annotated[int, Field(ge=1, le=32_767)]
    overlap_share: Annotated[float, Field(ge=0, le=1)]
    overlap_votes: Annotated[int, Field(ge=1, le=32_767)]
    reveal: Literal["after_each", "at_end", "never"]
    is_open: bool
    is_simulated: bool
    config: Any
    epsilon: Epsilon = 0.2
    budget_nano: Big | None
    spent_nano: Big
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    # Those of runs that were exported before there were any are empty.
    salt: Annotated[str, Field(max_length=32)] = ""
    private_salt: Annotated[str, Field(max_length=32)] = ""

    @model_validator(mode="after")
    def _offers_what_it_asks(self) -> Self:
        kind = KINDS[self.kind]
        if not {*kind.required} <= {*self.ballot} <= {*(kind.choices or self.ballot)}:
            raise ValueError(f"no ballot of the kind {self.kind}: {', '.join(self.ballot)}")
        return self


# What of a run stands in its queue, under the same names.
OF_QUEUE: Final = set(
    "kind options ballot votes_per_item overlap_share overlap_votes reveal is_simulated".split()
)


class Recipe(_Record):
    """How a judge of several models is asked; `version` is that of its type."""

    type: Name
    version: int | str
    parts: list[dict[str, str]]
    options: JsonObject


class JudgeRecord(_Record):
    type: Literal["judge"] = "judge"
    id: UUID
    run: UUID
    position: Small
    name: Name
    description: Caption = ""
    provider: Annotated[str, Field(max_length=50)]
    model: Name
    reported_model: Name
    fingerprint: Annotated[str, Field(max_length=64)]
    recipe: Recipe | None = None
    is_tuned: bool = False


class OutputRecord(_Record):
    type: Literal["inference"] = "inference"
    id: UUID
    prompt: str
    output: str
    kind: Literal["svg", "text", "code", "image"]
    generator: Name
    tags: list[str]
    metadata: JsonObject
    created_at: AwareDatetime


class Pair(_Record):
    type: Literal["comparison"] = "comparison"
    id: UUID
    run: UUID
    position: Natural
    external_id: Name
    prompt_key: Annotated[str, Field(min_length=1, max_length=200)]
    a: UUID
    b: UUID | None
    votes_wanted: Small
    opened_at: AwareDatetime | None
    unusable: str
    is_coupled: bool = False


class VerdictPart(_Record):
    """What a judge says of a pair now; what it said before stands in the ledger."""

    type: Literal["verdict"] = "verdict"
    judge: UUID
    comparison: UUID
    state: Literal["waiting", "done", "failed"]
    order: Literal["AB", "BA", "both"]
    winner: ChoiceText
    consistent: bool | None
    picks: list[Any]
    first_picks: Small | None
    sample_consistency: float | None
    score_a: float | None
    score_b: float | None
    feedback: str
    error: str
    labels: Any
    latency_ms: float | None
    cost_nano: Big | None = None
    unpriced: Natural | None = None
    decided_at: AwareDatetime | None


class VoterPart(_Record):
    type: Literal["voter"] = "voter"
    pseudonym: Pseudonym
    reputation: Positive


class FlagPart(_Record):
    type: Literal["flag"] = "flag"
    comparison: UUID
    voter: Pseudonym
    category: Literal["incorrect", "unsafe", "off-topic", "format", "other"]
    comment: str
    created_at: AwareDatetime


class RetractedEntry(_Record):
    seq: Big
    at: AwareDatetime


class _Sealed(_Record):
    """What every entry of the ledger says."""

    type: str
    seq: Big
    hash: Hex
    id: UUID
    at: AwareDatetime
    run: UUID | None
    comparison: UUID | None
    voter: Pseudonym | None


class VoteEntry(_Sealed):
    type: Literal["vote"] = "vote"
    run: UUID
    voter: Pseudonym
    choice: ChoiceText
    value: Annotated[int, Field(ge=0, le=MILLION)] | None
    category: Annotated[str, Field(max_length=60)]
    left_side: Literal["A", "B", ""]
    rubric: RubricRef
    elapsed_ms: Natural | None
    reputation: Positive
    unblinded: bool
    simulated: bool
    comment: str
    comment_sha256: Hex | Literal[""]
    salt: Annotated[str, Field(max_length=32)]
    labels: dict[str, str | int | float | bool | list[str]] | None
    labels_sha256: Hex | Literal[""]
    retracted: RetractedEntry | None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.comparison is None or not (self.choice or self.labels_sha256):
            raise ValueError("a vote is a choice or an answer on an item")
        if self.value is not None and self.choice not in PASS_FLAG:
            raise ValueError("only what passes or is flagged has a value")
        return self


class ObjectPayload(BaseModel):
    """The hashes of a run or a judge, see `judge_eval.ledger.objects`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["run", "judge"]
    id: UUID
    sha256: Hex
    config: Hex | None = None
    project: Hex | None = None


class EntryPart(_Sealed):
    type: Literal["entry"] = "entry"
    kind: Literal["retraction", "verdicts", "decision", "parameters", "erasure", "object"]
    target: UUID | None
    payload: Annotated[Any, AfterValidator(_hashable)]
    # Why a curator decided so: the payload holds its salted hash.
    comment: str = ""
    salt: Annotated[str, Field(max_length=32)] = ""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kind == "verdicts" and self.comparison is None:
            raise ValueError("verdicts are on a pair")
        if self.comparison and not self.run:
            raise ValueError("a pair is of a run")
        if self.kind != "retraction" and self.payload is None:
            raise ValueError("it says nothing")
        if self.is_settling:
            Decision.model_validate(self.payload)
        if self.kind == "parameters":
            votes_required_in(self.payload)
            groups_in(self.payload)
            margin_in(self.payload)
        return self

    @model_validator(mode="after")
    def _is_covered(self) -> Self:
        if self.kind == "object":
            ObjectPayload.model_validate(self.payload)
        if self.kind == "object" and self.run is None:
            raise ValueError("an object is of a run")
        if self.comment and not self.is_settling:
            raise ValueError("only a decision has a comment")
        return self

    @property
    def is_settling(self) -> bool:
        """Whether it decides whether votes of a run count, or a judge of it does."""
        subject = self.comparison or self.voter or self.is_on_judge
        return self.kind == "decision" and self.run is not None and bool(subject)

    @property
    def is_on_judge(self) -> bool:
        is_on_others = self.comparison or self.voter
        return not is_on_others and isinstance(self.payload, dict) and "judge" in self.payload


class End(_Record):
    type: Literal["end"] = "end"
    lines: Big


LedgerRecord: TypeAlias = VoteEntry | EntryPart
_OfRun: TypeAlias = (
    Rubric | RunPart | JudgeRecord | OutputRecord | Pair | VerdictPart | VoterPart | FlagPart
)
Record: TypeAlias = Header | _OfRun | LedgerRecord | End
_RECORD: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="type")])


# --- lines ------------------------------------------------------------------------------------


class BundleError(Exception):
    """A bundle that cannot be read or written into the database; lines are numbered from 1."""

    def __init__(self, line: int, field: str | None, reason: str) -> None:
        super().__init__(f"line {line}: {field}: {reason}" if field else f"line {line}: {reason}")
        self.line, self.field, self.reason = line, field, reason


def is_bundle(stream: BinaryIO) -> bool:
    """Say whether a seekable file is a bundle, of whatever version, and go back to its start."""
    first = stream.readline(_HEADER_BYTES)
    stream.seek(0)
    try:
        header = loads(first.decode())
    except (NotJson, UnicodeDecodeError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def read(stream: BinaryIO) -> Iterator[tuple[int, Record]]:
    """Yield each line's number, from 1, and what it holds; the header first, the end not.

    Raises BundleError at the first line that is not as it must be, or where the end is missing.
    """
    number, ended, is_ledger = 0, False, False
    while line := stream.readline(MOST_BYTES + 1):
        number += 1
        record = _parsed(number, line)
        is_misplaced = is_ledger and not isinstance(record, VoteEntry | EntryPart | End)
        is_ledger = is_ledger or is_of_ledger(record)
        if ended or is_misplaced or (number == 1) != isinstance(record, Header):
            raise BundleError(number, "type", f"{record.type!r} cannot stand here")
        if isinstance(record, End):
            if record.lines != number - 1:
                raise BundleError(number, "lines", f"{record.lines}, but there are {number - 1}")
            ended = True
        else:
            yield number, record
    if not ended:
        raise BundleError(number, None, "the file was cut: its last line must be of type 'end'")


def is_of_ledger(record: Record) -> bool:
    return isinstance(record, VoteEntry | EntryPart)


def _parsed(number: int, line: bytes) -> Record:
    if len(line) > MOST_BYTES:
        raise BundleError(number, None, f"more than {MOST_BYTES:,} bytes")
    # Nearly no line has the escape at all, and the expression takes its time.
    if _ESCAPE in line and _NUL.search(line):
        raise BundleError(number, None, "holds a NUL character")
    try:
        return _RECORD.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # The first part of the path is the record's type.
        path = ".".join(str(part) for part in first["loc"][1:])
        raise BundleError(number, path or None, first["msg"]) from error
