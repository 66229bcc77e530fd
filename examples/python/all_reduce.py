"""Adds an array over all ranks, in place and in a stream.

torchrun --nproc-per-node 4 all_reduce.py     # or mpirun -n 4 python3 all_reduce.py, or srun -n 4 python3 all_reduce.py
for r in 0 1 2 3; do TUTTI_RANK=$r TUTTI_RANKS=4 python3 all_reduce.py & done; wait     # without a launcher
"""

import numpy
import tutti

with tutti.Communicator() as comm:
    gradients = numpy.full(1_000_000, comm.rank + 1, dtype="float32")
    comm.all_reduce(gradients, op="avg", out=gradients)

    # The stream runs the call while this thread computes.
    with tutti.Stream() as stream:
        losses = comm.all_gather(numpy.array(1 / (comm.rank + 1)), stream=stream)
        norm = float(numpy.linalg.norm(gradients))
        stream.synchronize()

    if comm.rank == 0:
        print(f"{comm.ranks} ranks: mean {gradients[0]:g}, norm {norm:g}, losses {losses.round(3).tolist()}")
