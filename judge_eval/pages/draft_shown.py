"""What a draft will do once it is started: calls, pairs, cost, and the words that are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from humanjudge.lib.text import number_of, usd
from judge_eval.config.estimates import Estimate, Line, Plan, estimate, plan
from judge_eval.config.run_config import PromptSpec, RunConfig
from judge_eval.models import Run
from judge_eval.prompts import generate, judge
from judge_eval.runs import providers
from judge_eval.runs.lifecycle import config_of
from voting.choices import LABELS

FIRST_PROMPTS = 100


class CostLine(NamedTuple):
    """One model in one role: what it will be asked, and what that costs."""

    line: Line
    calls: str
    tokens_in: str
    tokens_out: str
    usd: str


@dataclass(frozen=True)
class Draft:
    """What a config will do and cost, and what stands in its way."""

    config: RunConfig
    spent_usd: Decimal
    plan: Plan
    estimate: Estimate
    obstacles: Sequence[str]

    @property
    def total_in_words(self) -> str:
        if not self.estimate.unpriced:
            return f"at most about {usd(self.estimate.known_usd)}"
        unpriced = number_of(len(self.estimate.unpriced), "model")
        if not self.estimate.known_usd:
            return f"not known: no price for {unpriced}"
        return f"at most about {usd(self.estimate.known_usd)}, and {unpriced} of unknown price"

    @property
    def generating_in_words(self) -> str:
        how = self.config.generation
        return _how(how.temperature, how.max_tokens)

    @property
    def judging_in_words(self) -> str:
        how = self.config.judging
        return f"prompt version {how.prompt_version}, {_how(how.temperature, how.max_tokens)}"

    @property
    def budget_in_words(self) -> str:
        budget = self.config.budget_usd
        return "no limit" if budget is None else usd(budget)

    @property
    def spent_in_words(self) -> str:
        return usd(self.spent_usd) if self.spent_usd else ""

    @property
    def counts(self) -> dict[str, str]:
        """Return how many of each thing there will be."""
        return {
            "outputs": f"{self.plan.generations:,}",
            "pairs": f"{self.plan.pairs:,}",
            "calls": f"{self.plan.verdict_calls:,}",
            "prompts": number_of(len(self.config.prompts), "prompt"),
        }

    @property
    def first_prompts(self) -> Sequence[PromptSpec]:
        return self.config.prompts[:FIRST_PROMPTS]

    @property
    def more_prompts(self) -> str:
        more = len(self.config.prompts) - FIRST_PROMPTS
        return f"{more:,}" if more > 0 else ""

    @property
    def ballot_in_words(self) -> str:
        return ", ".join(LABELS[choice] for choice in self.config.ballot)

    @property
    def votes_in_words(self) -> str:
        overlap = self.config.overlap
        more = f", {overlap.votes} on {100 * overlap.share:.3g} % of the pairs"
        votes = number_of(self.config.votes_per_pair, "vote")
        return f"{votes} per pair{more if overlap.share else ''}"

    @property
    def orders_in_words(self) -> str:
        orders = "both orders" if self.config.verdict_orders == "both" else "one order"
        samples = self.config.judging.samples
        return f"{orders}, {samples} samples" if samples > 1 else orders

    @property
    def lacks_overlap(self) -> bool:
        """Say whether no two people will vote on the same pair."""
        more = self.config.overlap.votes if self.config.overlap.share else 1
        return self.config.mode != "standard" and max(self.config.votes_per_pair, more) < 2

    @property
    def lines(self) -> list[CostLine]:
        return [
            CostLine(
                line,
                calls=f"{line.calls:,}",
                tokens_in=f"{line.prompt_tokens:,}",
                tokens_out=f"{line.completion_tokens:,}",
                usd="price not known" if line.usd is None else usd(line.usd),
            )
            for line in self.estimate.lines
        ]


def _how(temperature: float | None, max_tokens: int) -> str:
    warmth = "no temperature" if temperature is None else f"temperature {temperature:g}"
    return f"{warmth}, at most {max_tokens:,} tokens"


def draft_of(run: Run) -> Draft:
    config = config_of(run)
    names = {config.provider} | {j.provider for j in config.judges if not j.is_baseline}
    known = {name: providers.find(name) is not None for name in sorted(names)}
    cost = estimate(config, providers.prices(names))
    return Draft(
        config=config,
        spent_usd=Decimal(run.spent_nano) / providers.NANO,
        plan=plan(config),
        estimate=cost,
        obstacles=_obstacles(config, known, cost),
    )


def _obstacles(config: RunConfig, known: Mapping[str, bool], cost: Estimate) -> list[str]:
    obstacles = [
        f"There is no provider named {name}." for name, is_there in known.items() if not is_there
    ]
    if config.budget_usd is not None and cost.unpriced:
        unpriced = ", ".join(cost.unpriced)
        obstacles.append(f"A budget needs every price, and nobody has said what {unpriced} costs.")
    return obstacles


def generation_messages(config: RunConfig) -> list[dict[str, str]]:
    """Return what a generator is told, with the first prompt."""
    return _as_texts(generate.messages(config.kind, config.prompts[0].text))


def judge_messages(run: Run, config: RunConfig) -> list[dict[str, str]]:
    """Return what a judge is told, with the first prompt and places for the outputs."""
    places: tuple[str | bytes, str | bytes] = ("⟨the first output⟩", "⟨the second output⟩")
    if config.kind == "svg":
        places = (b"1", b"2")
    return _as_texts(
        judge.messages(
            config.judging.prompt_version,
            kind=config.kind,
            prompt=config.prompts[0].text,
            rubric=run.queue.rubric.text,
            ballot=run.queue.ballot,
            first=places[0],
            second=places[1],
        )
    )


def _as_texts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"role": each["role"], "text": _text_of(each["content"])} for each in messages]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)  # texts and pictures
    return "\n".join(part.get("text", "⟨the picture, as PNG⟩") for part in content)
