"""Works, futures, barriers, functional collectives, failures and the flight recorder."""

import datetime
import gc
import json
import os
import pickle
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import tutti
import tutti.torch
from harness import TIMEOUT_HAS_PASSED, case, error_of, main, raises, same, total, values
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from tutti.torch import _native
from tutti.torch._residuals import backend_of

HAS_MONITORED_BARRIER = hasattr(dist.Backend, "_ensure_backend_registered")  # Older PyTorch allows only Gloo.


@case
def async_calls_complete_in_order(rank, size):
    tensors = [torch.full((100 * (i + 1),), float(rank + 1)) for i in range(30)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):  # The last one first: it needs all others.
        work.wait()
        assert work.is_completed()
    for tensor in tensors:
        same(tensor, torch.full_like(tensor, total(size)))


@case
def work_keeps_tensors_alive(rank, size):
    works = []
    for _ in range(20):
        works.append(dist.all_reduce(torch.full((1000,), float(rank + 1)), async_op=True))
        gc.collect()
    for work in works:
        work.wait()
        same(work.result()[0], torch.full((1000,), total(size)))


@case
def blocking_call_follows_pending_calls(rank, size):
    first = torch.full((100000,), float(rank + 1))
    work = dist.all_reduce(first, async_op=True)
    second = torch.full((3,), float(rank + 1))
    dist.all_reduce(second)
    same(second, torch.full((3,), total(size)))
    assert work.is_completed()
    work.wait()


@case
def future_has_the_result(rank, size):
    future = dist.all_reduce(torch.full((4,), float(rank + 1)), async_op=True).get_future()
    doubled = future.then(lambda f: f.value()[0] * 2)
    same(doubled.wait(), torch.full((4,), total(size) * 2))
    outputs = [torch.zeros(2) for _ in range(size)]
    value = dist.all_gather(outputs, torch.full((2,), float(rank)), async_op=True).get_future().wait()
    flat = value if isinstance(value[0], torch.Tensor) else value[0]
    for r, got in enumerate(flat):
        same(got, torch.full((2,), float(r)))


@case
def callback_calls_collectives(rank, size):
    """A callback of a bucket starts calls while later buckets wait in the queue, as in PowerSGD."""
    results = []

    def second_round(future):
        tensor = future.value()[0] / total(size) * (rank + 1)
        return dist.all_reduce(tensor, async_op=True).get_future().wait()[0]

    for i in range(10):
        tensor = torch.full((1000,), float(rank + 1))
        results.append(dist.all_reduce(tensor, async_op=True).get_future().then(second_round))
    for future in results:
        same(future.wait(), torch.full((1000,), total(size)))


@case
def callback_blocks_in_a_call(rank, size):
    def again(future):
        tensor = torch.full((5,), float(rank + 1))
        dist.all_reduce(tensor)
        return tensor

    futures = [dist.barrier(async_op=True).get_future().then(again) for _ in range(5)]
    for future in futures:
        same(future.wait(), torch.full((5,), total(size)))


@case
def callback_waits_for_a_pending_call(rank, size):
    if size == 1:
        return
    later = []

    def wait_for_later(future):
        later[0].wait()
        return future.value()

    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        first = dist.barrier(async_op=True).get_future().then(wait_for_later)
        later.append(dist.all_reduce(torch.ones(5), async_op=True))
        store.set("later", "queued")
    else:
        store.wait(["later"])
        first = dist.barrier(async_op=True).get_future()
        later.append(dist.all_reduce(torch.ones(5), async_op=True))
    first.wait()
    later[0].wait()
    same(later[0].result()[0], torch.full((5,), float(size)))


@case
def wait_with_timeout_raises(rank, size):
    if size == 1:
        return
    gate = dist.distributed_c10d._get_default_store()
    tensor = torch.ones(4)
    if rank == 0:
        work = dist.all_reduce(tensor, async_op=True)
        error = error_of(lambda: work.wait(datetime.timedelta(milliseconds=50)))
        assert isinstance(error, tutti.Timeout) and error.rank == rank, error
        assert TIMEOUT_HAS_PASSED not in error.message, error
        gate.set("gate", "open")
        work.wait()
    else:
        gate.wait(["gate"])
        dist.all_reduce(tensor)
    same(tensor, torch.full((4,), float(size)))


@case
def barriers(rank, size):
    dist.barrier()
    dist.barrier(async_op=True).wait()
    if HAS_MONITORED_BARRIER:
        dist.monitored_barrier()


