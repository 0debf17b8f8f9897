"""The line to a provider: bounded in time and in size, and nobody else learns the key."""

from __future__ import annotations

import contextlib
import functools
import logging
import socket
import ssl
import time
import weakref
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import httpcore2
import httpx2
import openai

from judge_eval.endpoints.errors import CallFailed

REPLY_LIMIT = 10 * 1024 * 1024
CONNECT_S = 10.0
# Shorter than the five seconds after which common servers (uvicorn, Node) hang up an idle line.
IDLE_S = 4.0
_SLICE = 65_536
_KEPT_HEADERS = {b"retry-after", b"retry-after-ms"}


def _nothing(record: logging.LogRecord) -> bool:
    return False


# At DEBUG these write headers that a provider sent, and a provider may send back what it got. By
# a filter: whoever configures logging after this enables every disabled logger again.
for _name in list(logging.root.manager.loggerDict):
    if _name.partition(".")[0] in {"openai", "httpx2", "httpcore2"}:
        logging.getLogger(_name).addFilter(_nothing)


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
    return httpx2.create_ssl_context(trust_env=False)


class Line:
    """A client whose connections close once neither a cache nor a call holds it any more."""

    def __init__(self, base_url: str, api_key: str) -> None:
        transport = _Transport(api_key)
        # What is not given here the SDK takes from environment variables.
        self._client = openai.OpenAI(
            api_key="the transport has it",
            base_url=base_url,
            max_retries=0,
            http_client=httpx2.Client(transport=transport, trust_env=False),
        )
        weakref.finalize(self, transport.close)

    def send(
        self, body: dict[str, Any], seconds: float, address: str = "/chat/completions"
    ) -> httpx2.Response:
        """Return the reply, whatever its status, or raise CallFailed; follow no redirect."""
        # Not by chat.completions.create: it walks through every message, to no effect on plain
        # dicts, which takes as long as all the rest of a call.
        try:
            return self._client.post(
                address,
                cast_to=httpx2.Response,
                body=body,
                options={"timeout": seconds},
            )
        except openai.APIStatusError as error:
            # Only the response leaves this block: the error's text is whatever was sent.
            return error.response
        except UnicodeEncodeError:
            pass  # not raised from here, since it holds the request
        unsendable = "the request holds half a surrogate pair, which is no text"
        raise CallFailed(unsendable, was_sent=False)


class _Transport(httpx2.BaseTransport):
    """Connections to one provider. The read time-out of a request is for the whole of it.

    The headers are written here alone: what the SDK would add describes this machine, or comes
    from environment variables; and the key never reaches an object that an error could show.
    """

    def __init__(self, api_key: str) -> None:
        self._headers: dict[bytes | str, bytes | str] = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "HumanJudge",
        }
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        # How many calls run at a time is for those to say who call.
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_trust(),
            max_connections=None,
            keepalive_expiry=IDLE_S,
            network_backend=_Network(),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        seconds = float(request.extensions["timeout"]["read"])
        _ends.set(time.monotonic() + seconds)
        try:
            reply = self._pool.handle_request(self._outgoing(request))
            try:
                body = _whole_body(reply)
            finally:
                reply.close()
        except httpcore2.TimeoutException as late:
            waited = f"no complete reply within {round(seconds, 1):g} s"
            was_sent = not isinstance(late, httpcore2.ConnectTimeout)
            raise CallFailed(waited, retryable=True, was_sent=was_sent) from None
        except httpcore2.ConnectError as error:
            refused = f"no connection: {_cause(error)}"
            raise CallFailed(refused, retryable=True, was_sent=False) from None
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError):
            broken = "the connection broke off before the reply was complete"
            raise CallFailed(broken, retryable=True) from None
        kept = [pair for pair in reply.headers if pair[0].lower() in _KEPT_HEADERS]
        return httpx2.Response(reply.status, headers=kept, content=body)

    def close(self) -> None:
        self._pool.close()

    def _outgoing(self, request: httpx2.Request) -> httpcore2.Request:
        body, url = request.read(), request.url
        return httpcore2.Request(
            request.method,
            httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers={
                "Host": request.headers["Host"],
                **self._headers,
                "Content-Length": str(len(body)),
            },
            content=body,
            extensions={"timeout": request.extensions["timeout"]},
        )


def _whole_body(reply: httpcore2.Response) -> bytes:
    headers = {name.lower(): value for name, value in reply.headers}
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        # Unasked for, and a few kilobytes may unpack to gigabytes.
        raise CallFailed("the reply is compressed, which was not asked for", status=reply.status)
    body = bytearray()
    for chunk in reply.iter_stream():
        body += chunk
        if len(body) > REPLY_LIMIT:
            limit = f"the reply is larger than {REPLY_LIMIT // 1024**2} MB"
            raise CallFailed(limit, status=reply.status)
    return bytes(body)


def _cause(error: Exception) -> str:
    cause = next(iter(error.args), None)
    words = cause.strerror if isinstance(cause, OSError) else None
    return words or "the address does not answer"
