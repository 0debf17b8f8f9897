"""Real servers for tests and benches: a private PostgreSQL, a private Valkey (or Redis).

Each listens on a unix socket in a temp folder of its own, is stopped by its process id, and does
not outlive the process that started it.
"""

import contextlib
import fcntl
import functools
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from humanjudge.server.launcher.lifeline import Lifeline
from tests.server_programs import Programs, ServerError, find_postgres, find_valkey

# Names the folder of a test run in the environment of all its workers.
FOLDER = "HUMANJUDGE_TEST_FOLDER"
START_SECONDS = 180
STOP_SECONDS = 60


@functools.cache
def lifeline() -> Lifeline:
    return Lifeline()


def short_folder(prefix: str) -> Path:
    """A new private folder whose path is short and plain enough for a unix socket."""
    usual = tempfile.gettempdir()
    short = usual if len(usual) <= 60 and " " not in usual else "/tmp"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=short))


def once(name: str, make: Callable[[Path], Any]) -> Any:
    """What `make` tells of what it made in a folder: the first worker of a test run calls it."""
    folder = Path(os.environ[FOLDER], name)
    folder.mkdir(exist_ok=True)
    told = folder / "told.json"
    with folder.joinpath("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            told.write_text(json.dumps(make(folder)))
    return json.loads(told.read_text())


class Server(ABC):
    """A server process that can be taken away and brought back on the same data."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.user = pwd.getpwnam("nobody") if self.drops_root and os.geteuid() == 0 else None
        self.folder = short_folder(f"hj-{programs.server}-")
        self._process: subprocess.Popen[bytes] | None = None
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
            self.programs = self._readable(programs)

    drops_root = False
    stop_signal = signal.SIGTERM

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def answers(self) -> bool: ...

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerError(f"{self.programs.server} is not running")
        return self._process.pid

    def start(self) -> None:
        """Start, and return once the server answers."""
        deadline = time.monotonic() + START_SECONDS
        self._process = self._spawn(self.command())
        while not self.answers():
            if time.monotonic() > deadline:
                self.kill()
                raise ServerError(f"{self.programs.server} does not answer\n{self.log()}")
            if self._process.poll() is not None:
                # What was left of a killed predecessor may still be going away.
                lifeline().remove(self._process.pid)
                time.sleep(0.2)
                self._process = self._spawn(self.command())
            time.sleep(0.02)

    def stop(self) -> None:
        """End in good order."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """End as a power cut would (kill -9)."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """Stop for good and forget the data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        lifeline().remove(self._process.pid)
        self._process = None

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.folder.joinpath("log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                **self._as_user(),
            )
        lifeline().add(process.pid)
        return process

    def _as_user(self) -> dict:
        if self.user is None:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}

    def _readable(self, programs: Programs) -> Programs:
        """The same programs where the unprivileged user may read them."""
        if all(parent.stat().st_mode & 0o001 for parent in programs.folder.parents):
            return programs
        # A wheel under root's own home: its libraries stand two folders beside the programs.
        install, package = programs.folder.parent, programs.folder.parent.parent
        copy = self.folder / "programs"
        shutil.copytree(install, copy / package.name / install.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, copy / libraries.name)
        return Programs(copy / package.name / install.name / "bin", "postgres", programs.origin)


class PostgresServer(Server):
    """PostgreSQL without durability (unless asked for): quick, and safe against kill -9."""

    drops_root = True
    stop_signal = signal.SIGINT  # "fast": does not wait for clients to leave

    def __init__(self, *, durable: bool = False, max_connections: int = 200) -> None:
        super().__init__(find_postgres())
        self.options = {"max_connections": str(max_connections), "listen_addresses": ""}
        if durable:
            # What docs/operations.md tells whoever runs one to set.
            self.options |= {"shared_buffers": "512MB", "max_wal_size": "4GB"}
        else:
            # Tests roll back and truncate: what autovacuum learns then, that tables are empty,
            # makes the planner choose plans that take minutes once the next test has filled them.
            self.options |= {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
        self._initialise()

    @property
    def url(self) -> str:
        return self.url_for("humanjudge")

    def url_for(self, database: str) -> str:
        return f"postgresql://postgres@{quote(str(self.folder), safe='')}/{database}"

    def command(self) -> list[str]:
        options = [f"--{name}={value}" for name, value in self.options.items()]
        program = str(self.programs.folder / "postgres")
        return [program, "-D", str(self.folder / "data"), "-k", str(self.folder), *options]

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url_for("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def start(self) -> None:
        super().start()
        with (
            psycopg.connect(self.url_for("postgres"), autocommit=True) as connection,
            contextlib.suppress(psycopg.errors.DuplicateDatabase),
        ):
            connection.execute("CREATE DATABASE humanjudge")

    def _initialise(self) -> None:
        command = [
            str(self.programs.folder / "initdb"),
            *("-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust"),
            *("-E", "UTF8", "--no-locale", "--no-sync"),
        ]
        made = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, **self._as_user()
        )
        if made.returncode:
            raise ServerError(f"initdb failed:\n{made.stderr}")


class ValkeyServer(Server):
    """Valkey (or Redis) with an append-only file, so that what it acknowledged comes back."""

    def __init__(self) -> None:
        super().__init__(find_valkey())
        self.socket = self.folder / "s"

    @property
    def url(self) -> str:
        return self.url_for(0)

    def url_for(self, database: int) -> str:
        """The URL of one of its 64 databases, as Celery writes it."""
        return f"redis+socket://{self.socket}?virtual_host={database}"

    def client(self, database: int = 0) -> redis.Redis:
        """A client that fails at once: by default it tries ten times, for seconds."""
        once = Retry(NoBackoff(), 0)
        return redis.Redis(unix_socket_path=str(self.socket), db=database, retry=once)

    def command(self) -> list[str]:
        return [
            str(self.programs.folder / self.programs.server),
            *("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
            *("--dir", str(self.folder), "--databases", "64", "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "everysec"),
        ]

    def answers(self) -> bool:
        try:
            with contextlib.closing(self.client()) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


@contextlib.contextmanager
def postgres_server(
    *, durable: bool = False, max_connections: int = 200
) -> Iterator[PostgresServer]:
    """A PostgreSQL of one's own, started, with an empty database `humanjudge`."""
    server = PostgresServer(durable=durable, max_connections=max_connections)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextlib.contextmanager
def valkey_server() -> Iterator[ValkeyServer]:
    """A Valkey or Redis of one's own, started and empty."""
    server = ValkeyServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()
