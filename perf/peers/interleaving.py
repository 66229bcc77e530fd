"""Measurement of a row: all competitors are checked first, then run alternately in a rotating order."""

import statistics

KIB, MIB = 1 << 10, 1 << 20
FRESH = 16 * KIB  # Minimum size of calls on fresh data; see driver.h.
WRITTEN_AND_READ_PER_US = 8e3  # Bytes per us at which ranks write input and read output. Caches are faster: rows end early.
PASS_US = 2000  # Duration of the calls of a repetition.
LONG_US = 50e3  # Longer calls are repeated only by passes, and have no warm-up.
ROW_S = 3  # Maximum duration of a row's passes, unless three passes take longer.


def first_look(running, collective, size):
    """Checks all competitors. Returns calls per repetition (PASS_US) and repetitions by name, and the duration of a pass in s."""
    calls, repetitions, pass_s = {}, {}, 0.0
    for one in running:
        warmups = 0 if one.may_be_long(size) else 1
        first = one.run(collective, size, {"warmups": warmups, "calls": 1 if size >= MIB else 20, "checked": 1})
        if first is None:
            continue
        call_us = first[0] + (size / WRITTEN_AND_READ_PER_US if size >= FRESH else 0)
        calls[one.name] = max(1, min(5000, int(PASS_US / max(call_us, 0.01))))
        repetitions[one.name] = 1 if size >= 16 * MIB or call_us > LONG_US else 3
        pass_s += calls[one.name] * repetitions[one.name] * call_us / 1e6
    return calls, repetitions, pass_s


def passes_for(pass_s, quick):
    return 3 if quick else max(3, min(15, int(ROW_S / max(pass_s, 1e-3))))


def take(taking, plan, passes, collective, size):
    """Measures all competitors and returns medians by name. plan: calls and repetitions by name."""
    calls, repetitions = plan
    times = {one.name: [] for one in taking}
    for number in range(passes):
        for position in range(len(taking)):
            one = taking[(position + number) % len(taking)]
            if not one.takes(collective, size):
                continue
            order = {"warmups": 0 if repetitions[one.name] == 1 else 2, "repetitions": repetitions[one.name]}
            times[one.name] += one.run(collective, size, {**order, "calls": calls[one.name]}) or []
    return {name: {"median_us": statistics.median(found), "min_us": min(found), "samples": len(found),
                   "calls": calls[name]} for name, found in times.items() if found}
