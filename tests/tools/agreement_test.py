#!/usr/bin/env python3
"""Compares the times of `tutti explain --topology` and `tutti simulate`.  agreement_test.py PATH/tutti"""

import json
import subprocess
import sys
import unittest

TUTTI = sys.argv.pop() if len(sys.argv) > 1 else "build/tools/tutti"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Collectives whose --bytes are a block in explain and the larger buffer of a rank in simulate.
OF_BLOCKS = ("all_gather", "reduce_scatter", "all_to_all")


def run(*arguments):
    done = subprocess.run([TUTTI, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def name_of(candidate):
    return candidate["algorithm"], candidate["protocol"]


class Agreement(unittest.TestCase):
    def compare(self, collective, whole_bytes, *where):
        """Returns what both commands print, after a comparison of all times that both have."""
        simulated = run("simulate", "--collective", collective, "--bytes", str(whole_bytes), *where)
        block_bytes = whole_bytes // simulated["ranks"] if collective in OF_BLOCKS else whole_bytes
        explained = run("explain", "--collective", collective, "--bytes", str(block_bytes), *where)
        runs = simulated["sizes"][0]["runs"]
        times = {name_of(each): each["time_us"] for each in runs}
        common = [each for each in explained["candidates"] if each["predicted_us"] and name_of(each) in times]
        for each in common:
            ratio = each["predicted_us"] / times[name_of(each)]
            self.assertAlmostEqual(ratio, 1, places=4, msg=f"{name_of(each)} {collective} {whole_bytes} {where}")
        self.assertGreaterEqual(len(common), 2)
        return explained, runs

    def test_times_are_equal_within_a_host(self):
        for whole_bytes in (8 * KIB, MIB, 16 * MIB, GIB):
            self.compare("all_reduce", whole_bytes, "--topology", "dgx-h100")
        self.compare("all_gather", 8 * MIB, "--topology", "dgx-a100")

    def test_times_are_equal_between_hosts(self):
        for collective in ("all_reduce", "reduce_scatter", "broadcast"):
            self.compare(collective, 16 * MIB, "--topology", "dgx-h100", "--hosts", "4")
        self.compare("all_reduce", GIB, "--topology", "dgx-h100", "--hosts", "64", "--protocol", "Simple")

    def test_times_are_equal_with_nvlink_domains(self):
        self.compare("all_reduce", 16 * MIB, "--topology", "gb200-nvl72")
        self.compare("all_reduce", 16 * MIB, "--topology", "gb200-nvl72", "--hosts", "36")
        self.compare("all_gather", 16 * MIB, "--topology", "dgx-b200", "--hosts", "4", "--nvlink-domain", "2")

    def test_closed_form_of_the_tuner_is_close(self):
        """Without --topology, explain predicts with the tuner's closed form. Both have the same costs of kernels. The closed form
        is rough for LL in many chunks, and counts each message of Simple as a step, which matters for short ones."""
        for size in (8, 64 * KIB, 512 * KIB, 16 * MIB, 256 * MIB):
            common = ("explain", "--collective", "all_reduce", "--bytes", str(size))
            closed, simulated = ({name_of(each): each["predicted_us"] for each in run(*common, *where)["candidates"]}
                                 for where in (("--memory", "cuda", "--ranks", "8"), ("--topology", "dgx-h100")))
            short = [("one_shot", "LL"), ("two_shot", "LL"), ("ring", "LL")]
            for name in [("ring", "Simple"), *(short if size <= 512 * KIB else [("two_shot", "Simple")])]:
                self.assertAlmostEqual(closed[name] / simulated[name], 1, delta=0.25, msg=(name, size))

    def test_both_name_the_choice_of_the_library_when_another_candidate_is_faster(self):
        for size, topology in ((64 * KIB, "dgx-h100"), (MIB, "dgx-b200")):
            explained, runs = self.compare("all_reduce", size, "--topology", topology)
            chosen = explained["candidates"][0]
            fastest = min(explained["candidates"], key=lambda each: each["predicted_us"])
            self.assertLess(fastest["predicted_us"], chosen["predicted_us"])
            self.assertIn("chosen: " + "/".join(name_of(chosen)), explained["reason"])
            self.assertIn("The choice is not the fastest by these predictions: " + "/".join(name_of(fastest)),
                          explained["reason"])
            self.assertIn(f"Tutti would choose {'/'.join(name_of(chosen))}, which takes", " ".join(runs[0]["notes"]))

    def test_explain_names_the_launch_of_simulated_times(self):
        call = ("explain", "--collective", "all_reduce", "--bytes", "64K")
        self.assertEqual(run(*call, "--topology", "dgx-h100")["launch"], "eager")
        self.assertIsNone(run(*call, "--memory", "cuda", "--ranks", "8")["launch"], "not simulated")

    def test_explain_does_not_criticize_the_fastest_choice(self):
        explained = run("explain", "--collective", "all_reduce", "--bytes", "64K", "--topology", "dgx-h100", "--algorithm",
                        "two_shot")
        best = min(explained["candidates"], key=lambda each: each["predicted_us"])
        self.assertEqual(best, explained["candidates"][0])
        self.assertNotIn("not the fastest", explained["reason"])

    def test_both_say_that_several_hosts_are_not_validated(self):
        validated, emulated = "Times of several hosts are not validated", "Tutti was emulated there, and has not run on one"
        for where, expected in ((("dgx-h100",), []), (("dgx-h100", "--hosts", "2"), [validated]),
                                (("gb200-nvl72",), [validated, emulated])):
            explained, runs = self.compare("all_reduce", MIB, "--protocol", "Simple", "--topology", *where)
            for notes in (explained["notes"], runs[0]["notes"]):
                self.assertEqual([text for text in (validated, emulated) if text in " ".join(notes)], expected, where)


if __name__ == "__main__":
    unittest.main()
