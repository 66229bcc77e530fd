"""Compares the tuner's choices with the best forced choice: all collectives and sizes, 2 and 4 ranks, shm and tcp.

In each pass the choice and all forced candidates run alternately, so that other load affects all of them equally. Each has
new processes in each pass, since processes are fast or slow as a whole. A cell is one size of one collective. Its regret is
the time of the choice divided by the best time of the cell. Each time is the mean of the faster half of the passes: other
load only makes passes slower, and a median would jump between two speeds. Candidates that were far behind in each of at
least three passes are not measured further. Candidates that run the same steps, as many do with two ranks, count as one,
with the samples of all.

The choice is measured twice, unforced and forced by its name. The ratio of the two is the noise of the cell. The best of
many equal candidates is the luckiest one, which makes the regret too large. The held-out regret avoids this: the other
passes determine the best candidate, and it is compared with the choice in the remaining pass. The result is the mean of
the middle half of all passes.

With --second, the second best candidate of each cell is treated as the choice. This shows which regrets the method detects.
"""

import functools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from regret_request import arguments  # noqa: E402
from regret_results import Unusable, earlier, load, store  # noqa: E402

ROOTED = ["broadcast", "reduce", "gather", "scatter"]
LL_MAX_BYTES = 32 << 10  # Maximum size for which LL is forced: its slots hold half a kibibyte.
# (above, up to, iterations) in bytes. Iterations: if all ranks wait for each other; if ranks run ahead of each other;
# and if such ranks share cores, since calls must last for many time slices of the scheduler.
LENGTHS = [(0, 128 << 10, (240, 720, 2400)), (128 << 10, 1 << 20, (96, 160, 480)), (1 << 20, 1 << 62, (32, 32, 40))]
NEAR, TUNED = 1.05, 1.03  # Bounds of regret in the table.
# After MIN_PASSES passes, candidates are dropped that took FAR_BEHIND times as long as the fastest in each pass.
MIN_PASSES, FAR_BEHIND = 3, 1.15


def check_build(build, collectives):
    """Exits with an error if a required program is not built."""
    targets = {"tools/tutti": "tutti_tool", **{f"perf/{one}_perf": f"{one}_perf" for one in collectives}}
    lacking = [path for path in targets if not os.access(os.path.join(build, path), os.X_OK)]
    if lacking:
        sys.stderr.write(f"perf/regret.sh: {build} has no {', '.join(lacking)}; run cmake --build {build} --target "
                         f"{' '.join(targets[path] for path in lacking)}, or name another folder with --build\n")
        sys.exit(2)


def tutti(build, command, collective, *rest):
    call = "all_to_all" if collective == "alltoall" else collective
    return subprocess.run([f"{build}/tools/tutti", command, "--collective", call, *rest], capture_output=True, text=True)


def names(build, collective):
    """Returns the algorithms of a collective, from the tool's error message for an unknown one."""
    asked = tutti(build, "plan", collective, "--algorithm", "?", "--ranks", "2")
    return re.search(r"must be one of (.*)", asked.stderr).group(1).split(", ")


def competitors(build, collective, transport):
    """Yields (algorithm, protocol, maximum size) of all candidates; the first one stands for the choice."""
    yield ("", "", None)
    for algorithm in names(build, collective):
        mapped = algorithm.endswith("_mapped")
        if algorithm.startswith("hierarchical") or (mapped and transport != "mapped"):
            continue
        yield (algorithm, "Simple", None)
        if transport != "tcp" and not mapped:
            yield (algorithm, "LL", LL_MAX_BYTES)


def where(transport):
    return ["--memory", "mapped" if transport == "mapped" else "host",
            "--transport", "tcp" if transport == "tcp" else "shm"]


def autotune(options, collective, ranks, transport, environment):
    """Runs calls of each size until autotuning ends. Its results are in the file that the environment names."""
    for size in options.sizes:
        times = 20000 if size <= 4 << 10 else 3000 if size <= 256 << 10 else 1000
        subprocess.run([f"{options.build}/perf/{collective}_perf", "--ranks", str(ranks), "-b", str(size),
                        "-e", str(size), "-c", "0", "-n", str(times), "-w", "0", *where(transport)],
                       capture_output=True, env=environment)


