"""Optimizers of Optax, or anyone's of that form, whose state is compressed between updates.

tx = compressed_optimizer(optax.adamw(1e-3), eight_bit())
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax import numpy as jnp

from .._arguments import checked_integer, thread_count, type_name
from .._format.spec import Spec
from .._methods.keyed_codecs import KeyedCodecs, check_codec_or_none
from .._methods.seeds import MAX_SEED
from ..codecs import Codebook, Codec
from . import _ops
from ._adapter import ADAPTER, check_hashable, is_traced, single_device, uint64_pair
from ._seeds import derived
from ._tree import flattened

Transformation = TypeVar("Transformation")  # optax.GradientTransformation, or a subclass

_MAX_NBYTES = 1 << 26  # of arrays in one call, unless there is one alone

# What a user says: one codec, codecs by key, or a function of the keys on the way to an array, and of the array.
CodecChoice = Codec | Mapping[str, Codec | None] | Callable[[tuple[str, ...], Any], Codec | None]


class CompressedState(NamedTuple):
    """The state of an optimizer between updates: a pytree of arrays, as all states are.

    Attributes:
        inner_state: the optimizer's own, with the payload, uint8[bytes], of every array that is compressed.
        step: uint32[], the updates so far, from which seeds follow.
    """

    inner_state: Any
    step: jax.Array


def eight_bit() -> dict[str, Codec | None]:
    """Codecs for the 8-bit state of Optax's optimizers: dynamic maps in buckets of 256 values (arXiv:2110.02861).

    Running averages of gradients (`mu`, `trace`) have the signed map, those of squares (`nu`, `nu_max`) the one without
    signs, in which nothing above 0 becomes 0: updates are divided by their roots. All other state stays as it is. Not
    for `optax.rmsprop(centered=True)`, which takes roots of differences of moments: rounded ones may be negative.
    """
    signed, unsigned = Codebook.dynamic8(), Codebook.dynamic8(signed=False)
    return {"mu": signed, "trace": signed, "nu": unsigned, "nu_max": unsigned}


def compressed_optimizer(
    tx: Transformation, codec: CodecChoice, *, min_size: int = 4096, seed: int = 0, threads: int | None = None
) -> Transformation:
    """An optimizer whose state is compressed between updates.

    `init` compresses; `update` decompresses, calls the optimizer's, and compresses again, in any of JAX's
    transformations: `jax.jit` with donated state, `jax.lax.scan`, `jax.vmap`. In compiled programs XLA decides what is
    decompressed at the same time: at most all of the state. Under `jax.jit` with arrays that are sharded over devices
    XLA gathers those to be compressed first; inside `jax.shard_map` each device compresses its own.

    The state has the structure of the optimizer's own, with a one-dimensional array of bytes in the index of each array
    that is compressed: whatever saves pytrees of arrays saves it, and restores it to the bit. What the bytes mean
    follows from the parameters' shapes and types, which `update` therefore needs: `params` must be given.

    Arrays are compressed that are floating-point, have dimensions, `min_size` values or more, and a codec. Counters,
    small arrays, integers and complex numbers stay as they are.

    Args:
        tx: an `optax.GradientTransformation`, or a named tuple of `init` and `update` like it. What its `init` makes
            has shapes and types that follow from those of the parameters.
        codec: a codec for all arrays; or a mapping from keys as "mu" (patterns of `fnmatch`) to codecs, or None for
            what stays as it is: on the way to an array the first key that a pattern fits counts, and of the patterns
            the first; or a function of the tuple of these keys and the array (a `jax.ShapeDtypeStruct`) that gives a
            codec or None, always the same. Codecs are those of a fixed rate: others take as much memory as the array
            inside of compiled programs.
        min_size: the fewest values of an array that is compressed.
        seed: from which those of all updates and arrays follow, with codecs that round at random: 0 to 2^64 - 1.
        threads: how many to use on the CPU; None for all cores that the process may use.

    Returns:
        An optimizer of the type of `tx`.

    Raises:
        TypeError: an argument is of a wrong type; in `init`: a codec does not take an array's data type.
        ValueError: `min_size`, `seed` or `threads` is out of its range; a codec is not of a fixed rate; in `update`:
            `params` is None, or the state is of other parameters.

    >>> import jax, arrcomp, optax
    >>> params = jax.numpy.ones((100, 200))
    >>> plain = optax.adam(1e-3)
    >>> small = compressed_optimizer(plain, eight_bit())
    >>> state_nbytes(plain.init(params)) / state_nbytes(small.init(params)) > 3.8
    True
    """
    if not (isinstance(tx, tuple) and callable(getattr(tx, "init", None)) and callable(getattr(tx, "update", None))):
        raise TypeError(f"tx is a {type_name(tx)}; an optax.GradientTransformation is allowed")
    compressor = _Compressor(tx, codec, min_size, seed, thread_count(threads))
    # Of the same type, so that Optax knows what to pass to it.
    made: Transformation = tx._replace(init=compressor.init, update=compressor.update)  # type: ignore[attr-defined]
    return made


def decompressed_state(tx: Any, state: CompressedState, params: Any) -> Any:
    """The state of the optimizer that a compressed one was made of, for use without arrcomp.

    Args:
        tx: what `compressed_optimizer` returned.
        state: of it.
        params: the parameters, or `jax.ShapeDtypeStruct`s like them.

    Raises:
        TypeError: `tx` or `state` is something else.
        ValueError: the state is of other parameters.
    """
    owner = getattr(getattr(tx, "init", None), "__self__", None)
    if not isinstance(owner, _Compressor):
        raise TypeError(f"tx is a {type_name(tx)}; what compressed_optimizer returns is allowed")
    return owner.decompressed(state, owner.plan_of(params))


def state_nbytes(state: Any) -> int:
    """Bytes of the arrays of a pytree: of a state, or of what `jax.eval_shape` says of one."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))


