"""Creation, split, shrink, views, options, compression, fork, and communicators that a program leaves open."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import unittest

import numpy
import ranks
import tutti


def create_by_id(data, first):
    comm = tutti.Communicator.create(tutti.UniqueId(data), int(os.environ["TUTTI_RANK"]) + first, 3, timeout=60)
    with comm:
        return comm.all_gather(numpy.array([comm.rank])).tolist()


def split_by_parity():
    with tutti.Communicator(name="all") as comm:
        part = comm.split(comm.rank % 2, key=-comm.rank)
        members = part.all_gather(numpy.array([comm.rank]))[:, 0].tolist()
        alone = comm.split(None if comm.rank else 0)
        part.close()
        if alone is not None:
            alone.close()
        return members, part.rank, alone is None


def compress():
    with tutti.Communicator(compression="int8") as comm:
        numbers = numpy.linspace(-1, 1, 100000, dtype="float32")
        total = comm.all_reduce(numbers)
        error = float(abs(total - comm.ranks * numbers).max())
        chosen = comm.last_compression()
        exact = comm.with_options(compression="raw")
        same = bool((exact.all_reduce(numbers) == comm.ranks * numbers).all())
        return error, chosen.format, chosen.error > 0, same, comm.last_compression().format, comm.compression_statistics()


def feed_back():
    """Sums of a constant have no error on average with error feedback, and always the same error without."""
    with tutti.Communicator(compression="int4") as comm:
        numbers = numpy.linspace(0.1, 0.9, 4096, dtype="float32") ** 3
        residual = numpy.zeros_like(numbers)
        expected = comm.ranks * numbers
        errors = []
        for attached in (False, True):
            if attached:
                comm.attach_residual(numbers, residual)
            mean = sum(comm.all_reduce(numbers) for _ in range(50)) / 50
            errors.append(float(abs(mean - expected).mean()))
        comm.detach_residual(numbers)
        return errors


def use_shared_memory():
    with tutti.Communicator() as comm:
        numbers = tutti.zeros(1 << 18)
        numbers[1:] = comm.rank
        comm.all_reduce(numbers[1:], out=numbers[1:])
        return numbers[:2].tolist(), comm.last_choice().algorithm


def fork_with_communicator():
    comm = tutti.Communicator()
    comm.barrier()
    child = os.fork()
    if child == 0:
        try:
            comm.all_reduce(numpy.ones(1))
        except tutti.Error as error:
            del comm
            os._exit(7 if isinstance(error, tutti.InvalidArgument) else 8)
        os._exit(9)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    total = comm.all_reduce(numpy.ones(1))[0]
    comm.close()
    return status, total


def leave_open():
    comm = tutti.Communicator()
    out = numpy.zeros(1)
    comm.all_reduce(numpy.ones(1), out=out, stream=tutti.Stream())
    globals()["kept"] = comm  # Until the interpreter ends.


# Rank 0 fails while a call in a stream waits for rank 1, which is in no call.
FAILING = """
import sys, time, numpy, tutti
comm = tutti.Communicator()
comm.barrier()
if comm.rank == 0:
    stream = tutti.Stream()
    comm.recv(numpy.ones(1), 1, stream=stream)
    raise KeyError("of the program")
while comm.async_error() is None:
    time.sleep(0.01)
print(type(comm.async_error()).__name__, comm.async_error().peer)
"""


class Communicators(unittest.TestCase):
    def test_without_launcher_there_is_one_rank(self):
        launchers = ("TUTTI_RANK", "RANK", "WORLD_SIZE", "OMPI", "PMI", "SLURM")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(launchers)}
        run = subprocess.run([sys.executable, "-c", "import tutti; print(tutti.Communicator())"], env=variables, text=True,
                             capture_output=True)
        self.assertEqual(run.stdout, "<tutti.Communicator rank 0 of 1>\n", run.stderr)

    def test_unique_id_joins_processes(self):
        with self.assertRaisesRegex(tutti.InvalidArgument, "the id has 3 bytes; it must have 128"):
            tutti.UniqueId(b"abc")
        id = tutti.UniqueId()
        others = []
        thread = threading.Thread(target=lambda: others.extend(ranks.processes(create_by_id, 2, bytes(id), 1)))
        thread.start()
        with tutti.Communicator.create(id, 0, 3, timeout=60) as comm:
            gathered = comm.all_gather(numpy.array([comm.rank])).tolist()
        thread.join(ranks.TIMEOUT_S)
        self.assertEqual([gathered, *others], [[[0], [1], [2]]] * 3)

    def test_objects_with_handles_can_be_neither_copied_nor_pickled(self):
        with tutti.Communicator() as comm, tutti.Stream() as stream:
            request = comm.irecv(numpy.ones(1), 0)
            for handle in (comm, stream, tutti.Event(), comm.pre_mul_sum(2, "int8"), request):
                for call in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, f"tutti.{type(handle).__name__} can be neither copied nor pickled"):
                        call(handle)
            request.cancel()

    def test_split_orders_ranks_by_key(self):
        results = ranks.processes(split_by_parity, 4)
        self.assertEqual(results, [([2, 0], 1, False), ([3, 1], 1, True), ([2, 0], 0, True), ([3, 1], 0, True)])

    def test_compression_changes_results_and_views_switch_it_off(self):
        for error, name, positive, same, last, statistics in ranks.processes(compress, 2):
            self.assertTrue(0 < error < 0.05, error)
            self.assertEqual((name, positive, same, last), ("int8", True, True, "raw"))
            self.assertEqual(statistics.compressed_calls, 1)
            self.assertGreater(statistics.element_bytes, 3 * statistics.message_bytes)

    def test_error_feedback_removes_the_mean_error(self):
        for without, with_feedback in ranks.processes(feed_back, 2):
            self.assertLess(with_feedback, without / 5)

    def test_peers_access_arrays_of_zeros_in_place(self):
        for numbers, algorithm in ranks.processes(use_shared_memory, 2):
            self.assertEqual(numbers, [0, 1])
            self.assertRegex(algorithm, "_mapped$")

    def test_child_of_fork_cannot_use_the_communicator(self):
        self.assertEqual(ranks.processes(fork_with_communicator, 2), [(7, 2.0)] * 2)

    def test_program_that_leaves_a_communicator_open_ends(self):
        self.assertEqual(ranks.processes(leave_open, 2), [None, None])

    def test_program_that_fails_releases_its_peers(self):
        children = [subprocess.Popen([sys.executable, "-c", FAILING], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, "TUTTI_RANK": str(rank), "TUTTI_RANKS": "2"}) for rank in range(2)]
        (_, first), (second, _) = (child.communicate(timeout=ranks.TIMEOUT_S) for child in children)
        self.assertRegex(first, "KeyError: 'of the program'")
        self.assertEqual(second, "Aborted 0\n")

    def test_algorithms_can_be_listed_and_forced(self):
        names = tutti.algorithms("all_reduce")
        self.assertIn("ring", names)

        def call(comm):
            comm.all_reduce(numpy.ones(1000))
            return comm.last_choice()
        for choice in ranks.threads(call, 2, algorithm="ring", protocol="Simple"):
            self.assertEqual(choice, ("ring", "Simple"))


if __name__ == "__main__":
    unittest.main()