def run(options, collective, ranks, transport, competitor, environment, sizes):
    """Measures a candidate. Returns rows of (bytes, algorithm, protocol, time) for these sizes and possibly others, or None if
    the candidate is not supported."""
    algorithm, protocol, _ = competitor
    rows = []
    ahead = collective in ROOTED
    oversubscribed = ahead and ranks > os.cpu_count()
    for above, max_bytes, times in LENGTHS:
        part = [size for size in sizes if above < size <= max_bytes]
        if not part:
            continue
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command = [f"{options.build}/perf/{collective}_perf", "--ranks", str(ranks), "-b", str(part[0]),
                       "-e", str(part[-1]), "-f", str(options.sizes.factor), "-c", "0", "-J", file.name, "-a", "3",
                       *where(transport)]
            command += ["-n", "4", "-w", "1"] if options.quick else ["-n", str(times[ahead + oversubscribed]), "-w", "5"]
            command += ["--algorithm", algorithm, "--protocol", protocol] if algorithm else []
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode != 0:
                return None
            rows += json.load(open(file.name))["results"]
    return [(row["size"], *ran(row["out_of_place"], oversubscribed)) for row in rows]


def ran(timing, oversubscribed):
    """Returns algorithm, protocol and time of a call. oversubscribed: ranks of a rooted collective share cores.

    Such ranks run ahead of each other as long as they have a core: many calls do not wait, and some wait for many others, so
    only the mean is meaningful. In all other cases the result is the median over spells of consecutive calls, which excludes
    other load. It uses spells because in a ring of ranks that share cores, three calls take 22 us and the next one 7 us.
    """
    time = timing.get("time" if oversubscribed else "spell_us")
    return timing.get("algorithm"), timing.get("protocol"), time and float(f"{time:.4g}")


def measure(options, collective, ranks, transport, environment):
    """Returns {bytes: {"chosen": name, "choice": [us], "times": {name: [us]}}}. A name is "algorithm/protocol".

    choice: times of the unforced choice. times: times of forced candidates. chosen is "" if the choice failed in any pass;
    such cells have no regret and are reported.
    """
    cells, out, idle = {}, set(), set()
    field = list(competitors(options.build, collective, transport))
    sizes = {one: [size for size in options.sizes if not one[2] or size <= one[2]] for one in field}
    for number in range(options.passes):
        for at in range(len(field)):
            competitor = field[(at + number) % len(field)]
            left = [size for size in sizes[competitor] if goes_on(cells.get(size), competitor)]
            if competitor in out or not left:
                continue
            rows = run(options, collective, ranks, transport, competitor, environment, left)
            if rows is None:
                out.add(competitor)
                continue
            for size, algorithm, protocol, time in rows:
                if size not in left:
                    continue
                name = f"{algorithm}/{protocol}"
                if not algorithm:  # The call has no messages for so few elements.
                    idle.add(size)
                    continue
                cell = cells.setdefault(size, {"chosen": "", "choice": [], "times": {}})
                times = cell["times"].setdefault(name, [])
                if competitor[0]:
                    times.append(time)
                else:
                    cell["chosen"] = name
                    cell["choice"].append(time)
    cells = {size: cell for size, cell in cells.items() if cell["chosen"] or size not in idle}
    for size, cell in cells.items():
        cell["chosen"] = "" if field[0] in out else cell["chosen"]
        cell["same"] = same_steps(options, collective, ranks, transport, size, cell)
    return cells


def goes_on(cell, competitor):
    """Returns true if a competitor can still be the best of the cell. Always true for the choice, unforced and forced."""
    name = f"{competitor[0]}/{competitor[1]}"
    forced = [name] if competitor[1] != "Simple" else [name, f"{competitor[0]}/"]  # Without messages there is no protocol.
    times = [time for one in forced for time in cell["times"].get(one, [])] if cell else []
    if not competitor[0] or len(times) < MIN_PASSES or cell["chosen"] in forced:
        return True
    return min(times) <= FAR_BEHIND * min(quick(those) for those in cell["times"].values() if those)


