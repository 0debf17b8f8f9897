"""A hundred thousand rows in, out as a bundle, and in again: rows a second, and memory."""

from __future__ import annotations

import io
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from itertools import islice
from tempfile import TemporaryFile
from typing import TypeVar

from bench.lib.installation import installation
from bench.lib.report import figure, note

ROWS = int(os.environ.get("BENCH_IMPORT", "100000"))
FEW = ROWS // 10
JUDGES = 3
VOTERS = 50
TEXT = "An answer of a usual length, with some words in it. " * 8

Result = TypeVar("Result")


def records(count: int) -> Iterator[bytes]:
    """Pairs with texts, each with a verdict of every judge, with its reason, and two votes."""
    number = 0
    while True:
        pair = {"pair": f"p{number}", "prompt": f"Question {number}", "generator_a": "a"}
        pair |= {"generator_b": "b", "output_a": f"{TEXT}{number}", "output_b": f"{number}{TEXT}"}
        said = [
            {"judge": f"judge-{n}", "verdict": "AB"[(number + n) % 2], "feedback": f"{n}{TEXT}"}
            for n in range(JUDGES)
        ]
        voted = [{"voter": f"v{(number + n) % VOTERS}", "vote": "AB"[number % 2]} for n in (0, 1)]
        for statement in (pair, *said, *voted):
            yield json.dumps({"pair": pair["pair"]} | statement).encode() + b"\n"
            count -= 1
            if not count:
                return
        number += 1


class Lines(io.RawIOBase):
    """A file that is made while it is read."""

    def __init__(self, lines: Callable[[], Iterator[bytes]]) -> None:
        self._make = lines
        self.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        if whence == 0:
            self._lines, self._rest, self._at = self._make(), b"", 0
            while self._at < place:
                self.readinto(bytearray(min(place - self._at, 1 << 16)))
        return self._at

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while len(self._rest) < len(buffer):
            part = b"".join(islice(self._lines, 100))
            if not part:
                break
            self._rest += part
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        self._at += size
        return size


def timed(do: Callable[[], Result]) -> tuple[Result, float]:
    started = time.perf_counter()
    result = do()
    return result, time.perf_counter() - started


def most_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    with installation():
        import_rows("a tenth of the rows", FEW)
        few = most_megabytes()
        run = import_rows("all rows", ROWS)
        figure("memory of all rows above that of a tenth", most_megabytes() - few, "MB", "under 20")
        again(run)
        bundle(run)


def import_rows(name: str, count: int) -> object:
    from judge_eval.imports.formats import read
    from tests.helpers.imports import import_run
    from voting.models import Project

    stream = io.BufferedReader(Lines(lambda: records(count)))
    project = Project.objects.create(name=name)
    began = time.process_time()
    report, seconds = timed(lambda: import_run(project, name, read(stream, "rows.jsonl")))
    note(f"{name}: {dict(report.new)}")
    figure(f"import of {count:,} rows", count / seconds, "rows/s", "2,500 or more")
    figure("processor time of a row here", (time.process_time() - began) / count * 1e6, "us")
    return report.run_id


def again(run: object) -> None:
    from judge_eval.imports.formats import read
    from tests.helpers.imports import import_into

    stream = io.BufferedReader(Lines(lambda: records(ROWS)))
    report, seconds = timed(lambda: import_into(run, read(stream, "rows.jsonl")))  # type: ignore[arg-type]
    if report.changed or report.failures:
        note(f"NOT THE SAME: {report}")
    figure("the same rows again", ROWS / seconds, "rows/s")


def bundle(run: object) -> None:
    from judge_eval.exports.export import export_run
    from judge_eval.models import Run
    from tests.helpers.bundles import restore
    from voting.ledger.ledger import replay
    from voting.models import Project

    before = most_megabytes()
    copy = Project.objects.create(name="copy")

    def export() -> int:
        return sum(
            file.write(f"{line}\n".encode()) > 0 for line in export_run(Run.objects.get(pk=run))
        )

    with TemporaryFile() as file:
        lines, seconds = timed(export)
        figure("export", lines / seconds, "lines/s")
        report, seconds = timed(lambda: restore(file, "run.jsonl", copy))
    if report.failures:
        note(f"NOT RESTORED: {report}")
    figure("import of a bundle", lines / seconds, "lines/s")
    figure("memory of that above the import of rows", most_megabytes() - before, "MB", "under 20")
    if replay(copy, write=False):
        note("REPLAY DIFFERS")


if __name__ == "__main__":
    main()
