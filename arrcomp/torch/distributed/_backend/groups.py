"""Groups of PyTorch's own backends, created from a store by some processes, without the other ones."""

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

_PrefixStore: Any = dist.PrefixStore  # type: ignore[attr-defined]


class Members(NamedTuple):
    """Processes that create groups together.

    Attributes:
        store: for the rendezvous.
        ranks: global ranks.
        rank: of this process among them.
        timeout: of the groups.
        name: of the groups, for messages.
        nccl: a `torch.distributed.ProcessGroupNCCL.Options`, or None.
    """

    store: Any
    ranks: Sequence[int]
    rank: int
    timeout: timedelta
    name: str
    nccl: Any = None

    def subset(self, ranks: Sequence[int], name: str) -> "Members":
        """Some of these processes, by their ranks here, including this one. The name must be unique."""
        store, members = _PrefixStore(f"{name}/", self.store), [self.ranks[i] for i in ranks]
        return self._replace(store=store, ranks=members, rank=ranks.index(self.rank), name=f"{self.name}/{name}")

    def make(self, backends: dict[str, str]) -> Any:
        """A process group with a backend for each device. All members must call this."""
        group: Any = dist.ProcessGroup(self.store, self.rank, len(self.ranks))
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