@functools.cache
def steps(build, collective, ranks, algorithm):
    """Returns the steps of all ranks as text, with and without the stages, which matter only with several chunks."""
    text = tutti(build, "plan", collective, "--algorithm", algorithm, "--ranks", str(ranks), "--fused").stdout
    if "scratch[" not in text:
        text = re.sub(r", \d+ of scratch", "", text)  # No step uses the scratch.
    lines = text.split("\n")[1:]  # Without the name of the algorithm.
    return "\n".join(lines), "\n".join(line for line in lines if "->" in line or line.startswith("rank"))


@functools.cache
def pieces(build, collective, ranks, transport, block, protocol):
    """Returns {algorithm: bytes of a chunk, or 0 with a single chunk}."""
    rest = ["--bytes", str(block), "--ranks", str(ranks), "--protocol", protocol, "--json"]
    rest += ["--transport", "tcp"] if transport == "tcp" else ["--transport", "shm", "--mapped"]
    output = tutti(build, "explain", collective, *rest)
    if output.returncode:
        sys.exit(f"{sys.argv[0]}: {' '.join(output.args)}: {output.stderr.strip()}")
    found = json.loads(output.stdout)["candidates"]
    return {one["algorithm"]: 0 if one["longest"] * block <= one["chunk_bytes"] else one["chunk_bytes"] for one in found}


def same_steps(options, collective, ranks, transport, size, cell):
    """Returns {name: first name of the cell that runs the same steps}."""
    whole = collective in ("all_reduce", "broadcast", "reduce")
    first, same = {}, {}
    for name in cell["times"]:
        algorithm, protocol = name.split("/")
        piece = pieces(options.build, collective, ranks, transport, size if whole else size // ranks,
                       protocol or "Simple").get(algorithm, 0)
        key = (steps(options.build, collective, ranks, algorithm)[0 if piece else 1], piece, protocol)
        same[name] = first.setdefault(key, name)
    return same


