"""The examples of the metrics are true, in the modules and on the page; and they need no Django."""

import doctest
import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from judge_eval import metrics
from judge_eval.metrics.registry import SCORERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "metrics.md"
MODULES = [
    metrics.__name__,
    *(f"{metrics.__name__}.{found.name}" for found in pkgutil.iter_modules(metrics.__path__)),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_modules_are_true(name):
    assert doctest.testmod(import_module(name)).failed == 0


def test_examples_on_the_page_are_true(monkeypatch):
    monkeypatch.setattr("judge_eval.metrics.registry.SCORERS", dict(SCORERS))
    outcome = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 50
    assert outcome.failed == 0


def test_every_scorer_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in SCORERS if f"\n## {name}\n" not in page] == []


ALONE = """
import sys
from judge_eval.metrics import alt_test, cohen_kappa
slow = {"django", "scipy", "sklearn"} & set(sys.modules)
assert not slow, slow
people = {name: {n: "AB"[n % 2] for n in range(30)} for name in ("ann", "ben", "cem")}
print(alt_test({"j": people["ann"]}, people)["j"].passes)
print(cohen_kappa(people["ann"], people).figure.value)
assert "django" not in sys.modules
"""


def test_the_package_works_without_settings_and_imports_nothing_slow():
    plain = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\n1.0\n", "")