@case
def monitored_barrier_names_the_missing_rank(rank, size):
    if size == 1 or not HAS_MONITORED_BARRIER:
        return
    short = datetime.timedelta(milliseconds=300)
    if rank == 0:
        raises(lambda: dist.monitored_barrier(timeout=short), "ank", "1", "monitoredBarrier")
    dist.barrier()
    dist.monitored_barrier()


@case
def monitored_barriers_pass_after_missed_ones(rank, size):
    if size == 1 or not HAS_MONITORED_BARRIER:
        return
    short = datetime.timedelta(milliseconds=300)
    if rank == 1:
        raises(lambda: dist.monitored_barrier(timeout=short), "Rank 1")
    dist.barrier()
    if rank == 0:  # Rank 1 no longer waits.
        raises(lambda: dist.monitored_barrier(timeout=short), "[Rank 0]: Rank 1 failed to pass")
    dist.barrier()
    if rank != size - 1:  # All others fail, too.
        raises(lambda: dist.monitored_barrier(timeout=short, wait_all_ranks=True), "onitoredBarrier")
    dist.barrier()
    dist.monitored_barrier()


@case
def functional_collectives(rank, size):
    group = dist.group.WORLD
    tensor = torch.full((4,), float(rank + 1))
    same(functional.all_reduce(tensor, "sum", group) + 0, torch.full((4,), total(size)))
    same(functional.all_gather_tensor(tensor, 0, group)[:4] + 0, torch.ones(4))
    same(functional.reduce_scatter_tensor(torch.ones(size * 2), "sum", 0, group) + 0, torch.full((2,), float(size)))


@case
def distributed_tensors(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    full = values(0, (size * 3, 4), torch.float32)
    sharded = distribute_tensor(full, mesh, [Shard(0)])
    same(sharded.redistribute(mesh, [Replicate()]).to_local(), full)
    same(sharded.redistribute(mesh, [Shard(1)]).full_tensor(), full)


@case
def flight_recorder_has_completed_calls(rank, size):
    from torch._C import _distributed_c10d as c10d

    if _native.torch_version() < 21500:
        return  # The backend has no hook for completion.
    if os.environ.get("TUTTI_PYTORCH_PATH") == "python":
        return  # Calls from Python do not pass PyTorch's dispatcher, whose hooks record.
    for _ in range(3):
        dist.all_reduce(torch.ones(11, 13))
    dist.all_reduce(torch.ones(11, 13), async_op=True).wait()
    trace = json.loads(c10d._dump_fr_trace_json(backend=dist.get_backend()))
    mine = [entry for entry in trace.get("entries", []) if entry["input_sizes"] == [[11, 13]]]
    assert len(mine) >= 4, len(mine)
    assert all(entry["state"] == "completed" for entry in mine), [entry["state"] for entry in mine]

    group = dist.new_group()
    received = dist.irecv(torch.ones(3), group=group, group_src=group.rank())
    dist.isend(torch.ones(3), group=group, group_dst=group.rank())
    received.wait()
    dist.all_reduce(torch.ones(11, 17), group=group)
    with dist._coalescing_manager(group, torch.device("cpu")):
        for _ in range(2):
            dist.broadcast(torch.ones(11, 17), group=group, group_src=0)
    trace = json.loads(c10d._dump_fr_trace_json(backend=dist.get_backend()))
    numbers = [entry["collective_seq_id"] for entry in trace["entries"] if entry["input_sizes"] == [[11, 17]]]
    assert sorted(numbers) == [1, 2, 3] and group._get_sequence_number_for_group() == 3, numbers


@case
def tensor_of_another_device_is_refused(rank, size):
    backend = backend_of(dist.group.WORLD)
    raises(lambda: backend.allreduce([torch.empty(3, device="meta")]), "a tensor is on meta", "serves CPU")
    if HAS_MONITORED_BARRIER:
        assert dist.group.WORLD._get_backend(torch.device("cuda")) is backend, "a CUDA tensor has another error"


@case
def error_without_gpus_names_another_backend(rank, size):
    if tutti.torch.path() != "C++" or torch.cuda.is_available():
        return
    connect = backend_of(dist.group.WORLD).eager_connect_single_device
    error = error_of(lambda: connect(torch.device("cuda", 0)))
    assert "a tensor is on cuda:0" in str(error) and '"cpu:tutti,cuda:nccl"' in str(error) and error.rank == rank, repr(error)
    assert error.peer == (None if rank == 0 else 0), "the first rank without a GPU is not named"
    dist.all_reduce(torch.ones(3))  # The group is as before.


@case
def zz_errors_have_fields(rank, size):
    """Runs last, in a group of its own, which fails."""
    if size == 1:
        return
    group = dist.new_group(list(range(size - 1, -1, -1)))  # Their ranks in the group are not those in the job.
    backend, reports = backend_of(group), []
    if getattr(backend, "supports_abort_hooks", False):
        backend.register_abort_hook(1, lambda: reports.append("abort"))
    work = dist.all_reduce(torch.ones(3 + group.rank()), group=group, async_op=True)
    for call in (work.wait, lambda: dist.all_reduce(torch.ones(3), group=group)):
        error = error_of(call)
        assert isinstance(error, tutti.InvalidUsage), type(error)
        assert "ranks disagree" in error.message and error.message in str(error), str(error)
        assert (error.operation, error.rank) == ("all_reduce", group.rank()), (error.operation, error.rank)
        assert error.peer is not None and error.peer != error.rank, error.peer
    has_hooks = getattr(backend, "supports_abort_hooks", False)
    dist.destroy_process_group(group)  # Waits for the hooks.
    assert reports or not has_hooks, "no abort hook was called"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.peer, str(copy)) == (type(error), error.peer, str(error))


