#!/usr/bin/env python3
"""Writes the results of perf/accuracy to docs/reference/compression-formats.md as tables, and plots to the same folder."""

import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge  # noqa: E402
import plots  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCS = os.path.join(ROOT, "docs", "reference")
RESULTS = os.path.join(ROOT, "perf", "results", "accuracy.json")
BEGIN, END = "<!-- accuracy: perf/accuracy -->\n", "<!-- end of accuracy -->\n"
FORMATS = ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "mxfp8", "int8", "int8_b32", "int6", "int4")
ALGORITHMS = ("two_shot", "hierarchical", "halving_doubling", "double_binary_tree", "hierarchical_tree", "hierarchical_ring",
              "ring")
KEYS = ("collective", "data", "type", "format", "algorithm")
FIGURES = ("ranks", "elements", "error", "error_of_terms", "peak", "bias", "cosine", "roundings", "growth", "type_error",
           "expected", "input_error", "output_error")
FLAGS = ("identical", "repeated", "idempotent")
COUNTS = ("lost", "wrong", "spoilt", "stray")
SIGNS = {True: "y", False: "n", None: "-"}
# Results for hostile data are stored for these numbers of ranks; all results are checked.
KEPT_RANKS = {"float32": (8, 64), "float16": (8,), "bfloat16": (8,)}
DATA = (
    ("gaussian", "the law"),
    ("laplace", "tails cost integers precision, but not floats; sums of many terms are Gaussian again"),
    ("student", "Student's t, 3 degrees of freedom: heavier tails than laplace"),
    ("outlier", "one of 128 is 1000 times as large: integers keep nothing else in its scale block; lost terms cannot be lost twice"),
    ("single", "one of 128 is not zero: the top of its scale block, off by the scale's rounding; `mxfp8` saturates it"),
    ("denormal", "all numbers are subnormal: integers and `fp16` give zeros, 8-bit floats those or the least normal number"),
    ("largest", "± the largest number, from one rank for each element: only formats without such a number overflow"),
    ("identical", "all ranks have the same numbers: errors are equal, and add up linearly"),
    ("cancelling", "pairs of ranks have opposite numbers except for a thousandth: error of the terms, divided by the terms"),
    ("gradient", "rows of very different size, a tenth of them zeros; half of each number is the same on all ranks"),
)


def packed(cells):
    """Returns the content of the result file: a row per data, type, format and algorithm, with a list per number of ranks."""
    rows = {}
    for cell in cells:
        if cell["data"] != "gaussian" and cell["ranks"] not in KEPT_RANKS[cell["type"]]:
            continue
        counts = [cell[name] for name in COUNTS]
        row = [shortened(name, cell[name]) for name in FIGURES] + ["".join(SIGNS[cell[name]] for name in FLAGS)]
        rows.setdefault(" ".join(cell[name] for name in KEYS), []).append(row + ([counts] if any(counts) else []))
    ratios = [cell["error"] / cell["expected"] for cell in cells
              if cell["data"] == "gaussian" and cell["ranks"] <= judge.MAX_RANKS]
    return {"measured": len(cells), "ratios": [round(min(ratios), 3), round(max(ratios), 3)], "rows": rows}


def shortened(name, value):
    if value is None or isinstance(value, int):
        return value
    return round(value, 7) if name == "cosine" else float(f"{value:.4g}")


def text_of(result):
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in result.items() if name != "rows"]
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}"
                      for name, row in result["rows"].items())
    return "{\n" + ",\n".join(lines) + ",\n \"rows\": {\n" + rows + "\n }\n}\n"


