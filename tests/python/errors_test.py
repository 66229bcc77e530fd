"""Exceptions and their fields; peers that die; communicators that are closed, aborted or left open."""

import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest

import numpy
import ranks
import tutti
from tutti import _errors


def fields(error):
    return type(error).__name__, error.status.name, error.operation, error.rank, error.peer


def survive():
    """Rank 1 dies while the others are in a call. The survivors continue without it."""
    comm = tutti.Communicator()
    comm.barrier()
    if comm.rank == 1:
        ranks.kill_self()
    try:
        comm.all_reduce(numpy.ones(1000))
    except tutti.Error as error:
        failure = fields(error)
    assert fields(comm.async_error())[:2] == failure[:2]
    with comm.shrink([1]) as survivors:
        total = survivors.all_reduce(numpy.ones(2)).tolist()
    comm.close()
    return failure, total


class Errors(unittest.TestCase):
    def test_mismatched_calls_name_the_other_rank(self):
        def call(comm):
            return comm.all_reduce(numpy.ones(2 + comm.rank))
        for rank, error in enumerate(ranks.threads(call, 2)):
            self.assertEqual(fields(error), ("InvalidUsage", "invalid_usage", "all_reduce", rank, 1 - rank))
            self.assertRegex(error.message, "^ranks disagree")
            self.assertEqual(str(error), "all_reduce: " + error.message)

    def test_death_of_a_peer_names_its_rank(self):
        first, second, third = ranks.processes(survive, 3)
        self.assertEqual(second, ("killed", signal.SIGKILL))
        self.assertEqual(first, (("RemoteError", "remote_error", "all_reduce", 0, 1), [2, 2]))
        self.assertEqual(third, (("RemoteError", "remote_error", "all_reduce", 2, 1), [2, 2]))

    def test_timeout_names_the_missing_rank(self):
        ended = threading.Event()

        def call(comm):
            if comm.rank == 1:
                ended.wait(ranks.TIMEOUT_S)  # In no call until rank 0 has ended.
                return
            try:
                comm.recv(numpy.ones(1), 1)
            finally:
                ended.set()
        error = ranks.threads(call, 2, timeout=0.2)[0]
        self.assertEqual(fields(error), ("Timeout", "timeout", "recv", 0, 1))

    def test_timeout_names_the_rank_that_delays_the_others(self):
        """Rank 2 is in no call until the others have failed. In the second case rank 0 waits for rank 1, which waits for
        rank 2."""
        for in_collective in (True, False):
            failed = threading.Semaphore(0)

            def call(comm):
                if comm.rank == 2:
                    for _ in range(2):
                        failed.acquire(timeout=ranks.TIMEOUT_S)
                    comm.barrier()
                try:
                    if in_collective:
                        comm.all_reduce(numpy.ones(1))
                    comm.recv(numpy.ones(1), comm.rank + 1)
                finally:
                    failed.release()
            for rank, error in enumerate(ranks.threads(call, 3, timeout=2)):
                self.assertEqual((error.rank, error.peer), (rank, 2 if rank < 2 else None), error)

    def test_abort_ends_waits_of_all_ranks(self):
        def call(comm):
            if comm.rank == 1:
                comm.abort()
            comm.all_reduce(numpy.ones(2))
        first, second = ranks.threads(call, 2)
        self.assertEqual(fields(first), ("Aborted", "aborted", "all_reduce", 0, 1))
        self.assertEqual(fields(second), ("Aborted", "aborted", "all_reduce", 1, None))

    def test_exception_in_with_aborts_and_survivors_shrink(self):
        for failure in (KeyError("defect"), SystemExit(3)):
            def call(comm):
                if comm.rank == 1:
                    with self.assertRaises(type(failure)), comm:
                        raise failure
                    return
                with self.assertRaises(tutti.Aborted) as caught:
                    comm.barrier()
                with comm.shrink([caught.exception.peer]) as survivors:
                    survivors.barrier()
                    return fields(caught.exception)[2:], survivors.ranks
            self.assertEqual(ranks.each(call, 3), [(("all_reduce", 0, 1), 2), None, (("all_reduce", 2, 1), 2)])

    def test_successful_exit_and_exceptions_in_with_over_a_view_do_not_abort(self):
        for code in (None, 0):
            def call(comm):
                with self.assertRaises(KeyError), comm.with_options(compression="raw"):
                    raise KeyError
                comm.barrier()
                if comm.rank == 0:
                    comm.barrier()
                with self.assertRaises(SystemExit), comm:
                    raise SystemExit(code)
            self.assertEqual(fields(ranks.threads(call, 2)[0]), ("InvalidUsage", "invalid_usage", "all_reduce", 0, 1))

    def test_arguments_that_c_refuses_name_no_peer(self):
        with tutti.Communicator() as comm:
            with self.assertRaises(tutti.InvalidArgument) as caught:
                comm.broadcast(numpy.ones(2), root=3)
            self.assertEqual(fields(caught.exception), ("InvalidArgument", "invalid_argument", "broadcast", 0, None))
            self.assertIsNone(comm.async_error())

    def test_messages_have_names_of_python(self):
        with self.assertRaisesRegex(tutti.InvalidArgument, "int9.*; while reading compression$"):
            tutti.Communicator(compression="int9")
        with tutti.Communicator() as comm:
            with self.assertRaisesRegex(tutti.InvalidArgument, "^irecv: peer 3 is out of range; ranks are 0..0, or None$"):
                comm.irecv(numpy.ones(2), 3)
            with self.assertRaisesRegex(tutti.InvalidArgument, "pass 0 or more, or None$"):
                comm.split(-5)
            with tutti.group(), self.assertRaisesRegex(tutti.InvalidUsage, r"end the group first \(tutti.group\(\)\)$"):
                comm.split(0)
        for text, expected in {
                "rank 1: tutti_reduce #2: open /tmp/tutti_reduce, tutti_bad: see TUTTI_TUNE; use a group (tutti_group_start)":
                "rank 1: reduce #2: open /tmp/tutti_reduce, tutti_bad: see TUTTI_TUNE; use a group (tutti.group())",
                "open /etc/tutti/options.tune, my.options.tune, x-options.tune: options.tuning->algorithm, options.name":
                "open /etc/tutti/options.tune, my.options.tune, x-options.tune: algorithm, name",
                "call tutti_get_unique_id": "call tutti.UniqueId()",
                "this handle comes from tutti_comm_with_options": "this handle comes from with_options"}.items():
            self.assertEqual(str(_errors.error_of(tutti.Status.invalid_usage, text)), expected)

    def test_errors_of_calls_in_a_stream_name_ranks_and_operation(self):
        """The stream has calls of two communicators, in which this process has different ranks."""
        def wait(stream, errors):
            stream.add_callback(errors.append)
            stream.synchronize()

        def query(stream, errors):
            while not stream.query():
                pass

        for end in (wait, query, lambda stream, errors: stream.close()):
            ended, errors = threading.Event(), []

            def call(comm):
                pair = comm.split(0, key=-comm.rank)
                stream = tutti.Stream()
                pair.barrier(stream=stream)
                if comm.rank == 1:
                    stream.synchronize()
                    return ended.wait(ranks.TIMEOUT_S)  # In no call until rank 0 has ended.
                comm.with_options(timeout=0.2).recv(numpy.ones(1), 1, stream=stream)
                try:
                    end(stream, errors)
                finally:
                    ended.set()
            errors.append(ranks.threads(call, 2)[0])
            for error in errors:
                self.assertEqual(fields(error), ("Timeout", "timeout", "recv", 0, 1), error)

    def test_error_of_a_group_names_the_rank_of_its_communicator(self):
        ended = threading.Event()

        def call(comm):
            if comm.rank == 1:
                return ended.wait(ranks.TIMEOUT_S)
            try:
                with tutti.group():
                    comm.recv(numpy.ones(1), 1)
            finally:
                ended.set()
        self.assertEqual(fields(ranks.threads(call, 2, timeout=0.2)[0]), ("Timeout", "timeout", "recv", 0, 1))

    def test_async_error_names_the_operation(self):
        def call(comm):
            try:
                comm.all_reduce(numpy.ones(2 + comm.rank))
            except tutti.Error as error:
                return fields(comm.async_error())[2:], error.operation
        for rank, (seen, operation) in enumerate(ranks.threads(call, 2)):
            self.assertEqual((seen[1:], operation), ((rank, 1 - rank), "all_reduce"))

    def test_longest_timeouts_are_accepted(self):
        for seconds in (1e16, 1e300):
            with tutti.Communicator(timeout=seconds) as comm:
                comm.barrier()

    def test_arguments_of_wrong_types_are_refused(self):
        with tutti.Communicator() as comm, tutti.Stream() as stream:
            with self.assertRaisesRegex(tutti.InvalidArgument, "excluded is None; pass a list of ranks"):
                comm.shrink(None)
            with self.assertRaisesRegex(tutti.InvalidArgument, "function is 3; pass a function of one argument"):
                stream.add_callback(3)
        with self.assertRaisesRegex(tutti.InvalidArgument, "the id is text; pass bytes"):
            tutti.UniqueId("x" * 128)

    def test_closed_communicator_is_refused(self):
        comm = tutti.Communicator()
        view = comm.with_options(compression="raw")
        comm.close()
        comm.close()
        for call in (lambda: comm.all_reduce(numpy.ones(2)), comm.abort, comm.synchronize, lambda: comm.split(0),
                     lambda: comm.handle):
            with self.assertRaisesRegex(tutti.InvalidUsage, "the communicator is closed; create another one"):
                call()
        with self.assertRaises(tutti.InvalidArgument):
            view.all_reduce(numpy.ones(2))
        self.assertIn("closed", repr(comm))

    def test_exceptions_survive_pickling(self):
        with tutti.Communicator() as comm:
            with self.assertRaises(tutti.Error) as caught:
                comm.all_reduce([1])
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((fields(copy), str(copy)), (fields(caught.exception), str(caught.exception)))

    def test_options_are_checked(self):
        for options, words in (({"timeout": 0}, "timeout is 0; it must be a number of seconds above 0, or math.inf"),
                               ({"timeout": "1"}, "timeout is '1'"), ({"timeout": math.nan}, "timeout is nan"),
                               ({"timeuot": 1}, "option 'timeuot' is unknown; options are name, "),
                               ({"name": 3}, "name is 3; it must be a string"),
                               ({"name": "a\0b"}, "name is 'a.x00b'; it must not contain a null character"),
                               ({"channels": "x"}, "channels is 'x'; it must be an integer"),
                               ({"channels": True}, "channels is True; it must be an integer"),
                               ({"min_channels": 1 << 32}, "min_channels is 4294967296; it must be 0 or more, and fit in 32 bits"),
                               ({"traffic_class": -1}, "traffic_class is -1; it must be 0 or more"),
                               ({"traffic_class": 1 << 64}, "it must be 0 or more, and fit in 64 bits"),
                               ({"max_relative_error": "x"}, "max_relative_error is 'x'; it must be a number"),
                               ({"compression": "int7"}, "int7"), ({"algorithm": "rnig"}, "rnig")):
            with self.assertRaisesRegex(tutti.InvalidArgument, words):
                tutti.Communicator(**options)

    def test_library_without_the_functions_is_refused(self):
        run = subprocess.run([sys.executable, "-c", "import tutti"], capture_output=True, text=True,
                             env={**os.environ, "TUTTI_LIBRARY": "libc.so.6"})
        self.assertRegex(run.stderr, "ImportError: tutti: libc.so.6 has no tutti_status_name: install a library of the "
                         "package's version")

    def test_missing_library_lists_what_was_tried(self):
        run = subprocess.run([sys.executable, "-c", "import tutti"], capture_output=True, text=True,
                             env={**os.environ, "TUTTI_LIBRARY": "/nonexistent/libtutti.so"})
        self.assertRegex(run.stderr, "ImportError: tutti: libtutti.so cannot be loaded; tried the variable TUTTI_LIBRARY "
                         ".*/nonexistent/libtutti.so.*: install the package with `pip install ./python`, or set TUTTI_LIBRARY")

    def test_missing_pytorch_is_one_sentence(self):
        for argument in ("import tutti.torch", "import tutti.torch.build"):
            run = subprocess.run([sys.executable, "-c", "import sys; sys.modules['torch'] = None; " + argument],
                                 capture_output=True, text=True)
            self.assertRegex(run.stderr, r"\nImportError: tutti.torch needs PyTorch 2.9 or newer, which is not installed: run "
                             r"`pip install 'torch>=2.9'`; without PyTorch, `import tutti` works .*\n$")
            self.assertNotIn("ModuleNotFoundError", run.stderr)


if __name__ == "__main__":
    unittest.main()
