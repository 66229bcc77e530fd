#!/usr/bin/env python3
"""Draws the chart of README.md from a stored run: speed of all-reduce relative to the best tuned peer.

perf/peers/chart.py writes perf/results/all-reduce.svg from perf/results/host-amd-epyc.json.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from report import size_name  # noqa: E402
from stored import load  # noqa: E402

RESULTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "results")
RUN = os.path.join(RESULTS, "host-amd-epyc.json")
CHART = os.path.join(RESULTS, "all-reduce.svg")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 340, 56, 16, 66, 56
BARS = (("tuned/tutti", "#2b6cb0", "private buffers (malloc)"), ("tuned/registered", "#90cdf4", "buffers of tutti_mem_alloc"))
INK, GRID = "#1a202c", "#e2e8f0"


def rows_of(run):
    """Returns the all-reduces of two ranks, without rows during which the link between the cores changed."""
    return [row for row in run["rows"] if row["collective"] == "all_reduce" and row.get("ranks", 2) == 2
            and row["link"] != "mixed" and max(row["link_ns"]) < 1.5 * min(row["link_ns"])]


def text(x, y, words, **attributes):
    rest = "".join(f" {name.replace('_', '-')}='{value}'" for name, value in attributes.items())
    return f"<text x='{x:.1f}' y='{y:.1f}' fill='{INK}'{rest}>{words}</text>"


def svg(run):
    rows = rows_of(run)
    top = max(row["ratios"][key] for row in rows for key, _, _ in BARS) * 1.08
    y = lambda ratio: HEIGHT - BOTTOM - ratio / top * (HEIGHT - BOTTOM - TOP)
    step = (WIDTH - LEFT - RIGHT) / len(rows)
    width = step * 0.36
    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' "
             f"font-size='12'><rect width='100%' height='100%' fill='white'/>",
             text(LEFT, 22, f"All-reduce in shared memory, 2 processes, {run['cpu']}, float32", font_size=15,
                  font_weight="bold"),
             text(LEFT, 42, "times as fast as the fastest tuned peer (Open MPI, MPICH, Gloo) at that size")]
    for line in range(int(top) + 1):
        parts.append(f"<line x1='{LEFT}' y1='{y(line):.1f}' x2='{WIDTH - RIGHT}' y2='{y(line):.1f}' stroke='{GRID}'/>")
        parts.append(text(LEFT - 8, y(line) + 4, f"{line}x", text_anchor="end"))
    for index, row in enumerate(rows):
        middle = LEFT + (index + 0.5) * step
        for position, (key, color, _) in enumerate(BARS):
            ratio = row["ratios"][key]
            left = middle + (position - 1) * width
            parts.append(f"<rect x='{left:.1f}' y='{y(ratio):.1f}' width='{width - 1:.1f}' "
                         f"height='{y(0) - y(ratio):.1f}' fill='{color}'/>")
            parts.append(text(left + width / 2, y(ratio) - 4, f"{ratio:.1f}", text_anchor="middle", font_size=10))
        parts.append(text(middle, HEIGHT - BOTTOM + 16, size_name(row["bytes"]), text_anchor="middle"))
    parts.append(f"<line x1='{LEFT}' y1='{y(1):.1f}' x2='{WIDTH - RIGHT}' y2='{y(1):.1f}' stroke='{INK}' "
                 f"stroke-dasharray='5 4'/>")
    for position, (_, color, name) in enumerate(BARS):
        left = LEFT + position * 220
        parts.append(f"<rect x='{left}' y='{HEIGHT - 24}' width='12' height='12' fill='{color}'/>")
        parts.append(text(left + 18, HEIGHT - 14, name))
    return "\n".join(parts) + "\n</svg>\n"


def main():
    with open(CHART, "w", encoding="utf-8") as file:
        file.write(svg(load(RUN)))
    print(f"{os.path.relpath(CHART)} written")


if __name__ == "__main__":
    main()
