"""Says how far a half of the suite is, and what its tests cost: see `tests.suite`.

Each line that is written is one JSON object: the phase (collect, setup, call, teardown), the test,
its outcome, and the processor seconds that this process and those it has waited for took.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

# Names the pipe in the environment, by its number.
PROGRESS = "HUMANJUDGE_TEST_PROGRESS"


def processor_seconds() -> float:
    return sum(os.times()[:4])


class Costs:
    """Writes into each report what its phase took."""

    before = 0.0

    def pytest_runtest_logstart(self) -> None:
        self.before = processor_seconds()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Any:
        report = yield
        now = processor_seconds()
        report.processor_seconds, self.before = now - self.before, now
        return report


class Progress:
    """Writes down all that is reported, in place of pytest's own dots."""

    def __init__(self, pipe: int) -> None:
        self.pipe = os.fdopen(pipe, "w", encoding="utf-8")

    def write(self, **event: Any) -> None:
        print(json.dumps(event), file=self.pipe, flush=True)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        cost = processor_seconds()
        self.write(phase="collect", tests=len(session.items), processor_seconds=cost)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.write(
            phase=report.when,
            test=report.nodeid,
            outcome=report.outcome,
            processor_seconds=getattr(report, "processor_seconds", 0.0),
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:
        """No letter for what has passed: it is counted."""
        return ("passed", "", "") if report.passed and report.when == "call" else None

    def pytest_unconfigure(self) -> None:
        self.pipe.close()
