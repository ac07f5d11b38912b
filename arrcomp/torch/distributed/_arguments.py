"""Arguments of collective operations, checked before anything is sent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ..._api.compress import checked_codec, checked_seed
from ..._arguments import thread_count, type_name
from ...codecs import Codec
from .._adapter import check_layout
from .._tensors import dtype_of

OPERATIONS = ("SUM", "AVG", "MAX", "MIN")
_EXTREMES = ("MAX", "MIN")
_REDUCIBLE = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")


class Processes(NamedTuple):
    """The processes of a group.

    Attributes:
        group: the group, as torch.distributed has it.
        rank: of this process in it.
        world: their number.
    """

    group: Any
    rank: int
    world: int

    @classmethod
    def of(cls, group: Any) -> "Processes":
        """Those of a group; of all for None.

        Raises:
            RuntimeError: torch.distributed is not initialized.
            ValueError: this process is not in the group.
        """
        if not dist.is_initialized():
            raise RuntimeError("torch.distributed is not initialized; call torch.distributed.init_process_group first")
        group = dist.group.WORLD if group is None else group
        rank = -1 if group is dist.GroupMember.NON_GROUP_MEMBER else dist.get_rank(group)
        if rank < 0:
            raise ValueError("group: this process is not in it; a group of this process is allowed")
        return cls(group, rank, dist.get_world_size(group))

    def rank_of(self, src: Any) -> int:
        """The rank in the group of a process, by its rank in the whole program.

        Raises:
            TypeError: it is not an integer.
            ValueError: it is not in the group.
        """
        ranks = dist.get_process_group_ranks(self.group)
        if isinstance(src, bool) or not isinstance(src, int):
            raise TypeError(f"src={src!r}: an integer is allowed")
        if src not in ranks:
            raise ValueError(f"src={src}: a process of the group is allowed, {ranks}")
        return ranks.index(src)


def checked_tensor(name: str, x: Any) -> Tensor:
    """A dense tensor on the CPU or on CUDA, without its history.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is a {type_name(x)}; a torch.Tensor is allowed")
    check_layout(name, x)
    if x.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name} is on {x.device}; a tensor on the CPU or on CUDA is allowed")
    return x.detach()


def checked_tensors(tensors: Any) -> list[Tensor]:
    """Tensors of one device; at least one.

    Raises:
        TypeError: they are no sequence of such tensors.
        ValueError: there is none, or they are on several devices.
    """
    if isinstance(tensors, Tensor) or not isinstance(tensors, Sequence):
        raise TypeError(f"tensors is a {type_name(tensors)}; a list or tuple of tensors is allowed")
    if not tensors:
        raise ValueError("tensors is empty; one at least is allowed")
    checked = [checked_tensor(f"tensors[{i}]", x) for i, x in enumerate(tensors)]
    for i, x in enumerate(checked):
        if x.device != checked[0].device:
            raise ValueError(f"tensors[{i}] is on {x.device}; {checked[0].device}, as tensors[0] is, is allowed")
    return checked


def checked_codecs(codecs: Any, tensors: Sequence[Tensor]) -> list[Codec]:
    """A codec for each tensor, which takes its dtype.

    Raises:
        TypeError: one is no codec, or does not take the dtype.
        ValueError: there are more or fewer than tensors.
    """
    each = list(codecs) if isinstance(codecs, (list, tuple)) else [codecs] * len(tensors)
    if len(each) != len(tensors):
        raise ValueError(f"codecs has {len(each)}; one, or {len(tensors)}, one for each tensor, are allowed")
    checked = [checked_codec(codec) for codec in each]
    for codec, x in zip(checked, tensors, strict=True):
        codec.check_dtype(dtype_of(x))
    return checked


def checked_operation(op: Any, tensors: Sequence[Tensor], codecs: Sequence[Codec]) -> str:
    """The name of a reduction that can be done on tensors of these dtypes with these codecs.

    Raises:
        TypeError: a tensor has a dtype without sums.
        ValueError: the operation is another one, or does not go together with a codec or a dtype.
    """
    name = next((name for name in OPERATIONS if op == getattr(dist.ReduceOp, name)), None)
    if name is None:
        raise ValueError(f"op={op}: {', '.join(OPERATIONS)} are allowed")
    for x, codec in zip(tensors, codecs, strict=True):
        if dtype_of(x).name not in _REDUCIBLE:
            raise TypeError(f"dtype {x.dtype}: {', '.join(_REDUCIBLE)} are allowed")
        if name in _EXTREMES and codec.needs_seed:
            raise ValueError(
                f"op={op}: {codec!r} rounds at random, and the {name} would be biased; SUM, AVG are allowed"
            )
        if name == "AVG" and not x.dtype.is_floating_point:
            raise ValueError(f"op={op}: {x.dtype} has no averages; SUM, MAX, MIN are allowed")
    return name


def seed_of(codecs: Sequence[Codec], seed: Any) -> int:
    """The seed, or 0 where no codec draws numbers.

    Raises:
        TypeError, ValueError: as `arrcomp.compress`; a tensor is not allowed, as each process derives others from it.
    """
    for codec in codecs:
        if codec.needs_seed:
            number = checked_seed(codec, seed)
            if not isinstance(number, int):
                raise TypeError(f"seed is a {type_name(seed)}; an integer is allowed")
            return number
    return 0


def thread_number(threads: int | None) -> int:
    """How many threads the codecs use: for None as many as PyTorch does, as processes may share the machine."""
    return torch.get_num_threads() if threads is None else thread_count(threads)
