"""Types of judges: how a judge is asked, and how its verdict comes about.

One model that is asked in both orders is one of them. An extension is another subclass of
`JudgeType`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Protocol, TypeAlias

from pydantic import Field

from humanjudge.core.extensions import Extension, Registry
from humanjudge.core.validation import Part, Storable
from judge_eval.judging.config.modes import Helpers, Mistake, NoOptions, Output
from judge_eval.judging.config.run_config import ONE_MODEL, JudgePart, JudgeSpec

Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]


class NoVerdict(Exception):
    """A judge comes to no verdict on an item, which is never a score; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model, or a judge made of several, says of an item; without a winner, why not.

    The winner is a choice of the run's ballot, of the outputs as they are stored: `A` is the first.
    """

    winner: Storable = ""
    reason: Storable = ""
    error: Storable = ""
    score_a: Finite | None = None
    score_b: Finite | None = None
    # Whether both orders agreed; None where one was asked, or where it means nothing.
    consistent: bool | None = None
    # What was picked in each order as it stood there.
    picks: tuple[Storable, ...] = ()
    # The share of samples that said what the majority said.
    sample_consistency: Finite | None = None


class JudgeHelpers(Helpers, Protocol):
    """What a judge judges one item with."""

    @property
    def outputs(self) -> Sequence[Output]:
        """What it judges, as stored; of a single item one output."""

    @property
    def choices(self) -> Sequence[str]:
        """What people may say of it."""

    def judge(self, *models: JudgePart) -> list[Answer]:
        """Ask models of the judge about the item, all at once, in the orders that the run asks in.

        The hook ends here until all have answered, and is then called anew, from its beginning;
        what was asked before is answered at once. So it must come by the same way to the same
        question: no clock, no chance.
        """


class JudgeType(Extension):
    """How a judge is asked about an item, and what it says then."""

    kind = "judge type"
    # Of how many models it is made.
    parts: ClassVar[tuple[int, int]] = (1, 25)
    # What stands beside the judge in the config as `options`.
    Options: ClassVar[type[Part]] = NoOptions

    def check(self, judge: JudgeSpec) -> Iterable[Mistake]:
        """Say what is wrong with a judge of a new run; paths begin at the judge."""
        return ()

    def verdict(self, judge: JudgeSpec, helpers: JudgeHelpers) -> Answer:
        """Judge an item, or raise NoVerdict."""
        raise NotImplementedError(f"{type(self).__name__} must define verdict")


class OneModel(JudgeType):
    id = ONE_MODEL
    title = "One model"
    version = "1"
    description = "Asks one model, in both orders where the run does, and takes what both say."
    parts = (0, 0)

    def verdict(self, judge: JudgeSpec, helpers: JudgeHelpers) -> Answer:
        [answer] = helpers.judge(*judge.models)
        if answer.error:
            raise NoVerdict(answer.error)
        return answer


JUDGE_TYPES: Final = Registry[JudgeType](JudgeType, OneModel())
