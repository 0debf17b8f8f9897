"""What stands above every page of a run: what it is, how far it is, and what to do next."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from django import template
from django.db.models import Count, Q
from django.urls import reverse

from humanjudge.http import Context
from humanjudge.lib.text import listed, number_of
from judge_eval.models import Findings, Judge, Run
from judge_eval.selectors import silent_models
from voting.selectors import queue_counts

register = template.Library()


# What a run waits for, where that is done, and on which tab.
NEXT: dict[str, tuple[str, str, str]] = {
    Run.State.DRAFT: ("Check the draft and start it", "run-draft", "draft"),
    Run.State.STOPPED: ("Resume it, or leave it stopped", "run-progress", "progress"),
    Run.State.FAILED: ("See what failed", "run-progress", "progress"),
}


class Step(NamedTuple):
    """What to do next, where that is done, and on which tab."""

    words: str
    address: str
    tab: str


# Key, title, name of its address, and whether one may open it.
Page = tuple[str, str, str, bool]
# Of a page of an app above: what one must be allowed, and whether a shared run shows it to all.
PageAbove = tuple[str, str, str, str, bool]


class Tab(NamedTuple):
    """A page of a run, by the key that its view gives as `tab`."""

    key: str
    title: str
    address: str


class RunHead(NamedTuple):
    tabs: list[Tab]
    # Behind a menu where the page is narrow; and which of them is open.
    more: list[Tab]
    current: Tab | None
    about: str
    progress: str
    done: int
    total: int
    # Only for who may do it, and not where it is done.
    step: Step | None


@register.simple_tag(takes_context=True)
def run_head(context: Context) -> RunHead:
    """Return the head of the run whose page this is; it costs the same however large the run is."""
    run, allowed, tab = context["run"], context["may"], context.get("tab", "")
    done, total, preparing = queue_counts(run.queue)
    step = _step(run, allowed, has_pending=done < total)
    return RunHead(
        *_tabs(run, tab, context["run_tabs"], allowed),
        about=_about(run),
        progress=_progress(run, done, total, preparing),
        done=done,
        total=total,
        step=None if step and step.tab == tab else step,
    )


def _tabs(
    run: Run, current: str, above: Iterable[PageAbove], allowed: Mapping[str, bool]
) -> tuple[list[Tab], list[Tab], Tab | None]:
    """Return what somebody may open: the pages that are used most, the others, and where one is."""
    has_begun, noun = run.state != Run.State.DRAFT, run.queue.noun
    reads = allowed["see"] or run.is_shared
    takes_votes = run.queue.is_open and run.state != Run.State.COMPLETE
    voting = f"Vote on {noun}s" if takes_votes else "Invites"
    first: list[Page] = [
        ("draft", "Draft", "run-draft", allowed["see_calls"] and not has_begun),
        ("board", "Board", "run", True),
        ("pairs", f"{noun.capitalize()}s", "run-pairs", reads),
        ("people", "People", "run-people", allowed["see_people"] and has_begun),
        ("progress", "Progress", "run-progress", allowed["see_calls"] and has_begun),
    ]
    others: list[Page] = [
        ("vote", voting, "run-voting", allowed["invite"]),
        ("alt-test", "Alt-Test", "run-alt-test", reads and has_begun),
        ("models", "Models", "run-models", reads and has_begun),
        *(
            (
                key,
                title,
                page,
                (is_public and run.is_shared)
                or (allowed[action.replace(" ", "_")] and (is_public or has_begun)),
            )
            for key, title, page, action, is_public in above
        ),
        ("export", "Export", "run-export", allowed["export"] and has_begun),
    ]
    tabs, more = (
        [Tab(key, title, reverse(page, args=[run.pk])) for key, title, page, may in group if may]
        for group in (first, others)
    )
    here = next((tab for tab in more if tab.key == current), None)
    # A menu of one page is none.
    return (tabs, more, here) if len(more) > 1 else (tabs + more, [], None)


def _about(run: Run) -> str:
    judges = Count("pk", filter=~Q(provider=Judge.BASELINE))
    counts = run.judges.aggregate(judges=judges, every=Count("pk"))
    numbers = {"judge": counts["judges"], "baseline": counts["every"] - counts["judges"]}
    asked = run.queue.get_kind_display()
    known = [number_of(number, thing) for thing, number in numbers.items() if number]
    return f"{asked[0].upper()}{asked[1:]} · {listed(known) if known else 'no judges'}"


def _progress(run: Run, done: int, total: int, preparing: int) -> str:
    if not total:
        return f"No {run.queue.noun}s yet"
    have = "has" if total == 1 else "have"
    words = f"{done:,} of {number_of(total, run.queue.noun)} {have} enough votes"
    return f"{words}, {preparing:,} being prepared" if preparing else words


def _step(run: Run, allowed: Mapping[str, bool], *, has_pending: bool) -> Step | None:
    """Return the one thing that gets a run on most, of what somebody may do."""
    is_open = run.state in (*Run.AT_WORK, Run.State.VOTING)
    if allowed["run"]:
        if stuck := unstuck(run, silent_models([run.pk]).get(run.pk, []) if is_open else []):
            return stuck
        if run.state == Run.State.VOTING and _has_best(run):
            return _at(run, "Stop voting: the best judge is known", "run-progress", "progress")
    if (
        allowed["invite"]
        and is_open
        and run.queue.is_open
        and has_pending
        and not run.queue.is_simulated
    ):
        return _at(run, "Invite people", "run-voting", "vote")
    return None


def unstuck(run: Run, silent: Collection[str]) -> Step | None:
    """Return what has to be done before a run gets on, given its models that never answer."""
    if silent:
        models = listed(dict.fromkeys(silent))
        words = f"Open a provider: every call to {models} failed"
        return Step(words, reverse("providers"), "")
    return _at(run, *NEXT[run.state]) if run.state in NEXT else None


def _at(run: Run, words: str, page: str, tab: str) -> Step:
    return Step(words, reverse(page, args=[run.pk]), tab)


def _has_best(run: Run) -> bool:
    claims = Findings.objects.filter(run=run, part="", data__claims__best__isnull=False)
    best = claims.values_list("data__claims__best", flat=True).first()
    return best is not None
