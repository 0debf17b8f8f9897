"""The calls of a run that failed: by model and reason, one by one, and what a model replied."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from humanjudge.core.http import HtmxRequest, Problem
from humanjudge.core.listing import page_of
from judge_eval.judging.providers.errors import LEFT_OUT, PERMANENT_BEGINNINGS
from judge_eval.models import Call, Run, Verdict
from judge_eval.runs import lifecycle, queries
from judge_eval.runs.access import closed_to, refusal
from judge_eval.runs.run_page import run_page
from voting.models import Item

FAILED, WAITING = Call.State.FAILED, Call.State.WAITING
CALLS_PER_PAGE = 20
MOST_VERDICTS = 50
LONGEST_REPLY = 20_000


@run_page("see calls")
def run_calls(request: HtmxRequest, run: Run) -> HttpResponse:
    """The calls that failed for good, by model and reason, and each, without their long replies."""
    groups = queries.failed_calls(run)
    failed_calls = run.calls.filter(purpose__in=queries.THINGS, state=FAILED)
    calls = failed_calls.select_related("verdict__item").defer("reply")
    page = page_of(calls.order_by("-pk"), request.GET, CALLS_PER_PAGE)
    # Verdicts that failed although no call did: a baseline's, or orders that do not fit.
    no_call = ~Exists(Call.objects.filter(verdict=OuterRef("pk"), state=FAILED))
    failed = Verdict.objects.filter(
        no_call, judge__run=run, state=Verdict.State.FAILED, item__unusable=""
    )
    latest = failed.select_related("judge", "item").order_by("-pk")
    verdicts = list(latest[: MOST_VERDICTS + 1])
    project = run.queue.project_id
    about = [call.verdict.item_id for call in page if call.verdict is not None]
    about += [group["item"] for group in groups if group["item"]]
    closed = closed_to(request, [*about, *(v.item_id for v in verdicts)], project)
    # What a judge replied may stand in the reason; that it cannot be called tells nothing.
    untold = [
        group["example"]
        for group in groups
        if group["item"] in closed and not group["error"].startswith(PERMANENT_BEGINNINGS)
    ]
    context = {
        "run": run,
        "untold": untold,
        "left_out": LEFT_OUT,
        "groups": groups,
        "can_retry": lifecycle.can_retry(run),
        "page": page,
        "refused": _refused_verdicts(verdicts[:MOST_VERDICTS], closed),
        "has_more_verdicts": len(verdicts) > MOST_VERDICTS,
        "closed": closed,
        "tab": "run",
    }
    return render(request, "judge_eval/judging/calls.html", context)


@dataclass
class RefusedVerdicts:
    judge: str
    reason: str
    items: list[Item] = field(default_factory=list)


def _refused_verdicts(
    verdicts: Sequence[Verdict], closed: Collection[UUID]
) -> Collection[RefusedVerdicts]:
    groups: dict[tuple[str, str], RefusedVerdicts] = {}
    for verdict in verdicts:
        judge = verdict.judge.name
        reason = "" if verdict.item_id in closed else verdict.error
        group = groups.setdefault((judge, reason), RefusedVerdicts(judge, reason))
        group.items.append(verdict.item)
    return groups.values()


@run_page("see calls")
def run_call(request: HtmxRequest, run: Run, call_id: int) -> HttpResponse:
    """The raw reply of a call; what a judge said only to who may see its pair."""
    calls = run.calls.filter(purpose__in=queries.THINGS).exclude(state=WAITING)
    call = get_object_or_404(calls.select_related("verdict__item"), pk=call_id)
    if call.verdict and (refused := refusal(request, "see", run, call.verdict.item)):
        return refused
    output = call.inference_id
    pairs = Item.objects.filter(Q(a=output) | Q(b=output)) if output else Item.objects.none()
    if closed_to(request, pairs.values_list("pk", flat=True), run.queue.project_id):
        raise Problem(403, "You have this output open for voting; who made it is shown after that.")
    context = {
        "run": run,
        "call": call,
        "reply": call.reply[:LONGEST_REPLY],
        "is_cut": len(call.reply) >= LONGEST_REPLY,
        "tab": "run",
    }
    template = "judge_eval/judging/_reply.html" if request.htmx else "judge_eval/judging/call.html"
    return render(request, template, context)
