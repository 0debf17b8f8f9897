"""The RSGI application that granian serves: a request takes a thread only once its body is here.

Django works in a few threads. A body that comes byte by byte is waited for in the event loop, where
waiting costs nothing, and no longer than its deadline; so do clients who read slowly. Of granian's
interfaces this one costs least that can wait so: ASGI takes a fifth of the votes a second.
"""

import asyncio
import gc
import logging
import os
from collections import deque
from functools import lru_cache
from io import BytesIO
from queue import SimpleQueue
from tempfile import TemporaryFile
from threading import Thread
from time import monotonic
from typing import IO, Any, NamedTuple
from wsgiref.types import WSGIEnvironment
from wsgiref.util import FileWrapper

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from granian.rsgi import (  # type: ignore[attr-defined]
    HTTPProtocol,
    ProtocolClosed,
    ProtocolError,
    Scope,
)
from kombu.transport import redis  # noqa: F401  loaded here, not while the first vote waits

from humanjudge.core.http import REFUSED

logger = logging.getLogger(__name__)

# What is larger waits in a file.
IN_MEMORY = 64 * 1024
# A body gets its seconds, and one more for so many bytes that have come: uploads may take longer.
BYTES_A_SECOND = 64 * 1024
# How often bodies that are late and requests that were answered are looked for: an alarm for each
# body, and waking the event loop for each answer, would cost 4 % of the votes a second.
TICK = 0.1
# Files are sent in such pieces, and a piece must be taken within this time.
PIECE = 64 * 1024
PIECE_SECONDS = 30
WITHOUT_BODY = {"GET", "HEAD", "OPTIONS"}
_ENVIRON: WSGIEnvironment = {
    "SCRIPT_NAME": "",
    "wsgi.file_wrapper": lambda file, _: FileWrapper(file, PIECE),
}

_django: Any = get_wsgi_application()
# Bodies that are being received and too large for a form: they fill the disk.
_uploads: set[IO[bytes]] = set()


class _Job(NamedTuple):
    """A request for Django. The standard library's pool of threads would cost a vote 5 % more."""

    environ: WSGIEnvironment
    protocol: HTTPProtocol
    done: asyncio.Future[None]


class Application:
    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._answered: deque[_Job] = deque()
        self._due: dict[asyncio.Task[None], float] = {}

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the threads in which Django works, in the process that serves."""
        # What was loaded until now stays: the collector need not look through it again and again.
        gc.freeze()
        loop.call_soon_threadsafe(self._tick, loop)
        for _ in range(settings.WEB_THREADS):
            Thread(target=self._work, daemon=True).start()

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        environ = _environ(scope)
        length = 0 if scope.method in WITHOUT_BODY else int(environ.get("CONTENT_LENGTH") or 0)
        with BytesIO() if length <= IN_MEMORY else TemporaryFile() as body:
            try:
                if refused := await self._read(environ, protocol, body, length):
                    environ[REFUSED] = refused
            except (ProtocolClosed, ProtocolError):
                return
            finally:
                _uploads.discard(body)
            environ["CONTENT_LENGTH"] = str(body.tell())
            body.seek(0)
            environ["wsgi.input"] = body
            job = _Job(environ, protocol, asyncio.get_running_loop().create_future())
            self._jobs.put(job)
            self._end_answered()
            await job.done

    async def _read(
        self, environ: WSGIEnvironment, protocol: HTTPProtocol, body: IO[bytes], length: int
    ) -> tuple[int, str] | None:
        """Write all of a body; return what Django answers to one that is too large or too slow."""
        if "HTTP_TRANSFER_ENCODING" in environ:
            # It could not be told from one that was cut off.
            return 411, "A request must say how long it is, in Content-Length."
        if length > settings.MOST_BODY:
            return 413, f"A request may have at most {settings.MOST_BODY >> 20} MB."
        if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            if len(_uploads) >= settings.UPLOADS_AT_ONCE:
                return 503, "Many files are being uploaded. Try again in a minute."
            _uploads.add(body)
        if length and not await self._is_received(protocol, body, length):
            return 408, f"The request was not all here in {settings.BODY_SECONDS:.0f} seconds."
        if body.tell() != length:
            raise ProtocolClosed
        return None

    async def _is_received(self, protocol: HTTPProtocol, body: IO[bytes], length: int) -> bool:
        task = asyncio.current_task()
        assert task
        due = self._due[task] = monotonic() + settings.BODY_SECONDS
        try:
            if length <= IN_MEMORY:
                body.write(await protocol())
            else:
                async for piece in protocol:
                    body.write(piece)
                    self._due[task] = due + body.tell() / BYTES_A_SECOND
        except asyncio.CancelledError:
            if task in self._due:
                raise  # the server stops
            return False
        finally:
            self._due.pop(task, None)
        return True

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(TICK, self._tick, loop)
        self._end_answered()
        now = monotonic()
        for task in [task for task, due in self._due.items() if due < now]:
            del self._due[task]
            task.cancel()

    def _end_answered(self) -> None:
        while self._answered:
            done = self._answered.popleft().done
            if not done.done():
                done.set_result(None)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                _answer(job)
            except (ProtocolClosed, TimeoutError):
                pass  # the client has gone, or does not take what is sent
            except Exception:
                # The server answers 500 for us.
                logger.exception("a request was not answered")
            self._answered.append(job)


application = Application()


def _answer(job: _Job) -> None:
    started: list[Any] = []
    response = _django(job.environ, lambda *head: started.extend(head))
    try:
        status, headers = int(started[0][:3]), [(name.lower(), value) for name, value in started[1]]
        if not getattr(response, "streaming", True):
            job.protocol.response_bytes(status, headers, b"".join(response))
            return
        transport = job.protocol.response_stream(status, headers)

        async def send(piece: bytes) -> None:
            await transport.send_bytes(piece)

        for piece in response:
            asyncio.run_coroutine_threadsafe(send(piece), job.done.get_loop()).result(PIECE_SECONDS)
    finally:
        response.close()


def _environ(scope: Scope) -> WSGIEnvironment:
    server, _, port = scope.server.rpartition(":")
    environ = _ENVIRON | {
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0],
        "wsgi.url_scheme": scope.scheme,
    }
    for header, value in scope.headers.items():
        name, text = _name(header), value
        if name in environ:
            text = f"{environ[name]}{'; ' if name == 'HTTP_COOKIE' else ','}{text}"
        # A client could say with `_` what only a proxy may say with `-`.
        if "_" not in header:
            environ[name] = text
    return environ


@lru_cache(maxsize=500)
def _name(header: str) -> str:
    name = header.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
