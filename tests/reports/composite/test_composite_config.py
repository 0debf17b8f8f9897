"""The config of a composite: every mistake is named by its path, and a version is what decides."""

import json

import pytest

from humanjudge.core.validation import ConfigInvalid
from reports.composite.config import CompositeConfig, parse

WHOLE = {
    "label": "helpful, first",
    "weights": {
        "correctness": {"weight": 0.6, "reason": "Wrong answers help nobody."},
        "brevity": {"weight": 0.4, "reason": "People read on telephones."},
    },
    "gates": ["safety", "drawn"],
    "sources": {
        "correctness": {"from": "judge_score", "judge": "gpt"},
        "brevity": {"from": "label", "task": "stars", "range": [1, 5]},
        "safety": {"from": "label", "task": "safe", "judge": "gpt", "equals": True},
        "drawn": "rendered",
    },
    "check": "win_rate",
}


def changed(path, value):
    data = json.loads(json.dumps(WHOLE))
    *parents, last = path.split(".")
    at = data
    for step in parents:
        at = at[step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return data


def source(kind, **options):
    weights = {"it": {"weight": 1, "reason": "It counts."}}
    return parse({"weights": weights, "sources": {"it": {"from": kind, **options}}}).sources["it"]


def mistakes(data, **options):
    with pytest.raises(ConfigInvalid) as caught:
        parse(data, **options)
    return [str(error) for error in caught.value.errors]


class TestReading:
    def test_a_whole_config(self):
        config = parse(WHOLE)
        assert config.weighting == {"correctness": 0.6, "brevity": 0.4}
        assert config.weights["brevity"].reason == "People read on telephones."
        assert config.components == ("correctness", "brevity", "safety", "drawn")
        correctness, brevity, safety, drawn = config.sources.values()
        assert (correctness.kind, correctness.judge, correctness.range) == (
            *("judge_score", "gpt"),
            (0, 10),
        )
        assert (brevity.kind, brevity.task, brevity.judge, brevity.range, brevity.equals) == (
            *("label", "stars", None),
            *((1, 5), None),
        )
        assert (safety.kind, safety.task, safety.judge, safety.range, safety.equals) == (
            *("label", "safe", "gpt"),
            *(None, True),
        )
        assert drawn.kind == "rendered"
        assert config.judges == {"correctness": "gpt", "safety": "gpt"}
        assert (config.label, config.check) == ("helpful, first", "win_rate")

    def test_what_is_written_reads_as_the_same(self):
        config = parse(WHOLE)
        assert parse(json.loads(json.dumps(config.as_data)), needs_sources=True) == config
        bare = parse({"weights": {"a": {"weight": 2, "reason": "It is all."}}})
        assert parse(bare.as_data) == bare

    @pytest.mark.parametrize(
        "path,value,said",
        [
            ("weights.brevity.weight", 0, "weights.brevity.weight: must be greater than 0"),
            ("weights.brevity.weight", -1, "weights.brevity.weight: must be greater than 0"),
            ("weights.brevity.weight", "0.4", "weights.brevity.weight: must be a number"),
            ("weights.brevity.weight", True, "weights.brevity.weight: must be a number"),
            ("weights.brevity.weight", None, "weights.brevity.weight: is missing"),
            ("weights.brevity.reason", None, "weights.brevity.reason: is missing"),
            ("weights.brevity.reason", "  ", "weights.brevity.reason: is empty"),
            ("weights.brevity.note", "x", "weights.brevity.note: unknown"),
            ("weights.brevity", 0.4, "weights.brevity: must be an object"),
            ("weights", [0.4], "weights: must be an object"),
            ("weights", {}, "weights: must have at least 1, has 0"),
            ("weights", None, "weights: is missing"),
            ("gates", ["safety", "safety"], "gates: safety: is given twice"),
            ("gates", "safety", "gates: must be a list"),
            ("gates", ["drawn"], "sources.safety: is not used"),
            ("gates", ["safety", "drawn", "taste"], "sources.taste: is missing"),
            ("sources.drawn", {"from": "drawn"}, "sources.drawn.from: 'drawn' must be one of"),
            ("sources.drawn", {}, "sources.drawn.from: is missing"),
            ("sources.drawn", {"from": "rendered", "judge": "x"}, "sources.drawn.judge: unknown"),
            ("sources.correctness.judge", None, "sources.correctness.judge: is missing"),
            ("sources.brevity.range", None, "sources.brevity: say which 'range'"),
            ("sources.brevity.range", [5, 1], "sources.brevity.range: must be two numbers"),
            ("sources.brevity.range", [1, 1], "sources.brevity.range: must be two numbers"),
            ("sources.brevity.range", [1, "5"], "sources.brevity.range[1]: must be a number"),
            ("sources.brevity.range", [True, 5], "sources.brevity.range[0]: must be a number"),
            ("sources.brevity.range", [1], "sources.brevity.range[1]: is missing"),
            ("sources.brevity.equals", [1], "sources.brevity.equals: must be text, a number"),
            ("sources.safety.range", [0, 1], "sources.safety: say which 'range'"),
            ("sources.safety.task", None, "sources.safety.task: is missing"),
            ("sources", ["x"], "sources: must be an object"),
            ("check", "taste", "check: 'taste' must be one of win_rate, pass_rate"),
            ("gate", [], "gate: unknown; did you mean 'gates'?"),
        ],
    )
    def test_mistakes_are_named_by_their_path(self, path, value, said):
        found = mistakes(changed(path, value), needs_sources=True)
        assert any(each.startswith(said) for each in found), found

    def test_all_mistakes_are_said_at_once(self):
        data = changed("weights.brevity", {"weight": -1, "reason": ""})
        assert len(mistakes(data | {"gate": [], "check": 1})) == 4

    @pytest.mark.parametrize("data", [None, [], "x", 1])
    def test_what_is_no_object(self, data):
        assert mistakes(data)[0].startswith("must be an object")

    @pytest.mark.parametrize("name", ["", " a", "a\n", "x" * 61, "<b>", 1])
    def test_names_that_are_none(self, name):
        found = mistakes({"weights": {name: {"weight": 1, "reason": "x"}}})
        # Which name it is stands in the path, so that a form can say it there.
        assert found[0].startswith(("weights.", "weights[1]: "))

    @pytest.mark.parametrize("text", ["a\0b", "a\nb", "half \ud800", "\u2028"])
    def test_text_that_no_database_stores_or_no_line_holds(self, text):
        for path in ("label", "weights.brevity.reason", "sources.brevity.task"):
            said = mistakes(changed(path, text))[0]
            assert said.startswith((f"{path}: must ", f"{path}: is empty"))

    @pytest.mark.parametrize("value", [10**400, float("nan"), float("inf"), 1e10])
    def test_weights_beyond_all_bounds(self, value):
        [mistake] = mistakes(changed("weights.brevity.weight", value))
        assert mistake.startswith("weights.brevity.weight: must be ")

    def test_half_a_surrogate_is_no_value_to_compare_with(self):
        path = "sources.safety.equals"
        assert mistakes(changed(path, "\ud800"))[0].startswith(f"{path}: holds half a surrogate")

    def test_too_many(self):
        weights = {f"c{n}": {"weight": 1, "reason": "x"} for n in range(31)}
        assert mistakes({"weights": weights}) == ["weights: has 31, the most is 30"]

    def test_sources_may_be_left_to_the_caller(self):
        data = changed("sources", None)
        assert parse(data).sources == {}
        assert "sources.safety: is missing" in mistakes(data, needs_sources=True)


class TestVersion:
    @pytest.mark.parametrize(
        "path,value",
        [
            ("label", "another"),
            ("weights.brevity.reason", "Since."),
            ("gates", ["drawn", "safety"]),
            ("check", "pass_rate"),
        ],
    )
    def test_words_do_not_change_it(self, path, value):
        assert parse(changed(path, value)).version == parse(WHOLE).version

    @pytest.mark.parametrize(
        "path,value",
        [
            ("weights.brevity.weight", 0.41),
            ("sources.correctness.judge", "claude"),
            ("sources.brevity.range", [0, 5]),
            ("sources.safety.equals", 1),
        ],
    )
    def test_what_decides_changes_it(self, path, value):
        assert parse(changed(path, value)).version != parse(WHOLE).version

    def test_a_gate_more_changes_it(self):
        weights = parse(changed("sources", None)).weights
        versions = {
            CompositeConfig(weights=weights, gates=gates).version
            for gates in ((), ("a",), ("a", "b"))
        }
        assert len(versions) == 3

    def test_the_order_of_weights_does_not(self):
        turned = WHOLE | {"weights": dict(reversed(WHOLE["weights"].items()))}
        assert parse(turned).version == parse(WHOLE).version


class TestScaling:
    @pytest.mark.parametrize(
        "value,expected",
        [
            (1, 0.0),
            (3, 0.5),
            (5, 1.0),
            (7, 1.5),
            (True, 1.0),
            ("5", 1.0),
            (" 2,0", 0.25),
            ("true", 1.0),
            ("5 stars", None),
            ("nan", None),
        ],
    )
    def test_by_a_range(self, value, expected):
        assert source("label", task="stars", range=[1, 5]).scaled(value) == expected

    @pytest.mark.parametrize(
        "equals,value,expected",
        [
            ("yes", "yes", 1.0),
            ("yes", "no", 0.0),
            ("yes", True, 0.0),
            (True, True, 1.0),
            (True, 1, 0.0),
            (1, 1.0, 1.0),
            (1, "1.0", 1.0),
            (True, "TRUE", 1.0),
            (True, "false", 0.0),
            ("1", "1", 1.0),
            ("yes", None, None),
            ("yes", ["yes"], 0.0),
        ],
    )
    def test_by_a_value(self, equals, value, expected):
        assert source("label", task="safe", equals=equals).scaled(value) == expected

    def test_it_is_circular_where_it_holds_what_it_is_checked_against(self):
        weights = {"liked": {"weight": 1, "reason": "x"}}
        data = {"weights": weights, "sources": {"liked": "win_rate"}}
        assert parse(data | {"check": "win_rate"}).is_circular
        assert parse(data).is_circular
        assert not parse(data | {"check": "pass_rate"}).is_circular
