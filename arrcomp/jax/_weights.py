"""Weights that stay compressed in memory: `compress_weights`, and `decompress_weights` inside compiled programs."""

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import jax
import numpy as np

from .._api.compress import checked_seed, compress
from .._api.compressed import Compressed
from .._arguments import checked_integer, shown, thread_count, type_name, wrong_type, wrong_value
from .._arrays.contract import Payload
from .._dtypes import Bytes
from .._format.spec import Spec
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules, codec_for
from . import _ops
from ._adapter import ADAPTER, check_concrete, check_hashable, is_supported
from ._functions import decompress
from ._tree import flattened

_ALIGNMENT = 8  # of buffers: a program would copy others first, to pad them
_LEAST_SAVED = 1 / 32  # of an array: less is not worth the time to decompress it
_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True)
class WeightMemory:
    """What the weights of a model take in memory, in bytes. ``print`` shows it in a line.

    Attributes:
        nbytes: what they take: buffers and lengths of compressed arrays, and the others as they are.
        plain_nbytes: what they would take without compression.
        compressed: number of compressed arrays; a stack of layers is one.
    """

    nbytes: int
    plain_nbytes: int
    compressed: int

    def __str__(self) -> str:
        share = 100 * self.nbytes / max(self.plain_nbytes, 1)
        return (
            f"{self.nbytes:,} bytes instead of {self.plain_nbytes:,} ({share:.1f} %); {self.compressed} arrays are "
            "compressed"
        )


def compress_weights(
    tree: Any,
    codec: Codec | Sequence[Rule] | None = None,
    *,
    layers: str | Sequence[str] = (),
    skip: str | Sequence[str] = (),
    min_size: int = 4096,
    threads: int | None = None,
    seed: Any = None,
) -> Any:
    """Compress the weights of a model, so that they stay compressed in memory.

    The result is a pytree, which compiled functions take as an argument. They call `decompress_weights` on a part of it
    just before they use that part. The result has the structure of `tree`, with a `Compressed` instead of each
    compressed array. Codecs, dtypes and shapes are static.

    Name the weights that are stacked over layers, for `jax.lax.scan`, in `layers`. Each layer of such an array is
    compressed by itself. The payloads of all layers are rows of one array of bytes, whose first axis is that of the
    layers. The body of a scan over the result gets one compressed layer, and only that layer is decompressed at a
    time::

        weights = compress_weights(params, layers="layers.*")

        @jax.jit
        def forward(weights, x):
            def body(x, layer):
                return block(decompress_weights(layer), x), None

            return jax.lax.scan(body, x, weights["layers"])[0]

    XLA schedules when weights that are not scanned are decompressed. A program that loops over a Python list of layers
    may hold all of them decompressed.

    Gradients with respect to other arguments are those of the plain model. Differentiating with respect to compressed
    weights is a `TypeError` of JAX, as bytes have no gradient. The backward pass of a scan keeps all decompressed
    layers, unless the body is in `jax.checkpoint`: then it decompresses each layer again.

    Some leaves stay as they are: those in `skip`, numbers, arrays with fewer than `min_size` values, arrays that would
    save less than a thirty-second part, and arrays whose dtype the format or JAX does not have.

    All arrays with the same codec, dtype and shape have buffers of one size, that of the longest payload. So a compiled
    function of one layer is compiled once for all layers in a list.

    Args:
        tree: a pytree of JAX and NumPy arrays, numbers, and `Compressed`, which stay compressed.
        codec: same as in `arrcomp.save_file`: a codec or rules, such as `arrcomp.model_rules`; None for `Lossless()`.
            The names for rules are the keys of an array joined by dots, for instance "layers.attention.w". For a
            stacked array the rules see the shape of one layer.
        layers: names of the arrays that are stacked over layers along their first axis: a pattern of `fnmatch`, such as
            "layers.*", or several.
        skip: patterns for the names of arrays that stay plain.
        min_size: arrays with fewer values (in one layer, if they are stacked) are not compressed.
        threads: number of CPU threads; None for all cores that the process may use.
        seed: for stochastic rounding, an integer, same as in `arrcomp.compress`; all arrays use the same one.

    Returns:
        The compressed weights, on the devices of the arrays; NumPy arrays go to JAX's default device. To use them on
        all devices of a mesh, replicate them by `jax.device_put`. Synchronizes.

    Raises:
        TypeError: a leaf is something else, traced, or sharded over several devices; an argument has a wrong type; a
            codec is not hashable, or needs a seed, and `seed` is None; or a `Compressed` has a name in `layers`, needs
            a reference, or has a dtype that JAX does not have.
        ValueError: a pattern matches no name, or one of `layers` an array without axes; a `Compressed` is stacked
            already; a codec needs a reference; or a number is out of range.
        CorruptStreamError: a `Compressed` that was not made in this process is corrupt.

    >>> import jax, arrcomp.jax
    >>> params = {"layers": {"w": jax.random.normal(jax.random.key(0), (6, 100, 100))}, "scale": 2.0}
    >>> weights = arrcomp.jax.compress_weights(params, layers="layers.*")
    >>> def body(x, layer):
    ...     return jax.numpy.tanh(x @ arrcomp.jax.decompress_weights(layer)["w"]), None
    >>> y, _ = jax.jit(lambda w, x: jax.lax.scan(body, x, w["layers"]))(weights, jax.numpy.ones(100))
    >>> memory = arrcomp.jax.weight_memory(weights)
    >>> y.shape, memory.nbytes < memory.plain_nbytes
    ((100,), True)
    """
    thread_count(threads)
    least = checked_integer("min_size", min_size, 0, 1 << 62)
    settings = _Settings(_checked_codecs(codec, seed), least, threads, seed)
    paths, leaves, structure = flattened(tree)
    names = [".".join(keys) for keys in paths]
    stacked, plain = _matching("layers", layers, names), _matching("skip", skip, names)
    found = [
        leaf if name in plain else _coded(name, leaf, name in stacked, settings)
        for name, leaf in zip(names, leaves, strict=True)
    ]
    widths = _widths(each for each in found if isinstance(each, _Coded))
    made = [_placed(each, widths[each.spec]) if isinstance(each, _Coded) else each for each in found]
    return jax.tree_util.tree_unflatten(structure, made)


