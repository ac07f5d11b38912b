"""Compressed state for the optimizers of Optax and others with the same interface.

tx = compressed_optimizer(optax.adamw(1e-3), eight_bit())
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax import numpy as jnp

from .._arguments import checked_integer, shortened, shown, thread_count, wrong_type
from .._format.spec import Spec
from .._methods.keyed_codecs import KeyedCodecs, check_codec_or_none
from .._methods.seeds import MAX_SEED
from ..codecs import Codebook, Codec
from . import _ops
from ._adapter import ADAPTER, check_hashable, is_traced, single_device, uint64_pair
from ._seeds import derived
from ._tree import flattened

__all__ = ["CompressedState", "compressed_optimizer", "decompressed_state", "eight_bit", "state_nbytes"]

Transformation = TypeVar("Transformation")  # optax.GradientTransformation, or a subclass

_MAX_NBYTES = 1 << 26  # of the arrays in one call; a single array may exceed it

# One codec, codecs by key, or a function of the keys of an array's path, and of the array.
CodecChoice = Codec | Mapping[str, Codec | None] | Callable[[tuple[str, ...], Any], Codec | None]


class CompressedState(NamedTuple):
    """The state of a compressed optimizer: a pytree of arrays, like all states.

    Attributes:
        inner_state: of the wrapped optimizer, with a payload, uint8[bytes], instead of each compressed array.
        step: uint32[], the number of updates, from which seeds are derived.
    """

    inner_state: Any
    step: jax.Array


def eight_bit() -> dict[str, Codec | None]:
    """Codecs for 8-bit state of Optax's optimizers: dynamic maps in buckets of 256 values (arXiv:2110.02861).

    Running averages of gradients (`mu`, `trace`) have the signed map. Averages of squares (`nu`, `nu_max`) have the
    unsigned map, which never rounds a positive value to 0: updates are divided by their roots. In `optax.sm3` the names
    mean something else: `nu` is the average of updates and has the signed map, and `mu`, the largest squares of rows
    and columns, is small and not compressed.

    All other state is not compressed. Averages forget, and rounding errors with them. Sums that only grow, copies of
    parameters and what is added to them in small steps do not: steps below half a level would be lost.

    `optax.rmsprop(centered=True)` is not supported: it takes roots of differences of moments, which may be negative
    after rounding.
    """
    signed, unsigned = Codebook.dynamic8(), Codebook.dynamic8(signed=False)
    sm3: dict[str, Codec | None] = {"ScaleBySM3State.nu": signed, "ScaleBySM3State.mu": None}
    return {**sm3, "mu": signed, "trace": signed, "nu": unsigned, "nu_max": unsigned}


def compressed_optimizer(
    tx: Transformation, codec: CodecChoice, *, min_size: int = 4096, seed: int = 0, threads: int | None = None
) -> Transformation:
    """Wrap an optimizer, and compress its state between updates.

    (`arrcomp.torch.CompressedOptimizer` does the same for PyTorch.) `init` compresses; `update` decompresses, calls the
    wrapped `update`, and compresses again, in any JAX transformation: `jax.jit` with donated state, `jax.lax.scan`,
    `jax.vmap`. In compiled programs XLA schedules the decompression: at most all of the state is decompressed at a
    time. Inside `jax.shard_map` each device compresses its shard; elsewhere state that is sharded is an error, as in
    `arrcomp.jax.compress`.

    The state has the structure of the wrapped optimizer's, with a one-dimensional array of bytes instead of each
    compressed array, so any library that saves pytrees of arrays can save and restore it exactly. To interpret the
    bytes, `update` needs the parameters' shapes and dtypes: `params` must be given.

    Floating-point arrays with a codec, at least one dimension and `min_size` values are compressed. Counters, and
    small, integer and complex arrays are not.

    A codebook without levels below 0 is for values that are never negative. If one is, the array's updates become NaN,
    as a compiled program cannot raise, and zeros in its place would spoil training in silence.

    Args:
        tx: an `optax.GradientTransformation`, or a named tuple with `init` and `update`. The shapes and dtypes of its
            state must follow from those of the parameters.
        codec: one fixed-rate codec for all arrays; or a mapping from keys such as "mu" (`fnmatch` patterns) to codecs,
            or to None for no compression: the first key on an array's path that matches counts, with its first
            matching pattern. Before each field's own name comes that with its type, such as "ScaleByAdamState.mu". Or a
            function of the tuple of these keys and the array (a `jax.ShapeDtypeStruct`) that
            returns a codec or None, always the same. (Other codecs save no memory inside compiled programs.)
        min_size: arrays with fewer values are not compressed.
        seed: for stochastic rounding, 0 to 2^64 - 1; updates and arrays derive their own from it.
        threads: number of CPU threads; None for all cores that the process may use.

    Returns:
        An optimizer of the type of `tx`.

    Raises:
        TypeError: an argument has a wrong type; in `init`: a codec does not support an array's dtype.
        ValueError: `min_size`, `seed` or `threads` is out of range; a codec has a variable rate; in `update`: `params`
            is None, or the state belongs to other parameters.

    >>> import jax, arrcomp, optax
    >>> params = jax.numpy.ones((100, 200))
    >>> plain = optax.adam(1e-3)
    >>> small = compressed_optimizer(plain, eight_bit())
    >>> state_nbytes(plain.init(params)) / state_nbytes(small.init(params)) > 3.8
    True
    """
    if not (isinstance(tx, tuple) and callable(getattr(tx, "init", None)) and callable(getattr(tx, "update", None))):
        raise wrong_type("tx", "an optax.GradientTransformation", tx)
    compressor = _Compressor(tx, codec, min_size, seed, thread_count(threads))
    # The same type tells Optax which arguments to pass.
    made: Transformation = tx._replace(init=compressor.init, update=compressor.update)  # type: ignore[attr-defined]
    return made


def decompressed_state(tx: Any, state: CompressedState, params: Any) -> Any:
    """The state of the wrapped optimizer, for use without arrcomp.

    Args:
        tx: what `compressed_optimizer` returned.
        state: of `tx`.
        params: the parameters, or `jax.ShapeDtypeStruct`s like them.

    Raises:
        TypeError: `tx` or `state` is something else.
        ValueError: the state belongs to other parameters.
    """
    owner = getattr(getattr(tx, "init", None), "__self__", None)
    if not isinstance(owner, _Compressor):
        raise wrong_type("tx", "an optimizer of compressed_optimizer", tx)
    return owner.decompressed(state, owner.plan_of(params))


def state_nbytes(state: Any) -> int:
    """Bytes of the arrays of a pytree: a state, or `jax.eval_shape` of one."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))


