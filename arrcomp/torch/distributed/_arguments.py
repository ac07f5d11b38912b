"""Checks of the arguments of collective operations, before anything is sent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ..._api.compress import checked_codec, checked_seed
from ..._arguments import thread_count, type_name, wrong_type
from ...codecs import Codec
from .._adapter import check_layout
from .._tensors import dtype_of

OPERATIONS = ("SUM", "AVG", "MAX", "MIN")
_EXTREMES = ("MAX", "MIN")
_REDUCIBLE = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")


class Processes(NamedTuple):
    """A process group, and this process's rank in it.

    Attributes:
        group: of torch.distributed.
        rank: of this process in the group.
        world: size of the group.
    """

    group: Any
    rank: int
    world: int

    @classmethod
    def of(cls, group: Any) -> "Processes":
        """The processes of a group; None for the default group.

        Raises:
            RuntimeError: torch.distributed is not initialized.
            ValueError: this process is not in the group.
        """
        if not dist.is_initialized():
            raise RuntimeError("torch.distributed is not initialized; call torch.distributed.init_process_group first")
        group = dist.group.WORLD if group is None else group
        rank = -1 if group is dist.GroupMember.NON_GROUP_MEMBER else dist.get_rank(group)
        if rank < 0:
            raise ValueError("group: expected one that contains this process, got one without it")
        return cls(group, rank, dist.get_world_size(group))

    def rank_of(self, src: Any) -> int:
        """The rank in the group of a process with global rank `src`.

        Raises:
            TypeError: it is not an integer.
            ValueError: it is not in the group.
        """
        ranks = dist.get_process_group_ranks(self.group)
        if isinstance(src, bool) or not isinstance(src, int):
            raise wrong_type("src", "an integer", src)
        if src not in ranks:
            raise ValueError(f"src: expected a rank of the group, one of {ranks}, got {src}")
        return ranks.index(src)


def checked_tensor(name: str, x: Any) -> Tensor:
    """A dense tensor on the CPU or on CUDA, detached.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(x, Tensor):
        raise wrong_type(name, "a torch.Tensor", x)
    check_layout(name, x)
    if x.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name}: expected a tensor on the CPU or on CUDA, got one on {x.device}")
    return x.detach()


def checked_tensors(tensors: Any) -> list[Tensor]:
    """At least one tensor, all on one device.

    Raises:
        TypeError: they are not a sequence of dense tensors.
        ValueError: there are none, or they are on several devices.
    """
    if isinstance(tensors, Tensor) or not isinstance(tensors, Sequence):
        raise wrong_type("tensors", "a list or tuple of tensors", tensors)
    if not tensors:
        raise ValueError("tensors: expected at least one, got none")
    checked = [checked_tensor(f"tensors[{i}]", x) for i, x in enumerate(tensors)]
    for i, x in enumerate(checked):
        if x.device != checked[0].device:
            raise ValueError(f"tensors[{i}]: expected one on {checked[0].device}, as tensors[0], got one on {x.device}")
    return checked


def checked_codecs(codecs: Any, tensors: Sequence[Tensor]) -> list[Codec]:
    """A codec for each tensor, which supports its dtype.

    Raises:
        TypeError: one is not a codec, or does not support the dtype.
        ValueError: their number is not that of the tensors.
    """
    each = list(codecs) if isinstance(codecs, (list, tuple)) else [codecs] * len(tensors)
    if len(each) != len(tensors):
        raise ValueError(f"codecs: expected one codec, or one for each of {len(tensors)} tensors, got {len(each)}")
    checked = [checked_codec(codec) for codec in each]
    for codec, x in zip(checked, tensors, strict=True):
        codec.check_dtype(dtype_of(x))
    return checked


def checked_operation(op: Any, tensors: Sequence[Tensor], codecs: Sequence[Codec]) -> str:
    """The name of a reduction that these tensors and codecs support.

    Raises:
        TypeError: a tensor has a dtype that cannot be reduced.
        ValueError: the operation is unknown, or a codec or a dtype does not support it.
    """
    name = next((name for name in OPERATIONS if op == getattr(dist.ReduceOp, name)), None)
    if name is None:
        raise ValueError(f"op: expected one of {', '.join(OPERATIONS)}, got {op}")
    for x, codec in zip(tensors, codecs, strict=True):
        dtype = dtype_of(x).name
        if dtype not in _REDUCIBLE:
            raise TypeError(f"tensor: expected one of {', '.join(_REDUCIBLE)}, got {dtype}")
        if name in _EXTREMES and codec.needs_seed:
            raise ValueError(f"op: expected SUM or AVG, got {name}, which stochastic rounding of {codec!r} would bias")
        if name == "AVG" and not x.dtype.is_floating_point:
            raise ValueError(f"op: expected SUM, MAX or MIN for {dtype}, got AVG")
    return name


def seed_of(codecs: Sequence[Codec], seed: Any) -> int:
    """The seed, or 0 if no codec needs one.

    Raises:
        TypeError, ValueError: same as in `arrcomp.compress`; it must be an integer, from which ranks derive others.
    """
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
