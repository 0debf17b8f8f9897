"""Many clients whose bodies come byte by byte, on the real web server: nobody waits for them."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.process.processes import Site, test_database_url

pytestmark = [
    pytest.mark.process,
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.postgresql_only,
    pytest.mark.django_db(transaction=True),
]

HEAD = (
    b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
)


@pytest.fixture
def slow_site(tmp_path, static, settings):
    # Bodies may take longer than this test: each of them is open to its end.
    with Site(
        tmp_path, test_database_url(), settings.CELERY_BROKER_URL,
        SECRET_KEY=settings.SECRET_KEY, BODY_SECONDS="600",
    ) as site:  # fmt: skip
        site.serve_static(static)
        site.web()
        yield site


def test_64_slow_bodies_take_no_thread(slow_site):
    with contextlib.ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", slow_site.port)))
            for _ in range(64)
        ]
        for connection in slow:
            connection.sendall(HEAD + b"username=")
        for connection in slow:
            connection.sendall(b"x")
        with ThreadPoolExecutor(4) as pool:
            found = list(
                pool.map(lambda _: httpx.get(f"{slow_site.url}/login/", timeout=60), "x" * 40)
            )
        assert {reply.status_code for reply in found} == {200}
        for connection in slow:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):  # nothing was said to it, and it is still open
                connection.recv(1)
