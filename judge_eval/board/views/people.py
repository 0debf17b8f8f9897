"""People of a run: who votes and how, who is excluded and invited, how many votes are wanted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.timesince import timesince
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from humanjudge.core.charts.graphs import IntervalRow
from humanjudge.core.charts.plot import lay_out_plot
from humanjudge.core.charts.time_graph import votes_graph
from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.listing import Column, Listing, both_ways
from humanjudge.core.tables import DASH, Cell, missing, name_cell, percent, span
from humanjudge.core.text import number_of
from judge_eval.board.few import VotesFirst, require_votes_first
from judge_eval.board.views.invites import PERSONAL_IDS, invites_of, record
from judge_eval.board.voter_stats import (
    LEAST_PAIRS,
    Person,
    VoterShare,
    VotingPace,
    figures_of,
    pace_of,
    people_of,
)
from judge_eval.models import Run
from judge_eval.runs import services
from judge_eval.runs.run_page import find_run, invites_address, run_action, run_page
from voting.access.roles import can, require, user_of
from voting.curating.services import (
    MOST_VOTES,
    AlreadyDecided,
    CannotDecide,
    RoundCost,
    by_rules,
    change_for_all,
    change_for_disputed,
    cost_of,
    decisions_on_voters,
    disputed,
    exclude_voter,
    latest_changes,
    reverse,
)
from voting.ledger.decisions import Rules
from voting.models import Entry, Queue, Voter
from voting.people import voters
from voting.people.forms import GroupField, InviteForm, PersonalInvitesForm
from voting.people.voters import voter_of_user

LONGEST_WHY: Final = 2_000
LONGEST_RUBRIC: Final = 20_000
LATEST_CHANGES: Final = 5
UNCOMPARED: Final = "No other person has voted on the same."
UNSIDED: Final = "No vote for a side that is known to have stood left or right."


class VotesPerItemForm(forms.Form):
    about = forms.ChoiceField(
        choices=[("all", "all pairs"), ("disputed", "only pairs on which people disagree")],
        widget=forms.RadioSelect,
        initial="all",
        label="For",
    )
    votes = forms.IntegerField(min_value=1, max_value=MOST_VOTES, label="Votes per pair")
    overlap_share = forms.FloatField(
        min_value=0, max_value=100, label="Percent of all pairs that more people vote on"
    )
    overlap_votes = forms.IntegerField(
        min_value=1, max_value=MOST_VOTES, label="Votes on each of those"
    )

    def __init__(self, queue: Queue, data: QueryDict | None = None) -> None:
        usual = {
            "votes": queue.votes_per_item,
            "overlap_share": f"{100 * queue.overlap_share:g}",
            "overlap_votes": queue.overlap_votes,
        }
        super().__init__(data, initial=usual)
        self.queue = queue
        for field in self.fields.values():
            field.label = str(field.label).replace("pair", queue.noun)
        about: Any = self.fields["about"]
        about.choices = [(name, words.replace("pair", queue.noun)) for name, words in about.choices]
        # Of those on which people disagree all want the same.
        if data and data.get("about") == "disputed":
            self.fields["overlap_share"].required = self.fields["overlap_votes"].required = False

    @property
    def is_for_all(self) -> bool:
        return bool(self.cleaned_data["about"] == "all")

    @property
    def rules(self) -> Rules:
        cleaned = self.cleaned_data
        return Rules(
            votes_per_item=cleaned["votes"],
            overlap_share=cleaned["overlap_share"] / 100,
            overlap_votes=cleaned["overlap_votes"],
        )

    def cost(self) -> RoundCost:
        if self.is_for_all:
            return cost_of(self.queue, by_rules(self.queue, self.rules))
        return cost_of(self.queue, dict.fromkeys(disputed(self.queue), self.cleaned_data["votes"]))

    def save(self, curator: Voter) -> Entry:
        if self.is_for_all:
            return change_for_all(self.queue, self.rules, curator)
        return change_for_disputed(self.queue, self.cleaned_data["votes"], curator)


class QuestionForm(forms.Form):
    question = forms.CharField(
        max_length=200,
        required=False,
        label="The question, in one line",
        help_text="For whoever reads the results.",
    )
    rubric = forms.CharField(
        max_length=LONGEST_RUBRIC,
        label="What to look for",
        help_text="What people are shown while they vote. Judges keep the instructions they have.",
        widget=forms.Textarea(attrs={"rows": 6}),
    )


class GroupForm(forms.Form):
    group = GroupField(label="Voter group")


class ExcludeForm(forms.Form):
    why = forms.CharField(max_length=LONGEST_WHY, error_messages={"required": "Say why."})
    # The latest decision that was shown, and the number of this one: the same request again is
    # not a second one.
    after = forms.UUIDField(required=False)
    uid = forms.UUIDField(required=False)


# --- the list -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoterLine:
    person: Person
    now: datetime
    params: Mapping[str, str]
    decides: bool

    @property
    def name(self) -> str:
        return self.person.name or "No name"

    def link(self, form: str) -> str:
        return f"?{urlencode(dict(self.params) | {form: self.person.id})}#{form}"


def _name_cell(line: VoterLine) -> Cell:
    tag = "excluded" if line.person.excluded else ""
    return name_cell(line.name, tag=tag, small=line.person.pseudonym)


def _group_cell(line: VoterLine) -> Cell:
    group, voter_name = line.person.group, f"{line.name} {line.person.pseudonym}"
    if not line.decides:
        return Cell(group or DASH, css="")
    return Cell(
        group or "Choose", after=f" as the group of {voter_name}", href=line.link("group"), css=""
    )


def _seen_cell(line: VoterLine) -> Cell:
    last_seen = line.person.last_seen
    return Cell(f"{timesince(last_seen, line.now)} ago", title=f"{last_seen:%-d %b %Y %H:%M} UTC")


def _seconds_cell(line: VoterLine) -> Cell:
    seconds = line.person.median_seconds
    return Cell(DASH if seconds is None else f"{seconds:.1f}")


def _share_cell(share: VoterShare | None, reason: str) -> Cell:
    if share is None:
        return missing(reason)
    if share.interval is None:
        few = f"Fewer than {LEAST_PAIRS}: no interval."
        return Cell(percent(share.value), small=f"of {share.n}", title=few)
    low, high = (100 * bound for bound in share.interval)
    return Cell(percent(share.value), small=f"{span(low, high)}, of {share.n:,}")


def _exclude_cell(line: VoterLine) -> Cell:
    if not line.decides or line.person.excluded:
        return Cell()
    voter_name = f"{line.name} {line.person.pseudonym}"
    return Cell("Exclude", after=f" {voter_name}", href=line.link("exclude"), css="")


def _figure(
    title: str, cell: Callable[[VoterLine], Cell | str], attribute: str, name: str = ""
) -> Column[VoterLine]:
    """Return a column of numbers, the largest first; `name` is its order in the address."""
    orders = both_ways(name or attribute, attribute, largest_first=True)
    return Column(title, cell, css="num", orders=orders)


VOTERS: Final = Listing[VoterLine](
    "Voters",
    [
        Column("Voter", _name_cell, orders=both_ways("name", "name_in_order")),
        Column("Group", _group_cell, orders=both_ways("group", "group_in_order")),
        _figure("Votes", lambda line: f"{line.person.votes:,}", "votes"),
        _figure("Last seen", _seen_cell, "last_seen", "seen"),
        _figure("Median s per vote", _seconds_cell, "median_seconds", "seconds"),
        _figure(
            "Agreement with others",
            lambda line: _share_cell(line.person.agreement, UNCOMPARED),
            "agreement",
        ),
        _figure("Chose left", lambda line: _share_cell(line.person.left, UNSIDED), "left"),
        _figure("Skips", lambda line: str(line.person.skips), "skips"),
        _figure("Flags", lambda line: str(line.person.flags), "flags"),
        Column("", _exclude_cell),
    ],
    usual="-votes",
    search=("name", "pseudonym"),
    row_css=lambda line: "left-out" if line.person.excluded else "",
)


# --- the page -----------------------------------------------------------------------------------


@run_page("see people")
def run_people(request: HtmxRequest, run: Run) -> HttpResponse:
    return _page(request, run)


def _page(
    request: HttpRequest,
    run: Run,
    votes_form: VotesPerItemForm | None = None,
    *,
    status: int = 200,
    question_form: QuestionForm | None = None,
    **invite_forms: Any,
) -> HttpResponse:
    """Who votes and is invited; what people are asked and how many votes are wanted, folded."""
    usual = {"question": run.question, "rubric": run.queue.rubric.text}
    context = {
        "run": run,
        "tab": "people",
        "groups": voters.voter_groups(run.queue.project_id),
        "question_form": question_form or QuestionForm(initial=usual),
    }
    try:
        require_votes_first(request, run)
        context |= _voters_of(request, run) | _votes_wanted(request, run, votes_form)
    except VotesFirst as refusal:
        context["why"] = str(refusal)
    context |= invites_of(request, run, **invite_forms)
    return render(request, "judge_eval/board/people.html", context, status=status)


def _votes_wanted(request: HttpRequest, run: Run, form: VotesPerItemForm | None) -> Context:
    is_estimate = "votes" in request.GET
    form = form or VotesPerItemForm(run.queue, request.GET if is_estimate else None)
    cost = form.cost() if is_estimate and form.is_valid() else None
    return {
        "form": form,
        "cost": _cost_in_words(cost, run.queue),
        "changes": latest_changes(run.queue, LATEST_CHANGES),
    }


def _voters_of(request: HttpRequest, run: Run) -> Context:
    figures, now = figures_of(run), timezone.now()
    people, pace = people_of(run.queue, figures), pace_of(run.queue, now, figures)
    params, decides = request.GET.dict(), can(request.user, "decide", run.queue.project_id)
    listing = VOTERS.context(
        people,
        params,
        lambda page: (VoterLine(person, now, params, decides) for person in page),
    )
    compared = [
        IntervalRow(
            person.name or person.pseudonym,
            share.value,
            share.interval,
            beats_floor=not person.is_excluded,  # drawn hollow
            note="" if share.interval else f"of {share.n}",
        )
        for person in listing["page"]
        if (share := person.agreement)
    ]
    compared.sort(key=lambda row: row.value or 0, reverse=True)
    return {
        **listing,
        "plot": lay_out_plot(compared, title="Agreement with others"),
        "pace": pace,
        "pace_words": _pace_in_words(pace),
        "graph": votes_graph(pace.votes, pace.unit),
        "people": len(people),
        "excluded": [person for person in people if person.excluded],
        "chosen": _person_by_id(people, request.GET.get("exclude")),
        "grouped": _person_by_id(people, request.GET.get("group")),
        "uid": uuid4(),
        "longest_why": LONGEST_WHY,
    }


def _person_by_id(people: Sequence[Person], pk: str | None) -> Person | None:
    return next((person for person in people if str(person.id) == pk), None)


def _pace_in_words(pace: VotingPace) -> str:
    waiting = number_of(pace.waiting, pace.noun)
    want = "wants" if pace.waiting == 1 else "want"
    words = f"{waiting} {want} votes." if pace.waiting else f"No {pace.noun} wants votes."
    if pace.preparing:
        words += f" {number_of(pace.preparing, pace.noun)} not open yet."
    return words


def _cost_in_words(cost: RoundCost | None, queue: Queue) -> str:
    if cost is None:
        return ""
    more = cost.left - cost.left_before
    change = number_of(abs(more), "more vote" if more > 0 else "fewer vote")
    words = [f"{change}: {cost.left:,} to come instead of {cost.left_before:,}."]
    if not more:
        words = ["As many votes to come as now."]
    if cost.reopened:
        words.append(f"{number_of(cost.reopened, queue.noun)} with enough votes would come back.")
    if cost.closed:
        words.append(f"{number_of(cost.closed, queue.noun)} would have enough votes.")
    return " ".join(words)


# --- what a lead can do -------------------------------------------------------------------------


def _acting_voter(request: HttpRequest, run: Run) -> Voter:
    return voter_of_user(run.queue.project, user_of(request))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def make_invite(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Make a link for several people; the page that was here once is a part of this one."""
    run = find_run(run_id)
    require(request, "invite", run.queue.project_id)
    if request.method != "POST":
        return redirect(invites_address(run), permanent=True)
    form = InviteForm(request.POST)
    if not form.is_valid():
        return _page(request, run, status=422, form=form)
    cleaned, until = form.cleaned_data, form.expires_at(timezone.now())
    invite = voters.make_invite(
        run.queue, cleaned["label"], until, cleaned["max_voters"], cleaned["group"]
    )
    record(request, run, "An invite was made", invite)
    return redirect(invites_address(run))


