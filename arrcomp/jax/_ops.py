"""The core's JAX operations: custom calls in the compiled program, without callbacks to Python.

`jax.vmap` makes one call of the core for all items; callers can pass several arrays to one call. `threads` are those of
the CPU: 0 for all cores.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import _core, _dtypes
from .._format.spec import Spec
from ..codecs import Codec
from ._sharding import on_mesh_of, whole

_ALIGNMENT = 8  # of each payload in a batch
_NIBBLES = ("int4", "uint4", "float4_e2m1fn")  # XLA packs two into a byte; a stream, like NumPy, stores one

# What callers name the operands of a custom call.
_OPERANDS = {
    "arrcomp_encode": "x",
    "arrcomp_decode": "c",
    "arrcomp_accumulate": "c and into",
    "arrcomp_encode_sum": "compressed",
    "arrcomp_roundtrip": "x",
    "arrcomp_activate": "x",
    "arrcomp_step_grad": "the gradient of x",
}

struct: Any = jax.ShapeDtypeStruct
_lax: Any = lax  # untyped: some functions are missing in some versions

for _target, _platforms in _core.xla_handlers().items():
    for _platform, _handler in _platforms.items():
        jax.ffi.register_ffi_target(_target, _handler, platform=_platform)


def rounded_nbytes(nbytes: int) -> int:
    """`nbytes`, rounded up to one of 16 sizes for each power of two: each buffer size needs a compiled program."""
    step = max(1 << max(nbytes.bit_length() - 5, 0), _ALIGNMENT)
    return -(-nbytes // step) * step


@functools.partial(jax.jit, static_argnums=(1, 2))
def encode(
    xs: Sequence[jax.Array],
    specs: tuple[Spec, ...],
    threads: int = 0,
    seed: Any = None,
    references: Sequence[jax.Array] = (),
) -> tuple[list[jax.Array], jax.Array]:
    """Encode arrays of one codec and one dtype. The gradient is zero.

    The seed, of all arrays, is a scalar integer array, or uint32[2], a little-endian uint64. There are references where
    the codec needs them.

    Returns:
        For each array a buffer, uint8[spec.capacity], that begins with the payload; and the payloads' lengths,
        uint32[arrays, 2] (uint32[2] for a single array): each pair is a little-endian uint64.
    """
    operands = [*_all_stored(xs, specs), *_references(references, specs), *seed_operands(seed)]
    buffers = [struct((spec.capacity,), jnp.uint8) for spec in specs]
    lengths = struct((2,) if len(specs) == 1 else (len(specs), 2), jnp.uint32)
    *made, length = _call("arrcomp_encode", operands, [*buffers, lengths], specs, threads)
    return made, length


@functools.partial(jax.jit, static_argnums=(2, 3))
def decode(
    buffers: Sequence[jax.Array],
    lengths: Sequence[jax.Array],
    specs: tuple[Spec, ...],
    threads: int = 0,
    references: Sequence[jax.Array] = (),
) -> tuple[list[jax.Array], jax.Array]:
    """Decode payloads of one codec and one dtype from the buffers, of any size, that begin with them.

    Each of the lengths is for one payload or several, in order, as from `encode`. There are none if the payloads (of a
    fixed-rate codec) fill their buffers. The references are those of `encode`.

    Returns:
        The arrays, and a status, uint32[]: 0, or 1 if a payload is corrupt and the arrays are undefined. (On the CPU
        the call fails instead.) Under `jax.vmap` the first status applies to all.
    """
    operands = [*map(_padded, buffers), *_references(references, specs), *lengths]
    arrays = [struct(spec.shape, _storage(spec.dtype)) for spec in specs]
    *made, status = _call("arrcomp_decode", operands, [*arrays, struct((), jnp.uint32)], specs, threads)
    return [_restored(array, spec.dtype) for array, spec in zip(made, specs, strict=True)], status


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def accumulate(
    into: jax.Array, buffers: Sequence[jax.Array], weights: tuple[float, ...], spec: Spec, threads: int = 0
) -> jax.Array:
    """Add decoded payloads, times their weights, to an array, whose memory is reused if it is not needed later.

    Each of the buffers is uint8[spec.capacity], of a codec with `has_sums`.
    """
    operands = [_stored(lax.stop_gradient(into), spec.dtype), *map(_padded, buffers)]
    results = [struct(spec.shape, _storage(spec.dtype))]
    extra = {"weights": np.array(weights, np.float64)}
    (made,) = _call("arrcomp_accumulate", operands, results, (spec,), threads, {0: 0}, extra)
    return _restored(made, spec.dtype)


@functools.partial(jax.jit, static_argnums=(1, 2, 3, 4))
def encode_sum(
    buffers: Sequence[jax.Array], weights: tuple[float, ...], spec: Spec, result: Spec, threads: int, seed: Any = None
) -> tuple[jax.Array, jax.Array]:
    """Encode the weighted sum of payloads, same as in `accumulate`. The results are those of `encode`."""
    operands = [*map(_padded, buffers), *seed_operands(seed)]
    results = [struct((result.capacity,), jnp.uint8), struct((2,), jnp.uint32)]
    extra = {
        "weights": np.array(weights, np.float64),
        "result_codec_id": result.codec.id,
        "result_parameters": np.array(result.codec.core_parameters(), np.float64),
    }
    made, length = _call("arrcomp_encode_sum", operands, results, (spec,), threads, None, extra)
    return made, length


@jax.jit
def row(x: jax.Array, index: int) -> jax.Array:
    """`x[index]`, with one compiled program for all indices."""
    item: jax.Array = lax.dynamic_index_in_dim(x, index, keepdims=False)
    return item


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _straight_through(x: jax.Array, seed: Any, codec: Codec, threads: int) -> jax.Array:
    spec = Spec(codec, _dtypes.by_numpy(x.dtype), x.shape)
    stored = _stored(x, spec.dtype)
    operands = [stored, *seed_operands(seed)]
    (made,) = _call("arrcomp_roundtrip", operands, [struct(stored.shape, stored.dtype)], (spec,), threads, {0: 0})
    return on_mesh_of(x, _restored(made, spec.dtype))


@_straight_through.defjvp
def _(codec: Codec, threads: int, primals: Any, tangents: Any) -> Any:
    made, tangent = _straight_through(*primals, codec, threads), tangents[0]
    # The result varies with the seed, too. Tangents of integers have no values.
    return made, tangent if tangent.dtype == jax.dtypes.float0 else vary(tangent, varying_axes([made]))


# Compress, then decompress, with a straight-through gradient. The seed is the same as in `encode`.
roundtrip = jax.jit(_straight_through, static_argnums=(2, 3))


def _call(
    target: str,
    operands: list[jax.Array],
    results: list[Any],
    specs: tuple[Spec, ...],
    threads: int,
    aliases: dict[int, int] | None = None,
    extra: dict[str, Any] | None = None,
) -> list[jax.Array]:
    attributes = {
        "codec_id": specs[0].codec.id,
        "parameters": np.array(specs[0].codec.core_parameters(), np.float64),
        "dtype_id": specs[0].dtype.id,
        "counts": np.array([spec.elements for spec in specs], np.int64),
        "threads": threads,
    } | (extra or {})
    return custom_call(target, operands, results, attributes, aliases)


def custom_call(
    target: str,
    operands: list[jax.Array],
    results: list[Any],
    attributes: dict[str, Any],
    aliases: dict[int, int] | None = None,
) -> list[jax.Array]:
    """A custom call of the core, whose results vary over the same mesh axes as its operands.

    Operands that are sharded are refused, while tracing or, under automatic axes, while XLA compiles.
    """
    operands = varying_alike([whole(_OPERANDS[target], x) for x in operands])
    call = jax.ffi.ffi_call(target, results, vmap_method="broadcast_all", input_output_aliases=aliases)
    return [vary(result, varying_axes(operands)) for result in call(*operands, **attributes)]


def seed_operands(seed: Any) -> list[jax.Array]:
    """A seed as operands, [uint32[2]] or []: this works without jax_enable_x64."""
    if seed is None or seed.ndim == 1:
        return [] if seed is None else [jnp.asarray(seed)]
    if seed.dtype.itemsize == 8:
        return [lax.bitcast_convert_type(seed, jnp.uint32)]
    if jnp.issubdtype(seed.dtype, jnp.unsignedinteger):
        words = [seed.astype(jnp.uint32), jnp.zeros((), jnp.uint32)]
    else:
        signed = seed.astype(jnp.int32)
        words = [lax.bitcast_convert_type(part, jnp.uint32) for part in (signed, signed >> 31)]
    return [jnp.stack(varying_alike(words))]


def _padded(buffer: jax.Array) -> jax.Array:
    missing = -buffer.shape[0] % _ALIGNMENT
    return jnp.pad(buffer, (0, missing)) if missing else buffer


def _storage(dtype: _dtypes.DType) -> Any:
    """The dtype of an array in a custom call, where each value takes at least a byte."""
    return np.uint8 if dtype.name in _NIBBLES else dtype.numpy


def _stored(x: jax.Array, dtype: _dtypes.DType) -> jax.Array:
    return lax.bitcast_convert_type(x, jnp.uint4).astype(jnp.uint8) if dtype.name in _NIBBLES else x


def _all_stored(xs: Sequence[jax.Array], specs: Sequence[Spec]) -> list[jax.Array]:
    """Arrays as operands, without gradients."""
    return [_stored(lax.stop_gradient(x), spec.dtype) for x, spec in zip(xs, specs, strict=True)]


def _references(references: Sequence[jax.Array], specs: Sequence[Spec]) -> list[jax.Array]:
    """References as operands, with a name of their own where they are sharded."""
    return [whole("reference", base) for base in _all_stored(references, specs[: len(references)])]


def _restored(x: jax.Array, dtype: _dtypes.DType) -> jax.Array:
    return lax.bitcast_convert_type(x.astype(jnp.uint4), dtype.numpy) if dtype.name in _NIBBLES else x


# Inside shard_map, JAX tracks the mesh axes over which a value varies. The operands of a custom call must have the same
# axes, and those of its results must be set.


def varying_axes(xs: Sequence[jax.Array]) -> frozenset[Any]:
    """The mesh axes over which any of the values varies."""
    return frozenset().union(*map(_axes_of, xs))


def _axes_of(x: jax.Array) -> frozenset[Any]:
    kind: Any = jax.typeof(x)
    axes: frozenset[Any] = kind.mat.varying if hasattr(kind, "mat") else getattr(kind, "vma", frozenset())
    return axes


def vary(x: jax.Array, axes: frozenset[Any]) -> jax.Array:
    """A value, marked as varying over mesh axes; the gradient is summed over those that are new."""
    missing = tuple(axes - _axes_of(x))
    if not missing:
        return x
    varying: jax.Array = _lax.pcast(x, missing, to="varying") if hasattr(lax, "pcast") else _lax.pvary(x, missing)
    return varying


def varying_alike(xs: list[jax.Array]) -> list[jax.Array]:
    """The values, marked as varying over the axes of all of them."""
    axes = varying_axes(xs)
    return [vary(x, axes) for x in xs]
