"""Who may see boards, pairs and calls of a run, as `voting.access.roles` says of its project.

Never a voter who could still vote on what they show. Boards and pairs of a run that is shared are
for everybody. Calls name models and quote judges, so they are for members alone; one who also votes
is kept from what was said of the pairs that are still open to them.

Whatever shows votes or verdicts of single items calls `hidden_from`: it returns the items that the
reader has to vote on first, and notes that the reader has seen the others. `findings.few` does the
same for figures. A reader is a browser, by its login and the cookies of voters, or
a key, which is also the person whose it is.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from humanjudge.core.http import HtmxRequest, problem
from judge_eval.models import Run
from voting.access import roles
from voting.access.roles import Action
from voting.ballot import tuning
from voting.ballot.queries import chunks, left_to, released_by_me
from voting.ballot.services import record_exposure
from voting.models import ApiKey, Assignment, Entry, Exposure, Item, Project, Queue, Voter
from voting.people.voters import voter_id_here, voter_of_key, voter_of_user

_ITEMS_AT_ONCE: Final = 500
# Keys with either are voters of their own.
_ABOUT_VOTES: Final = frozenset({ApiKey.Scope.VOTE, ApiKey.Scope.VERDICTS})
# It takes a role in the project.
ROLE: Final = "role"
VOTE_FIRST = (
    "You still have {noun}s to vote on, and the board would tell you what others think. "
    "Vote first; evaluators can log in."
)
Reader: TypeAlias = HttpRequest | ApiKey | User
PAIR_IS_OPEN = "You have not voted on this {noun} yet. Its page opens once you have."


def can(reader: HttpRequest | ApiKey, action: Action, run: Run) -> bool:
    """Say whether a visitor, or who holds a key, may do it.

    A key that votes blindly, with the scope `vote` and without `verdicts`, sees nothing of what
    others think while it has pairs to vote on.
    """
    if isinstance(reader, HttpRequest):
        return not _obstacle(reader, action, run)
    if not roles.can(reader, action, run.queue.project_id):
        return False
    if ApiKey.Scope.VOTE not in reader.scopes or ApiKey.Scope.VERDICTS in reader.scopes:
        return True
    return not has_pairs_left([voter_of_key(run.queue.project_id, reader)], run)


def _obstacle(request: HttpRequest, action: Action, run: Run, pair: Item | None = None) -> str:
    """Say what somebody has to do first; nothing where they may.

    Not even a role helps a voter who has the pair open: it is the same pair of eyes.
    """
    if pair is not None and to_vote_on(request, [pair.pk], run.queue.project_id):
        return PAIR_IS_OPEN.format(noun=run.queue.noun)
    if pair is not None and run.queue.is_tuning and pair.is_held_out:
        return tuning.WORDS.format(noun=run.queue.noun)
    if roles.can(request.user, action, run.queue.project_id):
        return ""
    if action == "see people":
        return ROLE
    if has_pairs_left(voters_of(request, run.queue.project_id), run):
        return VOTE_FIRST.format(noun=run.queue.noun)
    return "" if run.is_shared and action == "see" else ROLE


def refusal(
    request: HtmxRequest, action: Action, run: Run, pair: Item | None = None
) -> HttpResponse | None:
    """Return the answer to who may not do it, None to who may.

    Who is let in to a pair has seen its verdicts, so a later vote of theirs on it is not blind.
    """
    roles.note_project(request, run.queue.project_id)
    obstacle = _obstacle(request, action, run, pair)
    if not obstacle:
        if pair is not None:
            note_seen(request, run.queue.project, {pair.pk})
        return None
    if obstacle == ROLE:
        roles.require(request, action, run.queue.project_id)
    way_out = ("Go on voting", reverse("vote", args=[run.queue_id]))
    return problem(request, 403, obstacle, action=way_out)


# --- whoever votes blind ------------------------------------------------------------------------


def hidden_from(reader: Reader, project: Project, items: Collection[UUID]) -> set[UUID]:
    """Return those of a project's items whose votes and verdicts a reader may not see yet.

    The others count as seen from now on: a later vote of the reader on them is not blind.
    """
    hidden = closed_to(reader, items, project.pk)
    note_seen(reader, project, {*items} - hidden)
    return hidden


def visible(reader: Reader, run: Run, rows: Collection[Any]) -> list[Any]:
    """Return those rows about items of a run, known by their positions, that a reader may see."""
    items = run.queue.items.filter(position__in=[row.position for row in rows])
    places = dict(items.values_list("pk", "position"))
    hidden = {places[pk] for pk in hidden_from(reader, run.queue.project, places)}
    return [row for row in rows if row.position not in hidden]


def voters_of(reader: Reader, *projects: UUID) -> list[Voter]:
    """Return as whom a reader may vote in projects: by invite, by login, or as a key."""
    voter_ids, person = [], _person(reader)
    if isinstance(reader, ApiKey) and _ABOUT_VOTES.intersection(reader.scopes):
        voter_ids = [voter_of_key(project, reader).pk for project in projects]
    elif isinstance(reader, HttpRequest):
        voter_ids = [pk for project in projects if (pk := voter_id_here(reader, project))]
    mine = Q(pk__in=voter_ids) | Q(user=person) if person else Q(pk__in=voter_ids)
    voters = Voter.objects.filter(mine, project__in=projects, blocked_at=None)
    return list(voters) if voter_ids or person else []


def _person(reader: Reader) -> User | None:
    """Return who is logged in, or whose key it is; with a model's key a program logs."""
    if isinstance(reader, ApiKey) and reader.kind == ApiKey.Kind.MODEL:
        return None
    user = reader if isinstance(reader, User) else reader.user
    # Who is not logged in is another class.
    return user if isinstance(user, User) else None


