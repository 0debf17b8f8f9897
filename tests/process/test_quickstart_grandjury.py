"""The quickstart of the client `grandjury`, command by command, against what `make run` started."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.helpers.waiting import eventually
from tests.process.test_first_study import BLOCK, folder, matches
from tests.process.up import ROOT, environment, first_start, free_port

__all__ = ["folder"]
pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = (ROOT / "docs" / "quickstart-grandjury.md").read_text("utf-8")
VOTE = "## 4. Vote"


def commands(text):
    """The commands of a part of the page, each with what the page says they print."""
    found = [(kind, body) for kind, body in BLOCK.findall(text)]
    follows = [*found[1:], ("", "")]
    return [
        (body, after if kind == "text" else None)
        for (language, body), (kind, after) in zip(found, follows, strict=True)
        if language == "sh"
    ]


class Shell:
    """Somebody's second terminal: what one block exports is there in the next."""

    def __init__(self, root, plain):
        self._process = subprocess.Popen(
            ["bash", "-eu"],
            cwd=root,
            env=plain,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command):
        mark = "=== done ==="
        self._process.stdin.write(f"{command}\necho '{mark}'\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line.strip() == mark:
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"{command}\n{''.join(lines)}")

    def end(self):
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(30) == 0


def test_every_command_of_the_page_works_and_prints_what_it_says(folder, tmp_path):
    data, screen = first_start().copied(tmp_path / "data"), tmp_path / "screen"
    plain = environment(data, PORT=str(free_port()))
    plain = {name: text for name, text in plain.items() if not name.startswith("GRANDJURY_")}
    (start, _), *before = commands(PAGE[: PAGE.index(VOTE)])
    after = commands(PAGE[PAGE.index(VOTE) :])
    with screen.open("w") as output:
        first = subprocess.Popen(
            ["bash", "-ec", start],
            cwd=folder,
            env=plain,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            eventually(lambda: "Ctrl-C" in screen.read_text() or first.poll() is not None, 300)
            assert first.poll() is None, screen.read_text()
            shell = Shell(folder, plain)
            follow(shell, before)
            vote(plain)
            follow(shell, after)
            shell.end()
        finally:
            os.killpg(first.pid, signal.SIGINT)  # what Ctrl-C does
            assert first.wait(60) in {0, 2, 130, -signal.SIGINT}, screen.read_text()


def follow(shell, blocks):
    for command, promised in blocks:
        printed = shell.run(command)
        assert matches(printed, promised or ""), f"{command}\n{printed}"


def vote(plain):
    """Do what the page asks a person to do."""
    asked = [sys.executable, "-m", "tests.process.grandjury_rows", "vote_on_all"]
    subprocess.run([*asked, '["models-of-admin"]'], cwd=ROOT, env=plain, check=True)


def test_the_page_says_what_the_client_is_pinned_to():
    [pinned] = re.findall(r"grandjury==(\S+)", (ROOT / "requirements-dev.txt").read_text())
    assert f"grandjury=={pinned}" in PAGE
    assert f"`grandjury` (PyPI, {pinned})" in (ROOT / "docs" / "grandjury.md").read_text("utf-8")
