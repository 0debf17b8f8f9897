"""Prompts to begin with, by REST: PathScore's command line asks for them as a sign of life."""

from typing import Any

from django.http import HttpRequest
from ninja import Schema

from judge_eval.demo import content
from judge_eval.runs.api_access import KeyRouter, key_of
from voting.models import ApiKey

router = KeyRouter("prompts")


class PromptOut(Schema):
    id: str
    text: str
    category: str


@router.get("", response=list[PromptOut])
def list_default_prompts(request: HttpRequest) -> Any:
    """The prompts of the demo's drawings, in the shape that a config takes them."""
    key_of(request, ApiKey.Scope.READ)
    return [
        PromptOut(id=prompt.slug, text=prompt.text, category=next(iter(prompt.tags), ""))
        for prompt in content.load("svg")
    ]
