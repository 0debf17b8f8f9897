"""`humanjudge`: how every command of the command line ends."""

import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from humanjudge.cli import gate  # noqa: F401  adds its command
from humanjudge.cli.client import Code, Failed
from humanjudge.cli.commands import humanjudge
from humanjudge.cli.lines import clean

# What a shell sets that asks for completion: its script first, then words at each press of tab.
COMPLETE = "_HUMANJUDGE_COMPLETE"


def complete(instruction: str) -> int:
    """Print what a shell asks for: its script, or the words that may come next."""
    return shell_complete(humanjudge, {}, "humanjudge", COMPLETE, instruction)


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; what went wrong is one line on stderr."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with humanjudge.make_context("humanjudge", list(arguments)) as context:
            humanjudge.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except Failed as failed:
        return _ended(failed.code, str(failed))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return Code.USAGE
    except click.ClickException as error:
        return _ended(error.exit_code, error.format_message())
    except BrokenPipeError:
        # Nobody reads on; Python would complain when it empties its buffer at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Code.PIPE_CLOSED
    except KeyboardInterrupt:
        return _ended(Code.INTERRUPTED, "interrupted")
    except Exception as error:  # noqa: BLE001  a traceback tells a script nothing
        return _ended(Code.REFUSED, f"{type(error).__name__}: {error}")
    return 0


def _ended(code: int, message: str) -> int:
    click.echo(f"error|{clean(message)}", err=True)
    return code
