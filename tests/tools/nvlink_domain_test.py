#!/usr/bin/env python3
"""NVLink domains of several hosts in `tutti simulate`.  nvlink_domain_test.py PATH/tutti"""

import json
import subprocess
import sys
import unittest

TUTTI = sys.argv.pop() if len(sys.argv) > 1 else "build/tools/tutti"


def runs(*where):
    done = subprocess.run([TUTTI, "simulate", "--collective", "all_reduce", "--bytes", "64M", "--protocol", "Simple", *where,
                           "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["sizes"][0]["runs"]


def network_bytes(run):
    return sum(link["bytes"] for link in run["links"] if link["kind"] == "network")


class NvlinkDomain(unittest.TestCase):
    def test_gpus_of_a_domain_do_not_use_the_network(self):
        for joined, apart in ((("--topology", "gb200-nvl72"), ("--topology", "gb200-nvl72", "--nvlink-domain", "1")),
                              (("--topology", "dgx-b200", "--hosts", "9", "--nvlink-domain", "9"),
                               ("--topology", "dgx-b200", "--hosts", "9"))):
            with self.subTest(joined=joined):
                within, between = runs(*joined), runs(*apart)
                self.assertEqual([run["algorithm"] for run in within if network_bytes(run) > 0], [])
                self.assertEqual([run["algorithm"] for run in between if network_bytes(run) == 0], [])
                times = {run["algorithm"]: run["time_us"] for run in within}
                for run in between:
                    self.assertLess(times.get(run["algorithm"], 0), run["time_us"], run["algorithm"])
                # Switches are modeled in each host, but not in a domain of several.
                shared = min(run["time_us"] for run in between if run["algorithm"] in times)
                self.assertLess(1.5 * within[0]["time_us"], shared)

    def test_racks_communicate_over_the_network(self):
        one, two = runs("--topology", "gb200-nvl72"), runs("--topology", "gb200-nvl72", "--hosts", "36")
        self.assertEqual([run["algorithm"] for run in two if network_bytes(run) == 0], [])
        self.assertGreater(two[0]["time_us"], one[0]["time_us"])

    def test_hierarchical_algorithms_reduce_within_a_domain_first(self):
        options = ("--topology", "gb200-nvl72", "--hosts", "36", "--algorithm", "hierarchical", "--channels", "2", "--chunk", "32K")
        racks, hosts = runs(*options)[0], runs(*options, "--nvlink-domain", "1")[0]
        # Each rack sends and receives the whole buffer once, divided among its ranks; hosts do so 18 times as often.
        self.assertLess(network_bytes(racks), network_bytes(hosts) / 10)
        self.assertLess(racks["time_us"], hosts["time_us"])


if __name__ == "__main__":
    unittest.main()
