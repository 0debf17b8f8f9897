"""The figures of a judge, and the columns in which the board, its files and the terminal show them.

A column is declared once, in `GROUPS`. The page, its explanation, CSV, JSON and the command line
follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.utils.safestring import SafeString
from pydantic import BaseModel, ConfigDict

from humanjudge.lib.tables import DASH, Cell, missing, percent, span
from humanjudge.lib.text import usd
from judge_eval.models import JudgeRating

Value = str | float | None

PENDING = "Being computed from the votes; it appears here by itself within seconds."
UNVOTED = "Nobody has voted on a pair that it has a verdict on."
_UNASKED = "It has not been asked about a pair that is open for voting."
_ONE_ORDER = "It has not answered about a pair in both orders, or what it answered is not known."
_NO_SIDE = "It has chosen no side, or in which order it saw the pairs is not known."
_ALONE = "No two people have voted on the same pair."
_NO_SIDED_VOTE = "Nobody has voted for a side, or where it stood is not known."
_METHODS: Final = {
    "wilson": "Wilson",
    "bootstrap": "bootstrap over comparisons",
    "prompts": "prompts, which are taken as independent",
}


class Figures(BaseModel):
    """Figures as they are stored; made of the dataclasses that computed them."""

    model_config = ConfigDict(from_attributes=True)


class Share(Figures):
    """A share with its 95 % interval; where a number is null, `why` says why."""

    value: float | None
    low: float | None
    high: float | None
    successes: int
    trials: int
    comparisons: int
    method: str | None
    why: str | None


class Rating(Figures):
    """A Bradley-Terry rating, mean 1000, with its interval and the ranks it may have."""

    value: float | None
    low: float | None
    high: float | None
    rank: int | None
    best_rank: int | None
    worst_rank: int | None
    comparisons: int
    why: str | None

    def ranks(self, dash: str = DASH) -> str:
        """Write the ranks that are possible; nothing where none is known."""
        best, worst = self.best_rank, self.worst_rank
        if best is None:
            return ""
        return f"{best}" if best == worst else f"{best}{dash}{worst}"


class JudgeFindings(Figures):
    id: str
    name: str
    is_baseline: bool
    overall: Share
    rating: Rating
    ties: str
    agreement: Share
    beside_people: Share
    per_answer: Share
    coverage: Share
    consistency: Share
    first_position: Share
    order_luck: float | None
    cost_usd: float | None
    seconds_per_verdict: float | None
    cost_per_verdict_usd: float | None
    cost_per_correct_usd: float | None
    cost_why: str | None


@dataclass(frozen=True)
class Method:
    """How a figure is made, in a few sentences that are HTML."""

    anchor: str
    title: str
    text: SafeString


@dataclass(frozen=True)
class Column:
    """One column of the board.

    Attributes
    ----------
    figure : str
        Its key on the page.
    title, unit : str
    method : Method
        Several columns may be explained together.
    cell : function
        What the page shows of a judge's findings.
    live : function, optional
        What it shows instead, from the counts of this moment; None where there is nothing better.
    people : function, optional
        What it shows of people themselves: of how often two agree, and of what stands left.
    names : tuple of str
        Its columns in files.
    values : function, optional
        What stands there, of the findings and the live ELO.
    shares : {'', 'pairs', 'first'}
        Which share of people stands there in their row.
    place : int
        Its place in a row of the terminal, from 1; 0 where it is not there.
    texts : function, optional
        What stands there.
    without : (str, str), optional
        What is said when no judge has a figure, and whose absence tells; the column is left out.
    is_of_parts : bool
        It is shown of parts of a run too.
    """

    figure: str
    title: str
    unit: str
    method: Method
    cell: Callable[[JudgeFindings], Cell]
    live: Callable[[JudgeRating, JudgeFindings | None], Cell | None] = lambda row, judge: None
    people: Callable[[Share, Share], Cell] | None = None
    names: tuple[str, ...] = ()
    values: Callable[[JudgeFindings, float | None], Sequence[Value]] = lambda judge, elo: ()
    shares: str = ""
    place: int = 0
    texts: Callable[[JudgeFindings], Sequence[str]] = lambda judge: ()
    without: tuple[str, str] = ("", "")
    is_of_parts: bool = True


def share_cell(
    share: Share, counted: str, nothing: str, *, decimals: int = 0, is_drawn: bool = False
) -> Cell:
    """Show a share; `counted` is what it was counted of, `nothing` says that there was none.

    One that is drawn says how many there were.
    """
    if share.value is None:
        return missing(nothing)
    main = percent(share.value, decimals)
    title = f"{share.successes:,} of {share.trials:,} {counted}"
    number = f"n {share.trials:,}" if is_drawn else ""
    if share.low is None or share.high is None:
        why = f"No interval: {share.why}."
        return Cell(main, number, f"{title}. {why}", why)
    interval = span(100 * share.low, 100 * share.high)
    title = f"{title}; 95 % interval by {_METHODS[share.method or 'wilson']}"
    bar = (100 * share.value, 100 * share.low, 100 * share.high) if is_drawn else None
    return Cell(main, ", ".join(filter(None, [interval, number])), title, bar=bar)


def _share_names(name: str) -> tuple[str, ...]:
    return (name, f"{name}_low", f"{name}_high", f"{name}_successes", f"{name}_n")


def _share_values(share: Share) -> tuple[Value, ...]:
    return share.value, share.low, share.high, share.successes, share.trials


def _number(value: float | None, decimals: int = 0, factor: float = 1) -> str:
    return "-" if value is None else f"{factor * value:.{decimals}f}"


def _percents(share: Share) -> list[str]:
    return [_number(value, 1, 100) for value in (share.value, share.low, share.high)]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _rank_cell(judge: JudgeFindings) -> Cell:
    rating = judge.rating
    if rating.best_rank is not None:
        return Cell(rating.ranks())
    why = rating.why or "its rank is not known"
    return missing(_sentence(why) if rating.value is None else f"No interval: {why}.")


def _ties_cell(judge: JudgeFindings) -> Cell:
    # Nobody is told apart from anybody before a vote, and that would be no finding.
    return Cell(judge.ties) if judge.ties and judge.agreement.trials else missing(UNVOTED)


def _live_elo(row: JudgeRating, judge: JudgeFindings | None) -> Cell:
    """Show the rating of this moment; who has played no game stands where all begin."""
    luck = judge.order_luck if judge and row.total else None
    return Cell(f"{row.elo:.0f}", "" if luck is None else f"±{luck:.0f}")


def _rating_cell(judge: JudgeFindings) -> Cell:
    rating = judge.rating
    if rating.value is None:
        return missing(_sentence(rating.why or "its rating is not known"))
    main = f"{rating.value:.0f}"
    if rating.low is None or rating.high is None:
        why = f"No interval: {rating.why}."
        return Cell(main, title=why, why=why)
    title = f"95 % interval by bootstrap; games on {rating.comparisons:,} comparisons"
    return Cell(main, span(rating.low, rating.high), title)


def _is_waiting(row: JudgeRating, judge: JudgeFindings | None) -> bool:
    return bool(row.total) and (judge is None or judge.agreement.value is None)


def _live_agreement(row: JudgeRating, judge: JudgeFindings | None) -> Cell | None:
    """Show the agreement of this moment; its interval follows with the findings."""
    if not _is_waiting(row, judge):
        return None
    title = f"{row.agree:,} of {row.total:,} votes"
    return Cell(percent(row.agree / row.total, 1), f"n {row.total:,}", title, PENDING)


def _live_coverage(row: JudgeRating, judge: JudgeFindings | None) -> Cell | None:
    if judge is not None or row.coverage is None:
        return None
    title = f"{row.answered:,} of {row.asked:,} pairs"
    return Cell(percent(row.coverage / 100), title=title)


def _two_people(pairs: Share, first: Share) -> Cell:
    counted = "times that two people voted on the same pair"
    return share_cell(pairs, counted, _ALONE, decimals=1, is_drawn=True)


def _dollars(value: float) -> str:
    return usd(Decimal(str(value))).removeprefix("$")


def _price_cell(judge: JudgeFindings, value: float | None, why: str) -> Cell:
    if value is None:
        return missing(why)
    total = judge.cost_usd
    title = "" if total is None else f"{_dollars(total)} US$ for all its calls"
    return Cell(_dollars(value), title=title)


def _correct_cell(judge: JudgeFindings) -> Cell:
    why = judge.cost_why or ""
    if judge.cost_per_verdict_usd is not None and judge.agreement.value is None:
        why = "Nobody has voted on what it judged."
    return _price_cell(judge, judge.cost_per_correct_usd, why)


def _seconds_cell(judge: JudgeFindings) -> Cell:
    value = judge.seconds_per_verdict
    if value is None:
        return missing("How long its verdicts took is not known.")
    return Cell(f"{value:,.1f}" if value >= 1 else f"{value:.2f}")


_RANK = Method(
    "how-rank",
    "Rank",
    SafeString(
        "The range of ranks that a judge takes in the middle 95&nbsp;% of 1,000 resamples of the "
        "pairs, by the Bradley-Terry rating."
    ),
)
_TIES = Method(
    "how-ties",
    "Ties",
    SafeString(
        "Judges that share a letter cannot be told apart by the tests below. A judge may have two "
        "letters: <em>a</em> like <em>ab</em> and <em>ab</em> like <em>b</em> does not make "
        "<em>a</em> like <em>b</em>."
    ),
)
_ELO = Method(
    "how-elo",
    "ELO",
    SafeString(
        "For each vote, in the order of the ledger, every judge that said the same wins against "
        "every judge that did not: <code>E = 1 / (1 + 10^((R_w − R_c) / 400))</code>, and "  # noqa: RUF001
        "32 (1 − <code>E</code>) points change hands; all start at 1000. It depends on the order "  # noqa: RUF001
        "of the votes: <em>± by order</em> is the standard deviation over 100 shuffles of the "
        "same votes, beyond 5,000 votes of as many drawn from them. So ELO ranks nobody by "
        "itself; judges are listed by overall agreement."
    ),
)
_RATING = Method(
    "how-rating",
    "Bradley-Terry rating",
    SafeString(
        "What ELO would be without the order: Bradley-Terry of the same games, on the scale of "
        "ELO: 400 points are 10&nbsp;:&nbsp;1, the mean is 1000, and half a win and half a loss "
        "against 1000 are added for each judge. Interval by bootstrap over pairs, since votes on "
        "one pair are not independent."
    ),
)
_OVERALL = Method(
    "how-overall",
    "Overall agreement",
    SafeString(
        "Of the votes on pairs that the judge was asked about, those that chose the same; a "
        "verdict that failed counts against it here, and only here, since who uses the judge gets "
        "nothing there. Judges are listed by it. Interval by Wilson where each pair has one vote "
        "and a prompt of its own, otherwise by prompts: pairs of a prompt share outputs, and "
        "votes on a pair resemble each other. None below 10 prompts. It holds for the people who "
        "voted here. <em>People among themselves</em>: how often two people who voted on the same "
        "pair chose the same; a judge may agree with people more often than that. A "
        "<em>baseline</em> knows nothing, answers in the same orders as the judges and is the "
        "floor: a judge that does not beat it has learned nothing."
    ),
)
_AGREEMENT = Method(
    "how-agreement",
    "Agreement when it answers",
    SafeString(
        "The same of the votes on pairs that the judge has a verdict on. Interval by Wilson where "
        "each pair has one vote, otherwise by bootstrap over pairs, from 10 pairs on."
    ),
)
_COVERAGE = Method(
    "how-coverage",
    "Coverage",
    SafeString("Of the pairs that the judge was asked about, those it has a verdict on."),
)
_POSITION = Method(
    "how-habits",
    "Position bias",
    SafeString(
        "<em>Both orders alike</em>: of the pairs asked in both orders, those with one answer; a "
        "judge that contradicts itself counts as having said tie, or as wrong where that is the "
        "rule of an import. <em>Per answer</em>: each of the two answers set beside all votes on "
        "the pair; how much higher that is than its agreement is what it loses by contradicting "
        "itself. <em>First position</em>: of the answers for a side, those for what was shown "
        "first, or to people on the left; half is fair."
    ),
)
_PRICE = Method(
    "how-price",
    "Price",
    SafeString(
        "What all its calls cost, failed ones too, divided by its verdicts, and that again by its "
        "agreement: the price of a verdict that a person would have given too. Seconds are the "
        "mean over verdicts."
    ),
)

GROUPS: Final[Mapping[str, Sequence[Column]]] = {
    "Standing": (
        Column(
            *("rank", "Rank", "95 % range", _RANK, _rank_cell),
            place=5,
            texts=lambda judge: [judge.rating.ranks("-") or "-"],
        ),
        Column(
            *("ties", "Ties", "letters", _TIES, _ties_cell),
            names=("ties",),
            values=lambda judge, elo: [judge.ties],
            place=6,
            texts=lambda judge: [judge.ties],
        ),
        Column(
            *("elo", "ELO", "± by order", _ELO),
            cell=lambda judge: Cell(),
            live=_live_elo,
            names=("elo", "elo_order_luck"),
            values=lambda judge, elo: [elo, judge.order_luck],
            is_of_parts=False,
        ),
        Column(
            *("rating", "Bradley-Terry", "points", _RATING, _rating_cell),
            names=(
                *("bradley_terry", "bradley_terry_low", "bradley_terry_high"),
                *("bradley_terry_rank", "bradley_terry_best_rank", "bradley_terry_worst_rank"),
            ),
            values=lambda judge, elo: [
                *(judge.rating.value, judge.rating.low, judge.rating.high),
                *(judge.rating.rank, judge.rating.best_rank, judge.rating.worst_rank),
            ],
            place=4,
            texts=lambda judge: [
                _number(value)
                for value in (judge.rating.value, judge.rating.low, judge.rating.high)
            ],
        ),
    ),
    "Agreement with people": (
        Column(
            *("overall", "Overall", "% of votes", _OVERALL),
            cell=lambda judge: share_cell(
                judge.overall, "votes", UNVOTED, decimals=1, is_drawn=True
            ),
            names=_share_names("overall_agreement"),
            values=lambda judge, elo: _share_values(judge.overall),
            live=lambda row, judge: missing(PENDING) if judge and _is_waiting(row, judge) else None,
            people=_two_people,
            place=1,
            texts=lambda judge: _percents(judge.overall),
        ),
        Column(
            *("agreement", "When it answers", "% of votes", _AGREEMENT),
            cell=lambda judge: share_cell(judge.agreement, "votes", UNVOTED, decimals=1),
            names=_share_names("agreement"),
            values=lambda judge, elo: _share_values(judge.agreement),
            live=_live_agreement,
            shares="pairs",
            place=2,
            texts=lambda judge: _percents(judge.agreement),
        ),
        Column(
            *("coverage", "Coverage", "% of pairs", _COVERAGE),
            cell=lambda judge: share_cell(judge.coverage, "pairs", _UNASKED),
            names=_share_names("coverage"),
            values=lambda judge, elo: _share_values(judge.coverage),
            live=_live_coverage,
            place=3,
            texts=lambda judge: _percents(judge.coverage)[:1],
        ),
    ),
    "Position bias": (
        Column(
            *("consistency", "Both orders", "% alike", _POSITION),
            cell=lambda judge: share_cell(judge.consistency, "pairs", _ONE_ORDER),
            names=_share_names("consistency"),
            values=lambda judge, elo: _share_values(judge.consistency),
            without=("answers in both orders", "consistency"),
        ),
        Column(
            *("single", "Per answer", "% of votes", _POSITION),
            cell=lambda judge: share_cell(judge.per_answer, "answers set beside votes", _ONE_ORDER),
            names=_share_names("agreement_per_answer"),
            values=lambda judge, elo: _share_values(judge.per_answer),
            without=("answers in both orders", "consistency"),
        ),
        Column(
            *("first", "First position", "% picked", _POSITION),
            cell=lambda judge: share_cell(judge.first_position, "answers for a side", _NO_SIDE),
            names=_share_names("first_position"),
            values=lambda judge, elo: _share_values(judge.first_position),
            people=lambda pairs, first: share_cell(first, "votes for a side", _NO_SIDED_VOTE),
            shares="first",
            without=("preference for what stands first", "first"),
        ),
    ),
    "Price": (
        Column(
            *("cost", "Verdict", "US$", _PRICE),
            cell=lambda judge: _price_cell(judge, judge.cost_per_verdict_usd, judge.cost_why or ""),
            names=("cost_per_verdict_usd",),
            values=lambda judge, elo: [judge.cost_per_verdict_usd],
            without=("prices", "cost"),
            is_of_parts=False,
        ),
        Column(
            *("correct", "Correct one", "US$", _PRICE, _correct_cell),
            names=("cost_per_correct_usd",),
            values=lambda judge, elo: [judge.cost_per_correct_usd],
            # Unknown before the first vote too, but that is no reason to leave it out.
            without=("prices", "cost"),
            is_of_parts=False,
        ),
        Column(
            *("seconds", "Time", "s a verdict", _PRICE, _seconds_cell),
            names=("seconds_per_verdict",),
            values=lambda judge, elo: [judge.seconds_per_verdict],
            without=("times", "seconds"),
            is_of_parts=False,
        ),
    ),
}
COLUMNS: Final = tuple(column for columns in GROUPS.values() for column in columns)
METHODS: Final = tuple(dict.fromkeys(column.method for column in COLUMNS))
# Files and terminals begin with what judges are listed by.
_IN_FILES: Final = sorted(COLUMNS, key=lambda column: column.figure != "overall")
FILE_COLUMNS: Final = (
    *("judge_id", "name", "kind"),
    *(name for column in _IN_FILES for name in column.names),
)
_IN_TERMINALS: Final = sorted(filter(lambda column: column.place, COLUMNS), key=lambda c: c.place)


def file_row(judge: JudgeFindings, elo: float | None) -> dict[str, Value]:
    """Return a judge's line of a file; `elo` is that of the moment, None of a part of a run."""
    kind = "baseline" if judge.is_baseline else "judge"
    values = (value for column in _IN_FILES for value in column.values(judge, elo))
    return dict(zip(FILE_COLUMNS, (judge.id, judge.name, kind, *values), strict=True))


def people_file_row(pairs: Share, first: Share) -> dict[str, Value]:
    """Return the line of people: how often two agree, and how often they pick what stands left."""
    row: dict[str, Value] = dict.fromkeys(FILE_COLUMNS)
    row |= {"name": "people among themselves", "kind": "people"}
    for column in COLUMNS:
        if column.shares:
            share = {"pairs": pairs, "first": first}[column.shares]
            row |= dict(zip(column.names, _share_values(share), strict=True))
    return row


def terminal_row(judge: JudgeFindings) -> list[str]:
    """Return a judge's line of a terminal: its name, then the columns that have a place there."""
    return [judge.name, *(text for column in _IN_TERMINALS for text in column.texts(judge))]
