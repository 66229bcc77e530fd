"""Tests of symbols.py, which parses the loader's report."""

import unittest

import symbols

OURS, NVIDIAS, TORCH = "/ours/libnccl.so.2", "/wheel/libnccl.so.2", "/torch/libtorch_cuda.so"


def line(asked, answered, function, kind="normal"):
    return f"      4711:\tbinding file {asked} [0] to {answered} [0]: {kind} symbol `{function}'\n"


class Bindings(unittest.TestCase):
    def test_are_those_of_functions_of_nccl(self):
        report = [line(TORCH, OURS, "ncclSend"), line(TORCH, OURS, "pncclSend", "protected"),
                  line(TORCH, "/lib/libc.so.6", "malloc").replace("'\n", "' [GLIBC_2.2.5]\n"),
                  line(TORCH, TORCH, "_ZN4c10d5nccl2E"), line(TORCH, TORCH, "nccl_version"), "calling init: x\n"]
        self.assertEqual(symbols.bindings(report), {(TORCH, "ncclSend", OURS), (TORCH, "pncclSend", OURS)})

    def test_to_another_library_are_told_from_what_that_library_asks_itself(self):
        found = symbols.bindings([line(TORCH, OURS, "ncclSend"), line(TORCH, NVIDIAS, "ncclRecv"),
                                  line(NVIDIAS, NVIDIAS, "ncclGetVersion"), line(NVIDIAS, OURS, "ncclRecv")])
        self.assertEqual(symbols.foreign_bindings(found, OURS), {(TORCH, "ncclRecv", NVIDIAS)})


if __name__ == "__main__":
    unittest.main()
