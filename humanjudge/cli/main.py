"""`humanjudge`: every command of the command line, and how each of them ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from humanjudge.cli import files, runs, votes
from humanjudge.cli.failed import Code, Failed
from humanjudge.cli.lines import clean


class Commands(click.Group):
    """Commands that end with one line, however they end."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise Failed(Code.PIPE_CLOSED, "") from error
        except KeyboardInterrupt as error:
            raise Failed(Code.INTERRUPTED, "interrupted") from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def humanjudge() -> None:
    """Make runs, vote on them, read who judges like people.

    RUN is the identifier of a run; its first eight characters are enough. The server and the key
    are those of HUMANJUDGE_URL and HUMANJUDGE_API_KEY, or what `make run` left on this machine.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no answer, 4 not allowed, 5 not found,
    6 conflict, 7 invalid, 8 timed out.
    """


for command in (*runs.COMMANDS, *votes.COMMANDS, *files.COMMANDS):
    humanjudge.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; what went wrong is one line on stderr."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        humanjudge.main(arguments, prog_name="humanjudge", standalone_mode=False)
    except Failed as failed:
        return _ended(failed.code, str(failed))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return Code.USAGE
    except click.ClickException as error:
        return _ended(Code.USAGE, error.format_message())
    except click.Abort:
        return _ended(Code.INTERRUPTED, "interrupted")
    except Exception as error:  # noqa: BLE001  a traceback tells a script nothing
        return _ended(Code.REFUSED, f"{type(error).__name__}: {error}")
    return 0


def _ended(code: Code, message: str) -> int:
    if code == Code.PIPE_CLOSED:
        # Nobody reads on; Python would complain when it empties its buffer at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        click.echo(f"error|{clean(message)}", err=True)
    return code
