#!/usr/bin/env python3
"""Tests of the times that `tutti estimate` predicts.  estimate_test.py PATH/tutti"""

import json
import subprocess
import sys
import unittest

TUTTI = sys.argv.pop() if len(sys.argv) > 1 else "build/tools/tutti"
MIB = 1 << 20
ON_LINK = ("--ranks", "4", "--link", "10Gbit")


def run(command, *arguments):
    done = subprocess.run([TUTTI, command, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def estimate(*arguments, compute="300ms", where=ON_LINK):
    return run("estimate", "--parameters", "25M", "--compute", compute, *where, *arguments)


def explained_us(size, *arguments):
    return run("explain", "--collective", "all_reduce", "--bytes", str(size), *arguments)["candidates"][0]["predicted_us"]


def exposed_us(sizes, times_us, backward_us):
    """Time from the end of the backward pass to the end of the last bucket."""
    end = 0
    for i, time_us in enumerate(times_us):
        end = max(end, backward_us * sum(sizes[:i + 1]) / sum(sizes)) + time_us
    return end - backward_us


class Estimate(unittest.TestCase):
    def assert_close(self, value, expected, part=0.005):
        self.assertAlmostEqual(value / expected, 1, delta=part)

    def test_100_mb_take_120_ms_on_4_ranks_and_60_ms_in_16_bits(self):
        single = estimate()
        self.assert_close(single["communication_us"], 120e3)
        self.assertEqual(single["sent_bytes"], 150e6)
        half = estimate("--type", "float16")
        self.assert_close(half["communication_us"], 60e3)
        self.assertEqual(half["sent_bytes"], 75e6)

    def test_times_follow_ranks_and_bandwidth(self):
        for ranks in (2, 3, 8, 16):
            for gbits in (1, 10):
                found = estimate(where=("--ranks", str(ranks), "--link", f"{gbits}Gbit"))
                self.assert_close(found["communication_us"], 2 * (ranks - 1) / ranks * 100e6 / (gbits * 125), 0.03)

    def test_40_percent_communication_halved_and_half_hidden_leave_10_of_100(self):
        for arguments, step_ms in ((("--overlap", "0%"), 300), (("--overlap", "0%", "--type", "float16"), 240),
                                   (("--overlap", "50%", "--type", "float16"), 210)):
            found = estimate(*arguments, compute="180ms")
            self.assert_close(found["step_us"], 1e3 * step_ms)
            self.assert_close(found["efficiency"], 180 / step_ms)

    def test_backward_pass_limits_requested_overlap(self):
        found = estimate("--overlap", "100%", compute="90ms")
        self.assert_close(found["hidden_us"], 60e3)

    def test_buckets_overlap_as_explain_predicts_their_times(self):
        for bucket, compute_us in ((25 * MIB, 300e3), (40 * MIB, 60e3), (1 * MIB, 300e3)):
            sizes = [bucket] * (100_000_000 // bucket) + [100_000_000 % bucket]
            times = {size: explained_us(size, "--ranks", "4", "--transport", "tcp", "--link", "10") for size in set(sizes)}
            found = estimate("--bucket", str(bucket), compute=f"{compute_us:.0f}us")
            self.assertEqual(found["buckets"], len(sizes))
            self.assert_close(found["communication_us"], sum(times[size] for size in sizes), 1e-4)
            expected = exposed_us(sizes, [times[size] for size in sizes], compute_us * 2 / 3)
            self.assert_close(found["exposed_us"], expected, 1e-3)

    def test_topology_has_the_times_of_explain(self):
        where = ("--topology", "dgx-h100", "--hosts", "2")
        found = estimate("--bucket", "200M", where=where)
        self.assertEqual((found["ranks"], found["buckets"]), (16, 1))
        self.assert_close(found["communication_us"], explained_us(100_000_000, *where), 1e-4)
        self.assertEqual(found["exposed_us"], found["communication_us"])  # Gradients of one bucket are ready at the end.

    def test_accumulation_communicates_once_per_step(self):
        one, four = estimate(), estimate("--accumulate", "4")
        for name in ("sent_bytes", "communication_us", "exposed_us"):
            self.assertEqual(four[name], one[name], name)
        self.assertEqual(four["compute_us"], 4 * one["compute_us"])

    def test_changes_are_estimates_with_one_other_option(self):
        for arguments in ((), ("--overlap", "20%"), ("--type", "float64"), ("--compress", "bf16", "--accumulate", "3")):
            found = estimate(*arguments)
            self.assertGreaterEqual(len(found["changes"]), 3)
            efficiencies = [change["efficiency"] for change in found["changes"]]
            self.assertEqual(efficiencies, sorted(efficiencies, reverse=True))
            for change in found["changes"]:
                words = change["option"].split()
                where, kept = dict(zip(ON_LINK[::2], ON_LINK[1::2])), dict(zip(arguments[::2], arguments[1::2]))
                if words[0] == "no":
                    del kept[words[1]]
                else:
                    (where if words[0] in where else kept)[words[0]] = words[1]
                flat = [word for options in (where, kept) for pair in options.items() for word in pair]
                again = estimate(*flat, where=())
                for name in ("sent_bytes", "communication_us", "step_us", "efficiency"):
                    self.assertEqual(again[name], change[name], (arguments, change["option"], name))

    def test_conclusion_names_the_change_that_saves_most(self):
        found = estimate("--overlap", "0%", compute="180ms")
        best = found["changes"][0]
        self.assertEqual(best["option"], "--compress int8")
        saved = 100 * (1 - found["efficiency"] / best["efficiency"])
        self.assertEqual(found["conclusion"], f"--compress int8 helps most: the same computation takes {saved:.1f} % less time.")
        self.assertIn("No single change saves 1 %", estimate(compute="1000s")["conclusion"])


if __name__ == "__main__":
    unittest.main()
