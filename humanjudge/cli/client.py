"""HTTP to one server: JSON there and back, files there, files back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from humanjudge.cli.failed import Code, Failed
from humanjudge.cli.lines import refusal

if TYPE_CHECKING:
    from httpx2 import Response

SECONDS = 60.0
SECONDS_FOR_FILES = 3600.0
PIECE = 1 << 16
_LOCAL = ("127.0.0.1", "localhost", "::1")
CODES = {
    400: Code.INVALID,
    401: Code.NOT_ALLOWED,
    403: Code.NOT_ALLOWED,
    404: Code.NOT_FOUND,
    409: Code.CONFLICT,
    413: Code.INVALID,
    422: Code.INVALID,
}


class Client:
    """A server and the key to it, which no other server is shown: no redirect is followed."""

    def __init__(self, url: str, key: str) -> None:
        import httpx2  # what only prints its help or a mistake starts without it

        self.url = url
        self._key = key
        self._errors = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
        self._http = httpx2.Client(
            headers={
                "Authorization": f"Bearer {key}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            # A proxy of this network knows no server of this machine.
            trust_env=urlsplit(url).hostname not in _LOCAL,
        )

    def get(self, path: str, **parameters: object) -> Any:
        return self._json("GET", path, params=_given(parameters))

    def post(self, path: str, body: object = None) -> Any:
        return self._json("POST", path, json=body)

    def upload(self, path: str, files: Sequence[Path], fields: Mapping[str, str]) -> Any:
        """Send files of any size, with fields beside them."""
        with ExitStack() as stack:
            parts = [("file", (_name(file), stack.enter_context(_opened(file)))) for file in files]
            return self._json("POST", path, SECONDS_FOR_FILES, data=fields, files=parts)

    def download(self, path: str, **parameters: object) -> Iterator[bytes]:
        """Yield a file piece by piece."""
        with self._reply("GET", path, SECONDS_FOR_FILES, params=_given(parameters)) as reply:
            yield from reply.iter_bytes(PIECE)

    def _json(self, method: str, path: str, seconds: float = SECONDS, **content: Any) -> Any:
        with self._reply(method, path, seconds, **content) as reply:
            text = reply.read()
        try:
            return json.loads(text)
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
            words = _cause(error) or str(error) or type(error).__name__
            raise Failed(Code.UNREACHABLE, f"cannot reach {self.url}: {words}") from error


def run_path(run: str, *rest: str) -> str:
    return "/".join(["/runs", quote(run, safe=""), *rest])


def _given(parameters: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in parameters.items() if value is not None}


def _refused(reply: Response) -> Failed:
    status = reply.status_code
    if reply.has_redirect_location:
        moved = f"the server has moved to {reply.headers['location']}: set HUMANJUDGE_URL"
        return Failed(Code.UNREACHABLE, moved)
    try:
        said = refusal(json.loads(reply.read()))
    except (ValueError, KeyError, TypeError, AttributeError):
        said = reply.reason_phrase
    if status in CODES:
        return Failed(CODES[status], said)
    code = Code.UNREACHABLE if status >= 500 else Code.REFUSED
    return Failed(code, f"{status}: {said}")


def _cause(error: BaseException | None) -> str:
    """Return what the system says of a failure, without its number."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__ or error.__context__
    return ""


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise Failed(Code.USAGE, f"cannot read {path}: {error.strerror}") from error


def _name(path: Path) -> str:
    """Return a file's name as text, whatever its bytes are."""
    return os.fsencode(path.name).decode("utf-8", "replace")
