"""The columns in which the board, its files and the terminal show the figures of judges.

A column is declared once, in `MAIN_COLUMNS` or `FURTHER_COLUMNS`: the page, CSV and JSON
follow, and `terminal_row` takes a few of them. How each is computed is told in
`_board_method.html`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import attrgetter
from typing import Final, Literal, TypedDict

from humanjudge.core.tables import DASH, Cell, missing, percent, percent_span, span
from humanjudge.core.text import fixed, listed, odds, usd
from judge_eval.board.model import JudgeFindings, RunFindings
from judge_eval.board.ranking import IN_FILE, Elo, elo_of
from judge_eval.stats.elo import BASELINE
from judge_eval.stats.estimate import LEADS, Share
from voting.items.kinds import Figure

Value = str | float | None

# The words on a board name a coverage below this too.
NAMED_COVERAGE: Final = 0.95
# Longer names of those that a judge beats are a number.
LONGEST: Final = 28
PENDING = "Being computed from the votes; it appears here by itself within seconds."
UNVOTED = "Nobody has voted on what it has a verdict on."
_FEW_PEOPLE = "It takes 5 people, 10 prompts, and votes that it is right and wrong about."
_NO_VALUE = "No interval: it has changed so much on the way that no value fits all of it."
_UNASKED = "It has not been asked about anything that is open for voting."
_ONE_ORDER = "It has not answered about a pair in both orders, or what it answered is not known."
_NO_SIDE = "It has chosen no side, or in which order it saw the pairs is not known."
_ALONE = "Nobody has voted on what somebody else voted on."
_UNCOMPARED = "It takes 3 items that both rated, and more than one rating of each."
_UNFLAGGED = "It has no verdict on anything that people flagged."
_UNPASSED = "It has no verdict on anything that people passed."
_NO_SIDED_VOTE = "Nobody has voted for a side, or where it stood is not known."
_METHODS: Final = {
    "wilson": "Wilson",
    "prompts": "prompts, which are taken as independent",
}
_SHARE_FIELDS: Final = {
    "": "value",
    "_low": "low",
    "_high": "high",
    "_successes": "successes",
    "_n": "n",
}


@dataclass(frozen=True)
class BoardColumn:
    """One column of the board.

    `figure` is its key on the page. `about` says what it is, in a sentence or two that stand beside
    its head, and `anchor` where its method stands. `cell` is what the page shows of a judge's
    findings, and `best` by which attribute of theirs it is sorted; a minus: the least comes first.
    `files` has its columns in files, and which attribute stands there. Columns of one `topic`,
    which verdicts from elsewhere may leave unknown, are left out when no judge has a figure in any,
    and the page says so; one that `is_optional` is left out without a word.
    """

    figure: str
    title: str
    unit: str
    about: str
    anchor: str
    cell: Callable[[JudgeFindings], Cell]
    best: str
    files: Mapping[str, str] = field(default_factory=dict)
    topic: str = ""
    is_optional: bool = False
    is_of_parts: bool = True
    # The figures of some kinds of items that it is one of; empty: it stands on every board.
    kind_figure: Figure | Literal[""] = ""

    @property
    def label(self) -> str:
        """What it is called where its head does not stand above it."""
        return f"{self.unit[:1].upper()}{self.unit[1:]}" if self.is_of_calls else self.title

    @property
    def is_of_calls(self) -> bool:
        return self.topic in ("prices", "times")

    def order(self, judge: JudgeFindings) -> float | None:
        """Return how far a judge stands in front; None where nothing is known."""
        value: float | None = attrgetter(self.best.removeprefix("-"))(judge)
        return None if value is None else -value if self.best.startswith("-") else value


def share_cell(share: Share, counted: str, nothing: str, *, decimals: int = 0) -> Cell:
    """Show a share; `counted` is what it was counted of, `nothing` says that there was none."""
    if share.value is None:
        return missing(nothing)
    main = percent(share.value, decimals)
    title = f"{share.successes:,} of {share.n:,} {counted}"
    if isinstance(share.successes, float):  # by the order of ratings
        title = f"Mean over {share.n:,} prompts"
    if share.low is None or share.high is None:
        reason = f"No interval: {share.why}."
        return Cell(main, "", f"{title}. {reason}", reason)
    interval = percent_span(share.low, share.high)
    return Cell(main, interval, f"{title}; 95 % interval by {_METHODS[share.method or 'wilson']}")


def _share_files(file: str, attribute: str) -> dict[str, str]:
    return {f"{file}{end}": f"{attribute}.{part}" for end, part in _SHARE_FIELDS.items()}


class _ShareOptions(TypedDict):
    cell: Callable[[JudgeFindings], Cell]
    best: str
    files: dict[str, str]


def _share(
    attribute: str, counted: str, nothing: str, *, file: str = "", decimals: int = 0
) -> _ShareOptions:
    def cell(judge: JudgeFindings) -> Cell:
        return share_cell(attrgetter(attribute)(judge), counted, nothing, decimals=decimals)

    files = _share_files(file or attribute, attribute)
    return {"cell": cell, "best": f"{attribute}.value", "files": files}


def _sentence(words: str | None) -> str:
    words = words or "it is not known"
    return f"{words[:1].upper()}{words[1:]}."


def _overall_cell(judge: JudgeFindings) -> Cell:
    cell, coverage = share_cell(judge.overall, "votes", UNVOTED), judge.coverage.value
    if coverage is None or coverage >= NAMED_COVERAGE:
        return cell
    unanswered = f"{percent(1 - coverage)} unanswered"
    return replace(cell, small=" · ".join(filter(None, [cell.small, unanswered])))


def _overall_within(judge: JudgeFindings, low: float | None, high: float | None) -> Cell:
    if judge.overall.value is None:
        return missing(UNVOTED)
    main = percent(judge.overall.value, 1)
    if low is None or high is None:
        return Cell(main, reason=_sentence(judge.always_why) if judge.always_why else _NO_VALUE)
    return Cell(main, percent_span(low, high))


def _two_way_cell(judge: JudgeFindings) -> Cell:
    low, high = judge.two_way_low, judge.two_way_high
    return missing(_FEW_PEOPLE) if low is None else _overall_within(judge, low, high)


def _rating_column(name: str, title: str, unit: str, about: str) -> BoardColumn:
    def cell(judge: JudgeFindings) -> Cell:
        value: float | None = getattr(judge.of_ratings, name)
        return missing(_UNCOMPARED) if value is None else Cell(f"{value + 0:.2f}")

    attribute = f"of_ratings.{name}"
    return BoardColumn(name, title, unit, about, "how-order", cell, attribute, {name: attribute})


def _rank_cell(judge: JudgeFindings) -> Cell:
    ranks = [rank for rank in (judge.rank_low, judge.rank_high) if rank is not None]
    # Nobody is told apart from anybody before a vote, and that would be no finding.
    if not ranks or not judge.overall.n:
        return Cell() if judge.is_baseline else missing(UNVOTED)
    return Cell(DASH.join(map(str, dict.fromkeys(ranks))))


def beats_cell(figures: RunFindings, place: int) -> Cell:
    """Name the judges that the one at this place beats, and say how it stands to the floor.

    Of many, or of long names, only the number is given.
    """
    judge, beats = figures.judges[place], figures.claims.beats
    if judge.is_baseline:
        return Cell()
    speaking = [n for n, other_judge in enumerate(figures.judges) if not other_judge.is_silent]
    others = [n for n in speaking if not figures.judges[n].is_baseline and n != place]
    beaten = [figures.judges[n].name for n in others if beats[place][n]]
    words = (
        [f"{len(beaten)} of {len(others)}"] if len(", ".join(beaten)) > LONGEST else list(beaten)
    )
    if len(beaten) == len(others) > 1:
        words = ["all others"]
    if judge.beats_floor:
        words.append("the floor")
    small, title = _below_floor(figures, place)
    rivals = zip(beats[place], figures.claims.by_one[place], strict=True)
    if any(is_beaten and is_by_one for is_beaten, is_by_one in rivals):
        small = "; ".join(filter(None, ["by one voter's votes alone", small]))
    return Cell(", ".join(words) or DASH, small, title, css="beaten")


def _below_floor(figures: RunFindings, place: int) -> tuple[str, str]:
    """Name the baselines that a judge is worse than, or is farthest from beating, and how far."""
    judges, claims = figures.judges, figures.claims
    if judges[place].beats_floor is not False or not judges[place].overall.n:
        return "", ""
    floor = [n for n, is_held in enumerate(claims.floor[place]) if is_held]
    if worse := [judges[n].name for n in floor if claims.beats[n][place]]:
        return f"worse than {listed(worse, 'or')}", ""
    evidence = [pair_evidence or 1.0 for pair_evidence in claims.evidence[place]]
    weakest = min(floor, key=lambda n: evidence[n])
    needs = f"evidence {odds(evidence[weakest])}; needs {odds(claims.floor_threshold or 1.0)}"
    leads = (claims.evidence_now[place][weakest] or 1.0) >= LEADS
    phrase = "leads {}, not settled" if leads else "not shown to be better than {}"
    return phrase.format(judges[weakest].name), needs


def _rating_cell(judge: JudgeFindings) -> Cell:
    rating = judge.rating
    if rating.value is None:
        return missing(_sentence(rating.why))
    main = f"{rating.value:.0f}"
    if rating.low is None or rating.high is None:
        reason = f"No interval: {rating.why}."
        return Cell(main, title=reason, reason=reason)
    title = f"95 % interval by bootstrap; games on {rating.n:,} comparisons"
    return Cell(main, span(rating.low, rating.high), title)


def _price_cell(judge: JudgeFindings, value: float | None, reason: str | None) -> Cell:
    if value is None:
        return missing(reason or "")
    price, total = (
        usd(Decimal(str(dollars))).removeprefix("$") for dollars in (value, judge.cost_usd or 0)
    )
    return Cell(price, title=f"{total} US$ for all its calls")


def _correct_cell(judge: JudgeFindings) -> Cell:
    is_priced = judge.cost_per_verdict_usd is not None
    unvoted = "Nobody has voted on what it judged."
    reason = unvoted if is_priced and judge.agreement.value is None else judge.cost_why
    return _price_cell(judge, judge.cost_per_correct_usd, reason)


def _seconds_cell(judge: JudgeFindings) -> Cell:
    value = judge.seconds_per_verdict
    if value is None:
        return missing("How long its verdicts took is not known.")
    return Cell(f"{value:,.1f}" if value >= 1 else f"{value:.2f}")


# In place of the first column, where judges are ranked by the order of ratings.
BY_ORDER: Final = BoardColumn(
    figure="overall",
    title="Agreement",
    unit="% in people's order",
    about=(
        "Of two outputs that one person rated differently, how often the judge rates the same one "
        "higher; equal ratings count half, no verdict counts nothing. Whoever always gives the "
        "same rating has 50 %. Judges are listed by it."
    ),
    anchor="how-order",
    cell=_overall_cell,
    best="overall.value",
)
_MEAN: Final = "The mean over people, each compared on all items that both rated."
# What is shown of ratings beside their order.
OF_RATINGS: Final = (
    BoardColumn(
        figure="exact_agreement",
        title="Same rating",
        unit="% of votes",
        about=(
            "Of the votes on what it was asked about, those with the same rating. A judge that "
            "always gives the most frequent rating has much of it."
        ),
        anchor="how-order",
        **_share("of_ratings.exact", "votes", UNVOTED, file="exact_agreement"),
    ),
    _rating_column("quadratic_kappa", "Kappa", "quadratic", f"How close ratings are. {_MEAN}"),
    _rating_column("spearman", "Spearman", "rank correlation", _MEAN),
    _rating_column("kendall", "Kendall", "tau-b", _MEAN),
    _rating_column(
        "mean_difference", "Difference", "mean", "How much higher it rates than people."
    ),
)
_RATING_FIELDS: Final = ("low", "high", "rank", "best_rank", "worst_rank")
# What stands on the board: the judges' names and these.
MAIN_COLUMNS: Final = (
    BoardColumn(
        figure="overall",
        title="Agreement",
        unit="% of votes, interval",
        about=(
            "Of the votes on what the judge was asked about, those that chose the same. No verdict "
            "counts as wrong here. Judges are listed by it."
        ),
        anchor="how-overall",
        cell=_overall_cell,
        best="overall.value",
        files=_share_files("overall_agreement", "overall"),
    ),
    BoardColumn(
        figure="rank",
        title="Rank",
        unit="range",
        about=(
            "1 and the number of judges that beat it, up to all less those it beats. The best "
            "judge has rank 1 alone."
        ),
        anchor="how-claims",
        cell=_rank_cell,
        best="-rank_high",
        files={"rank_low": "rank_low", "rank_high": "rank_high"},
    ),
    BoardColumn(
        figure="beats",
        title="Beats",
        unit="by evidence",
        about=(
            "Judges, and the floor of all baselines, for which the evidence that this one is "
            "better has reached the threshold; below it the baseline that it is farthest from "
            "beating. It may be looked at after every vote."
        ),
        anchor="how-claims",
        cell=lambda judge: Cell(),
        best="-rank_high",
        files={"beats_floor": "beats_floor"},
    ),
    BoardColumn(
        figure="elo",
        title="ELO",
        unit="live",
        about=(
            "The rating of the judges among themselves after the last vote. It depends on the "
            "order of the votes: below it is where 90 % of other orders put it. It ranks nobody."
        ),
        anchor="how-elo",
        cell=lambda judge: Cell(),
        best="elo_other_orders_high",
        files={
            "elo": "",
            "elo_other_orders_low": "elo_other_orders_low",
            "elo_other_orders_high": "elo_other_orders_high",
            "elo_note": "",
        },
        is_of_parts=False,
    ),
    BoardColumn(
        figure="correct",
        title="Cost",
        unit="US$ per right verdict",
        about="What all its calls cost, for each verdict that a person would have given too.",
        anchor="how-price",
        cell=_correct_cell,
        best="-cost_per_correct_usd",
        files={"cost_per_correct_usd": "cost_per_correct_usd"},
        topic="prices",
        is_of_parts=False,
    ),
    BoardColumn(
        figure="seconds",
        title="Time",
        unit="seconds per verdict",
        about="How long a verdict takes, on average.",
        anchor="how-price",
        cell=_seconds_cell,
        best="-seconds_per_verdict",
        files={"seconds_per_verdict": "seconds_per_verdict"},
        topic="times",
        is_of_parts=False,
    ),
)
# What stands folded below them.
FURTHER_COLUMNS: Final = (
    BoardColumn(
        figure="always",
        title="Agreement",
        unit="%, always valid",
        about=(
            "The interval that is valid even if you look every day: the thin line of the picture."
        ),
        anchor="how-overall",
        cell=lambda judge: _overall_within(judge, judge.always_low, judge.always_high),
        best="overall.value",
        files={
            f"overall_agreement_always_{end}": f"always_{end}" for end in ("low", "high", "why")
        },
    ),
    BoardColumn(
        figure="two-way",
        title="Agreement",
        unit="%, other people",
        about="The interval for other prompts and other people than those who voted.",
        anchor="how-overall",
        cell=_two_way_cell,
        best="overall.value",
        files={f"overall_agreement_two_way_{end}": f"two_way_{end}" for end in ("low", "high")},
        is_optional=True,
    ),
    BoardColumn(
        figure="agreement",
        title="When it answers",
        unit="% of votes",
        about="Of the votes on what it has a verdict on, those that chose the same.",
        anchor="how-agreement",
        **_share("agreement", "votes", UNVOTED, decimals=1),
    ),
    BoardColumn(
        figure="coverage",
        title="Coverage",
        unit="% answered",
        about="Of what it was asked about, what it has a verdict on.",
        anchor="how-agreement",
        **_share("coverage", "asked about", _UNASKED),
    ),
    BoardColumn(
        figure="sensitivity",
        title="Sensitivity",
        unit="% of flags",
        about=(
            "Of the votes that flag an item, those on which it flags too: how many faults it finds."
        ),
        anchor="how-flags",
        **_share("sensitivity", "flags", _UNFLAGGED),
        kind_figure="flags",
    ),
    BoardColumn(
        figure="specificity",
        title="Specificity",
        unit="% of passes",
        about=(
            "Of the votes that pass an item, those on which it passes too: how rarely it raises a "
            "false alarm."
        ),
        anchor="how-flags",
        **_share("specificity", "passes", _UNPASSED),
        kind_figure="flags",
    ),
    BoardColumn(
        figure="consistency",
        title="Consistency",
        unit="% alike in both orders",
        about="Of the pairs asked in both orders, those with one answer.",
        anchor="how-position",
        **_share("consistency", "pairs", _ONE_ORDER),
        topic="answers in both orders",
        kind_figure="orders",
    ),
    BoardColumn(
        figure="single",
        title="Per answer",
        unit="% of votes",
        about=(
            "Agreement of each single answer. How much higher it is than the agreement is what "
            "a judge loses by answering otherwise with the sides swapped."
        ),
        anchor="how-position",
        **_share("per_answer", "answers set beside votes", _ONE_ORDER, file="agreement_per_answer"),
        topic="answers in both orders",
        kind_figure="orders",
    ),
    BoardColumn(
        figure="first",
        title="Position bias",
        unit="% picked first",
        about=(
            "Of the answers for a side, those for what was shown first, or to people on the left. "
            "Half is fair."
        ),
        anchor="how-position",
        **_share("first_position", "answers for a side", _NO_SIDE),
        topic="preference for what stands first",
        kind_figure="orders",
    ),
    BoardColumn(
        figure="rating",
        title="Bradley-Terry",
        unit="points",
        about=(
            "What ELO would be without the order of the votes. Copies of a judge on the board "
            "move it."
        ),
        anchor="how-elo",
        cell=_rating_cell,
        best="rating.value",
        files={"bradley_terry": "rating.value"}
        | {f"bradley_terry_{name}": f"rating.{name}" for name in _RATING_FIELDS},
    ),
    BoardColumn(
        figure="ties",
        title="Letters",
        unit="not told apart",
        about="Judges share a letter where neither beats the other; the best judge shares none.",
        anchor="how-claims",
        cell=lambda judge: (
            Cell(judge.ties) if judge.ties or judge.is_baseline else missing(UNVOTED)
        ),
        best="-rank_high",
        files={"ties": "ties"},
    ),
    BoardColumn(
        figure="cost",
        title="Cost",
        unit="US$ per verdict",
        about="What all its calls cost, failed ones too, for each verdict.",
        anchor="how-price",
        cell=lambda judge: _price_cell(judge, judge.cost_per_verdict_usd, judge.cost_why),
        best="-cost_per_verdict_usd",
        files={"cost_per_verdict_usd": "cost_per_verdict_usd"},
        topic="prices",
        is_of_parts=False,
    ),
    BoardColumn(
        figure="itself",
        title="Self-agreement",
        unit="% alike when asked again",
        about=(
            "Of the same question asked again in the same order: how often two answers are equal, "
            "as a mean over items."
        ),
        anchor="how-itself",
        **_share("self_agreement", "items", "It was not asked the same again."),
        is_optional=True,
    ),
    *OF_RATINGS,
)
COLUMNS: Final = (*MAIN_COLUMNS, *FURTHER_COLUMNS)


# Files begin with what judges are listed by, and end with what only some items have.
_FILES: Final = {
    name: attribute
    for column in sorted(
        COLUMNS,
        key=lambda c: (c.figure != "overall", c in OF_RATINGS, c.kind_figure == "flags"),
    )
    for name, attribute in column.files.items()
}
FILE_COLUMNS: Final = ("judge_id", "name", "kind", *_FILES)


def file_row(judge: JudgeFindings, elo: Elo) -> dict[str, Value]:
    """Return a judge's line of a file; `elo` is that of the moment."""
    kind = "baseline" if judge.is_baseline else "judge"
    live = {"elo": elo.value, "elo_note": elo.note}
    figures = {
        name: attrgetter(attribute)(judge) if attribute else live[name]
        for name, attribute in _FILES.items()
    }
    return {"judge_id": judge.id, "name": judge.name, "kind": kind} | figures


