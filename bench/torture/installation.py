"""One installation as `make run` starts it, in a process whose Django is on the same database.

`make torture` starts a process for each: settings are read once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import django
import redis

from humanjudge.server.launcher.embedded import broker_socket
from tests.helpers.waiting import eventually
from tests.process.up import Up, environment, free_port
from tests.provider import ProviderProcess, provider_process
from tests.servers import PostgresServer, lifeline, short_folder

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

Database = Literal["SQLite", "PostgreSQL"]
RECOVERY_SECONDS = 300
# People vote as fast as the bench lets them; what is refused for haste is tested elsewhere.
NO_LIMIT = {"VOTES_PER_SECOND": "1000000", "VOTES_BURST": "1000000"}
CLOCK = Path(__file__).with_name("clock")


@dataclass
class Installation:
    """What runs, and how to start it again."""

    folder: Path
    port: int
    variables: dict[str, str]
    model: ProviderProcess
    postgres: PostgresServer | None
    up: Up

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def database(self) -> Database:
        return "PostgreSQL" if self.postgres else "SQLite"

    def start(self) -> None:
        """Start the product, and return once it says that all is well."""
        self.up = Up(self.data, self.port, **self.variables)
        # It outlives its own end, but not this process.
        lifeline().add(self.up.process.pid)
        self.up.ready()

    def stop(self) -> None:
        if self.up.process.poll() is None and self.up.stop(signal.SIGTERM):
            raise RuntimeError(self.up.shown())

    def broker(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(broker_socket(self.data)))

    def step_clock(self, seconds: float) -> None:
        half = self.folder / "clock.half"
        half.write_text(str(seconds))
        half.replace(self.folder / "clock")

    def sealed(self, uid: UUID) -> bool:
        from voting.models import Entry

        return bool(ask(lambda: Entry.objects.filter(uid=uid, seq__isnull=False).exists()))


def ask(query: Callable[[], Any]) -> Any:
    """Ask the database, which may be away: None, then."""
    from django.db import Error, connection

    try:
        return query()
    except Error:
        connection.close()
        return None


@contextlib.contextmanager
def installation(database: Database, disk_megabytes: int = 0) -> Iterator[Installation]:
    """An installation with the demo; on small disks of its own if a size is given."""
    with contextlib.ExitStack() as stack:
        folder = short_folder("hj-torture-")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        postgres = None
        for name in ("data", "postgres") if database == "PostgreSQL" else ("data",):
            (folder / name).mkdir()
            if disk_megabytes:
                stack.enter_context(small_disk(folder / name, disk_megabytes))
        if database == "PostgreSQL":
            folder.chmod(0o711)
            (folder / "postgres").chmod(0o711)
            postgres = _postgres(folder / "postgres", disk_megabytes)
            stack.callback(postgres.remove)
            postgres.start()
        model = stack.enter_context(provider_process())
        variables = {
            "DATABASE_URL": postgres.url if postgres else "",
            "PROVIDER_BASE_URL": model.base_url,
            "PYTHONPATH": str(CLOCK),
            "TORTURE_CLOCK": str(folder / "clock"),
            **NO_LIMIT,
        }
        port = free_port()
        up = Up(folder / "data", port, **variables)
        lifeline().add(up.process.pid)
        here = Installation(folder, port, variables, model, postgres, up)
        stack.callback(lambda: here.up.process.poll() is not None or here.up.process.kill())
        up.ready()
        _begin_django(here)
        yield here
        here.stop()


def _postgres(folder: Path, disk_megabytes: int) -> PostgresServer:
    usual, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        server = PostgresServer(durable=True)
    finally:
        tempfile.tempdir = usual
    if disk_megabytes:
        server.options |= {"shared_buffers": "64MB", "max_wal_size": "64MB"}
    return server


def _begin_django(here: Installation) -> None:
    # What its own connections meet is no news.
    os.environ.update(environment(here.data, **here.variables), LOG_LEVEL="CRITICAL")
    os.environ["DJANGO_SETTINGS_MODULE"] = "humanjudge.settings"
    django.setup()


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A file system in memory, which only root may mount."""
    size = f"size={megabytes}m,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def make_pairs(number: int) -> Scene:
    """A run of its own on which people vote; what is judged and imported comes beside it."""
    from tests.helpers.scene import make_scene

    return make_scene(judges=3, pairs=number, voters=0, votes_wanted=10_000)


def is_well(here: Installation) -> bool:
    return here.up.process.poll() is None and here.up.healthy()


def wait(condition: Callable[[], Any], what: str, seconds: float = RECOVERY_SECONDS) -> Any:
    """Wait for a condition; say which one never came true."""
    try:
        return eventually(condition, seconds)
    except AssertionError:
        raise TimeoutError(f"{what}: not within {seconds:.0f} s") from None
