"""What a voter is told after a vote: each judge's verdict, and how often it has agreed so far."""

import re
from collections.abc import Sequence
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.tables import percent
from judge_eval.board.views.pairs import picks_of
from judge_eval.models import Verdict
from judge_eval.runs.queries import verdicts_on
from judge_eval.runs.run_page import scores_in_words
from voting.ballot.queries import progress
from voting.ballot.questions import own_vote_in_words
from voting.ballot.services import record_exposure
from voting.ballot.tuning import kept_back
from voting.items.choices import WRONG
from voting.items.kinds import COMPARISON, kind_of
from voting.models import Entry, Item, Queue
from voting.people.voters import voter_here

# A reveal looks for the new ratings this often, ever more slowly: for about half a minute.
LOOKS = 12
NO_VERDICT = "no verdict"
# Under which output the reason of a judge stands, by what the judge picked.
SIDES = {"Left": "left", "Right": "right"}
RETRACTED = "You have taken this vote back."
UNBLINDED = (
    "You had seen what the judges said before you voted this way, so the vote is left out of "
    "their ratings."
)
# What stands before the reason of a judge that contradicts itself: the page has a line for that.
_INCONSISTENT = re.compile(r"^Inconsistent: .*? when swapped\.\s*")
# "A" before a word in lower case is an article, unless that word goes on with a sentence about it.
_LABEL = re.compile(
    r"\b(?:(?P<noun>(?i:answer|candidate|drawing|image|option|output|picture|response|svg)) )?"
    r"(?P<label>[AB])\b(?P<article>(?= [a-z])(?! (?:and|but|or|over|than|is|was|has|does|wins|beats"
    r"|shows|gives|uses|looks|captures|contains|provides|because|since|while)\b))?"
)


def reason_on_screen(reason: str, left: str) -> str:
    """Name the outputs in a judge's reason as they stand on the voter's screen.

    Examples
    --------
    >>> reason_on_screen("Output A is sharper than B. A fine fox.", left="B")
    'Right output is sharper than Left. A fine fox.'
    """

    def place(match: re.Match[str]) -> str:
        noun, label = match["noun"], match["label"]
        if label == "A" and match["article"] is not None and not noun:
            return match[0]
        side = "Left" if label == left else "Right"
        return f"{side} {noun.lower()}" if noun else side

    return _LABEL.sub(place, _INCONSISTENT.sub("", reason))


def judge_lines(vote: Entry, item: Item) -> list[Context]:
    """Return what each judge said of an item, as it stood on the screen of who voted."""
    left = "A" if vote.left_side != "B" else "B"
    is_single = item.b_id is None
    return [
        _judge_line(
            verdict,
            vote.choice,
            _single_answer(verdict, vote) if is_single else _pair_answer(verdict, left),
        )
        for verdict in verdicts_on(item)
    ]


def _judge_line(verdict: Verdict, vote_choice: str, answer: Context) -> Context:
    rate = verdict.sample_consistency
    sentences = (
        answer["reason"],
        answer.get("consistency"),
        "" if rate is None else f"{percent(rate)} of its samples agree.",
    )
    return answer | {
        "judge": verdict.judge,
        # None where there is no verdict.
        "agrees": verdict.winner == vote_choice if verdict.winner else None,
        "why": " ".join(filter(None, sentences)),
    }


def _single_answer(verdict: Verdict, vote: Entry) -> Context:
    answer = verdict.winner and kind_of(vote.queue).spoken(verdict.winner, "")
    score = "" if verdict.score_a is None else f" ({verdict.score_a:g})"
    return {
        "picked": answer or NO_VERDICT,
        "in_words": f"said {answer}" if answer else NO_VERDICT,
        "scores": score if answer else "",
        "reason": verdict.feedback or verdict.error,
    }


def _pair_answer(verdict: Verdict, left: str) -> Context:
    without_choice = {"": NO_VERDICT, WRONG: "no choice"}.get(verdict.winner)
    picked = without_choice or COMPARISON.spoken(verdict.winner, left)
    scores = (verdict.score_a, verdict.score_b)
    numbers = scores_in_words(*scores if left == "A" else reversed(scores))
    # A judge that saw the pair the other way round calls A what is B.
    left_was_a = (left == "A") != (verdict.order == Verdict.Order.SWAPPED)
    return {
        "picked": picked,
        "in_words": ("said " if verdict.winner else "") + picked,
        "scores": numbers and f" ({numbers})",
        "reason": reason_on_screen(verdict.feedback, "A" if left_was_a else "B") or verdict.error,
        "consistency": _consistency(verdict, picked, left),
    }


