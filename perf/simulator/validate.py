#!/usr/bin/env python3
"""Prints the errors of the simulator relative to published tables.  perf/simulator/validate.py [--tutti build/tools/tutti]

--write writes the tables to docs/design/simulator.md, --rows prints every row, --figure NAME=X changes a cost.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tables  # noqa: E402

PAGE = os.path.join(tables.ROOT, "docs", "design", "simulator.md")
# Use of rows; the more they determined the figures, the earlier.
GROUPS = {
    tables.FITTED: "the figures were fitted to these rows",
    tables.SEEN: "not fitted, but known while the law or one of its figures was chosen",
    tables.LEFT_OUT: "no part in fit or law",
}
BEGIN, END = "<!-- errors: perf/simulator/validate.py --write -->\n", "<!-- end of errors -->\n"


def mean(values):
    return sum(values) / len(values)


def cell(found, low, high, measure):
    errors = [abs(measure(answer)) for answer in found if low <= answer.row.bytes < high]
    return f"{100 * mean(errors):.1f} / {100 * max(errors):.1f}" if errors else "-"


def groups_of(found):
    """Groups rows by lines of the report: {(part, title): answers}."""
    groups = {}
    for answer in found:
        row = answer.row
        what = f"{row.table.title}: {row.collective}"
        what += f", {row.algorithm}" if row.algorithm not in ("", "ring", "chain", "direct") else ""
        what += f", {row.protocol}" if row.protocol and row.table.file == "h100-arms.csv" else ""
        what += f", {row.ranks} ranks" if "to" in row.table.title.split(",")[0].split() or "and" in row.table.title else ""
        groups.setdefault((row.table.part(row), what), []).append(answer)
    return groups


def error_table(found, part):
    bands = tables.BANDS
    lines = ["| table | " + " | ".join(name for name, _, _ in bands) + " |", "|---|" + "---|" * len(bands)]
    groups = {what: each for (its_part, what), each in groups_of(found).items() if its_part == part}
    everything = [answer for each in groups.values() for answer in each]
    for what, each in [*groups.items(), ("**all**", everything), ("**all, beyond rounding**", everything)]:
        measure = tables.error_beyond_rounding if "rounding" in what else tables.error
        lines.append(f"| {what} | " + " | ".join(cell(each, low, high, measure) for _, low, high in bands) + " |")
    return "\n".join(lines)


def regrets(found, part=None):
    """For calls with several algorithms in a table, returns how much longer the predicted best takes than the measured best.

    A call is fitted if any of its rows is fitted, and otherwise seen if any of them is seen.
    """
    calls = {}
    for answer in found:
        row = answer.row
        if row.protocol in ("", "Simple") and row.algorithm:
            calls.setdefault((row.table.title, row.collective, row.ranks, row.bytes), {})[row.algorithm] = answer
    chosen = []
    for call, candidates in calls.items():
        parts = {answer.row.table.part(answer.row) for answer in candidates.values()}
        if len(candidates) < 2 or part not in (None, min(parts, key=list(GROUPS).index)):
            continue
        best = min(candidates.values(), key=lambda answer: answer.row.us)
        choice = min(candidates.values(), key=lambda answer: answer.us)
        chosen.append((choice.row.us / best.row.us - 1, call, choice.row.algorithm, best.row.algorithm))
    return chosen


def regret_text(found, part):
    chosen = regrets(found, part)
    if not chosen:
        return f"{part.capitalize()}: no table has several algorithms for a call."
    worst = max(chosen)
    return (f"{part.capitalize()}: {len(chosen)} calls have several algorithms in a table. The predicted best takes "
            f"{100 * mean([regret for regret, *_ in chosen]):.1f} % longer than the measured best on average, and "
            f"{100 * worst[0]:.0f} % at worst ({worst[2]} instead of {worst[3]} for {worst[1][1]} of {worst[1][3]} bytes, "
            f"{worst[1][2]} ranks); {sum(regret <= 0.05 for regret, *_ in chosen)} calls are within 5 %.")


def report(found):
    text = "Mean / maximum error of the time, in per cent.\n\n"
    for part, meaning in GROUPS.items():
        text += f"**{part.capitalize()}:** {meaning}.\n\n{error_table(found, part)}\n\n"
    text += ("Cost of choosing the algorithm by prediction. A call counts as fitted if any of its rows was fitted, and as seen "
             "if\nany was seen.\n\n")
    return text + "\n".join("- " + regret_text(found, part) for part in GROUPS) + "\n"


def write(text):
    with open(PAGE, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    after = rest.split(END)[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}{text}{END}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tutti", default=tables.TUTTI)
    parser.add_argument("--figure", action="append", default=[])
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    figures = [(name, float(value)) for name, value in (figure.rsplit("=", 1) for figure in options.figure)]
    found = tables.answers([row for table in tables.TABLES for row in tables.read(table)], options.tutti, figures)
    for answer in found if options.rows else []:
        row = answer.row
        print(f"{row.table.file} {row.collective} {row.algorithm} {row.ranks} {row.bytes}: {row.us:.6g} us, simulated "
              f"{answer.us:.6g} ({100 * tables.error(answer):+.1f} %) {answer.algorithm} {answer.protocol}")
    if options.write:
        write(report(found))
    else:
        print(report(found))


if __name__ == "__main__":
    main()
