"""The audit of a project: its ledger, entry by entry in words, and what was changed beside it.

A page has a fixed number of queries.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django import forms
from django.contrib.admin.models import LogEntry
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from humanjudge.core.http import Context
from humanjudge.core.listing import Column, Listing
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import listed, number_of
from judge_eval.models import Judge, Run
from judge_eval.runs.access import hidden_from
from judge_eval.runs.queries import Ambiguous, by_prefix
from reports.projects.page_header import project_page
from reports.quality.parameters import DEFAULT, KEY, REPUTATIONS, parameters_in
from reports.quality.views import parameters_in_words
from reports.review.views import vote_in_words
from voting.access.changes import changes_of
from voting.items.choices import short_name
from voting.ledger.decisions import GROUPS, MARGIN, VOTES_WANTED
from voting.models import Entry, Item, Project, Voter

PER_PAGE: Final = 50
# Of voters with a name that was looked for, so many are offered.
MOST_NAMED: Final = 20
_SEQ_MOST: Final = 2**63 - 1
_VOTES, _OTHERS = Q(kind=Entry.Kind.VOTE), ~Q(kind=Entry.Kind.VOTE)
KINDS: Final[dict[str, str]] = {
    Entry.Kind.VOTE: "vote",
    Entry.Kind.RETRACTION: "vote taken back",
    Entry.Kind.VERDICTS: "verdicts",
    Entry.Kind.DECISION: "decision",
    Entry.Kind.PARAMETERS: "parameters",
    Entry.Kind.ERASURE: "erasure",
    Entry.Kind.OBJECT: "run or judge",
}
DECISIONS: Final = {
    "keep": "keeps",
    "exclude": "excludes",
    "another_round": "asks for another round of votes on",
    "note": "writes a note on",
    "send_back": "asks a voter for another answer on",
}
IMPORTS: Final = {
    "begins": "An import begins: the votes up to its end came all at once",
    "ends": "The import ends here",
}
SOME_VOTES: Final = "Votes wanted on some items were changed"
# Of voters who were put into groups at once.
MOST_GROUPS: Final = 5
CLOSED: Final = "You have not voted on this yet; its votes and verdicts are shown once you have."


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
        fields = {name: self.data.get(name) for name in self.fields} | changes
        return "?" + urlencode({name: str(value) for name, value in fields.items() if value})


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
    rows = _entries_from(rows, form.project, start, by_time=by_time) if start else rows
    order = ("-at", "-seq") if by_time else ("-seq",)
    filters = [_VOTES, _OTHERS] if run or by_time else [Q()]
    if kind := cleaned["kind"]:
        filters = [Q(kind=kind) & (_VOTES if kind == Entry.Kind.VOTE else _OTHERS)]
    keys = [
        key
        for part in filters
        for key in rows.filter(part).order_by(*order).values_list("at", "seq", "pk")[: PER_PAGE + 1]
    ]
    newest = sorted(keys, key=lambda key: key[:2] if by_time else key[1:2], reverse=True)
    return loaded([pk for _, _, pk in newest[: PER_PAGE + 1]])


def _entries_from(
    rows: QuerySet[Entry], project: Project, seq: int, *, by_time: bool
) -> QuerySet[Entry]:
    """Return the entries from a number on, where they stand by their times from its time on."""
    entry_time = Entry.objects.filter(project=project, seq=seq).values_list("at", flat=True).first()
    if not by_time or entry_time is None:
        return rows.filter(seq__lte=seq)
    return rows.filter(Q(at__lt=entry_time) | Q(seq__lte=seq), at__lte=entry_time)


# --- the page -------------------------------------------------------------------------------------


@project_page("see people")
def audit(request: HttpRequest, project: Project) -> HttpResponse:
    if request.GET.get("show") == "changes":
        changes = CHANGES.context(changes_of(project), request.GET)
        about = {"project": project, "tab": "audit", "current": "changes"}
        return render(request, "reports/projects/project_audit.html", {**changes, **about})
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
    return render(request, "reports/projects/project_audit.html", context, status=status)


CHANGES: Final = Listing[LogEntry](
    "Changes",
    [
        Column("Change", lambda change: change.get_change_message(), css="long"),
        Column("By", lambda change: change.user.get_username()),
        Column("When", lambda change: f"{change.action_time:%-d %b %Y %H:%M:%S} UTC", css="nowrap"),
    ],
)


# --- entries in words ----------------------------------------------------------------------------


class AuditLine(NamedTuple):
    entry: Entry
    kind: str
    words: str
    hash: str
    # What it is about: how that is called, and where it is.
    title: str
    href: str
    is_closed: bool


def loaded(keys: Sequence[int]) -> list[Entry]:
    """Return entries in this order with what is said of them, as `payload_read`.

    Parameters are left out: some name every item of a queue.
    """
    payload = Case(When(~Q(kind=Entry.Kind.PARAMETERS), then=F("payload")))
    entries = Entry.objects.filter(pk__in=keys).defer("payload", "target__payload")
    rows = (
        entries.select_related("voter", "item", "queue", "target")
        .annotate(payload_read=payload)
        .in_bulk()
    )
    return [rows[pk] for pk in keys]


def lines_of(
    project: Project, entries: Sequence[Entry], closed: Collection[UUID]
) -> list[AuditLine]:
    """Say what loaded entries say, but for what is about `closed` items."""
    teller = _EntryWords(project, entries)
    return [teller.line(entry, is_closed=entry.item_id in closed) for entry in entries]


class _EntryWords:
    def __init__(self, project: Project, entries: Sequence[Entry]) -> None:
        runs = Run.every.filter(queue__in={entry.queue_id for entry in entries})
        self.runs = {
            queue: (pk, name) for queue, pk, name in runs.values_list("queue", "pk", "name")
        }
        pseudonyms = set(filter(None, (_fact(entry, "by") for entry in entries)))
        voters = Voter.objects.filter(project=project, pseudonym__in=pseudonyms)
        self.names = {voter.pseudonym: str(voter) for voter in voters}
        judged_by = {judge for entry in entries for judge, _ in _verdicts(entry)}
        judged_by |= {_fact(entry, "judge") for entry in entries}
        judged_by = {judge for judge in judged_by if is_uuid(judge)}
        judges = Judge.objects.filter(run__queue__project=project, pk__in=judged_by)
        self.judges = {str(pk): name for pk, name in judges.values_list("pk", "name")}
        self.changes = _changes_by([e.pk for e in entries if e.kind == Entry.Kind.PARAMETERS])

    def line(self, entry: Entry, *, is_closed: bool) -> AuditLine:
        words, digest = CLOSED if is_closed else self.words(entry), bytes(entry.hash or b"").hex()
        return AuditLine(entry, KINDS[entry.kind], words, digest, *self.place(entry), is_closed)

    def place(self, entry: Entry) -> tuple[str, str]:
        """Return what an entry is about, and where that is; what a deleted run had is nowhere."""
        if entry.queue is None:
            return "", ""
        run, name = self.runs.get(entry.queue.pk, (None, entry.queue.name))
        if entry.item is None:
            return name, reverse("run", args=[run]) if run else ""
        title = f"{entry.queue.noun} {entry.item.position + 1:,} of {name}"
        return title, reverse("run-pair", args=[run, entry.item.pk]) if run else ""

    def words(self, entry: Entry) -> str:
        match entry.kind:
            case Entry.Kind.VOTE:
                return _vote(entry)
            case Entry.Kind.RETRACTION:
                return f"{_voter_name(entry)} took back the vote of entry {_target(entry)}"
            case Entry.Kind.VERDICTS:
                answers = [
                    f"{self.judges.get(judge, 'a judge')} said {short_name(winner) or 'nothing'}"
                    for judge, winner in _verdicts(entry)
                ]
                return ", ".join(answers) or "It opened for voting; no judge was asked"
            case Entry.Kind.OBJECT:
                name = self.judges.get(_fact(entry, "id")) or f"The {_fact(entry, 'type')}"
                return f"{name} was made or changed"
            case Entry.Kind.DECISION:
                return self.decision(entry)
            case Entry.Kind.PARAMETERS:
                words = self.changes.get(entry.pk, "Parameters were set")
                return f"{words}, by {_voter_name(entry)}" if entry.voter else words
            case _ if voter := _fact(entry, "voter"):
                return f"The person behind {voter} was forgotten; the votes stay, without a name"
            case _:
                return "A run was deleted; what was voted in it stays, without its texts"

    def decision(self, entry: Entry) -> str:
        pseudonym, action = _fact(entry, "by"), _fact(entry, "action")
        curator = self.names.get(pseudonym, pseudonym) or "Somebody"
        if action == "reverse":
            return f"{curator} takes back the decision of entry {_target(entry)}"
        about = "it" if entry.item_id else f"all votes of {_voter_name(entry)}"
        if judge := _fact(entry, "judge"):
            about = f"the judge {self.judges.get(judge, 'of before')} from all figures"
        return f"{curator} {DECISIONS.get(action, 'decides about')} {about}"


def _payload(entry: Entry) -> JsonObject:
    read = entry.payload_read  # type: ignore[attr-defined]
    return read if isinstance(read, dict) else {}


def _fact(entry: Entry, name: str) -> str:
    return str(_payload(entry).get(name, ""))


def _verdicts(entry: Entry) -> list[tuple[str, str]]:
    rows = _payload(entry).get("verdicts")
    return [
        (str(row.get("judge")), str(row.get("winner") or ""))
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
    ]


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _voter_name(entry: Entry) -> str:
    voter = entry.voter
    if voter is None:
        return "somebody"
    return f"{voter.name} ({voter.pseudonym})" if voter.name else voter.pseudonym


def _target(entry: Entry) -> str:
    return f"{entry.target.seq:,}" if entry.target and entry.target.seq else "that is not known"


def _vote(entry: Entry) -> str:
    notes = [
        "a pretended vote" if entry.simulated else "",
        f"taken back by entry {entry.retracted_seq:,}" if entry.retracted_seq else "",
        "left out by a decision" if entry.excluded else "",
    ]
    noted = "; ".join(filter(None, notes))
    words = f"{_voter_name(entry)} chose {vote_in_words(entry)}"
    return f"{words} ({noted})" if noted else words


# --- parameters -----------------------------------------------------------------------------------


def _changes_by(keys: Sequence[int]) -> dict[int, str]:
    rule = f"payload__{VOTES_WANTED}__votes_per_item"
    rows = Entry.objects.filter(pk__in=keys).annotate(
        quality_before=_before(KEY, f"payload__{KEY}"),
        rule_before=_before(
            VOTES_WANTED,
            rule,
            queue=OuterRef("queue"),
            **{f"payload__{VOTES_WANTED}__has_key": "votes_per_item"},
        ),
        rule=KT(rule),
        has_reputations=Q(payload__has_key=REPUTATIONS),
        has_votes=Q(payload__has_key=VOTES_WANTED),
    )
    names = (
        *("payload__import", f"payload__{MARGIN}"),
        *(f"payload__{GROUPS}", f"payload__{KEY}", "quality_before"),
        *("rule", "rule_before", "has_reputations", "has_votes"),
    )
    changed = rows.values_list("pk", *names)
    return {pk: words for pk, *values in changed if (words := _change(*values))}


def _before(key: str, path: str, **about: Any) -> Subquery:
    """Return what the last entry before one set; as text, as a rule is a plain number."""
    earlier: QuerySet[Entry] = Entry.objects.filter(
        project=OuterRef("project"),
        kind=Entry.Kind.PARAMETERS,
        payload__has_key=key,
        seq__lt=OuterRef("seq"),
        **about,
    )
    return Subquery(earlier.order_by("-seq").annotate(what=KT(path)).values("what")[:1])


def _change(
    importing: object,
    margin: object,
    groups: object,
    quality: object,
    quality_before: object,
    rule: object,
    rule_before: object,
    has_reputations: bool,
    has_votes: bool,
) -> str:
    if importing is not None:
        return IMPORTS.get(str(importing), "Something about an import")
    if margin is not None:
        return f"Practically the same are judges within a share of {margin}"
    if isinstance(groups, Mapping) and groups:
        changes = [f"{voter} to {group or 'none'}" for voter, group in groups.items()]
        if len(changes) > MOST_GROUPS:
            changes[MOST_GROUPS:] = [number_of(len(changes) - MOST_GROUPS, "other")]
        return f"Groups of voters: {listed(changes)}"
    if quality is not None:
        old, new = _parameters(quality_before), parameters_in_words(parameters_in({KEY: quality}))
        changed = [f"{name} {old[name]} → {new[name]}" for name in new if old[name] != new[name]]
        changed += ["earlier votes weigh by the reputations of then"] * has_reputations
        return f"Quality score: {'; '.join(changed) or 'as before'}"
    if rule is not None:
        before = f"{rule_before} → " if rule_before is not None else ""
        return f"Votes wanted per item: {before}{rule}"
    return SOME_VOTES if has_votes else ""


def _parameters(text: object) -> dict[str, str]:
    try:
        return parameters_in_words(parameters_in({KEY: json.loads(str(text))}))
    except ValueError:
        return parameters_in_words(DEFAULT)
