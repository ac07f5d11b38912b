"""Transport of bytes between the ranks of a group, by the collectives of torch.distributed.

An operation with several exchanges is a generator. It starts an exchange, yields its `Work`, and is resumed after that
was waited for. The same code serves synchronous and asynchronous callers, and CUDA streams.
"""

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from ._arguments import Processes
from ._messages import Messages

T = TypeVar("T")
Steps = Generator[Any, None, T]

# PyTorch 2.13 renamed these functions, and warns about the old names.
all_gather_single: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter_single: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def exchange(messages: Messages, incoming: list[int] | None, processes: Processes) -> Steps[list[Tensor]]:
    """Send the i-th message to rank i of the group. Returns the message from each rank.

    Here and below, a size (`incoming`: of the message from each rank) is None if only the sender knows it. It is then
    sent first, which synchronizes CUDA.
    """
    buffer, sizes = messages
    if incoming is None:
        sent = torch.tensor(sizes, dtype=torch.int64, device=buffer.device)
        own = torch.empty_like(sent)
        yield dist.all_to_all_single(own, sent, group=processes.group, async_op=True)
        incoming = own.tolist()
    received = buffer.new_empty(sum(incoming))
    yield dist.all_to_all_single(received, buffer, incoming, sizes, group=processes.group, async_op=True)
    return list(received.split_with_sizes(incoming))


def gather(message: Tensor, sizes: Sequence[int] | None, processes: Processes) -> Steps[list[Tensor]]:
    """Gather the messages of all ranks on every rank."""
    if sizes is None:
        sizes = (yield from _gathered(_nbytes(message), processes)).flatten().tolist()
    longest = max(sizes)
    received = yield from _gathered(torch.nn.functional.pad(message, (0, longest - message.numel())), processes)
    return [row[:size] for row, size in zip(received, sizes, strict=True)]


def shift(message: Tensor, size: int | None, processes: Processes) -> Steps[Tensor]:
    """Send a message to the next rank. Returns the message from the previous rank, of `size` bytes."""
    if size is None:
        own = _nbytes(message)
        incoming = torch.empty_like(own)
        yield from _shifted(own, incoming, processes)
        size = int(incoming.item())
    received = message.new_empty(size)
    yield from _shifted(message, received, processes)
    return received


def _shifted(sent: Tensor, received: Tensor, processes: Processes) -> Steps[None]:
    # One all-to-all: separate NCCL sends and receives may deadlock, and PyTorch batches them only in its own groups.
    ranks, own = range(processes.world), processes.rank
    incoming = [received.numel() if (rank + 1) % processes.world == own else 0 for rank in ranks]
    outgoing = [sent.numel() if rank == (own + 1) % processes.world else 0 for rank in ranks]
    yield dist.all_to_all_single(received, sent, incoming, outgoing, group=processes.group, async_op=True)


def broadcast_message(
    message: Tensor | None, size: int | None, src: int, processes: Processes, device: torch.device
) -> Steps[Tensor]:
    """Send the message of the source, a global rank, to every rank. Other ranks have none."""
    if size is None:
        nbytes = torch.zeros(1, dtype=torch.int64, device=device) if message is None else _nbytes(message)
        yield dist.broadcast(nbytes, src, group=processes.group, async_op=True)
        size = int(nbytes.item())
    buffer = torch.empty(size, dtype=torch.uint8, device=device) if message is None else message
    yield dist.broadcast(buffer, src, group=processes.group, async_op=True)
    return buffer


def _gathered(x: Tensor, processes: Processes) -> Steps[Tensor]:
    received = x.new_empty(processes.world, x.numel())
    yield all_gather_single(received.view(-1), x, group=processes.group, async_op=True)
    return received


def _nbytes(message: Tensor) -> Tensor:
    return torch.tensor([message.numel()], dtype=torch.int64, device=message.device)


def run_steps(steps: Steps[T]) -> T:
    """Run an operation to its end and return its result, waiting for each exchange (on CUDA: on the stream)."""
    try:
        while True:
            next(steps).wait()
    except StopIteration as end:
        result: T = end.value
        return result


def then_copy_back(steps: Steps[None], copies: Sequence[Tensor], tensors: Sequence[Tensor]) -> Steps[None]:
    """The steps, then a copy from the contiguous copies back to the tensors."""
    yield from steps
    for copy, x in zip(copies, tensors, strict=True):
        if copy.data_ptr() != x.data_ptr():
            x.copy_(copy)
