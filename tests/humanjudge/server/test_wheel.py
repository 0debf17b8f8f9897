"""The wheel is whole: it starts in an empty environment, from any folder, and a vote counts.

It is given a PostgreSQL and a Redis, as whoever installs it may do.
"""

import os
import signal
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import httpx
import pytest

from tests.helpers.waiting import eventually
from tests.process.up import ROOT, START_SECONDS, Up, all_gone, environment
from tests.process.wheel import files, wheel_and_programs
from tests.servers import postgres_server, valkey_server

pytestmark = [pytest.mark.process, pytest.mark.slow]

PACKAGES = ("humanjudge", "voting", "judge_eval", "reports")


@pytest.fixture
def wheel():
    return wheel_and_programs()[0]


@pytest.fixture
def programs():
    return wheel_and_programs()[1]


def tracked(*folders):
    listed = subprocess.run(
        ["git", "ls-files", "--", *folders], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("no git repository to compare the wheel with")
    return {name for name in listed.stdout.splitlines() if ROOT.joinpath(name).exists()}


def test_every_file_of_the_product_is_in_it_and_nothing_else(wheel):
    packaged = {name for name in files(wheel) if ".dist-info/" not in name}
    moved = {f"humanjudge/{name}" for name in tracked("templates", "static")}
    assert packaged >= tracked(*PACKAGES) | moved
    assert {name.partition("/")[0] for name in packaged} == set(PACKAGES)
    assert not [name for name in packaged if "__pycache__" in name or name.endswith(".env")]


def test_it_requires_what_requirements_txt_pins(programs):
    [info] = programs.parent.glob("lib/*/site-packages/humanjudge-*.dist-info")
    pinned = [
        line
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    required = [each for each in PathDistribution(info).requires or () if "extra ==" not in each]
    assert sorted(required) == sorted(pinned)


def test_scorers_are_a_library_that_needs_no_settings(programs, tmp_path):
    code = (
        "import sys; from judge_eval.stats import kappa; "
        "print(sys.modules['judge_eval'].__file__, 'django' in sys.modules)"
    )
    plain = {name: text for name, text in os.environ.items() if not name.startswith("DJANGO")}
    done = subprocess.run(
        [programs / "python", "-c", code], cwd=tmp_path, env=plain, capture_output=True, text=True
    )
    file, django = done.stdout.split(".py ")
    assert Path(file).is_relative_to(programs.parent), done.stderr
    assert django.strip() == "False"


@pytest.fixture(params=["given servers", pytest.param("its own", marks=pytest.mark.thorough)])
def servers(request):
    """What the product is told of a database and a broker: those that it is given, or nothing."""
    if request.param == "its own":
        yield {}
        return
    with postgres_server() as database, valkey_server() as broker:
        yield {"DATABASE_URL": database.url, "REDIS_URL": broker.url}


def test_it_starts_from_any_folder_and_counts_a_vote(programs, tmp_path, servers):
    """The first start in this environment; other tests start on servers of its own."""
    home = tmp_path / "home"
    # Where its user keeps such things, as nothing else is named.
    data = home / "humanjudge"
    if sys.platform == "darwin":
        data = home / "Library" / "Application Support" / "humanjudge"
    home.mkdir()
    more = {"HUMANJUDGE_DATA": "", "XDG_DATA_HOME": str(home), "HOME": str(home), **servers}
    with Up(data, program=[programs / "humanjudge"], folder=tmp_path, **more) as up:
        shown = up.ready().shown()
        assert shown.startswith(f"humanjudge: everything is kept in {data}\n")
        assert "humanjudge --help\n" in shown
        page = httpx.get(f"{up.url}/", timeout=30)
        assert page.status_code == 200
        [style] = {word for word in page.text.split('"') if word.endswith(".css")}
        assert httpx.get(up.url + style, timeout=30).status_code == 200
        # Not of the drawings: all of them would be drawn before.
        with up.run_api(run="Answers") as api:
            task = eventually(lambda: api.get("pending").json()["tasks"], START_SECONDS)[0]
            reply = api.post("vote", json={"task_id": task["id"], "winner": "A"})
            assert reply.status_code == 200, reply.text
        eventually(lambda: up.results("Answers")["votes"] == 1, START_SECONDS)
        eventually(lambda: any(data.glob("pictures/*/*.png")), START_SECONDS)
        # The command line finds the server of this machine from anywhere, too.
        listed = subprocess.run(
            [programs / "humanjudge", "list-runs"],
            cwd=home,
            env=environment(data, **more),
            capture_output=True,
            text=True,
        )
        assert "Drawings" in listed.stdout, listed.stderr
        assert bool(up.processes("valkey-server")) is not bool(servers)
        assert (up.data / "humanjudge.sqlite3").exists() is not bool(servers)
        tree = up.tree()
        assert up.stop(signal.SIGTERM) == 0, up.shown()
        assert all_gone(tree)
