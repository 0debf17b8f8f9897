"""The line to a provider: bounded in time and in size, and nobody else learns the key."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import socket
import ssl
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote, urlsplit

import httpcore2

from judge_eval.providers.errors import CallFailed, Json

REPLY_LIMIT = 10 * 1024 * 1024
CONNECT_S = 10.0
# Shorter than the five seconds after which common servers (uvicorn, Node) hang up an idle line.
IDLE_S = 4.0
_SLICE = 65_536
_IN_PATHS = "/%:@!$&'()*+,;=~"


# At DEBUG the library writes headers that a provider sent, and a provider may send back what it
# got. By a filter: whoever configures logging after this enables every disabled logger again.
for _name in list(logging.root.manager.loggerDict):
    if _name.partition(".")[0] == "httpcore2":
        logging.getLogger(_name).addFilter(lambda record: False)


# The library's time-outs are for one read or write each: a server that drips a byte every few
# seconds would never meet them. So every read and write gets what is left of the whole call. Only
# the look-up of a name takes as long as the system's resolver lets it.
_ends: ContextVar[float] = ContextVar("_ends")


def _left() -> float:
    left = _ends.get() - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout
    return left


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream
        self._unsent = bytearray()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # Who hangs up in the middle of a request may have said why.
        with contextlib.suppress(httpcore2.WriteError):
            self._send()
        return self._stream.read(max_bytes, _left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Keep it until a reply is waited for: head and body leave together, in one packet."""
        self._unsent += buffer

    def _send(self) -> None:
        unsent, self._unsent = bytes(self._unsent), bytearray()
        for start in range(0, len(unsent), _SLICE):
            self._stream.write(unsent[start : start + _SLICE], _left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        seconds = min(CONNECT_S, _left())
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class _Network(httpcore2.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Try each address of the host; the system would give the full time to each."""
        failed: Exception = httpcore2.ConnectError()
        for address in _addresses(host, port):
            try:
                seconds = min(CONNECT_S, _left())
                return _Stream(super().connect_tcp(address, port, seconds, local_address))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore2.ConnectError(error) from error
    return list(dict.fromkeys(str(info[4][0]) for info in found))


@functools.cache
def _trust() -> ssl.SSLContext:
    # What the machine trusts, whatever environment variables say.
    return httpcore2.default_ssl_context(_trust_env=False)


@dataclass(frozen=True)
class Reply:
    """A whole reply; the names of its headers are in lower case."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        return HTTPStatus.OK <= self.status_code < HTTPStatus.MULTIPLE_CHOICES


class Line:
    """Connections to one provider, kept while neither a cache nor a call has let go of the line.

    How many calls run at a time is for those to say who call: each has a connection of its own
    meanwhile. A pool that looks through all of them for each call, as the library's does, takes
    longer than the call where hundreds are out.
    """

    def __init__(self, base_url: str, api_key: str) -> None:
        parts = urlsplit(base_url)
        assert parts.hostname is not None  # `chat` has seen to it
        host = parts.hostname.encode("idna")
        self._path = quote(parts.path, safe=_IN_PATHS).rstrip("/")
        self._scheme, self._host, self._port = parts.scheme.encode(), host, parts.port
        name = b"[%b]" % host if b":" in host else host
        self._headers: dict[bytes | str, bytes | str] = {
            "Host": name if parts.port is None else b"%b:%d" % (name, parts.port),
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "HumanJudge",
        }
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        # The one that was used last is used next; those at the front have been idle for longest.
        self._idle: deque[httpcore2.HTTPConnection] = deque()
        self._lock = threading.Lock()
        weakref.finalize(self, _close_all, self._idle)

    def send(self, body: Json, seconds: float, address: str) -> Reply:
        """Return the reply, whatever its status, or raise CallFailed; follow no redirect."""
        content = _encoded(body)
        if content is None:
            unsendable = "the request holds half a surrogate pair, which is no text"
            raise CallFailed(unsendable, was_sent=False)
        _ends.set(time.monotonic() + seconds)
        url = self._url(f"{self._path}{address}")
        connection = self._connection(url)
        try:
            headers = self._headers | {"Content-Length": str(len(content))}
            request = httpcore2.Request("POST", url, headers=headers, content=content)
            reply = connection.handle_request(request)
            try:
                return _read(reply)
            finally:
                reply.close()
        except httpcore2.TimeoutException as late:
            waited = f"no complete reply within {round(seconds, 1):g} s"
            was_sent = not isinstance(late, httpcore2.ConnectTimeout)
            raise CallFailed(waited, retryable=True, was_sent=was_sent) from None
        except httpcore2.ConnectError as error:
            cause = next(iter(error.args), None)
            words = cause.strerror if isinstance(cause, OSError) else None
            refused = f"no connection: {words or 'the address does not answer'}"
            raise CallFailed(refused, retryable=True, was_sent=False) from None
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError):
            broken = "the connection broke off before the reply was complete"
            raise CallFailed(broken, retryable=True) from None
        finally:
            if connection.is_idle() and not connection.is_closed():
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def _url(self, target: str) -> httpcore2.URL:
        return httpcore2.URL(scheme=self._scheme, host=self._host, port=self._port, target=target)

    def _connection(self, url: httpcore2.URL) -> httpcore2.HTTPConnection:
        """Return the connection that was used last, or a new one."""
        with self._lock:
            # Those that have been idle for too long, or that the provider has closed.
            while self._idle and self._idle[0].has_expired():
                self._idle.popleft().close()
            while self._idle and self._idle[-1].has_expired():
                self._idle.pop().close()
            if self._idle:
                return self._idle.pop()
        return httpcore2.HTTPConnection(
            url.origin,
            ssl_context=_trust() if self._scheme == b"https" else None,
            keepalive_expiry=IDLE_S,
            network_backend=_Network(),
        )


def _close_all(idle: deque[httpcore2.HTTPConnection]) -> None:
    while idle:
        idle.pop().close()


def _encoded(body: Json) -> bytes | None:
    """Return a body as JSON, None where it is no text; the error would hold the request."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return None


def _read(reply: httpcore2.Response) -> Reply:
    headers = {
        name.lower().decode("latin-1"): value.decode("latin-1") for name, value in reply.headers
    }
    if headers.get("content-encoding", "identity").lower() != "identity":
        # Unasked for, and a few kilobytes may unpack to gigabytes.
        raise CallFailed("the reply is compressed, which was not asked for", status=reply.status)
    body = bytearray()
    for chunk in reply.iter_stream():
        body += chunk
        if len(body) > REPLY_LIMIT:
            limit = f"the reply is larger than {REPLY_LIMIT // 1024**2} MB"
            raise CallFailed(limit, status=reply.status)
    return Reply(reply.status, headers, bytes(body))
