"""The line to a provider: bounded in time and in size, and nobody else learns the key."""

import contextlib
import functools
import io
import json
import select
import socket
import ssl
import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TypeAlias
from urllib.parse import quote, urlsplit

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import excerpt
from judge_eval.judging.providers.errors import CallFailed

REPLY_LIMIT = 10 * 1024 * 1024
CONNECT_S = 10.0
# Shorter than the five seconds after which common servers (uvicorn, Node) hang up an idle line.
IDLE_S = 4.0
# How a reply may be packed, though nobody asked for it, as zlib calls it; 0 is not at all.
_EITHER = 32 + zlib.MAX_WBITS
_ENCODINGS = {"identity": 0, "": 0, "gzip": _EITHER, "x-gzip": _EITHER, "deflate": _EITHER}
_IN_PATHS = "/%:@!$&'()*+,;=~"
_IN_QUERIES = f"{_IN_PATHS}?"


@functools.cache
def trust() -> ssl.SSLContext:
    """Return what the machine trusts, whatever environment variables say."""
    import httpcore2  # half a second, which calls without TLS need not pay

    return httpcore2.default_ssl_context(_trust_env=False)


class Connection(HTTPConnection):
    """A connection on which every read and write gets what is left of the whole call.

    A time-out of the library is for one read or write: a server that drips a byte every few seconds
    would never meet it. Only the look-up of a name takes as long as the system's resolver lets it.
    """

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext | None) -> None:
        self.default_port = 443 if context else 80
        super().__init__(host, port)
        self.context, self.ends, self.used = context, 0.0, 0.0

    def left(self) -> float:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def addresses(self) -> Iterable[str]:
        infos = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        return dict.fromkeys(str(info[4][0]) for info in infos)

    def connect(self) -> None:
        """Try each address of the host; the system would give the full time to each."""
        failed = OSError()
        for host in self.addresses():
            try:
                opened = socket.create_connection((host, self.port), min(CONNECT_S, self.left()))
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.context:
                    opened.settimeout(min(CONNECT_S, self.left()))
                    opened = self.context.wrap_socket(opened, server_hostname=self.host)
            except OSError as error:
                failed = error
            else:
                self.sock = _Wire(opened, self)
                return
        raise failed

    def is_stale(self) -> bool:
        """Say whether it has been idle for too long, or the provider has closed it."""
        ready = select.poll()
        ready.register(self.sock.fileno(), select.POLLIN)
        return time.monotonic() > self.used + IDLE_S or bool(ready.poll(0))


class _Wire(io.RawIOBase):
    def __init__(self, opened: socket.socket, connection: Connection) -> None:
        self._socket, self._left, self._unsent = opened, connection.left, bytearray()
        self._readers, self._is_closed = 0, False

    def sendall(self, data: bytes) -> None:
        """Keep it until a reply is waited for: head and body leave together, in one packet."""
        self._unsent += data

    def makefile(self, mode: str) -> io.BufferedReader:
        self._readers += 1
        return io.BufferedReader(_Reader(self))

    def receive(self, buffer: memoryview) -> int:
        if self._unsent:
            unsent, self._unsent = self._unsent, bytearray()
            self._socket.settimeout(self._left())
            # Who hangs up in the middle of a request may have said why.
            with contextlib.suppress(ConnectionError):
                self._socket.sendall(unsent)
        self._socket.settimeout(self._left())
        return self._socket.recv_into(buffer)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Close it once its reply is read: the library closes what a server will close before."""
        self._is_closed = True
        if not self._readers:
            self._socket.close()

    def let_go(self) -> None:
        self._readers -= 1
        if self._is_closed:
            self.close()


class _Reader(io.RawIOBase):
    """Reads one reply; the wire stays open when it is closed."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._wire.let_go()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._wire.receive(buffer)


# A whole reply: its status, its headers by their names in lower case, and its body.
Reply: TypeAlias = tuple[int, dict[str, str], bytes]


