"""HumanJudge: people vote on pairs, and judges are ranked by how well they agree.

`humanjudge.load` gives the data of a run to a notebook.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import what only notebooks need, and look up the version, when somebody asks for it."""
    if name == "load":
        from humanjudge.notebook import load

        return load
    if name == "__version__":
        from importlib.metadata import version

        return version("humanjudge")
    raise AttributeError(f"module 'humanjudge' has no attribute {name!r}")
