"""What is known of a run's votes and verdicts: as it is computed, stored, shown and given away."""

import re
from dataclasses import replace
from typing import Annotated, Any, Final, NamedTuple, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import listed
from judge_eval.board.filters import Parts
from judge_eval.stats import elo
from judge_eval.stats.estimate import (
    AmongPeople,
    Corrected,
    Estimate,
    LabelRates,
    McNemar,
    ModelBoard,
    Rating,
    Share,
    best_first,
)
from judge_eval.stats.points import MOST_WORDS, BoardPoint, read_point

PEOPLE: Final = "people"
# Of more generators than this there are no figures.
MOST_MODELS: Final = 100
# What is asked of pairs; further tasks have names of their own.
WINNER: Final = "winner"


def _number(number: Any) -> Any:
    return None if number != number else number


def _plain(array: Any) -> Any:
    return array.tolist() if hasattr(array, "tolist") else array


# Of numbers and arrays, in which NaN is none, or of what JSON holds.
Number = Annotated[float | None, BeforeValidator(_number)]
Matrix = Annotated[list[list[Number]], BeforeValidator(_plain)]
Counts = Annotated[list[list[int]], BeforeValidator(_plain)]
Flags = Annotated[list[list[bool]], BeforeValidator(_plain)]


class Figures(BaseModel, from_attributes=True):
    """Figures as they are stored; made of the dataclasses that computed them."""

    @classmethod
    def read(cls, stored: object) -> Self | None:
        """Return what is stored; None where nothing is, or another version stored it."""
        try:
            return cls.model_validate(stored)
        except ValidationError:
            return None


class OfRatings(Figures):
    """What a judge of ratings is compared by beside their order: rating by rating."""

    # The same rating; no verdict counts as wrong.
    exact: Share = Share(None, why="votes are no ratings here")
    # Means over people.
    quadratic_kappa: float | None = None
    spearman: float | None = None
    kendall: float | None = None
    # How much higher the judge rates than people.
    mean_difference: float | None = None


class Unordered(Figures):
    """How many units there are, and what brings nothing to the order of ratings.

    A unit is a prompt of several items, or two prompts of one item each.
    """

    units: int
    # Prompts of one item that wait for another.
    of_one_item: int
    # Units in which nobody rated two items differently, and of which nobody rated all items.
    alike: int
    not_whole: int


class JudgeFindings(Figures):
    id: str
    name: str
    # What it is, in one line for readers.
    description: str = ""
    is_baseline: bool
    overall: Share
    # The always-valid interval; None where agreement has changed so much on
    # the way that no value fits all of it.
    always_low: Number
    always_high: Number
    # Why it is withheld, where it is.
    always_why: str = ""
    # By prompts and people, where enough of both voted.
    two_way_low: Number
    two_way_high: Number
    # From 1 + the judges that beat it to all less those it beats; None of a baseline.
    rank_low: int | None
    rank_high: int | None
    # Judges share a letter where neither beats the other; empty before a vote counts.
    ties: str
    # Whether it beats every baseline of the run; None where there is none, and of a baseline.
    beats_floor: bool | None
    rating: Rating
    agreement: Share
    beside_people: Share
    per_answer: Share
    coverage: Share
    # Of items that are passed or flagged: how well it finds flags, and spares the others.
    sensitivity: Share
    specificity: Share
    consistency: Share
    first_position: Share
    # Whether it answers the same when it is asked the same again; empty for most judges.
    self_agreement: Share = Share(None, why="it was not asked the same again")
    # Items, by position, on which it then answered differently.
    flips: list[int] = []
    # Tuned on votes of the run: its figures are of the half that was held out.
    is_tuned: bool = False
    # Without a verdict on what was voted on; then it has no rank, and stands below the table.
    is_silent: bool = False
    silent_why: str = ""
    # The 5th and the 95th percentile over other orders of the items; None where there is no ELO.
    elo_other_orders_low: Number
    elo_other_orders_high: Number
    # Whether most votes came in the order of a file.
    is_of_file: bool
    cost_usd: float | None
    seconds_per_verdict: float | None
    cost_per_verdict_usd: float | None
    cost_per_correct_usd: float | None
    cost_why: str | None
    # Where judges are ranked by the order of ratings.
    of_ratings: OfRatings = OfRatings()

    @property
    def without_elo(self) -> str:
        """Why it has no ELO on its own account; empty where it may have one."""
        return elo.SILENT if self.is_silent else elo.TUNED_JUDGE if self.is_tuned else ""

    @property
    def always(self) -> Share:
        """Overall agreement with its interval that is valid even if you look every day."""
        reason = self.overall.why if self.overall.value is None else self.always_why
        low, high = self.always_low, self.always_high
        return replace(self.overall, low=low, high=high, why=reason or None)


