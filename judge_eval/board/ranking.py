"""Judges by overall agreement, whether findings say it already or the counts of this moment."""

from collections.abc import Mapping
from math import inf
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import F, Sum

from judge_eval.board.filters import WHOLE_RUN, Slice
from judge_eval.board.model import JudgeFindings, RankedJudges
from judge_eval.models import Findings, JudgeRating, Run, Verdict
from judge_eval.runs.queries import BoardView
from judge_eval.stats import elo
from judge_eval.stats.estimate import FEWEST_PROMPTS, wilson
from voting.items.kinds import is_ordered
from voting.models import Item

Interval = tuple[float, float]
IN_FILE: Final = "imported: the order means nothing"
UNUSUAL: Final = "unusual order: at most one in ten other orders leads out of this range"


class Ranking(NamedTuple):
    """The overall agreement of judges by their identifiers, and of how many votes, up to which.

    It is computed where the findings say it; otherwise it is counted as of this moment, without
    intervals.
    """

    values: Mapping[str, float | None]
    findings: Mapping[str, JudgeFindings]
    votes: int
    seq: int
    is_computed: bool

    def lines(self, board: BoardView) -> list["BoardLine"]:
        """Return the best judge first, and baselines last; a judge without a value is behind."""
        baselines = {str(row.judge.pk): row.judge.is_baseline for row in board.rows}
        queue, ratings = board.run.queue, board.elo
        reasons = {pk: findings.without_elo for pk, findings in self.findings.items()}
        left_out = {pk: reason for pk, reason in reasons.items() if reason}
        unrated = elo.unrated(
            baselines, left_out, are_ratings=is_ordered(queue), withheld=board.withheld
        )
        places, lines = sorted(map(self._place, board.rows)), []
        for row in sorted(board.rows, key=self._place):
            judge = str(row.judge.pk)
            findings = self.findings.get(judge)
            is_silent = findings is not None and findings.is_silent
            rank = None if is_silent else 1 + places.index(self._place(row))
            live = elo_of(ratings.get(judge), unrated.get(judge, ""), findings)
            lines.append(BoardLine(row, findings, self.values.get(judge), live, rank))
        return lines

    def _place(self, row: JudgeRating) -> tuple[bool, float]:
        value = self.values.get(str(row.judge.pk))
        return row.judge.is_baseline, inf if value is None else -value


class Elo(NamedTuple):
    """The ELO of a judge after the last vote, and its range in other orders of the items.

    `note` says why there is none, or that it is outside its range.
    """

    value: float | None
    low: float | None
    high: float | None
    note: str


class BoardLine(NamedTuple):
    """A judge on the board: its rating of this moment, its findings and agreement.

    Judges of equal agreement share a `rank`, and those without a verdict have none.
    """

    row: JudgeRating
    findings: JudgeFindings | None
    share: float | None
    elo: Elo
    rank: int | None

    @property
    def id(self) -> str:
        return str(self.row.judge.pk)

    @property
    def is_baseline(self) -> bool:
        return self.row.judge.is_baseline


def elo_of(value: float | None, reason: str, judge: JudgeFindings | None) -> Elo:
    """Return an ELO with what the findings know of other orders, or `reason` there is none."""
    if reason or value is None or judge is None:
        return Elo(None if reason else value, None, None, reason)
    low, high = judge.elo_other_orders_low, judge.elo_other_orders_high
    # As they are shown.
    is_usual = low is None or high is None or round(low) <= round(value) <= round(high)
    return Elo(value, low, high, "" if is_usual else IN_FILE if judge.is_of_file else UNUSUAL)


def ranking(board: BoardView, findings: RankedJudges | None, part: Slice = WHOLE_RUN) -> Ranking:
    """Return what the findings say; until there are any, the shares of this moment alone."""
    # What was computed of a run before anybody voted says nothing of the votes since; where it
    # knows them all, there is nothing to wait for.
    is_whole = findings and (findings.as_of.votes or findings.as_of.seq >= board.seq)
    if findings and (is_whole or part.kind or not board.votes):
        judges, counted_votes = {judge.id: judge for judge in findings.judges}, findings.as_of
        values = {name: judge.overall.value for name, judge in judges.items()}
        return Ranking(values, judges, counted_votes.votes, counted_votes.seq, is_computed=True)
    final = Verdict.objects.filter(judge__run=board.run).exclude(state=Verdict.State.WAITING)
    if is_ordered(board.run.queue) or board.withheld:
        # Counts of equal ratings say nothing of their order; others may be withheld.
        final = final.none()
    votes = dict(final.order_by().values_list("judge").annotate(Sum("item__votes")))
    values = {
        str(row.judge.pk): row.agree / votes[row.judge.pk] if votes.get(row.judge.pk) else None
        for row in board.rows
    }
    return Ranking(values, {}, board.votes, board.seq, is_computed=False)


def stored_ranking(run: Run) -> RankedJudges | None:
    rows = Findings.objects.filter(run=run, part="")
    return RankedJudges.read(rows.values(judges=F("data__judges"), as_of=F("data__as_of")).first())


def agreement_intervals(board: BoardView, findings: RankedJudges | None) -> dict[UUID, Interval]:
    """Return 95 % intervals of the judges' agreement, in percent, where one is known.

    That of the findings where they are of the same votes. Until they are, Wilson's, which holds
    only while no pair has several votes: those are not independent.
    """
    shares = {judge.id: judge.agreement for judge in (findings.judges if findings else ())}
    several = Item.objects.filter(queue=board.run.queue_id, votes__gt=1).exists()
    intervals = {}
    for row in board.rows:
        share = shares.get(str(row.judge.pk))
        if share and (share.successes, share.n) == (row.agree, row.total):
            low, high = share.low, share.high
        else:
            is_early = several or row.total < FEWEST_PROMPTS
            low, high = (None if is_early else wilson(row.agree, row.total)) or (None, None)
        if low is not None and high is not None:
            intervals[row.judge.pk] = (100 * low, 100 * high)
    return intervals
