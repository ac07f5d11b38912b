"""FSDP2 with compressed gradients, and with compressed parameters, on the wire.

`compress_fsdp(model, reduce_scatter=codec)` after `torch.distributed.fsdp.fully_shard`; or, module by module,
`module.set_custom_reduce_scatter(QuantizedReduceScatter(codec))` and `module.set_custom_all_gather(...)`.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from ..._api.compress import checked_codec, checked_seed
from ..._arguments import checked_integer, thread_count, type_name
from ..._methods.seeds import derived
from ...codecs import QSGD, Codec
from .._tensors import dtype_of
from ._collectives import all_gather, reduce_scatter
from ._wire import all_gather_single, reduce_scatter_single

_DEFAULT_MIN_SIZE = 1024
_MAX = 1 << 62


class _Communication:
    """What both communications have: settings, and memory as PyTorch's own ones allocate it."""

    def __init__(self, codec: Codec | None, min_size: int, seed: int, threads: int | None) -> None:
        self.codec = codec if codec is None else checked_codec(codec)
        self.min_size = checked_integer("min_size", min_size, 0, _MAX)
        self.seed: int = checked_seed(QSGD(rounding="stochastic"), seed)
        thread_count(threads)
        self.threads = threads
        self.steps = 0

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Memory for a message, uncompressed."""
        return torch.empty(*size, dtype=dtype, device=device)

    def _codec_for(self, x: Tensor) -> Codec | None:
        """The codec for the input of this process; None where it is left to PyTorch."""
        if self.codec is None or x.numel() < self.min_size or not self.codec.takes(dtype_of(x)):
            return None
        return self.codec


class QuantizedReduceScatter(_Communication):
    """The reduce-scatter of gradients, with compressed data: for `FSDPModule.set_custom_reduce_scatter`.

    Each value is coded once, and summed as float32 at least. What the codec does not take, and what is small, goes as
    PyTorch sends it. The work is enqueued on the current stream, as FSDP wants it.

    Attributes:
        steps: how many were done: codecs that round at random draw other numbers at each.

    Args:
        codec: for gradients; None leaves all to PyTorch, and counts.
        min_size: the fewest elements of a module's gradients, on this process.
        seed: of codecs that round at random; steps and processes derive their own from it.
        threads: for the codec, on the CPU; None for PyTorch's number.

    Raises:
        TypeError, ValueError: an argument is not allowed.
    """

    def __init__(
        self, codec: Codec | None, *, min_size: int = _DEFAULT_MIN_SIZE, seed: int = 0, threads: int | None = None
    ) -> None:
        super().__init__(codec, min_size, seed, threads)

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        """Reduce the gradients of all processes, of which each gets its shard.

        Raises:
            ValueError: `op` is neither SUM nor AVG.
        """
        seed = derived(self.seed, self.steps)
        self.steps += 1
        codec = self._codec_for(input_tensor)
        if codec is None:
            return reduce_scatter_single(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
        if op == dist.ReduceOp.PREMUL_SUM:
            raise ValueError(
                f"op={op}: SUM, AVG are allowed; module.set_force_sum_reduction_for_comms(True) makes FSDP divide the "
                "gradients itself, by what set_gradient_divide_factor says"
            )
        return reduce_scatter(output_tensor, input_tensor, codec, op, group, async_op, seed=seed, threads=self.threads)


class QuantizedAllGather(_Communication):
    """The all-gather of parameters, with compressed data: for `FSDPModule.set_custom_all_gather`.

    Forward and backward passes then see what the codec makes of the parameters, the same bits on all processes; the
    shards that the optimizer updates, and `state_dict`, keep every bit. What the codec does not take, as the bytes of
    parameters of several dtypes, and what is small, goes as PyTorch sends it.

    With ``fully_shard(..., reshard_after_forward=n)`` for a smaller group, the backward pass sees parameters that were
    coded twice.

    Args:
        codec: for parameters.
        min_size: the fewest elements of a module's parameters, on this process.
        seed: of codecs that round at random; steps and processes derive their own from it.
        threads: for the codec, on the CPU; None for PyTorch's number.
        reduce_scatter: the module's; codecs that round at random need it: they draw other numbers once it has counted a
            step, and the same ones in the forward and the backward pass before.

    Raises:
        TypeError, ValueError: an argument is not allowed.
    """

    def __init__(
        self,
        codec: Codec,
        *,
        min_size: int = _DEFAULT_MIN_SIZE,
        seed: int = 0,
        threads: int | None = None,
        reduce_scatter: QuantizedReduceScatter | None = None,
    ) -> None:
        super().__init__(checked_codec(codec), min_size, seed, threads)
        if reduce_scatter is not None and not isinstance(reduce_scatter, QuantizedReduceScatter):
            name = type_name(reduce_scatter)
            raise TypeError(f"reduce_scatter is a {name}; a QuantizedReduceScatter is allowed")
        if codec.needs_seed and reduce_scatter is None:
            raise ValueError(f"reduce_scatter=None: {codec!r} rounds at random; the module's QuantizedReduceScatter is")
        self._reduce_scatter = reduce_scatter

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = False) -> Any:
        """Gather the shards of all processes on all of them."""
        codec = self._codec_for(input_tensor)
        if codec is None:
            return all_gather_single(output_tensor, input_tensor, group=group, async_op=async_op)
        steps = 0 if self._reduce_scatter is None else self._reduce_scatter.steps
        seed = derived(self.seed, steps)
        return all_gather(output_tensor, input_tensor, codec, group, async_op, seed=seed, threads=self.threads)


def compress_fsdp(
    model: torch.nn.Module,
    *,
    reduce_scatter: Codec | None = None,
    all_gather: Codec | None = None,
    min_size: int = _DEFAULT_MIN_SIZE,
    seed: int = 0,
    threads: int | None = None,
) -> None:
    """Compress what the modules of a model that `fully_shard` made exchange.

    Args:
        model: of which some modules, or it itself, are sharded by `torch.distributed.fsdp.fully_shard`.
        reduce_scatter: for gradients; None leaves them as they are.
        all_gather: for parameters; None leaves them as they are.
        min_size: the fewest elements of a module's gradients or parameters, on this process.
        seed: of codecs that round at random; modules, steps and processes derive their own from it.
        threads: for the codecs, on the CPU; None for PyTorch's number.

    Raises:
        TypeError: the model is no module, or a codec not one.
        ValueError: no module of the model is sharded, or another argument is not allowed.
        RuntimeError: this PyTorch has no custom communications of FSDP.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type_name(model)}; a torch.nn.Module is allowed")
    modules: list[Any] = [module for module in model.modules() if isinstance(module, FSDPModule)]
    if not modules:
        raise ValueError("model: none of its modules is sharded; call torch.distributed.fsdp.fully_shard first")
    if not hasattr(FSDPModule, "set_custom_reduce_scatter"):
        raise RuntimeError(f"PyTorch {torch.__version__} has no FSDPModule.set_custom_reduce_scatter; a newer one has")
    for i, module in enumerate(modules):
        settings: dict[str, Any] = {"min_size": min_size, "seed": derived(seed, i), "threads": threads}
        gradients = QuantizedReduceScatter(reduce_scatter, **settings)
        if reduce_scatter is not None or (all_gather is not None and all_gather.needs_seed):
            module.set_custom_reduce_scatter(gradients)
        if all_gather is not None:
            module.set_custom_all_gather(QuantizedAllGather(all_gather, **settings, reduce_scatter=gradients))
