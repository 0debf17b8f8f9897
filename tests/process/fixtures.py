"""What tests of processes share."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.documents import commands, text_of
from tests.process.up import INSTALLED, ROOT, Up, environment, first_start
from tests.provider import provider
from tests.servers import once

PROVIDER = "https://openrouter.ai/api/v1"
# Models of the provider that never answer within a test.
SILENT_MODELS = ("silent-a", "silent-b")
SOMEBODY_ELSE = 65534


@pytest.fixture(scope="session")
def static():
    """Static files that another user has collected under a strict umask, as an image is built."""

    def collect(folder: Path) -> str:
        static = folder / "static"
        subprocess.run(
            [*INSTALLED, "manage", "collectstatic", "--noinput", "--verbosity", "0"],
            cwd=ROOT,
            env=environment(folder / "data", STATIC_ROOT=str(static)),
            umask=0o077,
            check=True,
        )
        # Its own mode is that of whoever makes the folder, as a Dockerfile does.
        static.chmod(0o755)
        if os.geteuid() == 0:
            for path in (static, *static.rglob("*")):
                os.chown(path, SOMEBODY_ELSE, SOMEBODY_ELSE)
        return str(static)

    return Path(once("static", collect))


def installed(root: Path) -> Path:
    """The product's folder after `make` has installed it, with nothing of this machine's in it."""
    programs = root / ".venv" / "bin"
    programs.mkdir(parents=True)
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and path.name != "var":
            (root / path.name).symlink_to(path)
    (programs / "python").symlink_to(sys.executable)
    (root / ".venv" / "lib").symlink_to(Path(sys.prefix, "lib"))
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), root / ".venv")
    program = f"#!{programs}/python\nimport sys\nsys.path.insert(0, {str(root)!r})\n"
    program += "from humanjudge.__main__ import main\nsys.exit(main())\n"
    (programs / "humanjudge").write_text(program)
    (programs / "humanjudge").chmod(0o755)
    (root / ".venv" / ".installed").touch()
    return root


@pytest.fixture(scope="session")
def up(tmp_path_factory):
    """HumanJudge as docs/first-study.md starts it, for all that is typed or sent from outside."""
    place = tmp_path_factory.mktemp("up")
    folder = installed(place / "humanjudge")
    # What the first start makes has been made.
    data = first_start().copied(place / "data")
    start = commands(text_of("first-study"))[0][0]
    assert PROVIDER in start
    with provider() as models:
        models.control(mode="slow", slow_ms=600_000, models=list(SILENT_MODELS))
        program = ("bash", "-ec", start.replace(PROVIDER, models.base_url))
        up = Up(data, program=program, folder=folder, OPENROUTER_API_KEY="sk-any")
        try:
            yield up.ready()
        finally:
            os.killpg(up.process.pid, signal.SIGINT)  # what Ctrl-C does
            assert up.process.wait(60) in {0, 2, 130, -signal.SIGINT}, up.shown()