@run_action("invite")
def make_personal_invites(request: HttpRequest, run: Run) -> HttpResponse:
    form = PersonalInvitesForm(request.POST, auto_id=PERSONAL_IDS)
    if not form.is_valid():
        return _page(request, run, status=422, personal=form)
    names, group = form.cleaned_data["names"], form.cleaned_data["group"]
    voters.make_personal_invites(run.queue, names, form.expires_at(timezone.now()), group)
    username = request.user.get_username()
    run.record("invite", f"{number_of(len(names), 'personal link')} made by {username}.")
    return redirect(invites_address(run))


@run_action("run")
def change_question(request: HttpRequest, run: Run) -> HttpResponse:
    form = QuestionForm(request.POST)
    if not form.is_valid():
        return _page(request, run, status=422, question_form=form)
    rubric = form.cleaned_data["rubric"].replace("\r\n", "\n")
    services.change_question(run, question=form.cleaned_data["question"], rubric=rubric)
    messages.success(request, "What people are asked is changed, from now on.")
    return redirect("run-people", run.pk)


@run_action("run")
def change_votes_per_item(request: HttpRequest, run: Run) -> HttpResponse:
    form = VotesPerItemForm(run.queue, request.POST)
    if not form.is_valid():
        return _page(request, run, form, status=422)
    form.save(_acting_voter(request, run))
    messages.success(request, "The votes wanted are changed; the figures follow in a moment.")
    return redirect("run-people", run.pk)


