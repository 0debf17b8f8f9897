"""The pages of curators: the list of what waits, one item of it, and what they decide."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.timesince import timesince
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.listing import Column, Listing
from humanjudge.core.tables import Cell, name_cell
from humanjudge.core.text import number_of
from judge_eval.models import Verdict
from judge_eval.runs.access import refusal
from judge_eval.runs.queries import verdicts_on
from judge_eval.runs.run_page import scores_in_words
from reports.models import Review
from reports.review import services
from voting.access.roles import (
    Action,
    Actor,
    can,
    can_anywhere,
    projects_where,
    require,
    require_anywhere,
    require_login,
    user_of,
)
from voting.ballot.queries import votes_on_item
from voting.curating.services import MOST_VOTES, AlreadyDecided, CannotDecide, decisions_on
from voting.items.choices import MILLION, short_name
from voting.items.conversations import latest
from voting.items.turns import beginning
from voting.ledger.counts import OF_PEOPLE
from voting.ledger.decisions import Decision
from voting.models import Entry, Flag, Item, Queue, Voter
from voting.people.forms import ProjectField
from voting.people.voters import voter_of_user

PER_PAGE: Final = 30
LETTERS: Final = 140
# The badge counts no further.
MANY: Final = 1_000
# What each decision is called: on its button, and once it is made.
ACTIONS: Final = {
    "keep": ("Keep", "k", "kept"),
    "exclude": ("Exclude", "x", "excluded"),
    "another_round": ("Another round", "r", "sent into another round"),
    "note": ("Save a note", "", "given a note"),
    "send_back": ("Send back", "", "sent back"),
}
DONE: Final = {action: done for action, (_, _, done) in ACTIONS.items()} | {"reverse": "reversed"}
STATES: Final = {"waits": "waiting", "decided": "decided", "all": "both", "flags": "all flags"}
AGES: Final = {"": "any age", "1": "over an hour", "24": "over a day", "168": "over a week"}
_WARNED: Final = "You have not voted on this item yet. Its page opens once you have."


class Filters(forms.Form):
    """What of the list is shown, as its address says, in projects whose people one may see."""

    state = forms.ChoiceField(choices=STATES.items(), required=False, initial="waits")
    project = ProjectField(empty_label="every project")
    kind = forms.ChoiceField(
        choices=[("", "pairs and items"), *Queue.Kind.choices], required=False, label="Question"
    )
    category = forms.ChoiceField(
        choices=[("", "any"), *Flag.Category.choices], required=False, label="Flagged as"
    )
    age = forms.ChoiceField(choices=AGES.items(), required=False, label="Waiting")
    variance = forms.FloatField(
        min_value=0, max_value=0.25, required=False, label="Variance from", step_size=0.01
    )

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.GET)
        self._request = request
        self._projects = projects_where(request.user, "see people")
        project = cast("ProjectField", self.fields["project"])
        project.queryset = self._projects.order_by("name")

    def reviews(self) -> QuerySet[Review]:
        """Return what is asked for, the longest waiting first."""
        cleaned = self.cleaned_data
        rows = services.reviews(cleaned["state"] or "waits", self._request, self._projects)
        rows = rows.order_by("since", "pk")
        if cleaned["project"]:
            rows = rows.filter(project=cleaned["project"])
        if cleaned["kind"]:
            rows = rows.filter(item__queue__kind=cleaned["kind"])
        if cleaned["category"]:
            flagged = {"item": OuterRef("item"), "category": cleaned["category"]}
            votes = Entry.objects.filter(OF_PEOPLE, **flagged)
            rows = rows.filter(Exists(Flag.objects.filter(**flagged)) | Exists(votes))
        if cleaned["age"]:
            rows = rows.filter(since__lte=timezone.now() - timedelta(hours=int(cleaned["age"])))
        if cleaned["variance"] is not None:
            rows = rows.filter(variance__gte=cleaned["variance"])
        return rows

    def query(self) -> str:
        """Return what an address ends with to ask for the same."""
        fields = {name: value for name, value in self.data.items() if value and name in self.fields}
        return f"?{urlencode(fields)}" if fields else ""


def _filters(request: HttpRequest) -> Filters:
    filters = Filters(request)
    if not filters.is_valid():
        mistakes = (f"{name}: {errors[0]}" for name, errors in filters.errors.items())
        raise Problem(400, " ".join(mistakes))
    return filters


class DecisionForm(forms.Form):
    action = forms.ChoiceField(choices=[(action, action) for action in ACTIONS])
    why = forms.CharField(max_length=services.LONGEST_WHY, required=False, label="Why")
    votes = forms.IntegerField(min_value=1, max_value=MOST_VOTES, required=False)
    voter = forms.UUIDField(required=False)
    after = forms.UUIDField(required=False)
    uid = forms.UUIDField(required=False)

    def clean(self) -> None:
        cleaned = self.cleaned_data
        if cleaned.get("action") == "note" and not cleaned.get("why", "").strip():
            self.add_error("why", "Write the note first.")


def count_waiting(request: HttpRequest) -> str:
    """Return what stands on the badge of every page; nothing where nothing waits for somebody."""
    if not can_anywhere(request.user, "decide"):
        return ""
    mine = services.reviews("waits", request, projects_where(request.user, "decide"))
    waiting = mine.values("pk")[:MANY].count()
    return f"{MANY - 1}+" if waiting == MANY else str(waiting or "")


# --- the list -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReviewLine:
    # With its prompt's beginning and the latest decision on it.
    review: Any
    title: str
    href: str
    may_decide: bool


def _choose_cell(line: ReviewLine) -> Cell:
    box = '<input type="checkbox" name="item" value="{}:{}" aria-label="Choose {}"{}>'
    review, closed = line.review, SafeString("" if line.may_decide else " disabled")
    title = Truncator(line.title).chars(60)
    return Cell(format_html(box, review.item_id, review.after or "", title, closed), css="")


def _state(review: Review) -> str:
    calm = "flagged" if review.flags and not review.is_divided else "settled"
    return "waiting" if review.waits else DONE.get(review.decided, calm)


REVIEWS: Final = Listing[ReviewLine](
    "Items to review",
    [
        Column("", _choose_cell),
        Column("Item", lambda line: Cell(line.title, css="long", href=line.href)),
        Column("Project", lambda line: line.review.project.name),
        Column("Queue", lambda line: line.review.item.queue.name),
        Column(
            "Why it is here",
            lambda line: format_html_join(SafeString("<br>"), "{}", zip(_reasons(line.review))),
        ),
        Column(
            "Votes",
            lambda line: f"{line.review.item.votes} of {line.review.item.votes_wanted}",
            css="num",
        ),
        Column("State", lambda line: _state(line.review)),
        Column(
            "Since",
            lambda line: Cell(
                f"{line.review.since:%-d %b %Y %H:%M}",
                title=f"{timesince(line.review.since)} ago",
                css="nowrap",
            ),
        ),
    ],
    per_page=PER_PAGE,
)


@never_cache
@require_safe
def review_list(request: HtmxRequest) -> HttpResponse:
    require_anywhere(request, "see people")
    filters = _filters(request)
    # Their items and prompts only of those on this page.
    keys, query = filters.reviews().values_list("pk", flat=True), filters.query()
    context = {
        **REVIEWS.context(keys, request.GET, lambda page: _lines(request, list(page), query)),
        "filters": filters,
        "query": query,
        "may_decide": can_anywhere(request.user, "decide"),
        "actions": [(name, words[0]) for name, words in ACTIONS.items() if name != "send_back"],
        "longest_why": services.LONGEST_WHY,
    }
    return render(request, "reports/review/review_list.html", context)


def _lines(request: HttpRequest, keys: list[int], query: str) -> list[ReviewLine]:
    listed = Review.objects.filter(pk__in=keys).annotate(after=services.AFTER)
    listed = listed.order_by("since", "pk")
    with_prompts = listed.annotate(prompt=beginning("item__a__prompt", LETTERS))
    reviews: list[Any] = list(with_prompts.select_related("project", "item__queue"))
    return [
        ReviewLine(
            review,
            latest(review.prompt)[:LETTERS] or f"Item {review.item.position + 1}",
            reverse("review-item", args=[review.item_id]) + query,
            can(request.user, "decide", review.project_id),
        )
        for review in reviews
    ]


def _reasons(review: Review) -> list[str]:
    reasons, votes = [], number_of(review.item.votes, "vote")
    if review.flags:
        newest = f", the newest: {review.category}" if review.category else ""
        reasons.append(f"{number_of(review.flags, 'flag')}{newest}")
    if review.is_divided and review.variance is not None:
        reasons.append(f"ambiguous: {votes} with a variance of {review.variance:.3f}")
    elif review.is_divided:
        reasons.append(f"disputed: no choice has two thirds of {votes}")
    return reasons


@require_POST
def decide_many(request: HtmxRequest) -> HttpResponse:
    """Decide alike on all that were chosen; say of which somebody else has decided meanwhile."""
    require_anywhere(request, "decide")
    form = DecisionForm(request.POST)
    item_ids = request.POST.getlist("item")[:PER_PAGE]
    if not form.is_valid():
        raise Problem(422, " ".join(str(errors[0]) for errors in form.errors.values()))
    if not item_ids:
        raise Problem(422, "Choose at least one item.")
    cleaned, decided, refused = form.cleaned_data, 0, []
    for item, after in _keys(item_ids, request.user):
        try:
            _decide(request, item, form, after, uid=None)
        except (AlreadyDecided, CannotDecide) as error:
            refused.append(f"Item {item.position + 1} of {item.queue.name}: {error}")
        else:
            decided += 1
    if refused:
        left_out = f"{number_of(len(refused), 'item')} left as they were. {' '.join(refused)}"
        raise Problem(409, f"{number_of(decided, 'item')} {DONE[cleaned['action']]}. {left_out}")
    messages.success(request, f"{number_of(decided, 'item')} {DONE[cleaned['action']]}.")
    return redirect(reverse("review") + _query_of(request))


def _keys(item_ids: Iterable[str], user: Actor) -> list[tuple[Item, UUID | None]]:
    """Return the chosen items, each with the latest decision that was shown with it.

    Those on which one may not decide are as if there were none.
    """
    try:
        pairs = [key.split(":") for key in item_ids]
        keys = {UUID(pk): UUID(after) if after else None for pk, after in pairs}
    except ValueError:
        raise Problem(400, "item: not as the page has it. Reload the page.") from None
    mine = Item.objects.filter(queue__project__in=projects_where(user, "decide"))
    items = mine.select_related("queue__project", "queue__run").in_bulk(keys)
    return [(items[pk], after) for pk, after in keys.items() if pk in items]


def _query_of(request: HttpRequest) -> str:
    return Filters(request).query()


def _decide(
    request: HtmxRequest, item: Item, form: DecisionForm, after: UUID | None, uid: UUID | None
) -> Entry:
    """Decide as a form says; `after` is the latest decision that its sender has seen."""
    if _refusal(request, item) is not None:
        raise CannotDecide(_WARNED)
    curator, cleaned = voter_of_user(item.queue.project, user_of(request)), form.cleaned_data
    action, reason = cleaned["action"], cleaned["why"]
    about = {"votes": cleaned["votes"], "voter": cleaned["voter"]}
    return services.decide(item, action, curator, reason, after=after, uid=uid, **about)


def _refusal(request: HtmxRequest, item: Item) -> HttpResponse | None:
    return refusal(request, "see", services.run_of(item.queue), item)


# --- one item -------------------------------------------------------------------------------------


@never_cache
@require_safe
def review_item(request: HtmxRequest, item_id: UUID) -> HttpResponse:
    item = _item(request, item_id, "see people")
    return _refusal(request, item) or render(
        request, "reports/review/review_item.html", _context(request, item)
    )


def _item(request: HtmxRequest, item_id: UUID, action: Action) -> Item:
    items = Item.objects.select_related(
        "queue__project", "queue__run", "queue__rubric", "a__picture", "b__picture", "review"
    )
    item = get_object_or_404(items, pk=item_id)
    require(request, action, item.queue.project_id)
    return item


def _context(request: HttpRequest, item: Item, **more: object) -> Context:
    filters = _filters(request)
    review = getattr(item, "review", None)
    decisions = _decisions(item)
    others = filters.reviews()
    run = getattr(item.queue, "run", None)
    voted, judged = list(votes_on_item(item)), verdicts_on(item)
    for vote in voted:
        vote.item = item  # with its outputs
    for verdict in judged:
        verdict.item = item
    flags = Flag.objects.filter(item=item).select_related("voter")
    return {
        "item": item,
        "review": review,
        "number": item.position + 1,
        "queue": item.queue,
        "run": run,
        "query": filters.query(),
        "sides": _sides(item),
        "reasons": _reasons(review) if review else [],
        "votes": VOTES.table(voted),
        "voters": [vote.voter for vote in voted if not vote.retracted]
        if item.queue.is_open
        else [],
        "verdicts": VERDICTS.table(judged),
        "flags": FLAGS.table(flags.order_by("created_at")),
        "decisions": decisions,
        "after": decisions[0]["entry"].uid if decisions else "",
        "uid": uuid4(),
        "actions": [(name, *words) for name, words in ACTIONS.items() if words[1]],
        "more_votes": item.queue.votes_per_item,
        "most_votes": MOST_VOTES,
        "longest_why": services.LONGEST_WHY,
        "previous": _neighbour(others, review, "lt"),
        "next": _neighbour(others, review, "gt"),
    } | more


def _neighbour(reviews: QuerySet[Review], review: Review | None, than: str) -> UUID | None:
    if review is None:
        return reviews.values_list("item", flat=True).first() if than == "gt" else None
    is_beyond = Q(**{f"since__{than}": review.since}) | Q(
        since=review.since, **{f"pk__{than}": review.pk}
    )
    sign = "" if than == "gt" else "-"
    behind = reviews.filter(is_beyond).order_by(f"{sign}since", f"{sign}pk")
    return behind.values_list("item", flat=True).first()


def _sides(item: Item) -> list[Context]:
    sides = [("Output A", item.a), ("Output B", item.b)] if item.b else [("Output", item.a)]
    return [{"name": name, "output": output} for name, output in sides]


def _choice_words(item: Item | None, choice: str) -> str:
    """Name a choice as the page does: an output of a pair with who wrote it."""
    output = {"A": item.a, "B": item.b}.get(choice) if item and item.b else None
    if output is None:
        return short_name(choice)
    return f"Output {choice}" + (f" ({output.generator})" if output.generator else "")


def vote_in_words(vote: Entry, choice: str = "") -> str:
    """Say what somebody voted, and what keeps it from counting."""
    labels = vote.labels or {}
    answers = "; ".join(f"{task}: {answer}" for task, answer in labels.items())
    words = choice or short_name(vote.choice) or answers
    if vote.value is not None and vote.value not in (0, MILLION):
        words = f"{words} ({vote.value / MILLION:g})"
    notes = [vote.category, "" if not vote.unblinded else "not blind"]
    notes += ["changed after the reveal" if vote.retracted_after_reveal else ""]
    notes += ["being sealed" if vote.seq is None else ""]
    return ", ".join([words, *filter(None, notes)])


def _utc_minute(moment: datetime) -> str:
    return f"{moment:%-d %b %Y %H:%M}"


VOTES: Final = Listing[Entry](
    "What people voted",
    [
        Column("Voter", lambda vote: name_cell(str(vote.voter))),
        Column("Vote", lambda vote: vote_in_words(vote, _choice_words(vote.item, vote.choice))),
        Column("Comment", lambda vote: vote.comment),
        Column("When (UTC)", lambda vote: _utc_minute(vote.at)),
    ],
)
VERDICTS: Final = Listing[Verdict](
    "What the judges said",
    [
        Column("Judge", lambda verdict: name_cell(verdict.judge.name)),
        Column("Said", lambda verdict: _choice_words(verdict.item, verdict.winner) or "no verdict"),
        Column("Scores", lambda verdict: scores_in_words(verdict.score_a, verdict.score_b)),
        Column("Why", lambda verdict: verdict.feedback or verdict.error),
    ],
)
FLAGS: Final = Listing[Flag](
    "Flags",
    [
        Column("Voter", lambda flag: name_cell(str(flag.voter))),
        Column("What is wrong", lambda flag: flag.category),
        Column("Comment", lambda flag: flag.comment),
        Column("When (UTC)", lambda flag: _utc_minute(flag.created_at)),
    ],
)


def _decisions(item: Item) -> list[Context]:
    entries = list(decisions_on(item.pk).select_related("voter"))
    pseudonyms = {entry.payload["by"] for entry in entries if entry.payload}
    names = {
        voter.pseudonym: str(voter)
        for voter in Voter.objects.filter(project=item.queue.project, pseudonym__in=pseudonyms)
    }
    reversed_ones = {entry.target_id for entry in entries}
    return [
        {
            "entry": entry,
            "what": decision_in_words(decision) + (f" to {entry.voter}" if entry.voter else ""),
            "who": names.get(decision.by, decision.by),
            "is_reversed": entry.pk in reversed_ones,
            "can_reverse": entry.pk not in reversed_ones and decision.action != "reverse",
        }
        for entry in entries
        for decision in (Decision.model_validate(entry.payload),)
    ]


def decision_in_words(decision: Decision) -> str:
    if decision.action == "another_round":
        return f"Another round, until there are {number_of(decision.votes_wanted or 0, 'vote')}"
    words = {"keep": "Kept", "exclude": "Excluded", "note": "Note", "reverse": "Reversed"}
    words["send_back"] = "Sent back"
    return words[decision.action]


@require_POST
def decide_one(request: HtmxRequest, item_id: UUID) -> HttpResponse:
    item, form = _item(request, item_id, "decide"), DecisionForm(request.POST)
    if refused := _refusal(request, item):
        return refused
    if not form.is_valid():
        return _again(request, item, 422, form=form)
    cleaned = form.cleaned_data
    try:
        decision = _decide(request, item, form, cleaned["after"], cleaned["uid"])
    except (AlreadyDecided, CannotDecide) as error:
        return _again(request, item, 409, trouble=_conflict_words(item, error))
    done = DONE[(decision.payload or {})["action"]]
    messages.success(request, f"Item {item.position + 1}: {done}.")
    if cleaned["action"] in ("note", "send_back"):
        return redirect(reverse("review-item", args=[item.pk]) + _query_of(request))
    following = _neighbour(_filters(request).reviews(), Review.objects.get(item=item), "gt")
    address = reverse("review-item", args=[following]) if following else reverse("review")
    return redirect(address + _query_of(request))


def _again(request: HtmxRequest, item: Item, status: int, **more: object) -> HttpResponse:
    fresh = _item(request, item.pk, "decide")
    context = _context(request, fresh, typed=request.POST.get("why", ""), **more)
    return render(request, "reports/review/review_item.html", context, status=status)


def _conflict_words(item: Item, error: AlreadyDecided | CannotDecide) -> str:
    """Say why a decision was not recorded; where another came first, whose and which."""
    if isinstance(error, CannotDecide):
        return str(error)
    first = _decisions(item)[0]
    return f"{error} {first['who']}: {first['what']}. Your decision was not recorded; look again."


@require_POST
def reverse_decision(request: HtmxRequest, uid: UUID) -> HttpResponse:
    require_login(request)
    about = Entry.objects.select_related("item__queue__project", "item__queue__run")
    decision = get_object_or_404(about, uid=uid, kind=Entry.Kind.DECISION, item__isnull=False)
    assert decision.item is not None  # filtered
    item = decision.item
    require(request, "decide", item.queue.project_id)
    if refused := _refusal(request, item):
        return refused
    curator = voter_of_user(item.queue.project, user_of(request))
    try:
        services.reverse(decision, curator, request.POST.get("why", "")[: services.LONGEST_WHY])
    except (AlreadyDecided, CannotDecide) as error:
        return _again(request, item, 409, trouble=_conflict_words(item, error))
    now = _state(Review.objects.get(item=item))
    messages.success(request, f"Item {item.position + 1}: reversed. It is now {now}.")
    return redirect(reverse("review-item", args=[item.pk]) + _query_of(request))
