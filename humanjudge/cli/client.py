"""HTTP to one server: JSON there and back, files there, files back."""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from humanjudge.cli.failed import Code, Failed
from humanjudge.cli.lines import refusal

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
_TROUBLE = (OSError, http.client.HTTPException)


class _Patient(http.client.HTTPConnection):
    """Reads what a server says that refuses a file before it has read it all, and hangs up."""

    def send(self, data: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            super().send(data)


class _PatientAndSafe(_Patient, http.client.HTTPSConnection):
    pass


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> http.client.HTTPResponse:
        return self.do_open(_Patient, req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> http.client.HTTPResponse:
        return self.do_open(_PatientAndSafe, req)


class _NoRedirect(HTTPRedirectHandler):
    """A key is shown to the server it was meant for, and to no other."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        raise Failed(Code.UNREACHABLE, f"the server has moved to {newurl}: set HUMANJUDGE_URL")


class Client:
    """A server and the key to it."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self._key = key
        self._opener = _opener(urlsplit(url).hostname or "")

    def get(self, path: str, **parameters: object) -> Any:
        return self._json("GET", _with(path, parameters))

    def post(self, path: str, body: object = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        return self._json("POST", path, data, {"Content-Type": "application/json"})

    def upload(self, path: str, files: Sequence[Path], fields: Mapping[str, str]) -> Any:
        """Send files of any size, with fields beside them."""
        boundary = secrets.token_hex(16)
        parts = [*_fields(boundary, fields), *_files(boundary, files)]
        closing = f"--{boundary}--\r\n".encode()
        length = sum(len(head) + size + 2 for head, size, _ in parts) + len(closing)
        headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(length),
        }
        return self._json("POST", path, _sent(parts, closing), headers, SECONDS_FOR_FILES)

    def download(self, path: str, **parameters: object) -> Iterator[bytes]:
        """Yield a file piece by piece."""
        reply = self._reply("GET", _with(path, parameters), None, {}, SECONDS_FOR_FILES)
        with reply:
            try:
                while piece := reply.read(PIECE):
                    yield piece
            except _TROUBLE as error:
                raise self._unreachable(error) from error

    def _json(
        self,
        method: str,
        path: str,
        data: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
    ) -> Any:
        try:
            with self._reply(method, path, data, headers or {}, seconds) as reply:
                return json.loads(reply.read())
        except _TROUBLE as error:
            raise self._unreachable(error) from error
        except ValueError as error:
            raise Failed(Code.UNREACHABLE, f"no HumanJudge answers at {self.url}") from error

    def _reply(
        self,
        method: str,
        path: str,
        data: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> http.client.HTTPResponse:
        request = Request(  # noqa: S310  the scheme was looked at
            f"{self.url}/api{path}",
            data,
            {"Authorization": f"Bearer {self._key}", "Accept": "application/json", **headers},
            method=method,
        )
        try:
            reply: http.client.HTTPResponse = self._opener.open(request, timeout=seconds)
        except HTTPError as error:
            raise _refused(error) from error
        except _TROUBLE as error:
            raise self._unreachable(error) from error
        return reply

    def _unreachable(self, error: Exception) -> Failed:
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        return Failed(Code.UNREACHABLE, f"cannot reach {self.url}: {said}")


def run_path(run: str, *rest: str) -> str:
    return "/".join(["/runs", quote(run, safe=""), *rest])


def _opener(host: str) -> OpenerDirector:
    # A proxy of this network knows no server of this machine.
    proxies = [ProxyHandler({})] if host in _LOCAL else []
    return build_opener(_Http, _Https, _NoRedirect, *proxies)


def _with(path: str, parameters: Mapping[str, object]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _refused(error: HTTPError) -> Failed:
    try:
        said = refusal(json.loads(error.read()))
    except (*_TROUBLE, ValueError, KeyError, TypeError, AttributeError):
        said = error.reason or ""
    if error.code in CODES:
        return Failed(CODES[error.code], said)
    code = Code.UNREACHABLE if error.code >= 500 else Code.REFUSED
    return Failed(code, f"{error.code}: {said}")


# A part of a form: what stands before its content, how long that is, and where it comes from.
Part = tuple[bytes, int, bytes | Path]


def _fields(boundary: str, fields: Mapping[str, str]) -> Iterator[Part]:
    for name, value in fields.items():
        content = value.encode()
        yield _head(boundary, f'name="{name}"'), len(content), content


def _files(boundary: str, files: Sequence[Path]) -> Iterator[Part]:
    for path in files:
        try:
            size = path.stat().st_size
            path.open("rb").close()
        except OSError as error:
            raise Failed(Code.USAGE, f"cannot read {path}: {error.strerror}") from error
        yield _head(boundary, f'name="file"; filename="{_quoted(path.name)}"'), size, path


def _quoted(name: str) -> str:
    """Return a file's name as browsers send it, so that errors name it as it is."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _head(boundary: str, what: str) -> bytes:
    head = f"--{boundary}\r\nContent-Disposition: form-data; {what}\r\n\r\n"
    return head.encode("utf-8", "surrogateescape")


def _sent(parts: Sequence[Part], closing: bytes) -> Iterator[bytes]:
    for head, size, content in parts:
        yield head
        if isinstance(content, bytes):
            yield content
        else:
            yield from _pieces(content, size)
        yield b"\r\n"
    yield closing


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while size and (piece := file.read(min(PIECE, size))):
            size -= len(piece)
            yield piece
    if size:
        raise Failed(Code.USAGE, f"{path} became shorter while it was read")
