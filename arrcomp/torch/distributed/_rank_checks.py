"""A check that all ranks of a group call the same operation, before data is sent."""

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

_NBYTES = 512  # of a description: its hash, whether the values are finite, and the beginning of its text
_TEXT_START = 9
_known: "WeakKeyDictionary[Any, set[bytes]]" = WeakKeyDictionary()


def check_ranks_match(
    operation: str, xs: Sequence[Tensor], codecs: Sequence[Codec], processes: Processes, *, check_finite: bool = False
) -> None:
    """Raise ValueError on every rank unless all call the same operation with the same dtypes, shapes and codecs.

    On CUDA, where this synchronizes, a group compares an operation only the first time. (A later mismatch ends with the
    group's timeout.)
    `operation` is its name and settings. With `check_finite`, a NaN or an infinity of any rank also raises.
    """
    named = f"{operation} with check_finite" if check_finite else operation
    each = [
        [str(x.dtype).removeprefix("torch."), list(x.shape), codec.config()]
        for x, codec in zip(xs, codecs, strict=True)
    ]
    text, device = f"{named} {json.dumps(each)}".encode(), xs[0].device
    digest = xxhash.xxh3_64_digest(text)
    known = _known.setdefault(processes.group, set())
    if device.type == "cuda" and digest in known and not check_finite:
        return
    finite = not check_finite or all(bool(torch.isfinite(x).all()) for x in xs)
    messages = _exchanged(digest + bytes([finite]) + text[: _NBYTES - _TEXT_START], device, processes)
    _compare(messages)
    known.add(digest)
    bad = [rank for rank, message in enumerate(messages) if not message[8]]
    if bad:
        raise ValueError(f"{operation}: expected finite values, got NaN or infinity on ranks {bad}")


def _exchanged(message: bytes, device: torch.device, processes: Processes) -> list[bytes]:
    own = torch.frombuffer(bytearray(message.ljust(_NBYTES, b"\0")), dtype=torch.uint8).to(device)
    received = own.new_empty(processes.world * _NBYTES)
    # Asynchronous, so that errors are raised by `wait`: PyTorch's error log knows only groups of new_group.
    all_gather_single(received, own, group=processes.group, async_op=True).wait()
    data = received.cpu().numpy().tobytes()
    return [data[i : i + _NBYTES] for i in range(0, len(data), _NBYTES)]


def _compare(messages: Sequence[bytes]) -> None:
    first = messages[0]
    for rank, message in enumerate(messages):
        if message[:8] != first[:8]:
            a, b = (x[_TEXT_START:].rstrip(b"\0").decode(errors="replace") for x in (first, message))
            expected, got = _differences(a, b) if a != b else (f"{a[:60]}...", "another tensor or codec")
            raise ValueError(f"ranks: expected the call of rank 0, {expected}, got {got} on rank {rank}")


def _differences(a: str, b: str) -> tuple[str, str]:
    """The words in which two texts differ, with the word before them."""
    first, second = a.split(" "), b.split(" ")
    start = _common_length(first, second)
    end = _common_length(first[start:][::-1], second[start:][::-1])
    before = first[max(start - 1, 0) : start]
    shown = [" ".join(before + words[start : len(words) - end]).rstrip(",") for words in (first, second)]
    return shown[0], shown[1]


def _common_length(a: Sequence[str], b: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
