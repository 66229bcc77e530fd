"""Tutti as a backend of ray.util.collective, for NumPy arrays and CPU tensors of actors.

    python3 examples/ray/collectives.py
"""

import time

import numpy
import ray
import tutti
from ray.experimental import internal_kv
from ray.util import collective
from ray.util.collective.backend_registry import register_collective_backend
from ray.util.collective.collective_group.base_collective_group import BaseGroup


def operation(options):
    return options.reduceOp.name.lower()[:4]  # sum, prod, min, max


class TuttiGroup(BaseGroup):
    """A group of actors. Rank 0 passes the id of the communicator through Ray's key-value store."""

    def __init__(self, world_size, rank, group_name):
        super().__init__(world_size, rank, group_name)
        key = f"tutti/{group_name}"
        if rank == 0:
            identifier = tutti.UniqueId()
            internal_kv._internal_kv_put(key, bytes(identifier))
        else:
            while (data := internal_kv._internal_kv_get(key)) is None:
                time.sleep(0.01)
            identifier = tutti.UniqueId(data)
        self._comm = tutti.Communicator.create(identifier, rank, world_size, name=group_name)
        if rank == 0:  # All ranks have joined, so they have read the id. A later group of this name must not find it.
            internal_kv._internal_kv_del(key)
        self._comm.barrier()

    @classmethod
    def check_backend_availability(cls):
        return True

    def destroy_group(self):
        self._comm.leave()

    def barrier(self, options=None):
        self._comm.barrier()

    def allreduce(self, tensors, options):
        self._comm.all_reduce(tensors[0], operation(options), out=tensors[0])

    def reduce(self, tensors, options):
        self._comm.reduce(tensors[0], options.root_rank, operation(options), out=tensors[0])

    def broadcast(self, tensors, options):
        self._comm.broadcast(tensors[0], options.root_rank)

    def allgather(self, outputs, tensors, options=None):
        for output, received in zip(outputs[0], self._comm.all_gather(tensors[0])):
            output[...] = received

    def reducescatter(self, outputs, inputs, options):
        self._comm.reduce_scatter(numpy.stack(inputs[0]), operation(options), out=outputs[0])

    def send(self, tensors, options):
        self._comm.send(tensors[0], options.dst_rank)

    def recv(self, tensors, options):
        self._comm.recv(tensors[0], options.src_rank)


@ray.remote(num_cpus=0)
class Worker:
    def run(self, rank, size):
        register_collective_backend("TUTTI", TuttiGroup)
        collective.init_collective_group(size, rank, "TUTTI", "example")
        numbers = numpy.full(4, rank + 1.0)
        collective.allreduce(numbers, "example")
        collective.destroy_collective_group("example")
        return numbers.tolist()


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False)
    workers = [Worker.remote() for _ in range(2)]
    results = ray.get([worker.run.remote(rank, 2) for rank, worker in enumerate(workers)])
    print("all_reduce between 2 actors:", results)
