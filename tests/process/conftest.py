"""What the flows share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.processes import ROOT
from tests.servers import once


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        # On a machine that is busy, starting a process may take as long as other tests may.
        if here in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def static():
    """A folder of collected static files, as pages name them on a real server."""

    def collect(folder: Path) -> str:
        data = folder / "data"
        subprocess.run(
            [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"],
            cwd=ROOT,
            env={**os.environ, "HUMANJUDGE_DATA": str(data)},
            check=True,
        )
        return str(data / "static")

    return Path(once("static", collect))
