"""The supervisor and its lifeline, with small real programs as children."""

import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from humanjudge.server.launcher import supervisor
from humanjudge.server.launcher.lifeline import group_alive
from humanjudge.server.launcher.supervisor import CAN_FORK, Child
from tests.helpers.waiting import eventually, gone

pytestmark = [pytest.mark.process, pytest.mark.fault]

ROOT = Path(__file__).resolve().parents[3]

# Each child writes what happens to it to events.txt, one word per line.
CHILD = """
import os, signal, subprocess, sys, time
name, behaviour, events = sys.argv[1:4]
def note(what):
    with open(events, "a") as file:
        print(name, what, file=file)
def stop(*_):
    note("stopped")
    raise SystemExit
signal.signal(signal.SIGTERM, signal.SIG_IGN if behaviour == "stubborn" else stop)
if behaviour == "parent":
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note(f"grandchild={grandchild.pid}")
if behaviour == "noisy":
    print("a quiet line\\n2026-01-01 WARNING something: look here\\n", end="", flush=True)
note(f"started={os.getpid()}")
note(f"open={len(os.listdir('/proc/self/fd')) - 1 if os.path.exists('/proc/self/fd') else 3}")
if behaviour == "crash" or (behaviour == "starved" and not os.path.exists("food")):
    sys.exit("this is why")
while True:
    time.sleep(600)
"""

RUN = """
import fcntl, os, sys
from pathlib import Path
from humanjudge.server.launcher.supervisor import Child, Supervisor
folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
os.environ["PYTHONPATH"] = str(folder)
os.chdir(folder)
lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
def say(line):
    print(line, flush=True)
with Supervisor(folder / "logs", say, keep_open=(lock,)) as supervisor:
    for pair in sys.argv[2:]:
        name, behaviour = pair.split("=")
        patience = 0.5 if behaviour == "stubborn" else 30
        words = ["child", name, behaviour, str(folder / "events.txt")]
        start = ["-m"] if name != "executed" else ["-P", "-m"]
        command = [sys.executable, *start, *words]
        supervisor.start(Child(name, command, stop_seconds=patience))
    say(f"guard={supervisor._lifeline._process.pid}")
    supervisor.is_settled = (folder / "settled").exists()
    supervisor.wait_for(lambda: False)
sys.exit(supervisor.exit_code)
"""


class Tree:
    """A supervisor in a process of its own, with children that behave as told."""

    def __init__(self, folder: Path, *children: str) -> None:
        self.folder = folder
        self.events = folder / "events.txt"
        self.events.touch()
        (folder / "child.py").write_text(CHILD)
        with (folder / "output").open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN, str(folder), *children],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def lines(self) -> list[str]:
        return self.events.read_text().splitlines()

    def pids(self, name: str, what: str = "started") -> list[int]:
        return [
            int(line.partition("=")[2])
            for line in self.lines()
            if line.startswith(f"{name} {what}=")
        ]

    def guard(self) -> int:
        return int(eventually(lambda: re.search(r"guard=(\d+)", self.output()))[1])

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def tree(tmp_path):
    trees = []

    def start(*children):
        trees.append(Tree(tmp_path, *children))
        names = [child.split("=")[0] for child in children]
        eventually(lambda: all(trees[-1].pids(name) for name in names))
        return trees[-1]

    yield start
    for one in trees:
        one.end()


def test_a_killed_child_is_restarted_and_said(tree):
    running = tree("a=good", "b=good")
    first = running.pids("b")[0]
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(running.pids("b")) == 2)
    assert "b died (SIGKILL); restarting it in 0.1 s" in running.output()
    assert len(running.pids("a")) == 1
    assert running.process.poll() is None


def test_what_a_dead_child_started_ends_before_the_restart(tree):
    running = tree("a=parent")
    grandchild = running.pids("a", "grandchild")[0]
    os.kill(running.pids("a")[0], signal.SIGKILL)
    eventually(lambda: len(running.pids("a")) == 2)
    assert gone(grandchild)


def test_being_killed_often_from_outside_is_survived(tree):
    running = tree("a=good")
    for count in range(1, 7):
        os.kill(running.pids("a")[-1], signal.SIGKILL)
        eventually(lambda count=count: len(running.pids("a")) == count + 1)
    assert running.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_ends_children_youngest_first_with_exit_0(tree, number):
    running = tree("first=good", "second=good", "third=good")
    running.guard()
    running.process.send_signal(number)
    assert running.process.wait(20) == 0
    stops = [line for line in running.lines() if line.endswith("stopped")]
    assert stops == ["third stopped", "second stopped", "first stopped"]
    assert all(gone(running.pids(name)[0]) for name in ("first", "second", "third"))
    assert eventually(lambda: gone(running.guard()))


