"""Streams, events and groups, and the lifetime of arrays in them."""

import gc
import os
import subprocess
import sys
import threading
import unittest
import weakref

import numpy
import ranks
import tutti
from tutti import _callbacks


class Numbers(numpy.ndarray):
    """An array whose deallocation a test can observe."""


def observed(value):
    numbers = numpy.full(1000, float(value)).view(Numbers)
    return numbers, weakref.ref(numbers)


class Turns:
    """Lets rank 1 enter a call only after rank 0 has examined its own, unfinished one."""

    def __init__(self):
        self.examined = threading.Event()

    def wait(self):
        assert self.examined.wait(ranks.TIMEOUT_S)


# Calls and callbacks are in progress when the program ends. The callbacks run longer than the calls.
ENDING = """
import numpy, tutti
comm, stream = tutti.Communicator(), tutti.Stream()
for i in range(20):
    comm.all_reduce(numpy.ones(10), stream=stream)
    stream.add_callback(lambda error, i=i: print(sum(range(300000)) and i, error, flush=True))
"""


class Streams(unittest.TestCase):
    def test_results_are_there_after_synchronize(self):
        def call(comm):
            with tutti.Stream() as stream:
                results = [comm.all_reduce(numpy.full(100, float(i)), stream=stream) for i in range(300)]
                stream.synchronize()
                return [result[99] for result in results]
        for result in ranks.each(call):
            self.assertEqual(result, [2.0 * i for i in range(300)])

    def test_stream_keeps_arrays_until_their_call_is_done(self):
        turns = Turns()

        def call(comm):
            stream = tutti.Stream()
            if comm.rank == 1:
                turns.wait()
                comm.all_reduce(numpy.ones(1000), stream=stream)
                return stream.close()
            numbers, life = observed(1)
            comm.all_reduce(numbers, out=numbers, stream=stream)
            del numbers
            gc.collect()
            seen = [life() is not None, stream.query()]
            turns.examined.set()
            stream.synchronize()
            seen.append(life() is not None)
            stream.close()
            return seen
        self.assertEqual(ranks.each(call)[0], [True, False, False])

    def test_next_call_releases_arrays_of_calls_that_are_done(self):
        turns = Turns()

        def call(comm):
            stream, lives = tutti.Stream(), []
            for i in range(5):
                numbers, life = observed(i)
                lives.append(life)
                comm.all_reduce(numbers, out=numbers, stream=stream)
            del numbers
            stream.record().synchronize()
            if comm.rank == 1:
                turns.wait()
            comm.all_reduce(numpy.ones(1), stream=stream)  # In progress on rank 0.
            released = [life() is None for life in lives]
            numbers, last = observed(5)
            comm.all_reduce(numbers, out=numbers, stream=stream)
            del numbers
            kept = last() is not None
            turns.examined.set()
            stream.synchronize()
            return released, kept, last() is None
        self.assertEqual(ranks.each(call)[0], ([True] * 5, True, True))

    def test_end_of_an_array_may_use_its_stream(self):
        def call(comm):
            with tutti.Stream() as stream:
                numbers, life = observed(1)
                weakref.finalize(numbers, stream.query)
                comm.all_reduce(numbers, out=numbers, stream=stream)
                del numbers
                stream.record().synchronize()
                comm.all_reduce(numpy.ones(1), stream=stream)
                return life() is None
        self.assertEqual(ranks.each(call), [True, True])

    def test_forgotten_stream_finishes_its_calls(self):
        def call(comm):
            out = numpy.zeros(1000)
            comm.all_reduce(numpy.ones(1000), out=out, stream=tutti.Stream())
            gc.collect()
            return out[999]
        self.assertEqual(ranks.each(call), [2, 2])

    def test_event_orders_streams_and_reports_when_it_is_reached(self):
        turns = Turns()

        def call(comm):
            if comm.rank == 1:
                turns.wait()
                return comm.barrier()
            first, second = tutti.Stream(), tutti.Stream()
            comm.barrier(stream=first)
            event = first.record()
            second.wait(event)
            behind = second.record()
            seen = [event.query(), behind.query(), tutti.Event().query()]
            turns.examined.set()
            behind.synchronize()
            seen += [event.query(), behind.query()]
            first.close()
            second.close()
            return seen
        self.assertEqual(ranks.each(call)[0], [False, False, True, True, True])

    def test_wait_for_an_event_ends_at_its_timeout(self):
        turns = Turns()

        def call(comm):
            if comm.rank == 1:
                turns.wait()
                return comm.all_reduce(numpy.ones(1))[0]
            with tutti.Stream() as stream:
                out = comm.all_reduce(numpy.ones(1), stream=stream)
                event = stream.record()
                seen = [event.synchronize(0), event.synchronize(0.01)]
                turns.examined.set()
                seen += [event.synchronize(ranks.TIMEOUT_S), event.synchronize(), event.synchronize(0)]
            return seen, out[0], tutti.Event().synchronize(0)
        self.assertEqual(ranks.each(call), [([False, False, True, True, True], 2, True), 2])
        for timeout in (-1, float("nan"), "1"):
            with self.assertRaisesRegex(tutti.InvalidArgument, f"timeout is {timeout!r}; it must be 0 or more seconds"):
                tutti.Event().synchronize(timeout)

    def test_calls_keep_their_arrays_when_no_event_is_left(self):
        """A process has 4096 events."""
        gate = threading.Event()
        with tutti.Communicator() as comm, tutti.Stream() as stream:
            stream.add_callback(lambda error: gate.wait(ranks.TIMEOUT_S))
            outputs = [numpy.zeros(4) for _ in range(4200)]
            inputs = []
            for i, output in enumerate(outputs):
                numbers, reference = observed(i)
                inputs.append(reference)
                comm.all_reduce(numbers[:4], out=output, stream=stream)
                del numbers
            self.assertTrue(all(reference() is not None for reference in inputs))
            gate.set()
            stream.synchronize()
        self.assertEqual([output[0] for output in outputs], list(range(4200)))

    def test_stream_keeps_arrays_of_its_only_call_without_an_event(self):
        gate, events = threading.Event(), []
        with tutti.Communicator() as comm, tutti.Stream() as stream:
            stream.add_callback(lambda error: gate.wait(ranks.TIMEOUT_S))
            with self.assertRaises(tutti.InvalidUsage):
                while True:
                    events.append(tutti.Event())
            numbers, reference = observed(3)
            output = numpy.zeros(1000)
            comm.all_reduce(numbers, out=output, stream=stream)
            del numbers
            self.assertIsNotNone(reference())
            gate.set()
            stream.synchronize()
            self.assertEqual(output[999], 3)
        gc.collect()
        self.assertIsNone(reference())

    def test_callback_runs_once_after_earlier_calls(self):
        turns = Turns()

        def call(comm):
            if comm.rank == 1:
                turns.wait()
            outs, seen = [numpy.zeros(1000) for _ in range(3)], []
            with tutti.Stream() as stream:
                for i, out in enumerate(outs):
                    comm.all_reduce(numpy.full(1000, float(i)), out=out, stream=stream)
                    stream.add_callback(lambda error, i=i, out=out: seen.append((i, error, out[999])))
                gc.collect()
                before = list(seen) if comm.rank == 0 else []
                turns.examined.set()
                stream.synchronize()
                return before, list(seen)
        self.assertEqual(ranks.each(call), [([], [(0, None, 0), (1, None, 2), (2, None, 4)])] * 2)

    def test_callback_gets_the_error_of_earlier_calls(self):
        def call(comm):
            errors = []
            stream = tutti.Stream()
            comm.all_reduce(numpy.ones(1 + comm.rank), stream=stream)
            stream.add_callback(errors.append)
            stream.add_callback(errors.append)
            with self.assertRaises(tutti.InvalidUsage):
                stream.close()
            return type(errors[0]).__name__, "ranks disagree" in errors[0].message, errors[1]
        self.assertEqual(ranks.threads(call, 2), [("InvalidUsage", True, None)] * 2)

    def test_exceptions_in_callbacks_are_reported_and_waits_refused(self):
        reported = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda unraisable: reported.append(str(unraisable.exc_value))
        comm = tutti.Communicator()
        numbers, life = observed(1)
        with tutti.Stream() as stream:
            for wait in (stream.synchronize, stream.close, comm.close):
                stream.add_callback(lambda error, wait=wait: wait())
            stream.synchronize()
            entered, go_on = threading.Event(), threading.Event()
            stream.add_callback(lambda error: (entered.set(), go_on.wait(ranks.TIMEOUT_S), stream.synchronize()))
            out = comm.all_reduce(numbers, stream=stream)
            stream.add_callback(lambda error: reported.append(life() is not None))
            del numbers
            go_on.set()
            stream.synchronize()
        comm.close()
        operations = ("stream_synchronize", "stream_destroy", "comm_destroy", "stream_synchronize")
        self.assertEqual(reported, [operation + ": a callback must not wait; call it in a thread of the program"
                                    for operation in operations] + [True])
        self.assertEqual(out[999], 1)

    def test_callback_may_drop_the_last_reference_to_a_communicator(self):
        first, second = tutti.Communicator.create_all(2, timeout=ranks.TIMEOUT_S)
        kept = [first]
        del first
        with tutti.Stream() as stream:
            stream.add_callback(lambda error: kept.clear())
        with self.assertRaisesRegex(tutti.Error, "rank 0 finalizes or destroys the communicator"):
            second.all_reduce(numpy.ones(1))
        second.leave()

    def test_closed_stream_refuses_callbacks(self):
        stream = tutti.Stream()
        stream.close()
        with self.assertRaises(tutti.Error):
            stream.add_callback(print)
        self.assertEqual(_callbacks._waiting, {})

    def test_program_that_leaves_callbacks_ends_after_them(self):
        run = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=ranks.TIMEOUT_S,
                             env={**os.environ, "TUTTI_RANK": "0", "TUTTI_RANKS": "1"})
        self.assertEqual((run.returncode, run.stdout), (0, "".join(f"{i} None\n" for i in range(20))), run.stderr)

    def test_failure_in_a_stream_is_raised_by_synchronize(self):
        def call(comm):
            with tutti.Stream() as stream:
                comm.all_reduce(numpy.ones(1 + comm.rank), stream=stream)
                try:
                    stream.synchronize()
                except tutti.Error as error:
                    return type(error).__name__, "ranks disagree" in error.message, error.operation
        for result in ranks.threads(call, 2):
            self.assertEqual(result[:2], ("InvalidUsage", True), result)

    def test_closed_stream_is_refused(self):
        stream = tutti.Stream()
        stream.close()
        stream.close()
        with tutti.Communicator() as comm, self.assertRaisesRegex(tutti.InvalidUsage, "the stream is closed"):
            comm.all_reduce(numpy.ones(1), stream=stream)

    def test_group_keeps_arrays_until_its_end(self):
        def call(comm):
            other = 1 - comm.rank
            numbers, life = observed(comm.rank)
            out = numpy.zeros(1000)
            with tutti.group():
                with tutti.group():
                    comm.send(numbers, other)
                    del numbers
                comm.recv(out, other)
                gc.collect()
                kept = life() is not None
            return kept, life() is None, out[999]
        self.assertEqual(ranks.each(call), [(True, True, 1), (True, True, 0)])

    def test_stream_keeps_arrays_after_the_end_of_a_group(self):
        turns = Turns()

        def call(comm):
            numbers, life = observed(1)
            if comm.rank == 1:
                turns.wait()
            with tutti.Stream() as stream:
                with tutti.group():
                    comm.all_reduce(numbers, out=numbers, stream=stream)
                del numbers
                kept = life() is not None
                turns.examined.set()
            return kept, life() is None
        self.assertEqual(ranks.each(call)[0], (True, True))

    def test_exception_in_a_group_cancels_its_calls_on_all_ranks(self):
        def call(comm):
            if comm.rank == 1:
                return comm.all_reduce(numpy.ones(2))
            with tutti.group():
                comm.all_reduce(numpy.ones(2))
                raise KeyError("of the body")
        first, second = ranks.threads(call, 2)
        self.assertIsInstance(first, KeyError)
        self.assertIsInstance(second, tutti.RemoteError)
        self.assertEqual(second.peer, 0)
        self.assertIn("rank 0 cancels its group: group: an exception in its body, KeyError: 'of the body'", str(second))

    def test_group_ends_after_an_exception_without_text(self):
        class Silent(Exception):
            def __str__(self):
                raise ValueError

        comm = tutti.Communicator()
        with self.assertRaises(Silent), tutti.group():
            raise Silent
        self.assertEqual(comm.all_reduce(numpy.ones(2)).tolist(), [1, 1])  # No group is open, which would delay the call.
        comm.close()

    def test_thread_can_drive_several_ranks_in_a_group(self):
        comms = tutti.Communicator.create_all(3)
        with tutti.group():
            results = [comm.all_reduce(numpy.full(2, comm.rank)) for comm in comms]
        self.assertEqual([result.tolist() for result in results], [[3, 3]] * 3)
        with tutti.group():
            for comm in comms:
                comm.close()


if __name__ == "__main__":
    unittest.main()
