"""The `Adapter` of JAX arrays, outside and inside traced functions."""

import contextlib
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from .. import _dtypes
from .._arguments import shown, wrong_type
from .._arrays.checks import check_matches
from .._arrays.contract import Adapter, Payload
from .._arrays.device import Device, number_of, platform
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.numpy import numpy_bytes
from .._dtypes import Bytes
from .._format.spec import Spec
from ..codecs import Codec
from ..errors import DeviceUnavailableError, raise_for_status, unfit_payload
from . import _ops

_CONFIG: Any = jax.config
_Payloads = Sequence[Payload]


def is_traced(x: Any) -> bool:
    """Whether a value is a tracer, inside `jax.jit` and other transformations."""
    return isinstance(x, jax.core.Tracer)


def check_concrete(x: Any, context: str) -> None:
    """Raise JAX's ConcretizationTypeError for a traced value."""
    if is_traced(x):
        advice = "return the Compressed from the traced function and use it outside"
        raise jax.errors.ConcretizationTypeError(x, f"{context}: {advice}.")


def uint64_pair(number: int) -> Any:
    """A length or a seed as uint32[2], a little-endian uint64, which needs no jax_enable_x64."""
    return np.array([number], "<u8").view(np.uint32)


def has_cuda() -> bool:
    """Whether JAX has CUDA devices."""
    try:
        return len(jax.local_devices(backend="cuda")) > 0
    except RuntimeError:
        return False


def single_device(x: Any) -> jax.Device:
    """The only device, the CPU or CUDA, of an array that is not traced; raises for other arrays."""
    devices = x.devices()
    if len(devices) != 1:
        raise TypeError(
            f"x: expected an array on one device, got one sharded over {len(devices)}; call arrcomp.jax inside "
            "jax.shard_map, or compress each of x.addressable_shards"
        )
    (device,) = devices
    platform(device.platform)
    return device


def seed_operand(seed: Any) -> Any:
    """A seed for `_ops.encode`, from None, an integer from 0 to 2^64 - 1, or a scalar integer array of JAX or NumPy."""
    if seed is None or isinstance(seed, int):
        return None if seed is None else uint64_pair(seed)
    if not isinstance(seed, (jax.Array, np.ndarray)):
        raise wrong_type("seed", "an integer, or a scalar integer array of JAX", seed)
    if jax.numpy.issubdtype(seed.dtype, jax.numpy.integer) and seed.ndim == 0:
        return seed if isinstance(seed, jax.Array) else uint64_pair(int(seed) % (1 << 64))
    raise TypeError(
        f"seed: expected a scalar integer array, got {seed.dtype}{list(seed.shape)}; for a random key use "
        "jax.random.bits(key)"
    )


class SharedLength(NamedTuple):
    """A payload's length in an array of the lengths of one call: slicing each would be work for the device."""

    all: jax.Array  # uint32[payloads, 2]
    position: int


def own_length(length: Any) -> Any:
    """A payload's length as a separate array."""
    return _ops.row(length.all, length.position) if isinstance(length, SharedLength) else length


