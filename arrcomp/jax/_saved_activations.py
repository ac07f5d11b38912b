"""Compression of the residuals of a function's derivative: `compress_residuals`."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from .._api.compress import checked_seed, spec_of
from .._api.compressed import Compressed
from .._arguments import checked_integer, wrong_type
from .._arrays.contract import Payload
from .._dtypes import MAX_VALUES
from ..codecs import QSGD, Codec
from . import _ops, _seeds
from . import _tree as _tree
from ._adapter import ADAPTER, seed_operand
from ._functions import decompress, fixed_rate_codec


def compress_residuals(
    fun: Callable[..., Any],
    codec: Codec | None = None,
    *,
    min_size: int = 4096,
    compress_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    seed: Any = None,
) -> Callable[..., Any]:
    """Compress the residuals of a function between the forward and the backward pass.

    Use it like `jax.checkpoint`, which saves a function's arguments and recomputes everything else: this saves
    everything else in fewer bits. (`arrcomp.torch.compressed_activations` does the same for PyTorch, where it is a
    context manager.) Values do not change; gradients are computed from the decompressed residuals. It works under
    `jax.jit`, `jax.vmap`, `jax.lax.scan` and `jax.shard_map`, on pytrees, and `fun` may close over differentiated
    values.

    Residuals that are arguments (such as parameters), small ones, and dtypes that the codec does not support are not
    compressed. Booleans, for instance of `jax.nn.relu`, take one bit each, exactly.

    First derivatives in reverse mode are supported; forward mode and second derivatives raise an error.

    Args:
        fun: a function of pytrees of arrays, positional or by keyword.
        codec: a fixed-rate codec (XLA would save other payloads at their capacity). Static. None for
            ``QSGD(bits=8)``, with stochastic rounding if there is a seed.
        min_size: residuals with fewer values are not compressed.
        compress_argnums: indices of arguments to compress, too, if the derivative needs them: for instance the input
            activations of a layer, if nothing else saves them (the previous layer compresses its residuals, too, or
            in a scan).
        static_argnums: indices of arguments that are not arrays, same as in `jax.checkpoint`.
        seed: for stochastic rounding, same as in `compress`. Each residual derives its own from its index.

    Returns:
        A function like `fun`.

    Raises:
        TypeError: `codec` is not a fixed-rate codec, or needs a seed, and `seed` is None; `fun` is not callable;
            another argument has a wrong type; or for second derivatives.
        ValueError: a number is out of range, or an argument is in both `compress_argnums` and `static_argnums`.

    >>> import jax, jax.numpy as jnp, arrcomp.jax
    >>> layer = lambda w, x: jnp.tanh(x @ w)
    >>> compressed = arrcomp.jax.compress_residuals(layer)
    >>> w, x = jnp.ones((64, 256)) / 64, jnp.ones((100, 64))
    >>> exact, close = (jax.grad(lambda w: f(w, x).sum())(w) for f in (layer, compressed))
    >>> bool(abs(exact - close).max() < 0.01 * abs(exact).max())
    True
    """
    if not callable(fun):
        raise wrong_type("fun", "a function", fun)
    if codec is None:
        codec = QSGD(bits=8, rounding="nearest" if seed is None else "stochastic")
    codec = fixed_rate_codec(codec, "keep", "QSGD(bits=8)")
    words = seed_operand(checked_seed(codec, seed))
    settings = _Settings(codec, checked_integer("min_size", min_size, 0, MAX_VALUES))
    static = _argnums("static_argnums", static_argnums)
    also = _argnums("compress_argnums", compress_argnums)
    if static & also:
        raise ValueError(f"compress_argnums: expected none of static_argnums, got {sorted(static & also)} in both")

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        def call(arrays: dict[int, Any], named: dict[str, Any]) -> Any:
            return fun(*(arrays.get(i, arg) for i, arg in enumerate(args)), **named)

        arrays = {i: arg for i, arg in enumerate(args) if i not in static}
        traced, result = jax.make_jaxpr(call, return_shape=True)(arrays, kwargs)
        # Values that the function closes over become operands: they may be differentiated, or of another trace.
        alone, compressed = ({i: arg for i, arg in arrays.items() if (i in also) is there} for there in (False, True))
        operands = _Operands(alone, compressed, kwargs, traced.consts)
        function = _Traced(traced.jaxpr, jax.tree.structure(result))
        return _differentiable(function, settings)(operands, None if words is None else _ops.seed_operands(words)[0])

    return wrapped


class _Operands(NamedTuple):
    """What a call depends on. Residuals that are operands are only compressed if they are in `compressed`."""

    alone: dict[int, Any]
    compressed: dict[int, Any]
    named: dict[str, Any]
    around: Any


class _Traced(NamedTuple):
    """A function of operands."""

    jaxpr: Any
    result: Any  # its structure

    def __call__(self, operands: _Operands) -> Any:
        leaves = jax.tree.leaves((operands.alone | operands.compressed, operands.named))
        function = jaxpr_as_fun(ClosedJaxpr(self.jaxpr, operands.around))
        return jax.tree.unflatten(self.result, function(*leaves))


class _Settings(NamedTuple):
    codec: Codec
    min_size: int


@functools.partial(jax.tree_util.register_dataclass, data_fields=["packed"], meta_fields=["shape"])
@dataclass
class _Bits:
    """Booleans, packed eight to a byte."""

    packed: jax.Array
    shape: tuple[int, ...]

    def restored(self) -> jax.Array:
        count = int(np.prod(self.shape))
        return jnp.unpackbits(self.packed, count=count).astype(bool).reshape(self.shape)


def _differentiable(run: _Traced, settings: _Settings) -> Callable[..., Any]:
    """The function of operands and a seed, with a derivative from compressed residuals."""

    def forward(operands: _Operands, words: Any) -> tuple[Any, Any]:
        pullback: Any
        out, pullback = jax.vjp(lambda operands: run(operands), operands)
        alone = {id(leaf) for leaf in jax.tree.leaves(operands._replace(compressed={}))}
        return out, _stored(pullback, alone, settings, words)

    def backward(stored: Any, gradient: Any) -> tuple[Any, None]:
        pullback = jax.tree.map(_restored, stored, is_leaf=_is_stored)
        return pullback(gradient)[0], None

    call = jax.custom_vjp(lambda operands, words: run(operands))
    call.defvjp(forward, backward)
    return call


def _stored(pullback: Any, alone: set[int], settings: _Settings, words: Any) -> Any:
    """A pullback with compressed residuals, except those whose id is in `alone`."""
    leaves, structure = jax.tree.flatten(pullback)
    made: dict[int, Any] = {}
    for index, leaf in enumerate(leaves):
        if id(leaf) not in alone and id(leaf) not in made:
            made[id(leaf)] = _stored_leaf(leaf, settings, None if words is None else _seeds.derived(words, index))
    return jax.tree.unflatten(structure, [made.get(id(leaf), leaf) for leaf in leaves])


def _stored_leaf(x: Any, settings: _Settings, words: Any) -> Any:
    if x.size < settings.min_size:
        return x
    if x.dtype == bool:
        return _Bits(jnp.packbits(x.reshape(-1)), x.shape)
    if not settings.codec.takes_numpy(x.dtype):
        return x
    spec = spec_of(ADAPTER, x, settings.codec)
    (buffer,), _ = _ops.encode([_first_order(x)], (spec,), 0, words)
    return Compressed(spec, Payload(ADAPTER, buffer, trusted=True))


def _is_stored(node: Any) -> bool:
    return isinstance(node, (Compressed, _Bits))


def _restored(node: Any) -> Any:
    if isinstance(node, Compressed):
        return decompress(node)
    return node.restored() if isinstance(node, _Bits) else node


@jax.custom_jvp
def _first_order(x: jax.Array) -> jax.Array:
    """The identity, without a second derivative, which would silently be zero, as for any conversion to integers."""
    return x


@_first_order.defjvp
def _(primals: Any, tangents: Any) -> Any:
    raise TypeError("compress_residuals does not support second derivatives; use jax.checkpoint, or fun itself")


def _argnums(name: str, value: Any) -> set[int]:
    return {checked_integer(name, i, 0, 255) for i in (value if isinstance(value, (tuple, list)) else (value,))}
