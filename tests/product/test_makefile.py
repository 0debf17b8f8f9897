"""Which Python the first `make` takes, on machines that have this one and that."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "make", "rm", "cp", "chmod", "touch", "mkdir", "echo")
# Says that it is of some version, and makes a .venv whose Python succeeds at everything.
PYTHON = """#!/bin/sh
case "$1" in
  -c) exec "{real}" -c "import sys; sys.version_info = ({version}, 0); $2" ;;
  --version) echo "Python {name}" ;;
  -m) mkdir -p .venv/bin; echo '#!/bin/sh' >.venv/bin/python; chmod 755 .venv/bin/python ;;
esac
"""


@pytest.fixture
def machine(tmp_path):
    """A folder with the Makefile, and a function that runs it where there are such Pythons."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool))
    place = tmp_path / "a folder"
    place.mkdir()
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, place / name)

    def make(**pythons):
        for program, version in pythons.items():
            path = programs / program.replace("_", ".")
            text = PYTHON.format(
                real=sys.executable, version=version.replace(".", ", "), name=version
            )
            path.write_text(text)
            path.chmod(0o755)
        command = ["make", "--no-print-directory", ".venv/.installed"]
        return subprocess.run(
            command,
            cwd=place,
            env={**os.environ, "PATH": str(programs)},
            capture_output=True,
            text=True,
        )

    return make


@pytest.mark.parametrize(
    "pythons,taken",
    [
        ({"python3": "3.11", "python3_12": "3.12", "python3_13": "3.13"}, "3.13"),
        ({"python3": "3.15", "python3_14": "3.14", "python3_11": "3.11"}, "3.14"),
        ({"python3": "3.12"}, "3.12"),
        ({"python3": "3.10", "python3_11": "3.11"}, "3.11"),
    ],
)
def test_the_newest_python_that_is_supported_is_taken(machine, pythons, taken):
    made = machine(**pythons)
    assert made.returncode == 0, made.stderr
    assert f"Creating .venv with Python {taken}\n" in made.stdout


@pytest.mark.parametrize(
    "pythons,named",
    [
        ({}, "no python3"),
        ({"python3": "3.10"}, "Python 3.10"),
        ({"python3": "3.15"}, "Python 3.15"),
    ],
)
def test_where_there_is_none_it_says_what_is_needed_and_what_is_there(machine, pythons, named):
    made = machine(**pythons)
    assert made.returncode != 0
    assert "HumanJudge needs Python 3.11 to 3.14 with its venv module" in made.stderr
    assert f"here is {named}." in made.stderr