class JaxAdapter:
    """Adapter of JAX arrays. Traced arrays have a dtype and a shape, but no device and no bytes."""

    name = "jax"

    def device(self, x: Any) -> Device:
        if isinstance(x, np.ndarray):  # a pytree's leaf, as jax.device_get leaves it
            return NUMPY.device(x)
        check_concrete(x, "The device of a traced value is not known")
        device = single_device(x)
        return Device("jax", platform(device.platform), number_of(device))

    def default_device(self) -> Device:
        return self.device(jax.device_put(np.zeros(0, np.uint8)))

    def batch_key(self, x: Any) -> Hashable:
        return None if is_traced(x) else self.device(x)

    def dtype_and_shape(self, x: Any) -> tuple[_dtypes.DType, tuple[int, ...]]:
        return _supported(x.dtype, _CONFIG.jax_enable_x64), x.shape

    def check_dtype(self, dtype: _dtypes.DType) -> None:
        _supported(dtype.numpy, _CONFIG.jax_enable_x64)

    def is_finite(self, x: Any) -> bool:
        return bool(jax.numpy.isfinite(x).all())

    def compress(
        self,
        xs: Sequence[Any],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        seed: Any,
        references: Sequence[Any] | None = None,
    ) -> list[Payload]:
        _check_no_out(out)
        check_hashable(specs[0].codec)
        for x in xs:
            if not is_traced(x):
                single_device(x)
        bases = [] if references is None else list(references)
        buffers, lengths = _ops.encode(list(xs), tuple(specs), threads, seed_operand(seed), bases)
        if specs[0].codec.fixed_rate:
            return [Payload(self, buffer, trusted=True) for buffer in buffers]
        return [Payload(self, buffer, _part(lengths, i), trusted=True) for i, buffer in enumerate(buffers)]

    def decompress(
        self,
        payloads: _Payloads,
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        references: Sequence[Any] | None = None,
    ) -> list[Any]:
        _check_no_out(out, " (use like)")
        self.check_dtype(specs[0].dtype)
        _check_not_batched(payloads)
        whole = specs[0].codec.fixed_rate and all(p.trusted and p.length is None for p in payloads)
        bases = [] if references is None else list(references)
        if self._better_on_host(payloads, bases, whole):
            on_host = [Payload(NUMPY, payload.to_host(), trusted=payload.trusted) for payload in payloads]
            device, hosts = single_device(payloads[0].buffer), [np.asarray(base) for base in bases]
            made = NUMPY.decompress(on_host, specs, None, threads, hosts or None)
            return [jax.device_put(array, device) for array in made]
        lengths = [] if whole else _lengths(payloads)
        arrays: list[Any]
        arrays, status = _ops.decode([p.buffer for p in payloads], lengths, tuple(specs), threads, bases)
        if not is_traced(status) and (bases or not all(p.trusted for p in payloads)):
            raise_for_status(int(status))
        return arrays

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Any:
        check_matches(*self.dtype_and_shape(into), spec, "into")
        _check_not_batched([payload])
        return _ops.accumulate(into, _whole([payload], spec), (weight,), spec, threads)

    def compress_sum(
        self, payloads: _Payloads, spec: Spec, weights: Sequence[float], result: Spec, out: Any, threads: int, seed: Any
    ) -> Payload:
        _check_no_out(out)
        check_hashable(result.codec)
        _check_not_batched(payloads)
        buffers = _whole(payloads, spec)
        buffer, length = _ops.encode_sum(buffers, tuple(weights), spec, result, threads, seed_operand(seed))
        return Payload(self, buffer, None if result.codec.fixed_rate else length, trusted=True)

    def host_bytes(self, x: Any) -> Bytes:
        check_concrete(x, "The bytes of a traced value are not known")
        return numpy_bytes(x)

    def read_length(self, length: Any) -> int:
        if isinstance(length, SharedLength):
            return int(np.asarray(length.all)[length.position].view("<u8")[0])
        check_concrete(length, "The size of a payload is not known before the program runs")
        return int(np.asarray(length).view("<u8")[0])

    def head(self, buffer: Any, nbytes: int) -> Any:
        if isinstance(buffer, np.ndarray) or self.device(buffer).kind == "cuda":
            return buffer[:nbytes]
        # Through host memory: slicing would compile a program for each length.
        return jax.device_put(self.to_host(buffer)[:nbytes], single_device(buffer))

    def to_host(self, buffer: Any) -> Bytes:
        check_concrete(buffer, "The bytes of a payload are not there before the program runs")
        return np.asarray(buffer)

    def from_host(self, data: Bytes, device: Device) -> tuple[Any, Any]:
        there = _jax_device(device)
        if device.kind == "cpu":
            return jax.device_put(data, there), None
        buffer = np.zeros(_ops.rounded_nbytes(data.size), np.uint8)
        buffer[: data.size] = data
        return jax.device_put(buffer, there), jax.device_put(uint64_pair(data.size), there)

    def from_dlpack(self, x: Any) -> Any:
        return jax.dlpack.from_dlpack(x)

    def upload(self, x: NDArray[Any], index: int) -> Any:
        _supported(x.dtype, _CONFIG.jax_enable_x64)
        return jax.device_put(x, _jax_device(Device("jax", "cuda", index)))

    def to_device(self, buffer: Any, device: Device) -> Any:
        return jax.device_put(own_length(buffer), _jax_device(device))

    def copy(self, buffer: Any) -> Any:
        return jax.numpy.array(own_length(buffer), copy=True)

    def _better_on_host(self, payloads: _Payloads, bases: Sequence[Any], whole: bool) -> bool:
        # Decoding in JAX would compile a program for each buffer size, and could not say what is corrupt, nor which
        # reference is a wrong one.
        if not bases and (whole or all(p.trusted and p.length is not None for p in payloads)):
            return False
        if any(is_traced(p.buffer) or is_traced(p.length) for p in payloads) or any(map(is_traced, bases)):
            return False
        return self.device(payloads[0].buffer).kind == "cpu"


