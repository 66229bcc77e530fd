"""Report of a comparison over TCP: a line per row, and the targets with their results."""

from report import number, size_name

KIB, MIB = 1 << 10, 1 << 20
BUSY = " busy"
FLAT, HIERARCHICAL = "tutti ring", "tutti hierarchical"
PHASES = "tutti phases"  # A hierarchy of three calls, which do not use links within and between hosts at the same time.
# With two hosts of two ranks, a flat ring sends 2 * 3/4 of the vector from each host, a hierarchy 2 * 1/2.
BYTE_RATIO = 1.5
HEADER = ("# us, medians; ratio: best peer over ours. limit: time of the network, as a fraction of our time. Do not compare rows\n"
          "# of different congestion controls. busy: other programs used the machine, so the row is invalid.\n"
          "| setting | congestion | size | link | ours | us | best peer as installed | best peer tuned | limit | "
          "installed / ours | tuned / ours | limit / ours |\n|" + "---|" * 12)


def tag(link, busy, limit):
    """Returns the tag of a row: the class of the link between the cores, and whether other programs used the machine."""
    return link + (BUSY if busy > limit else "")


def best_of(medians, kinds, wanted):
    found = [(us, name) for name, us in medians.items() if kinds[name] in wanted]
    us, name = min(found, default=(None, None))
    return {"name": name, "us": us}


def over(one, other):
    return one / other if one and other else None


def summarise(row, kinds, limit_us):
    """Adds the best peers and the ratios of each of ours. Rows keep their ratios if the link between the cores changed, because
    all competitors were affected; the tag shows it."""
    medians = {name: times["median_us"] for name, times in row["times"].items()}
    row["default"] = best_of(medians, kinds, ("default",))
    row["tuned"] = best_of(medians, kinds, ("default", "tuned"))
    row["limit_us"] = limit_us
    row["ours"] = {name: {"us": us, "default": over(row["default"]["us"], us), "tuned": over(row["tuned"]["us"], us),
                          "limit": over(limit_us, us)}
                   for name, us in medians.items() if kinds[name] == "tutti"}


def progress(row):
    times = sorted((times["median_us"], name) for name, times in row["times"].items())
    return (f"# {row['setting']} {row['congestion']} {size_name(row['bytes'])} {row['link']}: " +
            ", ".join(f"{name} {number(us)}" for us, name in times))


def lines(row):
    """Yields a table row for each of ours, or one if none of ours was measured."""
    times = lambda value: f"{value:.2f}x" if value else "-"
    peer = lambda best: f"{number(best['us'])} {best['name'] or ''}"
    for name, one in row["ours"].items() or [("-", {"us": None, "default": None, "tuned": None, "limit": None})]:
        cells = [row["setting"], row["congestion"], size_name(row["bytes"]), row["link"], name, number(one["us"]),
                 peer(row["default"]), peer(row["tuned"]), number(row["limit_us"]), times(one["default"]),
                 times(one["tuned"]), f"{100 * one['limit']:.0f} %" if one["limit"] else "-"]
        yield "| " + " | ".join(cells) + " |"


def limit_lines(parts):
    for part in parts:
        said = ", ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                         for name, value in part["limits"].items())
        missing = "; ".join(part["missing_limits"])
        yield f"# {part['setting']} {part['congestion']}: {said}{'; missing: ' + missing if missing else ''}"


class Target:
    """A target for several rows: its bound and the worst measured value."""

    def __init__(self, what, wanted, at_least=True):
        self.what, self.wanted, self.at_least = what, wanted, at_least
        self.seen = []  # (value, description of the row)

    def see(self, value, where):
        if value is not None:
            self.seen.append((value, where))

    @property
    def worst(self):
        return (min if self.at_least else max)(self.seen, default=None)

    @property
    def met(self):
        """True if the worst value meets the bound; None if nothing was measured."""
        if not self.seen:
            return None
        return self.worst[0] >= self.wanted if self.at_least else self.worst[0] <= self.wanted

    def line(self):
        sign = ">=" if self.at_least else "<="
        if not self.seen:
            return f"| {self.what} | {sign} {self.wanted:g} | - | not measured |"
        value, where = self.worst
        missed = sum(1 for seen, _ in self.seen if (seen < self.wanted if self.at_least else seen > self.wanted))
        result = "met" if self.met else f"missed in {missed} of {len(self.seen)}"
        return f"| {self.what} | {sign} {self.wanted:g} | {value:.3g} at {where} | {result} |"


