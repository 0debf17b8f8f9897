"""Of which family a model is, by its name: judges may favour outputs of their own."""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

Families: TypeAlias = Mapping[str, str]
# By what names start with: of models, or of those who offer them (`anthropic/claude-…`).
FAMILIES: Final[Families] = {
    "ai21": "ai21 jamba",
    "alibaba": "qwen qwq",
    "amazon": "amazon nova",
    "anthropic": "anthropic claude",
    "cohere": "cohere command",
    "deepseek": "deepseek",
    "google": "google gemini gemma palm",
    "meta": "meta llama",
    "microsoft": "microsoft phi",
    "mistral": "codestral magistral ministral mistral mistralai mixtral",
    "moonshot": "kimi moonshot moonshotai",
    "openai": "openai chatgpt gpt o1 o3 o4 davinci text-davinci",
    "xai": "x-ai grok",
    "zhipu": "glm zhipu",
}
_FAMILY: Final = {start: family for family, starts in FAMILIES.items() for start in starts.split()}


LONGEST_NAME: Final = 200


def parse_families(text: str) -> dict[str, str]:
    """Read families, one per line: what names of models start with, and their family.

    Raises ValueError with the first line that is none.

    Examples
    --------
    >>> parse_families("house-7b = Meta\\n\\ntuned-=openai")
    {'house-7b': 'meta', 'tuned-': 'openai'}
    """
    families = {}
    for line in filter(None, map(str.strip, text.lower().splitlines())):
        start, _, family = map(str.strip, line.partition("="))
        if not (start and family and len(line) <= LONGEST_NAME):
            raise ValueError(f"{line[:LONGEST_NAME]!r} must be like: house-7b = meta")
        families[start] = family
    return families


def family_of(model: str, own_families: Families | None = None) -> str:
    """Return the family of a model; empty where its name does not tell.

    `own_families` are families that somebody has set, by what names start with; they come first.

    Examples
    --------
    >>> [family_of(name) for name in ("gpt-4o", "gpt4_pair", "router/openai/o3", "alpaca-13b")]
    ['openai', 'openai', 'openai', '']
    >>> family_of("house-7b-v2", {"house-7b": "meta"})
    'meta'
    """
    for families in (own_families or {}, _FAMILY):
        starts = "|".join(map(re.escape, sorted(families, key=len, reverse=True)))
        if starts and (match := re.search(rf"(?:^|/)({starts})(?![a-z])", model.lower())):
            return families[match[1]]
    return ""


def share_family(generator: str, judges: list[str], own_families: Families) -> bool | None:
    """Say whether a generator is of the family of one of the models that judge.

    None where that is not known.
    """
    family = family_of(generator, own_families)
    others = {family_of(judge, own_families) for judge in judges} - {""}
    return family in others if family and others else None