ADAPTER: Adapter = JaxAdapter()


def is_supported(dtype: Any) -> bool:
    """Whether JAX, in its current configuration, and the format support a NumPy dtype."""
    try:
        _supported(dtype, _CONFIG.jax_enable_x64)
    except TypeError:
        return False
    return True


def check_hashable(codec: Codec) -> None:
    """Raise TypeError unless the codec can be a static argument of a compiled function."""
    try:
        hash(codec)
    except TypeError as error:
        raise TypeError(f"codec: expected hashable parameters, such as tuples, got {shown(codec)} ({error})") from None


@functools.cache
def _supported(dtype: Any, x64: bool) -> _dtypes.DType:
    if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        raise TypeError(f"x: expected numbers, got random keys ({dtype}); use jax.random.key_data(x)")
    known = _dtypes.by_numpy(dtype)
    if known.name.startswith("float6_"):
        # Newer JAX has such arrays, but XLA does not pass them to custom calls.
        raise TypeError(f"dtype: expected one of JAX's custom calls, got {known.name}; use like=numpy.empty(0)")
    if not x64 and known.itemsize // known.parts == 8:
        raise TypeError(f"dtype: expected jax_enable_x64=True for {known.name}, got False; or use like=numpy.empty(0)")
    return known


def _check_no_out(out: Any, advice: str = "") -> None:
    if out is not None:
        raise TypeError(f"out: expected None, got an array; JAX arrays are immutable{advice}")


def _check_not_batched(payloads: _Payloads) -> None:
    for payload in payloads:
        if np.ndim(payload.buffer) != 1:
            raise ValueError(
                f"c: expected one compressed array, got a batch of shape {tuple(payload.buffer.shape[:-1])}; call "
                "jax.vmap(arrcomp.jax.decompress)"
            )


def _whole(payloads: _Payloads, spec: Spec) -> list[Any]:
    """The buffers of a fixed-rate codec's payloads, without spare bytes."""
    buffers = []
    for number, payload in enumerate(payloads):
        size, has_length = payload.buffer.shape[0], payload.length is not None
        fits = size >= spec.capacity if has_length else size == spec.capacity
        if not fits or (has_length and not payload.trusted and payload.nbytes != spec.capacity):
            raise unfit_payload(f"payload {number}")
        buffers.append(payload.buffer if size == spec.capacity else payload.buffer[: spec.capacity])
    return buffers


def _part(lengths: jax.Array, index: int) -> Any:
    if lengths.ndim == 1:
        return lengths
    return lengths[index] if is_traced(lengths) else SharedLength(lengths, index)


def _lengths(payloads: _Payloads) -> list[Any]:
    """The payloads' lengths as few arrays: a single one if the payloads are all those of one call, in order."""
    given = [uint64_pair(p.buffer.shape[0]) if p.length is None else p.length for p in payloads]
    if isinstance(given[0], SharedLength) and all(isinstance(length, SharedLength) for length in given):
        shared = given[0].all
        if [(id(length.all), length.position) for length in given] == [(id(shared), i) for i in range(len(shared))]:
            return [shared]
    return [own_length(length) for length in given]


def pytree_children(x: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """The children of a JAX pytree node, and a function that rebuilds it from others; None for anything else."""
    children, structure = jax.tree_util.tree_flatten(x, is_leaf=lambda node: node is not x)
    if jax.tree_util.treedef_is_leaf(structure):
        return None
    return children, lambda others: jax.tree_util.tree_unflatten(structure, others)


def _jax_device(device: Device) -> jax.Device:
    with contextlib.suppress(RuntimeError):  # JAX has no devices of this kind
        for found in jax.local_devices(backend=device.kind):
            if number_of(found) == device.index:
                return found
    raise DeviceUnavailableError(f"device: expected one of JAX's devices, got {device.name}")