class AsOf(Figures):
    """Which votes are in it, and on what."""

    seq: int
    votes: int
    people: int
    comparisons: int
    open: int
    voted: int
    simulated: bool
    part: str


class Withdrawn(Figures):
    """A claim that was made before and holds no longer, by places of the judges.

    Without another one, that the judge is the best.
    """

    judge: int
    other: int | None
    # The ledger entry since which it does not stand, and why.
    seq: int
    why: str


class Claims(Figures):
    """What may be claimed, as `judge_eval.stats.claims.Claims` tells it, and beside it differences.

    Matrices are of rows against columns, in the order of the judges. The difference is by how much
    the row agrees with more of the votes, as a share, with its 95 % interval.
    """

    # The baselines, in columns, that a judge is held against: those that were asked as it was.
    floor: Flags
    beats: Flags
    evidence: Matrix
    evidence_now: Matrix
    difference: Matrix
    difference_low: Matrix
    difference_high: Matrix
    # The ends of the difference's interval that is valid even if you look every day.
    difference_always_low: Matrix
    difference_always_high: Matrix
    # From how many to how many more votes; null is an open end.
    forecast: list[list[tuple[int, int | None] | None]]
    since: list[list[int | None]]
    # The vote up to which the evidence was at least 3 : 1; null where it never was.
    until: list[list[int | None]]
    # Whether the lead depends on the votes of one voter.
    by_one: Flags
    same: Flags
    # The margin of `same`, as a share.
    margin: float
    threshold: float | None
    best_threshold: float | None
    floor_threshold: float | None
    # Prompts with pairs open for voting, those of them that enter with a part of their votes, those
    # that entered, and the votes on these.
    prompts: int
    cut: int
    entered: int
    votes: int
    # Votes that the run still wants.
    votes_left: int
    best: int | None
    withdrawn: list[Withdrawn]
    too_few_prompts: str | None


class FormerClaims(NamedTuple):
    """The claims of the findings computed last, of judges by their identifiers."""

    judges: list[str]
    claims: Claims
    seq: int


class ConfusionMatrix(Figures):
    """Of a judge: votes by what people said (rows) and by what it said, and last by no verdict."""

    judge: str
    counts: Counts
    labels: list[LabelRates]


class Confusion(Figures):
    """What judges said beside what people said, by the choices that there are."""

    choices: list[str]
    judges: list[ConfusionMatrix]


class PassRates(Figures):
    """How often the outputs of one generator pass, by people and by judges in their order."""

    name: str
    outputs: int
    people: Share
    judges: list[Share]


class JudgeRates(Figures):
    """A generator's rates by one judge, set beside people's and corrected by them."""

    judge: str
    # None where the family of the generator or of the judge is not known.
    is_own_family: bool | None
    rates: Corrected


class GeneratorRates(Figures):
    """How often the outputs of one generator win, a tie being 1/2, or pass, per pair or output.

    By the majority of people, of so many `votes`, and by the judges that are no baselines. Pairs of
    which most say that both are bad are in no rate of people's.
    """

    name: str
    votes: int
    both_bad: int = 0
    people: Share
    judges: list[JudgeRates]


class DisputedPair(Figures):
    """The place of a pair on which judges were wrong so often."""

    position: int
    wrong: int
    of: int


class Unanswerable(Figures):
    """Votes for choices that no judge of an import has ever made: none could be right there."""

    choices: list[str]
    votes: int


class Models(Figures):
    names: list[str]
    boards: list[ModelBoard]


class VoteCourse(Figures):
    """Agreement of the leading judges, by identifier and best first, after so many votes."""

    votes: list[int]
    judges: dict[str, list[Number]]


class AgainstPerson(Figures):
    """A judge against one person; null but for `why` where they were not compared."""

    name: str
    why: str | None
    items: int
    judge: float | None = None
    human: float | None = None
    p: dict[str, float] | None = None
    rejected: dict[str, bool] | None = None


class AltTestJudge(Figures):
    id: str
    name: str
    is_baseline: bool
    winning_rates: dict[str, float | None] | None
    passes: bool | None
    advantage: float | None
    advantage_interval: tuple[float, float] | None
    # On how much more of the items the person left out is closer to the others than the judge.
    shortfall: Estimate = Estimate(None, why="it was not computed")
    words: str
    humans: list[AgainstPerson]
    tested: int
    untested: int
    left_out: list[str]
    items: int


class AltTest(Figures):
    """May a judge take a person's place, by their answers to one task?"""

    task: str = WINNER
    judges: list[AltTestJudge]
    advice: list[str]
    left_out: list[str]
    epsilon: str
    humans: int
    choices: int
    items: int


