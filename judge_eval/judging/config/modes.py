"""Run modes: what a run asks models for, what becomes of the outputs, and whether people vote.

The judge evaluator is one of them. An extension is another subclass of `RunMode`; each of its hooks
has here what the built-in modes do.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Final, Protocol, TypeAlias
from uuid import UUID

from humanjudge.core.extensions import Extension, Registry
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import Part
from judge_eval.judging.config.run_config import JUDGE_EVAL, RunConfig

# A path in the config, such as `mode_options.rounds`, and what is wrong there.
Mistake: TypeAlias = tuple[str, str]


class NoOptions(Part):
    """For whoever wants to know nothing more."""


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a model, as hooks are given it."""

    id: UUID
    prompt: str
    generator: str
    kind: str
    text: str


class Helpers(Protocol):
    """What every hook may use; what is emitted and stored is written once the hook has ended."""

    def emit(self, text: str, **data: Any) -> None:
        """Tell those who follow the run of something, in a sentence."""

    def store(self, name: str, value: Any) -> None:
        """Keep a value that JSON can hold, under a name of the extension's own, with the run."""

    def stored(self, name: str) -> Any:
        """Return what was kept under a name; None where nothing was."""

    def render(self, output: Output) -> bytes | None:
        """Return a drawing as the PNG that people and judges see; None where there is none."""


class PlanHelpers(Helpers, Protocol):
    """What a mode plans with."""

    def generate(self, model: str, prompt: int) -> None:
        """Ask a model of the config for an output to the prompt at this place, once."""


class RunMode(Extension):
    """What a run does, from its config to its end."""

    kind = "run mode"
    # Whether people vote on the items; otherwise the run is complete once all are judged.
    wants_votes: ClassVar[bool] = True
    # Of how many models a run of pairs must have outputs, and one of single items.
    fewest_models: ClassVar[tuple[int, int]] = (2, 1)
    # What stands in the config as `mode_options`.
    Options: ClassVar[type[Part]] = NoOptions

    def check(self, config: RunConfig) -> Iterable[Mistake]:
        """Say what is wrong with the config of a new run; the run is not made then."""
        return ()

    def plan(self, config: RunConfig, helpers: PlanHelpers) -> None:
        """Ask for the outputs of a run that begins: here, each prompt of each model."""
        for place in range(len(config.prompts)):
            for model in config.models:
                helpers.generate(model.id, place)

    def pair(
        self, config: RunConfig, outputs: Sequence[Output], helpers: Helpers
    ) -> Iterable[Sequence[Output]]:
        """Make items of what came for one prompt: here, every pair, or each output by itself.

        It is asked again when more came; items that are there already are not made twice. Which
        output of a pair is A is drawn by lot.
        """
        return combinations(outputs, 1 if config.items else 2)

    def completed(self, config: RunConfig, helpers: Helpers) -> None:
        """Do what is to be done when the run is complete; it may be again, after more votes."""


class JudgeEval(RunMode):
    id = JUDGE_EVAL
    title = "Judge evaluation"
    version = "1"
    description = "Models generate, judges judge, people vote, and the board compares them."


class Standard(RunMode):
    id = "standard"
    title = "Without votes"
    version = "1"
    description = "Models generate and judges judge; the run is complete without votes."
    wants_votes = False
    fewest_models = (1, 1)


MODES: Final = Registry[RunMode](RunMode, JudgeEval(), Standard())


def modes_without_votes() -> Iterator[str]:
    return (mode.id for mode in MODES.values() if not mode.wants_votes)


def wants_votes(config: JsonObject | None) -> bool:
    """Say whether people vote in the run of a config, whose mode need not be here."""
    return (config or {}).get("mode") not in list(modes_without_votes())
