"""Point-to-point messages of the Python path."""

from __future__ import annotations

import ctypes
import datetime
import os
import sys
import threading
from typing import Any, Sequence

import torch

from tutti._api import ANY_RANK, MessageStruct, Status, c
from tutti._errors import check
from tutti._messages import forget
from tutti._options import limit_ms

from ._errors import argument_error, raised_by, timeout_error
from ._python_calls import Work
from ._python_tensors import check_writable, elements_of, finish, no_autograd, only, readable, writable


class MessageWork(Work):
    """A send or receive."""

    def __init__(self, group: Any, tensor: torch.Tensor, receives: bool) -> None:
        super().__init__([tensor], group._rank)
        self._request = ctypes.c_void_p()
        self._process = os.getpid()
        self._group, self._tensor, self._receives = group, tensor, receives
        self._dense = writable(tensor) if receives else readable(tensor)
        self._message = MessageStruct(size=ctypes.sizeof(MessageStruct))

    def start(self, peer: int, tag: int) -> MessageWork:
        element = elements_of(self._tensor)
        begin = c.irecv if self._receives else c.isend
        with raised_by(self._rank):
            check(begin(self._dense.data_ptr(), self._dense.numel() * element.per_element, element.type, peer, tag,
                        self._group._comm.handle(), self._request))
        return self

    def _poll(self, timeout_ms: int) -> bool:
        """Waits for the request, and completes this work. Returns false if the time has passed."""
        if self._done.is_set():
            return True
        status = c.request_wait(self._request, timeout_ms, self._message)
        if status == Status.in_progress:
            return False
        with self._lock:
            if self._done.is_set():
                return True
            try:
                with raised_by(self._rank):
                    check(status)
                if self._receives:
                    with no_autograd():
                        finish(self._dense, self._tensor)
            except Exception as error:
                self._error = error
            self._done.set()
            base = self._base
        if base is not None:
            base.set_result(self._outputs)
        return True

    def is_completed(self) -> bool:
        return self._poll(0)

    def wait(self, timeout: datetime.timedelta = datetime.timedelta(0)) -> bool:
        limit = timeout if timeout.total_seconds() > 0 else self._group._timeout
        seconds = limit.total_seconds()
        if not self._poll(limit_ms(seconds if seconds > 0 else None)):
            operation = "recv" if self._receives else "send"
            raise timeout_error(f"tutti_{operation}: the message has not completed within {limit}; it continues: make the "
                                "matching call, wait again, or increase the timeout", self._rank)
        return super().wait()

    def source_rank(self) -> int:
        return int(self._message.peer)

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        future = super().get_future()
        if not self._done.is_set():
            thread = threading.Thread(target=self._poll, args=(-1,), daemon=True)
            with self._group._lock:
                thread.start()
                self._group._waiting.add(thread)
        return future

    def __del__(self, is_finalizing: Any = sys.is_finalizing, getpid: Any = os.getpid) -> None:
        if self._request.value is None or is_finalizing() or self._process != getpid():
            return
        # A send whose work was dropped is sent nevertheless. A receive is cancelled, unless this is a callback in the library's
        # thread and data move.
        if not self._receives or c.request_destroy(self._request):
            forget(self._request.value, self._dense)


class Messages:
    """Methods of a backend."""

    _size: int
    _add_to_section: Any

    def _message(self, operation: str, tensors: Sequence[torch.Tensor], peer: int, tag: int) -> Any:
        if tag < 0:
            raise argument_error(f"{operation}: tag {tag} is negative; tags are 0 and above")
        receives = operation != "send"
        tensor = only(operation, tensors)
        if receives:
            check_writable(tensor)
        work = MessageWork(self, tensor, receives).start(peer, tag)
        self._add_to_section(work)
        return work

    def _checked(self, operation: str, peer: int) -> int:
        if not 0 <= peer < self._size:
            raise argument_error(f"{operation}: rank {peer} is out of range; ranks are 0..{self._size - 1}")
        return peer

    def send(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return self._message("send", tensors, self._checked("send", peer), tag)

    def recv(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return self._message("recv", tensors, self._checked("recv", peer), tag)

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Any:
        return self._message("recv_anysource", tensors, ANY_RANK, tag)
