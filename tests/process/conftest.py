"""What the flows share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.processes import ROOT
from tests.servers import once


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
