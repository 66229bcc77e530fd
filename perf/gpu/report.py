"""Report of a run on a GPU: the lower bounds given by memory traffic, and tables."""

import math

# Bytes of memory traffic of N ranks on one GPU, in units of the size that perf tools print.
FLOORS = {
    "all_reduce": lambda n: 2 * n,      # Reads each rank's input once and writes its output once.
    "alltoall": lambda n: 2 * n,
    "all_gather": lambda n: 1 + n,      # The size is that of all blocks; each block is read once and written N times.
    "reduce_scatter": lambda n: n + 1,  # Each block is read N times and written once.
    "broadcast": lambda n: 1 + n,
}
LARGE_BYTES = 64 << 20
TARGET_OF_FLOOR = 0.8
TARGET_OF_HAND = 1.03  # Maximum time relative to the hand-written kernel.
TARGET_SMALL_US = 6


def floor_us(collective, ranks, size_bytes, copied_gb_s):
    return FLOORS[collective](ranks) * size_bytes / (copied_gb_s * 1e3)


def copied_gb_s(bench):
    return max(bench["copy_driver_gb_s"], bench["copy_kernel_gb_s"])


def add_floors(measured, collective, ranks, copied):
    """Adds to each row of a perf tool the share of the copy bandwidth that it reaches, out of place."""
    for row in measured["results"]:
        us = row["out_of_place"]["time"]
        row["of_floor"] = floor_us(collective, ranks, row["size"], copied) / us if us > 0 else math.nan


def results(bench):
    """Yields the targets for gpu_bench: (description, measured, wanted, met)."""
    large = [row for row in bench["large"] if row["bytes"] >= LARGE_BYTES]
    slowest = min(large, key=lambda row: row["floor_us"] / row["tutti_us"])
    of_floor = slowest["floor_us"] / slowest["tutti_us"]
    yield (f"two-shot all-reduce of at least 64 MiB, fraction of the lower bound (minimum: {slowest['ranks']} ranks)",
           f"{of_floor:.2f}", f">= {TARGET_OF_FLOOR}", of_floor >= TARGET_OF_FLOOR)
    worst = max(bench["large"], key=lambda row: row["tutti_us"] / row["hand_us"])
    of_hand = worst["tutti_us"] / worst["hand_us"]
    yield (f"time of the interpreter / kernel by hand, 1 MiB and more (maximum: {worst['ranks']} ranks, {worst['bytes']} bytes)",
           f"{of_hand:.3f}", f"<= {TARGET_OF_HAND}", of_hand <= TARGET_OF_HAND)
    small = next(row for row in bench["small"] if row["ranks"] == 8 and row["bytes"] == 8)
    # The call has three steps (signal, fold, await), so this is an upper bound for a launch with its steps.
    above = small["two_shot_mapped_graph_us"] - small["hand_graph_us"]
    yield "launch and 3 steps, in addition to the kernel by hand, 8 ranks, in a graph, us", f"{above:.2f}", "<= 1.18", \
        above <= 1.18
    yield ("8 B all-reduce, 8 ranks, in a graph, us", f"{small['tutti_graph_us']:.2f}", f"<= {TARGET_SMALL_US}",
           small["tutti_graph_us"] <= TARGET_SMALL_US)


def latencies(measured):
    """Returns the table of gpu_latencies."""
    if not measured:
        return []
    blocks = list(next(row for row in measured.values() if isinstance(row, dict)))
    lines = ["", "| ns, by the number of thread blocks | " + " | ".join(blocks) + " |", "|---" * (len(blocks) + 1) + "|"]
    for name, row in measured.items():
        cells = [f"{row[count]:.0f}" for count in blocks] if isinstance(row, dict) else [f"{row:.0f}"] + [""] * (len(blocks) - 1)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def table(result):
    """Returns the report as Markdown."""
    system = result["machine"]
    lines = [f"# {system['gpu']}, {result['date']}", "",
             f"Driver {system['driver']}, CUDA {system['cuda']}, commit {result['commit']}"
             f"{' with changes' if result['dirty'] else ''}; `{result['command']}`.",
             "One GPU with N ranks: the memory of the GPU limits the speed, not links.", ""]
    bench = result["bench"]
    if bench is not None:
        lines += [f"Copy bandwidth {copied_gb_s(bench):.0f} GB/s (read and written); wrong elements {bench['wrong']}.", "",
                  "| target | measured | required | |", "|---|---|---|---|"]
        lines += [f"| {what} | {measured} | {wanted} | {'met' if met else 'missed'} |"
                  for what, measured, wanted, met in results(bench)]
        lines += ["", "| two-shot all-reduce | us | of the bound | by hand, us | of the bound |", "|---|---|---|---|---|"]
        lines += [f"| {row['ranks']} ranks, {named(row['bytes'])} | {row['tutti_us']:.1f} | "
                  f"{row['floor_us'] / row['tutti_us']:.2f} | {row['hand_us']:.1f} | {row['floor_us'] / row['hand_us']:.2f} |"
                  for row in bench["large"]]
    lines += latencies(result.get("latencies"))
    lines += ["", "| measurement | size | us | busbw GB/s | of the bound | wrong elements |", "|---|---|---|---|---|---|"]
    for one in result["collectives"]:
        lines += [f"| {one['title']} | {named(row['size'])} | {row['out_of_place']['time']:.2f} | "
                  f"{row['out_of_place']['bus_bw']:.1f} | {share(row)} | {wrong(row)} |" for row in one["measured"]["results"]]
    lines += beside_nccl(result["clients"]) + training(result["clients"])
    lines += ["", "| part | outcome |", "|---|---|"]
    lines += [f"| {name} | {outcome} |" for name, outcome in result["outcomes"].items()]
    return "\n".join(lines) + "\n"


def beside_nccl(clients):
    """Returns tables of all-reduces by nccl_bench with Tutti, and with NCCL if it was measured."""
    lines = []
    for ranks in (2, 4, 8):
        theirs, ours = (clients.get(f"{who} by nccl_bench, {ranks} ranks") for who in ("NCCL", "ours"))
        if ours is None:
            continue
        if theirs is None:
            lines += ["", f"| {ranks} ranks | libnccl.so.2 of Tutti, us |", "|---|---|"]
            lines += [f"| {named(our['bytes'])} | {our['us']:.1f} |" for our in ours["rows"]]
            continue
        lines += ["", f"| {ranks} ranks | NCCL {theirs['version']}, us | Tutti, us | NCCL / Tutti |", "|---|---|---|---|"]
        lines += [f"| {named(their['bytes'])} | {their['us']:.1f} | {our['us']:.1f} | {their['us'] / our['us']:.2f} |"
                  for their, our in zip(theirs["rows"], ours["rows"])]
    return lines


def training(clients):
    """Returns the table of training steps."""
    steps = {name: one for name, one in clients.items() if "seconds_per_step" in one}
    lines = ["", "| PyTorch, on one GPU | ms per step |", "|---|---|"] if steps else []
    return lines + [f"| {name} | {1e3 * one['seconds_per_step']:.0f} |" for name, one in steps.items()]


def wrong(row):
    """Returns the number of wrong elements of a row of a perf tool, in and out of place, or "unchecked"."""
    forms = [form for form in (row["out_of_place"], row.get("in_place")) if form]
    return sum(form["nwrong"] for form in forms) if all("nwrong" in form for form in forms) else "unchecked"


def share(row):
    return f"{row['of_floor']:.2f}" if "of_floor" in row else ""


def named(size_bytes):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit and size_bytes % unit == 0:
            return f"{size_bytes // unit} {name}"
    return f"{size_bytes} B"
