"""Registration of the backend "tutti", its creation, and the replacement of Gloo."""

from __future__ import annotations

import logging
import os
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch.distributed import distributed_c10d

import tutti

from . import _native, _shrinking
from ._options import DEVICES, Options, communicator_name
from ._reconfigure import HAS_RECONFIGURE, own_host

log = logging.getLogger("tutti.torch")
_shrinking.install()

PATH_VARIABLE = "TUTTI_PYTORCH_PATH"
REPLACE_VARIABLE = "TUTTI_PYTORCH_REPLACE_GLOO"


def path() -> str:
    """Returns "C++" or "Python": the path of new process groups.

    TUTTI_PYTORCH_PATH: "cpp" (an error if it is not built), "python"; default: C++ if it is built.
    """
    chosen = os.environ.get(PATH_VARIABLE, "")
    if chosen not in ("", "cpp", "python"):
        raise ValueError(f"{PATH_VARIABLE} is {chosen!r}; it must be cpp or python, or unset")
    if chosen == "python":
        return "Python"
    if _native.load() is not None:
        return "C++"
    if chosen == "cpp":
        raise ImportError(f"{PATH_VARIABLE} is cpp, but {_native.cache_path()} is missing: run `python -m tutti.torch.build`")
    return "Python"


def _checked(options: Any) -> Options:
    if options is None or isinstance(options, dist.ProcessGroupGloo.Options):
        return Options()
    if isinstance(options, Options):
        return options
    raise TypeError(f"pg_options is of class {type(options).__name__}; pass tutti.torch.Options or None")


def _create_native(given: Any, options: Options, replaces_gloo: bool) -> Any:
    module = _native.load()
    assert module is not None
    made = module.Options(given.timeout)
    made.group_name = given.group_id
    made.global_ranks_in_group = given.global_ranks_in_group
    made.communicator_name = communicator_name(given)
    made.replaces_gloo = replaces_gloo
    if HAS_RECONFIGURE:
        made.host = own_host(given.store)
        made.joins_later = getattr(given, "enable_reconfigure", False)
    for name, value in vars(options).items():
        setattr(made, name, value)
    return module.create(given.store, given.group_rank, given.group_size, made)


def create(given: Any, pg_options: Any = None, replaces_gloo: bool = False) -> Any:
    """Creates the backend of a process group. `given` is PyTorch's DistributedBackendOptions."""
    options = _checked(pg_options)
    used = path()
    log.info("process group %s uses Tutti %s (%s path)", given.group_id, tutti.__version__, used)
    if used == "C++":
        return _create_native(given, options, replaces_gloo)
    from . import backend

    return backend.create(given, options)


def process_group(store: Any, rank: int, size: int, timeout: Any = None, options: Any = None) -> Any:
    """Creates a process group that is not registered in torch.distributed, for libraries that manage groups themselves.

    store:   of PyTorch, with keys of this group alone; ranks find each other in it. After a failure, pass one with other keys
    timeout: datetime.timedelta of joining and of each operation; None: that of torch.distributed
    options: tutti.torch.Options or None

    Blocks until all ranks have joined.
    """
    given = distributed_c10d._DistributedBackendOptions()
    given.store, given.group_rank, given.group_size = store, rank, size
    given.timeout = distributed_c10d.default_pg_timeout if timeout is None else timeout
    made = create(given, options)
    if isinstance(made, dist.ProcessGroup):
        return made
    group = dist.ProcessGroup(store, rank, size)
    group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
    for device in DEVICES:
        group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.CUSTOM, made)
    return group


def register() -> None:
    """Makes "tutti" a backend of torch.distributed. Idempotent. Entry point of the group torch.distributed.backends."""
    if dist.is_available() and "TUTTI" not in dist.Backend._plugins:
        dist.Backend.register_backend("tutti", create, extended_api=True, devices=DEVICES)


def _create_for_gloo(given: Any, pg_options: Any = None) -> Any:
    made = create(given, pg_options, replaces_gloo=True)
    if given.group_rank == 0:
        log.warning("Tutti %s (%s path) replaces Gloo in process group %s, because %s is set", tutti.__version__, path(),
                    given.group_id, REPLACE_VARIABLE)
    return made


class _GlooOrTutti(type):
    """PyTorch asserts that what it creates for "gloo" is an instance of ProcessGroupGloo."""

    def __instancecheck__(cls, value: Any) -> bool:
        if isinstance(value, dist.ProcessGroupGloo):
            return True
        return isinstance(value, (c10d.Backend, dist.ProcessGroup)) and value.name() == "tutti"


class _GlooStandIn(metaclass=_GlooOrTutti):
    """Stands for the class ProcessGroupGloo in PyTorch before 2.14, which creates Gloo's groups by its name."""

    Options = dist.ProcessGroupGloo.Options

    def __new__(cls, store: Any, rank: int, size: int, timeout: Any = None) -> Any:
        given = distributed_c10d._DistributedBackendOptions()
        given.store, given.group_rank, given.group_size = store, rank, size
        given.timeout = timeout if timeout is not None else distributed_c10d.default_pg_timeout
        return _create_for_gloo(given)


def replace_gloo() -> None:
    """Makes the backend "gloo" use Tutti. Idempotent. Groups that exist keep their backend."""
    register()
    if hasattr(dist.Backend, "_ensure_backend_registered"):
        dist.Backend._ensure_backend_registered("gloo")
        dist.Backend._plugins["GLOO"] = dist.Backend._BackendPlugin(_create_for_gloo, True)
        dist.Backend.backend_capability["gloo"] = DEVICES
    else:
        from . import _older

        _older.replace_gloo(_GlooStandIn)
    # c10d casts backends of the type GLOO to ProcessGroupGloo.
    dist.Backend.backend_type_map["gloo"] = dist.ProcessGroup.BackendType.CUSTOM