def text_on_standard_error(call):
    """Returns what call() writes to the standard error of the process, also from C++."""
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            call()
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
        file.seek(0)
        return file.read().decode()


@case
def zz_errors_name_the_collective(rank, size):
    """Messages have no numbers. A barrier is an all_reduce of the C API."""
    if size == 1:
        return
    group = dist.new_group()
    dist.all_reduce(torch.ones(3), group=group)
    peer = group.rank() ^ 1
    if peer < size:
        sent = dist.isend(torch.ones(3), group=group, group_dst=peer)
        dist.recv(torch.ones(3), group=group, group_src=peer)
        sent.wait()
    dist.barrier()  # The group fails when its messages have completed.
    call = dist.barrier if rank == 0 else lambda group: dist.all_reduce(torch.ones(4), group=group)
    for number in (2, 3):
        error = error_of(lambda: call(group=group))
        name = "barrier" if rank == 0 else "all_reduce"
        assert error.message.startswith(f"{name} (sequence number {number}): ranks disagree on collective"), error.message
        assert error.operation == name, error.operation


@case
def zz_root_of_a_failed_broadcast_is_warned(rank, size):
    """The root only sends. It learns of the failure by the next call, or at the end of the group."""
    if size == 1:
        return
    store = dist.distributed_c10d._get_default_store()

    def await_ranks(name):
        store.set(f"{name}/{rank}", "yes")
        store.wait([f"{name}/{other}" for other in range(size)])

    for calls in (0, 1):
        group = dist.new_group()
        dist.broadcast(torch.ones(3), 0, group=group)
        await_ranks(f"broadcast {calls}")
        if rank == 0:
            dist.broadcast(torch.ones(3), 0, group=group)
        else:
            raises(lambda: dist.broadcast(torch.ones(4), 0, group=group), "ranks disagree")
        await_ranks(f"failure {calls}")
        if rank == 0 and calls:
            raises(lambda: dist.all_reduce(torch.ones(3), group=group), "ranks disagree")
        text = text_on_standard_error(lambda: dist.destroy_process_group(group))
        warned = "ends after a failure that no operation of this rank has raised: " in text and "ranks disagree" in text
        assert warned == (rank == 0 and not calls), text


@case
def zz_errors_name_the_group(rank, size):
    if size == 1:
        return
    group = dist.new_group()
    error = error_of(lambda: dist.all_reduce(torch.ones(3 + rank), group=group))
    assert f"of group {group.group_name}: rank" in error.message, error.message


@case
def zz_timeout_of_a_call_is_named(rank, size):
    if size == 1:
        return
    group, store = dist.new_group(), dist.distributed_c10d._get_default_store()
    if rank == 0:
        options = dist.AllreduceOptions()
        options.timeout = datetime.timedelta(milliseconds=300)
        error = error_of(lambda: group.allreduce([torch.ones(3)], options).wait())
        assert isinstance(error, tutti.Timeout) and error.message.endswith(TIMEOUT_HAS_PASSED), error
        store.set("timed out", "yes")
    store.wait(["timed out"])


@case
def zz_abort_ends_waits(rank, size):
    if size == 1:
        return
    group = dist.new_group()
    dist.barrier(group)
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        backend_of(group).abort()
        assert isinstance(error_of(work.wait), tutti.Aborted)
        store.set("aborted", "yes")
    else:
        store.wait(["aborted"])
        raises(lambda: dist.all_reduce(torch.ones(3), group=group))


if __name__ == "__main__":
    sys.exit(main())