def middle(times):
    """Returns the mean of the middle half; the median of few values."""
    times = sorted(times)
    aside = min((len(times) - 1) // 2, -(-len(times) // 4))
    return statistics.mean(times[aside:len(times) - aside])


def quick(times):
    """Returns the mean of the faster half."""
    return statistics.mean(sorted(times)[:(len(times) + 1) // 2])


def regret(cell):
    samples = {cell["same"][cell["chosen"]]: list(cell["choice"])}
    for name, times in cell["times"].items():
        samples.setdefault(cell["same"][name], []).extend(times)
    found = {name: quick(times) for name, times in samples.items() if times}
    best = min(found, key=found.get)
    return found[cell["same"][cell["chosen"]]] / found[best], best, found


def with_second(cell):
    """Returns the cell as if the second best candidate had been chosen; None if there is only one."""
    _, best, found = regret(cell)
    others = sorted((found[name], name) for name in found if name != best)
    return {**cell, "chosen": others[0][1], "choice": []} if others else None


def noise(cell):
    """Returns the ratio (>= 1) between the unforced choice and the same candidate forced; 1 if it was not forced."""
    forced = cell["times"][cell["chosen"]]
    if not forced or not cell["choice"]:
        return 1.0
    ratio = quick(cell["choice"]) / quick(forced)
    return max(ratio, 1 / ratio)


def held_out(cell):
    """Returns the held-out regret of the candidates that ran in all passes (see the top of this file); None with one pass."""
    passes = max(len(times) for times in [cell["choice"], *cell["times"].values()])
    samples = {}
    for name, times in list(cell["times"].items()) + [(cell["chosen"], cell["choice"])]:
        if len(times) == passes:
            samples.setdefault(cell["same"][name], []).append(times)
    chosen = cell["same"][cell["chosen"]]
    if passes < 2 or chosen not in samples or regret(cell)[1] not in samples:
        return None

    def found(others, of):
        return {name: of([times[number] for times in rows for number in others]) for name, rows in samples.items()}

    ratios = []
    for number in range(passes):
        known = found([other for other in range(passes) if other != number], quick)
        seen = found([number], middle)  # The choice has two times per pass; using only the faster one would be biased.
        ratios.append(seen[chosen] / seen[min(known, key=known.get)])
    return middle(ratios)


def table(results, worst):
    every = [(key, int(size), cell) for key, sizes in results.items() for size, cell in sizes.items() if cell]
    cells = [(regret(cell), key, size, cell) for key, size, cell in every if cell["chosen"]]
    failed = failures([(key, size) for key, size, cell in every if not cell["chosen"]])
    if not cells:
        return failed + "nothing was measured\n"
    lines = ["| cell | chosen | us | best | us | regret | noise |", "|---|---|---|---|---|---|---|"]
    for (factor, best, medians), key, size, cell in sorted(cells, key=lambda one: -one[0][0])[:worst]:
        chosen = medians[cell["same"][cell["chosen"]]]
        lines.append(f"| {key}, {size} B | {cell['chosen']} | {chosen:.4g} | {best} | "
                     f"{medians[best]:.4g} | {factor:.2f} | {noise(cell):.2f} |")
    lines += ["", f"| where | cells | within {NEAR} | within {TUNED} | mean | worst | noise over {NEAR} | "
              f"held out: cells | within {NEAR} | within {TUNED} | mean |", "|---" * 11 + "|"]
    for where in sorted({key.split(" ", 1)[1] for _, key, _, _ in cells}) + [""]:
        lines.append(summary(where, [one for one in cells if one[1].endswith(where)]))
    return "\n".join(lines) + "\n" + failed


def summary(where, cells):
    """Returns a row of the summary table."""

    def shares(factors):
        if not factors:
            return "- | -"
        return " | ".join(f"{sum(factor <= bound for factor in factors) / len(factors):.0%}" for bound in (NEAR, TUNED))

    factors = [one[0][0] for one in cells]
    noisy = sum(noise(one[3]) > NEAR for one in cells) / len(cells)
    held = [factor for factor in (held_out(one[3]) for one in cells) if factor is not None]
    mean = f"{statistics.mean(held):.3f}" if held else "-"
    return (f"| {where or 'all'} | {len(cells)} | {shares(factors)} | {statistics.mean(factors):.3f} | {max(factors):.2f} | "
            f"{noisy:.0%} | {len(held)} | {shares(held)} | {mean} |")


def failures(cells):
    """Returns a list of the cells without regret, because the unforced choice failed."""
    if not cells:
        return ""
    sizes = {}
    for key, size in cells:
        sizes.setdefault(key, []).append(size)
    return (f"\nThe choice failed in {len(cells)} cells, which are not in the table:\n" +
            "".join(f"- {key}: {', '.join(map(str, sorted(sizes[key])))} B\n" for key in sizes))


def show(options):
    results = load(options.show)
    if options.second:
        results = {key: {size: with_second(cell) if cell["chosen"] else cell for size, cell in cells.items()}
                   for key, cells in results.items()}
    return table(results, options.worst)


def measure_all(options):
    check_build(options.build, options.only)
    results = earlier(options.output) if options.output is not None else {}
    for transport in options.transports:
        for ranks in options.ranks:
            for collective in options.only:
                key = f"{collective} {transport}, {ranks} ranks"
                sys.stderr.write(key + "\n")
                with tempfile.TemporaryDirectory() as folder:
                    environment = dict(os.environ, TUTTI_TUNE="0")
                    if options.autotuned:
                        environment.update(TUTTI_TUNE="1", TUTTI_TUNE_FILE=folder + "/tune")
                        autotune(options, collective, ranks, transport, environment)
                    results[key] = measure(options, collective, ranks, transport, environment)
                if options.output is not None:
                    store(options, results)
    return results


def main():
    options = arguments(__doc__.split("\n")[0])
    try:
        if options.show is not None:
            sys.stdout.write(show(options))
            return
        results = measure_all(options)
    except Unusable as error:
        raise SystemExit(f"perf/regret.sh: {error}") from None
    sys.stdout.write(table(results, options.worst))
    if not any(cell["chosen"] for cells in results.values() for cell in cells.values()):  # The table says so.
        raise SystemExit(1)


if __name__ == "__main__":
    main()