def file_rows(findings: RunFindings, elo: Mapping[str, float]) -> list[dict[str, Value]]:
    """Return the lines of a file of judges, and of people among themselves; a part has no `elo`."""
    judges = [
        file_row(judge, elo_of(elo.get(judge.id), findings.unrated.get(judge.id, ""), judge))
        for judge in findings.best_first()
    ]
    return [*judges, people_file_row(findings.among_people.pairs, findings.people_first_position)]


def elo_cell(elo: Elo) -> Cell:
    """Show an ELO with its range in other orders; of a baseline beside judges, nothing."""
    if elo.value is None:
        return Cell() if elo.note == BASELINE else missing(_sentence(elo.note))
    main = f"{elo.value:,.0f}"
    if elo.low is None or elo.high is None:
        return Cell(main)
    low, high = f"{elo.low:,.0f}", f"{elo.high:,.0f}"
    orders = f"in other orders {low} to {high}"
    if low == high == main:
        orders = "the same in other orders"
    if elo.note == IN_FILE:
        return missing(_sentence(elo.note))
    if not elo.note:
        return Cell(main, orders)
    return Cell(main, f"{orders}, unusual order", reason=_sentence(elo.note))


def people_cells(pairs: Share, first: Share) -> dict[str, Cell]:
    """Show how often two people agree, and how often people pick what stands left."""
    two = "times that two people voted on the same"
    return {
        "overall": share_cell(pairs, two, _ALONE),
        "always": share_cell(pairs, two, _ALONE, decimals=1),
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
        *("-" if end is None else fixed(100 * end, 1) for end in (*shares, judge.coverage.value)),
        *("-" if end is None else f"{end:.0f}" for end in (rating.value, rating.low, rating.high)),
        "-".join(map(str, filter(None, ranks))) or "-",
        judge.ties or "-",
    ]
