"""What the flows share."""

import os
import subprocess
import sys

import pytest

from tests.process.processes import ROOT


@pytest.fixture(scope="session")
def static(tmp_path_factory):
    """A folder of collected static files, as pages name them on a real server."""
    data = tmp_path_factory.mktemp("static")
    subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"],
        cwd=ROOT,
        env={**os.environ, "HUMANJUDGE_DATA": str(data)},
        check=True,
    )
    return data / "static"
