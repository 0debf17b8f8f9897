"""The recorded composites, by the composite of this project."""

import json
from pathlib import Path

import pytest

from reports.composite.compute import composite_of_item

NUMBERS = Path(__file__).resolve().parents[3] / "shared" / "cases" / "seed_numbers.json"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not NUMBERS.exists(), reason="not run: no ../shared/cases"),
]


def test_composites_are_as_recorded():
    cases = json.loads(NUMBERS.read_text(encoding="utf-8"))["composite"]
    assert len(cases) >= 5
    for case in cases:
        found = composite_of_item(case["scores"], case["weights"], case["gates"])
        value, reason = case["out"]
        assert (found.value, found.reason) == (pytest.approx(value, abs=1e-9), reason)
