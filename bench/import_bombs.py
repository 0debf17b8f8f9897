"""Imports beside voting, on `make run` as it is: small files that hold very much, and a large one.

A script votes all the while: how long does each vote wait, and is any of them refused? How long is
SQLite's lock held at most? For how long does a file hold the imports of others? And how much memory
does the largest process take?
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from bench.imports import records
from bench.lib.installation import NO_LIMIT
from bench.lib.report import figure, note, quantile
from judge_eval.imports.preview import PreviewRequest, preview
from tests.helpers.waiting import eventually
from tests.helpers.workbooks import BOMB, HIDDEN_BOMB, workbook
from tests.process.up import ROOT, Up, environment

ROWS = int(os.environ.get("BENCH_IMPORT_BESIDE", "30000"))
KINDS = {"granian": "a web process", "import_waiting": "the import's process", "celery": "a worker"}
PAUSE = 0.05
AT_WORK = ("waiting", "reading", "writing")


def bombs() -> Iterator[tuple[str, str, bytes]]:
    """Yield what each holds, its name as a file, and the file."""
    yield "a workbook with cells A1 and XFD1048576", "bomb.xlsx", workbook(BOMB)
    yield "a workbook that does not say its last cell", "bomb.xlsx", workbook(HIDDEN_BOMB)
    yield "600,000,000 blank lines", "bomb.jsonl.gz", gzip.compress(b"\n" * 600_000_000)
    for name, content in parquet_bombs():
        yield name, "bomb.parquet", content


def parquet_bombs() -> Iterator[tuple[str, bytes]]:
    million = 1_000_000
    columns = (("pair", "p"), ("voter", "v"), ("vote", "A"))
    same = {name: _repeated(text, million) for name, text in columns}
    yield "30,000,000 repeated rows", _parquet(same, 30)
    yield "one cell of 200 MB", _parquet({"pair": ["p"], "output_a": ["x" * 200_000_000]})
    names = [f"p{n}" for n in range(400)]
    hidden = ["x" * 200_000_000, *["y"] * 399]
    yield "one such cell among 400", _parquet({"pair": names, "output_a": hidden})


def _repeated(text: str, number: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0] * number, pa.int8()), [text])


def _parquet(columns: dict[str, Any], times: int = 1) -> bytes:
    table, file = pa.table(columns), io.BytesIO()
    with pq.ParquetWriter(file, table.schema, compression="zstd") as writer:
        for _ in range(times):
            writer.write_table(table)
    return file.getvalue()


class Watch(threading.Thread):
    """Goes on beside the imports until it is ended."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()

    def end(self) -> None:
        self._over.set()
        self.join()


class Memory(Watch):
    """Watches how large the processes of each kind become."""

    def __init__(self, up: Up) -> None:
        super().__init__()
        self._up, self.idle = up, self._now(up)
        self.most = dict(self.idle)

    def run(self) -> None:
        while not self._over.wait(0.3):
            for kind, size in self._now(self._up).items():
                self.most[kind] = max(self.most.get(kind, 0), size)

    @staticmethod
    def _now(up: Up) -> dict[str, float]:
        largest: dict[str, float] = defaultdict(float)
        for pid, words in up.tree().items():
            kind = next((KINDS[word] for word in KINDS if word in words), None)
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                if kind and (found := re.search(r"VmHWM:\s+(\d+)", status)):
                    largest[kind] = max(largest[kind], int(found[1]) / 1024)
        return dict(largest)


class Lock(Watch):
    """Asks for the database's lock for writing all the time: how long is it not to be had?"""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self.longest = path, 0.0

    def run(self) -> None:
        with contextlib.closing(sqlite3.connect(self._path, 0, isolation_level=None)) as database:
            free_at = time.perf_counter()
            while not self._over.wait(0.002):
                with contextlib.suppress(sqlite3.OperationalError):
                    database.execute("BEGIN IMMEDIATE")
                    database.execute("ROLLBACK")
                    now = time.perf_counter()
                    self.longest, free_at = max(self.longest, now - free_at), now


