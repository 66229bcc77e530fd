"""Point-to-point messages of the Python path."""

from __future__ import annotations

import ctypes
import datetime
import threading
from typing import Any, List, Optional, Sequence

import torch

from tutti import _api
from tutti._errors import check

from ._python_calls import Work
from ._python_tensors import elements_of, finish, only, readable, writable

ANY_RANK = -1


class _Message(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("peer", ctypes.c_int), ("tag", ctypes.c_uint64), ("count", ctypes.c_size_t)]


def _function(name: str, *arguments: Any) -> Any:
    function = getattr(_api.library, name)
    function.argtypes = arguments
    return function


_start = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p,
          ctypes.POINTER(ctypes.c_void_p))


class MessageWork(Work):
    """A send or receive."""

    def __init__(self, group: Any, tensor: torch.Tensor, receives: bool) -> None:
        super().__init__([tensor])
        self._group, self._tensor, self._receives = group, tensor, receives
        self._dense = writable(tensor) if receives else readable(tensor)
        self._request = ctypes.c_void_p()
        self._message = _Message(size=ctypes.sizeof(_Message))
        self._wait_request = _function("tutti_request_wait", ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(_Message))

    def start(self, peer: int, tag: int) -> MessageWork:
        element = elements_of(self._tensor)
        function = _function("tutti_irecv" if self._receives else "tutti_isend", *_start)
        check(function(self._dense.data_ptr(), self._dense.numel() * element.per_element, element.type, peer, tag,
                       self._group._comm.handle(), self._request))
        return self

    def _poll(self, timeout_ms: int) -> bool:
        """Waits for the request, and completes this work. Returns false if the time has passed."""
        if self._done.is_set():
            return True
        status = self._wait_request(self._request, timeout_ms, self._message)
        if status == _api.Status.in_progress:
            return False
        with self._lock:
            if self._done.is_set():
                return True
            try:
                check(status)
                if self._receives:
                    with torch.inference_mode():
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
        if not self._poll(int(limit.total_seconds() * 1000) or -1):
            operation = "recv" if self._receives else "send"
            raise RuntimeError(f"{operation}: no peer has met this call within {limit}; start the matching call, or increase "
                               "the timeout")
        return super().wait()

    def source_rank(self) -> int:
        return int(self._message.peer)

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        future = super().get_future()
        if not self._done.is_set():
            threading.Thread(target=self._poll, args=(-1,), daemon=True).start()
        return future

    def __del__(self) -> None:
        if self._request.value is None:
            return
        if not self._receives and not self._poll(0):
            self._group._keep(self)  # A send whose work was dropped is sent nevertheless.
            return
        _function("tutti_request_destroy", ctypes.c_void_p)(self._request)


class Messages:
    """Methods of a backend."""

    _dropped: Optional[List[Any]] = None

    def _keep(self, work: MessageWork) -> None:
        kept = [other for other in self._dropped or [] if not other.is_completed()]
        self._dropped = [*kept, work]

    def send(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return MessageWork(self, only("send", tensors), False).start(peer, tag)

    def recv(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return MessageWork(self, only("recv", tensors), True).start(peer, tag)

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Any:
        return MessageWork(self, only("recv_anysource", tensors), True).start(ANY_RANK, tag)
