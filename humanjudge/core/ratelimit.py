"""A token bucket for each key, in this process: no store to ask, nothing that can be down."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

MOST_BUCKETS = 10_000


@dataclass
class RateLimit:
    """Allow `burst` at once and `per_second` in the long run, for each key.

    Every web process counts for itself, so with n processes a client may get n times as much: the
    limit is there to stop floods, not to meter.
    """

    per_second: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[Hashable, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allow(self, key: Hashable) -> bool:
        return self.seconds(key) == 0

    def seconds(self, key: Hashable) -> float:
        """Take one for this key and return 0, or the seconds until there is one to take."""
        now = self.clock()
        with self._lock:
            tokens, since = self._buckets.pop(key, (float(self.burst), now))
            tokens = min(self.burst, tokens + (now - since) * self.per_second)
            missing_tokens = max(1 - tokens, 0.0)
            self._buckets[key] = (tokens if missing_tokens else tokens - 1, now)
            # The ones not heard of for longest are full again by now, or nearly so.
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        return missing_tokens / self.per_second

    def give_back(self, key: Hashable) -> None:
        """Undo a take of something that is not to count, as a login that was right."""
        with self._lock:
            tokens, since = self._buckets.get(key, (float(self.burst), 0.0))
            self._buckets[key] = (min(self.burst, tokens + 1), since)
