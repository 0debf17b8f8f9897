"""The broker or the database is taken away from real processes, and brought back."""

import os
import signal
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress
from statistics import median

import psycopg
import pytest
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from humanjudge.server.health import PROCESSES
from tests.helpers.scene import assert_sound, make_scene
from tests.helpers.waiting import eventually
from tests.makers import make_invite
from tests.process.http_voter import HttpVoter
from tests.process.processes import Site, test_database_url
from tests.servers import postgres_server, valkey_server
from voting.models import Entry
from voting.people.voters import invite_token

pytestmark = [
    pytest.mark.process,
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.postgresql_only,
]


@pytest.fixture
def broker():
    with valkey_server() as server:
        yield server


@pytest.fixture
def scene(transactional_db):
    return make_scene(judges=3, pairs=60, voters=0)


@pytest.fixture
def site(scene, broker, static, tmp_path, settings):
    secret = settings.SECRET_KEY
    with Site(tmp_path, test_database_url(), broker.url, SECRET_KEY=secret) as processes:
        processes.serve_static(static)
        processes.web()
        yield processes


@pytest.fixture
def voter(site, scene):
    invite = f"/join/{invite_token(make_invite(scene.run))}/"
    with closing(HttpVoter(site.url, invite)) as person:
        yield person


def everything_is_sealed():
    return not Entry.objects.filter(seq__isnull=True).exists()


def votes_in_seconds(voter, number):
    """Vote, and return how long each acknowledgement took."""
    taken = []
    while len(taken) < number:
        for ballot in voter.ballots():
            started = time.monotonic()
            assert voter.vote(ballot).status_code == 200
            taken.append(time.monotonic() - started)
    return taken


def acknowledged_at_once(taken, before):
    """Whether votes did not wait for the broker: who waits for it does so each time, for seconds.

    One does, before it is known that the broker is away; and a busy machine delays a few.
    """
    late = [seconds for seconds in taken if seconds > max(before) + 0.5]
    return len(late) <= len(taken) / 4 and median(taken) < median(before) + 0.5


def test_votes_are_taken_while_the_broker_is_stopped_and_sealed_when_it_is_back(
    site, scene, broker, voter
):
    site.worker()
    site.beat()
    before = votes_in_seconds(voter, 20)
    eventually(everything_is_sealed)
    eventually(lambda: site.health()[0] == 200)

    broker.stop()
    taken = votes_in_seconds(voter, 20)
    status, health = site.health()
    assert acknowledged_at_once(taken, before), (taken, before)
    assert (status, health["broker"], health["database"]) == (503, "unreachable", "ok")
    assert health["sealing_worker"] == health["judging_worker"] == health["beat"] == "unknown"

    broker.start()
    eventually(everything_is_sealed)
    assert eventually(lambda: site.health()[0] == 200)
    assert_sound(scene.project)
    assert "Traceback" not in site.log("web")


def test_votes_are_taken_while_the_broker_accepts_and_never_answers(site, scene, broker, voter):
    site.worker()
    site.beat()
    before = votes_in_seconds(voter, 20)
    eventually(everything_is_sealed)

    broker.stop()
    with black_hole(broker.socket):
        taken = votes_in_seconds(voter, 20)
        status, health = site.health()
    assert acknowledged_at_once(taken, before), (taken, before)
    assert (status, health["broker"]) == (503, "unreachable")

    broker.start()
    eventually(everything_is_sealed)
    assert_sound(scene.project)


@contextmanager
def black_hole(path):
    """A socket that takes connections, and whatever is sent, and says nothing."""
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        listener.listen(64)
        yield
    path.unlink()


def test_the_sweep_seals_votes_whose_tasks_were_all_lost(site, scene, broker, voter):
    votes_in_seconds(voter, 10)
    with closing(broker.client()) as client:
        client.flushall()
    assert not Entry.objects.filter(kind=Entry.Kind.VOTE, seq__isnull=False).exists()

    site.worker()
    site.beat()
    eventually(everything_is_sealed)
    assert_sound(scene.project)


