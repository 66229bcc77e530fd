"""Bar charts of ratios, as SVG."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 340, 56, 16, 66, 56
COLORS = ("#2b6cb0", "#90cdf4")
INK, GRID = "#1a202c", "#e2e8f0"


def text(x, y, words, **attributes):
    rest = "".join(f" {name.replace('_', '-')}='{value}'" for name, value in attributes.items())
    return f"<text x='{x:.1f}' y='{y:.1f}' fill='{INK}'{rest}>{words}</text>"


def svg(title, subtitle, series, rows, grid=1):
    """Returns a chart of `rows`, a list of (label, [ratio of each series]). `series` has at most two names.

    `grid` is the distance of the grid lines. A dashed line marks the ratio 1.
    """
    top = max(max(ratios) for _, ratios in rows) * 1.08
    y = lambda ratio: HEIGHT - BOTTOM - ratio / top * (HEIGHT - BOTTOM - TOP)
    step = (WIDTH - LEFT - RIGHT) / len(rows)
    width = step * 0.72 / len(series)
    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' "
             f"font-size='12'><rect width='100%' height='100%' fill='white'/>",
             text(LEFT, 22, title, font_size=15, font_weight="bold"), text(LEFT, 42, subtitle)]
    for line in range(0, int(top) + 1, grid):
        parts.append(f"<line x1='{LEFT}' y1='{y(line):.1f}' x2='{WIDTH - RIGHT}' y2='{y(line):.1f}' stroke='{GRID}'/>")
        parts.append(text(LEFT - 8, y(line) + 4, f"{line}x", text_anchor="end"))
    for index, (label, ratios) in enumerate(rows):
        middle = LEFT + (index + 0.5) * step
        for position, ratio in enumerate(ratios):
            left = middle + (position - len(series) / 2) * width
            parts.append(f"<rect x='{left:.1f}' y='{y(ratio):.1f}' width='{width - 1:.1f}' "
                         f"height='{y(0) - y(ratio):.1f}' fill='{COLORS[position]}'/>")
            parts.append(text(left + width / 2, y(ratio) - 4, f"{ratio:.1f}", text_anchor="middle", font_size=10))
        parts.append(text(middle, HEIGHT - BOTTOM + 16, label, text_anchor="middle"))
    parts.append(f"<line x1='{LEFT}' y1='{y(1):.1f}' x2='{WIDTH - RIGHT}' y2='{y(1):.1f}' stroke='{INK}' "
                 f"stroke-dasharray='5 4'/>")
    for position, name in enumerate(series):
        left = LEFT + position * 220
        parts.append(f"<rect x='{left}' y='{HEIGHT - 24}' width='12' height='12' fill='{COLORS[position]}'/>")
        parts.append(text(left + 18, HEIGHT - 14, name))
    return "\n".join(parts) + "\n</svg>\n"
