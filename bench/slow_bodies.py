"""Requests that are answered while 64 clients send their bodies byte by byte."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from statistics import median

from bench.lib.clients import Replies, play, request
from bench.lib.installation import installation
from bench.lib.report import figure, note

SLOW = 64
CLIENTS = 4
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "150"))  # of each client
DRIP_SECONDS = 0.5


def main() -> None:
    with installation() as here:
        here.site.web()
        port = here.site.port
        answered(port, clients=32, requests=2)  # a process loads its pages with the first request
        alone = answered(port)
        with slow_bodies(port) as count_open:
            beside = answered(port)
            note(f"slow bodies still open at the end: {count_open()} of {SLOW}")
        figure(
            f"requests answered while {SLOW} slow bodies are open", beside.per_second, "a second"
        )
        # Medians: a process that answers its first request among them loads its pages first.
        ratio = median(beside.milliseconds) / median(alone.milliseconds)
        figure("time of one of them, by that with none open", ratio, "times", "1.1 or less")
        figure("slowest of them", max(beside.milliseconds), "ms")


def answered(port: int, clients: int = CLIENTS, requests: int = REQUESTS) -> Replies:
    replies = play(port, [[request("GET", "/login/")] * requests] * clients)
    assert set(replies.statuses) == {200}, replies.statuses
    return replies


@contextlib.contextmanager
def slow_bodies(port: int) -> Iterator[Callable[[], int]]:
    """Clients who send a byte now and then of a body that is never whole."""
    head = request("POST", "/login/", Content_Type="text/plain")[:-2]
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(SLOW)
        ]
        for client in clients:
            client.sendall(head + b"Content-Length: 1000\r\n\r\n")
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(DRIP_SECONDS):
                for client in clients:
                    with contextlib.suppress(OSError):
                        client.send(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        stack.callback(thread.join)
        stack.callback(stop.set)
        yield lambda: sum(map(is_open, clients))


def is_open(client: socket.socket) -> bool:
    """Say whether the server has neither answered a client nor hung up."""
    client.setblocking(False)
    try:
        client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


if __name__ == "__main__":
    main()
