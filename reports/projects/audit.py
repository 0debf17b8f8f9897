"""The audit of a project: its ledger entry by entry, and what was changed beside it."""

from collections.abc import Mapping
from typing import Final

from django import forms
from django.contrib.admin.models import LogEntry
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode

from humanjudge.http import Context
from humanjudge.listing import Column, Listing
from judge_eval.access import hidden_from
from judge_eval.models import Run
from judge_eval.selectors import Ambiguous, by_prefix
from reports.projects.entries import KINDS, lines_of, loaded
from reports.projects.page_header import project_page
from voting.changes import changes_of
from voting.models import Entry, Item, Project, Voter

PER_PAGE: Final = 50
# Of voters with a name that was looked for, so many are offered.
MOST_NAMED: Final = 20
_SEQ_MOST: Final = 2**63 - 1
_VOTES, _OTHERS = Q(kind=Entry.Kind.VOTE), ~Q(kind=Entry.Kind.VOTE)


# --- what is asked for ----------------------------------------------------------------------------


class AuditForm(forms.Form):
    """What of the ledger is shown: all conditions hold together."""

    kind = forms.ChoiceField(choices=[("", "every kind"), *KINDS.items()], required=False)
    run = forms.ModelChoiceField(Run.objects.none(), required=False, empty_label="every run")
    voter = forms.CharField(max_length=100, required=False, label="Voter (name or pseudonym)")
    item = forms.CharField(max_length=36, required=False, label="Item (number in the run, or id)")
    since = forms.DateTimeField(required=False, label="From (UTC)")
    until = forms.DateTimeField(required=False, label="To (UTC)")
    seq = forms.IntegerField(
        min_value=1, max_value=_SEQ_MOST, required=False, label="From entry no. downwards"
    )

    def __init__(self, project: Project, data: Mapping[str, str]) -> None:
        super().__init__(data, label_suffix="")
        self.project = project
        self.several: list[Voter] = []
        runs = self.fields["run"]
        assert isinstance(runs, forms.ModelChoiceField)
        runs.queryset = Run.objects.filter(queue__project=project).defer("config").order_by("name")
        for name in ("since", "until"):
            self.fields[name].widget = forms.DateTimeInput(attrs={"type": "datetime-local"})

    def clean_voter(self) -> Voter | None:
        """Return the one voter who is meant; where it may be several, offer these."""
        text = self.cleaned_data["voter"].strip()
        if not text:
            return None
        voters = Voter.objects.filter(project=self.project)
        named = voters.filter(Q(pseudonym=text.lower()) | Q(name__icontains=text))
        matches = list(named.order_by("name", "pseudonym")[: MOST_NAMED + 1])
        exact = [voter for voter in matches if voter.pseudonym == text.lower()]
        if not matches:
            raise forms.ValidationError("No voter has that name.")
        if len(exact or matches) > 1:
            self.several = matches[:MOST_NAMED]
            raise forms.ValidationError("Several voters have that name: choose one of them.")
        return (exact or matches)[0]

    def clean_item(self) -> Item | None:
        text, run = self.cleaned_data["item"].strip(), self.cleaned_data.get("run")
        items = Item.objects.filter(queue__project=self.project)
        if not text:
            return None
        if text.isdecimal() and len(text) < 8:
            if run is None:
                raise forms.ValidationError("Choose the run in which it has this number, too.")
            item = items.filter(queue=run.queue_id, position=int(text) - 1).first()
        else:
            try:
                item = by_prefix(items, text)
            except Ambiguous as error:
                raise forms.ValidationError(f"{error}.") from error
        if item is None:
            raise forms.ValidationError("There is no such item in this project.")
        return item

    def query(self, **changes: object) -> str:
        """Return what an address ends with to ask for the same, with some things otherwise."""
        given = {name: self.data.get(name) for name in self.fields} | changes
        return "?" + urlencode({name: str(value) for name, value in given.items() if value})


