"""The programs of a deployment, as compose.yaml runs them."""

import secrets
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
import yaml

from tests.helpers.waiting import eventually
from tests.process.up import INSTALLED, ROOT, START_SECONDS, environment, free_port
from tests.servers import postgres_server, valkey_server

pytestmark = [pytest.mark.process, pytest.mark.slow]

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
HOST = "judge.example.org"
# Answers of each program that is named, whether it is alive.
ASKING = """
import sys
from humanjudge.server.alive import is_alive
for line in sys.stdin:
    print(is_alive(line.strip()), flush=True)
"""


def own_services():
    return {
        name: each
        for name, each in COMPOSE["services"].items()
        if each["image"].startswith("humanjudge")
    }


def deployed(folder, port, **more):
    """The environment of compose.yaml, with its secrets in files of this folder."""
    written = {"SECRET_KEY": secrets.token_urlsafe(64), "METRICS_TOKEN": secrets.token_hex(16)}
    given = next(iter(own_services().values()))["environment"]
    variables = {
        name: value.replace("${DOMAIN:-localhost}", HOST)
        for name, value in given.items()
        if not name.endswith("_FILE")
    }
    for name, text in (written | more).items():
        path = folder / name.lower()
        path.write_text(f"{text}\n")
        variables |= {name: "", f"{name}_FILE": str(path)}
    variables.pop("REDIS_URL")
    data = folder / "data"
    plain = environment(data, PORT=str(port), STATIC_ROOT=str(folder / "static"))
    return plain | variables


@contextmanager
def asking(env):
    """A function that tells whether a program is alive; one process is asked of all of them."""
    with subprocess.Popen(
        [sys.executable, "-c", ASKING],
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as asked:

        def is_alive(name):
            asked.stdin.write(f"{name}\n")
            asked.stdin.flush()
            return {"True": True, "False": False}[asked.stdout.readline().strip()]

        yield is_alive
        asked.stdin.close()


# It does with one queue what the worker that judges does with another.
@pytest.mark.parametrize("left_out", ["rendering", pytest.param("", marks=pytest.mark.thorough)])
def test_the_commands_of_the_compose_file_make_a_whole_installation(tmp_path, static, left_out):
    port = free_port()
    with postgres_server() as database, valkey_server() as broker:
        env = deployed(tmp_path, port, DATABASE_URL=database.url, REDIS_URL=broker.url)
        env["STATIC_ROOT"] = str(static)

        def run(*words):
            return subprocess.run(
                [*INSTALLED, *words], cwd=ROOT, env=env, capture_output=True, text=True
            )

        early = run("serve", "web")
        assert early.returncode == 1
        assert "the database is not up to date" in early.stderr
        done = run("manage", "migrate")
        assert done.returncode == 0, done.stderr
        assert run("alive", "web").returncode == 1

        programs = {name: each["command"] for name, each in own_services().items()}
        programs.pop("migrate")
        programs.pop(left_out, None)
        started = {}
        for name, words in programs.items():
            with (tmp_path / f"{name}.log").open("w") as log:
                started[name] = subprocess.Popen(
                    [*INSTALLED, *words], cwd=ROOT, env=env, stdout=log, stderr=log
                )
        try:
            with (
                httpx.Client(
                    base_url=f"http://127.0.0.1:{port}", headers={"Host": HOST}, timeout=30
                ) as client,
                asking(env) as is_alive,
            ):
                eventually(lambda: is_well(client), 3 * START_SECONDS)
                assert run("alive", "web").returncode == 0
                eventually(lambda: all(map(is_alive, programs)))
                assert client.get("/").status_code == 301
                client.headers["X-Forwarded-Proto"] = "https"
                page = client.get("/login/")
                assert page.status_code == 200
                [style] = {word for word in page.text.split('"') if word.endswith(".css")}
                assert client.get(style).status_code == 200
                assert client.get("/metrics").status_code == 403
                token = (tmp_path / "metrics_token").read_text().strip()
                client.headers["Authorization"] = f"Bearer {token}"
                # Each is answered by either of two processes.
                for _ in range(10):
                    url = f"http://127.0.0.1:{port}/login/"
                    httpx.get(url, headers=client.headers, timeout=30)
                line = 'humanjudge_requests_total{route="login/",method="GET",status="200"} 11'
                eventually(lambda: line in client.get("/metrics").text.splitlines())
                assert 'humanjudge_alive{process="sealing_worker"} 1' in client.get("/metrics").text
                started["judging"].kill()
                eventually(lambda: not is_alive("judging"))
                assert is_alive("sealer")
                started.pop("judging").wait()
            for process in started.values():
                process.send_signal(signal.SIGTERM)
            ended = {name: process.wait(60) for name, process in started.items()}
            assert set(ended.values()) == {0}, ended
        finally:
            for process in started.values():
                process.kill()
                process.wait()


def is_well(client):
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_what_check_finds_is_not_started(tmp_path):
    url = f"sqlite:///{tmp_path}/db.sqlite3"
    wrong = {"DEBUG": "true", "HTTPS": "false", "SECRET_KEY": "short", "SVG_RENDERER": "inkscape"}
    env = deployed(tmp_path, free_port(), DATABASE_URL=url) | wrong
    done = subprocess.run(
        [*INSTALLED, "serve", "web"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1
    for words in ("DEBUG set to True", "SECURE_SSL_REDIRECT", "SECRET_KEY", "SVG_RENDERER"):
        assert words in done.stderr, done.stderr


@pytest.mark.parametrize(
    "name,text,words",
    [
        ("SECRET_KEY_FILE", None, "cannot read"),
        ("DATABASE_URL_FILE", "", "is empty"),
        ("EXAMPLE_API_KEY_FILE", "\n", "is empty"),
    ],
)
def test_a_secret_that_cannot_be_read_is_said_in_one_line(tmp_path, name, text, words):
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
    env = environment(tmp_path / "data") | {name: str(path), name.removesuffix("_FILE"): ""}
    done = subprocess.run(
        [*INSTALLED, "manage", "check"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"humanjudge: {name}: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_key_of_a_provider_may_stand_in_a_file(tmp_path):
    path = tmp_path / "key"
    path.write_text("sk-1234\n")
    code = "import os; from humanjudge import settings; print(os.environ['EXAMPLE_API_KEY'])"
    env = environment(tmp_path / "data") | {"EXAMPLE_API_KEY_FILE": str(path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True)
    assert done.stdout == b"sk-1234\n", done.stderr
