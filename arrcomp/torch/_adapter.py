"""PyTorch's tensors, for the rest of the package.

Everything goes through the operators of `arrcomp.torch._ops`, so that `torch.compile`, `torch.export` and PyTorch's
modes see it; while one of them traces, what needs a tensor's data is left out here. Where nobody watches, new tensors
are filled without an operator, which takes longer than the work on a small one.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import dlpack

from .. import _dtypes
from .._arguments import wrong_type, wrong_value
from .._arrays.checks import check_matches, validate_untrusted
from .._arrays.contract import Payload
from .._arrays.device import Device, check_device, platform
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.numpy import numpy_bytes, writable_bytes
from .._dtypes import Bytes
from .._format.spec import Spec
from ..errors import DeviceUnavailableError
from . import _kernels, _ops
from ._kernels import TorchMemory
from ._library import is_batched, is_observed
from ._tensors import (
    capacities,
    capacity,
    capacity_of,
    check_tensor,
    coding_of,
    constants,
    dtype_of,
    name_of,
    type_named,
)

_CPU = Device("torch")
_INTEGERS = [getattr(torch, f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]


class TorchAdapter(TorchMemory):
    """PyTorch's tensors."""

    name = "torch"

    def device(self, x: Tensor) -> Device:
        device = x.device
        return _CPU if device.type == "cpu" else Device("torch", platform(device.type), device.index or 0)

    def default_device(self) -> Device:
        return self.device(torch.empty(0))

    def batch_key(self, x: Tensor) -> Hashable:
        return x.device

    def dtype_and_shape(self, x: Tensor) -> tuple[_dtypes.DType, tuple[int, ...]]:
        _check_dense("x", x)
        return dtype_of(x), tuple(x.shape)

    def check_dtype(self, dtype: _dtypes.DType) -> None:
        type_named(dtype.name)

    def is_finite(self, x: Tensor) -> bool:
        if is_batched(x):
            raise wrong_value("check_finite", "False under torch.vmap", True)
        # PyTorch does not look at numbers of 8 bits itself.
        return bool((x.float() if x.itemsize == 1 else x).isfinite().all())

    def compress(
        self,
        xs: Sequence[Tensor],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        seed: Any,
        references: Sequence[Tensor] | None = None,
    ) -> list[Payload]:
        xs = [_plain(x) for x in xs]
        codec: Any = coding_of(specs[0].codec)
        # The operators' defaults, where they do: arguments cost time.
        coding = (*codec, *seed_arguments(seed, xs[0]), threads) if seed is not None or threads else codec
        if references is not None:
            references = [_reference(base, xs[0]) for base in references]
            coding = (*codec, *seed_arguments(seed, xs[0]), threads, references)
        if out is not None:
            buffers = [_bytes_to_fill(buffer, x) for buffer, x in zip(out, xs, strict=True)]
            lengths = _ops.encode_out(xs, buffers, *coding)
        elif _need_no_operator(xs):
            return [Payload(self, buffer, trusted=True) for buffer in _kernels.encode_trimmed(xs, *coding)]
        elif _are_at_hand(xs):
            return [Payload(self, buffer, trusted=True) for buffer in _ops.encode_trimmed(xs, *coding)]
        else:
            payloads, lengths = _ops.encode(xs, *coding)
            buffers = [payloads] if len(xs) == 1 else payloads.split_with_sizes(capacities(xs, *codec))
        if specs[0].codec.fixed_rate or _are_at_hand([lengths]):
            ends = [capacity(x, *codec) for x in xs] if specs[0].codec.fixed_rate else lengths.tolist()
            return [Payload(self, buffer[:end], trusted=True) for buffer, end in zip(buffers, ends, strict=True)]
        single = [lengths] if len(xs) == 1 else lengths.chunk(len(xs))
        return [Payload(self, buffer, length, trusted=True) for buffer, length in zip(buffers, single, strict=True)]

    def decompress(
        self,
        payloads: Sequence[Payload],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        references: Sequence[Tensor] | None = None,
    ) -> list[Tensor]:
        coding, dtype = coding_of(specs[0].codec), type_named(specs[0].dtype.name)
        # One loop and no more: calls with small tensors would spend much of their time on several.
        buffers, lengths, trusted = [], [], True
        for payload in payloads:
            buffers.append(payload.buffer)
            lengths.append(payload.length)
            trusted = trusted and payload.trusted
        if not trusted and _are_at_hand(buffers):
            validate_untrusted(payloads, specs)
        if references is not None:
            references = [_reference(base, buffers[0]) for base in references]
        if out is None and type(buffers[0]) is Tensor and not is_observed():
            shapes = [spec.shape for spec in specs]
            return _kernels.decode_new(buffers, lengths, shapes, *coding, dtype, trusted, threads, references)
        bases = [] if references is None else [references]
        trust = (trusted, threads, *bases)
        if out is not None:
            for target, spec in zip(out, specs, strict=True):
                _check_target(target, spec)
        elif _is_eager(buffers[0]):
            out = [torch.empty(spec.shape, dtype=dtype, device=buffers[0].device) for spec in specs]
        if out is not None:
            _ops.decode_out(buffers, lengths, out, *coding, *trust)
            return list(out)
        sizes, dimensions = [size for spec in specs for size in spec.shape], [len(spec.shape) for spec in specs]
        made: list[Tensor] = _ops.decode(buffers, lengths, sizes, dimensions, *coding, dtype, *trust)
        return made

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Tensor:
        _check_target(into, spec, "into")
        options = (*coding_of(spec.codec), payload.trusted, threads)
        _ops.accumulate(into, [payload.buffer], [payload.length], constants([weight]), *options)
        target: Tensor = into
        return target

    def compress_sum(
        self,
        payloads: Sequence[Payload],
        spec: Spec,
        weights: Sequence[float],
        result: Spec,
        out: Any,
        threads: int,
        seed: Any,
    ) -> Payload:
        buffers, lengths = [payload.buffer for payload in payloads], [payload.length for payload in payloads]
        codec, trusted = coding_of(result.codec), all(payload.trusted for payload in payloads)
        weights = constants(weights)
        dtype = type_named(spec.dtype.name)
        about = (spec.elements, dtype, *coding_of(spec.codec), *codec, *seed_arguments(seed, buffers[0]))
        if out is None:
            buffer, length = _ops.encode_sum(buffers, lengths, weights, *about, trusted, threads)
        else:
            buffer = _bytes_to_fill(out, buffers[0])
            length = _ops.encode_sum_out(buffers, lengths, weights, buffer, *about, trusted, threads)
        if result.codec.fixed_rate:
            return Payload(self, buffer[: capacity_of(spec.elements, spec.dtype, *codec)], trusted=True)
        if _are_at_hand([length]):
            return Payload(self, buffer[: int(length)], trusted=True)
        return Payload(self, buffer, length, trusted=True)

    def host_bytes(self, x: Tensor) -> Bytes:
        return self.to_host(_plain(x).resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8))

    def read_length(self, length: Tensor) -> int:
        return int(length.item())

    def head(self, buffer: Tensor, nbytes: int) -> Tensor:
        return buffer[:nbytes]

    def from_host(self, data: Bytes, device: Device) -> tuple[Tensor, Tensor | None]:
        return _view(data) if device.kind == "cpu" else _view(data).to(_device_name(device)), None

    def from_dlpack(self, x: Any) -> Tensor:
        tensor: Tensor = dlpack.from_dlpack(x)
        return tensor

    def to_device(self, buffer: Tensor, device: Device) -> Tensor:
        return buffer.to(_device_name(device))

    def upload(self, x: Any, index: int) -> Tensor:
        row = _dtypes.by_numpy(x.dtype)
        tensor = torch.empty(x.shape, dtype=type_named(row.name), device=_device_name(Device("torch", "cuda", index)))
        if x.size:
            tensor.view(-1).view(torch.uint8).copy_(_view(numpy_bytes(x)))
        return tensor


