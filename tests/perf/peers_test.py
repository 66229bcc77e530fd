#!/usr/bin/env python3
"""Tests of the reports of perf/peers/run.py."""

import os
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "perf", "peers"))
sys.dont_write_bytecode = True
import chart  # noqa: E402
import competitors  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import stored  # noqa: E402
import tables  # noqa: E402

KINDS = {"tutti": "tutti", "tutti mapped": "tutti", "installed": "default", "expert": "tuned"}


def row(link, **medians):
    made = {"collective": "all_reduce", "ranks": 2, "bytes": 8, "link": link, "link_ns": [50, 50], "floors": {"floor": None},
            "times": {name.replace("_", " "): {"median_us": us} for name, us in medians.items()}}
    report.summarise(made, KINDS)
    return made


class Asked:
    """A fake machine that answers 1 us to all questions, and records them."""

    def __init__(self):
        self.questions = []

    def ask(self, question):
        self.questions.append(question)
        return 1.0

    def link_ns(self):
        return 50.0


class Peers(unittest.TestCase):
    def test_classifies_links(self):
        self.assertEqual(machine.tag(28, 33), "siblings")
        self.assertEqual(machine.tag(28, 53), "mixed")
        self.assertEqual(machine.tag(45, 50), "near")
        self.assertEqual(machine.tag(135, 145), "middle")
        self.assertEqual(machine.tag(215, 230), "far")
        self.assertEqual(machine.tag(50, 215), "mixed")

    def test_ratios_use_best_peer(self):
        ratios = row("near", tutti=2.0, tutti_mapped=1.0, installed=4.0, expert=3.0)["ratios"]
        self.assertEqual(ratios, {"default/tutti": 2, "tuned/tutti": 1.5, "default/mapped": 4, "tuned/mapped": 3})

    def test_slower_settings_are_not_best(self):
        self.assertEqual(row("near", tutti=2.0, installed=4.0, expert=5.0)["best_tuned"], "installed")

    def test_mixed_links_have_no_ratios(self):
        mixed = row("mixed", tutti=2.0, tutti_mapped=1.0, installed=4.0)
        self.assertEqual(set(mixed["ratios"].values()), {None})
        self.assertIn("| mixed |", report.line(mixed))
        self.assertNotIn("x |", report.line(mixed))

    def test_only_receiver_of_broadcast_reads(self):
        asked = Asked()
        run.floors(asked, "broadcast", 1 << 20)
        run.floors(asked, "all_reduce", 1 << 20)
        self.assertIn("take 1048576 1048576", asked.questions)
        self.assertIn("read 524288 1048576", asked.questions)

    def test_small_broadcast_has_no_floor(self):
        self.assertIsNone(run.floors(Asked(), "broadcast", 1024)["floor"])
        self.assertEqual(run.floors(Asked(), "all_reduce", 1024)["floor"], 0.05)

    def test_partial_run_keeps_stored_results(self):
        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
            sys.stdout, shown = nowhere, sys.stdout
            run.store(types.SimpleNamespace(results=folder), {"cpu": "A CPU", "rows": []}, False)
            run.store(types.SimpleNamespace(results=folder), {"cpu": "A CPU", "rows": []}, True)
            sys.stdout = shown
            self.assertEqual(sorted(os.listdir(folder)), ["host-a-cpu-partial.json", "host-a-cpu-partial.svg",
                                                          "host-a-cpu.json", "host-a-cpu.svg"])

    def test_stored_results_survive_round_trip(self):
        run_of = {"cpu": "A CPU", "rows": [{"name": "a" * 100, "us": [0.1] * 30}] * 100, "cores": []}
        with tempfile.TemporaryDirectory() as folder:
            path = stored.store(folder, "network", run_of, True) + ".json"
            self.assertEqual(stored.load(path), run_of)
            with open(path) as file:
                self.assertLess(len(file.readlines()), 110)  # One line per row.
        self.assertEqual(os.path.basename(path), "network-a-cpu.json")

    def test_competitors_record_their_commands(self):
        settings = {one.name: one.settings([0, 1]) for one in competitors.competitors()}
        self.assertEqual(settings["gloo"]["commands"][1], "gloo_driver DIRECTORY 1 2 1 plain")
        self.assertIn("--mca btl_vader_single_copy_mechanism none", settings["openmpi nocma+malloc"]["commands"][0])
        oversubscribed = {one.name: one.settings([0, 1, 0, 1]) for one in competitors.oversubscribed()}
        self.assertEqual([command.split()[3:5] for command in oversubscribed["gloo"]["commands"]],
                         [["4", "0"], ["4", "1"], ["4", "0"], ["4", "1"]])
        self.assertTrue(oversubscribed["openmpi"]["commands"][0].endswith("-n 4 openmpi_driver DIRECTORY 0,1,0,1"))
        self.assertEqual(settings["mpich posix+malloc"]["environment"]["UCX_TLS"], "posix,self")

    def test_versions_have_names(self):
        said = {"openmpi": "mpirun.openmpi (OpenRTE) 4.1.4", "mpich": "HYDRA build details: Version: 4.0.2", "gloo": "",
                "iperf3": "iperf 3.12 (cJSON 1.7.15)"}
        self.assertEqual(tables.versions_of({"versions": said}), "Open MPI 4.1.4, MPICH 4.0.2, iperf3 3.12")

    def test_tables_match_stored_runs(self):
        with open(os.path.join(tables.RESULTS, "README.md")) as file:
            self.assertEqual(file.read(), tables.text(tables.RESULTS), "run perf/peers/tables.py")

    def test_readme_chart_matches_stored_run(self):
        with open(chart.CHART, encoding="utf-8") as file:
            self.assertEqual(file.read(), chart.svg(stored.load(chart.RUN)), "run perf/peers/chart.py")


if __name__ == "__main__":
    unittest.main()