def decompress_weights(tree: Any, *, threads: int | None = None) -> Any:
    """Decompress what `compress_weights` compressed; usable wherever `compress` is, above all under `jax.jit`.

    Other leaves are returned unchanged, so a function that calls it takes plain weights, too. The result has no
    gradient.

    Args:
        tree: compressed weights, or a part of them, such as the layer that the body of a scan gets. Stacked weights are
            decompressed to stacked arrays.
        threads: number of CPU threads; None for all cores that the process may use. Static.

    Returns:
        The tree with a JAX array instead of each `Compressed`.

    Raises:
        TypeError, ValueError: same as in `decompress`.
    """
    thread_count(threads)
    return jax.tree_util.tree_map(
        lambda leaf: _plain(leaf, threads) if isinstance(leaf, Compressed) else leaf, tree, is_leaf=_is_compressed
    )


def weight_memory(tree: Any) -> WeightMemory:
    """What weights take in memory: those of a model, or a part of them, compressed or plain. Temporaries do not count.

    Raises TypeError if a leaf is neither an array nor a number.

    >>> import jax.numpy as jnp, arrcomp.jax
    >>> params = {"w": jnp.zeros((100, 50)), "b": jnp.ones(50)}
    >>> arrcomp.jax.weight_memory(params)
    WeightMemory(nbytes=20200, plain_nbytes=20200, compressed=0)
    >>> arrcomp.jax.weight_memory(arrcomp.jax.compress_weights(params)).compressed
    1
    """
    leaves = jax.tree_util.tree_leaves(tree, is_leaf=_is_compressed)
    nbytes = sum(map(_array_nbytes, jax.tree_util.tree_leaves(tree)))
    return WeightMemory(nbytes, sum(map(_plain_nbytes, leaves)), sum(map(_is_compressed, leaves)))


class _Settings(NamedTuple):
    """Arguments of `compress_weights`, checked."""

    rules: tuple[Rule, ...]
    min_size: int
    threads: int | None
    seed: Any


@dataclass(frozen=True)
class _Coded:
    """An array whose payloads are in host memory."""

    spec: Spec  # of one layer, if it is stacked
    payloads: Sequence[Bytes]  # of all layers; a single one if it is not stacked
    stacked: bool
    sharding: Any  # None for JAX's default device


def _checked_codecs(codec: Any, seed: Any) -> tuple[Rule, ...]:
    rules = checked_rules(codec)
    for rule in rules:
        check_hashable(rule.codec)
        if rule.codec.needs_reference:
            raise wrong_value("codec", "a codec that needs no reference", rule.codec)
        checked_seed(rule.codec, seed)
    return rules


def _matching(argument: str, patterns: Any, names: Sequence[str]) -> set[str]:
    """The names that match a pattern."""
    several = (patterns,) if isinstance(patterns, str) else patterns
    if not isinstance(several, (tuple, list)) or not all(isinstance(pattern, str) for pattern in several):
        raise wrong_type(argument, "a pattern of names, or several", patterns)
    found: set[str] = set()
    for pattern in several:
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            raise ValueError(f"{argument}: expected patterns of names such as {shown(names[:3])}, got {shown(pattern)}")
        found.update(matching)
    return found


