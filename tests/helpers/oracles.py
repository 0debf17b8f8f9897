"""Statistics of other libraries, to check ours by: `oracles.evalica.elo(...)`.

Each is imported when a test first uses it: that takes seconds, and each worker of a test run
collects all tests.
"""

from importlib import import_module
from types import ModuleType

MODULES = {
    "evalica": "evalica",
    "integrate": "scipy.integrate",
    "metrics": "sklearn.metrics",
    "pandas": "pandas",
    "polars": "polars",
    "special": "scipy.special",
    "stats": "scipy.stats",
}


def __getattr__(name: str) -> ModuleType:
    # pytest asks every module that a test has imported for names of its own.
    if name not in MODULES:
        raise AttributeError(name)
    return import_module(MODULES[name])
