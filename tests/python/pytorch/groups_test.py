"""Process groups: creation, splits, shrinks, coalesced sections, timeouts and the end."""

import datetime
import gc
import sys
import threading
import weakref

import torch
import torch.distributed as dist
import tutti
import tutti.torch
from harness import TIMEOUT_HAS_PASSED, case, error_of, main, raises, same, total
from tutti.torch import _native
from tutti.torch._residuals import backend_of

HAS_SPLIT = _native.torch_version() >= 21500  # Before, PyTorch needs an accelerator for split_group().


@case
def groups_of_some_ranks(rank, size):
    for members in ([0], list(range(size)), list(range(size - 1, -1, -1)), list(range((size + 1) // 2))):
        group = dist.new_group(members)
        if rank in members:
            tensor = torch.full((3,), float(rank))
            dist.all_reduce(tensor, group=group)
            same(tensor, torch.full((3,), float(sum(members))))
            assert dist.get_backend(group) == dist.get_backend()
            dist.destroy_process_group(group)


class Bucket:
    """A bucket of DistributedDataParallel with one parameter."""

    def __init__(self, buffer):
        self._buffer, self._parameters = buffer, [torch.nn.Parameter(torch.zeros(1))]

    def index(self):
        return 0

    def buffer(self):
        return self._buffer

    def parameters(self):
        return self._parameters


@case
def compress_hook_keeps_the_residuals_of_two_models(rank, size):
    hook = tutti.torch.compress_hook("int8")
    buckets, sums = [Bucket(torch.zeros(256)) for _ in range(2)], [torch.zeros(256) for _ in range(2)]
    for _ in range(20):
        for bucket, total_of_steps in zip(buckets, sums):
            bucket.buffer().fill_(0.3)[::32] = 127.0  # A step of the format is 1, so that 0.3 is lost in each step.
            total_of_steps += hook(None, bucket).wait()
    for total_of_steps in sums:
        assert 3 < total_of_steps[1::32].mean() < 9, total_of_steps[:4]  # 6 without compression.


@case
def compress_hook_averages_float64(rank, size):
    hook = tutti.torch.compress_hook("int8")
    same(hook(None, Bucket(torch.full((64,), rank + 0.001, dtype=torch.float64))).wait(),
         torch.full((64,), sum(r + 0.001 for r in range(size)) / size, dtype=torch.float64))


@case
def compress_hook_averages_over_its_group(rank, size):
    groups = [dist.new_group([member]) for member in range(size)]
    hook = tutti.torch.compress_hook("int8", group=groups[rank])
    same(hook(None, Bucket(torch.full((64,), float(rank)))).wait(), torch.full((64,), float(rank)))


@case
def groups_share_a_store(rank, size):
    store = dist.PrefixStore("shared", dist.distributed_c10d._get_default_store())
    for _ in range(3):
        group = tutti.torch.process_group(store, rank, size, datetime.timedelta(seconds=20))
        tensor = torch.full((3,), float(rank + 1))
        group.allreduce([tensor]).wait()
        same(tensor, torch.full((3,), total(size)))
        if _native.torch_version() >= 21400:  # Before, the group of the Python path has no backends.
            own, other = (group._get_backend(torch.device(device)) for device in ("cpu", "cuda"))
            assert own is other, "a CUDA tensor has another error"
            del own, other
        del group


@case
def groups_in_threads(rank, size):
    groups = [dist.new_group() for _ in range(4)]
    failures = []

    def work(group, scale):
        try:
            for i in range(30):
                tensor = torch.full((1 + i * 100,), float(rank + 1) * scale)
                dist.all_reduce(tensor, group=group)
                same(tensor, torch.full_like(tensor, total(size) * scale))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(group, i + 1)) for i, group in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for group in reversed(groups) if rank % 2 else groups:  # Ranks destroy groups in different orders.
        dist.destroy_process_group(group)


@case
def split_groups(rank, size):
    if not HAS_SPLIT or size < 2:
        return
    world = dist.group.WORLD
    before = world.bound_device_id
    world.bound_device_id = torch.device("cpu:0")
    try:
        half = size // 2
        members = [list(range(half)), list(range(half, size))]
        group = dist.split_group(split_ranks=members)
        mine = members[0] if rank < half else members[1]
        tensor = torch.full((3,), float(rank))
        dist.all_reduce(tensor, group=group)
        same(tensor, torch.full((3,), float(sum(mine))))
        if tutti.torch.path() == "Python":
            for call in (lambda: dist._get_reconfigure_handle(group), lambda: dist._reconfigure(1, ["host:1"], group)):
                error = error_of(call)
                assert isinstance(error, tutti.Unsupported) and "build the C++ path" in error.message, repr(error)
    finally:
        world.bound_device_id = before


@case
def failed_shrink_leaves_the_group_usable(rank, size):
    group = dist.new_group()
    backend = backend_of(group)
    if not hasattr(backend, "shrink"):
        return  # PyTorch before 2.14.
    raises(lambda: backend.shrink([size]), f"excluded[0] is {size}, which is out of range")
    tensor = torch.full((3,), float(rank + 1))
    dist.all_reduce(tensor, group=group)
    same(tensor, torch.full((3,), total(size)))


@case
def coalesced_section(rank, size):
    if not hasattr(dist.group.WORLD, "_start_coalescing"):
        return
    tensors = [torch.full((i + 1,), float(rank + 1)) for i in range(5)]
    outputs = torch.zeros(size * 2)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as section:
        for tensor in tensors:
            dist.broadcast(tensor, 0)
        dist.all_gather_into_tensor(outputs, torch.full((2,), float(rank)))
    section.wait()
    for tensor in tensors:
        same(tensor, torch.ones_like(tensor))


@case
def coalesced_section_waits_for_messages(rank, size):
    received = torch.zeros(3)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as section:
        dist.irecv(received, (rank - 1) % size, tag=33)
    work, = section.works
    assert not work.is_completed()
    raises(lambda: work.wait(datetime.timedelta(milliseconds=30)), "recv")
    dist.barrier()  # No rank has sent before this point.
    dist.isend(torch.full((3,), float(rank)), (rank + 1) % size, tag=33)
    work.get_future().wait()
    section.wait()
    same(received, torch.full((3,), float((rank - 1) % size)))
    assert work.is_completed() and work.is_success()


@case
def zz_coalesced_section_has_the_failure_of_a_call(rank, size):
    if size == 1:
        return
    group = dist.new_group()
    group._start_coalescing(torch.device("cpu"))
    group.allreduce([torch.ones(3 + rank)])
    work = group._end_coalescing(torch.device("cpu"))
    raises(work.wait, "ranks disagree")
    assert not work.is_success()


@case
def failure_does_not_wait_for_abort_hooks(rank, size):
    group = dist.new_group(list(range(size)))
    backend = backend_of(group)
    if size == 1 or not getattr(backend, "supports_abort_hooks", False):
        dist.destroy_process_group(group)
        return
    raised, hooks = threading.Event(), []
    backend.register_abort_hook(1000, lambda: hooks.append(raised.wait(10)))
    raises(lambda: dist.all_reduce(torch.zeros(4 + rank), group=group), "ranks disagree")
    raised.set()
    dist.destroy_process_group(group)  # Waits for the hooks.
    assert hooks and all(hooks), hooks


@case
def section_that_a_callback_ends_has_all_its_calls(rank, size):
    if tutti.torch.path() != "C++":
        return  # No callback runs while the group looks for calls that are complete.
    group, cpu = dist.group.WORLD, torch.device("cpu")
    runs, gate, ended = threading.Event(), threading.Event(), []

    def block(future):
        runs.set()
        gate.wait()

    def end(future):
        ended.append((threading.current_thread(), group._end_coalescing(cpu)))

    dist.irecv(torch.zeros(3), rank, tag=30).get_future().add_done_callback(block)
    dist.isend(torch.ones(3), rank, tag=30)
    runs.wait()  # From here on no callback runs in the thread for callbacks.
    group._start_coalescing(cpu)
    dist.irecv(torch.zeros(3), rank, tag=31).get_future().add_done_callback(end)
    last = dist.irecv(torch.zeros(3), rank, tag=32)
    dist.isend(torch.ones(3), rank, tag=31)
    for _ in range(100):
        dist.all_reduce(torch.ones(3), async_op=True)
    gate.set()
    (thread, section), = ended
    assert thread is threading.current_thread()
    assert not section.is_completed(), "the section lacks the last receive"
    dist.isend(torch.ones(3), rank, tag=32)
    section.wait()
    assert last.is_completed()


@case
def exception_in_a_coalesced_section_leaves_the_group_usable(rank, size):
    tensors = [torch.full((3,), float(rank + 1)) for _ in range(200)]
    try:
        with dist._coalescing_manager(device=torch.device("cpu")):
            dist.broadcast(tensors[0], 0)
            raise KeyError("of the body")
    except KeyError:
        dist.distributed_c10d._world.pg_coalesce_state.pop(dist.group.WORLD, None)
    lives = []
    for tensor in tensors[1:]:
        dist.all_reduce(tensor)
        lives.append(weakref.ref(tensor))
    del tensor, tensors
    gc.collect()
    assert sum(life() is not None for life in lives) <= 64, "the open section keeps tensors of calls that are done"
    with dist._coalescing_manager(device=torch.device("cpu")):
        dist.broadcast(torch.ones(3), 0)
    gc.collect()
    assert not any(life() is not None for life in lives), "the closed section keeps tensors"
    outputs = torch.zeros(size)
    with dist._coalescing_manager(device=torch.device("cpu")):
        dist.all_gather_into_tensor(outputs, torch.full((1,), float(rank)))
    same(outputs, torch.arange(size, dtype=torch.float32))


@case
def calls_with_different_timeouts(rank, size):
    """Each timeout needs a handle; a process has 4096 of them at the same time."""
    own = dist.PrefixStore(f"timeouts/{rank}", dist.distributed_c10d._get_default_store())
    alone = tutti.torch.process_group(own, 0, 1, datetime.timedelta(seconds=20))
    options = dist.AllreduceOptions()
    for group, limits in ((dist.group.WORLD, [20000, 30000] * 5), (alone, range(40000, 44200))):
        for milliseconds in limits:
            options.timeout = datetime.timedelta(milliseconds=milliseconds)
            tensor = torch.full((3,), float(rank + 1))
            group.allreduce([tensor], options).wait()
            same(tensor, torch.full((3,), total(size) if group is dist.group.WORLD else rank + 1.0))


@case
def calls_after_shutdown_are_refused(rank, size):
    group = dist.new_group()
    backend = backend_of(group)
    dist.barrier(group)
    backend.shutdown()
    raises(lambda: dist.all_reduce(torch.ones(3), group=group), "the process group has been shut down")
    work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
    assert work.is_completed()
    raises(work.wait, "the process group has been shut down")
    for begin in (dist.isend, dist.irecv):
        error = error_of(lambda: begin(torch.ones(3), rank, group=group))
        assert error.message == "the process group has been shut down; create a new one", error
        assert error.rank == rank, error.rank


@case
def second_shutdown_waits_for_callbacks(rank, size):
    backend = backend_of(dist.new_group())
    runs, gate, entered, order = threading.Event(), threading.Event(), threading.Event(), []

    def callback(future):
        runs.set()
        gate.wait()
        order.append("callback")

    def shut_down(begins):
        begins()
        backend.shutdown()
        order.append("shutdown")

    backend.recv([torch.zeros(3)], rank, 0).get_future().add_done_callback(callback)
    first, second = (threading.Thread(target=shut_down, args=(begins,)) for begins in (lambda: None, entered.set))
    first.start()
    runs.wait()  # The receive has ended.
    second.start()
    entered.wait()
    for _ in range(200):  # A shutdown that did not wait would return meanwhile.
        dist.barrier()
    gate.set()
    first.join()
    second.join()
    assert order == ["callback", "shutdown", "shutdown"], order


@case
def timeout_of_joining_is_not_that_of_a_call(rank, size):
    store = dist.PrefixStore(f"alone/{rank}", dist.distributed_c10d._get_default_store())
    error = error_of(lambda: tutti.torch.process_group(store, 0, 2, datetime.timedelta(milliseconds=300)))
    assert isinstance(error, tutti.Timeout) and TIMEOUT_HAS_PASSED not in error.message, error
    assert not store.check(["tutti/id"]), "the next group in this store would find the id of the failed one"


@case
def invalid_options_of_rank_0_are_reported_by_all(rank, size):
    """A rank that reads the id late must not wait for it."""
    def create(own_rank):
        return error_of(lambda: tutti.torch.process_group(store, own_rank, 2, options=options))

    store = dist.PrefixStore(f"rejected/{rank}", dist.distributed_c10d._get_default_store())
    options = tutti.torch.Options()
    options.compression = "pigeon"  # Only the constructor checks names.
    first, late = create(0), create(1)
    assert isinstance(first, tutti.InvalidArgument) and first.rank == 0, first
    assert isinstance(late, tutti.RemoteError) and (late.rank, late.peer) == (1, 0), (late, late.rank, late.peer)
    assert late.message.startswith("rank 0 cannot join: ") and late.message.endswith(first.message), late.message


@case
def timeout_of_zero_is_no_limit(rank, size):
    group, none = dist.new_group(), datetime.timedelta(0)
    options = dist.AllreduceOptions()
    options.timeout = none
    tensor = torch.full((3,), float(rank + 1))
    group.allreduce([tensor], options).wait()
    same(tensor, torch.full((3,), total(size)))
    if tutti.torch.path() == "Python":
        communicator = backend_of(group)._comm
        assert communicator.handle(none) != communicator.handle(), "the call has the limit of the group"


@case
def queue_works_after_an_exception(rank, size):
    from tutti.torch._python_calls import CallQueue, Work

    class Failing(Work):
        def run(self, call):
            raise KeyError("of the work")

    queue = CallQueue()
    try:
        queue.submit(Failing([], rank), lambda: None, is_async=False)
    except KeyError:
        pass
    work = Work([], rank)
    thread = threading.Thread(target=lambda: queue.submit(work, lambda: None, is_async=False))
    thread.start()
    thread.join()
    work.wait(datetime.timedelta(seconds=20))
    queue.stop()


if __name__ == "__main__":
    sys.exit(main())
