"""A process group that forwards all operations to one of PyTorch's own groups."""

from typing import Any

import torch
import torch.distributed as dist

from .groups import add_backend

_ProcessGroup: Any = dist.ProcessGroup


class ForwardingGroup(_ProcessGroup):  # type: ignore[misc]
    """A group that forwards its operations to another group, with the same processes and backends.

    It overrides all operations that PyTorch lets Python override (torch/csrc/distributed/c10d/PyProcessGroup.hpp, under
    their new and old names). PyTorch runs the others with the GIL held, which can deadlock: a Gloo thread that holds
    Gloo's lock may wait for the GIL, while the call waits for Gloo's lock. The methods of the other group release the
    GIL.

    Args:
        plain: the other group.
        backends: of each device.
    """

    def __init__(self, plain: Any, backends: dict[str, str]) -> None:
        super().__init__(plain.rank(), plain.size())
        self.plain = plain
        for device, name in backends.items():
            add_backend(self, device, name, plain._get_backend(torch.device(device)))

    def allreduce(self, *args: Any, **options: Any) -> Any:
        return self.plain.allreduce(*args, **options)

    def allreduce_coalesced(self, *args: Any, **options: Any) -> Any:
        return self.plain.allreduce_coalesced(*args, **options)

    def allgather(self, *args: Any, **options: Any) -> Any:
        return self.plain.allgather(*args, **options)

    def all_gather_single_coalesced(self, *args: Any, **options: Any) -> Any:
        return self.plain.all_gather_single_coalesced(*args, **options)

    def allgather_into_tensor_coalesced(self, *args: Any, **options: Any) -> Any:
        return self.plain.allgather_into_tensor_coalesced(*args, **options)

    def all_to_all_single(self, *args: Any, **options: Any) -> Any:
        return self.plain.all_to_all_single(*args, **options)

    def alltoall_base(self, *args: Any, **options: Any) -> Any:
        return self.plain.alltoall_base(*args, **options)

    def barrier(self, *args: Any, **options: Any) -> Any:
        return self.plain.barrier(*args, **options)

    def broadcast(self, *args: Any, **options: Any) -> Any:
        return self.plain.broadcast(*args, **options)

    def reduce_scatter(self, *args: Any, **options: Any) -> Any:
        return self.plain.reduce_scatter(*args, **options)

    def reduce_scatter_single_coalesced(self, *args: Any, **options: Any) -> Any:
        return self.plain.reduce_scatter_single_coalesced(*args, **options)

    def reduce_scatter_tensor_coalesced(self, *args: Any, **options: Any) -> Any:
        return self.plain.reduce_scatter_tensor_coalesced(*args, **options)

    def send(self, *args: Any, **options: Any) -> Any:
        return self.plain.send(*args, **options)

    def recv(self, *args: Any, **options: Any) -> Any:
        return self.plain.recv(*args, **options)