class _Plan(NamedTuple):
    """The static properties of a state, which follow from the parameters."""

    structure: Any  # of the state, and of the wrapped optimizer's
    calls: list[dict[int, Spec]]  # for each call of the core, the specs of the arrays with these indices

    def leaves_of(self, state: Any) -> list[Any]:
        """The arrays of a state, or of the wrapped optimizer's."""
        leaves, structure = jax.tree.flatten(state)
        if structure != self.structure:
            expected, got = (shortened(str(each)) for each in (self.structure, structure))
            raise ValueError(f"state: expected the structure of init, {expected}, got {got}")
        return leaves

    def state_of(self, leaves: list[Any], changed: dict[int, Any]) -> Any:
        """The inverse of `leaves_of`, with some arrays changed."""
        return jax.tree.unflatten(self.structure, [changed.get(i, leaf) for i, leaf in enumerate(leaves)])


class _Compressor:
    """Implements `init` and `update` of a compressed optimizer."""

    def __init__(self, tx: Any, codec: Any, min_size: int, seed: int, threads: int) -> None:
        self._tx, self._threads = tx, threads
        if isinstance(codec, (Codec, Mapping)):
            self._codecs: KeyedCodecs | None = KeyedCodecs.of(codec)
            for _, one in self._codecs.choices:
                _check_fixed_rate(one)
        elif callable(codec):
            self._codecs, self._find = None, codec
        else:
            raise wrong_type("codec", "a codec, a mapping of codecs, or a function of keys and an array", codec)
        self._min_size = checked_integer("min_size", min_size, 0, 1 << 62)
        self._seed = checked_integer("seed", seed, 0, MAX_SEED)
        self._plans: dict[Hashable, _Plan] = {}

    def init(self, params: Any) -> CompressedState:
        """The initial state."""
        plan = self.plan_of(params)
        return self._compressed(self._tx.init(params), plan, jnp.zeros((), jnp.uint32))

    def update(
        self, updates: Any, state: CompressedState, params: Any = None, **extra: Any
    ) -> tuple[Any, CompressedState]:
        """The wrapped optimizer's updates, and the next state."""
        if params is None:
            raise ValueError("params: expected the parameters, which determine the shapes of the state, got None")
        plan = self.plan_of(params)
        updates, changed = self._tx.update(updates, self.decompressed(state, plan), params, **extra)
        return updates, self._compressed(changed, plan, state.step + jnp.uint32(1))

    def plan_of(self, params: Any) -> _Plan:
        """The plan for parameters, cached by their structure, shapes and dtypes."""
        found = jax.tree.map(lambda x: _ops.struct(jnp.shape(x), jnp.result_type(x)), params)
        leaves, structure = jax.tree.flatten(found)
        key = structure, tuple((x.shape, x.dtype) for x in leaves)
        if key not in self._plans:
            state = jax.eval_shape(self._tx.init, found)
            paths, inner, structure = flattened(state)
            named = paths if self._codecs is None else _paths_with_types(state)
            specs = [self._spec_of(*each) for each in zip(paths, named, inner, strict=True)]
            self._plans[key] = _Plan(structure, _calls(specs))
        return self._plans[key]

    def decompressed(self, state: Any, plan: _Plan) -> Any:
        """The wrapped optimizer's state."""
        if not isinstance(state, CompressedState):
            raise wrong_type("state", "a CompressedState, as init returns it", state)
        leaves, arrays = plan.leaves_of(state.inner_state), dict[int, Any]()
        for call in plan.calls:
            buffers = [_checked_buffer(leaves[i], spec) for i, spec in call.items()]
            made, _ = _ops.decode(buffers, [], tuple(call.values()), self._threads)
            arrays |= zip(call, made, strict=True)
        return plan.state_of(leaves, arrays)

    def _compressed(self, state: Any, plan: _Plan, step: jax.Array) -> CompressedState:
        leaves, buffers = plan.leaves_of(state), dict[int, Any]()
        for call in plan.calls:
            xs = [_without_negatives(_checked_array(leaves[i], spec), spec.codec) for i, spec in call.items()]
            made, _ = _ops.encode(xs, tuple(call.values()), self._threads, self._seed_of(call, step))
            buffers |= zip(call, made, strict=True)
        return CompressedState(plan.state_of(leaves, buffers), step)

    def _seed_of(self, call: dict[int, Spec], step: jax.Array) -> Any:
        index, spec = next(iter(call.items()))
        return derived(jnp.asarray(uint64_pair(self._seed)), step, index) if spec.codec.needs_seed else None

    def _spec_of(self, keys: tuple[str, ...], named: tuple[str, ...], x: Any) -> Spec | None:
        if not jnp.issubdtype(x.dtype, jnp.floating) or x.ndim == 0 or x.size < self._min_size:
            return None
        codec = self._find(keys, x) if self._codecs is None else self._codecs.find(named)
        check_codec_or_none(f"codec({shown(keys)}, x)", codec)
        if codec is None:
            return None
        _check_fixed_rate(codec)
        dtype, shape = ADAPTER.dtype_and_shape(x)
        try:
            codec.check_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"state {shown('.'.join(keys))}: {error}") from None
        return Spec(codec, dtype, shape)