class _Plan(NamedTuple):
    """What is known of a state by the parameters alone.

    Attributes:
        structure: of it, and of the optimizer's own.
        specs: of each array that is compressed; None for others.
        batches: the indices of those that are compressed in one call.
    """

    structure: Any
    specs: tuple[Spec | None, ...]
    batches: tuple[tuple[int, ...], ...]


class _Compressor:
    """An optimizer around another one."""

    def __init__(self, tx: Any, codec: Any, min_size: int, seed: int, threads: int) -> None:
        self._tx, self._threads = tx, threads
        if callable(codec) and not isinstance(codec, (Codec, Mapping)):
            self._find: Callable[[tuple[str, ...], Any], Codec | None] = codec
        else:
            codecs = _checked_codecs(codec)
            self._find = lambda keys, x: codecs.find(keys)
        self._min_size = checked_integer("min_size", min_size, 0, 1 << 62)
        self._seed = checked_integer("seed", seed, 0, MAX_SEED)
        self._plans: dict[Hashable, _Plan] = {}

    def init(self, params: Any) -> CompressedState:
        """The first state."""
        plan = self.plan_of(params)
        return self._compressed(self._tx.init(params), plan, jnp.zeros((), jnp.uint32))

    def update(
        self, updates: Any, state: CompressedState, params: Any = None, **extra: Any
    ) -> tuple[Any, CompressedState]:
        """The optimizer's updates, and the next state."""
        if params is None:
            raise ValueError(
                "params is None; the parameters are needed, whose shapes and types tell those of the state"
            )
        plan = self.plan_of(params)
        updates, changed = self._tx.update(updates, self.decompressed(state, plan), params, **extra)
        return updates, self._compressed(changed, plan, state.step + jnp.uint32(1))

    def plan_of(self, params: Any) -> _Plan:
        """The plan for parameters, which is made once for all that are alike."""
        found = jax.tree.map(lambda x: _ops.struct(jnp.shape(x), jnp.result_type(x)), params)
        leaves, structure = jax.tree.flatten(found)
        key = structure, tuple((x.shape, x.dtype) for x in leaves)
        if key not in self._plans:
            paths, inner, structure = flattened(jax.eval_shape(self._tx.init, found))
            specs = [self._spec_of(keys, x) for keys, x in zip(paths, inner, strict=True)]
            self._plans[key] = _Plan(structure, tuple(specs), _batches(specs))
        return self._plans[key]

    def decompressed(self, state: Any, plan: _Plan) -> Any:
        """The optimizer's own state."""
        if not isinstance(state, CompressedState):
            raise TypeError(f"state is a {type_name(state)}; a CompressedState, as init makes it, is allowed")
        leaves = _leaves(state.inner_state, plan)
        for indices, specs in _calls_of(plan):
            buffers = [_checked_buffer(leaves[i], spec) for i, spec in zip(indices, specs, strict=True)]
            made, _ = _ops.decode(buffers, [], specs, self._threads)
            _put(leaves, indices, made)
        return jax.tree.unflatten(plan.structure, leaves)

    def _compressed(self, state: Any, plan: _Plan, step: jax.Array) -> CompressedState:
        leaves = _leaves(state, plan)
        for indices, specs in _calls_of(plan):
            xs = [_checked_array(leaves[i], spec) for i, spec in zip(indices, specs, strict=True)]
            made, _ = _ops.encode(xs, specs, self._threads, self._seed_of(specs[0], step, indices[0]))
            _put(leaves, indices, made)
        return CompressedState(jax.tree.unflatten(plan.structure, leaves), step)

    def _seed_of(self, spec: Spec, step: jax.Array, index: int) -> Any:
        if not spec.codec.needs_seed:
            return None
        return derived(jnp.asarray(uint64_pair(self._seed)), step, index)

    def _spec_of(self, keys: tuple[str, ...], x: Any) -> Spec | None:
        if not jnp.issubdtype(x.dtype, jnp.floating) or x.ndim == 0 or x.size < self._min_size:
            return None
        codec = self._find(keys, x)
        check_codec_or_none(f"codec({keys!r}, x)", codec)
        if codec is None:
            return None
        _check_fixed_rate(codec)
        dtype, shape = ADAPTER.look(x)
        try:
            codec.check_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"state {'.'.join(keys)!r}: {error}") from None
        return Spec(codec, dtype, shape)