def page_of(form: AuditForm) -> list[Entry]:
    """Return the newest entries that are asked for, one more than a page shows.

    They stand by their numbers; within a span of time by their times, as what was imported has
    earlier ones. What is asked for together has one index for votes and another for all else, so
    each is read from its newest entry on, and no page costs more because the ledger is long.
    """
    cleaned = form.cleaned_data
    since, until, start = cleaned["since"], cleaned["until"], cleaned["seq"]
    by_time = bool(since or until)
    run, voter, item = cleaned["run"], cleaned["voter"], cleaned["item"]
    about = {"queue": run and run.queue_id, "voter": voter, "item": item}
    subject = {column: value for column, value in about.items() if value}
    rows = Entry.objects.filter(**subject, seq__isnull=False)
    if by_time or not subject:
        # Each of these is of the project already, and a database might read all that is.
        rows = rows.filter(project=form.project)
    rows = rows.filter(at__gte=since) if since else rows
    rows = rows.filter(at__lte=until) if until else rows
    rows = _from(rows, form.project, start, by_time=by_time) if start else rows
    order = ("-at", "-seq") if by_time else ("-seq",)
    which = [_VOTES, _OTHERS] if run or by_time else [Q()]
    if kind := cleaned["kind"]:
        which = [Q(kind=kind) & (_VOTES if kind == Entry.Kind.VOTE else _OTHERS)]
    keys = [
        key
        for part in which
        for key in rows.filter(part).order_by(*order).values_list("at", "seq", "pk")[: PER_PAGE + 1]
    ]
    newest = sorted(keys, key=lambda key: key[:2] if by_time else key[1:2], reverse=True)
    return loaded([pk for _, _, pk in newest[: PER_PAGE + 1]])


def _from(rows: QuerySet[Entry], project: Project, seq: int, *, by_time: bool) -> QuerySet[Entry]:
    """Return the entries from a number on, where they stand by their times from its time on."""
    at = Entry.objects.filter(project=project, seq=seq).values_list("at", flat=True).first()
    if not by_time or at is None:
        return rows.filter(seq__lte=seq)
    return rows.filter(Q(at__lt=at) | Q(seq__lte=seq), at__lte=at)


# --- the page -------------------------------------------------------------------------------------


@project_page("see people")
def audit(request: HttpRequest, project: Project) -> HttpResponse:
    if request.GET.get("show") == "changes":
        return _changes(request, project)
    form = AuditForm(project, request.GET.dict())
    rows = page_of(form) if form.is_valid() else []
    entries = rows[:PER_PAGE]
    closed = hidden_from(request, project, {entry.item_id for entry in entries if entry.item_id})
    context: Context = {
        "project": project,
        "tab": "audit",
        "current": "ledger",
        "form": form,
        "lines": lines_of(project, entries, closed),
        "several": [(voter, form.query(voter=voter.pseudonym)) for voter in form.several],
        "older": form.query(seq=rows[PER_PAGE].seq) if len(rows) > PER_PAGE else "",
        "newest": form.query(seq=None) if form.is_valid() and form.cleaned_data["seq"] else "",
        "unsealed": Entry.objects.filter(project=project, seq__isnull=True).count(),
    }
    status = 422 if form.errors else 200
    return render(request, "reports/project_audit.html", context, status=status)


CHANGES: Final = Listing[LogEntry](
    "Changes",
    [
        Column("Change", lambda change: change.get_change_message(), css="long"),
        Column("By", lambda change: change.user.get_username()),
        Column("When", lambda change: f"{change.action_time:%-d %b %Y %H:%M:%S} UTC", css="nowrap"),
    ],
)


def _changes(request: HttpRequest, project: Project) -> HttpResponse:
    context: Context = {
        **CHANGES.context(changes_of(project), request.GET),
        "project": project,
        "tab": "audit",
        "current": "changes",
    }
    return render(request, "reports/project_audit.html", context)
