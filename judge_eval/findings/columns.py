"""The columns in which the board, its files and the terminal show the figures of judges.

A column is declared once, in `GROUPS`: the page, CSV and JSON follow, and `terminal_row` takes a
few of them. What it means is told in `_board_method.html`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import attrgetter
from typing import Final

from humanjudge.lib.tables import Cell, missing, percent, span
from humanjudge.lib.text import usd
from judge_eval.findings.model import JudgeFindings
from judge_eval.models import JudgeRating
from judge_eval.stats.estimate import Share

Value = str | float | None

PENDING = "Being computed from the votes; it appears here by itself within seconds."
UNVOTED = "Nobody has voted on what it has a verdict on."
_UNASKED = "It has not been asked about anything that is open for voting."
_ONE_ORDER = "It has not answered about a pair in both orders, or what it answered is not known."
_NO_SIDE = "It has chosen no side, or in which order it saw the pairs is not known."
_ALONE = "Nobody has voted on what somebody else voted on."
_UNFLAGGED = "It has no verdict on anything that people flagged."
_UNPASSED = "It has no verdict on anything that people passed."
_NO_SIDED_VOTE = "Nobody has voted for a side, or where it stood is not known."
_METHODS: Final = {
    "wilson": "Wilson",
    "bootstrap": "bootstrap over comparisons",
    "prompts": "prompts, which are taken as independent",
}
_SHARE_FIELDS: Final = {
    "": "value",
    "_low": "low",
    "_high": "high",
    "_successes": "successes",
    "_n": "trials",
}


@dataclass(frozen=True)
class Column:
    """One column of the board.

    `figure` is its key on the page and `anchor` where it is explained. `cell` is what the page
    shows of a judge's findings. `files` has its columns in files, and which attribute of the
    findings stands there. Columns of one `topic` are left out when no judge has a figure in any.
    """

    figure: str
    title: str
    unit: str
    anchor: str
    cell: Callable[[JudgeFindings], Cell]
    files: Mapping[str, str] = field(default_factory=dict)
    topic: str = ""
    group: str = ""
    is_of_parts: bool = True
    # The kind of items that it is of; empty: of all.
    kind: str = ""


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


def _share_files(file: str, attribute: str) -> dict[str, str]:
    return {f"{file}{end}": f"{attribute}.{part}" for end, part in _SHARE_FIELDS.items()}


def _sentence(words: str | None) -> str:
    words = words or "it is not known"
    return f"{words[:1].upper()}{words[1:]}."


def _rank_cell(judge: JudgeFindings) -> Cell:
    rating = judge.rating
    if rating.best_rank is not None:
        return Cell(rating.ranks())
    return missing(_sentence(rating.why) if rating.value is None else f"No interval: {rating.why}.")


def _ties_cell(judge: JudgeFindings) -> Cell:
    # Nobody is told apart from anybody before a vote, and that would be no finding.
    return Cell(judge.ties) if judge.ties and judge.agreement.trials else missing(UNVOTED)


def _rating_cell(judge: JudgeFindings) -> Cell:
    rating = judge.rating
    if rating.value is None:
        return missing(_sentence(rating.why))
    main = f"{rating.value:.0f}"
    if rating.low is None or rating.high is None:
        why = f"No interval: {rating.why}."
        return Cell(main, title=why, why=why)
    title = f"95 % interval by bootstrap; games on {rating.comparisons:,} comparisons"
    return Cell(main, span(rating.low, rating.high), title)


def _price_cell(judge: JudgeFindings, value: float | None, why: str | None) -> Cell:
    if value is None:
        return missing(why or "")
    price, total = (
        usd(Decimal(str(dollars))).removeprefix("$") for dollars in (value, judge.cost_usd or 0)
    )
    return Cell(price, title=f"{total} US$ for all its calls")


def _correct_cell(judge: JudgeFindings) -> Cell:
    is_priced = judge.cost_per_verdict_usd is not None
    unvoted = "Nobody has voted on what it judged."
    why = unvoted if is_priced and judge.agreement.value is None else judge.cost_why
    return _price_cell(judge, judge.cost_per_correct_usd, why)


def _seconds_cell(judge: JudgeFindings) -> Cell:
    value = judge.seconds_per_verdict
    if value is None:
        return missing("How long its verdicts took is not known.")
    return Cell(f"{value:,.1f}" if value >= 1 else f"{value:.2f}")


_RATING_FIELDS: Final = ("low", "high", "rank", "best_rank", "worst_rank")
GROUPS: Final[Mapping[str, Sequence[Column]]] = {
    "Standing": (
        Column("rank", "Rank", "95 % range", "how-rank", _rank_cell),
        Column("ties", "Ties", "letters", "how-ties", _ties_cell, {"ties": "ties"}),
        Column(
            *("elo", "ELO", "± by order", "how-elo", lambda judge: Cell()),
            {"elo": "", "elo_order_luck": "order_luck"},
            is_of_parts=False,
        ),
        Column(
            *("rating", "Bradley-Terry", "points", "how-rating", _rating_cell),
            {"bradley_terry": "rating.value"}
            | {f"bradley_terry_{name}": f"rating.{name}" for name in _RATING_FIELDS},
        ),
    ),
    "Agreement with people": (
        Column(
            *("overall", "Overall", "% of votes", "how-overall"),
            lambda judge: share_cell(judge.overall, "votes", UNVOTED, decimals=1, is_drawn=True),
            _share_files("overall_agreement", "overall"),
        ),
        Column(
            *("agreement", "When it answers", "% of votes", "how-agreement"),
            lambda judge: share_cell(judge.agreement, "votes", UNVOTED, decimals=1),
            _share_files("agreement", "agreement"),
        ),
        Column(
            *("coverage", "Coverage", "% answered", "how-coverage"),
            lambda judge: share_cell(judge.coverage, "asked about", _UNASKED),
            _share_files("coverage", "coverage"),
        ),
    ),
    "Flags": (
        Column(
            *("sensitivity", "Sensitivity", "% of flags", "how-flags"),
            lambda judge: share_cell(judge.sensitivity, "flags", _UNFLAGGED),
            _share_files("sensitivity", "sensitivity"),
            kind="pass_flag",
        ),
        Column(
            *("specificity", "Specificity", "% of passes", "how-flags"),
            lambda judge: share_cell(judge.specificity, "passes", _UNPASSED),
            _share_files("specificity", "specificity"),
            kind="pass_flag",
        ),
    ),
    "Position bias": (
        Column(
            *("consistency", "Both orders", "% alike", "how-habits"),
            lambda judge: share_cell(judge.consistency, "pairs", _ONE_ORDER),
            _share_files("consistency", "consistency"),
            topic="answers in both orders",
            kind="comparison",
        ),
        Column(
            *("single", "Per answer", "% of votes", "how-habits"),
            lambda judge: share_cell(judge.per_answer, "answers set beside votes", _ONE_ORDER),
            _share_files("agreement_per_answer", "per_answer"),
            topic="answers in both orders",
            kind="comparison",
        ),
        Column(
            *("first", "First position", "% picked", "how-habits"),
            lambda judge: share_cell(judge.first_position, "answers for a side", _NO_SIDE),
            _share_files("first_position", "first_position"),
            topic="preference for what stands first",
            kind="comparison",
        ),
    ),
    "Price": (
        Column(
            *("cost", "Verdict", "US$", "how-price"),
            lambda judge: _price_cell(judge, judge.cost_per_verdict_usd, judge.cost_why),
            {"cost_per_verdict_usd": "cost_per_verdict_usd"},
            topic="prices",
            is_of_parts=False,
        ),
        Column(
            *("correct", "Correct one", "US$", "how-price", _correct_cell),
            {"cost_per_correct_usd": "cost_per_correct_usd"},
            topic="prices",
            is_of_parts=False,
        ),
        Column(
            *("seconds", "Time", "s a verdict", "how-price", _seconds_cell),
            {"seconds_per_verdict": "seconds_per_verdict"},
            topic="times",
            is_of_parts=False,
        ),
    ),
}
COLUMNS: Final = tuple(
    replace(column, group=title) for title, columns in GROUPS.items() for column in columns
)


def columns_of(kind: str) -> list[Column]:
    """Return the columns that items of this kind have."""
    return [column for column in COLUMNS if column.kind in ("", kind)]


# Files begin with what judges are listed by, and end with what only some items have.
_FILES: Final = {
    name: attribute
    for column in sorted(COLUMNS, key=lambda c: (c.figure != "overall", c.kind == "pass_flag"))
    for name, attribute in column.files.items()
}
FILE_COLUMNS: Final = ("judge_id", "name", "kind", *_FILES)


def file_row(judge: JudgeFindings, elo: float | None) -> dict[str, Value]:
    """Return a judge's line of a file; `elo` is that of the moment, None of a part of a run."""
    kind = "baseline" if judge.is_baseline else "judge"
    figures = {name: attrgetter(at)(judge) if at else elo for name, at in _FILES.items()}
    return {"judge_id": judge.id, "name": judge.name, "kind": kind} | figures