MAKE_SCENE = """
from tests.helpers.scene import make_scene
from tests.makers import make_invite
from voting.people.voters import invite_token
print(f"/join/{invite_token(make_invite(make_scene().run))}/")
"""


def test_a_process_that_hangs_is_missing_until_it_goes_on(site, broker):
    processes = {"worker": site.worker(), "beat": site.beat()}
    eventually(lambda: site.health()[0] == 200)
    for process, told in [("worker", ["sealing_worker", "judging_worker"]), ("beat", ["beat"])]:
        os.killpg(processes[process].pid, signal.SIGSTOP)
        eventually(lambda: site.health()[0] == 503)
        health = site.health()[1]
        assert [name for name in PROCESSES if health[name] == "missing"] == told
        assert health["database"] == health["broker"] == health["web"] == "ok"
        os.killpg(processes[process].pid, signal.SIGCONT)
        eventually(lambda: site.health()[0] == 200)


# A pool that backs off as it does by default has tried seven times after 63 seconds, and the
# eighth time after 127.
TRIES, OUTAGE_SECONDS = 8, 70
BACK_SECONDS = 100


def test_a_pool_tries_often_however_long_the_database_is_away(settings):
    # Of one connection: a pool that may grow tries for each that it wants.
    options = settings.DATABASES["default"]["OPTIONS"]["pool"] | {"max_size": 1}
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as refusing:
        refusing.settimeout(BACK_SECONDS)
        host, port = refusing.getsockname()
        address = f"host={host} port={port} dbname=x sslmode=disable gssencmode=disable"
        with ConnectionPool(address, open=True, **options) as pool:
            asking = threading.Thread(target=ask_again_and_again, args=[pool])
            asking.start()
            began = time.monotonic()
            for _ in range(TRIES):
                refusing.accept()[0].close()
            assert time.monotonic() - began < BACK_SECONDS
        asking.join()


def ask_again_and_again(pool):
    """Ask for a connection, as whoever votes does, until the pool is closed."""
    while not pool.closed:
        with suppress(PoolTimeout, PoolClosed), pool.connection(timeout=0.5):
            pass


@pytest.mark.parametrize("seconds", [3, pytest.param(OUTAGE_SECONDS, marks=pytest.mark.thorough)])
def test_votes_and_seals_go_on_after_an_outage_of_the_database(seconds, broker, static, tmp_path):
    with postgres_server() as database, Site(tmp_path, database.url, broker.url) as site:
        site.manage("migrate", "--verbosity", "0")
        site.serve_static(static)
        invite = site.manage("shell", "--no-imports", "-c", MAKE_SCENE).strip()
        site.web()
        site.workers()
        site.beat()
        with closing(HttpVoter(site.url, invite)) as voter:
            first, second, *_ = voter.ballots()
            assert voter.vote(first).status_code == 200
            eventually(lambda: site.health()[0] == 200)

            database.stop()
            refused = voter.vote(second)
            status, health = site.health()
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "2"
            assert "counts once" in refused.text
            assert "Traceback" not in refused.text
            assert "psycopg" not in refused.text
            assert (status, health["database"], health["broker"]) == (503, "unreachable", "ok")

            until = time.monotonic() + seconds
            while time.monotonic() < until:
                assert voter.vote(second).status_code == 503
                assert site.health()[1]["database"] == "unreachable"
                time.sleep(1)

            database.start()
            eventually(lambda: voter.vote(second).status_code == 200, BACK_SECONDS)
            assert voter.vote(first).status_code == 200
            with psycopg.connect(database.url, autocommit=True) as connection:
                sealed = "SELECT count(*) FROM voting_entry WHERE kind = 'vote' AND seq > 0"
                eventually(lambda: connection.execute(sealed).fetchone() == (2,), BACK_SECONDS)
            eventually(lambda: site.health()[0] == 200)
        assert "0 differences, equal" in site.manage("replay", "--check")