def _calls(specs: Sequence[Spec | None]) -> list[dict[int, Spec]]:
    """The arrays of each call, from the specs of all (None without a codec).

    Small arrays are together, which is fast on a GPU; others are alone. The arrays of a call are in memory at the same
    time, and have the same seed.
    """
    calls: list[dict[int, Spec]] = []
    last: dict[Hashable, tuple[dict[int, Spec], int]] = {}  # with its bytes, by codec and dtype
    for index, spec in enumerate(specs):
        if spec is None:
            continue
        call, nbytes = last.get((spec.codec, spec.dtype), ({}, 0))
        if not call or spec.codec.needs_seed or nbytes + spec.nbytes > _MAX_NBYTES:
            call, nbytes = {}, 0
            calls.append(call)
        call[index] = spec
        last[spec.codec, spec.dtype] = call, nbytes + spec.nbytes
    return calls


def _paths_with_types(state: Any) -> list[tuple[str, ...]]:
    """The keys of all leaves; before each field's own name stands the one with its type."""
    return [tuple(_names_on(path, state)) for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]


def _names_on(path: Sequence[Any], node: Any) -> Iterator[str]:
    for key in path:
        if isinstance(key, jax.tree_util.GetAttrKey):
            yield f"{type(node).__name__}.{key.name}"
        yield jax.tree_util.keystr((key,), simple=True)
        node = _child(node, key)


def _child(node: Any, key: Any) -> Any:
    """What a key leads to; None if its container has another way to it."""
    if isinstance(key, jax.tree_util.GetAttrKey):
        return getattr(node, key.name, None)
    index: Any = key.key if isinstance(key, jax.tree_util.DictKey) else getattr(key, "idx", None)
    return node[index] if isinstance(node, (dict, list, tuple)) else None


def _without_negatives(x: Any, codec: Codec) -> Any:
    """The array, with NaN for what a codebook without levels below 0 would make 0."""
    unsigned = isinstance(codec, Codebook) and min(codec.levels) >= 0
    return jnp.where(x < 0, jnp.nan, x) if unsigned else x


def _checked_array(x: Any, spec: Spec) -> Any:
    if (x.shape, x.dtype) != (spec.shape, spec.dtype.numpy):
        expected = f"an array {spec.dtype.name}{list(spec.shape)}, as in init"
        raise ValueError(f"state: expected {expected}, got {x.dtype}{list(x.shape)}")
    if not is_traced(x):
        single_device(x)
    return x


def _checked_buffer(buffer: Any, spec: Spec) -> Any:
    if (buffer.shape, buffer.dtype) != ((spec.capacity,), np.uint8):
        expected = f"uint8[{spec.capacity}] for {spec.dtype.name}{list(spec.shape)}"
        raise ValueError(f"state: expected {expected}, got {buffer.dtype}{list(buffer.shape)}")
    return buffer


def _check_fixed_rate(codec: Codec | None) -> None:
    if codec is None:
        return
    if not codec.fixed_rate:
        raise ValueError(
            f"codec: expected a fixed-rate codec, such as in eight_bit(), got {shown(codec)}; compiled programs would "
            "allocate its capacity, which saves no memory"
        )
    check_hashable(codec)
