"""Checks of the arguments of collective operations, before anything is sent."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ..._api.compress import checked_codec, checked_seed
from ..._arguments import checked_integer, thread_count, type_name, wrong_type, wrong_value
from ...codecs import Codec
from .._adapter import check_layout
from .._tensors import check_tensor, dtype_of
from ._messages import Coder

_OPERATIONS = ("SUM", "AVG", "MAX", "MIN")
_REDUCIBLE = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")


class Processes(NamedTuple):
    """A process group of torch.distributed, this process's rank in it, and its size."""

    group: Any
    rank: int
    world: int

    @classmethod
    def of(cls, group: Any) -> "Processes":
        """The processes of a group that contains this one; None for the default group."""
        if not dist.is_initialized():
            raise RuntimeError("torch.distributed is not initialized; call torch.distributed.init_process_group first")
        group = dist.group.WORLD if group is None else group
        rank = -1 if group is dist.GroupMember.NON_GROUP_MEMBER else dist.get_rank(group)
        if rank < 0:
            raise ValueError("group: expected one that contains this process, got one without it")
        return cls(group, rank, dist.get_world_size(group))

    def rank_of(self, src: Any) -> int:
        """The rank in the group of a process with global rank `src`."""
        ranks = dist.get_process_group_ranks(self.group)
        if isinstance(src, bool) or not isinstance(src, int):
            raise wrong_type("src", "an integer", src)
        if src not in ranks:
            raise ValueError(f"src: expected a rank of the group, one of {ranks}, got {src}")
        return ranks.index(src)


@dataclass(frozen=True)
class Operation:
    """The checked operands of one collective operation.

    Attributes:
        tensors: contiguous, on one device.
        codecs: of each tensor.
        op: "SUM", "AVG", "MAX" or "MIN"; empty if nothing is reduced.
        processes: that take part.
        seed: for stochastic rounding; ranks derive their own from it.
        threads: CPU threads for the codecs.
    """

    tensors: Sequence[Tensor]
    codecs: Sequence[Codec]
    op: str
    processes: Processes
    seed: int
    threads: int

    def coder(self) -> Coder:
        """Writes and reads the operation's messages."""
        return Coder(all(codec.fixed_rate for codec in self.codecs), self.tensors[0].device, self.threads)


def checked_tensor(name: str, x: Any) -> Tensor:
    """A dense tensor on the CPU or on CUDA, detached."""
    check_tensor(name, x)
    check_layout(name, x)
    if x.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name}: expected a tensor on the CPU or on CUDA, got one on {x.device}")
    detached: Tensor = x.detach()
    return detached


def check_output(output: Tensor) -> None:
    """Raise ValueError if the argument `output` is not contiguous."""
    if not output.is_contiguous():
        raise ValueError("output: expected a C-contiguous tensor, got another layout")


def checked_tensors(tensors: Any, name: str = "tensors") -> list[Tensor]:
    """At least one tensor, all on one device."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, Sequence):
        raise wrong_type(name, "a list or tuple of tensors", tensors)
    if not tensors:
        raise ValueError(f"{name}: expected at least one, got none")
    checked = [checked_tensor(f"{name}[{i}]", x) for i, x in enumerate(tensors)]
    for i, x in enumerate(checked):
        if x.device != checked[0].device:
            raise ValueError(f"{name}[{i}]: expected one on {checked[0].device}, as {name}[0], got one on {x.device}")
    return checked


def checked_codecs(codecs: Any, tensors: Sequence[Tensor]) -> list[Codec]:
    """A codec for each tensor, which supports its dtype."""
    each = list(codecs) if isinstance(codecs, (list, tuple)) else [codecs] * len(tensors)
    if len(each) != len(tensors):
        raise ValueError(f"codecs: expected one codec, or one for each of {len(tensors)} tensors, got {len(each)}")
    checked = [checked_codec(codec) for codec in each]
    for codec, x in zip(checked, tensors, strict=True):
        codec.check_dtype(dtype_of(x))
    return checked


def checked_operation(op: Any, tensors: Sequence[Tensor], codecs: Sequence[Codec]) -> str:
    """The name of a reduction that these tensors and codecs support."""
    name = next((name for name in _OPERATIONS if op == getattr(dist.ReduceOp, name)), None)
    if name is None:
        raise ValueError(f"op: expected one of {', '.join(_OPERATIONS)}, got {op}")
    for x, codec in zip(tensors, codecs, strict=True):
        dtype = dtype_of(x).name
        if dtype not in _REDUCIBLE:
            raise TypeError(f"tensor: expected one of {', '.join(_REDUCIBLE)}, got {dtype}")
        if name in ("MAX", "MIN") and codec.needs_seed:
            raise ValueError(f"op: expected SUM or AVG, got {name}, which stochastic rounding of {codec!r} would bias")
        if name == "AVG" and not x.dtype.is_floating_point:
            raise ValueError(f"op: expected SUM, MAX or MIN for {dtype}, got AVG")
    return name


def seed_of(codecs: Sequence[Codec], seed: Any) -> int:
    """The seed, an integer, from which ranks derive others; 0 if no codec needs one."""
    for codec in codecs:
        if codec.needs_seed:
            number = checked_seed(codec, seed)
            if not isinstance(number, int):
                raise TypeError(f"seed: expected an integer, got {type_name(seed)}")
            return number
    return 0


def thread_number(threads: int | None) -> int:
    """The number of threads for codecs; None for PyTorch's number, as processes may share the machine."""
    return torch.get_num_threads() if threads is None else thread_count(threads)


def local_world_size(environ: Mapping[str, str] = os.environ) -> int:
    """Number of processes on this node, from a variable that launchers set."""
    for name in _LOCAL_SIZES:
        if name in environ:
            return integer_variable(environ, name, 0, 1, 1 << 31)
    raise ValueError(f"local_size: expected an integer, got None, and {' and '.join(_LOCAL_SIZES)} are not set")


def integer_variable(environ: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """The integer value of an environment variable, or the default if it is not set."""
    text = environ.get(name, str(default)).strip()
    if not text.removeprefix("-").isdecimal():
        raise wrong_value(name, f"an integer from {least} to {most}", text)
    return checked_integer(name, int(text), least, most)