class RankedJudges(Figures):
    """The figures of judges, and of which votes they are."""

    as_of: AsOf
    judges: list[JudgeFindings]

    def best_first(self) -> list[JudgeFindings]:
        """Return the judges by overall agreement, and behind them the baselines; no silent ones."""
        order = best_first([judge.overall.value for judge in self.judges])
        speaking = (self.judges[place] for place in order if not self.judges[place].is_silent)
        return sorted(speaking, key=lambda judge: judge.is_baseline)

    @property
    def answered_nothing(self) -> list[str]:
        """What is said of judges that answered nothing, each with the reason."""
        silent = [judge for judge in self.judges if judge.is_silent]
        return [
            f"{judge.name} answered nothing{judge.silent_why and ': '}{judge.silent_why}"
            for judge in silent
        ]


class JudgeOfGroup(Figures):
    judge: str
    overall: Share


class GroupFigures(Figures):
    """What the votes of one group of voters say; `why` there are no figures, if they are few.

    Without a name it is of the voters who are in no group.
    """

    name: str
    people: int
    votes: int
    why: str | None = None
    among_people: AmongPeople | None = None
    judges: list[JudgeOfGroup] = []


# What a later version computed is given away as it is.
class RunFindings(RankedJudges, extra="allow"):
    """All that is known of a run, or of a part of it; `parts` are those of the whole run."""

    # What a reader must know; points, as "Floor: …"; and what stands among the further figures.
    words: str
    # Whether those who run or vote in the study may stop, while it is open.
    may_stop: bool = False
    # The voter without whom the first judge is no longer ahead: kept apart, and told to leads.
    carrier: Annotated[UUID | None, Field(exclude=True)] = None
    more: list[str]
    notes: list[str] = []
    # Judges that somebody left out: they are in no other figure.
    left_out: list[str] = []
    claims: Claims
    mcnemar: McNemar
    same_verdict: Matrix
    among_people: AmongPeople
    people_first_position: Share
    disputed: list[DisputedPair]
    unanswerable: Unanswerable | None = None
    unordered: Unordered | None = None
    models: Models | None
    models_why: str | None
    alt_test: AltTest | None
    alt_test_why: str | None
    # By what else was answered beside the vote.
    further_alt_tests: list[AltTest] = []
    # Of single items.
    confusion: Confusion | None = None
    pass_rates: list[PassRates] | None = None
    # Of each generator, where outputs are compared or passed.
    generators: list[GeneratorRates] = []
    # As votes came in; none of ratings, of few votes, or where most came in the order of a file.
    course: VoteCourse | None = None
    # Of each group of voters, where there are some.
    groups: list[GroupFigures] = []
    parts: Parts | None = None

    @property
    def points(self) -> list[BoardPoint]:
        judges = [judge for judge in self.judges if not judge.is_baseline]
        is_above_floor = all(judge.beats_floor is not False for judge in judges)
        return [read_point(sentence, is_above_floor=is_above_floor) for sentence in self.more]

    @property
    def without_thin(self) -> list[str]:
        """Say which judges have no thin line in the picture of agreement, and why."""
        names: dict[str, list[str]] = {}
        for judge in self.judges:
            if judge.always_why and not judge.is_baseline:
                names.setdefault(judge.always_why, []).append(judge.name)
        return [f"No thin line of {listed(judges)}: {reason}." for reason, judges in names.items()]

    @property
    def unrated(self) -> dict[str, str]:
        """Why judges have no ELO, by the identifiers of those that have none."""
        judges = {judge.id: judge.is_baseline for judge in self.judges}
        left_out = {judge.id: judge.without_elo for judge in self.judges if judge.without_elo}
        return elo.unrated(judges, left_out, are_ratings=self.unordered is not None)

    def words_to(self, *, is_at_work: bool) -> str:
        """Return the words for a reader; whoever runs or votes in an open study may be stopped."""
        stop = self.may_stop and is_at_work
        words = f"{self.words.removesuffix('.')}; you may stop voting." if stop else self.words
        # Who may stop has a best judge: that it is one is said already.
        is_long = len(words.split()) > MOST_WORDS
        return re.sub(r"Best of \d+ judges: ", "", words) if is_long else words

    @property
    def alt_tests(self) -> dict[str, AltTest]:
        """The Alt-Test by each task that was answered: first, where there is one, by the vote."""
        main = [self.alt_test] if self.alt_test else []
        return {test.task: test for test in (*main, *self.further_alt_tests)}

    @property
    def rate_charts(self) -> dict[str, str]:
        """What the charts of winning rates are kept under, by task."""
        return {
            task: f"winning_rates_{number}" if number > 1 else "winning_rates"
            for number, task in enumerate(self.alt_tests, start=1)
        }

    def stored(self) -> JsonObject:
        """Return it as JSON holds it; what was not computed is not there."""
        return self.model_dump(mode="json", exclude_unset=True)
