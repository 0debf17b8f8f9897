"""The findings of a run as the API gives them, named so that a script knows what it reads."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from ninja import Schema

Matrix = list[list[float | None]]


class AsOf(Schema):
    """Which votes are in it, and on what."""

    seq: int
    votes: int
    people: int
    comparisons: int
    open: int
    voted: int
    simulated: bool
    part: str


class Share(Schema):
    """A share with its 95 % interval; where a number is null, `why` says why."""

    value: float | None
    low: float | None
    high: float | None
    successes: int
    trials: int
    comparisons: int
    method: str | None
    why: str | None


class Rating(Schema):
    """A Bradley-Terry rating, mean 1000, with its interval and the ranks it may have."""

    value: float | None
    low: float | None
    high: float | None
    rank: int | None
    best_rank: int | None
    worst_rank: int | None
    comparisons: int
    why: str | None


class JudgeFindings(Schema):
    id: str
    name: str
    is_baseline: bool
    overall: Share | None = None
    rating: Rating
    ties: str
    agreement: Share
    beside_people: Share | None = None
    per_answer: Share | None = None
    coverage: Share
    consistency: Share
    first_position: Share
    order_luck: float | None
    cost_usd: float | None
    seconds_per_verdict: float | None
    cost_per_verdict_usd: float | None
    cost_per_correct_usd: float | None
    cost_why: str | None


class Claims(Schema):
    """Rows against columns: which judge is better than which, with the corrected p."""

    beats: list[list[bool]]
    p: Matrix
    p_single: Matrix
    ahead: list[list[int]]
    together: list[list[int]]
    labelled: int
    unlabelled: int


class AmongPeople(Schema):
    """How often people agree with each other, and with the majority of the others."""

    pairs: Share
    votes: Share | None = None
    with_majority: Share
    no_majority: int
    alone: int


class Disputed(Schema):
    """A pair on which judges were wrong so often; `external_id` is what an import called it."""

    id: UUID
    external_id: str
    position: int
    wrong: int
    of: int


class ModelBoard(Schema):
    """Models ranked `by` people, or by the judge of that identifier, in the order of `names`."""

    by: str
    name: str
    is_baseline: bool = False
    ratings: list[Rating]
    ties: list[str]
    wins: list[list[float]]
    win_rates: Matrix
    both_bad: int
    unpaired: int


class Models(Schema):
    names: list[str]
    boards: list[ModelBoard]


class AgainstPerson(Schema):
    """A judge against one person; null but for `why` where they were not compared."""

    name: str
    why: str | None
    items: int
    judge: float | None = None
    human: float | None = None
    p: dict[str, float] | None = None
    rejected: dict[str, bool] | None = None


class AltTestJudge(Schema):
    id: str
    name: str
    is_baseline: bool
    winning_rates: dict[str, float | None] | None
    passes: bool | None
    advantage: float | None
    advantage_interval: tuple[float, float] | None
    words: str
    humans: list[AgainstPerson]
    tested: int | None = None
    untested: int | None = None
    left_out: list[str]
    items: int


class AltTest(Schema):
    judges: list[AltTestJudge]
    advice: list[str]
    left_out: list[str]
    epsilon: str
    humans: int
    choices: int | None = None
    items: int


class Parts(Schema):
    """What `part` may be: `tag:…` with how many pairs have the tag, `generator:…`."""

    tags: list[tuple[str, int]]
    generators: list[str]


class Computing(Schema):
    """Nothing is known yet; ask again in a second."""

    state: Literal["computing"]


class Ready(Schema):
    """All figures, as of one ledger entry; `newer` votes are being counted, up to `ledger_seq`.

    `sealed`: all votes of this key are among those. `behind`: newer entries are being counted.
    """

    state: Literal["ready"]
    as_of: AsOf
    computed_at: datetime
    behind: bool
    newer: int
    ledger_seq: int
    sealed: bool
    words: str
    judges: list[JudgeFindings]
    claims: Claims
    same_verdict: Matrix
    among_people: AmongPeople
    people_first_position: Share
    disputed: list[Disputed]
    models: Models | None
    models_why: str | None
    alt_test: AltTest | None
    alt_test_why: str | None
    parts: Parts | None = None
