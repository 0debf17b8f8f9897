"""`manage.py up` as a real process tree, for the tests that look at the whole product."""

import json
import os
import pty
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple, Self

import httpx

from tests.helpers.waiting import eventually, gone
from tests.servers import once

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180
# As `make run` starts it.
PROGRAM = (sys.executable, "manage.py")
# The command `humanjudge`, as containers call it.
INSTALLED = (sys.executable, "-m", "humanjudge")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(data: Path, **more: str) -> dict[str, str]:
    """This machine's, without what the test run or somebody's .env file says of servers."""
    plain = dict.fromkeys(("DATABASE_URL", "REDIS_URL", "HOST", "SECRET_KEY"), "")
    plain |= {"DEBUG": "false", "HTTPS": "false", "HUMANJUDGE_DATA": str(data)}
    return {**os.environ, **plain, **more}


def try_up(data: Path, port: int | str, **more: str) -> subprocess.CompletedProcess:
    """A start that is expected to be refused."""
    return subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env=environment(data, PORT=str(port), **more),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )


class Up:
    """A running HumanJudge on a data folder and a port of its own."""

    def __init__(
        self,
        data: Path,
        port: int | None = None,
        program=PROGRAM,
        folder: Path = ROOT,
        *,
        is_terminal=False,
        **more: str,
    ) -> None:
        self.data = data
        self.folder = folder
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.screen = data.with_name(f"{data.name}.screen")
        reader, terminal = pty.openpty() if is_terminal else (-1, -1)
        with self.screen.open("w") as screen:
            self.process = subprocess.Popen(
                [*program, "up"],
                cwd=folder,
                env=environment(data, PORT=str(self.port), **more),
                stdout=terminal if is_terminal else screen,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if is_terminal:
            os.close(terminal)
            threading.Thread(target=self._follow, args=(reader,), daemon=True).start()

    def _follow(self, terminal: int) -> None:
        with suppress(OSError), self.screen.open("ab", 0) as screen:
            while data := os.read(terminal, 1 << 16):
                screen.write(data.replace(b"\r\n", b"\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def shown(self) -> str:
        return self.screen.read_text()

    def ready(self) -> Self:
        eventually(
            lambda: "Ctrl-C" in self.shown() or self.process.poll() is not None, START_SECONDS
        )
        assert self.process.poll() is None, self.shown() + self.logs()
        return self

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def logs(self) -> str:
        return "\n".join(f"{log}:\n{log.read_text()}" for log in self.data.glob("logs/*.log"))

    def access(self) -> dict:
        return json.loads((self.data / "access.json").read_text())

    def healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def run_api(self, key: str = "api_key", run: str = "Drawings") -> httpx.Client:
        """A client of a run's API, with the key of the first start, which votes blindly."""
        [board] = [it for it in self.access()["board"] if it["name"] == run]
        number = board["path"].strip("/").split("/")[-1]
        return httpx.Client(
            base_url=f"{self.url}/api/runs/{number}/judge-eval/",
            headers={"Authorization": f"Bearer {self.access()[key]}"},
            timeout=30,
        )

    def results(self, run: str = "Drawings") -> dict:
        """What a run's API says of votes and judges, to a key that may see it."""
        with self.run_api("cli_key", run) as reader:
            return reader.get("results").json()

    def tree(self, root: int | None = None) -> dict[int, str]:
        """Every process below `root`, or the supervisor, with its command line, the root first."""
        table = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rows = [
            (int(pid), int(parent), words)
            for pid, parent, words in re.findall(r"^\s*(\d+)\s+(\d+)\s+(.*)$", table, re.MULTILINE)
        ]
        found = {pid: words for pid, _, words in rows if pid == (root or self.process.pid)}
        while more := {p: w for p, parent, w in rows if parent in found and p not in found}:
            found |= more
        return found

    def processes(self, name: str) -> list[int]:
        return sorted(pid for pid, words in self.tree().items() if name in words)


def all_gone(pids) -> bool:
    return all(gone(pid) for pid in pids)


class FirstStart(NamedTuple):
    """What the first start on an empty folder left: the folder, the screen, and the port it had."""

    data: Path
    shown: str
    port: int

    def copied(self, to: Path) -> Path:
        return shutil.copytree(self.data, to, symlinks=True)


def first_start() -> FirstStart:
    """Start once for all tests of a run, until all is drawn and computed."""

    def make(folder: Path) -> tuple[str, str, int]:
        data = folder / "data with a space"
        with Up(data) as up:
            shown = up.ready().shown()
            eventually(lambda: is_at_rest(data), START_SECONDS)
            assert up.stop(signal.SIGTERM) == 0, up.shown()
        return str(data), shown, up.port

    data, shown, port = once("first start", make)
    return FirstStart(Path(data), shown, port)


def is_at_rest(data: Path) -> bool:
    """Whether all pictures of the demo are drawn, and the figures of its finished runs computed."""
    with closing(sqlite3.connect(data / "humanjudge.sqlite3")) as database:
        query = "SELECT count(*), count(*) FILTER (WHERE state = 'waiting') FROM voting_picture"
        pictures, waiting = database.execute(query).fetchone()
        query = "SELECT count(*) FROM judge_eval_findings WHERE computed_at IS NOT NULL"
        (computed,) = database.execute(query).fetchone()
    return pictures > 0 and not waiting and computed > 1
