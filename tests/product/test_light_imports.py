"""What a process imports before its first request or task."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.extension_package import install

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    *("numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "PIL"),
    *("httpcore2", "resvg_py", "cairosvg", "authlib", "joserfc", "requests"),
}
LOADED = """
import json, sys
import humanjudge.server.rsgi, humanjudge.urls
from humanjudge.celery import app
app.loader.import_default_modules()
print(json.dumps([sorted(app.tasks), sorted(sys.modules)]))
"""


@pytest.mark.slow
def test_web_servers_and_workers_start_without_what_only_computing_needs(tmp_path):
    # With a package of extensions, a scorer among them.
    environment = os.environ | {"PYTHONPATH": str(install(tmp_path))}
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADED],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    tasks, modules = json.loads(made.stdout)
    assert {"voting.tasks.seal", "judge_eval.tasks.work", "reports.tasks.sweep"} <= set(tasks)
    assert {"judge_eval.runs.views.run", "humanjudge_consensus.scorers"} <= set(modules)
    assert set(modules) & HEAVY == set()