def load(path):
    """Reads a result file and returns it with its cells unpacked."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    signs = {sign: value for value, sign in SIGNS.items()}
    result["cells"] = []
    for name, rows in result.pop("rows").items():
        for row in rows:
            cell = dict(zip(KEYS, name.split(" "))) | dict(zip(FIGURES, row))
            cell |= zip(FLAGS, (signs[sign] for sign in row[len(FIGURES)]))
            cell |= zip(COUNTS, row[len(FIGURES) + 1] if len(row) > len(FIGURES) + 1 else [0] * len(COUNTS))
            result["cells"].append(cell)
    return result


def select(cells, **wanted):
    wanted = {"collective": "all_reduce", "data": "gaussian", "type": "float32"} | wanted
    return [cell for cell in cells if all(cell[name] == value for name, value in wanted.items())]


def percent(error):
    return f"{100 * error:.3g}" if 100 * error < 1000 else "1000 and more"


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def ratio(cell):
    return cell["error"] / cell["expected"]


def grid(cells, name, values, text):
    """Returns a row for each format, with a column for each value; empty cells were not measured."""
    rows = []
    for compression in FORMATS:
        found = {cell[name]: cell for cell in cells if cell["format"] == compression}
        if found:
            rows.append([f"`{compression}`"] + [text(found[value]) if value in found else "" for value in values])
    return rows


def by_algorithm(cells, ranks):
    text = lambda cell: f"{percent(cell['error'])} ({ratio(cell):.2f})"
    return table(["format", *(f"`{name}`" for name in ALGORITHMS)],
                 grid(select(cells, ranks=ranks), "algorithm", ALGORITHMS, text))


def by_ranks(cells):
    ranks = sorted({cell["ranks"] for cell in cells})
    text = lambda cell: f"{percent(cell['error'])} ({ratio(cell):.2f})"
    parts = [table(["format", *(f"{n} ranks" for n in ranks)],
                   grid(select(cells, algorithm=name), "ranks", ranks, text)) for name in ("two_shot", "ring")]
    return "`two_shot`:\n\n" + parts[0] + "\n`ring`:\n\n" + parts[1]


def of_data(cell):
    if judge.overflows(cell):
        return "infinite"
    return percent(cell["error_of_terms"] if cell["data"] == "cancelling" else cell["error"])


def by_data(cells):
    rows = []
    for data, why in DATA:
        found = {cell["format"]: cell for cell in select(cells, data=data, algorithm="two_shot", ranks=8)}
        rows.append([data, *(of_data(found[name]) if name in found else "" for name in FORMATS), why])
    return table(["data", *(f"`{name}`" for name in FORMATS), "what is expected"], rows)


def by_type(cells):
    rows = []
    for kind in ("float32", "float16", "bfloat16"):
        found = {cell["format"]: cell for cell in select(cells, type=kind, algorithm="two_shot", ranks=8)}
        rows.append([kind, *(f"{percent(found[name]['error'])} ({ratio(found[name]):.2f})" if name in found else ""
                             for name in FORMATS)])
    return table(["type", *(f"`{name}`" for name in FORMATS)], rows)


def by_collective(cells):
    rows = []
    for cell in cells:
        key = (cell["collective"], cell["algorithm"])
        if cell["collective"] != "all_reduce" and key not in rows:
            rows.append(key)
    ranks = sorted({cell["ranks"] for cell in cells if cell["collective"] != "all_reduce"})
    text = lambda found: f"{min(map(ratio, found)):.2f} to {max(map(ratio, found)):.2f}" if found else ""
    return table(["collective", "algorithm", *(f"{n} ranks" for n in ranks)],
                 [[collective, f"`{name}`", *(text(select(cells, collective=collective, algorithm=name, ranks=n))
                                              for n in ranks)] for collective, name in rows])


def of_digits(cells):
    """Returns a table of further measures of Gaussian numbers with 8 ranks."""
    rows = []
    for cell in sorted(select(cells, algorithm="two_shot", ranks=8), key=lambda one: FORMATS.index(one["format"])):
        rows.append([f"`{cell['format']}`", f"{-20 * math.log10(cell['error']):.1f}", f"{cell['bias']:.1e}",
                     f"{cell['cosine']:.6f}", f"{cell['peak']:.2g}"])
    return table(["format", "signal to noise, dB", "mean error", "cosine", "largest error"], rows)


def worst_alike(cells):
    """Returns the format with the largest error for identical numbers in a ring of 64 ranks, and that error in per cent."""
    worst = max(select(cells, data="identical", algorithm="ring", ranks=64), key=lambda cell: cell["error"])
    return worst["format"], percent(worst["error"])


def spoilt(cells):
    found = {cell["format"]: cell["spoilt"] / cell["elements"]
             for cell in select(cells, data="not_finite", algorithm="two_shot", ranks=8)}
    return ", ".join(f"{share:.0%} with `{name}`" for name, share in found.items() if share > 0)


def section(result):
    cells = result["cells"]
    bits = sum(cell["identical"] is not None for cell in cells)
    return f"""{BEGIN}
