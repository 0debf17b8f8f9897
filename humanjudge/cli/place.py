"""Where the server is and with which key: from the environment, or what `make run` left here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from humanjudge.cli.client import Client
from humanjudge.cli.failed import Code, Failed

ROOT = Path(__file__).resolve().parents[2]


def connect() -> Client:
    """Return a client of the server that is meant."""
    url, key = os.environ.get("HUMANJUDGE_URL", ""), os.environ.get("HUMANJUDGE_API_KEY", "")
    if not (url and key):
        _read_env_file()
        url, key = _completed(url, key)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Failed(
            Code.USAGE, f"HUMANJUDGE_URL is {url!r}: it must begin with http:// or https://"
        )
    if not key.isascii() or not key.isprintable():
        raise Failed(Code.USAGE, "HUMANJUDGE_API_KEY holds signs that no key has")
    return Client(url.rstrip("/"), key)


def _read_env_file() -> None:
    path = ROOT / ".env"
    if path.exists():
        from environs import Env  # reads the file as the server does; others need not wait for it

        Env().read_env(path, recurse=False)


def _completed(url: str, key: str) -> tuple[str, str]:
    url = url or os.environ.get("HUMANJUDGE_URL", "")
    key = key or os.environ.get("HUMANJUDGE_API_KEY", "")
    if url and key:
        return url, key
    data = ROOT / Path(os.environ.get("HUMANJUDGE_DATA") or "var").expanduser()
    local = _text(data / "url", "HUMANJUDGE_URL").strip()
    if url and url.rstrip("/") != local:
        # The key of this machine is nothing to show to another.
        raise Failed(Code.USAGE, f"HUMANJUDGE_API_KEY must be set too, for {url}")
    return local, key or _key(data / "access.json")


def _key(path: Path) -> str:
    try:
        access: dict[str, Any] = json.loads(_text(path, "HUMANJUDGE_API_KEY"))
    except ValueError as error:
        raise Failed(Code.USAGE, f"{path} is not JSON; set HUMANJUDGE_API_KEY") from error
    key = access.get("cli_key") or access.get("api_key")
    if not isinstance(key, str):
        raise Failed(Code.USAGE, f"{path} holds no key; set HUMANJUDGE_API_KEY")
    return key


def _text(path: Path, instead: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"no {path}: start the server with make run, or set {instead}"
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        message = f"cannot read {path} ({reason}); set {instead}"
    raise Failed(Code.USAGE, message)
