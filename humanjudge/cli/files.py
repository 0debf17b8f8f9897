"""Commands about files: bring in what was made elsewhere, take everything out, verify a ledger."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from humanjudge.cli import lines
from humanjudge.cli.client import CODES, Client, run_path
from humanjudge.cli.failed import Code, Failed
from humanjudge.cli.place import connect
from humanjudge.cli.runs import as_json
from voting.ledger import chain

EVERY_SECONDS = 0.3


@click.command("import")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@click.option("--run", help="Add to this run instead of making one.")
@click.option("--name", help="Name of the new run; that of the first file if not given.")
@click.option("--project", help="Name or identifier of the project of a new run.")
@click.option(
    "--mapping", metavar="FILE", type=click.Path(path_type=Path), help="Columns, as JSON."
)
@click.option("--options", metavar="FILE", type=click.Path(path_type=Path), help="More, as JSON.")
@click.option("--format", "file_format", type=click.Choice(["csv", "json", "jsonl", "parquet"]))
@click.option("--skip-errors", is_flag=True, help="Import the rows that are right.")
@as_json
def import_files(
    files: tuple[Path, ...],
    run: str | None,
    mapping: Path | None,
    options: Path | None,
    skip_errors: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Import pairs, verdicts and votes from CSV, JSON, JSONL or Parquet, or one exported bundle.

    Nothing is imported where one row is wrong, and nothing twice.
    """
    wanted = _object(options) if options else {}
    if skip_errors:
        wanted["skip_errors"] = True
    fields = {
        "mapping": json.dumps(_object(mapping)) if mapping else "",
        "options": json.dumps(wanted) if wanted else "",
        "format": given["file_format"] or "",
        "name": "" if run else given["name"] or files[0].stem,
        "project": given["project"] or "",
    }
    path = run_path(run, "import") if run else "/runs/import"
    sent = {name: value for name, value in fields.items() if value}
    report = _waited_for(connect(), path, files, sent)
    lines.show(report, lines.report_lines(report), as_json=as_json)


def _waited_for(
    client: Client, path: str, files: Sequence[Path], fields: Mapping[str, str]
) -> lines.Reply:
    """Send files, tell how far the import has come, and return its report."""
    job = client.upload(path, files, fields)
    address = f"/imports/{job['id']}"
    try:
        while job["state"] in ("waiting", "reading", "writing"):
            if sys.stderr.isatty():
                click.echo(f"\r{lines.progress(job)}\x1b[K", nl=False, err=True)
            time.sleep(EVERY_SECONDS)
            job = client.get(address)
    except KeyboardInterrupt:
        # Who has gone wants it no more; what is being written is written to its end.
        client.post(f"{address}/stop")
        raise
    if sys.stderr.isatty():
        click.echo("", err=True)
    if job["state"] != "done":
        said = lines.refusal((job["report"] or {}) | {"detail": job["detail"]})
        raise Failed(CODES.get(job["status"], Code.REFUSED), said)
    report: lines.Reply = job["report"]
    return report


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise Failed(Code.USAGE, f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failed(Code.INVALID, f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Failed(Code.INVALID, f"{path}: must be an object")
    return found


@click.command("export")
@click.argument("run")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["jsonl", "csv", "votes", "ledger"]),
    default="jsonl",
    show_default=True,
    help="Everything, its votes as a table or as the GrandJury client reads them, or the ledger.",
)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Not stdout but this.")
@as_json
def export(run: str, shape: str, out: Path | None, as_json: bool) -> None:
    """Take everything of a run out. It shows what the judges said of every pair."""
    pieces = connect().download(run_path(run, "export"), format=shape)
    if out is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    size = _saved(pieces, out)
    done = {"file": str(out), "bytes": size}
    lines.show(done, [lines.line("exported", out, "bytes", size)], as_json=as_json)


def _saved(pieces: Iterator[bytes], out: Path) -> int:
    """Write a file that is whole or not there; return its size."""
    part = out.with_name(f"{out.name}.part")
    try:
        with part.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            size = file.tell()
        part.replace(out)
    except OSError as error:
        raise Failed(Code.REFUSED, f"cannot write {out}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return size


@click.command("verify")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--head", help="The head that a report prints: with it a cut tail is found too.")
@as_json
def verify(file: Path, head: str | None, as_json: bool) -> None:
    """Verify a ledger that was exported, without any server."""
    try:
        with file.open(encoding="utf-8") as text:
            found = chain.verify(text, head)
    except OSError as error:
        raise Failed(Code.USAGE, f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failed(Code.REFUSED, f"{file}: not UTF-8") from error
    except chain.ChainBroken as error:
        raise Failed(Code.REFUSED, f"{file}: {error}") from error
    done = {
        "entries": found.entries,
        "head": found.head,
        "project": str(found.project),
        "head_known": head is not None,
    }
    line = lines.line("verified", found.entries, "head", found.head, "known", int(head is not None))
    lines.show(done, [line], as_json=as_json)


COMMANDS = (import_files, export, verify)
