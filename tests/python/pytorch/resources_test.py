"""Threads that cannot start, the cache of the C++ path, and entry points of the package."""

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import threading

import torch
import torch.distributed as dist
import tutti.torch
from harness import TIMEOUT_S, case, main, raises, same, total
from tutti.torch import _native


@contextlib.contextmanager
def no_more_threads():
    """Limits the address space, so that no thread can start in the body."""
    with open("/proc/self/statm", encoding="ascii") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    ended, threads = threading.Event(), []
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20), limits[1]))
    try:
        with contextlib.suppress(RuntimeError):
            while True:  # The system keeps stacks of threads that have ended.
                thread = threading.Thread(target=ended.wait)
                thread.start()
                threads.append(thread)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        ended.set()
        for thread in threads:
            thread.join()


@case
def call_without_a_thread_fails(rank, size):
    group, tensor = dist.new_group(), torch.full((3,), float(rank + 1))
    dist.barrier(group)
    with no_more_threads():
        raises(lambda: dist.all_reduce(tensor, group=group, async_op=True).wait(), "start", "thread")
    dist.all_reduce(tensor, group=group, async_op=True).wait()
    same(tensor, torch.full((3,), total(size)))
    dist.destroy_process_group(group)


@case
def callback_without_a_thread_runs(rank, size):
    if tutti.torch.path() != "C++":
        return  # get_future() of the Python path raises.
    group, received, called = dist.new_group(), torch.zeros(3), threading.Event()
    dist.barrier(group)
    message = dist.irecv(received, (rank - 1) % size, group=group)
    with no_more_threads():
        future = message.get_future()
        future.add_done_callback(lambda done: called.set())
        dist.isend(torch.full((3,), float(rank)), (rank + 1) % size, group=group).wait()
        future.wait()  # A future is complete before its callbacks run.
        assert called.wait(TIMEOUT_S)
    same(received, torch.full((3,), float((rank - 1) % size)))
    dist.destroy_process_group(group)


@case
def another_header_needs_another_extension(rank, size):
    own, include_folder = _native.cache_path(), _native.include_folder
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "tutti"))
        with open(os.path.join(include_folder(), "tutti", "tutti.h"), encoding="utf-8") as header:
            text = header.read()
        with open(os.path.join(folder, "tutti", "tutti.h"), "w", encoding="utf-8") as header:
            header.write(text)
        _native.include_folder = lambda: folder
        try:
            assert _native.cache_path() == own
            with open(os.path.join(folder, "tutti", "tutti.h"), "a", encoding="utf-8") as header:
                header.write("/* Another version. */\n")
            assert _native.cache_path() != own
        finally:
            _native.include_folder = include_folder


@case
def replacing_gloo_needs_0_or_1(rank, size):
    import tutti_autoload

    os.environ["TUTTI_PYTORCH_REPLACE_GLOO"] = "false"
    try:
        raises(tutti_autoload.autoload, "TUTTI_PYTORCH_REPLACE_GLOO is 'false'", "0 or 1")
    finally:
        del os.environ["TUTTI_PYTORCH_REPLACE_GLOO"]


@case
def entry_point_registers_all_devices(rank, size):
    if rank != 0:
        return
    import tutti.torch._options

    program = ("import torch.distributed as dist, tutti_autoload; tutti_autoload.register(); "
               "print(dist.Backend.backend_capability['tutti'])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env=dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0"))
    assert done.stdout.strip() == str(tutti.torch._options.DEVICES), done.stdout


if __name__ == "__main__":
    sys.exit(main())
