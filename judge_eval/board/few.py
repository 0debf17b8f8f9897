"""Figures move with every vote, and tell of single ones: who may see them.

Whoever has items to vote on that others have voted on votes first, or says on the page that is
shown instead that the figures are worth more: then later votes on these items are not blind.
"""

from dataclasses import replace
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from humanjudge.core.http import Problem
from judge_eval.board.cache import FindingsRequest, request_findings
from judge_eval.board.filters import DECIDED, WHOLE_RUN, Slice
from judge_eval.models import Findings, Run
from judge_eval.runs.access import Reader, hidden_from, is_voting, open_items_with_votes
from voting.models import Entry, Item, Project

DECIDED_PART: Final = str(Slice("ballot", DECIDED))
# Over so many items with votes, figures tell of none of them.
LEAST_ITEMS: Final = 10
WORDS: Final = (
    "This is not shown while you have {noun}s to vote on: it moves with every vote, and would tell "
    "you what others think. Vote first."
)


class VotesFirst(Problem):
    """Whoever asks for figures has some of their items to vote on."""


def require_votes_first(reader: Reader, run: Run, part: Slice = WHOLE_RUN) -> None:
    """Refuse the figures of a part of a run to a reader whom they would tell what others think.

    To other readers figures over few items are shown, and count as seen.
    """
    if not run.board.votes:
        return
    project = run.queue.project
    to_vote_on = open_items_with_votes(reader, project.pk)
    if to_vote_on.filter(pk__in=part.pairs(run).values("pk")).exists():
        raise VotesFirst(403, WORDS.format(noun=run.queue.noun))
    # Known in advance where there are many votes: to find ten different items takes longer.
    computed = Findings.objects.filter(run=run, part=str(part))
    voted = computed.values_list("data__as_of__voted", flat=True).first()
    if (voted or 0) < LEAST_ITEMS:
        _note_few_seen(reader, project, part.voted(run), run.queue.noun)


def findings_for(reader: Reader, run: Run, part: str | None) -> FindingsRequest:
    """Return the findings of a part of a run, refused where they would tell what others think.

    Where no part is named, it is what judges could be right about.
    """
    requested = request_findings(run, part or "")
    if part is None and requested.findings and requested.findings.unanswerable:
        requested = request_findings(run, DECIDED_PART)
    require_votes_first(reader, run, requested.part)
    return replace(requested, is_live=not is_voting(reader, run))


def require_votes_first_in_project(reader: Reader, project: Project) -> None:
    """Refuse figures over all votes of a project in the same way."""
    if open_items_with_votes(reader, project.pk).exists():
        raise VotesFirst(403, WORDS.format(noun="item"))
    voted = Item.objects.filter(queue__project=project, votes__gt=0).order_by()
    _note_few_seen(reader, project, voted.values_list("pk", flat=True), "item")


def _note_few_seen(
    reader: Reader, project: Project, voted: QuerySet[Item, UUID] | QuerySet[Entry, UUID], noun: str
) -> None:
    few = set(voted[:LEAST_ITEMS])
    if len(few) < LEAST_ITEMS and hidden_from(reader, project, few):
        raise VotesFirst(403, WORDS.format(noun=noun))
