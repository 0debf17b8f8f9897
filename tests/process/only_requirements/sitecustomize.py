"""Hides what `make run` does not install, for whoever has this folder on PYTHONPATH.

pytest stands here as what the pages have their reader install.
"""

import sys

HIDDEN = frozenset(
    "argilla choix datasets evalica grandjury httpx hypothesis moto pandas playwright polars"
    " schemathesis sklearn time_machine".split()
)


class Hides:
    """An import finder that says of these modules that they are not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"{name} is not in requirements.txt", name=name)


sys.meta_path.insert(0, Hides())
