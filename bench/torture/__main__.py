"""`make torture`: faults at full size on either database; nothing may be lost or counted twice.

It has parts, each on an installation of its own: kills by the hundred, faults of disks, clocks,
brokers and databases, and a long day. What came of a part is kept in a file, so that a run that was
broken off goes on with the next part when it is started again with the same seed and sizes.

python -m bench.torture [--kills 1000] [--hours 24] [--seed 1] [--database SQLite]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench.torture.check import check
from bench.torture.day import day
from bench.torture.faults import FAULTS
from bench.torture.installation import Installation, installation, make_pairs
from bench.torture.kills import kill_one, kind_of, recovered
from bench.torture.people import People
from bench.torture.table import Part, markdown
from bench.torture.work import Work

KILLS_OF_A_PART = 100
# Of a person, in the time between two kills; and while a fault lasts a minute.
PAIRS_A_KILL, LEAST_PAIRS = 60, 4000
DISK_MEGABYTES = 400


def main() -> int:
    options = _options()
    if options.part:
        return _do(options, options.part)
    file: Path = options.results
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in _parts(options):
        if name not in {part.name for part in _read(file)}:
            print(f"\n== {name} ==", flush=True)
            subprocess.run([*_again(options), "--part", name], check=False)
    asked = set(_parts(options))
    parts = [part for part in _read(file) if part.name in asked]
    print(f"\n{markdown(parts)}\n")
    for part in parts:
        for wrong in part.wrong:
            print(f"VIOLATED in {part.name}: {wrong}")
    missing = asked - {part.name for part in parts}
    for name in sorted(missing):
        print(f"BROKEN OFF: {name}")
    return 1 if missing or any(part.wrong for part in parts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.torture")
    parser.add_argument("--kills", type=int, default=1000, help="on each database")
    parser.add_argument("--hours", type=int, default=24, help="of 72,000 votes")
    parser.add_argument("--outage", type=float, default=60, help="seconds that a fault lasts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", action="append", choices=list(FAULTS))
    parser.add_argument("--results", type=Path, default=Path("var/torture.jsonl"))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args()


def _again(options: argparse.Namespace) -> list[str]:
    sizes = ("kills", "hours", "outage", "seed", "results")
    return [
        *(sys.executable, "-u", "-m", "bench.torture"),
        *(text for name in sizes for text in (f"--{name}", str(getattr(options, name)))),
    ]


def _parts(options: argparse.Namespace) -> Iterator[str]:
    for database in options.database or FAULTS:
        for first in range(0, options.kills, KILLS_OF_A_PART):
            last = min(first + KILLS_OF_A_PART, options.kills)
            yield f"{database}, kills {first + 1} to {last}, seed {options.seed}"
        if options.outage:
            yield f"{database}, faults of {options.outage:.0f} s, seed {options.seed}"
        if options.hours:
            yield f"{database}, {options.hours} hours"


def _read(file: Path) -> list[Part]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [Part(**json.loads(line)) for line in lines]


def _do(options: argparse.Namespace, name: str) -> int:
    database = next(each for each in FAULTS if name.startswith(each))
    part = Part(name, database)
    started = time.monotonic()
    if "kills" in name:
        first, last = (int(word) for word in name.split(",")[1].split()[1::2])
        _kills(part, database, range(first, last + 1), options.seed)
    elif "faults" in name:
        _faults(part, database, options.outage, options.seed)
    else:
        with installation(database) as here:
            verdict, part.growth, part.votes_per_second = day(here, options.hours)
        part.hours = options.hours
        _note(part, asdict(verdict))
    with options.results.open("a") as file:
        file.write(f"{json.dumps(part.stored())}\n")
    for wrong in part.wrong:
        print(f"VIOLATED: {wrong}")
    print(f"  {part.counts}, {time.monotonic() - started:.0f} s")
    return 1 if part.wrong else 0


def _kills(part: Part, database: str, numbers: range, seed: int) -> None:
    with installation(database) as here:

        def torture(people: People) -> int:
            for number in numbers:
                dice = random.Random(f"{seed} {number}")
                kind = kind_of(here, number, seed)
                _timed(part, kind, number, partial(kill_one, here, people, kind, dice))
            return len(numbers)

        _under(here, part, max(LEAST_PAIRS, PAIRS_A_KILL * len(numbers)), seed, torture)


def _faults(part: Part, database: str, outage: float, seed: int) -> None:
    with installation(database, DISK_MEGABYTES) as here:

        def torture(people: People) -> int:
            for number, (name, fault) in enumerate(FAULTS[database].items(), 1):
                fault(here, outage)
                _timed(part, name, number, partial(recovered, here, people, time.monotonic()))
            # Processes may die of a fault, each more than once.
            return 10 * len(FAULTS[database])

        _under(here, part, LEAST_PAIRS, seed, torture)


def _under(
    here: Installation, part: Part, pairs: int, seed: int, torture: Callable[[People], int]
) -> None:
    """Let people vote and work be done, do what shall be done to them, and look what came of it."""
    scene = make_pairs(pairs)
    work = Work(here.up.url, seed)
    people = People(scene, here.up.url, seed)
    deaths = torture(people)
    _note(part, asdict(check(here, scene, people, work, deaths)))


def _timed(part: Part, fault: str, number: int, recover: Callable[[], float]) -> None:
    try:
        seconds = recover()
    except (TimeoutError, RuntimeError) as error:
        part.wrong.append(f"{number}: {fault}: {error}")
        print(part.wrong[-1], flush=True)
        return
    part.seconds.setdefault(fault, []).append(round(seconds, 2))
    print(f"{number}: {fault}, well again after {seconds:.1f} s", flush=True)


def _note(part: Part, found: dict[str, object]) -> None:
    part.wrong += found.pop("wrong")  # type: ignore[arg-type]
    part.counts = found  # type: ignore[assignment]


if __name__ == "__main__":
    sys.exit(main())
