"""What of torchft 0.2.0 `arrcomp.torch.distributed.torchft` uses, written again from `torchft/process_group.py`."""

from __future__ import annotations

import sys
import types
from datetime import timedelta
from typing import Any

import torch.distributed as dist

_Group: Any = dist.ProcessGroup
_TCPStore: Any = dist.TCPStore  # type: ignore[attr-defined]


class ProcessGroupWrapper(_Group):  # type: ignore[misc]
    """A group that is made again of each quorum, or that forwards to another wrapper."""

    def __init__(self, timeout: timedelta = timedelta(seconds=60), pg: Any = None) -> None:
        super().__init__(0, 1)
        self._pg, self._timeout = pg, timeout
        self._quorum_id: int | None = None

    def configure(
        self, store_addr: str, replica_id: str, rank: int, world_size: int, quorum_id: int | None = None
    ) -> None:
        self._quorum_id = quorum_id
        if isinstance(self._pg, ProcessGroupWrapper):
            self._pg.configure(store_addr, replica_id, rank, world_size, quorum_id)
            return
        address, _, prefix = store_addr.partition("/")
        host, _, port = address.rpartition(":")
        store = _TCPStore(host, int(port), is_master=False, wait_for_workers=False, timeout=self._timeout)
        self._pg = self._create_pg(dist.PrefixStore(prefix, store), rank, world_size)  # type: ignore[attr-defined]

    def _create_pg(self, store: Any, rank: int, world_size: int) -> Any:
        raise NotImplementedError

    def allreduce(self, tensors: Any, opts: Any) -> Any:
        return self.parent.allreduce(tensors, opts)

    def broadcast(self, tensors: Any, opts: Any) -> Any:
        return self.parent.broadcast(tensors, opts)

    @property
    def parent(self) -> Any:
        return self._pg


class ProcessGroupGloo(ProcessGroupWrapper):
    """Gloo's."""

    def _create_pg(self, store: Any, rank: int, world_size: int) -> Any:
        import torch

        group, kind = _Group(store, rank, world_size), _Group.BackendType.GLOO
        group._set_default_backend(kind)
        backend: Any = dist.ProcessGroupGloo(store, rank, world_size, self._timeout)
        backend._set_sequence_number_for_group()
        group._register_backend(torch.device("cpu"), kind, backend)
        return group


def install() -> None:
    """Let `import torchft` find it."""
    package, module = types.ModuleType("torchft"), types.ModuleType("torchft.process_group")
    for target in (package, module):
        for kind in (ProcessGroupWrapper, ProcessGroupGloo):
            setattr(target, kind.__name__, kind)
    sys.modules |= {"torchft": package, "torchft.process_group": module}
