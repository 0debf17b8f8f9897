"""Keep-alive HTTP clients that cost next to nothing, so that the server is what is measured.

One process plays all of them: each has a socket and at most one request on its way, and every
request was made beforehand.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode


@dataclass
class Replies:
    """What all clients together got."""

    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def per_second(self) -> float:
        return len(self.milliseconds) / self.seconds


@dataclass
class _Client:
    link: socket.socket
    requests: list[bytes]
    sent_at: float = 0.0
    received: bytes = b""

    def send_next(self) -> bool:
        if not self.requests:
            return False
        self.received = b""
        self.sent_at = time.perf_counter()
        self.link.sendall(self.requests.pop())
        return True

    def receive(self) -> bool:
        """Take what has come; say whether the reply is complete."""
        data = self.link.recv(65536)
        if not data:
            raise ConnectionError("the server closed a connection")
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        if not end:
            return False
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        return len(body) >= int(length or b"0")

    @property
    def status(self) -> int:
        return int(self.received[9:12])


def play(port: int, requests: Sequence[Sequence[bytes]]) -> Replies:
    """Send each client's requests one after the other, all clients at the same time."""
    selector = selectors.DefaultSelector()
    replies = Replies()
    for own in requests:
        link = socket.create_connection(("127.0.0.1", port))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = _Client(link, list(reversed(own)))
        selector.register(link, selectors.EVENT_READ, client)
    started = time.perf_counter()
    for key in list(selector.get_map().values()):
        key.data.send_next()
    while selector.get_map():
        for key, _ in selector.select():
            client = key.data
            if not client.receive():
                continue
            replies.milliseconds.append((time.perf_counter() - client.sent_at) * 1000)
            status = client.status
            replies.statuses[status] = replies.statuses.get(status, 0) + 1
            if not client.send_next():
                selector.unregister(client.link)
                client.link.close()
    replies.seconds = time.perf_counter() - started
    return replies


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """The bytes of one request; `_` in a header's name stands for `-`."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: keep-alive"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def form(path: str, fields: dict[str, str], **headers: str) -> bytes:
    """The bytes of a form that htmx posts."""
    body = urlencode(fields).encode()
    kind = "application/x-www-form-urlencoded"
    return request("POST", path, body, Content_Type=kind, HX_Request="true", **headers)