`perf/accuracy` runs plans with all ranks in one thread, which gives the bits of real communicators, and compares the results with
sums in float64: {result['measured']:,} cells ({result['date']}, commit {result['commit']}, seed {result['seed']};
[stored cells](../../perf/results/accuracy.json)). Errors are root mean squares relative to the results, in per cent. Numbers in
parentheses are divided by the expected error. For Gaussian data between 2 and {judge.MAX_RANKS} ranks they are
{result['ratios'][0]:.3f} to {result['ratios'][1]:.3f}; `perf/accuracy` fails outside of 0.9 to 1.1.

![Error by number of ranks](compression-error-ranks.svg)

All-reduce of float32, Gaussian data, 8 ranks:

{by_algorithm(cells, 8)}
64 ranks:

{by_algorithm(cells, 64)}
### By number of ranks

From 8 to 64 ranks the error of `two_shot` grows by 3 %: a rank's own term is not rounded, which is one of eight at 8 ranks. Rings of
256 ranks are not judged: `fp8_e5m2`, with two bits after the first, loses terms that are small beside their sum.

{by_ranks(cells)}
### 16-bit tensors

`two_shot`, 8 ranks. The expected error includes the last rounding, to the tensor's type.

{by_type(cells)}
### Other collectives

float32, measured error divided by expected error, over all formats:

{by_collective(cells)}
### Other data

`two_shot`, 8 ranks, float32. The error must not exceed one rounding of the same numbers, applied as often as they are rounded: by the law
for independent errors, or, for equal terms and terms too small for the format, with all errors in one direction. A ring comes
near that: 64 ranks with the same numbers have an error of {worst_alike(cells)[1]} % in `{worst_alike(cells)[0]}`.

![Error by kind of data](compression-error-data.svg)

{by_data(cells)}
Zeros stay zeros. NaN and infinities (in half of the groups, from some rank) are all in the results, as specified
[above](#special-values), and damage nothing outside of their scale blocks. Within their scale blocks they spoil this share of all elements:
{spoilt(cells)}.

### Further measures

Gaussian data, 8 ranks, `two_shot`. The mean error is relative to the root mean square of the results, and is noise. The largest error
is relative to the largest magnitude of a scale block, of the result or any term.

{of_digits(cells)}
In each of the {bits:,} stored cells of all-reduce, all-gather and broadcast, all ranks have the same bits, another order of ranks and
other chunks give the same bits again, and encoding the result gives the bytes that it came from.
{END}"""


def page(result):
    with open(os.path.join(DOCS, "compression-formats.md"), encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    return before + section(result) + rest.split(END)[1]


def files(result):
    """Returns the texts of all files in docs/reference that show the stored run."""
    return {"compression-formats.md": page(result), "compression-error-ranks.svg": plots.by_ranks(select(result["cells"])),
            "compression-error-data.svg": plots.by_data(select_kinds(result["cells"]))}


def select_kinds(cells):
    """Returns the cells that the table of kinds of data shows, except overflows."""
    found = (cell for data, _ in DATA for cell in select(cells, data=data, algorithm="two_shot", ranks=8))
    return [cell | {"error": cell["error_of_terms"] if cell["data"] == "cancelling" else cell["error"]} for cell in found
            if not judge.overflows(cell)]


def write(result):
    for name, text in files(result).items():
        with open(os.path.join(DOCS, name), "w", encoding="utf-8") as file:
            file.write(text)


def summary(cells):
    """Returns a summary for the terminal."""
    ranks = [n for n in sorted({cell["ranks"] for cell in select(cells)}) if n in (2, 8, 64)]
    lines = []
    for n in ranks:
        lines.append(f"all-reduce of Gaussian float32, {n} ranks: error in % (by what is expected)")
        lines.append(f"{'':10}" + "".join(f"{name:>20}" for name in ALGORITHMS))
        for row in grid(select(cells, ranks=n), "algorithm", ALGORITHMS,
                        lambda cell: f"{percent(cell['error'])} ({ratio(cell):.2f})"):
            lines.append(f"{row[0].strip('`'):10}" + "".join(f"{text:>20}" for text in row[1:]))
    return "\n".join(lines)


if __name__ == "__main__":
    write(load(RESULTS))
