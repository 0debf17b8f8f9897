"""Where the server is and with which key: from the environment, or what `make run` left here."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from humanjudge.cli.client import Client
from humanjudge.cli.failed import Code, Failed

ROOT = Path(__file__).resolve().parents[2]


def connect() -> Client:
    """Return a client of the server that is meant."""
    url, key = os.environ.get("HUMANJUDGE_URL", ""), os.environ.get("HUMANJUDGE_API_KEY", "")
    if not (url and key):
        url, key = _completed(_setting())
    if not _is_address(url):
        raise Failed(Code.USAGE, f"HUMANJUDGE_URL is {url!r}: not http://… or https://…")
    if not key.isascii() or not key.isprintable():
        raise Failed(Code.USAGE, "HUMANJUDGE_API_KEY holds signs that no key has")
    return Client(url.rstrip("/"), key)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _setting() -> Callable[[str], str]:
    """Look settings up as the server does: in the environment, then in the project's .env."""
    path = ROOT / ".env"
    # Another user's file, and the data beside it, are not for this one.
    if not os.access(path, os.R_OK):
        return lambda name: os.environ.get(name, "")
    from environs import Env  # it takes its time, and few have such a file

    env = Env()
    env.read_env(path, recurse=False)
    return lambda name: env.str(name, "")


def _completed(setting: Callable[[str], str]) -> tuple[str, str]:
    url, key = setting("HUMANJUDGE_URL"), setting("HUMANJUDGE_API_KEY")
    if url and key:
        return url, key
    data = ROOT / Path(setting("HUMANJUDGE_DATA") or "var").expanduser()
    # The key of this machine is nothing to show to another.
    if url and not _is_left_here(url, data):
        raise Failed(Code.USAGE, f"HUMANJUDGE_API_KEY must be set too, for {url}")
    return _text(data / "url", "HUMANJUDGE_URL").strip(), key or _key(data / "access.json")


def _is_left_here(url: str, data: Path) -> bool:
    with suppress(Failed):
        return url.rstrip("/") == _text(data / "url", "").strip()
    return False


def _key(path: Path) -> str:
    text = _text(path, "HUMANJUDGE_API_KEY")
    with suppress(ValueError, AttributeError):
        access = json.loads(text)
        key = access.get("cli_key") or access.get("api_key")
        if isinstance(key, str):
            return key
    raise Failed(Code.USAGE, f"{path} holds no key; set HUMANJUDGE_API_KEY")


def _text(path: Path, instead: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"no {path}: start the server with make run, or set {instead}"
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        message = f"cannot read {path} ({reason}); set {instead}"
    raise Failed(Code.USAGE, message)
