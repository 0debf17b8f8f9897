"""The examples in the docstrings of interchange are true."""

import doctest
import pkgutil
from importlib import import_module

import pytest

from judge_eval import interchange

MODULES = [
    module.name
    for module in pkgutil.walk_packages(interchange.__path__, f"{interchange.__name__}.")
]


def test_every_module_is_looked_at():
    assert "judge_eval.interchange.formats.mtbench" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    assert doctest.testmod(import_module(name)).failed == 0
