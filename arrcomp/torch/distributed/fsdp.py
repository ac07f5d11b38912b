"""FSDP2 with compressed communication of gradients and parameters.

Call `compress_fsdp(model, reduce_scatter=codec)` after `torch.distributed.fsdp.fully_shard`; or, module by module,
`module.set_custom_reduce_scatter(QuantizedReduceScatter(codec))` and `module.set_custom_all_gather(...)`.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from ..._api.compress import checked_codec, checked_seed
from ..._arguments import checked_integer, thread_count, wrong_type, wrong_value
from ..._methods.error_feedback import ONE_BIT_CODEC, warn_of_one_bit
from ..._methods.seeds import derived
from ...codecs import QSGD, Codec
from .._tensors import dtype_of
from ._collectives import all_gather, reduce_scatter
from ._wire import all_gather_single, reduce_scatter_single

__all__ = ["QuantizedAllGather", "QuantizedReduceScatter", "compress_fsdp"]


class _Communication:
    """Base class of both: settings, and PyTorch's default allocation."""

    def __init__(self, codec: Codec | None, *, min_size: int = 1024, seed: int = 0, threads: int | None = None) -> None:
        self.codec = codec if codec is None else checked_codec(codec)
        self.min_size = checked_integer("min_size", min_size, 0, 1 << 62)
        self.seed: int = checked_seed(QSGD(rounding="stochastic"), seed)
        thread_count(threads)
        self.threads, self.steps = threads, 0

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Memory for uncompressed data."""
        return torch.empty(*size, dtype=dtype, device=device)

    def _codec_for(self, x: Tensor) -> Codec | None:
        """The codec for this process's input; None if PyTorch sends it uncompressed."""
        if self.codec is None or x.numel() < self.min_size or not self.codec.takes(dtype_of(x)):
            return None
        return self.codec


class QuantizedReduceScatter(_Communication):
    """A compressed reduce-scatter of gradients: for `FSDPModule.set_custom_reduce_scatter`.

    Each value is coded once, and summed in float32 or float64. Small inputs, and dtypes that the codec does not
    support, are sent uncompressed by PyTorch. The work is enqueued on the current stream, as FSDP requires.

    Attributes:
        steps: number of calls, from which stochastic rounding derives seeds.

    Args:
        codec: for gradients; None for no compression (calls are counted).
        min_size: a module's gradients with fewer elements on this process are not compressed.
        seed: for stochastic rounding; steps and ranks derive their own from it.
        threads: CPU threads for the codec; None for PyTorch's number.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        """Reduce the gradients of all ranks; each gets its shard.

        Raises:
            ValueError: `op` is neither SUM nor AVG.
        """
        seed, codec = derived(self.seed, self.steps), self._codec_for(input_tensor)
        self.steps += 1
        if codec is None:
            return reduce_scatter_single(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
        if op == dist.ReduceOp.PREMUL_SUM:
            raise ValueError(
                "op: expected SUM or AVG, got PREMUL_SUM; call module.set_force_sum_reduction_for_comms(True), so that "
                "FSDP itself divides by the factor of set_gradient_divide_factor"
            )
        return reduce_scatter(output_tensor, input_tensor, codec, op, group, async_op, seed=seed, threads=self.threads)


class QuantizedAllGather(_Communication):
    """A compressed all-gather of parameters: for `FSDPModule.set_custom_all_gather`.

    Forward and backward passes use the decompressed parameters, with the same bits on all ranks. The shards that the
    optimizer updates, and `state_dict`, are exact. Small inputs, and dtypes that the codec does not support (for
    instance the bytes of parameters with several dtypes), are sent uncompressed by PyTorch.

    With ``fully_shard(..., reshard_after_forward=n)`` for a smaller group, the parameters of the backward pass were
    coded twice.

    `reduce_scatter` is the module's, which stochastic rounding needs: its step count changes the random numbers, which
    are the same in a step's forward and backward pass. Other arguments and errors are those of
    `QuantizedReduceScatter`, for parameters instead of gradients.
    """

    def __init__(
        self,
        codec: Codec,
        *,
        min_size: int = 1024,
        seed: int = 0,
        threads: int | None = None,
        reduce_scatter: QuantizedReduceScatter | None = None,
    ) -> None:
        super().__init__(checked_codec(codec), min_size=min_size, seed=seed, threads=threads)
        if reduce_scatter is not None and not isinstance(reduce_scatter, QuantizedReduceScatter):
            raise wrong_type("reduce_scatter", "a QuantizedReduceScatter", reduce_scatter)
        if codec.needs_seed and reduce_scatter is None:
            expected = f"the module's QuantizedReduceScatter for stochastic rounding by {codec!r}"
            raise wrong_value("reduce_scatter", expected, None)
        self._reduce_scatter = reduce_scatter

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = False) -> Any:
        """Gather the shards of all ranks on every rank."""
        codec = self._codec_for(input_tensor)
        if codec is None:
            return all_gather_single(output_tensor, input_tensor, group=group, async_op=async_op)
        seed = derived(self.seed, self._reduce_scatter.steps if self._reduce_scatter else 0)
        return all_gather(output_tensor, input_tensor, codec, group, async_op, seed=seed, threads=self.threads)


def compress_fsdp(
    model: torch.nn.Module,
    *,
    reduce_scatter: Codec | None = None,
    all_gather: Codec | None = None,
    min_size: int = 1024,
    seed: int = 0,
    threads: int | None = None,
) -> None:
    """Compress the communication of a model that is sharded by `torch.distributed.fsdp.fully_shard`.

    The model, or some of its modules, are sharded. `reduce_scatter` is the codec for gradients, `all_gather` that for
    parameters; None for no compression. Other arguments are those of `QuantizedReduceScatter` and `QuantizedAllGather`;
    each module derives its own seed. QSGD with 1 bit for gradients gives a UserWarning.

    Raises:
        TypeError: `model` is not a module, or a codec is not a codec.
        ValueError: no module of the model is sharded, or another argument is invalid.
        RuntimeError: this version of PyTorch has no custom communication for FSDP.
    """
    if not isinstance(model, torch.nn.Module):
        raise wrong_type("model", "a torch.nn.Module", model)
    modules: list[Any] = [module for module in model.modules() if isinstance(module, FSDPModule)]
    if not modules:
        raise ValueError("model: expected a sharded module, got none; call torch.distributed.fsdp.fully_shard first")
    if not hasattr(FSDPModule, "set_custom_reduce_scatter"):
        expected = "a version with FSDPModule.set_custom_reduce_scatter"
        raise RuntimeError(f"torch: expected {expected}, got {torch.__version__}")
    warn_of_one_bit([reduce_scatter], f"or {ONE_BIT_CODEC}")
    for i, module in enumerate(modules):
        settings: dict[str, Any] = {"min_size": min_size, "seed": derived(seed, i), "threads": threads}
        gradients = QuantizedReduceScatter(reduce_scatter, **settings)
        if reduce_scatter is not None or (all_gather is not None and all_gather.needs_seed):
            module.set_custom_reduce_scatter(gradients)
        if all_gather is not None:
            module.set_custom_all_gather(QuantizedAllGather(all_gather, **settings, reduce_scatter=gradients))
