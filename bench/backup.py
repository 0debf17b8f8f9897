"""A backup of very many votes and back, from PostgreSQL to SQLite and the other way."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.lib.flood import insert_votes, seal
from bench.lib.installation import installation
from bench.lib.report import figure, note
from tests.process.processes import ROOT
from tests.servers import postgres_server

VOTES = int(os.environ.get("BENCH_BACKUP", "1000000"))
PAIRS = 1000


def main() -> None:
    with installation() as here, postgres_server(durable=True) as another:
        from tests.helpers.scene import make_scene

        scene = make_scene(judges=6, pairs=PAIRS, voters=-(-VOTES // PAIRS))
        insert_votes(scene, 0, VOTES)
        seal(scene)
        folder = Path(os.environ["HUMANJUDGE_DATA"])
        first, second = folder / "first.backup", folder / "second.backup"
        lite = f"sqlite:///{folder}/restored.sqlite3"
        timed("backup of PostgreSQL", here.database.url, "backup", first)
        note(f"{first.stat().st_size / VOTES:.0f} bytes a vote")
        timed("restore into SQLite, verified", lite, "restore", first)
        timed("backup of SQLite", lite, "backup", second)
        timed("restore into PostgreSQL, verified", another.url, "restore", second)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        figure("most memory of any of them", most, "MB")


def timed(name: str, database: str, command: str, file: Path) -> None:
    environment = os.environ | {"DATABASE_URL": database}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "manage.py", command, str(file)],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    figure(f"{name}, {VOTES:,} votes", time.perf_counter() - started, "s")


if __name__ == "__main__":
    main()
