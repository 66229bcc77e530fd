#!/usr/bin/env python3
"""Tests of the reports of perf/peers/network, and of the hosts that it emulates."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "perf", "peers"))
sys.dont_write_bytecode = True
from network import libraries, limits, report, run, settings  # noqa: E402

STAGE = os.path.join(ROOT, "perf", "peers", "network", "emulated_hosts.sh")
AGENT = os.path.join(ROOT, "perf", "peers", "network", "agent.sh")
KINDS = {"tutti": "tutti", "tutti ring": "tutti", "tutti hierarchical": "tutti",
         "tutti phases": "tutti", "installed": "default", "expert": "tuned"}
MIB = 1 << 20


def row(setting="loopback", size=8, limit_us=None, **medians):
    made = {"setting": setting, "congestion": "bbr", "bytes": size, "link": "near",
            "times": {name.replace("_", " "): {"median_us": us} for name, us in medians.items()}}
    report.summarise(made, KINDS, limit_us)
    return made


def part(*rows, control="bbr", setting="loopback", **more):
    return {"setting": setting, "congestion": control, "rows": list(rows), "limits": {}, **more}


def results_of(parts, words):
    """Returns the results of the target whose text contains these words, by congestion control."""
    return {control: next(one for one in results if words in one.what) for control, results in report.targets(parts)}


def stage_of(name, host_pids=(), cores=(0, 1)):
    return settings.Stage(settings.named(name), list(host_pids), list(cores))


def on_stage(*arguments):
    """Runs a command on a new stage and returns its output. Skips the test if stages are not permitted."""
    done = subprocess.run([STAGE, *arguments], capture_output=True, text=True)
    if done.returncode == run.NO_STAGE:
        raise unittest.SkipTest(done.stderr)
    return done


class Parsing(unittest.TestCase):
    def test_adds_both_directions(self):
        end = {"sum_received": {"bits_per_second": 2e9}, "sender_tcp_congestion": "cubic"}
        self.assertEqual(limits.stream_gbps(json.dumps({"end": end})), (2, "cubic"))
        end["sum_received_bidir_reverse"] = {"bits_per_second": 3e9}
        self.assertEqual(limits.stream_gbps(json.dumps({"end": end})), (5, "cubic"))

    def test_error_gives_no_rate(self):
        self.assertIsNone(limits.stream_gbps('{"end": {}, "error": "unable to connect to server"}'))

    def test_uses_final_line_of_ucx_perftest(self):
        said = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n" \
               "500,4.611,18.031,79.636,0.42,501.5,55460,12557\n"
        self.assertEqual(limits.ucx_numbers(said), (4.611, 501.5))


class Limits(unittest.TestCase):
    def test_hosts_send_minimum_bytes(self):
        self.assertEqual(settings.named("2x1").min_from_host(MIB), MIB)
        self.assertEqual(settings.named("2x2@1gbit").min_from_host(MIB), MIB)
        self.assertEqual(settings.named("4x1").min_from_host(MIB), MIB * 3 // 2)

    def test_link_time_includes_headers_but_no_burst(self):
        slow, fast = settings.named("2x1@100mbit"), settings.named("2x1@1gbit")
        self.assertEqual((slow.bits_per_us(), fast.bits_per_us()), (100, 1000))
        self.assertAlmostEqual(slow.link_us(1448000), (1514000 - 32768) * 8 / 100)
        self.assertEqual(fast.link_us(1024), 0)

    def test_best_measurement_counts(self):
        seen = limits.Limits(stage_of("4x1", range(4)), "")
        for half_us, gbps in ((5.0, 40.0), (4.0, 30.0)):
            seen.note("half_round_trip_us", half_us, min)
            seen.note("both_ways_gbps", gbps, max)
        self.assertEqual(seen.of_row(8), 8)  # Four ranks need two steps.
        self.assertAlmostEqual(seen.of_row(10 ** 6), 6e6 * 8 / 40e3)


class Report(unittest.TestCase):
    def test_ratios_compare_with_best_peer(self):
        ours = row(tutti=2.0, installed=4.0, expert=3.0, limit_us=1.0)["ours"]["tutti"]
        self.assertEqual(ours, {"us": 2, "default": 2, "tuned": 1.5, "limit": 0.5})

    def test_slower_settings_are_not_best(self):
        self.assertEqual(row(tutti=2.0, installed=4.0, expert=5.0)["tuned"], {"name": "installed", "us": 4})

    def test_disturbed_rows_are_marked(self):
        self.assertEqual([report.tag("far", busy, 0.1) for busy in (0.02, 0.5)], ["far", "far busy"])

    def test_rows_without_tutti_are_shown(self):
        (line,) = report.lines(row(installed=4.0, expert=3.0))
        self.assertIn("| 4 installed | 3 expert |", line)

    def test_each_tutti_variant_has_a_line(self):
        found = list(report.lines(row("2x2@1gbit", MIB, 8, tutti_ring=15.0, tutti_hierarchical=10.0)))
        self.assertEqual(len(found), 2)
        self.assertIn("| 80 % |", found[1])

    def test_targets_use_worst_size(self):
        parts = [part(row(tutti=1.0, expert=2.0), row(size=65536, tutti=1.0, expert=1.2))]
        small = results_of(parts, "to 64 KiB")["bbr"]
        self.assertFalse(small.met)
        self.assertIn("1.2 at loopback 64 KiB | missed in 1 of 2", small.line())

    def test_targets_are_per_congestion_control(self):
        parts = [part(row(tutti=1.0, expert=2.0)), part(row(tutti=1.0, expert=1.0), control="cubic")]
        found = results_of(parts, "to 64 KiB")
        self.assertEqual((found["bbr"].met, found["cubic"].met), (True, False))

    def test_disturbed_rows_are_ignored_in_targets(self):
        made = row(tutti=1.0, expert=1.0)
        made["link"] = report.tag("near", 0.5, 0.1)
        self.assertIsNone(results_of([part(made)], "to 64 KiB")["bbr"].met)

    def test_latency_target_uses_round_trip(self):
        parts = [{**part(row(tutti=5.0, expert=9.0)), "limits": {"half_round_trip_us": 3.5}}]
        self.assertAlmostEqual(results_of(parts, "spinning round trip")["bbr"].worst[0], 1.25)
        self.assertTrue(results_of(parts, "spinning round trip")["bbr"].met)

    def test_hierarchical_target_requires_saved_bytes(self):
        made = lambda flat: [part(row("2x2@1gbit", 16 * MIB, 9, tutti=1.0, tutti_ring=flat, tutti_hierarchical=10.0))]
        self.assertTrue(results_of(made(14.0), "2x2")["bbr"].met)
        self.assertFalse(results_of(made(10.0), "2x2")["bbr"].met)
        self.assertFalse(results_of(made(18.5), "2x2")["bbr"].met)

    def test_overlapping_phases_must_be_faster(self):
        made = lambda phases: [part(row("2x2@1gbit", MIB, None, tutti=1.0, tutti_phases=phases, tutti_hierarchical=10.0))]
        self.assertTrue(results_of(made(12.0), "phases")["bbr"].met)
        self.assertFalse(results_of(made(9.0), "phases")["bbr"].met)

    def test_unmeasured_target_is_not_met(self):
        empty = results_of([part()], "1 Gbit/s")["bbr"]
        self.assertIsNone(empty.met)
        self.assertIn("not measured", empty.line())

    def test_idle_cpu_time_has_target(self):
        self.assertFalse(results_of([part(idle={"tutti": 0.5})], "idle")["bbr"].met)
        self.assertTrue(results_of([part(idle={"tutti": 0.0})], "idle")["bbr"].met)


class Launching(unittest.TestCase):
    def commands(self, stage, name):
        one = next(one for one in libraries.competitors_on(stage) if one.name == name)
        return [" ".join(command) for command in one.commands("", "DIRECTORY", stage.cores)]

    def test_assigns_ranks_to_hosts_in_order(self):
        self.assertEqual([settings.named("2x2@1gbit").host_of(rank) for rank in range(4)], [0, 0, 1, 1])
        second = self.commands(stage_of("2x2@1gbit", (71, 72)), "gloo")[2]
        self.assertIn("--target 72 ", second)
        self.assertTrue(second.endswith("gloo_driver DIRECTORY 2 4 0 plain 192.0.2.2"))

    def test_passes_hosts_to_launchers(self):
        (command,) = self.commands(stage_of("4x1", (71, 72, 73, 74)), "openmpi tcp")
        self.assertIn("--host host0:1,host1:1,host2:1,host3:1", command)
        self.assertIn("--mca btl_tcp_if_include 192.0.2.0/24", command)
        self.assertTrue(command.endswith("openmpi_driver DIRECTORY 0,1,0,1"))
        (command,) = self.commands(stage_of("loopback"), "mpich")
        self.assertNotIn("-launcher ", command)

    def test_stores_no_local_paths(self):
        stage = stage_of("2x1", (71, 72))
        for one in libraries.competitors_on(stage):
            self.assertNotIn(ROOT, " ".join(one.settings(stage.cores)["commands"]), one.name)
        self.assertIn(ROOT, self.commands(stage, "openmpi tcp")[0])  # The executed command needs the absolute path.

    def test_uses_only_tcp_with_one_rank_per_host(self):
        (command,) = self.commands(stage_of("2x1", (71, 72)), "openmpi tcp")
        self.assertIn("--mca btl tcp,self", command)
        (command,) = self.commands(stage_of("2x2@1gbit", (71, 72)), "openmpi tcp")
        self.assertIn("--mca btl vader,tcp,self", command)

    def test_spinning_peers_yield_on_shared_cores(self):
        self.assertIn("mpi_yield_when_idle", self.commands(stage_of("4x1", range(4)), "openmpi tcp malloc")[0])
        self.assertNotIn("mpi_yield_when_idle", self.commands(stage_of("2x1", range(2)), "openmpi tcp malloc")[0])

    def test_unpinned_uses_no_core(self):
        self.assertTrue(self.commands(stage_of("loopback"), "gloo unpinned")[1].endswith("1 2 -1 plain 127.0.0.1"))


class Control(unittest.TestCase):
    def test_restores_allowed_congestion_controls(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "SYSCTL", folder + "/"), \
                mock.patch.object(os, "geteuid", lambda: 0):
            path = os.path.join(folder, "tcp_allowed_congestion_control")
            with open(path, "w") as file:
                file.write("reno bbr\n")
            with self.assertRaises(KeyError), run.allowed("cubic"):
                self.assertEqual(run.read("tcp_allowed_congestion_control"), ["reno", "bbr", "cubic"])
                raise KeyError
            self.assertEqual(run.read("tcp_allowed_congestion_control"), ["reno", "bbr"])

    def test_measures_available_controls_only(self):
        with mock.patch.object(run, "read", lambda name: ["reno"] if name == "tcp_congestion_control" else
                               ["reno", "cubic"]), mock.patch("builtins.print"):
            self.assertEqual(run.controls(types.SimpleNamespace(congestion="")), ["reno", "cubic"])
            self.assertEqual(run.controls(types.SimpleNamespace(congestion="bbr,cubic")), ["cubic"])


class Stage(unittest.TestCase):
    def test_hosts_use_congestion_control_and_rate(self):
        say = f"for host in host0 host1; do {AGENT} $host 'hostname; cat /proc/sys/net/ipv4/tcp_congestion_control; " \
              "tc qdisc show dev eth0 | grep -o \"rate [^ ]*\"'; done"
        done = on_stage("2x1", "1gbit", "131072b", "reno", "--", "sh", "-c", say)
        self.assertEqual(done.stdout.split("\n"), ["host0", "reno", "rate 1Gbit", "host1", "reno",
                                                   "rate 1Gbit", ""], done.stderr)

    def test_reports_unavailable_control(self):
        self.assertEqual(on_stage("loopback", "-", "0b", "no_such", "--", "true").returncode, run.NO_CONTROL)

    def test_status_is_that_of_command(self):
        self.assertEqual(on_stage("loopback", "-", "0b", "reno", "--", "sh", "-c", "exit 7").returncode, 7)


if __name__ == "__main__":
    unittest.main()
