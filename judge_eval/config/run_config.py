"""The config of a run, checked as a whole: all that is wrong with it is said at once.

The shape is PathScore's. The form, the API and the command line all come through `parse`. What it
returns is complete, every default filled in, so that a stored config means the same later.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from decimal import Decimal
from typing import Final

from judge_eval.baselines import BASELINES, names_for
from judge_eval.config.fields import ConfigError, Fields
from judge_eval.config.parts import (
    BASELINE,
    KINDS,
    MODES,
    REVEALS,
    RUBRICS,
    VERDICT_ORDERS,
    Generation,
    JudgeSpec,
    Judging,
    ModelSpec,
    Overlap,
    PromptSpec,
    RunConfig,
)
from judge_eval.prompts import judge
from judge_eval.prompts.reply_text import excerpt
from voting.choices import CHOICES, DEFAULT_BALLOT, SIDES, Choice

__all__ = ["ConfigError", "ConfigInvalid", "RunConfig", "parse", "parse_prompt_lines"]

MOST_MODELS: Final = 50
MOST_JUDGES: Final = 50
MOST_PROMPTS: Final = 5_000
MOST_TAGS: Final = 50
MOST_TOKENS: Final = 1_000_000
MOST_USD: Final = 1_000_000
LONGEST_NAME: Final = 200
LONGEST_PROVIDER: Final = 50
LONGEST_TEXT: Final = 20_000
DEFAULT_PROVIDER: Final = "default"


class ConfigInvalid(ValueError):
    """A config is wrong; the text has one line for each of its errors."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)


def parse(data: object) -> RunConfig:
    """Check a config and fill in its defaults.

    Parameters
    ----------
    data : object
        What was read from JSON. Models, judges and prompts may be plain texts.

    Raises
    ------
    ConfigInvalid
        With every error of the config, in the order in which they were met.

    Examples
    --------
    >>> config = parse({"name": "r", "models": ["m", "n"], "judges": ["j"], "prompts": ["a cat"]})
    >>> config.kind, config.ballot, config.prompts[0]
    ('svg', ('A', 'B', 'both_bad'), PromptSpec(id='1', text='a cat', tags=()))
    >>> parse({"name": "r", "models": [{"id": "m"}, {"id": ""}], "judge": ["j"], "prompts": ["p"]})
    Traceback (most recent call last):
        ...
    judge_eval.config.run_config.ConfigInvalid: models[1].id: is empty
    judges: is missing
    judge: unknown; did you mean 'judges'?
    """
    errors: list[ConfigError] = []
    config = _config(Fields(data, "", errors))
    if errors:
        raise ConfigInvalid(errors)
    return config


def parse_prompt_lines(text: str) -> list[str]:
    """Return one prompt for each line that is not blank.

    Examples
    --------
    >>> parse_prompt_lines("a cat\\n\\n  a dog \\n")
    ['a cat', 'a dog']
    """
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    return [line for line in lines if line]


def _config(run: Fields) -> RunConfig:
    kind = run.choice("kind", KINDS, "svg")
    mode = run.choice("mode", MODES, "judge_eval")
    provider = run.text("provider", DEFAULT_PROVIDER, most=LONGEST_PROVIDER)
    if provider == BASELINE:
        run.complain("provider", "is what baselines are asked through; no model answers there")
    budget = run.number("budget_usd", None, low=0, high=MOST_USD, is_above=True)
    config = RunConfig(
        name=run.text("name", most=LONGEST_NAME),
        mode=mode,
        kind=kind,
        models=_models(run, least=2 if mode == "judge_eval" else 1),
        judges=_judges(run, kind, provider),
        prompts=_prompts(run),
        rubric=run.text("rubric", RUBRICS[kind], most=LONGEST_TEXT, is_line=False),
        ballot=_ballot(run),
        votes_per_pair=run.whole("votes_per_pair", 1, low=1, high=100),
        overlap=_overlap(run.part("overlap")),
        reveal=run.choice("reveal", REVEALS, "after_each"),
        verdict_orders=run.choice("verdict_orders", VERDICT_ORDERS, "both"),
        generation=_generation(run.part("generation")),
        judging=_judging(run.part("judging")),
        provider=provider,
        budget_usd=None if budget is None else Decimal(repr(budget)),
    )
    run.close()
    return config


def _models(run: Fields, least: int) -> tuple[ModelSpec, ...]:
    models: dict[str, ModelSpec] = {}
    for item in run.items("models", "id", least=least, most=MOST_MODELS):
        name = _new_id(item, models)
        if name in BASELINES:
            item.complain("id", f"{name} is a baseline: it judges and generates nothing")
        models[name] = ModelSpec(name)
    return tuple(models.values())


def _judges(run: Fields, kind: str, provider: str) -> tuple[JudgeSpec, ...]:
    judges: dict[str, JudgeSpec] = {}
    for item in run.items("judges", "id", least=1, most=MOST_JUDGES):
        name = _new_id(item, judges)
        usual = BASELINE if name in BASELINES else provider
        own = item.text("provider", usual, most=LONGEST_PROVIDER)
        if name in BASELINES and name not in names_for(kind):
            item.complain("id", f"{name} judges drawings only; the kind of this run is {kind}")
        if (own == BASELINE) != (usual == BASELINE):
            item.complain("provider", f"{BASELINE} is the provider of all baselines and no others")
        judges[name] = JudgeSpec(name, own)
    return tuple(judges.values())


def _prompts(run: Fields) -> tuple[PromptSpec, ...]:
    prompts: dict[str, PromptSpec] = {}
    items = run.items("prompts", "text", least=1, most=MOST_PROMPTS)
    for number, item in enumerate(items, start=1):
        name = _new_id(item, prompts, default=str(number))
        text = item.text("text", most=LONGEST_TEXT, is_line=False)
        tags = item.texts("tags", most=MOST_TAGS, longest=LONGEST_NAME)
        prompts[name] = PromptSpec(name, text, tags)
    return tuple(prompts.values())


def _new_id(item: Fields, taken: Container[str], default: str | None = None) -> str:
    name = item.text("id", default, most=LONGEST_NAME)
    if name and name in taken:
        item.complain("id", f"{excerpt(name, 60)} stands twice")
    return name


def _ballot(run: Fields) -> tuple[Choice, ...]:
    ballot = run.choices("ballot", CHOICES)
    if ballot is None:
        return DEFAULT_BALLOT
    if not set(SIDES) <= set(ballot):
        run.complain("ballot", "must offer A and B")
    return ballot


def _overlap(part: Fields) -> Overlap:
    share = part.number("share", 0.0, low=0, high=1)
    overlap = Overlap(share=share or 0.0, votes=part.whole("votes", 3, low=1, high=100))
    part.close()
    return overlap


def _generation(part: Fields) -> Generation:
    generation = Generation(
        temperature=part.number("temperature", 0.7, low=0, high=2),
        max_tokens=part.whole("max_tokens", 4_000, low=1, high=MOST_TOKENS),
    )
    part.close()
    return generation


def _judging(part: Fields) -> Judging:
    versions = tuple(judge.VERSIONS)
    judging = Judging(
        temperature=part.number("temperature", 0.0, low=0, high=2),
        prompt_version=part.choice("prompt_version", versions, judge.CURRENT),
        max_tokens=part.whole("max_tokens", 400, low=1, high=MOST_TOKENS),
        samples=part.whole("samples", 1, low=1, high=25),
    )
    part.close()
    return judging