def _coded(name: str, leaf: Any, stacked: bool, settings: _Settings) -> Any:
    """A leaf as `_Coded`, or unchanged if it stays plain."""
    if isinstance(leaf, Compressed):
        return _adopted(name, leaf, stacked)
    _check_leaf(name, leaf)
    if stacked and np.ndim(leaf) == 0:
        raise ValueError(f"layers: expected arrays with an axis of layers, got shape () in leaf {shown(name)}")
    if isinstance(leaf, _NUMBERS) or not is_supported(leaf.dtype):
        return leaf
    shape = leaf.shape[1:] if stacked else leaf.shape
    if leaf.size == 0 or math.prod(shape) < settings.min_size:
        return leaf
    dtype, _ = ADAPTER.dtype_and_shape(leaf)
    codec = codec_for(settings.rules, name, dtype, shape)
    payloads = [_payload(layer, codec, settings) for layer in _layers(leaf, stacked)]
    spec = Spec(codec, dtype, shape)
    if max(payload.size for payload in payloads) > (1 - _LEAST_SAVED) * spec.nbytes:
        return leaf
    return _Coded(spec, payloads, stacked, _sharding_of(leaf))


def _adopted(name: str, c: Compressed, stacked: bool) -> _Coded:
    """A leaf that is compressed already."""
    if stacked:
        raise TypeError(f"layers: expected arrays, got a Compressed in leaf {shown(name)}; decompress it first")
    if c.needs_reference:
        raise TypeError(f"tree: expected arrays without a reference, got one with a reference in leaf {shown(name)}")
    check_hashable(c.codec)
    ADAPTER.check_dtype(c.spec.dtype)
    c.verify()
    return _Coded(c.spec, [c.host_payload()], False, _sharding_of(c.payload.buffer))


def _check_leaf(name: str, leaf: Any) -> None:
    """Raise TypeError unless a leaf is a number, a NumPy array, or a JAX array on one device."""
    if not isinstance(leaf, (jax.Array, np.ndarray, np.generic, *_NUMBERS)):
        raise TypeError(f"tree: expected a JAX or NumPy array or a number in leaf {shown(name)}, got {type_name(leaf)}")
    if not isinstance(leaf, jax.Array):
        return
    check_concrete(leaf, f"tree: leaf {shown(name)} is traced")
    devices = len(leaf.sharding.device_set)
    if devices > 1:
        raise TypeError(
            f"tree: expected leaf {shown(name)} on one device, got one sharded over {devices}; pass "
            "jax.device_get(tree), and replicate the result by jax.device_put"
        )


def _layers(leaf: Any, stacked: bool) -> Iterable[Any]:
    if not stacked:
        return [leaf]
    row = _ops.row if isinstance(leaf, jax.Array) else operator.getitem
    return (row(leaf, index) for index in range(leaf.shape[0]))


def _payload(x: Any, codec: Codec, settings: _Settings) -> Bytes:
    """The payload of an array, in host memory of its own size."""
    return compress(x, codec, threads=settings.threads, seed=settings.seed).host_payload().copy()


def _sharding_of(x: Any) -> Any:
    """Where the payloads of an array go: an array that is not committed to its device leaves JAX the choice."""
    return x.sharding if isinstance(x, jax.Array) and x.committed else None


def _widths(arrays: Iterable[_Coded]) -> Mapping[Spec, int]:
    """The size of the buffers of each spec, for the longest payload."""
    widths: dict[Spec, int] = {}
    for each in arrays:
        longest = max(payload.size for payload in each.payloads)
        if not each.spec.codec.fixed_rate:  # whose payloads have one size, and fill their buffers
            longest += -longest % _ALIGNMENT
        widths[each.spec] = max(widths.get(each.spec, 0), longest)
    return widths


def _placed(coded: _Coded, width: int) -> Compressed:
    """The payloads on their device, in rows of this size."""
    payloads = coded.payloads
    rows = np.zeros((len(payloads), width), np.uint8)
    for row, payload in zip(rows, payloads, strict=True):
        row[: payload.size] = payload
    lengths = np.array([[payload.size] for payload in payloads], "<u8").view(np.uint32)
    if not coded.stacked:
        rows, lengths = rows[0], lengths[0]
    parts = rows, None if coded.spec.codec.fixed_rate else lengths
    buffer, length = jax.device_put(parts, coded.sharding)
    return Compressed(coded.spec, Payload(ADAPTER, buffer, length, trusted=True))


def _plain(c: Compressed, threads: int | None) -> Any:
    if np.ndim(c.payload.buffer) > 1:
        return jax.vmap(lambda layer: _plain(layer, threads))(c)
    return decompress(c, threads=threads)


def _is_compressed(node: Any) -> bool:
    return isinstance(node, Compressed)


def _plain_nbytes(leaf: Any) -> int:
    if isinstance(leaf, Compressed):
        layers: tuple[int, ...] = leaf.payload.buffer.shape[:-1]
        return leaf.spec.nbytes * math.prod(layers)
    return _array_nbytes(leaf)


def _array_nbytes(leaf: Any) -> int:
    if not isinstance(leaf, _NUMBERS) and not hasattr(leaf, "dtype"):
        raise TypeError(f"tree: expected arrays and numbers, got {type_name(leaf)} in a leaf")
    dtype: Any = jax.numpy.result_type(leaf) if isinstance(leaf, _NUMBERS) else leaf.dtype
    nbytes: int = math.prod(np.shape(leaf)) * dtype.itemsize
    return nbytes
