"""Bytes between the processes of a group, by the collectives of torch.distributed alone.

What takes several exchanges is a generator: it starts one, yields its `Work`, and goes on when somebody has waited for
it. So one text serves callers that wait at once, that wait later, and those on a CUDA stream, which never wait.
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

# PyTorch 2.13 gave these new names, and warns of the old ones.
all_gather_single: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter_single: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def exchange(messages: Messages, incoming: Sequence[int] | None, processes: Processes) -> Steps[list[Tensor]]:
    """Send the i-th message to rank i of the group; the message of each rank.

    Args:
        messages: one for each rank.
        incoming: bytes of what each rank sends; None if only the sender knows, who then tells: on CUDA this waits.
        processes: of a group.
    """
    if incoming is None:
        incoming = yield from _exchanged_sizes(messages, processes)
    received = messages.buffer.new_empty(sum(incoming))
    yield dist.all_to_all_single(
        received, messages.buffer, list(incoming), messages.sizes, group=processes.group, async_op=True
    )
    return list(received.split_with_sizes(list(incoming)))


def gather(message: Tensor, sizes: Sequence[int] | None, processes: Processes) -> Steps[list[Tensor]]:
    """The message of each rank, on every rank.

    Args:
        message: uint8, of this rank.
        sizes: of each rank's message; None if only the sender knows, who then tells: on CUDA this waits.
        processes: of a group.
    """
    if sizes is None:
        own = torch.tensor([message.numel()], dtype=torch.int64, device=message.device)
        sizes = (yield from _gathered(own, processes)).flatten().tolist()
    longest = max(sizes)
    received = yield from _gathered(torch.nn.functional.pad(message, (0, longest - message.numel())), processes)
    return [row[:size] for row, size in zip(received, sizes, strict=True)]


def shift(message: Tensor, size: int | None, processes: Processes) -> Steps[Tensor]:
    """Send a message to the next rank; that of the rank before.

    Args:
        message: uint8.
        size: bytes of what comes; None if only the sender knows, who then tells: on CUDA this waits.
        processes: of a group.
    """
    if size is None:
        own = torch.tensor([message.numel()], dtype=torch.int64, device=message.device)
        told = torch.empty_like(own)
        yield from _shifted(own, told, processes)
        size = int(told.item())
    received = message.new_empty(size)
    yield from _shifted(message, received, processes)
    return received


def _shifted(sent: Tensor, received: Tensor, processes: Processes) -> Steps[None]:
    # One operation: NCCL's send and receive may wait for each other, and PyTorch batches them in its own groups alone.
    ranks, own = range(processes.world), processes.rank
    incoming = [received.numel() if (rank + 1) % processes.world == own else 0 for rank in ranks]
    outgoing = [sent.numel() if rank == (own + 1) % processes.world else 0 for rank in ranks]
    yield dist.all_to_all_single(received, sent, incoming, outgoing, group=processes.group, async_op=True)


def broadcast_message(
    message: Tensor | None, size: int | None, src: int, processes: Processes, device: torch.device
) -> Steps[Tensor]:
    """The message of one process, on every rank.

    Args:
        message: uint8, on the process that sends it; None on others.
        size: its bytes; None if only the sender knows, who then tells: on CUDA this waits.
        src: the sender's rank in the whole program.
        processes: of a group.
        device: where the message comes.
    """
    if size is None:
        told = torch.tensor([0 if message is None else message.numel()], dtype=torch.int64, device=device)
        yield dist.broadcast(told, src, group=processes.group, async_op=True)
        size = int(told.item())
    buffer = torch.empty(size, dtype=torch.uint8, device=device) if message is None else message
    yield dist.broadcast(buffer, src, group=processes.group, async_op=True)
    return buffer


def _gathered(x: Tensor, processes: Processes) -> Steps[Tensor]:
    received = x.new_empty(processes.world, x.numel())
    yield all_gather_single(received.view(-1), x, group=processes.group, async_op=True)
    return received


def _exchanged_sizes(messages: Messages, processes: Processes) -> Steps[list[int]]:
    sent = torch.tensor(messages.sizes, dtype=torch.int64, device=messages.buffer.device)
    received = torch.empty_like(sent)
    yield dist.all_to_all_single(received, sent, group=processes.group, async_op=True)
    sizes: list[int] = received.tolist()
    return sizes


def run_steps(steps: Steps[T]) -> T:
    """The result of an operation, whose exchanges are waited for one by one (on CUDA: by the current stream)."""
    try:
        while True:
            next(steps).wait()
    except StopIteration as end:
        result: T = end.value
        return result


def then_copy_back(steps: Steps[None], copies: Sequence[Tensor], tensors: Sequence[Tensor]) -> Steps[None]:
    """Steps after which tensors that are not contiguous get what their copies have."""
    yield from steps
    for copy, x in zip(copies, tensors, strict=True):
        if copy.data_ptr() != x.data_ptr():
            x.copy_(copy)
