"""Groups of PyTorch's own backends: created from a store by some processes without the other ones, and forwarded to."""

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

_PrefixStore: Any = dist.PrefixStore  # type: ignore[attr-defined]
_ProcessGroup: Any = dist.ProcessGroup


class Members(NamedTuple):
    """Processes that create groups together, with a timeout, and a name for messages."""

    store: Any  # for the rendezvous
    ranks: Sequence[int]  # global ranks
    rank: int  # of this process among them
    timeout: timedelta
    name: str
    nccl: Any = None  # a torch.distributed.ProcessGroupNCCL.Options

    def subset(self, ranks: Sequence[int], name: str) -> "Members":
        """Some of these processes, by their ranks here, including this one. The name must be unique."""
        store, members = _PrefixStore(f"{name}/", self.store), [self.ranks[i] for i in ranks]
        return self._replace(store=store, ranks=members, rank=ranks.index(self.rank), name=f"{self.name}/{name}")

    def make(self, backends: dict[str, str]) -> Any:
        """A process group with a backend for each device. All members must call this."""
        group: Any = _ProcessGroup(self.store, self.rank, len(self.ranks))
        for device, name in backends.items():
            backend = _MAKERS[name](self._replace(store=_PrefixStore(f"{device}/", self.store)))
            add_backend(group, device, name, backend)
        group._set_group_name(self.name)
        return group


def add_backend(group: Any, device: str, name: str, backend: Any) -> None:
    """Let a group use a backend for the tensors of a device; the last one also for operations without tensors."""
    kind = getattr(dist.ProcessGroup.BackendType, name.upper())
    group._set_default_backend(kind)
    group._register_backend(torch.device(device), kind, backend)


class ForwardingGroup(_ProcessGroup):  # type: ignore[misc]
    """A group that forwards its operations to another group, `plain`, with the same processes and backends.

    It overrides all operations that PyTorch lets Python override (torch/csrc/distributed/c10d/PyProcessGroup.hpp, under
    their new and old names). PyTorch runs the others with the GIL held, which can deadlock: a Gloo thread that holds
    Gloo's lock may wait for the GIL, while the call waits for Gloo's lock. The methods of the other group release the
    GIL.
    """

    def __init__(self, plain: Any, backends: dict[str, str]) -> None:
        super().__init__(plain.rank(), plain.size())
        self.plain = plain
        for device, name in backends.items():
            add_backend(self, device, name, plain._get_backend(torch.device(device)))


def _forwarded(name: str) -> Any:
    def operation(self: ForwardingGroup, *args: Any, **options: Any) -> Any:
        return getattr(self.plain, name)(*args, **options)

    return operation


_OPERATIONS = ("allreduce", "allgather", "alltoall_base", "barrier", "broadcast", "reduce_scatter", "send", "recv")
_COALESCED = ("allreduce_coalesced", "allgather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced")
_NEW_NAMES = ("all_gather_single_coalesced", "all_to_all_single", "reduce_scatter_single_coalesced")
for _name in (*_OPERATIONS, *_COALESCED, *_NEW_NAMES):
    setattr(ForwardingGroup, _name, _forwarded(_name))


def usual_backends() -> dict[str, str]:
    """Gloo on the CPU, and NCCL on CUDA if there is a GPU."""
    if not torch.cuda.is_available():
        return {"cpu": "gloo"}
    return {"cpu": "gloo", "cuda": "nccl" if dist.is_nccl_available() else "gloo"}


def _gloo(members: Members) -> Any:
    return dist.ProcessGroupGloo(members.store, members.rank, len(members.ranks), timeout=members.timeout)


def _nccl(members: Members) -> Any:
    options = dist.ProcessGroupNCCL.Options() if members.nccl is None else copy.deepcopy(members.nccl)
    options._timeout = members.timeout
    options.global_ranks_in_group, options.group_name = list(members.ranks), members.name
    return dist.ProcessGroupNCCL(members.store, members.rank, len(members.ranks), options)


def _mpi(members: Members) -> Any:
    return dist.ProcessGroupMPI.create(list(members.ranks))


_MAKERS: dict[str, Any] = {"gloo": _gloo, "nccl": _nccl, "mpi": _mpi}
