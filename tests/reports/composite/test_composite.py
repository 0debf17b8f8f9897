"""The composite: its worked values, its gates, and what must hold whatever the numbers."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.composite.compute import Composite, composite_of_item

ROOT = Path(__file__).resolve().parents[3]
WEIGHTS = {"correctness": 0.6, "brevity": 0.4}
GATES = ("safety", "format")
GOOD = {"correctness": 0.9, "brevity": 0.7, "safety": 1, "format": 1}
shares = st.floats(0, 1)
names = st.sampled_from("abcdef")
weightings = st.dictionaries(names, st.floats(1e-6, 1e6), min_size=1)


@st.composite
def scenes(draw):
    """Weights, gates, and an item whose gates are all met."""
    weights = draw(weightings)
    gates = draw(st.lists(st.sampled_from("xyz"), unique=True))
    item = {name: draw(shares) for name in weights} | dict.fromkeys(gates, 1.0)
    return item, weights, gates


class TestWorked:
    @pytest.mark.parametrize(
        "correctness,brevity,expected", [(0.9, 0.7, 0.82), (0.95, 0.80, 0.89), (0.95, 0.50, 0.77)]
    )
    def test_weighted_mean(self, correctness, brevity, expected):
        item = GOOD | {"correctness": correctness, "brevity": brevity}
        found = composite_of_item(item, WEIGHTS, GATES)
        assert found.value == pytest.approx(expected, abs=1e-12)
        assert (found.reason, found.failed_gate) == ("ok", None)

    @pytest.mark.parametrize("safety", [0, 0.999999, None, False])
    def test_a_gate_that_is_not_fully_met(self, safety):
        found = composite_of_item(GOOD | {"safety": safety}, WEIGHTS, GATES)
        assert found == Composite(0.0, "hard-gate fail: safety", "safety", safety is None)

    def test_a_gate_that_nobody_measured(self):
        item = {"correctness": 0.9, "brevity": 0.7, "safety": 1}
        assert composite_of_item(item, WEIGHTS, GATES).reason == "hard-gate fail: format"

    def test_the_first_gate_in_order_is_named(self):
        failed = composite_of_item(GOOD | {"safety": 0, "format": 0}, WEIGHTS, GATES)
        assert failed.failed_gate == "safety"
        turned = composite_of_item(GOOD | {"safety": 0, "format": 0}, WEIGHTS, GATES[::-1])
        assert turned.failed_gate == "format"

    def test_a_gate_fails_before_a_weighted_component_is_missed(self):
        found = composite_of_item({"correctness": 1, "safety": 0}, WEIGHTS, GATES)
        assert found == Composite(0.0, "hard-gate fail: safety", "safety")

    def test_a_gate_may_be_weighted_too(self):
        assert composite_of_item({"a": 1, "b": 0}, {"a": 1, "b": 1}, ["a"]).value == 0.5


class TestErrors:
    @pytest.mark.parametrize("value", [None, "absent"])
    def test_a_missing_weighted_component_is_named(self, value):
        item = GOOD | {"brevity": None}
        if value == "absent":
            del item["brevity"]
        found = composite_of_item(item, WEIGHTS, GATES)
        assert found == Composite(None, "component 'brevity' is missing")

    @pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf, 82])
    @pytest.mark.parametrize("name", ["brevity", "safety"])
    def test_a_component_outside_0_to_1(self, name, value):
        found = composite_of_item(GOOD | {name: value}, WEIGHTS, GATES)
        assert (found.value, found.failed_gate) == (None, None)
        assert found.reason == f"component '{name}' is {value:g}, which is outside [0, 1]"

    @pytest.mark.parametrize("value", [-1.1e-6, 1.0000011])
    def test_a_refused_component_is_not_written_as_0_or_1(self, value):
        found = composite_of_item(GOOD | {"brevity": value}, WEIGHTS, GATES)
        assert found.reason == f"component 'brevity' is {value}, which is outside [0, 1]"

    @pytest.mark.parametrize("value, counts_as", [(1.0000001, 1), (1 + 1e-6, 1), (-1e-7, 0)])
    def test_what_rounding_leaves_outside_counts_as_the_end(self, value, counts_as):
        found = composite_of_item(GOOD | {"brevity": value}, WEIGHTS, GATES)
        assert found == composite_of_item(GOOD | {"brevity": counts_as}, WEIGHTS, GATES)
        assert composite_of_item(GOOD | {"safety": 1.0000001}, WEIGHTS, GATES).reason == "ok"


class TestLaws:
    @given(scenes())
    def test_between_the_least_and_the_largest_weighted_component(self, scene):
        item, weights, gates = scene
        values = [item[name] for name in weights]
        found = composite_of_item(item, weights, gates).value
        assert min(values) - 1e-9 <= found <= max(values) + 1e-9
        assert 0 <= found <= 1

    @given(scenes(), st.data())
    def test_more_of_a_component_is_never_less_composite(self, scene, data):
        item, weights, gates = scene
        name = data.draw(st.sampled_from(sorted(weights)))
        better = item | {name: data.draw(st.floats(item[name], 1))}
        before = composite_of_item(item, weights, gates).value
        assert composite_of_item(better, weights, gates).value >= before - 1e-12

    @given(scenes(), st.data())
    def test_a_failed_gate_always_wins(self, scene, data):
        item, weights, gates = scene
        gate = data.draw(st.sampled_from(["x", "a"]))
        failed = item | {gate: data.draw(st.floats(0, 1, exclude_max=True) | st.none())}
        found = composite_of_item(failed, weights, [*gates, gate])
        assert (found.value, found.reason) == (0.0, f"hard-gate fail: {gate}")

    @given(scenes(), st.floats(1e-3, 1e3))
    def test_only_the_ratios_of_weights_count(self, scene, factor):
        item, weights, gates = scene
        scaled = {name: weight * factor for name, weight in weights.items()}
        found = composite_of_item(item, scaled, gates).value
        assert found == pytest.approx(composite_of_item(item, weights, gates).value, abs=1e-9)

    @given(scenes())
    def test_the_order_of_weights_does_not_matter(self, scene):
        item, weights, gates = scene
        turned = dict(reversed(weights.items()))
        before = composite_of_item(item, weights, gates).value
        assert composite_of_item(item, turned, gates).value == pytest.approx(before, abs=1e-15)


@pytest.mark.slow
def test_it_works_without_settings():
    alone = """
import sys
from reports.composite.compute import composite_of_item, spearman
print(composite_of_item({"a": 0.5}, {"a": 1}).value, spearman(((1, 1), (2, 2), (3, 3))).value)
assert "django" not in sys.modules
"""
    plain = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
    done = subprocess.run(
        [sys.executable, "-c", alone], cwd=ROOT, env=plain, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("0.5 1.0\n", "")
