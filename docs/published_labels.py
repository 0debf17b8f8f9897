"""Makes the demo's file of published labels from the files of the PandaLM test set.

``python -m docs.published_labels FOLDER`` reads ``testset-v1.json`` and its judges' results as an
import does, and writes which models were compared, a number for the instruction, how long both
outputs are, and who said what. None of the texts is kept.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge_eval.imports.formats import read
from judge_eval.imports.row_models import ImportRow

FILE = Path(__file__).parents[1] / "judge_eval" / "demo" / "published" / "pandalm" / "labels.csv"
FILES = (
    "testset-v1.json",
    "gpt-3.5-turbo-testset-v1.json",
    "pandalm-7b-testset-v1.json",
)
# What a judge's verdict is called where its reply was no answer.
FAILED = "garbage"


def rows_of(folder: Path) -> Iterator[ImportRow]:
    for name in FILES:
        with (folder / name).open("rb") as stream:
            for row in read(stream, name):
                assert isinstance(row, ImportRow), row
                yield row


def labels(folder: Path) -> list[dict[str, Any]]:
    pairs: dict[str, dict[str, Any]] = {}
    instructions: dict[str | None, int] = {}
    for row in rows_of(folder):
        if row.vote and row.voter:
            about = {
                "pair": row.item,
                "instruction": instructions.setdefault(row.prompt, len(instructions) + 1),
                "model_a": row.generator_a,
                "model_b": row.generator_b,
                "length_a": len(row.output_a or ""),
                "length_b": len(row.output_b or ""),
            }
            pairs.setdefault(row.item, about)[row.voter] = row.vote
        elif row.judge:
            pairs[row.item][row.judge] = row.verdict or FAILED
    return list(pairs.values())


def main(folder: Path) -> None:
    found = labels(folder)
    with FILE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    sys.stdout.write(f"{FILE}: {len(found)} pairs, {FILE.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