@run_action("decide")
def exclude(request: HttpRequest, run: Run, voter_id: UUID) -> HttpResponse:
    form, voter = ExcludeForm(request.POST), _voter(run, voter_id)
    if not form.is_valid():
        raise Problem(422, " ".join(str(errors[0]) for errors in form.errors.values()))
    cleaned = form.cleaned_data
    reason = cleaned.pop("why")
    try:
        exclude_voter(voter.pk, run.queue, _acting_voter(request, run), reason, **cleaned)
    except AlreadyDecided as late:
        raise Problem(409, f"{late} Reload the page.") from late
    messages.success(request, f"{voter} is excluded; the figures follow in a moment.")
    return redirect("run-people", run.pk)


@run_action("decide")
def change_group(request: HttpRequest, run: Run, voter_id: UUID) -> HttpResponse:
    form, voter = GroupForm(request.POST), _voter(run, voter_id)
    if not form.is_valid():
        raise Problem(422, f"Voter group: {form.errors['group'][0]}")
    group = form.cleaned_data["group"]
    if voters.put_into_group(voter, group, _acting_voter(request, run)):
        group_text = f"in the group {group}" if group else "in no group"
        messages.success(request, f"{voter} is {group_text} now; the figures follow in a moment.")
    return redirect("run-people", run.pk)


def _voter(run: Run, voter_id: UUID) -> Voter:
    return get_object_or_404(Voter, pk=voter_id, project=run.queue.project_id)


@run_action("decide")
def take_back(request: HttpRequest, run: Run, decision_id: UUID) -> HttpResponse:
    decisions = decisions_on_voters(run.queue).select_related("voter")
    decision = get_object_or_404(decisions, uid=decision_id)
    try:
        reverse(decision.uid, _acting_voter(request, run))
    except (AlreadyDecided, CannotDecide) as late:
        raise Problem(409, f"{late} Reload the page.") from late
    messages.success(request, f"{decision.voter} counts again; the figures follow in a moment.")
    return redirect("run-people", run.pk)
