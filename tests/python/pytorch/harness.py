"""Runs cases in several ranks, which are forked processes, and reports the failures of each."""

import argparse
import datetime
import gc
import os
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import tutti.torch  # noqa: F401  Registers the backend.

TIMEOUT_S = 60  # Turns a hang into a failure.
TIMEOUT_HAS_PASSED = "the timeout of the operation has passed"  # End of errors of calls.

_cases = []


def case(function):
    """Registers a case: function(rank, size), which all ranks call. It asserts what it expects."""
    _cases.append(function)
    return function


def cases(pattern=""):
    return [c for c in _cases if pattern in c.__name__]


def values(rank, shape, dtype):
    """Returns the input of a rank: small numbers, so that sums of integers and halves are exact in any order."""
    count = 1
    for extent in shape:
        count *= extent
    numbers = (torch.arange(count) * 7 + rank * 3) % 5 + 1
    if dtype == torch.bool:
        return ((numbers + rank) % 2 == 0).reshape(shape)
    if dtype.is_complex:
        return torch.complex(numbers.double(), (numbers + rank).double()).to(dtype).reshape(shape)
    if dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        numbers = (numbers % 2) + 1
    return numbers.to(torch.float32).to(dtype).reshape(shape)


def total(size):
    """Returns the sum of rank + 1 over all ranks."""
    return size * (size + 1) / 2.0


def same(got, expected, what=""):
    if got.is_floating_point() and got.element_size() == 1:
        got, expected = got.float(), expected.float()
    assert got.shape == expected.shape, f"{what}: shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
    assert torch.equal(got, expected), f"{what}: got {got.flatten()[:8]} instead of {expected.flatten()[:8]}"


def raises(call, *parts):
    """Asserts that call() raises an error whose text has all parts."""
    try:
        call()
    except (RuntimeError, ValueError, TypeError) as error:
        missing = [part for part in parts if part not in str(error)]
        assert not missing, f"the message lacks {missing}: {error}"
        return
    raise AssertionError(f"{call} raised nothing")


def error_of(call):
    """Returns the error of a process group that call() raises."""
    try:
        call()
    except dist.DistBackendError as error:
        return error
    raise AssertionError(f"{call} raised nothing")


def refuses(call, *parts):
    """Asserts that call() raises the error of an invalid argument, whose text has all parts."""
    error = error_of(call)
    assert isinstance(error, tutti.InvalidArgument) and isinstance(error, ValueError), type(error).__mro__
    missing = [part for part in parts if part not in str(error)]
    assert not missing, f"the message lacks {missing}: {error}"


def _run_rank(rank, size, arguments, folder, results):
    torch.set_num_threads(1)
    dist.init_process_group(arguments.backend, init_method=f"file://{folder}/store", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=TIMEOUT_S))
    for function in cases(arguments.only):
        start = time.monotonic()
        try:
            function(rank, size)
            failure = None
        except Exception:
            failure = traceback.format_exc()
        results.put((function.__name__, rank, failure, time.monotonic() - start))
        try:
            dist.barrier()
        except Exception:
            results.put((function.__name__, rank, "the group is broken afterwards: " + traceback.format_exc(), 0))
            break
    dist.destroy_process_group()


def _collect(results, failures, times):
    while not results.empty():
        name, rank, failure, seconds = results.get()
        times.setdefault(name, {})[rank] = seconds
        if failure:
            failures.setdefault(name, []).append(f"rank {rank}: {failure}")


def _run(arguments, size):
    """Returns the failures by case."""
    gc.freeze()  # Collections of the ranks need not visit the objects of PyTorch's modules.
    context = mp.get_context("fork")
    failures, times = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        results = context.Queue()
        ranks = [context.Process(target=_run_rank, args=(rank, size, arguments, folder, results)) for rank in range(size)]
        for process in ranks:
            process.start()
        deadline = time.monotonic() + arguments.limit
        while any(process.is_alive() for process in ranks) and time.monotonic() < deadline:
            _collect(results, failures, times)
            time.sleep(0.02)
        for process in ranks:
            if process.is_alive():
                process.kill()
                failures.setdefault("all", []).append(f"a rank ran longer than {arguments.limit} s")
            process.join()
        _collect(results, failures, times)
        for rank, process in enumerate(ranks):
            if process.exitcode:
                failures.setdefault("all", []).append(f"rank {rank} ended with status {process.exitcode}")
    for function in cases(arguments.only):
        if len(times.get(function.__name__, {})) < size:
            failures.setdefault(function.__name__, []).append("did not run on all ranks")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--ranks", default="2", help="numbers of ranks, such as 1,2,3,4")
    parser.add_argument("--only", default="", help="run the cases whose name has this text")
    parser.add_argument("--limit", type=float, default=240, help="time limit of one run, in seconds")
    parser.add_argument("--may-fail", action="store_true", help="exit with 0 although cases fail")
    arguments = parser.parse_args()
    if not cases(arguments.only):
        sys.exit(f"no case has {arguments.only!r} in its name; cases are {', '.join(c.__name__ for c in _cases)}")
    failed = 0
    for size in [int(number) for number in arguments.ranks.split(",")]:
        failures = _run(arguments, size)
        failed += len(failures)
        for name, texts in failures.items():
            print(f"FAIL {name} ({size} ranks)\n" + "\n".join(texts[:2]), flush=True)
        total = len(cases(arguments.only))
        print(f"{arguments.backend}, {size} ranks: {total - len([n for n in failures if n != 'all'])} of {total} cases pass",
              flush=True)
    return 1 if failed and not arguments.may_fail else 0
