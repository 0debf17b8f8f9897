"""A stranger starts HumanJudge on one machine; all that can die there dies and comes back."""

import os
import re
import signal
import socket
import sqlite3
from argparse import ArgumentTypeError
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from humanjudge.management.commands.up import port as port_of
from humanjudge.server.launcher.supervisor import CAN_FORK
from tests.helpers.waiting import eventually
from tests.process.up import Up, all_gone, first_start, free_port, try_up

pytestmark = [
    pytest.mark.process,
    pytest.mark.fault,
    pytest.mark.slow,
]


@pytest.fixture
def data(tmp_path):
    return first_start().copied(tmp_path / "data")


def get(url: str) -> httpx.Response:
    # The first requests come while everything else is still starting.
    return httpx.get(url, follow_redirects=True, timeout=30)


def vote(up: Up, api: httpx.Client, run: str = "Drawings") -> None:
    """Vote on the next pair, and wait until a worker has sealed it."""
    before = up.results(run)["votes"]
    # Judges of a run that has just been made may still be at work.
    task = eventually(lambda: api.get("pending", params={"limit": 1}).json()["tasks"])[0]
    reply = api.post("vote", json={"task_id": task["id"], "winner": "A"})
    assert reply.status_code == 200, reply.text
    eventually(lambda: up.results(run)["votes"] > before)


def ratings(up: Up) -> list:
    """Ratings and counts by judge: other figures are computed when there is time."""
    facts = ("judge", "elo_exact", "agree", "disagree", "coverage")
    return [[row[fact] for fact in facts] for row in up.results()["leaderboard"]]


# Among processes of one name, the first is the one that the supervisor started.
# Those of a row are killed together: the supervisor looks after them in one way.
VICTIMS = [
    [("lifeline", 0)],
    [("valkey-server", 0)],
    [("granian", -1)],
    [("granian", 0)],
    [("sealer@", 0), ("worker@", 0), ("celery beat", 0)],
]


def kill_each_in_turn(up: Up) -> None:
    """Kill each process; everything goes on, and votes count."""
    with up.run_api() as api:
        for row in VICTIMS:
            below = {}
            for name, which in row:
                victim = eventually(lambda name=name: up.processes(name))[which]
                # A web server's processes outlive it for a moment, in which they still answer.
                below |= up.tree(victim)
                os.kill(victim, signal.SIGKILL)
            eventually(lambda below=below: all_gone(below))
            eventually(up.healthy)
            vote(up, api)
    assert up.shown().count("died (SIGKILL); restarting it in") == 5, up.shown()
    eventually(lambda: all(up.processes(name) for row in VICTIMS for name, _ in row))


def a_killed_supervisor_takes_its_children_along_and_a_killed_tree_its_data_not(up: Up) -> None:
    tree = up.tree()
    os.kill(up.process.pid, signal.SIGKILL)
    with Up(up.data, up.port) as second:
        second.ready()
        assert all_gone(tree)
        with second.run_api() as api:
            vote(second, api)
        votes = second.results()["votes"]
        for pid in second.tree():
            os.kill(pid, signal.SIGKILL)
    with Up(up.data, up.port, is_terminal=True) as third:
        with third.ready().run_api() as api:
            assert third.results()["votes"] == votes
            vote(third, api)
        tree = third.tree()
        assert (third.data / "access.txt").read_text() in third.shown()
        assert third.stop(signal.SIGTERM) == 0, third.shown()
        assert all_gone(tree)


def test_the_first_start_ends_with_all_that_a_stranger_needs():
    data, screen, port = first_start()
    shown = (data / "access.txt").read_text()
    # The screen is a file here, and a log is read by more people than a terminal.
    assert f"Links and keys      {data}/access.txt" in screen
    for secret in (r"password", r"/join/\w", r"hj_\w"):
        assert not re.search(secret, screen)
    framed = shown.strip().splitlines()
    assert framed[0] == framed[-1] == "─" * 78
    links = re.findall(rf"http://127\.0\.0\.1:{port}(/\S+)", shown)
    assert any(link.startswith("/runs/") for link in links)
    assert any(link.startswith("/join/") for link in links)
    assert re.search(r"user admin, password \S{12,}", shown)
    assert re.search(r"API key +hj_\S+\n +may read and vote", shown)
    for made in (data, *data.rglob("*")):
        if (data / "static") in (made, *made.parents):
            continue  # they are no secret
        assert made.is_symlink() or made.lstat().st_mode & 0o077 == 0, made
    said = [line for line in screen.splitlines() if line.startswith("humanjudge: ")]
    assert said[0] == f"humanjudge: everything is kept in {data}"
    assert said[1] == "humanjudge: looking after the database"
    assert len(said) >= 5
    assert not [line for line in said if "WARNING" in line or "ERROR" in line], screen


def test_pages_answer_votes_are_kept_and_whatever_is_killed_comes_back(data):
    with Up(data) as up:
        up.ready()
        for path in ("/", "/api/docs", up.access()["invites"][0]["path"]):
            page = get(up.url + path)
            assert page.status_code == 200, path
        style = re.search(r'href="(/static/[^"]+\.css)"', get(f"{up.url}/").text)[1]
        assert get(up.url + style).headers["content-type"].startswith("text/css")
        if CAN_FORK:  # which takes one thread, and not one connection
            own = Path(f"/proc/{up.process.pid}")
            assert len(list(own.joinpath("task").iterdir())) == 1
            assert not [
                fd for fd in own.joinpath("fd").iterdir() if "socket:" in str(fd.readlink())
            ]
        kill_each_in_turn(up)
        board = ratings(up)
        tree = up.tree()
        assert up.stop(signal.SIGINT) == 0, up.shown()
        assert all_gone(tree)
    with Up(data) as again:
        again.ready()
        assert ratings(again) == board
        a_killed_supervisor_takes_its_children_along_and_a_killed_tree_its_data_not(again)


def test_a_database_that_an_earlier_version_left_half_way_is_not_started_on(data):
    with closing(sqlite3.connect(data / "humanjudge.sqlite3")) as database, database:
        database.execute("DELETE FROM django_migrations WHERE app = 'voting'")
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('voting', '0013_x', 'now')"
        )
    tried = try_up(data, free_port())
    assert tried.returncode != 0
    assert tried.stderr.splitlines()[-1] == (
        "humanjudge: This database was made by another version, and this one cannot read it. "
        "Commit 0c489a9b is the last that reads it: run `manage.py export_run --project NAME "
        "--out FILE` there for each project, and `manage.py import_run FILE` here."
    )
    assert all(line.startswith("humanjudge: ") for line in tried.stderr.splitlines())


def test_a_port_taken_by_anything_else_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = try_up(tmp_path / "data", taken.getsockname()[1])
    assert refused.returncode == 1
    assert "Address already in use" in refused.stderr


def test_a_wrong_port_is_refused(tmp_path):
    for wrong in ("0", "65536", "http", "-1"):
        with pytest.raises(ArgumentTypeError, match="PORT must be a number from 1 to 65535"):
            port_of(wrong)
    refused = try_up(tmp_path / "data", "65536")
    assert refused.returncode != 0
    assert "PORT must be a number from 1 to 65535" in refused.stderr


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_data_folder_that_is_a_file_is_refused_in_one_line(tmp_path, below):
    (tmp_path / "file").write_text("I was here first")
    refused = try_up(tmp_path / "file" / below, free_port())
    assert refused.returncode == 1
    assert refused.stderr.startswith("humanjudge: ")
    assert refused.stderr.count("\n") == 1
    assert (tmp_path / "file").read_text() == "I was here first"
