"""Configs of single items: what is filled in, and what is refused."""

import pytest

from judge_eval.judging.config.estimates import plan
from judge_eval.judging.config.run_config import SINGLE_RUBRICS, ConfigInvalid
from judge_eval.judging.config.validate_run import validate_run as parse
from judge_eval.judging.prompts.judge import JudgeQuestion


def config(items, **changes):
    shape = {"name": "r", "models": ["m"], "judges": ["j"], "prompts": ["p", "q"], "items": items}
    return shape | changes


def errors(items, **changes):
    with pytest.raises(ConfigInvalid) as invalid:
        parse(config(items, **changes))
    return [str(error) for error in invalid.value.errors]


def judges_of(items, *judges):
    return [judge.id for judge in parse(config(items, judges=list(judges))).judges]


def test_an_empty_object_asks_whether_each_output_passes():
    run = parse(config({}))
    assert run.judge_question == JudgeQuestion(("pass", "flag"), "pass_flag", is_graded=False)
    assert (run.ballot, run.rubric) == ((), SINGLE_RUBRICS["pass_flag"])
    assert run.items.flag_categories[0] == "incorrect"


@pytest.mark.parametrize(
    "items, offered",
    [
        ({"kind": "rating"}, ("1", "2", "3", "4", "5")),
        ({"kind": "category", "choices": ["warm", " dry "]}, ("warm", "dry")),
        ({"kind": "labels", "choices": ["long", "rude"], "task": "faults"}, ("long", "rude")),
        ({"graded": True}, ("pass", "flag")),
    ],
)
def test_what_is_offered_and_that_it_stays_so(items, offered):
    run = parse(config(items, judging={"samples": 3}))
    assert tuple(run.judge_question.ballot) == offered
    assert run.judge_question.is_graded == items.get("graded", False)
    assert parse(run.as_dict()) == run


def test_one_model_is_enough_and_each_output_is_asked_about_once():
    run = parse(config({}, judges=["j", "k", "random"], judging={"samples": 2}))
    assert (plan(run).generations, plan(run).pairs, plan(run).verdict_calls) == (2, 2, 8)


def test_the_most_frequent_label_is_one_of_the_constant_ones():
    words = {"kind": "category", "choices": ["warm", "dry"]}
    assert judges_of(words, "j", "most-frequent", "random") == [
        *("j", "always-warm", "always-dry", "random")
    ]
    assert judges_of({}, "always-flag", "most-frequent") == ["always-flag", "always-pass"]
    sets = {"kind": "labels", "choices": ["a", "b"]}
    of_sets = ["always-a", "always-a;b", "always-b", "always-none"]
    assert sorted(judges_of(sets, "most-frequent")) == of_sets


@pytest.mark.parametrize(
    "items, changes, error",
    [
        ({"kind": "category"}, {}, "items.choices: must have at least 2, has 0"),
        ({"kind": "labels", "choices": ["a"]}, {}, "items.choices: must have at least 2, has 1"),
        ({"kind": "rating", "choices": ["1"]}, {}, "items.choices: rating has choices of its own"),
        (
            {"kind": "category", "choices": ["a", "b", "a"]},
            *({}, "items.choices[2]: is given twice"),
        ),
        (
            {"kind": "labels", "choices": ["a", "none"]},
            *({}, "items.choices[1]: none is what is kept where no label fits"),
        ),
        (
            {"kind": "labels", "choices": ["a", "b;c"]},
            *({}, "items.choices[1]: must not hold ';', which stands between the labels of a set"),
        ),
        (
            {"kind": "rating", "graded": True},
            {},
            "items.graded: is of items that are passed or flagged",
        ),
        ({"kinds": "rating"}, {}, "items.kinds: unknown; did you mean 'kind'?"),
        (
            {"kind": "text"},
            {},
            "items.kind: 'text' must be one of pass_flag, category, rating, labels",
        ),
        (
            {},
            {"ballot": ["A", "B"]},
            "ballot: is of pairs; single items are voted on with items.choices",
        ),
        ({}, {"models": []}, "models: enter at least one model"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(items, changes, error):
    assert errors(items, **changes) == [error]


def test_a_baseline_of_pairs_is_none_of_single_items():
    [said] = errors({}, judges=["longer-wins"])
    assert "longer-wins must be one of the baselines here" in said
    assert said.endswith(": always-pass, always-flag, random, most-frequent")


def test_a_run_of_pairs_has_no_baselines_of_single_items():
    pairs = {"name": "r", "models": ["m", "n"], "prompts": ["p"], "judges": ["always-pass"]}
    with pytest.raises(ConfigInvalid, match="always-pass judges single items only"):
        parse(pairs)


def test_given_outputs_are_not_generated():
    given = parse(config({}, outputs="given", models=[], prompts=[]))
    assert plan(given).verdict_calls == 0
    assert parse(given.as_dict()) == given
    assert errors({}, outputs="given", models=[]) == [
        "prompts: are of outputs that are generated; these were given"
    ]