def note_seen(reader: Reader, project: Project, items: Collection[UUID]) -> None:
    """Note that a reader has seen what others think of items.

    A member who only reads may vote one day; what was seen before must be known then.
    """
    if not items:
        return
    voters, person = voters_of(reader, project.pk), _person(reader)
    if person and all(voter.user_id is None for voter in voters):
        voters.append(voter_of_user(project, person))
    for voter in voters:
        old = Exposure.objects.filter(voter=voter, item__in=items).values_list("item", flat=True)
        if new := {*items}.difference(old):
            record_exposure(voter.pk, new, timezone.now())


def note_runs_seen(reader: Reader, runs: Iterable[Run]) -> None:
    """Note that a reader has been given all verdicts and votes of runs."""
    for run in runs:
        for items in chunks(run.queue.items.only("queue", "position"), "position", _ITEMS_AT_ONCE):
            note_seen(reader, run.queue.project, [item.pk for item in items])


def closed_to(reader: Reader, items: Collection[UUID], *projects: UUID) -> set[UUID]:
    """Return those items whose votes and verdicts a reader may not see: first to be voted on, or
    held out from everybody while judges are tuned.
    """
    return to_vote_on(reader, items, *projects) | tuning.kept_back(items)


def to_vote_on(reader: Reader, items: Collection[UUID], *projects: UUID) -> set[UUID]:
    """Return those items, of these projects, that a reader could still vote on, blind."""
    open_ones = open_items(reader, *projects) if items else Item.objects.none()
    return set(open_ones.filter(pk__in=items).values_list("pk", flat=True))


def open_items(reader: Reader, *projects: UUID) -> QuerySet[Item]:
    """Return all items of some projects that a reader could still vote on, blind.

    What the reader has seen before, they cannot.
    """
    voters = voters_of(reader, *projects)
    if isinstance(reader, ApiKey) and ApiKey.Scope.VERDICTS in reader.scopes:
        voters = [voter for voter in voters if voter.api_key_id is None]
    return left_to(voters).exclude(_exposure_of(voters)) if voters else Item.objects.none()


def _exposure_of(voters: Collection[Voter]) -> Exists:
    return Exists(Exposure.objects.filter(voter__in=voters, item=OuterRef("pk")))


def open_items_with_votes(reader: Reader, *projects: UUID) -> QuerySet[Item]:
    """Return those of `open_items` on which what moves with every vote would tell the next one."""
    return open_items(reader, *projects).filter(votes__gt=0)


def has_pairs_left(voters: Collection[Voter], run: Run) -> bool:
    return bool(voters) and _left_in(voters, run).exists()


def _left_in(voters: Collection[Voter], run: Run) -> QuerySet[Item]:
    return left_to(voters).filter(released_by_me(*voters), queue=run.queue_id)


def is_voting(reader: Reader, run: Run) -> bool:
    """Say whether somebody was handed pairs of the run and could still vote on some, blind."""
    voters = voters_of(reader, run.queue.project_id)
    handed = Assignment.objects.filter(voter__in=voters, item__queue=run.queue_id)
    if not voters or not handed.exists():
        return False
    return _left_in(voters, run).exclude(_exposure_of(voters)).exists()


def may_be_stopped(reader: HttpRequest | ApiKey, run: Run) -> bool:
    """Say whether somebody runs an open study, or votes in it, and may be told that it is enough.

    Whoever reads what a closed one has found never is.
    """
    if not run.queue.is_open:
        return False
    voters = voters_of(reader, run.queue.project_id)
    votes = Entry.objects.filter(queue=run.queue_id, voter__in=voters, kind=Entry.Kind.VOTE)
    return can(reader, "run", run) or votes.exists()


def board_address(queue: Queue, user: AbstractBaseUser | AnonymousUser) -> str:
    run = Run.objects.filter(queue=queue).first()
    is_readable = run is not None and (run.is_shared or roles.can(user, "see", queue.project_id))
    return reverse("run", args=[run.pk]) if run is not None and is_readable else ""


def reveal_address(vote: UUID) -> str:
    return reverse("reveal", args=[vote])
