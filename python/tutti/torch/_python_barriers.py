"""Monitored barriers of the Python path."""

from __future__ import annotations

import datetime
import math
import time
from typing import Any, List


class MonitoredBarriers:
    """Synchronizes ranks through a store, because a missing rank would make the communicator fail.

    Rank 0 numbers the barriers, so that all ranks agree on the number after one that some of them missed. The keys are those
    of the C++ path; see monitoredBarrier() in native/barriers.cc.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        """store: with keys of this group alone."""
        self._store, self._rank, self._size = store, rank, size
        self._number = 0  # Number of the next barrier. Ranks but 0: of the first one that they have not joined.

    def wait(self, timeout: datetime.timedelta, wait_all_ranks: bool) -> None:
        deadline = time.monotonic() + timeout.total_seconds()
        if self._rank != 0:
            if not self._pass(deadline):
                raise RuntimeError(f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting "
                                   "for send/recv from rank 0. Please check rank 0 logs for faulty rank.")
            return
        if timeout <= datetime.timedelta(0):
            raise RuntimeError("Rank 0 timed out in monitoredBarrier after 0 ms; pass a longer timeout")
        prefix = self._next_prefix()
        self._store.set(prefix + "open", "yes")
        missing = self._missing_ranks(prefix, deadline, wait_all_ranks)
        if missing:
            self._store.set(prefix + "failed", "yes")
        self._store.set(prefix + "end", "yes")
        if missing:
            raise RuntimeError(f"[Rank 0]: Rank{'s' if wait_all_ranks else ''} {', '.join(map(str, missing))} failed to pass "
                               f"monitoredBarrier in {int(timeout.total_seconds() * 1000)} ms")

    def _next_prefix(self) -> str:
        self._number += 1
        return f"monitored_barrier/{self._number - 1}/"

    def _pass(self, deadline: float) -> bool:
        """Passes the current barrier of rank 0. Returns false if it opens none before the deadline, or ends it with a failure."""
        while self._wait_for(f"monitored_barrier/{self._number}/open", deadline):
            prefix = self._next_prefix()
            if self._store.check([prefix + "failed"]):
                continue  # It ended before this rank came.
            self._store.set(f"{prefix}{self._rank}", "here")
            return self._wait_for(prefix + "end", deadline) and not self._store.check([prefix + "failed"])
        return False

    def _missing_ranks(self, prefix: str, deadline: float, wait_all_ranks: bool) -> List[int]:
        missing = []
        for rank in range(1, self._size):
            # After the deadline the store is asked without a limit: it may answer late for ranks that have come.
            key = f"{prefix}{rank}"
            if not (time.monotonic() < deadline and self._wait_for(key, deadline) or self._store.check([key])):
                missing.append(rank)
                if not wait_all_ranks:
                    break
        return missing

    def _wait_for(self, key: str, deadline: float) -> bool:
        """Returns false if the deadline has passed; stores have no common exception for this."""
        left_ms = max(1, math.ceil((deadline - time.monotonic()) * 1000))
        try:
            self._store.wait([key], datetime.timedelta(milliseconds=left_ms))
        except RuntimeError:
            if time.monotonic() < deadline:
                raise
            return False
        return True