ADAPTER = TorchAdapter()


def has_cuda() -> bool:
    """Whether PyTorch can use a CUDA device here."""
    return torch.cuda.is_available()


def check_layout(name: str, x: Tensor) -> None:
    """Raise TypeError unless a tensor is dense."""
    if x.layout is not torch.strided:
        raise TypeError(f"{name}: expected a dense tensor, got layout {x.layout}; call {name}.to_dense()")
    if x.is_nested:
        raise TypeError(f"{name}: expected a dense tensor, got a nested one; pass those of {name}.unbind()")


def seed_arguments(seed: Any, x: Tensor) -> tuple[int, Tensor | None]:
    """`seed` and `seed_at` of the operators, of None, an integer from 0 to 2^64 - 1, or a tensor of one on x's device.

    Raises:
        TypeError: it is none of these.
    """
    if seed is None:
        return 0, None
    if isinstance(seed, int):
        return (seed if seed < 1 << 63 else seed - (1 << 64)), None
    if not isinstance(seed, Tensor):
        raise wrong_type("seed", "an integer, or a torch.Tensor of one", seed)
    if seed.dtype not in _INTEGERS or seed.dim() > 1 or seed.numel() != 1:
        raise TypeError(f"seed: expected a tensor of one integer, got {seed.dtype}{list(seed.shape)}")
    if seed.device != x.device:
        raise TypeError(f"seed: expected a tensor on {x.device} like x, got one on {seed.device}")
    return 0, seed.view(torch.int64) if seed.dtype == torch.uint64 else seed.to(torch.int64)


