"""What `judge_eval.stats` exports, and when."""

import importlib
import subprocess
import sys
from pathlib import Path

import judge_eval.stats

PACKAGE = Path(judge_eval.stats.__file__).parent


def test_every_public_name_can_be_imported():
    for name in judge_eval.stats.__all__:
        assert getattr(judge_eval.stats, name) is not None


def test_no_public_name_is_that_of_a_module():
    """The module would take the place of the function as soon as anybody imports it."""
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    assert modules & set(judge_eval.stats.__all__) == set()


def test_ratings_and_a_single_interval_are_imported_without_numpy():
    code = "import sys; from judge_eval.stats import elo, estimate"
    code += "; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parents[1]).returncode == 0


def test_modules_are_imported_by_their_own_names():
    for path in PACKAGE.glob("[!_]*.py"):
        importlib.import_module(f"judge_eval.stats.{path.stem}")
