"""Configs: what is filled in, what is refused, and that all errors are said at once."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.judging.baselines import BASELINES
from judge_eval.judging.config.prompt_files import PromptsUnreadable, from_file, from_lines
from judge_eval.judging.config.run_config import (
    JUDGE_EVAL,
    KINDS,
    RUBRICS,
    ConfigInvalid,
    Generation,
    JudgeSpec,
    Judging,
    ModelSpec,
    Overlap,
    PromptSpec,
)
from judge_eval.judging.config.validate_run import validate_run as parse
from judge_eval.judging.prompts.judge import CURRENT, VERSIONS
from voting.items.choices import CHOICES
from voting.items.conversations import messages_of

PATHSCORE = {
    "name": "Judge Evaluator Run",
    "mode": "judge_eval",
    "models": [{"id": "google/gemini-2.5-flash-lite"}, {"id": "anthropic/claude-haiku-4.5"}],
    "judges": ["google/gemini-2.5-flash", "anthropic/claude-haiku-4.5"],
    "prompts": [{"id": "5f0c", "text": "a red circle on white background"}],
    "generation": {"temperature": 0.7},
}
KEYS = [
    *("name", "mode", "kind", "models", "judges", "prompts", "rubric", "ballot", "votes_per_pair"),
    *("overlap", "reveal", "verdict_orders", "generation", "judging", "provider", "budget_usd"),
    *("epsilon", "margin", "id", "text", "tags", "share", "votes", "temperature", "max_tokens"),
    "samples",
]
# Of these, runs are made here.
GENERATED = [kind for kind in KINDS if kind != "image"]
words = st.sampled_from([*KEYS, *CHOICES, *KINDS, *BASELINES, "default", "both", "1", ""])
atoms = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=5)
anything = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(words | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=30,
)
ids = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
ids = ids.filter(lambda name: name not in {"baseline", *BASELINES})
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
texts = texts.filter(str.strip)
right = st.fixed_dictionaries(
    {
        "name": ids,
        "models": st.lists(ids, min_size=2, max_size=4, unique=True)
        | st.lists(st.builds(dict, id=ids), min_size=2, max_size=4, unique_by=lambda m: m["id"]),
        "judges": st.lists(
            ids | st.sampled_from(["random", "longer-wins"]), min_size=1, unique=True
        ),
        "prompts": st.lists(texts | st.builds(dict, text=texts), min_size=1),
    },
    optional={
        "kind": st.sampled_from(GENERATED),
        "rubric": texts,
        "votes_per_pair": st.integers(1, 100),
        "overlap": st.fixed_dictionaries({"share": st.floats(0, 1), "votes": st.integers(1, 9)}),
        "ballot": st.permutations(CHOICES),
        "verdict_orders": st.sampled_from(["both", "random"]),
        "reveal": st.sampled_from(["after_each", "at_end", "never"]),
        "generation": st.fixed_dictionaries({}, optional={"temperature": st.floats(0, 2)}),
        "judging": st.fixed_dictionaries({}, optional={"samples": st.integers(1, 25)}),
        "provider": ids,
        "budget_usd": st.floats(0, 10**6, exclude_min=True) | st.integers(1, 10**6),
        "epsilon": st.floats(0, 1, exclude_max=True),
        "margin": st.floats(0, 0.25, exclude_min=True),
    },
)


def config(**changes):
    shape = {"name": "r", "models": ["m", "n"], "judges": ["j"], "prompts": ["p"]}
    return {key: value for key, value in (shape | changes).items() if value is not ...}


def errors(data):
    with pytest.raises(ConfigInvalid) as invalid:
        parse(data)
    lines = [str(error) for error in invalid.value.errors]
    assert str(invalid.value) == "\n".join(lines)
    return lines


def test_the_shape_of_pathscore_is_read_and_completed():
    run = parse(PATHSCORE)
    assert run.models[1] == ModelSpec(id="anthropic/claude-haiku-4.5")
    assert run.judges == (
        JudgeSpec(id="google/gemini-2.5-flash", provider="default"),
        JudgeSpec(id="anthropic/claude-haiku-4.5", provider="default"),
    )
    assert run.prompts == (PromptSpec(id="5f0c", text="a red circle on white background"),)
    assert (run.mode, run.kind, run.ballot) == (JUDGE_EVAL, "svg", ("A", "B", "both_bad"))
    assert (run.votes_per_pair, run.overlap, run.reveal) == (
        1,
        Overlap(share=0.0, votes=3),
        "after_each",
    )
    assert run.generation == Generation(temperature=0.7, max_tokens=4000)
    assert run.judging == Judging(
        temperature=0.0, prompt_version=CURRENT, max_tokens=400, samples=1
    )
    assert (run.verdict_orders, run.provider, run.budget_usd) == ("both", "default", None)
    assert run.rubric == RUBRICS["svg"]


def test_everything_can_be_said():
    run = parse(
        config(
            mode="standard",
            kind="text",
            models=["m"],
            judges=[{"id": "j", "provider": "local"}, {"id": "random"}, "longer-wins"],
            prompts=[{"id": "x", "text": " a\nb ", "tags": ["easy", "short"]}, "second"],
            rubric="Which?\n",
            ballot=["tie", "B", "A"],
            votes_per_pair=3,
            overlap={"share": 0.5, "votes": 5},
            reveal="never",
            verdict_orders="random",
            generation={"temperature": None, "max_tokens": 9},
            judging={"temperature": 1, "prompt_version": "1", "max_tokens": 5, "samples": 25},
            provider="openrouter",
            budget_usd=2.5,
        )
    )
    assert run.judges == (
        JudgeSpec(id="j", provider="local"),
        JudgeSpec(id="random", provider="baseline"),
        JudgeSpec(id="longer-wins", provider="baseline"),
    )
    assert [judge.is_baseline for judge in run.judges] == [False, True, True]
    assert run.prompts == (
        PromptSpec(id="x", text=" a\nb ", tags=("easy", "short")),
        PromptSpec(id="2", text="second"),
    )
    assert run.rubric == "Which?\n"
    assert run.ballot == ("A", "B", "tie")
    assert run.generation.parameters == {"max_tokens": 9}
    assert run.judging.parameters == {"temperature": 1.0, "max_tokens": 5}
    assert run.budget_usd == Decimal("2.5")


@pytest.mark.parametrize("kind", GENERATED)
def test_each_kind_has_a_rubric(kind):
    assert parse(config(kind=kind)).rubric == RUBRICS[kind]
    assert set(RUBRICS) == set(KINDS)


def test_pictures_are_judged_where_they_were_given_and_not_generated():
    assert errors(config(kind="image")) == [
        "kind: is image: pictures are imported, and not generated here"
    ]
    given = config(kind="image", outputs="given", models=[], prompts=[])
    assert parse(given).rubric == RUBRICS["image"]


def test_judges_may_overlap_with_models_and_baselines_may_be_alone():
    assert parse(config(judges=["m", "n"]))
    every = config(judges=list(BASELINES), ballot=["A", "B", "tie", "both_bad"])
    assert parse(every)
    without = errors(every | {"ballot": ["A", "B"]})
    assert [complaint.split(": ")[1] for complaint in without] == [
        f"{name} is never right" for name in ("always-tie", "always-both-bad")
    ]


def test_all_errors_are_said_at_once_each_with_its_path():
    assert errors(
        {
            "kind": "svgs",
            "models": [{"id": "m"}, {"id": ""}, "", 7, {"name": "n"}],
            "judges": [{"id": "j", "provider": 1}, "j"],
            "prompts": [{"id": "a", "text": " "}, {"id": "a", "text": "x", "tags": "easy"}],
            "ballot": ["A", "C", "A"],
            "generation": {"temperature": True},
            "judging": {"max_tokens": 0, "samples": 2.5},
            "votes": 3,
        }
    ) == [
        "name: is missing",
        "kind: 'svgs' must be one of svg, text, code, image; did you mean 'svg'?",
        "models[1].id: is empty",
        "models[2]: is empty",
        "models[3]: must be text or an object, not a number",
        "models[4].id: is missing",
        "models[4].name: unknown",
        "judges[0].provider: must be text, not a number",
        "prompts[0].text: is empty",
        "prompts[1].tags: must be a list, not text",
        "ballot[1]: 'C' must be one of A, B, tie, both_bad",
        "generation.temperature: must be a number, not true or false",
        "judging.max_tokens: must be at least 1",
        "judging.samples: must be a whole number, not a decimal number",
        "votes: unknown; did you mean 'items'?",
        "judges[1]: 'j' is given twice",
        "prompts[1].id: 'a' is given twice",
        "ballot[2]: is given twice",
        "ballot: must offer A and B",
    ]


@pytest.mark.parametrize(
    "data, kind",
    [(None, "null"), ([], "a list"), ("x", "text"), (1, "a number"), (True, "true or false")],
)
def test_a_config_is_an_object(data, kind):
    assert errors(data) == [f"must be an object, not {kind}"]


def test_what_must_be_there():
    assert errors({}) == [
        "name: is missing",
        "models: is missing",
        "judges: is missing",
        "prompts: is missing",
    ]


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"judge": ["j"]}, "judge: unknown; did you mean 'judges'?"),
        ({"zzz": 1}, "zzz: unknown"),
        ({"": 1}, "'': unknown"),
        ({"a\nb\x07": 1}, "a b: unknown"),
        ({"judging": {"temprature": 0}}, None),
        ({"overlap": {"shares": 0}}, "overlap.shares: unknown; did you mean 'share'?"),
        ({"models": [{"id": "m", "ID": 1}, "n"]}, "models[0].ID: unknown"),
        ({"judging": {"prompt_version": "0"}}, "judging.prompt_version: '0' must be one of 1"),
        ({"judging": {"prompt_version": 1}}, "judging.prompt_version: must be text, not a number"),
        ({"mode": "judge-eval"}, None),
        ({"name": "x" * 201}, "name: has 201 characters, the most is 200"),
        ({"name": "a\nb"}, "name: must be one line without control characters"),
        ({"models": ["m\x00", "n"]}, "models[0]: must be one line without control characters"),
        ({"models": ["m", "m"]}, "models[1]: 'm' is given twice"),
        ({"models": ["m", {"id": " m "}]}, "models[1].id: 'm' is given twice"),
        ({"models": ["m"]}, "models: enter at least two models"),
        ({"models": []}, "models: enter at least two models"),
        ({"models": {"id": "m"}}, "models: must be a list, not an object"),
        ({"models": ["m", "random"]}, None),
        ({"judges": []}, "judges: must have at least 1, has 0"),
        ({"judges": None}, "judges: must be a list, not null"),
        ({"judges": [{"id": "j", "provider": ""}]}, "judges[0].provider: is empty"),
        ({"prompts": []}, "prompts: must have at least 1, has 0"),
        ({"prompts": ["p", {"id": "1", "text": "q"}]}, "prompts[1].id: '1' is given twice"),
        ({"prompts": [{"id": 1, "text": "q"}]}, "prompts[0].id: must be text, not a number"),
        ({"prompts": ["a\0b"]}, "prompts[0]: must hold no NUL and no half of a surrogate pair"),
        ({"prompts": ["a\ud83d"]}, "prompts[0]: must hold no NUL and no half of a surrogate pair"),
        ({"prompts": ["x" * 20_001]}, "prompts[0]: has 20,001 characters, the most is 20,000"),
        (
            {"prompts": [{"text": "p", "tags": ["a", {"tag": "b"}]}]},
            "prompts[0].tags[1]: must be text, not an object",
        ),
        ({"rubric": " "}, "rubric: is empty"),
        ({"ballot": []}, "ballot: must offer A and B"),
        ({"ballot": ["A", "tie"]}, "ballot: must offer A and B"),
        ({"votes_per_pair": 0}, "votes_per_pair: must be at least 1"),
        ({"votes_per_pair": 101}, "votes_per_pair: must be at most 100"),
        ({"votes_per_pair": True}, "votes_per_pair: must be a whole number, not true or false"),
        ({"overlap": {"share": 1.01}}, "overlap.share: must be at most 1"),
        ({"overlap": {"votes": 0}}, "overlap.votes: must be at least 1"),
        ({"overlap": 0.5}, "overlap: must be an object, not a decimal number"),
        ({"generation": {"top_p": 1}}, "generation.top_p: unknown"),
        ({"judging": {"samples": 26}}, "judging.samples: must be at most 25"),
        (
            {"judging": {"max_tokens": "400"}},
            "judging.max_tokens: must be a whole number, not text",
        ),
        ({"budget_usd": 0}, "budget_usd: must be greater than 0"),
        ({"budget_usd": -1}, "budget_usd: must be greater than 0"),
        ({"budget_usd": 1_000_001}, "budget_usd: must be at most 1,000,000"),
        ({"budget_usd": "5"}, "budget_usd: must be a number, not text"),
        ({"epsilon": 1}, "epsilon: must be less than 1"),
        ({"margin": 0}, "margin: must be greater than 0"),
        ({"margin": 0.3}, "margin: must be at most 0.25"),
        ({"reveal": "later"}, "reveal: 'later' must be one of after_each, at_end, never"),
        ({"provider": "baseline"}, None),
        ({"provider": " baseline "}, None),
        ({"provider": "p" * 51}, "provider: has 51 characters, the most is 50"),
    ],
)
def test_one_mistake_is_one_error(changes, error):
    (said,) = errors(config(**changes))
    assert error is None or said == error
    assert "\n" not in said


@pytest.mark.parametrize(
    "changes, error",
    [
        (
            {"models": ["m", "random"]},
            "models[1]: random is a baseline: it judges and generates nothing",
        ),
        (
            {"kind": "text", "judges": ["random", "more-elements-wins"]},
            "judges[1]: more-elements-wins judges drawings only; the kind of this run is text",
        ),
        (
            {"judges": [{"id": "random", "provider": "openrouter"}]},
            "judges[0].provider: baseline is the provider of all baselines and no others",
        ),
        (
            {"judges": [{"id": "gpt", "provider": "baseline"}]},
            "judges[0].provider: baseline is the provider of all baselines and no others",
        ),
    ],
)
def test_baselines_judge_and_do_nothing_else(changes, error):
    assert errors(config(**changes)) == [error]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 10**400, -1])
@pytest.mark.parametrize(
    "path",
    [
        *("budget_usd", "epsilon", "margin", "overlap.share"),
        *("generation.temperature", "judging.temperature"),
    ],
)
def test_numbers_that_cannot_be(path, number):
    key, _, inner = path.partition(".")
    (error,) = errors(config(**{key: {inner: number} if inner else number}))
    assert error.startswith(f"{path}: must be ")


@pytest.mark.parametrize(
    "key, most", [("models", 50), ("judges", 50), ("prompts", 5_000)], ids=lambda value: str(value)
)
def test_sizes_are_capped(key, most):
    names = [f"x{n}" for n in range(most + 1)]
    assert len(getattr(parse(config(**{key: names[:most]})), key)) == most
    assert errors(config(**{key: names})) == [f"{key}: has {most + 1:,}, the most is {most:,}"]


def test_a_flood_of_unknown_keys_is_not_answered_with_a_flood():
    said = errors(config(**{f"key{n}" * 1000: n for n in range(10_000)}))
    assert len(said) == 21
    assert said[-1] == "9,980 more keys are unknown"
    assert max(map(len, said)) < 100


def test_a_value_nested_deeply_is_refused_like_any_other():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert errors(config(name=deep, rubric={"x": deep})) == [
        "name: must be text, not a list",
        "rubric: must be text, not an object",
    ]
    while deep:
        deep = deep.pop()


def test_one_prompt_for_each_line():
    found = from_lines("\ufeffa cat\r\n\n  a dog, running \n\t\n")
    assert [prompt.entry for prompt in found] == ["a cat", "a dog, running"]
    assert from_lines(" \n") == []


CHAT = [{"role": "system", "content": "Be terse."}, {"role": "human", "content": "Why?"}]


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.json", [CHAT, {"text": CHAT}, {"messages": CHAT}, {"text": json.dumps(CHAT)}]),
        ("a.json", CHAT),
        ("a.jsonl", [CHAT, {"id": "2", "messages": CHAT}]),
        ("a.txt", [CHAT]),
        ("a.txt", CHAT),
    ],
)
def test_a_prompt_may_be_a_list_of_messages(name, content):
    lines = "\n\n".join(json.dumps(each) for each in content)
    indent = 1 if content == CHAT else None
    is_one = name == "a.json" or content == CHAT
    written = json.dumps(content, indent=indent) if is_one else f"{lines}\n"
    listed = from_file(name, written.encode())
    prompts = parse(config(kind="text", prompts=[each.entry for each in listed])).prompts
    assert len(prompts) == (1 if content == CHAT else len(content))
    assert {messages_of(prompt.text) for prompt in prompts} == {
        (("system", "Be terse."), ("user", "Why?"))
    }


def test_a_wrong_line_of_a_file_of_prompts_is_named():
    good = json.dumps("a\u2028cat", ensure_ascii=False)
    assert len(from_file("a.jsonl", f"{good}\n".encode())) == 1
    with pytest.raises(PromptsUnreadable, match="Line 3: not JSON"):
        from_file("a.jsonl", f"{good}\n\na dog".encode())


@given(anything)
def test_whatever_comes_it_is_parsed_or_refused_with_reasons(data):
    check_outcome(data)


@given(st.dictionaries(st.sampled_from(KEYS), anything))
def test_whatever_the_known_keys_hold_it_is_parsed_or_refused(data):
    check_outcome(data)
    check_outcome(config(**data))


def check_outcome(data):
    try:
        run = parse(data)
    except ConfigInvalid as invalid:
        errors = invalid.errors
    else:
        assert parse(json.loads(json.dumps(run.as_dict()))) == run
        return
    assert errors
    assert all(error.message.isprintable() and error.path.isprintable() for error in errors)


@given(right)
def test_what_is_right_comes_back_equal(data):
    run = parse(data)
    stored = run.as_dict()
    assert parse(stored) == run
    assert json.loads(json.dumps(stored)) == stored == parse(stored).as_dict()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stored_config_names_its_prompt_version(version):
    assert parse(config(judging={"prompt_version": version})).as_dict()["judging"] == {
        "temperature": 0.0,
        "prompt_version": version,
        "max_tokens": 400,
        "samples": 1,
    }
