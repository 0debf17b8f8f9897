"""The Alt-Test tab of a run, and how many items such a test takes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest, Problem
from humanjudge.lib.ratelimit import RateLimit
from judge_eval.findings.query import Asked
from judge_eval.models import Run
from judge_eval.pages.alt_test_shown import EPSILONS, alt_test_shown, guide
from judge_eval.pages.findings_page import (
    asked_for,
    findings_context,
    live_part,
    refuse,
    run_with_board,
)
from judge_eval.pages.findings_shown import DASH, percent
from judge_eval.stats import AltTestSettings, Figure, ItemsNeeded, items_needed

DEFAULT_EPSILON = "0.20"
FEWEST_PEOPLE = AltTestSettings().min_humans
MOST_PEOPLE = 20
MOST_CATEGORIES = 10
# Playing tests through takes up to 0.15 s of a web process.
limit = RateLimit(per_second=1, burst=8)


class ItemsForm(forms.Form):
    accuracy = forms.IntegerField(
        label="The judge is right on, %", min_value=0, max_value=100, initial=85
    )
    noise = forms.IntegerField(
        label="A person labels blindly, %", min_value=0, max_value=100, initial=20
    )
    humans = forms.IntegerField(
        label="People", min_value=FEWEST_PEOPLE, max_value=MOST_PEOPLE, initial=FEWEST_PEOPLE
    )
    categories = forms.IntegerField(
        label="Choices that people make", min_value=2, max_value=MOST_CATEGORIES, initial=3
    )
    allowed = forms.ChoiceField(
        label="Epsilon", choices=[(key, key) for key in EPSILONS], initial=DEFAULT_EPSILON
    )


@never_cache
@require_safe
def run_alt_test(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The panel; htmx asks for it again while votes come in."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    asked = asked_for(request, run)
    context = _context(request, run, asked)
    if not request.htmx:
        items = {"form": ItemsForm(initial=_initial(run, asked), label_suffix="")}
        return render(request, "judge_eval/alt_test.html", context | items)
    return live_part(request, context, "judge_eval/_alt_test.html")


def _context(request: HtmxRequest, run: Run, asked: Asked) -> dict[str, Any]:
    stored = (asked.data or {}).get("alt_test")
    deciding = stored["epsilon"] if stored else DEFAULT_EPSILON
    epsilon = request.GET.get("epsilon", deciding)
    if epsilon not in EPSILONS:
        raise Problem(400, f"epsilon: one of {', '.join(EPSILONS)}.")
    who, closing = guide()
    judge = request.GET.get("judge", "")
    return findings_context(run, asked) | {
        "tab": "alt-test",
        "test": alt_test_shown(stored, epsilon, judge) if stored else None,
        "why": (asked.data or {}).get("alt_test_why"),
        "guide": who,
        "guide_closing": closing,
    }


def _initial(run: Run, asked: Asked) -> dict[str, int]:
    """Suppose as many people as the run has, and the choices that they made."""
    stored = (asked.data or {}).get("alt_test") or {}
    people = stored.get("humans", FEWEST_PEOPLE)
    choices = stored.get("choices", len(run.queue.ballot))
    return {
        "humans": max(FEWEST_PEOPLE, min(MOST_PEOPLE, people)),
        "categories": max(2, min(MOST_CATEGORIES, choices)),
    }


@never_cache
@require_safe
def run_items_needed(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """How many items are needed: apart from the panel, since it is computed while one waits."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    form = ItemsForm(request.GET, label_suffix="")
    context: dict[str, Any] = {"run": run, "form": form}
    # Readers of a shared board have one allowance between them.
    if form.is_valid() and limit.allow(request.user.pk or "visitors"):
        context |= _played(_needed(**form.cleaned_data))
    elif form.is_valid():
        context["is_busy"] = True
    if request.htmx:  # which shows nothing of an answer that is an error
        return render(request, "judge_eval/_items_needed.html", context)
    context |= _context(request, run, asked_for(request, run))
    status = 429 if "is_busy" in context else 200
    return render(request, "judge_eval/alt_test.html", context, status=status)


def _played(needed: ItemsNeeded) -> dict[str, Any]:
    passing = [
        (size, {"value": percent(share.value or 0), "interval": _interval(share)})
        for size, share in needed.passing.items()
    ]
    return {
        "needed": needed,
        "passing": passing,
        "simulations": next(iter(needed.passing.values())).n,
    }


def _interval(share: Figure) -> str:
    low, high = share.interval or (0, 1)
    return f"{100 * low:.0f}{DASH}{100 * high:.0f}"


@lru_cache(maxsize=1024)
def _needed(accuracy: int, noise: int, humans: int, categories: int, allowed: str) -> ItemsNeeded:
    return items_needed(
        accuracy / 100,
        noise / 100,
        humans=humans,
        categories=categories,
        epsilon=float(allowed),
        simulations=max(300, min(600, 5000 // humans)),
    )
