"""Parser of the command line of perf/regret.sh. Checks all options before anything is measured."""

import argparse
import os
import re
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter"]
TRANSPORTS = ["shm", "mapped", "tcp"]  # Private buffers, buffers of tutti_mem_alloc, and connections on loopback.
MAX_RANKS = 1024  # Limit of the perf tools.
PASSES, QUICK_PASSES = 5, 1
SIZES, QUICK_SIZES = "8:8M:4", "1K:1M:32"

Refused = argparse.ArgumentTypeError


@dataclass(frozen=True)
class Sizes:
    """Sizes to measure, in bytes; each is `factor` times the previous one."""
    smallest: int
    largest: int
    factor: int

    def __iter__(self):
        size = self.smallest
        while size <= self.largest:
            yield size
            size *= self.factor


def sizes(text):
    parts = text.split(":")
    if len(parts) != 3:
        raise Refused(f"'{text}' is not smallest:largest:factor, such as {SIZES}")
    smallest, largest, factor = bytes_of(parts[0]), bytes_of(parts[1]), number(2)(parts[2])
    if smallest > largest:
        raise Refused(f"'{text}' has no sizes: the smallest, {parts[0]}, is above the largest, {parts[1]}")
    return Sizes(smallest, largest, factor)


def bytes_of(text):
    found = re.fullmatch(r"([1-9][0-9]*)([KMG]?)", text)
    if not found:
        raise Refused(f"'{text}' is not a size: give 1 byte or more, such as 8, 64K or 8M")
    return int(found.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[found.group(2)]


def number(minimum, maximum=None):
    def parse(text):
        if not re.fullmatch(r"[0-9]+", text) or int(text) < minimum or (maximum and int(text) > maximum):
            raise Refused(f"'{text}' is not an integer " + (f"from {minimum} to {maximum}" if maximum else f"of {minimum} or more"))
        return int(text)
    return parse


def several(parse):
    """Returns a parser of lists with commas, which parses each element with `parse` and rejects duplicates."""
    def parse_all(text):
        found = [parse(one) for one in text.split(",")]
        for one in found:
            if found.count(one) > 1:
                raise Refused(f"{one} is given twice")
        return found
    return parse_all


def one_of(names):
    def parse(text):
        if text not in names:
            raise Refused(f"'{text}' is invalid; valid: {', '.join(names)}")
        return text
    return parse


def arguments(description):
    parser = argparse.ArgumentParser(prog="perf/regret.sh", description=description, allow_abbrev=False)
    measuring = [
        parser.add_argument("--build", help="folder of a build (default: build beside perf)"),
        parser.add_argument("--quick", action="store_true", help="few iterations and, by default, one pass over "
                            f"{QUICK_SIZES}, to check that the script runs"),
        parser.add_argument("--only", type=several(one_of(COLLECTIVES)), help="collectives, by the names of the perf tools"),
        parser.add_argument("--ranks", type=several(number(2, MAX_RANKS)), help="numbers of ranks (default 2,4)"),
        parser.add_argument("--transports", type=several(one_of(TRANSPORTS)), 
                            help="how ranks communicate: shm (shared memory, private buffers), mapped (shared memory, "
                            "buffers of tutti_mem_alloc), tcp"),
        parser.add_argument("--sizes", type=sizes, help=f"sizes as smallest:largest:factor (default {SIZES})"),
        parser.add_argument("--passes", type=number(1), help=f"number of passes (default {PASSES})"),
        parser.add_argument("--output", help="JSON file to which the results are added"),
        parser.add_argument("--autotuned", action="store_true",
                            help="evaluate the choice that autotuning found in an earlier run (TUTTI_TUNE=1)")]
    parser.add_argument("--show", metavar="FILE", help="print the results of a file and exit")
    parser.add_argument("--second", action="store_true",
                        help="with --show: evaluate the second best candidate of each cell instead of the choice")
    parser.add_argument("--worst", type=number(0), default=15, help="number of worst cells to print (default 15)")
    options = parser.parse_args()
    for option in measuring:
        if options.show is not None and getattr(options, option.dest) not in (None, False):
            parser.error(f"{option.option_strings[0]} applies to measurements and excludes --show: remove one of them")
    if options.second and options.show is None:
        parser.error("--second needs --show FILE")
    return with_defaults(options)


def with_defaults(options):
    defaults = {"build": ROOT + "/build", "only": COLLECTIVES, "ranks": [2, 4], "transports": TRANSPORTS,
                "sizes": sizes(QUICK_SIZES if options.quick else SIZES), "passes": QUICK_PASSES if options.quick else PASSES}
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options