class ConnectionLine:
    """Connections to one provider, kept while neither a cache nor a call has let go of the line.

    How many calls run at a time is for those to say who call: each has a connection of its own
    meanwhile.
    """

    def __init__(self, name: str, base_url: str, api_key: str) -> None:
        # Refused here, since a library would do it in words that show the key.
        if not (api_key.isascii() and api_key.isprintable()):
            unsendable = f"the key of {name} holds characters that no header may carry"
            raise CallFailed(unsendable, was_sent=False)
        self._host = ""
        with contextlib.suppress(ValueError):
            parts = urlsplit(base_url)
            self._port, self._is_secure = parts.port, parts.scheme == "https"
            self._host = (parts.hostname or "").encode("idna").decode()
        if not self._host or parts.scheme not in {"http", "https"}:
            unusable_url = f"the base URL of {name} is not an http or https address"
            raise CallFailed(unusable_url, was_sent=False)
        self._path = quote(parts.path, safe=_IN_PATHS).rstrip("/")
        self._query = f"?{quote(parts.query, safe=_IN_QUERIES)}" if parts.query else ""
        self._headers = {
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "HumanJudge",
        }
        # Azure's classic addresses name a version, and take the key in a header of its own.
        if api_key and "api-version=" in parts.query:
            self._headers["api-key"] = api_key
        elif api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        # The one that was used last is used next; those at the front have been idle for longest.
        self._idle: deque[Connection] = deque()
        self._lock = threading.Lock()
        weakref.finalize(self, _close_all, self._idle)

    def send(self, body: JsonObject, seconds: float, address: str) -> Reply:
        """Return the reply, whatever its status, or raise CallFailed; follow no redirect."""
        content = _encoded(body)
        if content is None:
            unsendable = "the request holds half a surrogate pair, which is no text"
            raise CallFailed(unsendable, was_sent=False)
        connection = self._connection()
        connection.ends = time.monotonic() + seconds
        try:
            return self._exchange(connection, f"{self._path}{address}{self._query}", content)
        except TimeoutError:
            waited = f"no complete reply within {round(seconds, 1):g} s"
            was_sent = connection.sock is not None
            raise CallFailed(waited, retryable=True, was_sent=was_sent) from None
        except (OSError, HTTPException):
            broken = "the connection ended before the reply was complete"
            raise CallFailed(broken, retryable=True) from None
        finally:
            if connection.used == connection.ends:
                connection.used = time.monotonic()
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def _exchange(self, connection: Connection, address: str, content: bytes) -> Reply:
        if connection.sock is None:
            try:
                connection.connect()
            except TimeoutError:
                raise
            except OSError as error:
                refused = f"no connection: {error.strerror or 'the address does not answer'}"
                raise CallFailed(refused, retryable=True, was_sent=False) from None
        connection.request("POST", address, content, self._headers)
        response = connection.getresponse()
        reply = _read(response)
        if response.isclosed() and not response.will_close:
            connection.used = connection.ends  # whole: it can be used again
        return reply

    def _connection(self) -> Connection:
        with self._lock:
            while self._idle and self._idle[0].is_stale():
                self._idle.popleft().close()
            while self._idle and self._idle[-1].is_stale():
                self._idle.pop().close()
            if self._idle:
                return self._idle.pop()
        return Connection(self._host, self._port, trust() if self._is_secure else None)


def _close_all(idle: deque[Connection]) -> None:
    while idle:
        idle.pop().close()


def _encoded(body: JsonObject) -> bytes | None:
    """Return a body as JSON, None where it is no text; the error would hold the request."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return None


def _read(response: HTTPResponse) -> Reply:
    headers = {name.lower(): value for name, value in response.getheaders()}
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in _ENCODINGS:
        refused = f"the reply is compressed ({excerpt(encoding, 20)}), which was not asked for"
        raise CallFailed(refused, status=response.status)
    content = response.read(REPLY_LIMIT + 1)
    if _ENCODINGS[encoding] and len(content) <= REPLY_LIMIT:
        # Unasked for. A few kilobytes may unpack to gigabytes: no more is unpacked than is taken.
        unpacking = zlib.decompressobj(_ENCODINGS[encoding])
        try:
            content = unpacking.decompress(content, REPLY_LIMIT + 1)
        except zlib.error as error:
            raise HTTPException("it cannot be unpacked") from error
        if not unpacking.eof and len(content) <= REPLY_LIMIT:
            raise HTTPException("it ended early")
    if len(content) > REPLY_LIMIT:
        limit = f"the reply is larger than {REPLY_LIMIT // 1024**2} MB"
        raise CallFailed(limit, status=response.status)
    if response.length:
        raise HTTPException("it ended early")
    return response.status, headers, content
