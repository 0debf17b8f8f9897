"""A pytest fixture: a test that fails when a judge does not meet conditions on people's votes.

In a `conftest.py`: ``pytest_plugins = ["humanjudge.gate"]``. The server and the key are those of
the command line. docs/gate.md has an example.
"""

from contextlib import closing
from typing import Any, Protocol

import pytest

from humanjudge.cli import gate as command
from humanjudge.cli.client import Failed, connect


class Gate(Protocol):
    """Fails the test unless a judge of a run passes; see `humanjudge gate --help`."""

    def __call__(
        self,
        run: str,
        judge: str,
        *,
        ask: bool = False,
        provider: str | None = None,
        timeout: float = 600,
        **conditions: Any,
    ) -> dict[str, Any]: ...


@pytest.fixture(scope="session")
def gate() -> Gate:
    """Return a function that weighs conditions, such as ``min_agreement=0.8, beats_floor=True``.

    It returns what was decided, where that is "passed". Too few votes fail the test too: what
    nobody can say yet has not passed.
    """

    def weigh(
        run: str,
        judge: str,
        *,
        ask: bool = False,
        provider: str | None = None,
        timeout: float = 600,
        **conditions: Any,
    ) -> dict[str, Any]:
        try:
            with closing(connect()) as client:
                if ask:
                    command.ask_judge(client, run, judge, provider, timeout)
                reply = command.decided(client, run, timeout, judge=judge, **conditions)
        except Failed as failed:
            pytest.fail(f"the gate could not be asked: {failed}", pytrace=False)
        if reply["code"]:
            pytest.fail("\n".join(command.words(reply)), pytrace=False)
        return reply

    return weigh
