"""The commands of a page of the docs, as somebody types them into a second terminal."""

import re
import subprocess

from tests.process.up import ROOT

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(page):
    return (ROOT / "docs" / f"{page}.md").read_text("utf-8")


def commands(text):
    """The commands of a text in order, each with what the text says they print, if it does."""
    blocks = BLOCK.findall(text)
    follows = [*blocks[1:], ("", "")]
    return [
        (command, after if kind == "text" else None)
        for (language, command), (kind, after) in zip(blocks, follows, strict=True)
        if language == "sh"
    ]


def matches(printed, promised):
    """Whether these are the lines, but for identifiers and the order of tasks: others each time."""
    lines, expected = printed.splitlines(), promised.splitlines()
    return [*map(without_ids, lines)] == [*map(without_ids, expected)]


def without_ids(line):
    line = re.sub(r"^(next-task\|.*prompt:).*", r"\1PROMPT", line)
    return re.sub(r"(?<=\|)[0-9a-f]{8}(?=\||$)", "ID", line)


class Terminal:
    """A shell in which what one command exports is there in the next."""

    MARK = "=== done ==="

    def __init__(self, folder, environment):
        self._process = subprocess.Popen(
            ["bash", "-euo", "pipefail"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command):
        self._process.stdin.write(f"{command}\necho '{self.MARK}'\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line.strip() == self.MARK:
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"{command}\n{''.join(lines)}")

    def end(self):
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(30) == 0