def _check_dense(name: str, x: Tensor) -> None:
    """Raise unless a tensor has plain data on a device that the core knows."""
    check_layout(name, x)
    if not (x.is_cpu or x.is_cuda):
        platform(x.device.type)


def _device_name(device: Device) -> str:
    if device.kind == "cuda":
        check_device(device.index)
        if not has_cuda():
            raise DeviceUnavailableError(f"{device.name}: PyTorch finds no CUDA device; was it built with CUDA?")
    return device.name


def _is_eager(x: Tensor) -> bool:
    """Whether the tensor has data now: not while a compiler traces, nor in a wrapper as FakeTensor."""
    return type(x) is Tensor and not torch.compiler.is_compiling()


def _are_at_hand(xs: Sequence[Tensor]) -> bool:
    """Whether tensors' data is in host memory now."""
    if torch.compiler.is_compiling():
        return False
    for x in xs:  # noqa: SIM110 - every call asks, and `all` takes longer
        if type(x) is not Tensor or not x.is_cpu:
            return False
    return True


def _need_no_operator(xs: Sequence[Tensor]) -> bool:
    """Whether nobody watches, and tensors' values are in host memory now; of lazy ones an operator makes copies."""
    if is_observed():
        return False
    for x in xs:
        if type(x) is not Tensor or not x.is_cpu or x.is_conj() or x.is_neg() or x._is_zerotensor():
            return False
    return True


def _plain(x: Tensor) -> Tensor:
    """The tensor without its gradient, and without its subclass if the data is where a tensor's is."""
    if x.requires_grad:
        x = x.detach()
    if type(x) is Tensor or torch.compiler.is_compiling():
        return x
    inherited = type(x).__torch_dispatch__ is Tensor.__torch_dispatch__
    return x.as_subclass(Tensor) if inherited else x


def _reference(base: Tensor, operand: Tensor) -> Tensor:
    """A reference as `_plain` gives it; beside a plain operand, with its values where a tensor's are.

    PyTorch calls no `__torch_dispatch__` for subclasses in optional lists, such as those of references.
    """
    base = _plain(base)
    if type(base) is Tensor or not _is_eager(operand):
        return base
    return torch.empty(base.shape, dtype=base.dtype, device=base.device).copy_(base)


def _bytes_to_fill(out: Any, x: Tensor) -> Tensor:
    """The caller's buffer for the payload of x."""
    if not isinstance(out, Tensor):
        if not x.is_cpu:
            raise wrong_type("out", f"a uint8 tensor on {x.device} like x", out)
        return torch.from_numpy(writable_bytes(out))
    if out.device != x.device:
        raise TypeError(f"out: expected a uint8 tensor on {x.device} like x, got one on {out.device}")
    if out.dtype != torch.uint8:
        raise TypeError(f"out: expected dtype uint8, got {name_of(out.dtype)}")
    _check_fillable(out)
    return out.view(-1)


def _check_target(out: Any, spec: Spec, name: str = "out") -> None:
    check_tensor(name, out)
    _check_dense(name, out)
    check_matches(dtype_of(out), tuple(out.shape), spec, name)
    _check_fillable(out, name)


def _check_fillable(out: Tensor, name: str = "out") -> None:
    if out.requires_grad:
        raise ValueError(f"{name}: expected a tensor that requires no gradient, got one that does; detach it")
    if not torch.compiler.is_compiling() and (out.is_conj() or out.is_neg()):  # compilers cannot follow these two
        got = "a lazy conjugate or negative of another; call resolve_conj() or resolve_neg()"
        raise ValueError(f"{name}: expected a tensor with its own values, got {got}")
    if not out.is_contiguous():
        raise ValueError(f"{name}: expected a C-contiguous tensor, got strides {out.stride()}")


class _Shown:
    """Memory of a NumPy array, shown as writable: PyTorch warns of others, and payloads are never written to."""

    def __init__(self, data: Bytes) -> None:
        self._data = data  # lives as long as a view of it
        self.__array_interface__ = data.__array_interface__ | {"data": (NUMPY.address(data), False)}


def _view(data: Bytes) -> Tensor:
    return torch.from_numpy(data if data.flags.writeable else np.asarray(_Shown(data)))
