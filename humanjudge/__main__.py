"""The program `humanjudge`: starts servers, is Django's command line, or asks a server."""

import os
import sys
from tempfile import TemporaryDirectory
from zipfile import is_zipfile


def main() -> int:
    word, *rest = sys.argv[1:] or [""]
    try:
        if word in ("up", "serve"):
            _manage([word, *rest])
        elif word == "manage":
            _manage(rest)
        elif word == "verify" and any(map(is_zipfile, rest)):
            _run_in_new_folder([word, *rest])  # a report; a ledger needs no database
        elif word == "alive":
            from humanjudge.server.alive import is_alive

            return 0 if is_alive(*rest) else 1
        else:
            from humanjudge.cli.main import COMPLETE, complete
            from humanjudge.cli.main import main as ask

            instruction = os.environ.get(COMPLETE)
            return complete(instruction) if instruction else ask(sys.argv[1:])
    except KeyboardInterrupt:  # before there was anything that could say so
        return 130
    return 0


def _run_in_new_folder(words: list[str]) -> None:
    """Do it with an empty database of its own, whatever there is on this machine."""
    with TemporaryDirectory(prefix="humanjudge-") as folder:
        os.environ |= {"HUMANJUDGE_DATA": folder, "DATABASE_URL": "", "REDIS_URL": ""}
        _manage(words)


def _manage(words: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(["humanjudge manage", *words])


if __name__ == "__main__":
    sys.exit(main())
