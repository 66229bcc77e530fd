"""Report of a comparison on host memory: a line per row, and a plot of the all-reduces."""

import html
import math

RATIOS = ("default/tutti", "tuned/tutti", "default/mapped", "tuned/mapped")
HEADER = ("# us; ratio: best peer over tutti. Below 16 KiB calls are back to back; from 16 KiB on each call is separate, after\n"
          "# its input is written and before its output is read, both untimed.\n"
          "| collective | size | link | ns | tutti | mapped | best default | best tuned | floor | "
          f"{' | '.join(RATIOS)} |\n|{'---|' * (9 + len(RATIOS))}")
CURVES = (("default_us", "best peer as installed", "#c44e52"), ("tuned_us", "best peer tuned", "#dd8452"),
          ("tutti_us", "Tutti, ordinary buffers", "#4c72b0"), ("mapped_us", "Tutti, its own buffers", "#55a868"),
          ("floor_us", "floor", "#8c8c8c"))
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 480, 70, 40, 190, 50


def size_name(size):
    for unit in ("", " KiB", " MiB", " GiB"):
        if size < 1024:
            return f"{size}{unit or ' B'}"
        size //= 1024
    return f"{size} TiB"


def number(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def summarise(row, kinds):
    """Adds the best peers, Tutti's two times and the ratios to the row."""
    medians = {name: times["median_us"] for name, times in row["times"].items()}
    by_kind = lambda *wanted: [(us, name) for name, us in medians.items() if kinds[name] in wanted]
    default, tuned = min(by_kind("default"), default=None), min(by_kind("default", "tuned"), default=None)
    row["best_default"], row["default_us"] = (default[1], default[0]) if default else (None, None)
    row["best_tuned"], row["tuned_us"] = (tuned[1], tuned[0]) if tuned else (None, None)
    row["tutti_us"], row["mapped_us"] = medians.get("tutti"), medians.get("tutti mapped")
    row["floor_us"] = row["floors"]["floor"]
    row["ratios"] = {f"{peer}/{ours}": ratio(row, peer, ours) for peer in ("default", "tuned")
                     for ours in ("tutti", "mapped")}


def ratio(row, peer, ours):
    """Returns the ratio, or None if the link changed during the row, since competitors then had different links."""
    peer_us, our_us = row[f"{peer}_us"], row[f"{ours}_us"]
    return peer_us / our_us if row["link"] != "mixed" and peer_us and our_us else None


def line(row):
    best = lambda kind: f"{number(row[f'{kind}_us'])} {row[f'best_{kind}'] or ''}"
    ratios = [f"{row['ratios'][name]:.2f}x" if row["ratios"][name] else "-" for name in RATIOS]
    ranks = "" if row["ranks"] == 2 else f", {row['ranks']} ranks"
    cells = [row["collective"] + ranks, size_name(row["bytes"]), row["link"],
             "-".join(f"{ns:.0f}" for ns in row["link_ns"]),
             number(row["tutti_us"]), number(row["mapped_us"]), best("default"), best("tuned"),
             number(row["floor_us"]), *ratios]
    return "| " + " | ".join(cells) + " |"


def axis(values, low, high):
    """Returns a function that maps the range of values logarithmically to low..high."""
    smallest, largest = math.log(min(values)), math.log(max(values))
    return lambda value: low + (math.log(value) - smallest) / max(largest - smallest, 1e-9) * (high - low)


def svg(rows, title):
    times = [row[key] for row in rows for key, _, _ in CURVES if row[key]]
    if not times:
        return "<svg xmlns='http://www.w3.org/2000/svg'/>\n"
    x = axis([row["bytes"] for row in rows], LEFT, WIDTH - RIGHT)
    y = axis(times, HEIGHT - BOTTOM, TOP)
    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' "
             f"font-size='12'><rect width='100%' height='100%' fill='white'/>",
             f"<text x='{LEFT}' y='22' font-size='14'>all-reduce, 2 ranks on 2 cores, {html.escape(title)}</text>",
             f"<text x='14' y='{HEIGHT // 2}' transform='rotate(-90 14 {HEIGHT // 2})'>time, us</text>"]
    for row in rows:
        at = x(row["bytes"])
        parts.append(f"<line x1='{at:.1f}' y1='{TOP}' x2='{at:.1f}' y2='{HEIGHT - BOTTOM}' stroke='#eeeeee'/>"
                     f"<text x='{at:.1f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle' font-size='10'>"
                     f"{size_name(row['bytes'])}</text>")
    for power in range(math.ceil(math.log10(min(times))), math.floor(math.log10(max(times))) + 1):
        at = y(10.0 ** power)
        parts.append(f"<line x1='{LEFT}' y1='{at:.1f}' x2='{WIDTH - RIGHT}' y2='{at:.1f}' stroke='#dddddd'/>"
                     f"<text x='{LEFT - 8}' y='{at + 4:.1f}' text-anchor='end'>{10.0 ** power:g}</text>")
    for index, (key, name, color) in enumerate(CURVES):
        points = [(x(row["bytes"]), y(row[key]), row["link"]) for row in rows if row[key]]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py, _ in points)
        dash = " stroke-dasharray='4 3'" if key == "floor_us" else ""
        parts.append(f"<polyline points='{path}' fill='none' stroke='{color}' stroke-width='2'{dash}/>")
        parts += [f"<circle cx='{px:.1f}' cy='{py:.1f}' r='3' stroke='{color}' "
                  f"fill='{'white' if link == 'mixed' else color}'/>" for px, py, link in points]
        at = TOP + 20 + 20 * index
        parts.append(f"<line x1='{WIDTH - RIGHT + 10}' y1='{at}' x2='{WIDTH - RIGHT + 30}' y2='{at}' stroke='{color}' "
                     f"stroke-width='2'{dash}/><text x='{WIDTH - RIGHT + 36}' y='{at + 4}'>{name}</text>")
    parts.append(f"<text x='{WIDTH - RIGHT + 10}' y='{TOP + 140}' font-size='10'>hollow: the link changed</text>")
    return "\n".join(parts) + "\n</svg>\n"
