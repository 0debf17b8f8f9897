"""The pairs of a run as a list, and one of them: its outputs, verdicts, calls and votes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from django.core.paginator import Page
from django.db.models import Prefetch, Q, QuerySet, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.listing import Column, Listing, page_of
from humanjudge.core.tables import DASH, Cell, percent
from humanjudge.core.text import latency, usd
from judge_eval.board.cache import parts_of
from judge_eval.board.filters import Slice
from judge_eval.board.views.findings import DISPUTED, disputed_order, pairs_query
from judge_eval.imports.import_write import CHANGES
from judge_eval.judging.provider_access import NANO
from judge_eval.judging.verdicts import OUTPUT_LENGTH
from judge_eval.models import Call, Run, Verdict
from judge_eval.runs.access import hidden_from, is_voting, refusal
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from judge_eval.runs.queries import verdicts_on
from judge_eval.runs.run_page import find_run, run_page, score_text
from judge_eval.runs.views.run import DONE
from voting.ballot.queries import votes_on_item
from voting.items.choices import LABELS, MILLION, SWAPPED, VOTES_FOR, short_name
from voting.items.conversations import latest
from voting.items.disputes import Vote, majority
from voting.items.kinds import kind_of
from voting.ledger.counts import votes_on
from voting.models import Entry, Item, Queue

PAIRS_PER_PAGE = 30
# Of a prompt in the list.
LETTERS = 140
# How the votes for a choice are filled in the bar of an item.
FILLS = {
    "A": "done",
    "B": "other",
    "tie": "all",
    "both_bad": "bad",
    "pass": "done",
    "flag": "other",
}
# Choices that are the study's own: categories take these in turn, ratings are ever fuller.
OWN_FILLS = ("done", "other", "bad", "all")
ORDERS = {"": "in the order of the run", DISPUTED: "most disputed first"}
SORTED_BY = {"": ("position",), DISPUTED: ("-disagreement", "-differing", "position")}


def _order_and_part(request: HttpRequest, run: Run) -> tuple[str, Slice]:
    order = request.GET.get("sort", "")
    part = Slice.parse(request.GET.get("part", ""), run.queue.noun)
    if order not in ORDERS or part.is_of_votes:
        raise Problem(400, f"sort: {DISPUTED} or nothing; part: tag:… or generator:….")
    return order, part


@dataclass(frozen=True)
class PairLine:
    run: Run
    pair: Item
    query: str
    shows_verdicts: bool
    # On an item whose choices are the study's own.
    votes: Sequence[Vote] = ()

    @property
    def counts_by_choice(self) -> dict[str, int]:
        """The votes by what they say, where the reader may see that."""
        counts = {choice: getattr(self.pair, name) for choice, name in VOTES_FOR.items()}
        if self.votes:
            votes = Counter(choice for choice, _ in self.votes)
            counts = {choice: votes[choice] for choice in self.run.queue.ballot}
        return {choice: n for choice, n in counts.items() if n and self.shows_verdicts}

    def fill_of(self, choice: str) -> tuple[str, str]:
        """Return how the votes for a choice are filled in the bar, and how full."""
        if choice in FILLS:
            return FILLS[choice], "1"
        ballot = self.run.queue.ballot
        place = ballot.index(choice)
        if self.run.queue.kind == Queue.Kind.RATING:
            return "done", f"{(place + 1) / len(ballot):.2f}"
        return OWN_FILLS[place % len(OWN_FILLS)], "1"


def _prompt_cell(line: PairLine) -> Cell:
    pair, noun = line.pair, line.run.queue.noun
    link = reverse("run-pair", args=[line.run.pk, pair.pk]) + line.query
    words = Truncator(latest(pair.a.prompt)).chars(LETTERS)
    return Cell(
        words or f"{noun.capitalize()} {pair.position + 1:,}", css="", href=link, direction="auto"
    )


def _pictures_cell(line: PairLine) -> Cell:
    pictures = [
        render_to_string("voting/ballot/_thumb.html", {"name": name, "picture": output.picture})
        for name, output in zip("AB", line.pair.outputs, strict=False)
    ]
    return Cell(SafeString(" ".join(pictures)), css="nowrap")


def _makers_cell(line: PairLine) -> Cell:
    a, b = line.pair.a.generator, line.pair.b and line.pair.b.generator
    against = format_html('{} <span class="muted">against</span> {}', a, b)
    return Cell(a if b is None else against, css="long")


def _said_cell(line: PairLine) -> Cell:
    """Draw how many said what, with the same in words behind it."""
    if not (counts := line.counts_by_choice):
        return Cell(DASH, css="muted")
    ends = [0, *accumulate(counts.values())]
    shares = [
        (*line.fill_of(choice), f"{100 * start / ends[-1]:.1f}", f"{100 * votes / ends[-1]:.1f}")
        for (choice, votes), start in zip(counts.items(), ends, strict=False)
    ]
    rect = '<rect class="{}" fill-opacity="{}" x="{}%" width="{}%" height="100%"/>'
    parts = format_html_join("", rect, shares)
    # A number that is a rating is told from how many gave it.
    times = " \N{MULTIPLICATION SIGN}" if line.run.queue.kind == Queue.Kind.RATING else ""
    words = ", ".join(f"{votes}{times} {short_name(choice)}" for choice, votes in counts.items())
    bar = format_html('<svg class="bar" aria-hidden="true">{}</svg>', parts)
    return Cell(bar, small=words, css="")


def _differing_cell(line: PairLine) -> Cell:
    pair = line.pair
    if not pair.compared or not line.shows_verdicts:
        return Cell(DASH, css="num muted")
    return Cell(f"{pair.differing} of {pair.compared}")


def _state(line: PairLine) -> str:
    pair = line.pair
    if pair.unusable:
        return f"left out: {pair.unusable}"
    if not pair.opened_at:
        return "being prepared"
    return "enough votes" if pair.votes >= pair.votes_wanted else "open"


def _listing(run: Run, lines: Sequence[PairLine]) -> Listing[PairLine]:
    """Return the list, with columns of identifiers, pictures and votes where items have any."""
    pairs = [line.pair for line in lines]
    has_ids = any(pair.external_id for pair in pairs)
    has_said = any(line.counts_by_choice for line in lines)
    has_pictures = any(pair.a.picture for pair in pairs[:1])
    ids = Column[PairLine]("Id", lambda line: line.pair.external_id, css="long id")
    pictures = Column("A and B" if run.queue.noun == "pair" else "Output", _pictures_cell)
    votes = Column[PairLine](
        "Votes", lambda line: f"{line.pair.votes} of {line.pair.votes_wanted}", css="num"
    )
    columns = [
        Column[PairLine]("No.", lambda line: f"{line.pair.position + 1:,}", css="num"),
        *([ids] if has_ids else []),
        *([pictures] if has_pictures else []),
        Column("Prompt", _prompt_cell),
        Column("By", _makers_cell),
        votes,
        *([Column("People said", _said_cell)] if has_said else []),
        *([Column("Disputed", _differing_cell, css="num")] if disputed_order(run) else []),
        Column("State", _state, css="state"),
    ]
    return Listing(f"{run.queue.noun.capitalize()}s of {run.name}", columns)


@run_page("see")
def run_pairs(request: HtmxRequest, run: Run) -> HttpResponse:
    hides, (order, part) = is_voting(request, run), _order_and_part(request, run)
    noun, by_dispute = run.queue.noun, disputed_order(run)
    # What is looked for first, as soon as there are votes.
    is_asked = hides or "sort" in request.GET
    if by_dispute and not is_asked and run.queue.items.filter(votes__gt=0).exists():
        order = by_dispute
    if hides and order:
        raise Problem(403, f"You still have {noun}s to vote on: vote first, then sort them.")
    page, pairs = _page_of_pairs(request, run, order, part)
    voted = [pair.pk for pair in pairs if pair.votes]
    closed = set() if hides else hidden_from(request, run.queue.project, voted)
    query = pairs_query(order, part)
    has_own = run.queue.kind in (Queue.Kind.CATEGORY, Queue.Kind.RATING)
    votes = votes_on(Q(item__in=voted)) if has_own and not hides else {}
    lines = [
        PairLine(run, pair, query, not hides and pair.pk not in closed, votes.get(pair.pk, ()))
        for pair in pairs
    ]
    context = {
        "run": run,
        "page": page,
        "pairs": pairs,
        "table": _listing(run, lines).table(lines),
        "order": order,
        "part": part,
        "chosen_part": str(part),
        "parts": parts_of(run),
        "is_voting": hides,
        "orders": {name: ORDERS[name] for name in ("", by_dispute)},
        "empty": f"There are no such {noun}s." if part.kind else f"This run has no {noun}s.",
        "tab": "pairs",
    }
    return render(request, "judge_eval/board/pairs.html", context)


def _page_of_pairs(
    request: HttpRequest, run: Run, order: str, part: Slice
) -> tuple[Page[int], list[Item]]:
    # No more than the index holds: a deep page walks over all that come before it. Those of a part
    # are found by their outputs, all of them at once: to count them first would take as long again.
    places = part.pairs(run).order_by(*SORTED_BY[order]).values_list("position", flat=True)
    page = page_of(list(places) if part.kind else places, request.GET, PAIRS_PER_PAGE)
    # Without their outputs, which may be very long.
    long = [f"{side}__{field}" for side in "ab" for field in ("output", "metadata")]
    pairs = Item.objects.filter(queue=run.queue_id, position__in=list(page.object_list))
    pairs = pairs.defer(*long).select_related("a__picture", "b__picture")
    return page, list(pairs.order_by(*SORTED_BY[order]))


# --- one pair -----------------------------------------------------------------------------------


@never_cache
@require_safe
def run_pair(request: HtmxRequest, run_id: UUID, item_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    about = [f"{side}__{relation}" for side in "ab" for relation in ("picture", "call")]
    items = Item.objects.select_related(*about).defer("a__call__reply", "b__call__reply")
    pair = get_object_or_404(items, pk=item_id, queue=run.queue_id)
    if refused := refusal(request, "see", run, pair):
        return refused
    (order, part), verdicts = _order_and_part(request, run), verdicts_on(pair)
    calls = Call.objects.defer("reply").order_by("order", "sample")
    prefetch_related_objects(verdicts, Prefetch("calls", calls))
    majority_choice, kind = majority(votes_on(Q(item=pair.pk))[pair.pk]), kind_of(run.queue)
    has_scores = any(verdict.score_a is not None for verdict in verdicts)
    score_heads = kind.scores if has_scores else ()
    rows = [
        _verdict_row(verdict, majority_choice)
        | {"labels": _labels_beside(run.queue, verdict.labels)}
        | {
            "scores": [
                *zip(score_heads, map(score_text, (verdict.score_a, verdict.score_b)), strict=False)
            ]
        }
        for verdict in verdicts
    ]
    onward, pairs = SORTED_BY[order], part.pairs(run)
    back = [name.removeprefix("-") if name.startswith("-") else f"-{name}" for name in onward]
    context = {
        "run": run,
        "pair": pair,
        "number": pair.position + 1,
        "query": pairs_query(order, part),
        "nav_label": f"{run.queue.noun.capitalize()}s, {ORDERS[order]}, {part.in_words}",
        "previous": _next(pairs, pair, back),
        "next": _next(pairs, pair, onward),
        "sides": _sides(pair),
        "majority": LABELS.get(majority_choice, majority_choice),
        "has_orders": "orders" in kind.figures,
        "verb": kind.verb,
        "score_heads": score_heads,
        "verdicts": rows,
        "asked": [row for row in rows if row["calls"]],
        "votes": [
            {
                "vote": vote,
                "said": _vote_in_words(vote),
                "labels": _labels_beside(run.queue, vote.labels),
            }
            for vote in votes_on_item(pair)
        ],
        "tab": "pairs",
    }
    return render(request, "judge_eval/board/pair.html", context)


def _vote_in_words(vote: Entry) -> str:
    """Return what a vote says; a grade that is between pass and flag stands behind it."""
    words = LABELS.get(vote.choice, vote.choice)
    if vote.category:
        words += f": {vote.category}"
    is_between = vote.value not in (None, 0, MILLION)
    return f"{words} ({(vote.value or 0) / MILLION:g})" if is_between else words


def _labels_beside(queue: Queue, labels: Context | None) -> Context | None:
    label_kinds = (Queue.Kind.CATEGORY, Queue.Kind.RATING, Queue.Kind.LABELS)
    return None if queue.kind in label_kinds else labels


def _next(pairs: QuerySet[Item], pair: Item, order: Sequence[str]) -> UUID | None:
    behind, tied_fields = Q(), Q()
    for field in order:
        name, than = field.removeprefix("-"), "lt" if field.startswith("-") else "gt"
        value = getattr(pair, name)
        behind |= tied_fields & Q(**{f"{name}__{than}": value})
        tied_fields &= Q(**{name: value})
        if field == order[0]:
            # Implied by the rest, and what lets the database begin in the middle of its index.
            pairs = pairs.filter(**{f"{name}__{than}e": value})
    return pairs.filter(behind).order_by(*order).values_list("pk", flat=True).first()


def _sides(pair: Item) -> list[Context]:
    sides = []
    for side, output in zip("AB", pair.outputs, strict=False):
        call = getattr(output, "call", None)
        changes = call.changes if call else output.metadata.get(CHANGES, [])
        name = f"Output {side}" if pair.b else "Output"
        is_absent = output.metadata.get(OUTPUT_ABSENT, False)
        about = {"side": side if pair.b else "", "name": name, "changes": changes}
        about |= {"is_absent": is_absent, "length": output.metadata.get(OUTPUT_LENGTH)}
        sides.append(about | {"output": output, "call": call})
    return sides


class Pick(NamedTuple):
    """What a judge said in one order, where A is what was shown first, and what it meant."""

    is_swapped: bool
    raw: str

    @property
    def meant(self) -> str:
        """What it picked of the pair as it is stored."""
        return SWAPPED[self.raw] if self.is_swapped and self.raw in SWAPPED else self.raw

    @property
    def in_words(self) -> str:
        if not self.raw:
            return ""
        words = f"said {short_name(self.raw)}"
        return (
            words if self.raw == self.meant else f"{words}, which is {short_name(self.meant)} here"
        )


def picks_of(verdict: Verdict) -> list[Pick]:
    """Return what was picked in each order that was asked, the stored one first."""
    both = (Verdict.Order.STORED, Verdict.Order.SWAPPED)
    orders = both if verdict.order == Verdict.Order.BOTH else (verdict.order,)
    return [
        Pick(order == Verdict.Order.SWAPPED, raw)
        for order, raw in zip(orders, verdict.picks, strict=False)
    ]


def _verdict_row(verdict: Verdict, majority_choice: str) -> Context:
    picks = {pick.is_swapped: pick.in_words for pick in picks_of(verdict)}
    rate, calls = verdict.sample_consistency, verdict.calls.all()
    return {
        "verdict": verdict,
        "winner": LABELS.get(verdict.winner, verdict.winner)
        or ("no verdict" if verdict.error else ""),
        # None where the judge chose nothing, or no choice has more than half of the votes.
        "agrees": verdict.winner == majority_choice if verdict.winner and majority_choice else None,
        "stored": picks.get(False, ""),
        "swapped": picks.get(True, ""),
        "samples": "" if rate is None else percent(rate),
        "tokens": sum((call.prompt_tokens or 0) + (call.completion_tokens or 0) for call in calls),
        "cost": _cost(calls),
        "latency": latency(verdict.latency_ms),
        "calls": [
            {
                "call": call,
                "said": Pick(call.order == Verdict.Order.SWAPPED, call.winner).in_words,
                "cost": _cost([call]),
                "latency": latency(call.latency_ms),
            }
            for call in calls
        ],
    }


def _cost(calls: Iterable[Call]) -> str:
    """Return what calls cost together; what was answered from storage cost nothing."""
    if any(c.state == DONE and c.cost_nano is None and c.reused_id is None for c in calls):
        return "price not known"
    return usd(Decimal(sum(call.cost_nano or 0 for call in calls)) / NANO)
