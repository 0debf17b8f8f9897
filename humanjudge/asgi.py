"""The ASGI application that granian serves: a request takes a thread only once its body is here.

Django works in a few threads. A body that comes byte by byte is waited for in the event loop, where
waiting costs nothing, and no longer than its deadline; so do clients who read slowly.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from wsgiref.util import FileWrapper

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from kombu.transport import redis  # noqa: F401  loaded here, not while the first vote waits

from humanjudge.http import REFUSED

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# What is larger waits in a file.
IN_MEMORY = 64 * 1024
# A body gets its seconds, and one more for so many bytes that have come: uploads may take longer.
BYTES_A_SECOND = 64 * 1024
# Files are sent in such pieces, and a piece must be taken within this time.
PIECE = 64 * 1024
PIECE_SECONDS = 30
WITHOUT_BODY = {"GET", "HEAD", "OPTIONS"}
_ENVIRON = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
    "wsgi.file_wrapper": lambda file, _: FileWrapper(file, PIECE),
}

_django: Any = get_wsgi_application()
_threads = ThreadPoolExecutor(settings.WEB_THREADS)
# Bodies that are being received and too large for a form: they fill the disk.
_uploads: set[IO[bytes]] = set()


class Refused(Exception):
    """Raised for a body that is too large, or too slow; Django makes the answer."""


class Gone(Exception):
    """Raised when the client hung up before its body was here."""


async def application(scope: Message, receive: Receive, send: Send) -> None:
    with SpooledTemporaryFile(IN_MEMORY) as body:
        environ = _environ(scope)
        try:
            if scope["method"] not in WITHOUT_BODY:
                await _read(receive, body, int(environ.get("CONTENT_LENGTH") or 0))
        except Refused as refused:
            environ[REFUSED] = refused.args
        except Gone:
            return
        finally:
            _uploads.discard(body)
        environ["CONTENT_LENGTH"] = str(body.tell())
        body.seek(0)
        environ["wsgi.input"] = body
        loop = asyncio.get_running_loop()
        for message in await loop.run_in_executor(_threads, _answer, environ, loop, send):
            await send(message)


async def _read(receive: Receive, body: IO[bytes], length: int) -> None:
    """Write all of a body that is neither too large nor too slow."""
    now = asyncio.get_running_loop().time()
    received = 0
    try:
        async with asyncio.timeout(settings.BODY_SECONDS) as deadline:
            while True:
                _check_size(max(length, received), body)
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                received += body.write(message["body"])
                if not message["more_body"]:
                    return
                deadline.reschedule(now + settings.BODY_SECONDS + received / BYTES_A_SECOND)
    except TimeoutError:
        text = f"The request was not all here in {settings.BODY_SECONDS:.0f} seconds."
        raise Refused(408, text) from None


def _check_size(size: int, body: IO[bytes]) -> None:
    if size > settings.MOST_BODY:
        raise Refused(413, f"A request may have at most {settings.MOST_BODY >> 20} MB.")
    if size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        if len(_uploads - {body}) >= settings.UPLOADS_AT_ONCE:
            raise Refused(503, "Many files are being uploaded. Try again in a minute.")
        _uploads.add(body)


def _answer(
    environ: dict[str, Any], loop: asyncio.AbstractEventLoop, send: Send
) -> Iterable[Message]:
    """Let Django answer, in a thread; return what is left to send."""
    start: Message = {"type": "http.response.start"}

    def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
        start["status"] = int(status[:3])
        start["headers"] = [(k.lower().encode(), v.encode("latin-1")) for k, v in headers]

    response = _django(environ, start_response)
    try:
        if not getattr(response, "streaming", True):
            return start, _piece(b"".join(response), more=False)

        async def sending(message: Message) -> None:
            await send(message)

        def send_now(message: Message) -> None:
            asyncio.run_coroutine_threadsafe(sending(message), loop).result(PIECE_SECONDS)

        send_now(start)
        for content in response:
            send_now(_piece(content))
        return (_piece(b"", more=False),)
    finally:
        response.close()


def _piece(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


def _environ(scope: Message) -> dict[str, Any]:
    """Return a request's head as WSGI has it."""
    server, client = scope.get("server") or ("", ""), scope.get("client") or ("", "")
    environ = _ENVIRON | {
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "wsgi.url_scheme": scope["scheme"],
    }
    for header, value in scope["headers"]:
        name, text = _name(header), value.decode("latin-1")
        if name in environ:
            text = f"{environ[name]}{'; ' if name == 'HTTP_COOKIE' else ','}{text}"
        # A client could say with `_` what only a proxy may say with `-`.
        if b"_" not in header:
            environ[name] = text
    return environ


@lru_cache(maxsize=500)
def _name(header: bytes) -> str:
    name = header.decode("latin-1").upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