def test_a_child_that_does_not_stop_is_killed_and_said(tree):
    running = tree("a=stubborn")
    running.guard()
    running.process.terminate()
    assert running.process.wait(20) == 0
    assert "a did not stop in time and is killed" in running.output()
    assert gone(running.pids("a")[0])


def test_a_child_that_keeps_dying_is_given_up_with_its_last_lines(tree):
    running = tree("good=good", "bad=crash")
    assert running.process.wait(30) == 1
    output = running.output()
    assert "bad died (exit code 1); restarting it in" in output
    assert "bad died 5 times before everything ran: giving up." in output
    assert "  this is why" in output
    assert len(running.pids("bad")) == 5
    assert gone(running.pids("good")[0])


def test_after_a_good_start_nobody_is_given_up(tree, tmp_path):
    (tmp_path / "settled").touch()
    running = tree("good=good", "a=starved")
    eventually(lambda: len(running.pids("a")) >= 7)
    assert running.process.poll() is None
    assert not gone(running.pids("good")[0])
    pauses = re.findall(r"a died \(exit code 1\); restarting it in (\S+) s", running.output())
    assert pauses[:6] == ["0.1", "0.2", "0.4", "0.8", "1.6", "3.2"]
    (tmp_path / "food").touch()
    eventually(lambda: not gone(running.pids("a")[-1]))


@pytest.mark.skipif(not CAN_FORK, reason="children are forked on Linux only")
def test_a_forked_child_keeps_nothing_of_the_supervisors(tree):
    running = tree("first=good", "executed=good")
    assert running.pids("executed", "open") == [3]
    # Standard input (twice), output and errors, and two pipes of Python's own.
    assert running.pids("first", "open")[0] <= 6
    assert Path(f"/proc/{running.pids('first')[0]}/fd/0").readlink() == Path("/dev/null")
    lines = Path(f"/proc/{running.pids('first')[0]}/cmdline").read_text()
    assert lines == Path(f"/proc/{running.process.pid}/cmdline").read_text()


def test_a_log_is_kept_short_while_its_writer_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "LOG_BYTES", 1000)
    child = Child("a", [], log=tmp_path / "a.log")
    with child.log.open("ab", buffering=0) as writer:
        writer.write(b"WARNING old\n" * 100)
        assert len(child.new_serious_lines()) == 100
        child.rotate()
        writer.write(b"WARNING new\n")
        child.rotate()
    assert child.log.read_bytes() == b"WARNING new\n"
    assert child.new_serious_lines() == ["WARNING new"]
    assert child.log.with_suffix(".log.1").read_bytes().count(b"old") == 100


def test_warnings_of_children_are_shown_and_the_rest_is_in_their_logs(tree):
    running = tree("a=noisy")
    eventually(lambda: "look here" in running.output())
    assert "a: 2026-01-01 WARNING something: look here" in running.output()
    assert "a quiet line" not in running.output()
    assert "a quiet line" in (running.folder / "logs" / "a.log").read_text()


def test_a_killed_supervisor_leaves_no_orphans_and_frees_its_lock(tree):
    running = tree("a=parent", "b=stubborn")
    pids = [running.pids("a")[0], running.pids("a", "grandchild")[0], running.pids("b")[0]]
    running.guard()
    os.kill(running.process.pid, signal.SIGKILL)
    with (running.folder / "lock").open() as lock:
        # Granted only when the guard, which holds it too, has ended everything.
        fcntl.flock(lock, fcntl.LOCK_EX)
    eventually(lambda: all(gone(pid) for pid in pids))


def test_a_killed_guard_is_replaced(tree):
    running = tree("a=parent")
    os.kill(running.guard(), signal.SIGKILL)
    os.kill(running.pids("a")[0], signal.SIGKILL)
    eventually(lambda: len(running.pids("a")) == 2)
    os.kill(running.process.pid, signal.SIGKILL)
    last = [running.pids("a")[1], running.pids("a", "grandchild")[1]]
    eventually(lambda: all(gone(pid) for pid in last))


def test_delays_grow_and_fall_back(tmp_path):
    child = Child("a", [], log=tmp_path / "a.log")
    delays = [round(child.note_death(1, now), 1) for now in range(10)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10]
    assert child.note_death(1, 100) == 0.1


def test_a_zombie_does_not_keep_a_group_alive():
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not group_alive(process.pid) or not Path("/proc").exists()
    process.wait()
    assert not group_alive(process.pid)
