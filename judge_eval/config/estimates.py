"""What a run will ask for and cost, before it starts, and what one call can cost at most.

Costs are US dollars as Decimal. A price that is not known makes a cost unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from math import comb
from typing import Any, Final

from judge_eval.config.run_config import RunConfig
from judge_eval.prompts.judge import messages

# Our pictures measure at most 1024 x 1024. Published rules then give 765 tokens (GPT-4o), 1,032
# (Gemini), 1,369 (Qwen-VL) and 1,399 (Claude); this is above them all. Some models count far
# more (GPT-4o mini 25,501): such a model's price says so.
PICTURE_TOKENS: Final = 1_600
# English text has about four characters to a token; other scripts have fewer.
CHARACTERS_PER_TOKEN: Final = 4
# What stands around a prompt when a model is asked for an output.
GENERATION_OVERHEAD_TOKENS: Final = 200

_MILLION: Final = 1_000_000
_SMALLEST: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Price:
    """What an endpoint takes for a model.

    Attributes
    ----------
    input_per_million, output_per_million : Decimal
        US dollars for a million tokens.
    picture_tokens : int
        Tokens that it counts for one picture.
    """

    input_per_million: Decimal
    output_per_million: Decimal
    picture_tokens: int = PICTURE_TOKENS


# A price belongs to a model at a provider: (provider, model).
Prices = Mapping[tuple[str, str], Price]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many outputs, pairs and calls for a verdict a run has; baselines make no call."""

    generations: int
    pairs: int
    verdict_calls: int


