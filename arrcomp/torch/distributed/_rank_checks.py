"""A check that all ranks of a group call the same operation, before data is sent."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import xxhash
from torch import Tensor

from ..._arguments import shortened
from ...codecs import Codec, codec_from_config
from ._arguments import Processes
from ._wire import all_gather_single

_HASH_NBYTES, _LENGTH_NBYTES = 8, 8  # of the first message: a hash, a length, and whether the values are finite
_MOST_SHOWN = 3  # differences in one error
_known: "WeakKeyDictionary[Any, set[bytes]]" = WeakKeyDictionary()


def check_ranks_match(
    operation: str,
    xs: Sequence[Tensor],
    codecs: Sequence[Codec],
    processes: Processes,
    *,
    names: Sequence[str] | None = None,
    shapes: Sequence[Sequence[int]] | None = None,
    settings: Mapping[str, Any] | None = None,
    check_finite: bool = False,
) -> bool:
    """Raise ValueError on every rank unless all call the same operation with the same dtypes, shapes and codecs.

    The error names only what differs. On CUDA, where this synchronizes, a group compares an operation only the first
    time. (A later mismatch ends with the group's timeout.)
    `names` are those of the tensors, for the error; `shapes` are what the ranks must share of theirs (None: all of it);
    `settings` are JSON values that all ranks must share. With `check_finite`, a NaN or an infinity of any rank also
    raises. Returns whether the ranks have compared the operation now, which is the same on all.
    """
    plain = ["tensor"] if len(xs) == 1 else [f"tensors[{i}]" for i in range(len(xs))]
    shared = zip(names or plain, xs, shapes or [x.shape for x in xs], codecs, strict=True)
    tensors = [
        {"name": name, "dtype": str(x.dtype).removeprefix("torch."), "shape": list(shape), "codec": codec.config()}
        for name, x, shape, codec in shared
    ]
    call = {"operation": operation, "check_finite": check_finite, "settings": dict(settings or {}), "tensors": tensors}
    text, device = json.dumps(call).encode(), xs[0].device
    digest = xxhash.xxh3_64_digest(text)
    known = _known.setdefault(processes.group, set())
    if device.type == "cuda" and digest in known and not check_finite:
        return False
    finite = not check_finite or all(bool(torch.isfinite(x).all()) for x in xs)
    first = digest + len(text).to_bytes(_LENGTH_NBYTES, "little") + bytes([finite])
    messages = _exchanged(first, len(first), device, processes)
    lengths = [int.from_bytes(message[_HASH_NBYTES:-1], "little") for message in messages]
    if any(message[:_HASH_NBYTES] != digest for message in messages):  # seen by all ranks alike
        texts = _exchanged(text, max(lengths), device, processes)
        raise ValueError(_mismatch([json.loads(t[:n]) for t, n in zip(texts, lengths, strict=True)]))
    known.add(digest)
    bad = [rank for rank, message in enumerate(messages) if not message[-1]]
    if bad:
        raise ValueError(f"{operation}: expected finite values, got NaN or infinity on ranks {bad}")
    return True


def check_splits_match(
    outgoing: Sequence[int], incoming: Sequence[int], processes: Processes, device: torch.device
) -> None:
    """Raise ValueError on every rank unless each receives as many rows of each other rank as that one sends to it.

    `outgoing` and `incoming` are this rank's `input_split_sizes` and `output_split_sizes`.
    """
    own = torch.tensor([*outgoing, *incoming], dtype=torch.int64).numpy().tobytes()
    texts = _exchanged(own, len(own), device, processes)
    splits = [torch.frombuffer(bytearray(text), dtype=torch.int64).view(2, -1) for text in texts]
    sent, expected = (torch.stack([each[side] for each in splits]) for side in (0, 1))
    wrong = (expected != sent.T).nonzero().tolist()  # rows: receivers
    if wrong:
        receiver, sender = wrong[0]
        raise ValueError(
            f"rank {receiver}: output_split_sizes[{sender}]: expected {int(sent[sender, receiver])} as in "
            f"input_split_sizes[{receiver}] of rank {sender}, got {int(expected[receiver, sender])}"
        )


def _exchanged(message: bytes, nbytes: int, device: torch.device, processes: Processes) -> list[bytes]:
    """The messages of all ranks, each padded to the same number of bytes."""
    own = torch.frombuffer(bytearray(message.ljust(nbytes, b"\0")), dtype=torch.uint8).to(device)
    received = own.new_empty(processes.world * nbytes)
    # Asynchronous, so that errors are raised by `wait`: PyTorch's error log knows only groups of new_group.
    all_gather_single(received, own, group=processes.group, async_op=True).wait()
    data = received.cpu().numpy().tobytes()
    return [data[i : i + nbytes] for i in range(0, len(data), nbytes)]


def _mismatch(calls: Sequence[dict[str, Any]]) -> str:
    """How the first rank that differs from rank 0 does so."""
    rank = next(rank for rank, call in enumerate(calls) if call != calls[0])
    found = list(_differences(calls[0], calls[rank]))
    texts = [map(shortened, map(str, difference)) for difference in found[:_MOST_SHOWN]]
    shown = [f"{what}: expected {a} as on rank 0, got {b}" for what, a, b in texts]
    more = [f"and {len(found) - _MOST_SHOWN} more differences"] if len(found) > _MOST_SHOWN else []
    return f"rank {rank}: {'; '.join(shown + more)}"


def _differences(a: dict[str, Any], b: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """The names and values in which two calls differ; the most general ones alone."""
    if a["operation"] != b["operation"]:
        yield "operation", a["operation"], b["operation"]
        return
    settings = list(_setting_differences(a, b))
    if settings:
        yield from settings
        return
    if len(a["tensors"]) != len(b["tensors"]):
        yield "number of tensors", len(a["tensors"]), len(b["tensors"])
        return
    for x, y in zip(a["tensors"], b["tensors"], strict=True):
        if x["name"] != y["name"]:
            yield "tensor", x["name"], y["name"]
            continue
        for key in ("dtype", "shape", "codec"):
            if x[key] != y[key]:
                yield f"{key} of {x['name']}", _shown(key, x[key]), _shown(key, y[key])


def _setting_differences(a: dict[str, Any], b: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    if a["check_finite"] != b["check_finite"]:
        yield "check_finite", a["check_finite"], b["check_finite"]
    for name in a["settings"]:
        one, other = a["settings"][name], b["settings"].get(name)
        if one != other:
            yield name, _shown(name, one), _shown(name, other)


def _shown(name: str, value: Any) -> object:
    """A value as its error shows it."""
    if name == "shape":
        return tuple(value)
    return codec_from_config(value) if name == "codec" else value
