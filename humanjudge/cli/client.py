"""HTTP to one server, found by the environment or by what a start left on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from humanjudge.cli.lines import refusal
from humanjudge.core import environment
from humanjudge.core.strict_json import JsonObject

if TYPE_CHECKING:
    from httpx2 import Response

SECONDS = 60.0
SECONDS_FOR_FILES = 3600.0
MOST_A_PAGE = 200
PIECE = 1 << 16


class Code(IntEnum):
    """Why the command line ended; 0 is success."""

    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    MISSING = 5
    CONFLICT = 6
    INVALID = 7
    TIMED_OUT = 8
    INTERRUPTED = 130
    PIPE_CLOSED = 141


CODES = {
    400: Code.INVALID,
    401: Code.NOT_ALLOWED,
    403: Code.NOT_ALLOWED,
    404: Code.MISSING,
    409: Code.CONFLICT,
    413: Code.INVALID,
    422: Code.INVALID,
}


class Failed(Exception):
    """The command ends here, with one line that says why."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def trying(verb: str, path: Path | str) -> Iterator[None]:
    """End the command where the system does not let us read, or write, a file."""
    try:
        yield
    except OSError as error:
        code = Code.USAGE if verb == "read" else Code.REFUSED
        raise Failed(code, f"cannot {verb} {path}: {error.strerror}") from error


class Client:
    """A server and the key to it, which no other server is shown: no redirect is followed."""

    def __init__(self, url: str, key: str) -> None:
        import httpx2  # what only prints its help or a mistake starts without it

        self.url = url
        self._errors = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
        self._http = httpx2.Client(
            headers={
                "Authorization": f"Bearer {key}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            # A proxy of this network knows no server of this machine.
            trust_env=urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1"),
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **parameters: object) -> Any:
        return self._json("GET", path, params=filled_fields(**parameters))

    def post(self, path: str, body: object = None) -> Any:
        return self._json("POST", path, json=body)

    def upload(self, path: str, files: Sequence[Path], fields: Mapping[str, str]) -> Any:
        """Send files of any size, with fields beside them."""
        with ExitStack() as stack:
            parts = []
            for file in files:
                with trying("read", file):
                    content = stack.enter_context(file.open("rb"))
                # A name may be of bytes that are no text.
                parts.append(("file", (os.fsencode(file.name).decode("utf-8", "replace"), content)))
            return self._json("POST", path, SECONDS_FOR_FILES, data=fields, files=parts)

    def download(self, path: str, **parameters: str) -> Iterator[bytes]:
        with self._reply("GET", path, SECONDS_FOR_FILES, params=parameters) as reply:
            yield from reply.iter_bytes(PIECE)

    def first(self, number: int, path: str) -> list[Any]:
        """Return the first rows of a list, however many pages they take."""
        rows: list[Any] = []
        query = {"limit": str(min(number, MOST_A_PAGE))}
        while query and len(rows) < number:
            page, links = self._answer("GET", path, params=query)
            rows += page
            query = dict(parse_qsl(urlsplit(links.get("next", {}).get("url", "")).query))
        return rows[:number]

    def _json(self, method: str, path: str, seconds: float = SECONDS, **content: Any) -> Any:
        return self._answer(method, path, seconds, **content)[0]

    def _answer(
        self, method: str, path: str, seconds: float = SECONDS, **content: Any
    ) -> tuple[Any, Mapping[str | None, Mapping[str, str]]]:
        with self._reply(method, path, seconds, **content) as reply:
            text = reply.read()
        try:
            return json.loads(text), reply.links
        except ValueError as error:
            raise Failed(Code.UNREACHABLE, f"no HumanJudge answers at {self.url}") from error

    @contextmanager
    def _reply(self, method: str, path: str, seconds: float, **content: Any) -> Iterator[Response]:
        address = f"{self.url}/api{path}"
        try:
            with self._http.stream(method, address, timeout=seconds, **content) as reply:
                if not reply.is_success:
                    raise _refused(reply)
                yield reply
        except self._errors as error:
            words = str(error) or type(error).__name__
            raise Failed(Code.UNREACHABLE, f"cannot reach {self.url}: {words}") from error


def filled_fields(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value}


def run_path(run: str, *rest: str) -> str:
    return "/".join(["/runs", quote(run, safe=""), *rest])


def _refused(reply: Response) -> Failed:
    status = reply.status_code
    if reply.has_redirect_location:
        moved = f"the server has moved to {reply.headers['location']}: set HUMANJUDGE_URL"
        return Failed(Code.UNREACHABLE, moved)
    try:
        reason = refusal(json.loads(reply.read()))
    except (ValueError, KeyError, TypeError, AttributeError):
        reason = reply.reason_phrase
    if status in CODES:
        return Failed(CODES[status], reason)
    return Failed(Code.UNREACHABLE if status >= 500 else Code.REFUSED, f"{status}: {reason}")


def connect() -> Client:
    """Return a client of the server that is meant: settings are looked up as the server does."""
    try:
        data = environment.load()
    except environment.RefusalError as refused:
        raise Failed(Code.USAGE, str(refused)) from refused
    url, key = os.environ.get("HUMANJUDGE_URL", ""), os.environ.get("HUMANJUDGE_API_KEY", "")
    # The key of this machine is nothing to show to another.
    if url and not key and (not (data / "url").exists() or url.rstrip("/") != _left_url(data)):
        raise Failed(Code.USAGE, f"HUMANJUDGE_API_KEY must be set too, for {url}")
    url, key = url or _left_url(data), key or _left_key(data / "access.json")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise Failed(Code.USAGE, f"HUMANJUDGE_URL is {url!r}: not http://… or https://…")
    if not key.isascii() or not key.isprintable():
        raise Failed(Code.USAGE, "HUMANJUDGE_API_KEY holds signs that no key has")
    return Client(url.rstrip("/"), key)


def _left_url(data: Path) -> str:
    return _text(data / "url", "HUMANJUDGE_URL").strip()


def _left_key(path: Path) -> str:
    text = _text(path, "HUMANJUDGE_API_KEY")
    try:
        key = json.loads(text)["cli_key"]
    except (ValueError, TypeError, KeyError):
        key = None
    if not isinstance(key, str):
        raise Failed(Code.USAGE, f"{path} holds no key; set HUMANJUDGE_API_KEY")
    return key


def _text(path: Path, instead: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        message = (
            f"cannot read {path} ({reason}): {environment.START} starts a server, or set {instead}"
        )
        raise Failed(Code.USAGE, message) from error
