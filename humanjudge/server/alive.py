"""`humanjudge alive PROGRAM`: whether a program of this machine is at work, for container engines.

Plain Python without Django, as it is asked every few seconds.
"""

import json
import os
import socket
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException

from humanjudge.core import environment

# Under these keys the broker holds who said lately that they are alive: see humanjudge.celery.
ALIVE = "humanjudge:alive:"
SECONDS = 5


def is_alive(program: str) -> bool:
    environment.load()
    if program == "web":
        host = (os.environ.get("ALLOWED_HOSTS") or "127.0.0.1").partition(",")[0]
        # A server that says what else is down is up.
        return bool(healthz(f"127.0.0.1:{os.environ.get('PORT') or 8000}", host))
    return _has_reported(program if program == "beat" else f"{program}@{socket.gethostname()}")


def healthz(address: str, host: str | None = None) -> dict[str, str]:
    """Return what `/healthz` at an address says, nothing where nobody answers."""
    # Not as urllib does it: a proxy of this network knows no server of this machine.
    connection = HTTPConnection(address, timeout=SECONDS)
    with closing(connection), suppress(OSError, HTTPException, ValueError):
        connection.request("GET", "/healthz", headers={"Host": host or address})
        health: dict[str, str] = json.load(connection.getresponse())
        return health
    return {}


def _has_reported(name: str) -> bool:
    from redis import Redis, RedisError

    # Celery writes the address of a socket in its own way.
    url = os.environ.get("REDIS_URL", "").replace("redis+socket:", "unix:")
    url = url.replace("?virtual_host=", "?db=")
    with suppress(RedisError, ValueError), Redis.from_url(url, socket_timeout=SECONDS) as broker:
        return bool(broker.exists(ALIVE + name))
    return False