class Voter(Watch):
    """Sends one vote again and again: each needs the database's lock for writing."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__()
        self._client = client
        # On a new installation the first drawings are being rendered.
        pair = eventually(lambda: client.get("pending", params={"limit": 1}).json()["tasks"])[0]
        self._vote = {"task_id": pair["id"], "winner": "A"}
        self.milliseconds: list[float] = []
        self.refused = 0

    def run(self) -> None:
        while not self._over.wait(PAUSE):
            began = time.perf_counter()
            reply = self._client.post("vote", json=self._vote)
            self.refused += reply.status_code != 200
            self.milliseconds.append((time.perf_counter() - began) * 1000)

    def say(self, name: str) -> None:
        note(f"{name}: {len(self.milliseconds)} votes")
        figure(f"votes beside {name}, refused", self.refused, "votes", "0")
        figure(f"votes beside {name}, p95", quantile(self.milliseconds, 0.95), "ms")
        figure(f"votes beside {name}, slowest", max(self.milliseconds), "ms", "under 2,000")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Up(Path(folder) / "data", **NO_LIMIT) as up:
        up.ready()
        try:
            measure(up)
        finally:
            up.stop(signal.SIGTERM)


def measure(up: Up) -> None:
    with up.run_api() as client:
        memory = Memory(up)
        memory.start()
        key = manage_key(up)
        beside(client, "nothing else", lambda: time.sleep(5))
        for name, file, content in bombs():
            note(f"{name}: {len(content) / 1000:,.1f} kB")
            look_at(name, file, content)
            began = time.perf_counter()
            beside(client, name, partial(said, up, key, file, content))
            figure(f"others wait for {name}", time.perf_counter() - began, "s", "under 150")
        lines = b"".join(islice(records(ROWS), ROWS))
        began = time.perf_counter()
        run = locking(up, client, f"{ROWS:,} rows", partial(said, up, key, "rows.jsonl", lines))
        figure("import of them beside votes", ROWS / (time.perf_counter() - began), "rows/s")
        bundle = exported(up, key, run)
        name = f"a bundle of {len(bundle.splitlines()):,} lines"
        locking(up, client, name, partial(said, up, key, "run.jsonl", bundle, project="Copy"))
        memory.end()
    for kind, most in memory.most.items():
        idle = memory.idle.get(kind, 0.0)
        aim = "under 64" if kind == "a web process" else "under 256"
        figure(f"largest memory of {kind}", most, "MB")
        figure(f"{kind} grew by", most - idle, "MB", aim)


def locking(up: Up, client: httpx.Client, name: str, do: Any) -> Any:
    lock = Lock(up.data / "humanjudge.sqlite3")
    lock.start()
    result = beside(client, name, do)
    lock.end()
    figure(f"SQLite's lock beside {name}, held longest", lock.longest * 1000, "ms", "under 200")
    return result


def look_at(name: str, file_name: str, content: bytes) -> None:
    """Say how long the page waits until it can say what a file is, or that it is too much."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        began = time.perf_counter()
        found = preview(PreviewRequest(files=[(Path(file.name), file_name)]))
    figure(f"preview of {name}", (time.perf_counter() - began) * 1000, "ms")
    note("; ".join(fault.why for fault in found.faults) or f"{len(found.items)} items shown")


def manage_key(up: Up) -> str:
    make = (
        "from voting.models import Project; Project.objects.create(name='Copy');"
        "from voting.access.keys import create_key; print(create_key('bench', ['manage'])[1])"
    )
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", make]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(up.data), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def beside(client: httpx.Client, name: str, do: Any) -> Any:
    voter = Voter(client)
    voter.start()
    result = do()
    voter.end()
    voter.say(name)
    return result


def by_key(up: Up, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=up.url, headers=headers, timeout=60)


def exported(up: Up, key: str, run: str) -> bytes:
    with by_key(up, key) as client:
        return client.get(f"/api/runs/{run}/export").raise_for_status().content


def said(up: Up, key: str, name: str, content: bytes, project: str = "Demo") -> Any:
    """Import a file by REST, note what is said of it at last, and return its run."""
    with by_key(up, key) as client:
        fields = {"name": name, "project": project, "options": json.dumps({"baselines": False})}
        reply = client.post("/api/runs/import", files={"file": (name, content)}, data=fields)
        reply.raise_for_status()
        while (job := client.get(reply.headers["Location"]).json())["state"] in AT_WORK:
            time.sleep(0.2)
    note(f"{job['state']} {job['status'] or ''} {job['detail']}")
    return job["run_id"]


if __name__ == "__main__":
    main()
