#!/usr/bin/env python3
"""Prints the planned paths of docs/design/gpu-predictions.md: all-reduce on 8 H100.  perf/gpu/data_path.py

Present paths: `tutti explain --compare nccl`. The page lists the constants with their sources. Bytes, microseconds, and bytes
per microsecond.
"""

KIB, MIB, GIB = 1024, 1024**2, 1024**3
RANKS = 8
P2P = 2 * (RANKS - 1) / RANKS  # Crossings of the busiest port, point to point,
SWITCHED = 1 + 1 / RANKS  # and with sums by the switch.
STORE, PULL, SWITCH, SWITCH_OF_NCCL = 371e3, 325e3, 360e3, 309e3
HBM, COPY, LL = 2800e3, 47e3, 261e3
ONE_SHOT_US, EXCHANGE_US, SWITCH_US = 4.65, 1.5, 5.5
LOAD_US, FENCE_US, FLAG_US, COPY_KERNEL_US = 0.6, 1.0, 0.63, 1.5
OWN_US = 0.5  # Tutti's part of a call.
LANES_US = 4.7  # Begin and end of a call on lanes (src/model/gpu_kernel.cc).


def busbw(size, us):
    return P2P * size / us / 1e3


def utilization(pieces, cycle_us, queues_us):
    """Share of time that the first queue works: mean value analysis of one class with a delay."""
    lengths, rate = [0.0] * len(queues_us), 0.0
    for count in range(1, pieces + 1):
        waits = [service * (1 + length) for service, length in zip(queues_us, lengths)]
        rate = count / (cycle_us + sum(waits))
        lengths = [rate * wait for wait in waits]
    return rate * queues_us[0]


def pipelined(size, pieces, piece, path):
    """path: fixed time, cycle(piece), crossings, rate of the port, bytes of HBM per byte."""
    fixed_us, cycle, crossings, rate, hbm = path
    piece = min(piece, size / pieces)
    first = min(size, pieces * piece)
    share = utilization(pieces, cycle(piece), [piece * crossings / rate, hbm * piece / HBM])
    return fixed_us + cycle(piece) + crossings / rate * (first + (size - first) / share)


def roles_cycle(piece):
    return 2 * (LOAD_US + FENCE_US + piece / COPY) + 1.2


def lanes_with_roles(size):
    """24 channels with two pieces in flight."""
    pieces = max(1, min(24, size // (64 * KIB))) * 2

    def rest(piece):
        return max(0, roles_cycle(piece) - piece * P2P / STORE)

    return pipelined(size, pieces, 512 * KIB, (LANES_US, rest, P2P, STORE, 5.25))


def staged(size, crossings, rate, blocks, copy=COPY):
    several = size > blocks * 64 * KIB

    def cycle(piece):
        return 2 * LOAD_US + 2 * piece / copy + (FENCE_US + 2 * FLAG_US if several else 0)

    return pipelined(size, blocks, 64 * KIB, (SWITCH_US + OWN_US, cycle, crossings, rate, 6))


def switched_in_place(size, rate):
    return SWITCH_US + OWN_US + SWITCHED * size / rate


def small_planned(size):
    if size <= 32 * KIB:
        return ONE_SHOT_US + OWN_US + 2 * (RANKS - 1) * size / LL
    return ONE_SHOT_US + OWN_US + EXCHANGE_US + 128 / 120 * P2P * size / LL


def between_copies(size, us):
    return us + 2 * (COPY_KERNEL_US + 2 * size / HBM)


# Name, equation, and published times by size.
CHECKS = (
    ("PyTorch NVLS", lambda size: between_copies(size, SWITCH_US + SWITCHED * size / SWITCH),
     {512 * KIB: 11, MIB: 14, 2 * MIB: 18, 4 * MIB: 27, 8 * MIB: 46, 16 * MIB: 87, 32 * MIB: 165, 64 * MIB: 320,
      128 * MIB: 631}),
    ("PyTorch two-shot", lambda size: between_copies(size, SWITCH_US + 1 + P2P * size / PULL),
     {512 * KIB: 15, MIB: 17, 2 * MIB: 22, 4 * MIB: 37, 8 * MIB: 65, 16 * MIB: 125, 32 * MIB: 242, 64 * MIB: 468,
      128 * MIB: 923}),
    ("MSCCL++ one-shot", lambda size: ONE_SHOT_US + 2 * (RANKS - 1) * (size - KIB) / LL,
     {KIB: 4.65, 2 * KIB: 4.96, 4 * KIB: 5.12, 8 * KIB: 5.11, 16 * KIB: 5.47}),
    ("MSCCL++ two-shot", lambda size: ONE_SHOT_US + 1.2 + EXCHANGE_US + 2 * P2P * size / LL,
     {64 * KIB: 8.20, 128 * KIB: 8.80, 256 * KIB: 10.56}),
    ("MSCCL++ NVLS in place", lambda size: SWITCH_US + SWITCHED * size / SWITCH,
     {8 * KIB: 5.94, 16 * KIB: 6.40, 32 * KIB: 7.45, 64 * KIB: 8.03}),
)


def name_of(size):
    for unit, suffix in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {suffix}"
    return f"{size} B"


def main():
    for name, predict, rows in CHECKS:
        errors = [100 * (predict(size) / us - 1) for size, us in rows.items()]
        print(f"{name}: {len(rows)} rows, {min(errors):+.0f} to {max(errors):+.0f} %")
    print("\nbus bandwidth: lanes with warp roles, staged two-shot, staged NVLS (24 blocks of 512 threads, 48 of 256), in place")
    for size in (MIB, 16 * MIB, 256 * MIB, 4 * GIB):
        times = [lanes_with_roles(size), staged(size, P2P, PULL, 32)]
        for blocks, copy in ((24, COPY), (48, COPY / 2)):
            times += [staged(size, SWITCHED, rate, blocks, copy) for rate in (SWITCH_OF_NCCL, SWITCH)]
        times += [switched_in_place(size, rate) for rate in (SWITCH_OF_NCCL, SWITCH)]
        print(f"{name_of(size):8}", *(f"{busbw(size, us):5.0f}" for us in times))

    print("\nlatency")
    for size in (8, 4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 256 * KIB):
        print(f"{name_of(size):8} {small_planned(size):5.1f}")


if __name__ == "__main__":
    main()
