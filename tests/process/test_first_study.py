"""The pages to begin with, command by command, against a HumanJudge that `make run` has started."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.waiting import eventually
from tests.process.up import ROOT, environment, first_start, free_port
from tests.provider import provider

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(900)]

# Each with the judges of its study.
PAGES = {
    "first-study": ("judge-one", "judge-two", "longer-wins"),
    "quickstart-judges": ("judge-one", "judge-two", "always-pass", "always-flag", "random"),
}
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROVIDER = "https://openrouter.ai/api/v1"


@pytest.fixture
def folder(tmp_path):
    """The product's folder after `make` has installed it, with nothing of this machine's in it."""
    root = tmp_path / "humanjudge"
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


def blocks(page):
    """The page's commands in order, each with what the page says they print."""
    found = BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text("utf-8"))
    follows = [*found[1:], ("", "")]
    return [
        (text, after if kind == "text" else None)
        for (language, text), (kind, after) in zip(found, follows, strict=True)
        if language == "sh"
    ]


def matches(printed, promised):
    """Whether these are the lines, but for identifiers and the order of tasks: others each time."""
    lines, wanted = printed.splitlines(), promised.splitlines()
    return [*map(without_ids, lines)] == [*map(without_ids, wanted)]


def without_ids(line):
    line = re.sub(r"^(next-task\|.*prompt:).*", r"\1PROMPT", line)
    return re.sub(r"(?<=\|)[0-9a-f]{8}(?=\||$)", "ID", line)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page_works_and_prints_what_it_says(page, folder, tmp_path):
    start, *commands = blocks(page)
    assert "make run" in start[0]
    assert PROVIDER in start[0]
    # What the first start makes has been made.
    data, screen = first_start().copied(tmp_path / "data"), tmp_path / "screen"
    plain = environment(data, PORT=str(free_port()), OPENROUTER_API_KEY="sk-any")
    plain = {name: value for name, value in plain.items() if not name.startswith("HUMANJUDGE_U")}
    with provider() as models, screen.open("w") as output:
        first = subprocess.Popen(
            ["bash", "-ec", start[0].replace(PROVIDER, models.base_url)],
            cwd=folder,
            env=plain,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            eventually(lambda: "Ctrl-C" in screen.read_text() or first.poll() is not None, 300)
            assert first.poll() is None, screen.read_text()
            printed = second_terminal(folder, plain, [command for command, _ in commands])
        finally:
            os.killpg(first.pid, signal.SIGINT)  # what Ctrl-C does
            assert first.wait(60) in {0, 2, 130, -signal.SIGINT}, screen.read_text()
    for (command, promised), said in zip(commands, printed, strict=True):
        assert promised is None or matches(said, promised), f"{command}\n{said}"
        if "results" in command:
            assert all(judge in said for judge in PAGES[page])
        if "verify" in command:
            assert re.fullmatch(r"verified\|\d+\|head\|\w+\|known\|0", said.splitlines()[-1])


def second_terminal(folder, plain, commands):
    """Type all commands into one shell; return what each block printed."""
    mark = "=== next ==="
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"\necho '{mark}'\n".join(commands)],
        cwd=folder,
        env=plain,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(f"{mark}\n")
