"""A pytest fixture: a test that fails when a judge does not meet conditions on people's votes.

In a `conftest.py`: ``pytest_plugins = ["humanjudge.gate"]``. The server and the key are those of
the command line. docs/gate.md has an example.
"""

from typing import Any, Protocol

import pytest

from humanjudge.cli.client import Failed
from humanjudge.cli.gate import decide, words
from humanjudge.cli.lines import Reply


class Gate(Protocol):
    """Fails the test unless a judge of a run passes.

    What may be given is what `humanjudge gate --help` lists, such as ``min_agreement=0.8``,
    ``ask=True``.
    """

    def __call__(self, run: str, judge: str, **options: Any) -> Reply: ...


@pytest.fixture(scope="session")
def gate() -> Gate:
    """Return a function that weighs conditions, and returns what was decided if that is "passed".

    Too few votes fail the test too: what nobody can say yet has not passed.
    """

    def weigh(run: str, judge: str, **options: Any) -> Reply:
        try:
            reply = decide(run, judge, **options)
        except Failed as failed:
            pytest.fail(f"the gate could not be asked: {failed}", pytrace=False)
        if reply["code"]:
            pytest.fail("\n".join(words(reply)), pytrace=False)
        return reply

    return weigh
