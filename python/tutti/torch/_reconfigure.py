"""New memberships of a process group, torch.distributed._reconfigure(), on the Python path; and this process's address for both."""

from __future__ import annotations

import datetime
import ipaddress
import re
import socket
from typing import Any, List, Optional, Tuple

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti._api import Status

from ._errors import argument_error, error_of, raised_by, timeout_error
from ._options import Options
from ._python_barriers import MonitoredBarriers
from ._python_calls import KEY, CallQueue, Communicator, join, options_of

HAS_RECONFIGURE = hasattr(c10d, "ReconfigureOptions")  # PyTorch 2.14.


def own_host(store: Any) -> str:
    """Returns the address of this process in the network of a TCPStore, or the host name with another store.

    On the host of the store it is the store's name for the host, because a loopback address is of no use on other hosts.
    """
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    if not isinstance(store, dist.TCPStore):
        return socket.gethostname()
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(store.host, store.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:  # Sends nothing.
            probe.connect(address)
            own = str(probe.getsockname()[0])
        return str(store.host) if ipaddress.ip_address(own).is_loopback else own
    except OSError:
        return socket.gethostname()


class Reconfigurable:
    """Methods of a backend whose members can be replaced; see reconfigure() in native/process_group.h."""

    _rank: int
    _size: int
    _store: Any
    _options: Options
    _timeout: datetime.timedelta
    _communicator_name: str
    _comm: Communicator
    _queue: CallQueue
    _sequence: int
    _start: Any
    _monitored_barriers: Optional[MonitoredBarriers]
    _hosted: Any = None  # Store of this process.
    _can_reconfigure = True

    def get_reconfigure_handle(self) -> str:
        if not self._can_reconfigure:
            raise error_of(Status.unsupported, "reconfigure: on the Python path, the members of a group that split_group, "
                           "shrink_group or merge_remote_group has made cannot change; build the C++ path with `python -m "
                           "tutti.torch.build`, or make the group with new_group", self._rank)
        if self._hosted is None:
            self._hosted = dist.TCPStore(own_host(self._store), 0, is_master=True, wait_for_workers=False, timeout=self._timeout)
        return f"{self._hosted.host}:{self._hosted.port}"

    def reconfigure(self, given: Any) -> Any:
        own = self.get_reconfigure_handle()
        handles = given.handles if isinstance(given.handles, list) else sorted(given.handles)
        for each in handles:
            _address_of(each, self._rank)
        rank, size = _rank_of(own, handles), len(handles)
        timeout = self._timeout if given.timeout is None else given.timeout
        self._leave()
        with raised_by(rank):
            store = self._meet_rank_0(handles, rank, given.uuid, timeout)
            made = options_of(self._options, self._communicator_name, self._timeout, timeout)
            handle, own_store = join(store, rank, size, made)
        self._rank, self._size, self._sequence = rank, size, 0
        self._comm = Communicator(handle, self._timeout)
        self._monitored_barriers = MonitoredBarriers(own_store, rank, size)
        return self._start("", None, [], lambda comm: None)

    def _leave(self) -> None:
        if not self._queue.is_idle():
            self._comm.abort()
        self._queue.stop()
        self._comm.leave()
        self._comm, self._queue = Communicator(None, self._timeout), CallQueue()
        self._monitored_barriers = None

    def _meet_rank_0(self, handles: List[str], rank: int, uuid: int, timeout: datetime.timedelta) -> Any:
        """Returns the store of rank 0, when rank 0 has begun to join."""
        try:
            store = self._hosted
            if rank != 0:
                host, port = _address_of(handles[0], rank)
                store = dist.TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timeout)
            store = dist.PrefixStore(f"reconfigure/{uuid}", store)
            if rank != 0:
                store.wait([KEY], timeout)
            return store
        except RuntimeError as error:
            raise timeout_error(
                f"reconfigure: rank 0, {handles[0]}, has not called reconfigure within {timeout}; pass handles of live ranks, "
                f"and call it on all of them ({str(error).splitlines()[0]})", rank) from None


def _address_of(handle: str, rank: int) -> Tuple[str, int]:
    host, _, port = handle.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise error_of(Status.invalid_argument, f"reconfigure: the handle '{handle}' is not HOST:PORT, with a port of 1..65535; "
                       "pass the results of get_reconfigure_handle()", rank)
    return host, int(port)


def _rank_of(own: str, handles: List[str]) -> int:
    if handles.count(own) != 1:
        raise argument_error(f"reconfigure: the handle of this rank, {own}, occurs {handles.count(own)} times in {len(handles)} "
                             "handles; pass the handle of each rank once")
    return handles.index(own)