def judge_row(row, part, results):
    ours = row["ours"].get("tutti")
    if ours is None or row["link"].endswith(BUSY):
        return
    where, size = f"{row['setting']} {size_name(row['bytes'])}", row["bytes"]
    if row["setting"] in ("loopback", "2x1"):
        if size <= 64 * KIB:
            results["small"].see(ours["tuned"], where)
        if size >= MIB:
            results["large tuned"].see(ours["tuned"], where)
            results["large default"].see(ours["default"], where)
            results["stream"].see(ours["limit"], where)
        half_us = part["limits"].get("half_round_trip_us")
        if size == 8 and half_us:
            results["latency"].see(ours["us"] / (half_us + 0.5), where)
        exchange_us = part["limits"].get("exchange_us")  # Missing in older stored runs.
        if size == 8 and exchange_us:
            results["exchange"].see(exchange_us / ours["us"], where)
    if row["setting"] == "2x1@1gbit" and size >= 16 * MIB:
        results["link"].see(ours["limit"], where)
    if row["setting"].startswith("2x2@") and FLAT in row["ours"] and HIERARCHICAL in row["ours"]:
        ratio = row["ours"][FLAT]["us"] / row["ours"][HIERARCHICAL]["us"]
        results["hierarchy"].see(abs(ratio / BYTE_RATIO - 1), f"{where} ({ratio:.2f})")
    if row["setting"].startswith("2x2@") and PHASES in row["ours"] and HIERARCHICAL in row["ours"]:
        results["overlap"].see(row["ours"][PHASES]["us"] / row["ours"][HIERARCHICAL]["us"], where)


def targets(parts):
    """Yields (congestion control, results): the targets, evaluated separately for each congestion control."""
    for control in dict.fromkeys(part["congestion"] for part in parts):
        results = {
            "small": Target("2 ranks, 8 B to 64 KiB: best tuned peer / ours", 1.3),
            "latency": Target("2 ranks, 8 B: ours / (half a spinning round trip + 0.5 us)", 1.3, False),
            "exchange": Target("2 ranks, 8 B: a bare spinning exchange of both / ours", 0.9),
            "large tuned": Target("2 ranks, 1 MiB and more: best tuned peer / ours", 1.1),
            "large default": Target("2 ranks, 1 MiB and more: best peer as installed / ours", 1.7),
            "stream": Target("2 ranks, 1 MiB and more: stream rate's time / ours", 0.9),
            "link": Target("1 Gbit/s, 16 MiB and more: link's time / ours", 0.95),
            "hierarchy": Target(f"2x2 on slow links: flat / hierarchical, off from {BYTE_RATIO}", 0.1, False),
            "overlap": Target("2x2 on slow links: phases one after the other / hierarchical", 1),
            "idle": Target("idle communicator, of a core", 0.01, False),
        }
        for part in parts:
            if part["congestion"] != control:
                continue
            for row in part["rows"]:
                judge_row(row, part, results)
            for name, share in part.get("idle", {}).items():
                results["idle"].see(share, f"{part['setting']} {name}")
        yield control, list(results.values())


def target_lines(parts):
    yield "| target | required | worst | result |\n|---|---|---|---|"
    for control, results in targets(parts):
        for target in results:
            yield target.line().replace("| ", f"| {control}: ", 1)
    yield "# Tests of killed and disconnected peers: ctest -L multihost (killed, cut, no_incoming, unplugged)"
