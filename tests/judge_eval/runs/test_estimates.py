"""How many calls a run makes, and what they cost: known, or not known, but never 0 by mistake."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.judging.config.estimates import (
    GENERATION_OVERHEAD_TOKENS,
    PICTURE_TOKENS,
    Plan,
    Price,
    cost,
    estimate,
    most_tokens,
    plan,
    reservation,
)
from judge_eval.judging.config.run_config import parse
from judge_eval.judging.prompts.judge import JudgeQuestion, messages
from voting.items.conversations import conversation

CHEAP = Price(input=Decimal("0.15"), output=Decimal("0.60"))
DEAR = Price(input=Decimal(15), output=Decimal(75))
FREE = Price(input=Decimal(0), output=Decimal(0))
prices = st.builds(
    Price,
    input=st.decimals(0, 1000, places=4, allow_nan=False),
    output=st.decimals(0, 1000, places=4, allow_nan=False),
)
tokens = st.integers(0, 10**7)


def config(**changes):
    shape = {
        "name": "r",
        "models": ["m", "n", "o"],
        "judges": ["j", {"id": "k", "provider": "local"}, "random", "longer-wins"],
        "prompts": ["x" * 400, "y" * 40],
    }
    return parse(shape | changes)


@pytest.mark.parametrize(
    "changes, calls",
    [
        ({}, 6 * 2 * 2),
        ({"verdict_orders": "random"}, 6 * 2),
        ({"judging": {"samples": 5}}, 6 * 2 * 2 * 5),
        ({"judges": ["random"]}, 0),
        ({"judges": ["m", "random"]}, 6 * 2),
    ],
)
def test_calls_are_pairs_by_judges_by_orders_by_samples(changes, calls):
    assert plan(config(**changes)) == Plan(generations=6, pairs=6, verdict_calls=calls)


def test_pairs_are_of_every_two_models():
    models = [f"m{n}" for n in range(10)]
    assert plan(config(models=models)).pairs == 2 * 45
    assert plan(config(models=["m"], mode="standard")) == Plan(2, 0, 0)


def test_an_estimate_by_hand():
    """One prompt of 400 characters, two models at different prices, one judge of pictures."""
    run = config(
        models=["m", "n"],
        judges=["j"],
        prompts=["x" * 400],
        rubric="Which?",
        generation={"max_tokens": 1000},
        judging={"max_tokens": 100},
    )
    told = messages(
        "1",
        JudgeQuestion(run.ballot),
        kind="svg",
        prompt="x" * 400,
        rubric="Which?",
        outputs=[b"", b""],
    )
    m, n, judge = estimate(
        run, {("default", "m"): CHEAP, ("default", "n"): DEAR, ("default", "j"): CHEAP}
    ).lines
    asked = 100 + GENERATION_OVERHEAD_TOKENS
    assert (m.role, m.model, m.calls, m.prompt_tokens) == ("generate", "m", 1, asked)
    assert m.completion_tokens == n.completion_tokens == 1000
    assert m.usd == (asked * Decimal("0.15") + 1000 * Decimal("0.60")) / 1_000_000
    assert n.usd == (asked * Decimal(15) + 1000 * Decimal(75)) / 1_000_000
    assert (judge.role, judge.model, judge.calls) == ("judge", "j", 2)
    assert judge.completion_tokens == 2 * 100
    system, user = told
    texts = [system["content"], *(part.get("text", "") for part in user["content"])]
    expected = sum(map(len, texts)) / 4 + 2 * PICTURE_TOKENS
    assert judge.prompt_tokens == pytest.approx(2 * expected, abs=100)


def test_an_unknown_price_makes_the_whole_unknown_and_names_the_model():
    known = {("default", "m"): CHEAP, ("default", "n"): CHEAP, ("default", "j"): CHEAP}
    some = estimate(config(), known)
    assert some.usd is None
    assert some.unpriced == ("o", "k")
    assert some.known_usd == sum(line.usd for line in some.lines if line.usd is not None) > 0
    assert {line.model for line in some.lines if line.usd is None} == {"o", "k"}
    everything = known | {("default", "o"): FREE, ("local", "k"): FREE}
    assert estimate(config(), everything).usd == some.known_usd


def test_a_price_belongs_to_one_provider():
    elsewhere = {("local", name): CHEAP for name in "mnoj"}
    assert estimate(config(judges=["j"]), elsewhere).unpriced == ("m", "n", "o", "j")


def test_a_model_that_generates_and_judges_is_named_once():
    assert estimate(config(judges=["m", "n", "o"]), {}).unpriced == ("m", "n", "o")


def test_what_is_free_costs_nothing_and_baselines_are_not_asked():
    run = config(judges=["random", "always-first"])
    free = estimate(run, {("default", name): FREE for name in "mno"})
    assert free.usd == 0
    assert free.unpriced == ()
    assert [line.role for line in free.lines] == ["generate"] * 3


def test_texts_are_counted_as_long_as_they_may_be():
    def judge_tokens(**changes):
        return estimate(config(judges=["j"], **changes), {}).lines[-1].prompt_tokens

    short = judge_tokens(kind="text", rubric="r", generation={"max_tokens": 100})
    long = judge_tokens(kind="text", rubric="r", generation={"max_tokens": 1100})
    assert long - short == 6 * 2 * 2 * 1000
    pictures = judge_tokens(kind="svg", rubric="r", generation={"max_tokens": 100})
    assert pictures == judge_tokens(kind="svg", rubric="r", generation={"max_tokens": 1100})


def test_the_frames_of_turns_are_counted():
    chat = conversation([{"role": "assistant", "content": "Hi"}] * 99)
    run = config(models=["m"], judges=["j"], kind="text", prompts=[chat], items={})
    sent = messages(
        "1", run.judge_question, kind="text", prompt=chat, rubric=run.rubric, outputs=[""]
    )
    characters = sum(len(message["content"]) for message in sent)
    judging = estimate(run, {}).lines[-1].prompt_tokens - run.generation.max_tokens
    assert characters / 4 <= judging <= characters / 3


def test_a_model_that_counts_more_for_a_picture_costs_more():
    many = CHEAP.model_copy(update={"picture_tokens": 25_501})
    run = config(models=["m", "n"], judges=["j"])
    one, other = (
        estimate(run, {("default", "j"): price}).lines[-1].prompt_tokens for price in (CHEAP, many)
    )
    assert other - one == 2 * 2 * 2 * (25_501 - PICTURE_TOKENS)


def test_tokens_of_messages():
    texts = [{"role": "system", "content": "abcde"}, {"role": "user", "content": "é漢"}]
    assert most_tokens(texts, 1000) == 5 + 2 + 3 + 2 * 16
    told = messages(
        "1",
        JudgeQuestion(["A", "B"]),
        kind="svg",
        prompt="p",
        rubric="r",
        outputs=[b"x", b"y" * 9000],
    )
    assert 2000 < most_tokens(told, 1000) < 2000 + 9000


def test_costs_are_exact():
    assert cost(1, 0, CHEAP) == Decimal("0.00000015")
    assert cost(1_000_000, 1_000_000, CHEAP) == Decimal("0.75")
    assert cost(0, 0, DEAR) == 0


@given(tokens, tokens, prices)
def test_a_reservation_is_rounded_up_by_less_than_a_millionth(messages_tokens, answer, price):
    reserved = reservation(messages_tokens, answer, price)
    exact = cost(messages_tokens, answer, price)
    assert exact <= reserved < exact + Decimal("0.000001")
    assert reserved == reserved.quantize(Decimal("0.000001"))


@given(tokens, tokens, tokens, tokens, prices)
def test_a_call_within_its_bounds_never_costs_more_than_was_reserved(one, two, three, four, price):
    used, allowed = sorted((one, two)), sorted((three, four))
    assert cost(used[0], allowed[0], price) <= reservation(used[1], allowed[1], price)


def test_the_smallest_cost_is_reserved_as_something():
    assert reservation(1, 0, Price(input=Decimal("0.0001"), output=Decimal(0))) == Decimal(
        "0.000001"
    )
    assert reservation(10**6, 10**6, FREE) == 0
