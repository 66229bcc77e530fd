"""Protocol between run.py and the client programs that it runs: each program prints a line per claim."""

import os
import threading


def client_version(version):
    print("version", version, flush=True)


def claim(text, holds=True):
    print("ok" if holds else "failed", text, flush=True)


def loaded():
    """Returns the mapped files of this process whose names begin with libnccl."""
    with open("/proc/self/maps") as maps:
        files = {line.split(maxsplit=5)[5].strip() for line in maps if "/" in line}
    return {os.path.realpath(file) for file in files if os.path.basename(file).startswith("libnccl.")}


def as_two_ranks(body):
    """Calls body(0) and body(1) in two threads and returns both results. Raises the exception of the first that fails."""
    results, failures = [None, None], []

    def run(rank):
        try:
            results[rank] = body(rank)
        except Exception as failure:
            failures.append(failure)

    # Daemon threads: if one rank fails, the other may wait for it, and must not prevent the process from ending.
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not failures:
        for thread in threads:
            thread.join(0.1)
    if failures:
        raise failures[0]
    return results
