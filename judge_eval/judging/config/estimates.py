"""What a run will ask for and cost, before it starts, and what one call can cost at most.

Costs are US dollars as Decimal. A price that is not known makes a cost unknown, never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from math import comb
from typing import Annotated, Final

from pydantic import Field, PlainSerializer

from humanjudge.core.validation import INTEGER, Part
from judge_eval.judging.config.run_config import JudgeSpec, RunConfig
from judge_eval.judging.prompts.judge import Message, messages
from voting.items.conversations import messages_of

# Our pictures measure at most 1024 x 1024. Published rules then give 765 tokens (GPT-4o), 1,032
# (Gemini), 1,369 (Qwen-VL) and 1,399 (Claude); this is above them all. Some models count far
# more (GPT-4o mini 25,501): such a model's price says so.
PICTURE_TOKENS: Final = 1_600
# English text has about four characters to a token; other scripts have fewer.
CHARACTERS_PER_TOKEN: Final = 4
# What stands around a prompt when a model is asked for an output.
GENERATION_OVERHEAD_TOKENS: Final = 200
# What encloses a turn of a conversation when a judge is asked, in characters.
_FRAME: Final = 160

_MILLION: Final = 1_000_000
_SMALLEST: Final = Decimal("0.000001")


_Rate = Annotated[Decimal, Field(strict=False, ge=0, allow_inf_nan=False)]


class Price(Part):
    """What an endpoint takes for a model: US dollars for a million tokens, tokens for a picture."""

    input: _Rate
    output: _Rate
    picture_tokens: Annotated[int, Field(ge=0), INTEGER] = PICTURE_TOKENS


# Exact here, and a number in JSON.
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float)]
# A price belongs to a model at a provider: (provider, model).
Prices = Mapping[tuple[str, str], Price]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many outputs, pairs and calls for a verdict a run has; baselines make no call.

    Of a run of single items `pairs` counts these.
    """

    generations: int
    pairs: int
    verdict_calls: int


@dataclass(frozen=True, slots=True)
class Line:
    """What one model is asked for in one role ("generate" or "judge"), and what that costs.

    The figures are of all calls together; of completion tokens it is the most that may come.
    """

    role: str
    provider: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: Usd | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will cost about, every answer being as long as it may be.

    `usd` is None as soon as one price is not known; `known_usd` is the part whose prices are.
    """

    usd: Usd | None
    known_usd: Usd
    # Models whose price is not known, each once.
    unpriced: tuple[str, ...]
    lines: tuple[Line, ...]


def plan(config: RunConfig) -> Plan:
    """Count what a run will make.

    >>> from judge_eval.judging.config.run_config import parse
    >>> config = {"name": "r", "models": ["m", "n"], "judges": ["j", "random"], "prompts": ["p"]}
    >>> plan(parse(config))
    Plan(generations=2, pairs=1, verdict_calls=2)
    """
    pairs = len(config.prompts) * comb(len(config.models), 1 if config.items else 2)
    calls = sum(len(judge.models) * calls_per_verdict(config, judge) for judge in config.judges)
    return Plan(
        generations=len(config.prompts) * len(config.models),
        pairs=pairs,
        verdict_calls=pairs * calls,
    )


def calls_per_verdict(config: RunConfig, judge: JudgeSpec) -> int:
    """Return how often a model is asked about one item: in each order, for each sample and repeat.

    Of a judge of several models it is each of them.
    """
    is_both = (judge.orders or config.verdict_orders) == "both"
    orders = 2 if is_both and not config.items else 1
    return orders * (judge.samples or config.judging.samples) * judge.repeats


def estimate(config: RunConfig, prices: Prices) -> Estimate:
    """Estimate the cost of a run; models that are not in `prices` have no known price.

    Prompts count a token for four characters and `Price.picture_tokens` for a picture; answers
    count as long as they may be, so the cost is rather too high than too low. Repairs and retries
    are not in it.
    """

    def line(role: str, model: tuple[str, str], calls: int, tokens: int, answer: int) -> Line:
        price = prices.get(model)
        usd = cost(tokens, calls * answer, price) if price else None
        return Line(role, *model, calls, tokens, calls * answer, usd)

    prompts = len(config.prompts)
    tokens = sum(
        _tokens(len(prompt.text)) + GENERATION_OVERHEAD_TOKENS for prompt in config.prompts
    )
    lines = [
        line("generate", (config.provider, model.id), prompts, tokens, most.max_tokens)
        for model, most in (
            (model_spec, config.generation.for_model(model_spec)) for model_spec in config.models
        )
    ]
    pairs = plan(config).pairs
    models = [(judge_spec, model) for judge_spec in config.judges for model in judge_spec.models]
    for spec, model in models:
        judge = (model.provider, model.id)
        price, calls = prices.get(judge), pairs * calls_per_verdict(config, spec)
        tokens = _judging_tokens(config, price.picture_tokens if price else PICTURE_TOKENS)
        tokens *= calls // max(prompts, 1)
        most = config.judging.for_model(model).max_tokens
        lines.append(line("judge", judge, calls, tokens, most))
    total = sum((line.usd for line in lines if line.usd is not None), Decimal(0))
    unpriced = tuple(dict.fromkeys(line.model for line in lines if line.usd is None))
    return Estimate(None if unpriced else total, total, unpriced, tuple(lines))


def most_tokens(messages: Sequence[Message], picture_tokens: int) -> int:
    """Return the most tokens that messages can have: one for each byte of their texts.

    >>> most_tokens([{"role": "user", "content": "four"}], 0)
    20
    """
    texts, pictures = _texts(messages)
    octets = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    # A few tokens mark where a message begins and who speaks.
    return octets + 16 * len(messages) + pictures * picture_tokens


def cost(prompt_tokens: int, completion_tokens: int, price: Price) -> Decimal:
    """Return what a call cost, exactly.

    >>> cost(1_000, 200, Price(input=Decimal("0.15"), output=Decimal("0.60")))
    Decimal('0.00027')
    """
    return (prompt_tokens * price.input + completion_tokens * price.output) / _MILLION


def reservation(messages_tokens: int, max_tokens: int, price: Price) -> Decimal:
    """Return what a call can cost at most, rounded up to a millionth of a dollar.

    `messages_tokens` come from `most_tokens`, `max_tokens` is the longest answer that is asked for.

    >>> reservation(1, 0, Price(input=Decimal("0.15"), output=Decimal("0.60")))
    Decimal('0.000001')
    """
    most = cost(messages_tokens, max_tokens, price)
    return most.quantize(_SMALLEST, rounding=ROUND_CEILING)


def _judging_tokens(config: RunConfig, picture_tokens: int) -> int:
    output_tokens = (
        picture_tokens if config.kind in ("svg", "image") else config.generation.max_tokens
    )
    outputs = 1 if config.items else 2
    around = messages(
        config.judging.prompt_version,
        config.judge_question,
        kind=config.kind,
        prompt="",
        rubric=config.rubric,
        outputs=[""] * outputs,
    )
    characters = sum(map(len, _texts(around)[0]))
    turns = (len(messages_of(prompt.text) or ()) for prompt in config.prompts)
    return sum(
        _tokens(characters + len(prompt.text) + _FRAME * number) + outputs * output_tokens
        for prompt, number in zip(config.prompts, turns, strict=True)
    )


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _texts(messages: Sequence[Message]) -> tuple[list[str], int]:
    parts: list[Message] = []
    for message in messages:
        content = message["content"]
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return texts, sum(part["type"] == "image_url" for part in parts)
