"""A token bucket for each key, in this process: no store to ask, nothing that can be down."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

MOST_BUCKETS = 10_000


class RateLimit:
    """Allow `burst` at once and `per_second` in the long run, for each key.

    Every web process counts for itself, so with n processes a client may get n times as much: the
    limit is there to stop floods, not to meter.
    """

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allow(self, key: Hashable) -> bool:
        return self.seconds(key) == 0

    def seconds(self, key: Hashable) -> float:
        """Take one for this key and return 0, or the seconds until there is one to take."""
        now = self._clock()
        with self._lock:
            tokens, since = self._buckets.pop(key, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - since) * self._per_second)
            lacking = max(1 - tokens, 0.0)
            self._buckets[key] = (tokens if lacking else tokens - 1, now)
            # The ones not heard of for longest are full again by now, or nearly so.
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        if not lacking:
            return 0.0
        return lacking / self._per_second if self._per_second else math.inf
