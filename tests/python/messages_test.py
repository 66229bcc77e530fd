"""Messages with tags: matching, requests, errors, and the lifetime of arrays."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy
import ranks
import tutti
from tutti import _callbacks, _communicator

LARGE = 100000  # More than 64 KiB: the send is complete only after the receive has begun.


class Numbers(numpy.ndarray):
    """An array whose deallocation a test can observe."""


def numbers_of(source, peer, tag, count=5):
    return numpy.arange(count) + 1000 * source + 100 * peer + 10 * tag


def exchange():
    """Each rank sends three messages to each rank, itself included, and receives them in the reverse order of tags."""
    with tutti.Communicator() as comm:
        peers, tags = range(comm.ranks), (0, 1, (1 << 64) - 1)
        sends = [comm.isend(numbers_of(comm.rank, peer, i), peer, tag) for i, tag in enumerate(tags) for peer in peers]
        for i, tag in reversed(list(enumerate(tags))):
            for peer in peers:
                out = numpy.zeros(5, int)
                assert comm.irecv(out, peer, tag).wait() == tutti.Message(peer, tag, 5)
                assert (out == numbers_of(peer, comm.rank, i)).all(), out
        assert [send.wait().peer for send in sends] == list(peers) * 3
        comm.barrier()


def collect():
    """Rank 0 receives a large message from each rank, in any order, while all ranks are in collectives."""
    with tutti.Communicator() as comm:
        send = comm.isend(numpy.full(LARGE, comm.rank, "complex64"), 0, 3)
        outs = [numpy.empty(LARGE, "complex64") for _ in range(comm.ranks)] if comm.rank == 0 else []
        receives = [comm.irecv(out, tag=3) for out in outs]
        comm.barrier()
        sources = [receive.wait().peer for receive in receives]
        assert [out[-1] for out in outs] == sources
        send.wait()
        comm.barrier()
        return sorted(sources)


def exchange_and_collect():
    exchange()
    return collect()


def survive():
    """Rank 1 dies while the others wait for its message."""
    comm = tutti.Communicator()
    comm.barrier()
    if comm.rank == 1:
        ranks.kill_self()
    request = comm.irecv(numpy.zeros(3), 1)
    try:
        with comm:
            request.wait()
    except tutti.Error as error:
        return type(error).__name__, error.rank, error.peer, request.done()


# A request with a callback is in progress when the program ends.
ENDING = """
import numpy, tutti
comm = tutti.Communicator()
request = comm.irecv(numpy.zeros(3), 0, 1)
request.add_done_callback(lambda request: print(request, flush=True))
"""


class Messages(unittest.TestCase):
    def alone(self):
        comm = tutti.Communicator()
        self.addCleanup(comm.leave)
        return comm

    def test_messages_match_by_source_and_tag_or_of_any_rank(self):
        for size in (1, 2, 3, 4):
            with self.subTest(ranks=size):
                self.assertEqual(ranks.processes(exchange_and_collect, size)[0], list(range(size)))

    def test_probe_finds_a_message_and_leaves_it(self):
        def call(comm):
            if comm.rank == 1:
                return comm.isend(numpy.arange(7), 0, 4).wait()
            end, found = time.monotonic() + ranks.TIMEOUT_S, None
            while found is None and time.monotonic() < end:
                found = comm.iprobe(tag=4)
            others = comm.iprobe(tag=5), comm.iprobe(0, 4)
            out = numpy.zeros(found.count, int)
            return found, others, comm.iprobe(1, 4), comm.irecv(out, 1, 4).wait(), out.tolist()
        message = tutti.Message(1, 4, 7)
        self.assertEqual(ranks.each(call)[0], (message, (None, None), message, message, list(range(7))))

    def test_request_keeps_its_array_until_it_is_complete(self):
        comm = self.alone()
        out = numpy.zeros(5, int).view(Numbers)
        life = weakref.ref(out)
        request = comm.irecv(out, 0)
        del out
        gc.collect()
        self.assertIsNotNone(life())
        comm.isend(numpy.arange(5), 0).wait()
        request.wait()
        self.assertIsNone(life())

    def test_forgotten_send_is_sent_and_its_array_released(self):
        comm = self.alone()
        numbers = numpy.full(LARGE, 7).view(Numbers)
        life = weakref.ref(numbers)
        released = threading.Event()
        weakref.finalize(numbers, released.set)
        comm.isend(numbers, 0, 1)
        del numbers
        gc.collect()
        self.assertIsNotNone(life())
        out = numpy.zeros(LARGE, int)
        comm.irecv(out, 0, 1).wait()
        self.assertEqual(out[-1], 7)
        self.assertTrue(released.wait(ranks.TIMEOUT_S))
        comm.isend(numpy.zeros(1), 0, 2)  # Complete at once, so that no callback is registered.
        self.assertEqual(_callbacks._waiting, {})

    def test_timeout_leaves_request_and_communicator_usable(self):
        turn = threading.Event()

        def call(comm):
            if comm.rank == 1:
                turn.wait(ranks.TIMEOUT_S)
                comm.isend(numpy.arange(3), 0).wait()
            else:
                out = numpy.zeros(3, int)
                request = comm.irecv(out, 1)
                with self.assertRaisesRegex(tutti.Timeout, "irecv is not complete after 0.01 s; it continues") as caught:
                    request.wait(0.01)
                self.assertEqual((caught.exception.operation, caught.exception.rank), ("request_wait", 0))
                self.assertFalse(request.done())
                with self.assertRaises(tutti.Timeout):
                    request.wait(0)
                turn.set()
                self.assertEqual(request.wait(ranks.TIMEOUT_S), tutti.Message(1, 0, 3))
                self.assertEqual((out.tolist(), request.done()), ([0, 1, 2], True))
            return comm.all_reduce(numpy.ones(1))[0]
        self.assertEqual(ranks.each(call), [2, 2])

    def test_other_count_or_type_fails_on_both_ranks(self):
        for out in (numpy.zeros(LARGE + 1), numpy.zeros(LARGE, "complex64")):
            def call(comm):
                request = comm.irecv(out, 1) if comm.rank == 0 else comm.isend(numpy.zeros(LARGE), 0)
                for _ in range(2):
                    with self.assertRaisesRegex(tutti.InvalidUsage, f"{LARGE} float64"):
                        request.wait()
                return comm.all_reduce(numpy.ones(1))[0]
            self.assertEqual(ranks.each(call), [2, 2])

    def test_death_of_the_sender_ends_receives(self):
        first, second, third = ranks.processes(survive, 3)
        self.assertEqual(second, ("killed", signal.SIGKILL))
        self.assertEqual(first, ("RemoteError", 0, 1, True))
        self.assertEqual(third, ("RemoteError", 2, 1, True))

    def test_cancelled_receive_matches_no_message(self):
        comm = self.alone()
        first = comm.irecv(numpy.zeros(3), 0)
        second = comm.irecv(numpy.zeros(3), 0)
        first.cancel()
        with self.assertRaisesRegex(tutti.Aborted, "irecv was cancelled") as caught:
            first.wait()
        self.assertIsNone(caught.exception.peer)
        comm.isend(numpy.ones(3), 0).wait()
        second.wait()
        second.cancel()
        self.assertEqual(second.wait().count, 3)

    def test_cancel_ends_the_wait_of_another_thread(self):
        comm = self.alone()
        request = comm.irecv(numpy.zeros(3), 0)
        caught = []

        def wait():
            try:
                request.wait()
            except tutti.Aborted as error:
                caught.append(error.message)
        thread = threading.Thread(target=wait)
        thread.start()
        request.cancel()
        thread.join(ranks.TIMEOUT_S)
        self.assertEqual(caught, ["irecv was cancelled"])

    def test_end_of_the_communicator_ends_requests(self):
        for end, kind in ((tutti.Communicator.leave, tutti.InvalidUsage), (tutti.Communicator.abort, tutti.Aborted)):
            comm = self.alone()
            request = comm.irecv(numpy.zeros(3), 0)
            end(comm)
            with self.assertRaises(kind):
                request.wait(ranks.TIMEOUT_S)

    def test_callback_gets_the_complete_request_once(self):
        comm = self.alone()
        called, done = [], threading.Event()

        def note(request):
            called.append((request.done(), request.wait().count))
            done.set()
        request = comm.irecv(numpy.zeros(3), 0)
        request.add_done_callback(note)
        with self.assertRaisesRegex(tutti.InvalidUsage, "has a completion function already"):
            request.add_done_callback(note)
        gc.collect()
        self.assertEqual(called, [])
        comm.isend(numpy.zeros(3), 0)
        self.assertTrue(done.wait(ranks.TIMEOUT_S))
        self.assertEqual(called, [(True, 3)])
        request.add_done_callback(note)
        self.assertEqual(called, [(True, 3)] * 2)

    def in_library_thread(self, comm, function):
        """Calls a function in a callback of a message to this rank. Returns its exception as sys.unraisablehook gets it."""
        reported, done = [], threading.Event()

        def hook(unraisable):
            reported.append(unraisable.exc_value)
            done.set()
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = hook
        request = comm.irecv(numpy.zeros(1), comm.rank)
        request.add_done_callback(lambda _: function())
        comm.isend(numpy.zeros(1), comm.rank)
        self.assertTrue(done.wait(ranks.TIMEOUT_S))
        return reported[0]

    def test_callbacks_that_would_wait_for_themselves_are_refused(self):
        comm = self.alone()
        other = comm.irecv(numpy.zeros(1), 0, 9)
        for wait, operation in ((other.wait, "request_wait"), (other.cancel, "request_destroy"), (comm.close, "comm_destroy")):
            error = self.in_library_thread(comm, wait)
            self.assertIsInstance(error, tutti.InvalidUsage)
            self.assertEqual(str(error), operation + ": a callback must not wait; call it in a thread of the program")
        comm.isend(numpy.zeros(1), 0, 9)
        self.assertEqual(other.wait(ranks.TIMEOUT_S).tag, 9)
        other.wait()

    def test_arrays_in_host_memory_are_sent_with_a_gpu(self):
        comm = self.alone()
        comm._describe = _communicator._described_on_gpu  # As if comm.device were 0.
        with self.assertRaisesRegex(tutti.InvalidArgument, "a collective on a GPU needs a tutti.Buffer"):
            comm.all_reduce(numpy.ones(3))
        out = numpy.zeros(3)
        receive = comm.irecv(out, 0, 4)
        comm.isend(numpy.arange(3.0), 0, 4).wait()
        receive.wait()
        self.assertEqual(out.tolist(), [0, 1, 2])

    def test_wrong_arguments_are_refused(self):
        comm = self.alone()
        for call, words in ((lambda: comm.isend(numpy.ones(1), 0, -1), "isend: tag is -1; it must be an integer, 0 or more, "),
                            (lambda: comm.isend(numpy.ones(1), 0, 0.5), "isend: tag is 0.5; it must be an integer"),
                            (lambda: comm.isend(numpy.ones(1), 1 << 32), "isend: peer is 4294967296; it must fit in 32 bits"),
                            (lambda: comm.iprobe("0"), "iprobe: peer is '0'; it must be an integer"),
                            (lambda: comm.iprobe(tag=1 << 64), "iprobe: tag is 18446744073709551616"),
                            (lambda: comm.irecv(numpy.ones(1), 1), "irecv: peer 1 is out of range; ranks are 0..0, or "),
                            (lambda: comm.isend(numpy.ones(1), -1), "isend: peer -1 is out of range; ranks are 0..0$"),
                            (lambda: comm.irecv(b"abc"), "irecv: the bytes is read-only"),
                            (lambda: comm.isend([1], 0), "isend: an object of class list is not an array"),
                            (lambda: comm.irecv(numpy.ones(1)).wait(-1), "timeout is -1; it must be 0 or more seconds"),
                            (lambda: comm.irecv(numpy.ones(1)).wait("1"), "timeout is '1'; it must be")):
            with self.assertRaisesRegex(tutti.InvalidArgument, words):
                call()
        comm.leave()
        with self.assertRaisesRegex(tutti.InvalidUsage, "irecv: the communicator is closed"):
            comm.irecv(numpy.ones(1))

    def test_program_that_leaves_a_request_with_a_callback_ends(self):
        run = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=ranks.TIMEOUT_S,
                             env={**os.environ, "TUTTI_RANK": "0", "TUTTI_RANKS": "1"})
        self.assertEqual((run.returncode, run.stdout), (0, "<tutti.Request irecv of rank 0, failed>\n"), run.stderr)


if __name__ == "__main__":
    unittest.main()
