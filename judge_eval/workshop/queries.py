"""Where a workshop stands: one sentence, one button that is next, four steps and a picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.urls import reverse

from humanjudge.core.charts.graphs import IntervalRow, Level
from humanjudge.core.charts.plot import Plot, lay_out_plot
from humanjudge.core.tables import percent, percent_span, signed
from humanjudge.core.text import number_of, odds
from judge_eval.models import Judge, Run
from judge_eval.workshop.disagreements import MOST_DISAGREEMENTS
from judge_eval.workshop.findings import TuningFigures, VariantFigure
from judge_eval.workshop.held_out_check import HeldOutCheck
from judge_eval.workshop.services import NextStep
from voting.ballot.tuning import TuningHistory

LOOK, REWORD, CHECK, DECIDE = range(1, 5)
REPORTS_STAY: Final = "report links stay as they were"
COUNTING: Final = "Votes and verdicts are being counted."


@dataclass(frozen=True)
class Action:
    """A button: it goes to a page, or posts to an address."""

    words: str
    address: str
    is_post: bool = False


@dataclass(frozen=True)
class Advice:
    """What is known, in a sentence, and what to do next; `others` are quieter."""

    sentence: str
    stage: int
    action: Action | None = None
    note: str = ""
    others: list[Action] = field(default_factory=list)


@dataclass(frozen=True)
class Contender:
    """A judge of the workshop, and how far it was asked."""

    figure: VariantFigure
    step: NextStep | None
    wanted_verdicts: int = 0
    waiting: int = 0

    @property
    def judge(self) -> Judge:
        return self.figure.judge

    @property
    def value(self) -> float | None:
        return self.figure.overall.value

    @property
    def share(self) -> str:
        return "" if self.value is None else percent(self.value)


@dataclass(frozen=True)
class WorkshopState:
    run: Run
    contenders: list[Contender]
    figures: TuningFigures
    history: TuningHistory
    unseen: int
    # Disagreements of the judge in use that are listed, and those of them that were sorted.
    disagreements: int = 0
    sorted: int = 0

    @property
    def in_use(self) -> Contender | None:
        judge = self.figures.in_use(self.history.in_use)
        return next((c for c in self.contenders if c.judge == judge), None)

    @property
    def tried(self) -> list[Contender]:
        judge_in_use = self.in_use and self.in_use.judge.pk
        return [c for c in self.contenders if c.judge.is_tuned and c.judge.pk != judge_in_use]

    @property
    def candidate(self) -> Contender | None:
        """The best variant that was not dropped: a new one before it has a figure."""
        left = [c for c in self.tried if str(c.judge.pk) not in self.history.dropped]
        unasked = [c for c in left if c.value is None and not c.figure.overall.n]
        return next(iter([*unasked[-1:], *left]), None)

    @property
    def noun(self) -> str:
        return self.run.queue.noun

    @property
    def is_counted(self) -> bool:
        """Whether it is known which judge is in use: it is the best, so that takes figures."""
        is_untuned = (not contender.judge.is_tuned for contender in self.contenders)
        return self.figures.computed is not None or not any(is_untuned)

    def address_of(self, page: str, judge: Judge) -> str:
        return reverse(page, args=[self.run.pk, judge.pk])

    def post(self, words: str, page: str, judge: Judge) -> Action:
        return Action(words, self.address_of(page, judge), is_post=True)


def next_advice(workshop: WorkshopState) -> Advice:
    """Return the first of these that holds."""
    steps: Sequence[Callable[[WorkshopState], Advice | None]] = (
        _decide_check,
        _wait_for_answers,
        _go_on_with_candidate,
        _without_judge,
        _look_at_disagreements,
    )
    advice_steps = (step(workshop) for step in steps)
    return next(filter(None, advice_steps), None) or _reword_judge(workshop)


_REWORD: Final = Action("Try another wording", "#add-title")


def _decide_check(workshop: WorkshopState) -> Advice | None:
    if not workshop.history.undecided:
        return None
    check = HeldOutCheck.model_validate_json(workshop.history.undecided)
    judges = {str(c.judge.pk): c for c in workshop.contenders}
    variant, opponent = judges.get(check.judge), judges.get(check.against)
    if variant is None or opponent is None:
        return None
    keep = workshop.post(f"Keep {variant.judge.name}", "use-judge", variant.judge)
    drop = workshop.post(f"Drop {variant.judge.name}", "drop-variant", variant.judge)
    people = reverse("run-people", args=[workshop.run.pk], fragment="invites")
    action, others = {
        "keep": (keep, [drop]),
        "drop": (drop, [keep]),
        "wait": (Action("Invite people", people), [keep, drop]),
    }[check.verb]
    sentence = check_in_words(check, variant.judge.name, opponent.judge.name, workshop.noun)
    note = ""
    if check.share is not None and variant.value is not None:
        gap = 100 * (variant.value - check.share)
        than = f"{abs(gap):.1f} points {'less' if gap >= 0 else 'more'} than on the tuning half"
        note = f"{percent(check.share)} there: that is {than}"
    return Advice(sentence, DECIDE, action, note, others)


def check_in_words(check: HeldOutCheck, name: str, opponent: str, noun: str) -> str:
    """Say what a look has found, in a sentence that ends with its verb."""
    if check.difference is None:
        return f"{name} and {opponent} have no vote on the same unseen {noun}s yet: not settled."
    points = 100 * check.difference
    direction = "better" if points >= 0 else "worse"
    than = f"{name} is {abs(points):.1f} points {direction} than {opponent}"
    ends = ""
    if check.low is not None and check.high is not None:
        low, high = sorted((check.low, check.high))
        ends = f"{signed(100 * low)} to {signed(100 * high)}; "
    evidence = max(check.evidence, check.evidence_against)
    basis = f"({ends}evidence {odds(evidence)} of {check.needed} : 1)"
    items_text = f"on {number_of(check.items, f'unseen {noun}')}"
    verb = {
        "keep": "keep it",
        "drop": "drop it",
        "wait": f"not settled{_missing_votes(check)}",
    }[check.verb]
    return f"{than} {items_text} {basis}: {verb}."


def _missing_votes(check: HeldOutCheck) -> str:
    if check.votes_missing is None:
        return ", too early to say how many more votes"
    low, high = check.votes_missing
    if high is None:
        return f", at least {low:,} more votes"
    return f", some {low:,} to {high:,} more votes"


def _wait_for_answers(workshop: WorkshopState) -> Advice | None:
    contender = next((c for c in workshop.contenders if c.waiting), None)
    if contender is None:
        return None
    answered = contender.wanted_verdicts - contender.waiting
    done = f"{answered:,} of {number_of(contender.wanted_verdicts, workshop.noun)}"
    note = "this page follows by itself"
    return Advice(f"{contender.judge.name} has answered {done}.", REWORD, note=note)


def _go_on_with_candidate(workshop: WorkshopState) -> Advice | None:
    candidate = workshop.candidate
    if candidate is None:
        return None
    if candidate.step is not None and candidate.step.step != "all":
        return _ask_more(workshop, candidate, candidate.step)
    if candidate.value is None:
        if workshop.figures.behind:
            return Advice(COUNTING, REWORD)
        name = candidate.judge.name
        sentence = f"{name} has no figure yet: nobody has voted on what it answered."
        return Advice(sentence, REWORD, _REWORD)
    in_use = workshop.in_use
    if in_use is None or in_use.value is None:
        use = workshop.post(f"Use {candidate.judge.name}", "use-judge", candidate.judge)
        sentence = (
            f"{candidate.judge.name} agrees with people on {candidate.share} of the half you may "
            "look at. No judge is in use to compare it with."
        )
        return Advice(sentence, DECIDE, use)
    return _hold_against(workshop, candidate, in_use)


def _ask_more(workshop: WorkshopState, candidate: Contender, step: NextStep) -> Advice:
    name, items = candidate.judge.name, number_of(step.items, workshop.noun)
    if step.step == "first":
        sentence, words = f"{name} was not asked yet.", f"Try it on {items}"
    else:
        sentence = f"{name} was tried on a few {workshop.noun}s"
        if candidate.share:
            sentence += f" and agrees with people on {candidate.share}"
        sentence, words = f"{sentence}. That is too few to tell.", f"Ask it about {items} more"
    return Advice(
        sentence, REWORD, workshop.post(words, "ask-variant", candidate.judge), cost_of(step)
    )


def _hold_against(workshop: WorkshopState, variant: Contender, opponent: Contender) -> Advice:
    name, opponent_name = variant.judge.name, opponent.judge.name
    points = 100 * ((variant.value or 0) - (opponent.value or 0))
    half_text = "on the half you may look at"
    shares = f"{variant.share} against {opponent.share}"
    if points <= 0:
        sentence = f"{name} is no better than {opponent_name} {half_text} ({shares})."
        drop = workshop.post(f"Drop {name}", "drop-variant", variant.judge)
        return Advice(sentence, REWORD, _REWORD, others=[drop])
    sentence = (
        f"{name} is ahead of {opponent_name} by {number_of(max(1, round(points)), 'point')} "
        f"{half_text} ({shares}). That can be luck: check it once on the half you have not seen."
    )
    unseen = number_of(workshop.unseen, f"unseen {workshop.noun}")
    if variant.step is not None:
        ask = workshop.post(f"Ask {name} about the unseen half", "ask-variant", variant.judge)
        return Advice(sentence, CHECK, ask, f"{unseen}, {cost_of(variant.step)}; then the check")
    look = f"look {len(workshop.history.looks) + 1}"
    check = workshop.post(f"Check {name} against {opponent_name}", "look-held-out", variant.judge)
    return Advice(sentence, CHECK, check, f"{unseen} · {look} · {REPORTS_STAY}")


def _without_judge(workshop: WorkshopState) -> Advice | None:
    if workshop.in_use is not None:
        return None
    if not workshop.is_counted:
        return Advice(COUNTING, LOOK)
    write = Action("Write a wording", "#add-title")
    return Advice("No judge has answered here yet: write the first wording.", REWORD, write)


def _look_at_disagreements(workshop: WorkshopState) -> Advice | None:
    in_use = workshop.in_use
    if in_use is None or not workshop.disagreements or workshop.sorted:
        return None
    pairs = listed_number(workshop.disagreements, workshop.noun)
    sentence = (
        f"{in_use.judge.name} agrees with people on {in_use.share} of the half you may look at. "
        f"They disagree on {pairs}: who is right?"
    )
    return Advice(sentence, LOOK, Action("Look at them", "#disagreements"))


def _reword_judge(workshop: WorkshopState) -> Advice:
    in_use = workshop.in_use
    name = in_use.judge.name if in_use else "The judge"
    share = in_use.share if in_use else ""
    agrees = f"{name} agrees with people on {share} of the half you may look at. " if share else ""
    sorting = ""
    if workshop.disagreements:
        pairs = listed_number(workshop.disagreements, workshop.noun)
        sorting = f"You sorted {workshop.sorted} of {pairs} on which they disagree. "
    return Advice(f"{agrees}{sorting}Now change its words.", REWORD, _REWORD)


def listed_number(number: int, noun: str) -> str:
    more = " or more" if number == MOST_DISAGREEMENTS else ""
    return f"{number_of(number, noun)}{more}"


def cost_of(step: NextStep) -> str:
    usd = "cost not known" if step.usd is None else f"at most ${step.usd:.4f}"
    return f"{number_of(step.calls, 'call')}, {usd}"


def stages(workshop: WorkshopState, stage: int) -> list[tuple[str, str, bool]]:
    """Return the four steps: name, how far it is, and whether it is the present one."""
    in_use, looks = workshop.in_use, len(workshop.history.looks)
    sorting = f"{workshop.sorted} of {number_of(workshop.disagreements, 'disagreement')} sorted"
    if not workshop.disagreements:
        sorting = "no disagreement"
    tuned = sum(c.judge.is_tuned for c in workshop.contenders)
    variants = f"{number_of(tuned, 'variant')} tried"
    decided = f"{in_use.judge.name} is in use" if in_use else "no judge in use"
    texts = (
        ("Look", sorting),
        ("Reword", variants),
        ("Check once", f"{number_of(looks, 'look')} so far"),
        ("Keep or drop", decided),
    )
    return [(name, text, number == stage) for number, (name, text) in enumerate(texts, 1)]


def picture(workshop: WorkshopState) -> Plot | None:
    """Draw variants and the judge in use on one axis, people among themselves shaded."""
    in_use, first = workshop.in_use, workshop.candidate or workshop.in_use
    rows = []
    for contender in workshop.contenders:
        share = contender.figure.overall
        if share.value is None:
            continue
        note = _difference_note(workshop, contender, in_use, share.interval)
        is_first = contender is first or (first is not None and contender.judge == first.judge)
        rows.append(
            IntervalRow(
                contender.judge.name, share.value, share.interval, beats_floor=is_first, note=note
            )
        )
    levels, computed = list[Level](), workshop.figures.computed
    among = computed.among_people.pairs if computed else None
    if among and among.value is not None:
        levels.append(Level("people among themselves", among.value, among.interval, "people"))
    return lay_out_plot(rows, levels, title="Agreement with people on the tuning half")


def _difference_note(
    workshop: WorkshopState,
    contender: Contender,
    in_use: Contender | None,
    ends: tuple[float, float] | None,
) -> str:
    if in_use is None:
        return ""
    if contender.judge == in_use.judge:
        return f"{percent_span(*ends)}, in use" if ends else "in use"
    value, low, high = workshop.figures.difference(contender.judge, in_use.judge)
    if value is None:
        return ""
    interval = ""
    if low is not None and high is not None:
        interval = f" ({signed(100 * low, 0)} to {signed(100 * high, 0)})"
    return f"{signed(100 * value, 0)}{interval}"