def live_cells(row: JudgeRating, judge: JudgeFindings | None) -> dict[str, Cell]:
    """Show what is of this moment: the ELO, and two shares until the findings have them."""
    luck = judge.order_luck if judge and row.total else None
    cells = {"elo": Cell(f"{row.elo:.0f}", "" if luck is None else f"±{luck:.0f}")}
    for figure, successes, trials, counted, decimals in (
        ("agreement", row.agree, row.total, "votes", 1),
        ("coverage", row.answered, row.asked, "asked about", 0),
    ):
        if trials and not judge:
            title = f"{successes:,} of {trials:,} {counted}"
            main = percent(successes / trials, decimals)
            cells[figure] = Cell(main, f"n {trials:,}", title, PENDING)
    return cells


def people_cells(pairs: Share, first: Share) -> dict[str, Cell]:
    """Show how often two people agree, and how often people pick what stands left."""
    two = "times that two people voted on the same"
    return {
        "overall": share_cell(pairs, two, _ALONE, decimals=1, is_drawn=True),
        "first": share_cell(first, "votes for a side", _NO_SIDED_VOTE),
    }


def people_file_row(pairs: Share, first: Share) -> dict[str, Value]:
    row: dict[str, Value] = dict.fromkeys(FILE_COLUMNS)
    row |= {"name": "people among themselves", "kind": "people"}
    for name, share in (("agreement", pairs), ("first_position", first)):
        row |= {f"{name}{end}": getattr(share, part) for end, part in _SHARE_FIELDS.items()}
    return row


def terminal_row(judge: JudgeFindings) -> list[str]:
    """Return a judge's line of a terminal, as `humanjudge.cli` prints it under its heads."""
    rating = judge.rating
    ranks = dict.fromkeys((judge.rank_low, judge.rank_high))
    shares = [end for s in (judge.overall, judge.agreement) for end in (s.value, s.low, s.high)]
    return [
        judge.name,
        *("-" if end is None else f"{100 * end:.1f}" for end in (*shares, judge.coverage.value)),
        *("-" if end is None else f"{end:.0f}" for end in (rating.value, rating.low, rating.high)),
        "-".join(map(str, filter(None, ranks))) or "-",
        judge.ties,
    ]