def _leaves(state: Any, plan: _Plan) -> list[Any]:
    leaves, structure = jax.tree.flatten(state)
    if structure != plan.structure:
        raise ValueError(f"state has the structure {structure}; that of init is allowed: {plan.structure}")
    return leaves


def _batches(specs: Sequence[Spec | None]) -> tuple[tuple[int, ...], ...]:
    """Places of arrays that go into one call: small ones together, as a GPU wants it, large ones and random ones alone.

    The arrays of a call are in memory at the same time, and those of one call have one seed.
    """
    batches: list[list[int]] = []
    open_batches: dict[Hashable, tuple[list[int], int]] = {}
    for index, spec in enumerate(specs):
        if spec is None:
            continue
        key = spec.codec, spec.dtype
        batch, nbytes = open_batches.get(key, ([], 0))
        if not batch or spec.codec.needs_seed or nbytes + spec.nbytes > _MAX_NBYTES:
            batch, nbytes = [], 0
            batches.append(batch)
        batch.append(index)
        open_batches[key] = batch, nbytes + spec.nbytes
    return tuple(map(tuple, batches))


def _calls_of(plan: _Plan) -> Iterator[tuple[tuple[int, ...], tuple[Spec, ...]]]:
    """The indices and specs of each call."""
    for indices in plan.batches:
        specs = [plan.specs[index] for index in indices]
        yield indices, tuple(spec for spec in specs if spec is not None)


def _put(leaves: list[Any], indices: Sequence[int], made: Sequence[jax.Array]) -> None:
    for index, x in zip(indices, made, strict=True):
        leaves[index] = x


def _checked_array(x: Any, spec: Spec) -> Any:
    if (x.shape, x.dtype) != (spec.shape, spec.dtype.numpy):
        told = f"{x.dtype}{list(x.shape)}"
        raise ValueError(f"state has an array {told}; {spec.dtype.name}{list(spec.shape)} is allowed, as init makes it")
    if not is_traced(x):
        single_device(x)
    return x


def _checked_buffer(buffer: Any, spec: Spec) -> Any:
    if (buffer.shape, buffer.dtype) != ((spec.capacity,), np.uint8):
        told = f"{buffer.dtype}{list(buffer.shape)} for {spec.dtype.name}{list(spec.shape)}"
        raise ValueError(f"state has {told}; uint8[{spec.capacity}] is allowed, of the same parameters and codecs")
    return buffer


def _checked_codecs(codec: Any) -> KeyedCodecs:
    try:
        codecs = KeyedCodecs.of(codec)
    except TypeError as error:
        raise TypeError(f"{error}, as is a function of keys and an array") from None
    for _, one in codecs.choices:
        _check_fixed_rate(one)
    return codecs


def _check_fixed_rate(codec: Codec | None) -> None:
    if codec is None:
        return
    if not codec.fixed_rate:
        raise ValueError(
            f"codec={codec!r}: compiled programs hold its longest payload, which saves nothing; one of a fixed rate is "
            "allowed, as eight_bit() has them"
        )
    check_hashable(codec)
