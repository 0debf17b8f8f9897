"""Calls that happen at the same moment, each on a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from tests.helpers.waiting import PATIENCE


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make all calls at once; return what each returned, or the exception it raised."""
    barrier = threading.Barrier(len(calls))

    def make(call: Callable[[], Any]) -> Any:
        connection.ensure_connection()
        barrier.wait(timeout=PATIENCE)
        try:
            return call()
        except Exception as error:  # noqa: BLE001  a refused call is an answer too
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))


def only(kind: type, answers: list[Any]) -> list[Any]:
    return [answer for answer in answers if isinstance(answer, kind)]
