#!/usr/bin/env python3
"""Fits figures of tools/simulator/figures.cc to published tables.  perf/simulator/fit.py sm90 [--without all_gather]

Prints the fitted figures, and the errors of the rows that were used for the fit and of the others. Writes no files. The
search varies one figure after the other and keeps changes that reduce the errors.
"""

import argparse
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tables  # noqa: E402

# Figures to fit and their initial values; all other figures have other sources.
STARTS = {
    "sm80": {"efficiency.nvlink": 0.8, "base_us.Simple": 100, "base_us.LL128": 60},
    "sm90": {"efficiency.nvlink": 0.8, "base_us.Simple": 80, "base_us.LL128": 20, "channel_gbytes_per_s.LL": 7,
             "unsettled_us": 100, "settle_us": 1500, "multicast": 0.85, "multicast_us": 2},
    "sm100": {"efficiency.nvlink": 0.8, "base_us.Simple": 30, "base_us.LL128": 9, "multicast": 0.8, "multicast_us": 2},
}
SHARPEST = 0.01  # Minimum relative step of the search.


def cost(answers):
    """Returns the sum of errors. Errors of some per cent count squared, greater ones linearly, to limit outliers."""
    scale = 0.05
    return sum(math.sqrt(1 + (math.log(answer.us / answer.row.us) / scale) ** 2) - 1 for answer in answers)


def search(start, measure):
    figures, smallest, step = dict(start), measure(start), 0.16
    while step >= SHARPEST:
        better = False
        for name in figures:
            for factor in (1 + step, 1 / (1 + step)):
                tried = {**figures, name: figures[name] * factor}
                if name.startswith("efficiency") and tried[name] > 1:
                    continue
                found = measure(tried)
                if found < smallest:
                    figures, smallest, better = tried, found, True
        if not better:
            step /= 2
    return figures


def mean_errors(answers):
    cells = []
    for name, low, high in tables.BANDS:
        errors = [abs(tables.error(answer)) for answer in answers if low <= answer.row.bytes < high]
        if errors:
            cells.append(f"{name}: {100 * sum(errors) / len(errors):.1f} %, at most {100 * max(errors):.1f} %")
    return "; ".join(cells) or "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generation", choices=STARTS)
    parser.add_argument("--without", default="", help="collective to exclude from the fit")
    parser.add_argument("--tutti", default=tables.TUTTI)
    options = parser.parse_args()
    rows = [row for table in tables.TABLES if table.generation == options.generation for row in tables.read(table)]
    fitted = [row for row in rows if row.table.part(row) == tables.FITTED and row.collective != options.without]
    left_out = [row for row in rows if row not in fitted]
    figures = search(STARTS[options.generation], lambda tried: cost(tables.answers(fitted, options.tutti, tried.items())))
    for name, value in figures.items():
        print(f"{name} {value:.4g}")
    print("fitted:  ", mean_errors(tables.answers(fitted, options.tutti, figures.items())))
    print("excluded:", mean_errors(tables.answers(left_out, options.tutti, figures.items())))


if __name__ == "__main__":
    main()
