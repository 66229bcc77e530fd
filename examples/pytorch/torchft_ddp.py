"""Fault-tolerant data parallelism with torchft over Tutti: training goes on while replicas leave and join.

    python3 examples/pytorch/torchft_ddp.py

Needs the package torchft-nightly. Replica 1 ends after 5 steps; replica 0 continues alone.
"""

import datetime
import multiprocessing
import os

import torch
import torchft
import tutti.torch
from torchft.coordination import LighthouseServer
from torchft.process_group import ProcessGroupWrapper

STEPS = (10, 5)  # By replica.


class ProcessGroupTutti(ProcessGroupWrapper):
    """The group of the replicas that are alive. torchft creates a new one whenever a replica leaves or joins."""

    def _create_pg(self, store, rank, world_size):
        return tutti.torch.process_group(store, rank, world_size, self._timeout)

    def getBackendName(self):
        return "torchft-tutti"


def train(replica, lighthouse, started):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    torch.manual_seed(0)
    network = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    manager = torchft.Manager(
        pg=ProcessGroupTutti(timeout=datetime.timedelta(seconds=20)), min_replica_size=1, rank=0, world_size=1,
        state_dict=lambda: {"model": network.state_dict(), "optimizer": optimizer.state_dict()},
        load_state_dict=lambda state: (network.load_state_dict(state["model"]), optimizer.load_state_dict(state["optimizer"])),
        store_addr="127.0.0.1", store_port=store.port, lighthouse_addr=lighthouse, replica_id=f"replica_{replica}")
    started.wait()  # Both replicas are known to the lighthouse.
    model = torchft.DistributedDataParallel(manager, network)
    managed = torchft.Optimizer(manager, optimizer)
    while manager.current_step() < STEPS[replica]:
        points = torch.randn(32, 8)
        managed.zero_grad()
        loss = (model(points) - points.sum(dim=1, keepdim=True)).square().mean()
        loss.backward()
        managed.step()
        step, replicas = manager.current_step(), manager.num_participants()
        print(f"replica {replica} step {step}: loss {loss:.4f}, {replicas} replicas", flush=True)
    manager.shutdown(wait=False)


if __name__ == "__main__":
    server = LighthouseServer(bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=2000)
    context = multiprocessing.get_context("spawn")
    arguments = server.address(), context.Barrier(2)
    replicas = [context.Process(target=train, args=(replica, *arguments)) for replica in range(2)]
    for process in replicas:
        process.start()
    for process in replicas:
        process.join()
    server.shutdown()
