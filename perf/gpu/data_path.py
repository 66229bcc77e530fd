#!/usr/bin/env python3
"""Prints the predictions of docs/design/gpu-data-path.md: all-reduce on 8 H100.  perf/gpu/data_path.py

The page lists the constants with their sources. Bytes, microseconds, and bytes per microsecond.
"""

import math

KIB, MIB, GIB = 1024, 1024**2, 1024**3
RANKS = 8
P2P = 2 * (RANKS - 1) / RANKS  # Crossings of the busiest port, point to point,
SWITCHED = 1 + 1 / RANKS  # and with sums by the switch.
STORE, PULL, SWITCH, SWITCH_OF_NCCL = 371e3, 325e3, 360e3, 309e3
HBM, COPY, LL = 2800e3, 47e3, 261e3
ONE_SHOT_US, EXCHANGE_US, SWITCH_US = 4.65, 1.5, 5.5
LOAD_US, FENCE_US, FLAG_US, HOST_US, COPY_KERNEL_US = 0.6, 1.0, 0.63, 1.0, 1.5
KERNEL_US, L2_US, OWN_US = 3.0, 0.26, 0.5  # Begin and end of a kernel; a load from L2; Tutti's part of a call.
LANES_US = KERNEL_US + HOST_US + 1.2 + 0.5  # And the ends of lanes, loaded and stored.


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


def lanes_cycle(piece):
    part = piece / RANKS
    copy_us = LOAD_US * part / (64 * KIB)
    fold_us = 1.7 + math.ceil(part / (32 * KIB)) * RANKS * LOAD_US * min(1, part / (32 * KIB) + 0.3)
    return (RANKS - 1) * (LOAD_US + copy_us + FENCE_US + 0.2) + fold_us + (RANKS - 1) * (1.4 + copy_us)


def roles_cycle(piece):
    return 2 * (LOAD_US + FENCE_US + piece / COPY) + 1.2


def lanes(size, channels, cycle=lanes_cycle, per_block=1):
    pieces = max(1, min(channels, size // (64 * KIB))) * per_block

    def rest(piece):
        return max(0, cycle(piece) - piece * P2P / STORE)

    return pipelined(size, pieces, 512 * KIB, (LANES_US, rest, P2P, STORE, 5.25))


def staged(size, crossings, rate, blocks, per_block):
    several = size > blocks * per_block * 64 * KIB

    def cycle(piece):
        return 2 * (LOAD_US + piece / COPY) + (FENCE_US + 2 * FLAG_US if several else 0)

    return pipelined(size, blocks * per_block, 64 * KIB, (SWITCH_US + OWN_US, cycle, crossings, rate, 6))


def switched_in_place(size, rate):
    return SWITCH_US + OWN_US + SWITCHED * size / rate


def small_now(size):
    """LL lanes, one after the other, on at most 24 channels."""
    channels = max(1, min(24, size // (4 * KIB)))
    receives_us = (RANKS - 1) * L2_US
    if (RANKS - 1) * size <= 256 * KIB:
        slices = max(1, math.ceil(size / channels / (4 * KIB)))
        return LANES_US + FLAG_US + slices * (0.8 + receives_us + FENCE_US + 0.3)
    slices = max(1, math.ceil(size / channels / RANKS / (4 * KIB)))
    return LANES_US + 2 * FLAG_US + slices * (1.2 + 2 * receives_us + 2 * FENCE_US + 0.6)


def now(size):
    return small_now(size) if size <= 64 * KIB else lanes(size, 24)


def windows_now(size):
    meeting_us = 1.2 + 2.5 + 2 * (FENCE_US + FLAG_US) + 1.5
    return KERNEL_US + HOST_US + LOAD_US + meeting_us + P2P * size / PULL


def small_planned(size):
    if size <= 32 * KIB:
        return ONE_SHOT_US + OWN_US + 2 * (RANKS - 1) * size / LL
    return ONE_SHOT_US + OWN_US + EXCHANGE_US + 128 / 120 * P2P * size / LL


def nccl_ring_ll(size):
    return 8.0 + 2 * (RANKS - 1) * FLAG_US + P2P * size / 141e3


def nccl_switched(size):
    return 22 + 2 * min(size, 16 * MIB) / (16 * COPY) + SWITCHED * size / SWITCH_OF_NCCL


def between_copies(size, us):
    return us + 2 * (COPY_KERNEL_US + 2 * size / HBM)


# Name, equation, and published times by size.
CHECKS = (
    ("NCCL NVLS", nccl_switched,
     {2 * MIB: 37, 4 * MIB: 50, 8 * MIB: 76, 16 * MIB: 121, 32 * MIB: 195, 64 * MIB: 316, 128 * MIB: 561}),
    ("NCCL ring LL", nccl_ring_ll,
     {2 * KIB: 16.84, 4 * KIB: 16.99, 8 * KIB: 17.23, 16 * KIB: 17.75, 32 * KIB: 19.63, 64 * KIB: 19.92,
      128 * KIB: 20.13, 256 * KIB: 20.31, 512 * KIB: 20.86}),
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
    print("NCCL NVLS, 4 and 16 GiB:", *(f"{busbw(size, nccl_switched(size)):.0f}" for size in (4 * GIB, 16 * GIB)))

    print("\nbus bandwidth: NCCL, three channels, 24 channels (now), and warp roles, staged two-shot, staged NVLS (32 x 1, 24 x 2), in place, "
          "windows now")
    for size in (MIB, 16 * MIB, 256 * MIB, 4 * GIB):
        times = [nccl_switched(size), lanes(size, 3), lanes(size, 24), lanes(size, 24, roles_cycle, 2),
                 staged(size, P2P, PULL, 32, 1)]
        for blocks, per_block in ((32, 1), (24, 2)):
            times += [staged(size, SWITCHED, rate, blocks, per_block) for rate in (SWITCH_OF_NCCL, SWITCH)]
        times += [switched_in_place(size, rate) for rate in (SWITCH_OF_NCCL, SWITCH)]
        times.append(windows_now(size))
        print(f"{name_of(size):8}", *(f"{busbw(size, us):5.0f}" for us in times))

    print("\nlatency: NCCL, now, windows now, planned")
    for size in (8, 4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 256 * KIB):
        print(f"{name_of(size):8}",
              *(f"{us(size):5.1f}" for us in (nccl_ring_ll, now, windows_now, small_planned)))


if __name__ == "__main__":
    main()
