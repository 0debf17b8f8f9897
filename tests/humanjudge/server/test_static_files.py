"""Static files that one user has collected are served by another, who can write nothing there."""

import os
import re
import shutil
import subprocess
import sys

import httpx
import pytest

from tests.helpers.waiting import eventually
from tests.humanjudge.server.test_serve import deployed
from tests.process.up import INSTALLED, ROOT, START_SECONDS, Up, first_start, free_port

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("setpriv"),
        reason="not run: only root, with setpriv, can become a user without rights",
    ),
]
# Root without its capabilities may read and write no more than its modes say.
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")


def style_of(page):
    return re.search(r'href="(/static/[^"]+\.css)"', page.text)[1]


def test_up_starts_on_them(tmp_path, static):
    data = first_start().copied(tmp_path / "data")
    before = {path: path.stat().st_mtime_ns for path in static.rglob("*")}
    program = [*WITHOUT_RIGHTS, sys.executable, "manage.py"]
    with Up(data, program=program, STATIC_ROOT=str(static)) as up:
        page = httpx.get(f"{up.ready().url}/", follow_redirects=True, timeout=30)
        assert httpx.get(up.url + style_of(page), timeout=30).status_code == 200
        assert up.stop(15) == 0, up.shown()
    assert {path: path.stat().st_mtime_ns for path in static.rglob("*")} == before


def test_a_web_server_serves_them(tmp_path, static):
    port = free_port()
    url = f"sqlite:///{first_start().copied(tmp_path / 'data') / 'humanjudge.sqlite3'}"
    env = deployed(tmp_path, port, DATABASE_URL=url) | {
        "STATIC_ROOT": str(static),
        "WEB_PROCESSES": "1",
    }
    with (tmp_path / "log").open("w") as log:
        words = [*WITHOUT_RIGHTS, *INSTALLED, "serve", "web"]
        server = subprocess.Popen(words, cwd=ROOT, env=env, stdout=log, stderr=log)
    headers = {"Host": "judge.example.org", "X-Forwarded-Proto": "https"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
            eventually(lambda: answers(client), START_SECONDS)
            style = client.get(style_of(client.get("/login/")), timeout=30)
            assert (style.status_code, style.headers["Content-Encoding"]) == (200, "gzip")
    finally:
        server.terminate()
        server.wait(60)


def answers(client):
    try:
        return client.get("/login/").status_code == 200
    except httpx.TransportError:
        return False
