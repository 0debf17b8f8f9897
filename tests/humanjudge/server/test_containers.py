"""Both ways in containers on a real engine, on demand: `make test-containers`.

Each is started, voted in, killed with all its containers, started again, and replayed: no vote that
was acknowledged may be missing.
"""

import json
import os
import secrets
import shutil
import subprocess
from contextlib import contextmanager

import httpx
import pytest

from tests.helpers.waiting import eventually
from tests.process.up import ROOT, free_port

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not os.environ.get("TEST_CONTAINERS"), reason="on demand: make test-containers"
    ),
]

START_SECONDS = 600
IMAGE = "humanjudge:0.1.0"
VOTES = 5


def docker(*words, folder=ROOT):
    """Run the engine's client to its end and return what it printed."""
    done = subprocess.run(["docker", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def image():
    """The image, built as the README says; `DOCKER_BUILD` has options for an engine of its own."""
    docker("build", *os.environ.get("DOCKER_BUILD", "").split(), "--tag", IMAGE, ".")
    return IMAGE


def is_well(client):
    try:
        return client.get("/healthz").json().get("status") == "ok"
    except (httpx.HTTPError, ValueError):
        return False


def voter(url, access, **more):
    """A client of the API of a run of texts, by the key that the demo made."""
    [board] = [each for each in access["board"] if each["name"] == "Answers"]
    return httpx.Client(
        base_url=f"{url}/api{board['path']}judge-eval/",
        headers={"Authorization": f"Bearer {access['api_key']}"},
        timeout=60,
        **more,
    )


def vote(client):
    """Vote on some pairs: every answer 200 is a vote that may never be lost."""
    tasks = eventually(lambda: client.get("pending").json()["tasks"], START_SECONDS)[:VOTES]
    for task in tasks:
        reply = client.post("vote", json={"task_id": task["id"], "winner": "A"})
        assert reply.status_code == 200, reply.text
    return len(tasks)


def votes_in(manage):
    code = "from voting.models import Entry; print(Entry.objects.filter(kind='vote').count())"
    return int(manage("shell", "--no-imports", "-c", code).split()[-1])


def assert_whole(manage, votes):
    assert votes_in(manage) == votes
    assert "0 differences, equal" in manage("replay", "--check")


def test_one_container_keeps_its_votes_when_it_is_killed(image):
    port, name = free_port(), f"hj-test-{os.getpid()}"
    publish = ("--publish", f"127.0.0.1:{port}:8000", "--volume", f"{name}:/data")
    url = f"http://127.0.0.1:{port}"

    def manage(*words):
        return docker("exec", name, "humanjudge", "manage", *words)

    docker("run", "--detach", "--name", name, *publish, image, "up")
    try:
        with httpx.Client(base_url=url, timeout=60) as client:
            eventually(lambda: is_well(client), START_SECONDS)
            access = json.loads(docker("exec", name, "cat", "/data/access.json"))
            assert access["api_key"] not in docker("logs", name)
            before = votes_in(manage)
            with voter(url, access) as api:
                given = vote(api)
                docker("kill", name)
                docker("start", name)
                eventually(lambda: is_well(client), START_SECONDS)
                assert_whole(manage, before + given)
                assert vote(api) > 0
            docker("stop", name)
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], check=False)
        subprocess.run(["docker", "volume", "rm", name], check=False)


@contextmanager
def composed(folder):
    """A folder as a team has it, with its secrets, and the function that asks compose."""
    folder.mkdir()
    for each in ("compose.yaml", "Caddyfile"):
        shutil.copy(ROOT / each, folder / each)
    password = secrets.token_hex(16)
    (folder / "secrets").mkdir(mode=0o755)
    for name, text in {
        "secret_key": secrets.token_urlsafe(64),
        "metrics_token": secrets.token_hex(16),
        "database_password": password,
        "database_url": f"postgresql://humanjudge:{password}@database/humanjudge",
    }.items():
        (folder / "secrets" / name).write_text(text)
        (folder / "secrets" / name).chmod(0o644)
    project = ("compose", "--project-name", f"hj-test-{os.getpid()}")

    def compose(*words):
        return docker(*project, *words, folder=folder)

    try:
        yield compose
    finally:
        subprocess.run(["docker", *project, "down", "--volumes"], cwd=folder, check=False)


def test_the_compose_file_keeps_its_votes_when_every_container_is_killed(image, tmp_path):
    url = "https://localhost"
    with (
        composed(tmp_path / "humanjudge") as compose,
        httpx.Client(base_url=url, verify=False, timeout=60) as client,
    ):

        def manage(*words):
            return compose("exec", "-T", "web", "humanjudge", "manage", *words)

        compose("up", "--no-build", "--detach", "--wait")
        eventually(lambda: is_well(client), START_SECONDS)
        manage("load_demo")
        access = json.loads(compose("exec", "-T", "web", "cat", "/data/access.json"))
        before = votes_in(manage)
        with voter(url, access, verify=False) as api:
            given = vote(api)
            compose("kill")
            compose("up", "--no-build", "--detach", "--wait")
            eventually(lambda: is_well(client), START_SECONDS)
            assert_whole(manage, before + given)
            assert vote(api) > 0
