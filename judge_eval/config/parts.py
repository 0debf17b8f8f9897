"""What the config of a run is made of, complete: no part of it has a default left to fill in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from voting.choices import Choice

Mode = Literal["judge_eval", "standard"]
Kind = Literal["svg", "text", "code"]
VerdictOrders = Literal["both", "random"]
Reveal = Literal["after_each", "at_end", "never"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
VERDICT_ORDERS: Final[tuple[VerdictOrders, ...]] = get_args(VerdictOrders)
REVEALS: Final[tuple[Reveal, ...]] = get_args(Reveal)

# Provider of the judges that are answered here; no endpoint can be called this.
BASELINE: Final = "baseline"

RUBRICS: Final = MappingProxyType[Kind, str](
    {
        "svg": "Which drawing better shows what was asked? First check that everything in the "
        "prompt is there, in the right number and place; then judge how well it is drawn: "
        "composition, colour, readable text, clean shapes. A plain drawing that fits the prompt "
        "can beat a rich one that does not.",
        "text": "Which answer would you rather have received? First check that it is right and "
        "does what was asked, including any limit on length or form; then weigh how clear and "
        "pleasant it is to read. Length is not a merit in itself.",
        "code": "Which code would you rather have received? First check that it is correct and "
        "does what was asked, edge cases included; then weigh how clear and simple it is to read "
        "and to change. Length and comments are not a merit in themselves.",
    }
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that generates."""

    id: str


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A model that judges, or a baseline, which is asked nowhere."""

    id: str
    provider: str

    @property
    def is_baseline(self) -> bool:
        return self.provider == BASELINE


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """What every model is given."""

    id: str
    text: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """How outputs are asked for. A temperature of None is not sent."""

    temperature: float | None
    max_tokens: int

    @property
    def parameters(self) -> dict[str, Any]:
        return _sent(temperature=self.temperature, max_tokens=self.max_tokens)


@dataclass(frozen=True, slots=True)
class Judging:
    """How verdicts are asked for. A temperature of None is not sent: some models refuse any.

    Examples
    --------
    >>> Judging(temperature=None, prompt_version="1", max_tokens=400, samples=1).parameters
    {'max_tokens': 400}
    """

    temperature: float | None
    prompt_version: str
    max_tokens: int
    samples: int

    @property
    def parameters(self) -> dict[str, Any]:
        return _sent(temperature=self.temperature, max_tokens=self.max_tokens)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The share of the pairs that several people vote on, and how many."""

    share: float
    votes: int


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A config that is right and complete; `run_config.parse` makes them."""

    name: str
    mode: Mode
    kind: Kind
    models: tuple[ModelSpec, ...]
    judges: tuple[JudgeSpec, ...]
    prompts: tuple[PromptSpec, ...]
    rubric: str
    ballot: tuple[Choice, ...]
    votes_per_pair: int
    overlap: Overlap
    reveal: Reveal
    verdict_orders: VerdictOrders
    generation: Generation
    judging: Judging
    provider: str
    budget_usd: Decimal | None

    def as_dict(self) -> dict[str, Any]:
        """Return the config as JSON can hold it, such that it parses back to an equal one."""
        plain: dict[str, Any] = _as_json(asdict(self))
        return plain


def _sent(**parameters: float | None) -> dict[str, Any]:
    return {key: value for key, value in parameters.items() if value is not None}


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_json(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_as_json(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value
