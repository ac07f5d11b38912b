"""All processes of a group mean the same operation: before any data moves, they tell each other what they mean."""

import json
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import xxhash
from torch import Tensor

from ...codecs import Codec
from ._arguments import Processes
from ._wire import all_gather_single

_NBYTES = 512  # of a description: its hash, whether the values are finite, and as much of its text as there is room for
_HEAD = 9
_known: "WeakKeyDictionary[Any, set[bytes]]" = WeakKeyDictionary()


def check_ranks_match(
    operation: str,
    tensors: Sequence[Tensor],
    codecs: Sequence[Codec],
    processes: Processes,
    *,
    check_finite: bool = False,
) -> None:
    """Raise on every rank unless all of them call the same operation on alike tensors, with the same codecs.

    On CUDA, where this waits for the device, only what a group has not done before is compared. (Ranks that then differ
    end with the group's timeout.)

    Args:
        operation: its name and settings.
        tensors: what it works on.
        codecs: of each tensor.
        processes: of a group.
        check_finite: also raise, on every rank, where a value is NaN or infinite on one of them.

    Raises:
        ValueError: the ranks differ, or a value is not finite.
    """
    text = _described(operation, tensors, codecs, check_finite)
    device = tensors[0].device
    digest = xxhash.xxh3_64_digest(text)
    known = _known.setdefault(processes.group, set())
    if device.type == "cuda" and digest in known and not check_finite:
        return
    finite = not check_finite or all(bool(torch.isfinite(x).all()) for x in tensors)
    told = _exchanged(digest + bytes([finite]) + text[: _NBYTES - _HEAD], device, processes)
    _compare(told)
    known.add(digest)
    bad = [rank for rank, message in enumerate(told) if not message[8]]
    if bad:
        raise ValueError(f"{operation}: ranks {bad} have values that are NaN or infinite; finite ones are allowed")


def _described(operation: str, tensors: Sequence[Tensor], codecs: Sequence[Codec], check_finite: bool) -> bytes:
    each = [
        [str(x.dtype).removeprefix("torch."), list(x.shape), codec.config()]
        for x, codec in zip(tensors, codecs, strict=True)
    ]
    text = f"{operation}{' of finite values' if check_finite else ''} {json.dumps(each)}"
    return text.encode()


def _exchanged(message: bytes, device: torch.device, processes: Processes) -> list[bytes]:
    own = torch.frombuffer(bytearray(message.ljust(_NBYTES, b"\0")), dtype=torch.uint8).to(device)
    received = own.new_empty(processes.world * _NBYTES)
    # What fails, fails in `wait`: PyTorch's log of errors knows only groups that new_group made.
    all_gather_single(received, own, group=processes.group, async_op=True).wait()
    data = received.cpu().numpy().tobytes()
    return [data[i : i + _NBYTES] for i in range(0, len(data), _NBYTES)]


def _compare(told: Sequence[bytes]) -> None:
    first = told[0]
    for rank, message in enumerate(told):
        if message[:8] != first[:8]:
            a, b = (part[_HEAD:].rstrip(b"\0").decode(errors="replace") for part in (first, message))
            raise ValueError(f"the ranks of the group differ: rank 0 calls {a}; rank {rank} calls {b}")