def _consistency(verdict: Verdict, picked: str, left: str) -> str:
    # A coin and a place have no preference that they could contradict.
    if verdict.consistent is None or verdict.judge.is_baseline:
        return ""
    if verdict.consistent:
        return "The same in both orders."
    counts = {"Tie": "a tie", "no choice": "wrong"}.get(picked, picked)
    contradiction = f"It contradicted itself, which counts as {counts}"
    orders = [COMPARISON.spoken(pick.meant, left) for pick in picks_of(verdict)]
    if len(orders) < 2:
        return f"{contradiction}."
    return f"{contradiction}: {orders[0]} in one order, {orders[1]} with the sides swapped."


def _makers(item: Item, left: str) -> list[tuple[str, str]]:
    """Return who wrote what was voted on, with the side it stood on."""
    if item.b_id is None:
        return [("", item.a.generator)] if item.a.generator else []
    left_output, right_output = item.displayed(left)
    return [("left", left_output.generator), ("right", right_output.generator)]


def _by_side(lines: Sequence[Context]) -> list[tuple[str, list[Context]]]:
    """Group judges by the side they chose; those that chose neither come last."""
    groups: dict[str, list[Context]] = {"left": [], "right": [], "": []}
    for line in lines:
        groups[SIDES.get(line["picked"], "")].append(line)
    return [(side, group) for side, group in groups.items() if group]


def _agreement_in_words(lines: Sequence[Context], noun: str) -> str:
    """Say how many of those with a verdict agree; nothing where none has one."""
    answers = [line["agrees"] for line in lines if line["agrees"] is not None]
    agree = f"{noun} agrees" if len(answers) == 1 else f"{noun}s agree"
    return f"{sum(answers)} of {len(answers)} {agree}" if answers else ""


@never_cache
@require_safe
def reveal(request: HtmxRequest, vote_uid: UUID) -> HttpResponse:
    votes = Entry.objects.filter(kind=Entry.Kind.VOTE, item__isnull=False)
    vote = get_object_or_404(
        votes.select_related("voter", "queue", "item__a__picture", "item__b__picture"), uid=vote_uid
    )
    voter, queue, item = voter_here(request, vote.project_id), vote.queue, vote.item
    if voter is None or voter.pk != vote.voter_id:
        raise Http404
    assert queue is not None and item is not None  # noqa: PT018  a vote on a pair has both
    if queue.reveal == Queue.Reveal.NEVER:
        raise Problem(403, "What the judges said is not shown in this study.")
    if queue.reveal == Queue.Reveal.AT_END and progress(voter, queue).left_for_me:
        voted = f"when you have voted on all your {queue.noun}s"
        raise Problem(403, f"What the judges said is shown {voted}.")
    # Before anything is shown: a vote cast after this moment is not blind.
    record_exposure(voter.pk, [item.pk], timezone.now())
    left = "A" if vote.left_side != "B" else "B"
    all_lines = [] if kept_back([item.pk]) else judge_lines(vote, item)
    baselines = [line for line in all_lines if line["judge"].is_baseline]
    judges = [line for line in all_lines if not line["judge"].is_baseline]
    lines, headline = judges or baselines, own_vote_in_words(vote)
    if agree := _agreement_in_words(lines, "judge" if judges else "baseline"):
        headline = f"{headline} · {agree}"
    picks = [f"{line['judge'].name}: {line['picked']}." for line in lines]
    requested = request.GET.get("look", "")
    look = int(requested) if requested.isdecimal() and len(requested) < 3 else 0
    context = {
        "vote": vote,
        "item": item,
        "queue": queue,
        "headline": headline,
        # All of it in a few words, for a screen reader.
        "spoken": " ".join([f"{headline.replace(' ·', '.')}.", *picks]),
        "makers": _makers(item, left),
        "sides": _by_side(lines),
        # Folded, where there are judges.
        "baselines": baselines if judges else [],
        "baselines_agree": _agreement_in_words(baselines, "baseline")
        or f"{len(baselines)} baselines",
        "note": RETRACTED if vote.retracted else UNBLINDED if vote.unblinded else "",
        "next_look": look + 1 if vote.seq is None and look < LOOKS else None,
        "delay_ms": min(round(150 * 1.6**look), 5000),
    }
    template = "judge_eval/board/_reveal.html" if request.htmx else "judge_eval/board/reveal.html"
    return render(request, template, context)
