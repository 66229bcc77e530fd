#!/usr/bin/env python3
"""Tables of `tutti explain --compare nccl`.  compare_test.py PATH/tutti"""

import csv
import functools
import json
import os
import re
import subprocess
import sys
import unittest

TUTTI = sys.argv.pop() if len(sys.argv) > 1 else "build/tools/tutti"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLES = os.path.join(ROOT, "tests", "simulator", "tables")
PAGE = os.path.join(ROOT, "docs", "design", "gpu-predictions.md")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
COMPARE = ("explain", "--collective", "all_reduce", "--compare", "nccl")


def run(*arguments):
    done = subprocess.run([TUTTI, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def compared(topology="dgx-h100", sizes="8..16G", *more):
    """Returns the rows of the table, by size."""
    table = run(*COMPARE, "--topology", topology, "--bytes", sizes, *more)
    return {row["bytes"]: row for row in table["sizes"]}


@functools.cache
def compared_on(hosts):
    """The same on several hosts. One table for all tests, since tables of many hosts take long in sanitizer builds."""
    return compared("dgx-h100", "8..4G", "--hosts", str(hosts))


def published(file, ranks="8"):
    """Returns the times of all-reduces that NCCL chose, by size."""
    with open(os.path.join(TABLES, file), encoding="utf-8") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return {int(row["bytes"]): float(row["time_us"]) for row in rows
            if row["ranks"] == ranks and row["collective"] == "all_reduce" and row["algorithm"] in ("", "nvls")}


class Compare(unittest.TestCase):
    def test_published_times_are_those_of_the_tables(self):
        rows, found = compared(), 0
        tables = {**published("h200-graph.csv"), **published("h100-graph.csv"), **published("h200.csv")}
        for size, us in tables.items():
            self.assertEqual(rows[size]["nccl"]["us"], us, size)
            self.assertIsNotNone(rows[size]["nccl"]["source"], size)
            found += 1
        self.assertEqual(found, sum(row["nccl"]["source"] is not None for row in rows.values()))
        self.assertEqual(compared("dgx-b200", "8G")[8 * GIB]["nccl"]["us"], published("b200.csv")[8 * GIB])

    def test_other_times_of_nccl_are_simulated(self):
        rows = compared()
        for size in (8, 512, 256 * MIB, 4 * GIB):
            self.assertIsNone(rows[size]["nccl"]["source"], size)
            done = run("simulate", "--topology", "dgx-h100", "--like", "nccl", "--launch", "graph", "--bytes", str(size))
            self.assertAlmostEqual(rows[size]["nccl"]["us"], done["sizes"][0]["runs"][0]["time_us"], delta=0.01, msg=size)

    def test_simulated_times_of_nccl_match_published_ones(self):
        """The bounds of the page: NCCL's rings up to 512 KiB, and NVLS from 2 MiB."""
        for file, low, high, limit in (("h200-graph.csv", 0, 512 * KIB, 0.23), ("h100-graph.csv", 2 * MIB, GIB, 0.1)):
            for size, us in published(file).items():
                if not low <= size <= high:
                    continue
                done = run("simulate", "--topology", "dgx-h100", "--like", "nccl", "--launch", "graph", "--bytes", str(size))
                self.assertLessEqual(abs(done["sizes"][0]["runs"][0]["time_us"] / us - 1), limit, (file, size))

    def test_times_of_tutti_are_those_of_simulate(self):
        rows = compared()
        for size in (8, 64 * KIB, MIB, 256 * MIB):
            row = rows[size]
            runs = run("simulate", "--topology", "dgx-h100", "--launch", "graph", "--bytes", str(size))["sizes"][0]["runs"]
            times = {(each["algorithm"], each["protocol"]): each["time_us"] for each in runs}
            self.assertAlmostEqual(row["predicted_us"], times[row["algorithm"], row["protocol"]], delta=0.01, msg=size)

    def test_time_grows_with_size(self):
        for more in ((), ("--mapped",)):
            times = [row["predicted_us"] for row in compared("dgx-h100", "8..16G", *more).values()]
            self.assertEqual(times, sorted(times), more)
            self.assertEqual(len(times), 32)

    def test_choice_is_that_of_the_library(self):
        """For 8 ranks with 24 channels of lanes and 48 of the staging ring (src/communicator/peers/lane_budget.h)."""
        rows = compared()
        chosen = {size: (row["algorithm"], row["protocol"], row["channels"]) for size, row in rows.items()}
        self.assertEqual(chosen[8], ("one_shot", "LL", 1))
        self.assertEqual(chosen[32 * KIB], ("one_shot", "LL", 8))
        self.assertEqual(chosen[64 * KIB], ("two_shot", "LL", 16))
        self.assertEqual(chosen[512 * KIB], ("two_shot", "LL", 24))
        self.assertEqual(chosen[MIB], ("switch_staged", "Simple", 48))
        self.assertEqual(chosen[256 * MIB], ("switch_staged", "Simple", 48))
        self.assertEqual(compared("dgx-h100", "256K", "--mapped")[256 * KIB]["protocol"], "LL")
        mapped = compared("dgx-h100", "256M", "--mapped")[256 * MIB]
        self.assertEqual((mapped["algorithm"], mapped["channels"]), ("switch_mapped", 64))
        old = compared("dgx-a100", "256M")[256 * MIB]
        self.assertEqual((old["algorithm"], old["channels"]), ("two_shot", 24), "no multicast")

    def test_marks_choices_that_are_not_the_fastest(self):
        for topology, size, fastest in (("dgx-h100", 64 * KIB, ("one_shot", "LL")), ("dgx-h100", MIB, None),
                                        ("gb200-nvl72", 8 * KIB, ("recursive_doubling", "LL"))):
            table = run("explain", "--collective", "all_reduce", "--topology", topology, "--bytes", f"{size}..{2 * size}")
            row = table["sizes"][0]
            self.assertEqual(table["launch"], "graph")
            self.assertEqual(row["choice_is_fastest"], fastest is None, row)
            found = row["fastest"]
            self.assertEqual((found["algorithm"], found["protocol"]), fastest or (row["algorithm"], row["protocol"]))
            done = run("simulate", "--topology", topology, "--launch", "graph", "--bytes", str(size), "--algorithm",
                       found["algorithm"], "--protocol", found["protocol"])["sizes"][0]["runs"][0]
            self.assertAlmostEqual(found["predicted_us"], done["time_us"], delta=1e-5 * done["time_us"], msg=topology)
            self.assertEqual(found["predicted_us"] < row["predicted_us"], fastest is not None, row)

    def test_counts_candidates_that_are_not_compared(self):
        table = run("explain", "--collective", "all_reduce", "--topology", "dgx-h100", "--bytes", "2G..4G")
        self.assertGreater(table["sizes"][1]["not_compared"], 0)
        self.assertIn("are not compared with the choice", " ".join(table["notes"]))
        self.assertTrue(all(row["not_compared"] == 0 for row in compared("dgx-h100", "8..1M").values()))

    def test_ratio_compares_bandwidths(self):
        for row in compared().values():
            self.assertAlmostEqual(row["ratio"], row["bus_bw"] / row["nccl"]["bus_bw"], delta=0.002 * row["ratio"])

    def test_blocks_are_counted_as_in_explain(self):
        table = run("explain", "--collective", "all_gather", "--compare", "nccl", "--topology", "dgx-h100", "--bytes", "1M")
        row = table["sizes"][0]
        self.assertEqual((row["bytes"], row["nccl_tests_bytes"]), (MIB, 8 * MIB))
        done = run("simulate", "--collective", "all_gather", "--topology", "dgx-h100", "--like", "nccl", "--launch", "graph",
                   "--bytes", "8M")
        self.assertAlmostEqual(row["nccl"]["us"], done["sizes"][0]["runs"][0]["time_us"], delta=0.01)

    def test_published_times_of_two_hosts_are_those_of_the_table(self):
        rows = compared("dgx-h200", "8..16G", "--hosts", "2")
        times = published("h200-hosts.csv", "16")
        self.assertEqual({size: row["nccl"]["us"] for size, row in rows.items() if row["nccl"]}, times)
        self.assertEqual(len(times), 25)
        self.assertGreaterEqual(min(rows[size]["ratio"] for size in times), 1)

    def test_hosts_without_published_figure_have_no_ratio(self):
        for topology, hosts in (("dgx-h100", "3"), ("dgx-b200", "2"), ("dgx-a100", "2")):
            table = run(*COMPARE, "--topology", topology, "--hosts", hosts, "--bytes", "1M..2M")
            self.assertTrue(all(row["nccl"] is None and "ratio" not in row for row in table["sizes"]), topology)
        notes = " ".join(table["notes"])
        for expected in ("no published figure", "choice between hosts is not modeled", "not validated"):
            self.assertIn(expected, notes)

    def test_says_what_was_not_measured(self):
        table = run(*COMPARE, "--topology", "dgx-h100", "--bytes", "8")
        self.assertIn("No time between GPUs was measured: Tutti has run on one GPU that several ranks shared.", table["notes"])
        self.assertTrue(all(each["source"] for each in table["constants"]))


class Page(unittest.TestCase):
    """Tables of docs/design/gpu-predictions.md."""

    def rows_of(self, heading, first="size"):
        with open(PAGE, encoding="utf-8") as file:
            text = file.read().split(heading)[1].split("\n\n")
        table = next(part for part in text if part.startswith(f"| {first}"))
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        return [dict(zip(lines[0], line)) for line in lines[2:]]

    def size_of(self, text):
        number, unit = text.split()
        return int(number) * UNITS[unit]

    def test_bandwidths_match(self):
        private, mapped = compared(), compared("dgx-h100", "8..16G", "--mapped")
        rows = self.rows_of("Bus bandwidth in GB/s.")
        self.assertEqual(len(rows), 4)
        for row in rows:
            size = self.size_of(row["size"])
            lanes = ("simulate", "--topology", "dgx-h100", "--launch", "graph", "--algorithm", "two_shot", "--protocol", "Simple",
                     "--bytes", str(size))
            few, all_lanes = (run(*lanes, *more)["sizes"][0]["runs"][0] for more in (("--channels", "3"), ()))
            nccl = private[size]["nccl"]
            self.assertEqual(row["NCCL"], f"{nccl['bus_bw']:.0f}" + ("" if nccl["source"] else " m"), size)
            self.assertEqual(row["three channels"], f"{few['bus_bw']:.0f}", size)
            self.assertEqual(row["lanes"], f"{all_lanes['bus_bw']:.0f}", size)
            self.assertEqual(row["now"], f"{private[size]['bus_bw']:.0f}", size)
            self.assertEqual(row["windows now"], f"{mapped[size]['bus_bw']:.0f}", size)

    def test_bandwidths_of_several_hosts_match(self):
        rows = self.rows_of("## Several hosts of 8 H100")
        self.assertEqual(len(rows), 4)
        for row in rows:
            for hosts in (2, 4, 8, 16, 32, 64):
                predicted = compared_on(hosts)[self.size_of(row["size"])]
                self.assertEqual(row[f"{hosts} hosts"], f"{predicted['bus_bw']:.0f}", (row["size"], hosts))

    def test_latencies_between_hosts_match(self):
        rows = self.rows_of("Time of an all-reduce in us")
        self.assertEqual(len(rows), 4)
        for row in rows:
            for hosts in (2, 4, 8, 64):
                predicted = compared_on(hosts)[self.size_of(row["size"])]
                self.assertEqual(row[f"{hosts} hosts"], f"{predicted['predicted_us']:.0f}", (row["size"], hosts))

    def test_bandwidths_of_all_gather_and_reduce_scatter_match(self):
        rows = self.rows_of("Large all-gathers and reduce-scatters use", "collective")
        self.assertEqual(len(rows), 2)
        for row in rows:
            for hosts in (2, 4, 8, 64):
                done = run("simulate", "--topology", "dgx-h100", "--hosts", str(hosts), "--launch", "graph", "--bytes", "256M",
                           "--collective", row["collective"].replace("-", "_"))["sizes"][0]["runs"][0]
                self.assertEqual(done["algorithm"], "hierarchical" if hosts <= 8 else "host_ring")
                self.assertEqual(row[f"{hosts} hosts"], f"{done['bus_bw']:.0f}", (row["collective"], hosts))

    def explained(self, collective, hosts, block, *more):
        return run("explain", "--topology", "dgx-h100", "--hosts", str(hosts), "--bytes", str(block), "--collective",
                   collective.replace("-", "_"), *more)["candidates"]

    def test_times_of_blocks_by_switches_of_hosts_match(self):
        rows = self.rows_of("On up to 64 hosts of 6 to 8 GPUs", "blocks of")
        self.assertEqual(len(rows), 2)
        for row in rows:
            for hosts in (2, 4, 8, 16):
                candidates = self.explained(row["blocks of"], hosts, 64 << 10, "--protocol", "Simple")
                times = {each["algorithm"]: f"{each['predicted_us']:.0f}" for each in candidates}
                self.assertEqual(candidates[0]["algorithm"], "host_staged")
                self.assertEqual(row[f"{hosts} hosts"], times["host_staged"], (row["blocks of"], hosts))
                self.assertEqual(row[f"lanes, {hosts} hosts"], times["hierarchical"], (row["blocks of"], hosts))

    def test_times_of_small_calls_by_ll_match(self):
        rows = self.rows_of("Small calls of few hosts use LL", "4 KiB")
        self.assertEqual([row["4 KiB"] for row in rows], ["all-gather", "reduce-scatter", "broadcast", "reduce"])
        for row in rows:
            for hosts in (2, 3, 4):
                first = self.explained(row["4 KiB"], hosts, 4 << 10)[0]
                forced = self.explained(row["4 KiB"], hosts, 4 << 10, "--protocol", "Simple")[0]
                self.assertEqual(row[f"{hosts} hosts"], f"{first['predicted_us']:.0f}", (row["4 KiB"], hosts))
                self.assertEqual(row[f"Simple, {hosts} hosts"], f"{forced['predicted_us']:.0f}", (row["4 KiB"], hosts))

    def test_choices_for_blocks_are_nearly_the_fastest(self):
        for collective in ("all-gather", "reduce-scatter"):
            for hosts in (2, 8):
                for block in (9 << 10, 24 << 10, 100 << 10):
                    times = [each["predicted_us"] for each in self.explained(collective, hosts, block)]
                    self.assertLessEqual(times[0], 1.1 * min(times), (collective, hosts, block))

    def test_bandwidths_of_all_to_all_match(self):
        rows = self.rows_of("All-to-all (`host_staged`, now)", "all-to-all")
        self.assertEqual([row["all-to-all"] for row in rows], ["direct", "hierarchical", "the choice"])
        for hosts in (2, 4, 8, 16, 32, 64):
            command = ["simulate", "--topology", "dgx-h100", "--hosts", str(hosts), "--launch", "graph", "--bytes", str(hosts << 25),
                       "--collective", "all_to_all"]
            for row, more in zip(rows, (["--algorithm", "direct"], ["--algorithm", "hierarchical"], [])):
                done = run(*command, *more)["sizes"][0]["runs"][0]
                self.assertEqual(row[f"{hosts} hosts"], f"{done['bus_bw']:.0f}", hosts)

    def format_us(self, us):
        return f"{us:.1f}" if us < 100 else f"{us:.0f}"

    def test_times_of_a_rack_match(self):
        rows = self.rows_of("## NVLink domain of 72 GB200")
        self.assertEqual(len(rows), 6)
        call = ("explain", "--collective", "all_reduce", "--topology", "gb200-nvl72", "--bytes", "8..4G")
        lanes, two_racks = ({row["bytes"]: row for row in run(*call, *more)["sizes"]}
                            for more in (("--algorithm", "two_shot"), ("--hosts", "36")))
        now = compared("gb200-nvl72", "8..4G")
        for row in rows:
            size = self.size_of(row["size"])
            for column, us in (("lanes", lanes[size]["predicted_us"]), ("now", now[size]["predicted_us"]),
                               ("NCCL", now[size]["nccl"]["us"]), ("two racks", two_racks[size]["predicted_us"])):
                self.assertEqual(row[column], self.format_us(us), (column, size))
            for column, found in (("GB/s", now[size]), ("GB/s of NCCL", now[size]["nccl"]), ("GB/s of two racks", two_racks[size])):
                self.assertAlmostEqual(float(row[column]), found["bus_bw"], delta=max(0.05, 0.5 * (found["bus_bw"] >= 10)))

    def test_times_of_blocks_in_a_rack_match(self):
        rows = self.rows_of("Other collectives of 72 ranks", "collective")
        self.assertEqual(len(rows), 3)
        for row in rows:
            for size in ("1 MiB", "16 MiB"):
                call = ("explain", "--topology", "gb200-nvl72", "--collective", row["collective"].replace("-", "_"), "--bytes",
                        str(self.size_of(size)))
                for column, more in ((size, ()), (f"lanes, {size}", ("--algorithm", "direct", "--protocol", "Simple"))):
                    found = run(*call, *more)["candidates"][0]
                    self.assertEqual(row[column], self.format_us(found["predicted_us"]), (row["collective"], column))

    def test_choices_in_a_rack_are_nearly_the_fastest(self):
        for collective in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"):
            for hosts in (3, 9, 18):
                for block in (8, 4 * KIB, 64 * KIB, 512 * KIB):
                    times = [each["predicted_us"] for each in
                             run("explain", "--topology", "gb200-nvl72", "--hosts", str(hosts), "--nvlink-domain", str(hosts),
                                 "--collective", collective, "--bytes", str(block))["candidates"] if each["predicted_us"]]
                    self.assertLessEqual(times[0], 1.3 * min(times), (collective, hosts, block))

    def test_latencies_match(self):
        private, mapped = compared(), compared("dgx-h100", "8..16G", "--mapped")
        rows = self.rows_of("Latency in us,")
        self.assertEqual(len(rows), 6)
        for row in rows:
            size = self.size_of(row["size"])
            nccl = private[size]["nccl"]
            self.assertEqual(row["NCCL"], f"{nccl['us']:.1f}" + ("" if nccl["source"] else " m"), size)
            self.assertEqual(row["now"], f"{private[size]['predicted_us']:.1f}", size)
            self.assertEqual(row["now, windows"], f"{mapped[size]['predicted_us']:.1f}", size)

    def test_constants_match(self):
        constants = run(*COMPARE, "--topology", "dgx-h100", "--bytes", "8")["constants"]
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        for each in constants:
            self.assertRegex(page, rf"\| {re.escape(each['name'])} \| {each['value']:g} {each['unit']} \|")

    def test_planned_figures_match_the_script(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "perf", "gpu", "data_path.py")], capture_output=True,
                              text=True, check=True)
        figures = {}
        for line in done.stdout.splitlines():
            if found := re.match(r"(\d+ [KMG]?i?B) +([\d. ]+)$", line):
                figures[found[1]] = figures.get(found[1], []) + found[2].split()
        columns = ("lanes with warp roles", "staged two-shot", "staged NVLS, 24 blocks", "48 blocks", "NVLS in place")
        for row in self.rows_of("Bus bandwidth in GB/s."):
            said = [figure for column in columns for figure in row[column].split("-")]
            self.assertEqual(said, figures[row["size"]], row["size"])
        for row in self.rows_of("Latency in us,"):
            self.assertEqual([row["planned"]], figures[row["size"]], row["size"])


if __name__ == "__main__":
    unittest.main()