@dataclass(frozen=True, slots=True)
class Line:
    """What one model is asked for in one role ("generate" or "judge"), and what that costs.

    Attributes
    ----------
    calls, prompt_tokens, completion_tokens : int
        Of all calls together; the last is the most that may come.
    usd : Decimal or None
        None where the price is not known.
    """

    role: str
    provider: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will cost about, every answer being as long as it may be.

    Attributes
    ----------
    usd : Decimal or None
        The whole; None as soon as one price is not known.
    known_usd : Decimal
        The part whose prices are known.
    unpriced : tuple of str
        Models whose price is not known, each once.
    lines : tuple of Line
    """

    usd: Decimal | None
    known_usd: Decimal
    unpriced: tuple[str, ...]
    lines: tuple[Line, ...]


def plan(config: RunConfig) -> Plan:
    """Count what a run will make.

    Examples
    --------
    >>> from judge_eval.config.run_config import parse
    >>> config = {"name": "r", "models": ["m", "n"], "judges": ["j", "random"], "prompts": ["p"]}
    >>> plan(parse(config))
    Plan(generations=2, pairs=1, verdict_calls=2)
    """
    pairs = len(config.prompts) * comb(len(config.models), 2)
    judges = sum(not judge.is_baseline for judge in config.judges)
    return Plan(
        generations=len(config.prompts) * len(config.models),
        pairs=pairs,
        verdict_calls=pairs * judges * _calls_per_pair(config),
    )


def estimate(config: RunConfig, prices: Prices) -> Estimate:
    """Estimate the cost of a run.

    Parameters
    ----------
    config : RunConfig
    prices : mapping of (provider, model) to Price
        Models that are not in it have no known price; one that is free has a price of 0.

    Returns
    -------
    Estimate
        Prompts count a token for four characters and `Price.picture_tokens` for a picture;
        answers count as long as they may be, so the cost is rather too high than too low.
        Repairs and retries are not in it.
    """
    lines = (*_generation_lines(config, prices), *_judging_lines(config, prices))
    known = sum((line.usd for line in lines if line.usd is not None), Decimal(0))
    unpriced = tuple(dict.fromkeys(line.model for line in lines if line.usd is None))
    return Estimate(None if unpriced else known, known, unpriced, lines)


def expected_tokens(messages: Sequence[Mapping[str, Any]], picture_tokens: int) -> int:
    """Estimate the tokens of messages: one for four characters, and those of the pictures."""
    characters, pictures = _size(messages, len)
    return _tokens(characters) + pictures * picture_tokens


def most_tokens(messages: Sequence[Mapping[str, Any]], picture_tokens: int) -> int:
    """Return the most tokens that messages can have: one for each byte of their texts.

    Examples
    --------
    >>> said = [{"role": "user", "content": "four"}]
    >>> expected_tokens(said, 0), most_tokens(said, 0)
    (1, 20)
    """
    octets, pictures = _size(messages, lambda text: len(text.encode("utf-8", "surrogatepass")))
    # A few tokens mark where a message begins and who speaks.
    return octets + 16 * len(messages) + pictures * picture_tokens


def cost(prompt_tokens: int, completion_tokens: int, price: Price) -> Decimal:
    """Return what a call cost, exactly.

    Examples
    --------
    >>> cost(1_000, 200, Price(Decimal("0.15"), Decimal("0.60")))
    Decimal('0.00027')
    """
    total = prompt_tokens * price.input_per_million + completion_tokens * price.output_per_million
    return total / _MILLION


def reservation(messages_tokens: int, max_tokens: int, price: Price) -> Decimal:
    """Return what a call can cost at most, rounded up to a millionth of a dollar.

    Parameters
    ----------
    messages_tokens : int
        From `most_tokens`, where a budget must not be passed.
    max_tokens : int
        The longest answer that is asked for.
    price : Price

    Examples
    --------
    >>> reservation(1, 0, Price(Decimal("0.15"), Decimal("0.60")))
    Decimal('0.000001')
    """
    most = cost(messages_tokens, max_tokens, price)
    return most.quantize(_SMALLEST, rounding=ROUND_CEILING)


def _calls_per_pair(config: RunConfig) -> int:
    orders = 2 if config.verdict_orders == "both" else 1
    return orders * config.judging.samples


def _generation_lines(config: RunConfig, prices: Prices) -> Iterator[Line]:
    calls = len(config.prompts)
    tokens = sum(_tokens(len(prompt.text)) for prompt in config.prompts)
    tokens += calls * GENERATION_OVERHEAD_TOKENS
    answers = calls * config.generation.max_tokens
    for model in config.models:
        price = prices.get((config.provider, model.id))
        usd = cost(tokens, answers, price) if price else None
        yield Line("generate", config.provider, model.id, calls, tokens, answers, usd)


def _judging_lines(config: RunConfig, prices: Prices) -> Iterator[Line]:
    calls = plan(config).pairs * _calls_per_pair(config)
    answers = calls * config.judging.max_tokens
    for judge in config.judges:
        if judge.is_baseline:
            continue
        price = prices.get((judge.provider, judge.id))
        picture_tokens = price.picture_tokens if price else PICTURE_TOKENS
        tokens = _judging_tokens(config, picture_tokens)
        usd = cost(tokens, answers, price) if price else None
        yield Line("judge", judge.provider, judge.id, calls, tokens, answers, usd)


def _judging_tokens(config: RunConfig, picture_tokens: int) -> int:
    """Return the prompt tokens of one judge's calls on all pairs."""
    shown = picture_tokens if config.kind == "svg" else config.generation.max_tokens
    around = messages(
        config.judging.prompt_version,
        kind=config.kind,
        prompt="",
        rubric=config.rubric,
        ballot=config.ballot,
        first="",
        second="",
    )
    characters, _ = _size(around, len)
    per_pair = [_tokens(characters + len(prompt.text)) + 2 * shown for prompt in config.prompts]
    return sum(per_pair) * comb(len(config.models), 2) * _calls_per_pair(config)


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _size(messages: Sequence[Mapping[str, Any]], measure: Callable[[str], int]) -> tuple[int, int]:
    """Return the length of all texts in messages, and the number of pictures."""
    parts: list[Mapping[str, Any]] = []
    for message in messages:
        content = message["content"]
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return sum(map(measure, texts)), sum(part["type"] == "image_url" for part in parts)
