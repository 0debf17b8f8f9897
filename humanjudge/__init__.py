"""HumanJudge: people vote on pairs, and judges are ranked by how well they agree.

`humanjudge.load` gives the data of a run to a notebook.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import what is for notebooks when somebody uses it: the server never does."""
    if name == "load":
        from humanjudge.notebook import load

        return load
    raise AttributeError(f"module 'humanjudge' has no attribute {name!r}")
