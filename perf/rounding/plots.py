"""Plots of errors as SVG."""

import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 380, 70, 180, 40, 50
COLORS = ("#1b6ca8", "#d1495b", "#2e8b57", "#b8860b", "#6a4c93", "#444444", "#00818a", "#c2622d", "#8a8a8a")


def axis(smallest, largest, low, high):
    """Returns a function that maps smallest..largest logarithmically to low..high."""
    scale = (high - low) / max(math.log(largest / smallest), 1e-9)
    return lambda value: low + math.log(value / smallest) * scale


def frame(title, y, marks):
    yield (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' font-size='12'>"
           f"<rect width='100%' height='100%' fill='white'/><text x='{LEFT}' y='22' font-size='14'>{title}</text>"
           f"<text x='16' y='{HEIGHT // 2}' transform='rotate(-90 16 {HEIGHT // 2})' text-anchor='middle'>error, %</text>")
    for mark in marks:
        at = y(mark)
        yield (f"<line x1='{LEFT}' y1='{at:.1f}' x2='{WIDTH - RIGHT}' y2='{at:.1f}' stroke='#dddddd'/>"
               f"<text x='{LEFT - 8}' y='{at + 4:.1f}' text-anchor='end'>{100 * mark:g}</text>")


def column(at, text):
    return (f"<line x1='{at:.1f}' y1='{TOP}' x2='{at:.1f}' y2='{HEIGHT - BOTTOM}' stroke='#eeeeee'/>"
            f"<text x='{at:.1f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle' font-size='11'>{text}</text>")


def label(index, name):
    at, color = TOP + 12 + 19 * index, COLORS[index]
    return (f"<circle cx='{WIDTH - RIGHT + 20}' cy='{at}' r='4' fill='{color}'/>"
            f"<text x='{WIDTH - RIGHT + 32}' y='{at + 4}'>{name}</text>")


def vertical(errors):
    """Returns the axis of errors and its marks: powers of ten, and steps between them if there are few."""
    smallest, largest = min(errors) / 1.3, max(errors) * 1.3
    digits = (1,) if largest > 300 * smallest else (1, 2, 5)
    decades = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)))
    marks = [digit * 10.0 ** decade for decade in decades for digit in digits]
    return axis(smallest, largest, HEIGHT - BOTTOM, TOP), [mark for mark in marks if smallest <= mark <= largest]


def points(cells, x, y, color):
    for cell in cells:
        yield f"<circle cx='{x(cell):.1f}' cy='{y(cell['error']):.1f}' r='4' fill='{color}'/>"


def by_ranks(cells):
    """Plots errors of int8 by algorithm: measured as points, expected as lines."""
    cells = [cell for cell in cells if cell["format"] == "int8"]
    algorithms = sorted({cell["algorithm"] for cell in cells},
                        key=lambda name: -max(cell["error"] for cell in cells if cell["algorithm"] == name))
    ranks = sorted({cell["ranks"] for cell in cells})
    to_x = axis(ranks[0], ranks[-1], LEFT + 20, WIDTH - RIGHT - 20)
    y, marks = vertical([cell[name] for cell in cells for name in ("error", "expected")])
    parts = list(frame("all-reduce in int8, Gaussian float32: measured, and as expected", y, marks))
    parts += [column(to_x(n), f"{n}") for n in ranks]
    parts.append(f"<text x='{(LEFT + WIDTH - RIGHT) // 2}' y='{HEIGHT - 12}' text-anchor='middle'>ranks</text>")
    for index, name in enumerate(algorithms):
        own = sorted((cell for cell in cells if cell["algorithm"] == name), key=lambda cell: cell["ranks"])
        line = " ".join(f"{to_x(cell['ranks']):.1f},{y(cell['expected']):.1f}" for cell in own)
        parts.append(f"<polyline points='{line}' fill='none' stroke='{COLORS[index]}' stroke-dasharray='5 3'/>")
        parts += points(own, lambda cell: to_x(cell["ranks"]), y, COLORS[index])
        parts.append(label(index, name))
    return "\n".join(parts) + "\n</svg>\n"


def by_data(cells):
    """Plots a column for each kind of data with a point for each format. Omits exact results."""
    cells = [cell for cell in cells if cell["error"] > 0]
    kinds = list(dict.fromkeys(cell["data"] for cell in cells))
    formats = list(dict.fromkeys(cell["format"] for cell in cells))
    step = (WIDTH - RIGHT - LEFT) / len(kinds)
    to_x = lambda cell: LEFT + step * (kinds.index(cell["data"]) + 0.2 + 0.6 * formats.index(cell["format"]) / len(formats))
    y, marks = vertical([cell["error"] for cell in cells])
    parts = list(frame("two_shot between 8 ranks, float32", y, marks))
    parts += [column(LEFT + step * (index + 0.5), kind) for index, kind in enumerate(kinds)]
    for index, name in enumerate(formats):
        parts += points([cell for cell in cells if cell["format"] == name], to_x, y, COLORS[index])
        parts.append(label(index, name))
    return "\n".join(parts) + "\n</svg>\n"
