"""What a voter is told after a vote: each judge's verdict, and what the vote did to its rating."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest, Problem
from judge_eval.models import Verdict
from judge_eval.pages.pair import picks_of
from judge_eval.selectors import verdicts_on
from voting.choices import WRONG, spoken
from voting.cookies import voter_here
from voting.models import Entry, Item, Queue
from voting.selectors import progress
from voting.services import record_exposure

# A reveal looks for the new ratings this often, ever more slowly: for about half a minute.
LOOKS = 12
DASH = "\N{EN DASH}"
# What stands before the reason of a judge that contradicts itself: the page has a line for that.
_INCONSISTENT = re.compile(r"^Inconsistent: .*? when swapped\.\s*")
# "A" before a word in lower case is an article, unless that word goes on with a sentence about it.
_LABEL = re.compile(
    r"\b(?:(?P<noun>(?i:answer|candidate|drawing|image|option|output|picture|response|svg)) )?"
    r"(?P<label>[AB])\b(?P<article>(?= [a-z])(?! (?:and|but|or|over|than|is|was|has|does|wins|beats"
    r"|shows|gives|uses|looks|captures|contains|provides|because|since|while)\b))?"
)


def as_seen(reason: str, left: str) -> str:
    """Name the outputs in a judge's reason as they stand on the voter's screen.

    Examples
    --------
    >>> as_seen("Output A is sharper than B. A fine fox.", left="B")
    'Right output is sharper than Left. A fine fox.'
    """

    def place(found: re.Match[str]) -> str:
        noun, label = found["noun"], found["label"]
        if label == "A" and found["article"] is not None and not noun:
            return found[0]
        side = "Left" if label == left else "Right"
        return f"{side} {noun.lower()}" if noun else side

    return _LABEL.sub(place, _INCONSISTENT.sub("", reason))


@dataclass(frozen=True)
class JudgeLine:
    """One judge's verdict as the voter who voted with `left` on the left sees it.

    `agrees` is None when the judge gave no verdict.
    """

    verdict: Verdict
    agrees: bool | None
    left: str

    @property
    def name(self) -> str:
        return self.verdict.judge.name

    @property
    def picked(self) -> str:
        if not self.verdict.winner:
            return "no verdict"
        return (
            "no choice" if self.verdict.winner == WRONG else spoken(self.verdict.winner, self.left)
        )

    @property
    def score_left(self) -> float | None:
        return self.verdict.score_a if self.left == "A" else self.verdict.score_b

    @property
    def score_right(self) -> float | None:
        return self.verdict.score_b if self.left == "A" else self.verdict.score_a

    @property
    def verdict_in_words(self) -> str:
        """What it said, with its scores, where it gave any."""
        scores = [self.score_left, self.score_right]
        given = " : ".join(DASH if score is None else str(score) for score in scores)
        said = f"{'' if self.agrees is None else 'said '}{self.picked}"
        return said if scores == [None, None] else f"{said} ({given})"

    @property
    def reason(self) -> str:
        swapped = "B" if self.left == "A" else "A"
        first = self.left if self.verdict.order != Verdict.Order.SWAPPED else swapped
        return as_seen(self.verdict.feedback, first) or self.verdict.error

    @property
    def orders(self) -> list[str]:
        """What was picked as the pair is stored and, where that was asked, swapped."""
        return [spoken(pick.meant, self.left) for pick in picks_of(self.verdict)]

    @property
    def consistency(self) -> str:
        """Whether it said the same in both orders, if it was asked in both."""
        if self.verdict.consistent is None:
            return ""
        if self.verdict.consistent:
            return "The same in both orders."
        counts = {"Tie": "a tie", "no choice": "wrong"}.get(self.picked, self.picked)
        contradiction = f"It contradicted itself, which counts as {counts}"
        if len(self.orders) < 2:
            return f"{contradiction}."
        one, other = self.orders
        return f"{contradiction}: {one} in one order, {other} with the sides swapped."

    @property
    def samples(self) -> str:
        rate = self.verdict.sample_consistency
        return "" if rate is None else f"{100 * rate:.0f}\N{NO-BREAK SPACE}% of its samples agree."

    @property
    def agreed(self) -> tuple[int, int] | None:
        """How often it has agreed with people so far, of how many votes."""
        rating = self.verdict.judge.rating
        votes = rating.agree + rating.disagree
        return (rating.agree, votes) if votes else None


@dataclass(frozen=True)
class Reveal:
    vote: Entry
    item: Item
    chosen: str
    left_generator: str
    right_generator: str
    judges: list[JudgeLine]

    @property
    def headline(self) -> str:
        """Whom the voter agreed with, as the heading of the page and as it is read out."""
        answering = [judge for judge in self.judges if judge.agrees is not None]
        agreeing = sum(judge.agrees is True for judge in answering)
        judges = "judge agrees" if len(answering) == 1 else "judges agree"
        return f"You chose {self.chosen}; {agreeing} of {len(answering)} {judges}"

    @property
    def spoken(self) -> str:
        """All of it in a few words, for a screen reader."""
        picks = [f"{judge.name}: {judge.picked}." for judge in self.judges]
        return " ".join([f"{self.headline.replace('; ', '. ')}.", *picks])

    @property
    def note(self) -> str:
        """Why the vote does not count, where it does not."""
        if self.vote.retracted:
            return "You have taken this vote back."
        if self.vote.unblinded:
            return (
                "You had seen what the judges said before you voted this way, so the vote is left "
                "out of their ratings."
            )
        return ""


def reveal_of(vote: Entry) -> Reveal:
    item = vote.item
    assert item is not None  # only votes on pairs are revealed
    left = "A" if vote.left_side != "B" else "B"
    left_output, right_output = item.seen(left)
    return Reveal(
        vote=vote,
        item=item,
        chosen=spoken(vote.choice, left),
        left_generator=left_output.generator,
        right_generator=right_output.generator,
        judges=[
            JudgeLine(verdict, verdict.winner == vote.choice if verdict.winner else None, left)
            for verdict in verdicts_on(item)
        ],
    )


@never_cache
@require_safe
def reveal(request: HtmxRequest, vote_uid: UUID) -> HttpResponse:
    """What the judges said of a pair, for the voter who has just voted on it."""
    vote = get_object_or_404(
        Entry.objects.select_related("voter", "queue", "item__a__picture", "item__b__picture"),
        uid=vote_uid,
        kind=Entry.Kind.VOTE,
        item__isnull=False,
    )
    voter = voter_here(request, vote.project_id)
    if voter is None or voter.pk != vote.voter_id:
        raise Http404
    _must_be_revealed(vote)
    assert vote.item_id is not None and vote.voter_id is not None  # noqa: PT018
    # Before anything is shown: a vote cast after this moment is not blind.
    record_exposure(vote.voter_id, [vote.item_id], timezone.now())
    look = _next_look(request) if vote.seq is None else {}
    template = "judge_eval/_reveal.html" if request.htmx else "judge_eval/reveal.html"
    return render(request, template, {"reveal": reveal_of(vote), "queue": vote.queue, **look})


def _next_look(request: HtmxRequest) -> dict[str, int | bool]:
    """Return when the page looks again for the ratings that the vote is counted in."""
    asked = request.GET.get("look", "")
    look = int(asked) if asked.isdecimal() and len(asked) < 3 else 0
    if look >= LOOKS:
        return {"is_uncounted": True}
    delay = min(round(150 * 1.6**look), 5000)
    return {"is_uncounted": True, "next_look": look + 1, "delay_ms": delay}


def _must_be_revealed(vote: Entry) -> None:
    queue, voter = vote.queue, vote.voter
    assert queue is not None and voter is not None  # noqa: PT018
    if queue.reveal == Queue.Reveal.NEVER:
        raise Problem(403, "What the judges said is not shown in this study.")
    if queue.reveal == Queue.Reveal.AT_END and progress(voter, queue).left_for_me:
        raise Problem(403, "What the judges said is shown when you have voted on all your pairs.")
