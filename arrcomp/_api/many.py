"""Compress and decompress many arrays at once: lists, dicts, pytrees and state_dicts, in few kernel launches."""

import copy
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from .._arguments import thread_count
from .._arrays.checks import admit
from .._arrays.contract import Adapter
from .._arrays.registry import adapter_of, is_array, locate, pytree_children
from .._format import limits
from .._format.spec import Spec
from ..codecs import Codec
from .compress import check_values, checked_codec, checked_seed
from .compressed import Compressed

Rebuild = Callable[[list[Any]], Any]
Batches = dict[Hashable, list[int]]  # what arrays of one call share: which arrays


def compress_many(
    tree: Any,
    codec: Codec | None = None,
    *,
    otherwise: Codec | None = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> Any:
    """Compress all arrays of a structure. Arrays of one dtype on one device are compressed together.

    Arguments and errors are those of `arrcomp.compress` for every array, except:

    Args:
        tree: arrays in nested lists, tuples, named tuples and mappings (a `state_dict` for instance), and in pytrees
            that are registered with JAX. Other leaves (numbers, strings, None) are kept.
        codec: the codec; None for `Lossless()`.
        otherwise: the codec for arrays whose dtype `codec` does not take, for instance integers in a `state_dict`; None
            for `Lossless()`. TypeError if it does not take one either.
        threads: same as in `compress`.
        seed: one for all arrays: elements of the same index in different arrays get the same random number. For
            independent random numbers, compress each array with its own seed.
        check_finite: same as in `compress`.

    Returns:
        The structure with a `Compressed` for every array, the same as from `compress`. On CUDA the call is
        asynchronous. A thousand arrays of one dtype take two kernel launches (three with a bound relative to the
        range). Their payloads share memory: `Compressed.trim` copies one to memory of its own.

    >>> import numpy, arrcomp
    >>> weights = {"w": numpy.ones((30, 40), numpy.float32), "step": 7}
    >>> small = arrcomp.compress_many(weights, arrcomp.ErrorBounded(rel=1e-3))
    >>> small["w"].shape, small["step"]
    ((30, 40), 7)
    >>> arrcomp.decompress_many(small)["w"].sum()
    np.float32(1200.0)
    """
    codec, otherwise = checked_codec(codec), checked_codec(otherwise, "otherwise")
    threads = thread_count(threads)
    leaves, rebuild = _flatten(tree, is_array)
    batches: Batches = {}
    adopted: list[tuple[Adapter, Any]] = []
    specs: list[Spec] = []
    for i, leaf in enumerate(leaves):
        adapter, x = adapter_of(leaf)
        dtype, shape = adapter.dtype_and_shape(x)
        spec = Spec(codec if codec.takes(dtype) else otherwise, dtype, shape)
        spec.codec.check_dtype(dtype)
        if check_finite:
            check_values(adapter, x, f"array {i} of the tree")
        adopted.append((adapter, x))
        specs.append(spec)
        batches.setdefault((adapter.name, adapter.batch_key(x), spec.codec, dtype.id), []).append(i)
    seeds = [checked_seed(specs[members[0]].codec, seed) for members in batches.values()]
    results: list[Any] = [None] * len(leaves)
    for members, own_seed in zip(batches.values(), seeds, strict=True):
        adapter = adopted[members[0]][0]
        xs, own_specs = [adopted[i][1] for i in members], [specs[i] for i in members]
        payloads = adapter.compress(xs, own_specs, None, threads, own_seed)
        for i, payload in zip(members, payloads, strict=True):
            results[i] = Compressed(specs[i], payload)
    return rebuild(results)


def decompress_many(tree: Any, *, like: Any = None, threads: int | None = None, max_nbytes: int | None = None) -> Any:
    """Decompress all compressed arrays of a structure.

    `tree` is the result of `compress_many`, or any structure with `Compressed` in it. The other arguments and the
    errors are those of `arrcomp.decompress` for every array.

    Returns:
        The structure with an array in place of every `Compressed`.
    """
    threads = thread_count(threads)
    target = None if like is None else locate(like)
    limit = limits.checked_max_nbytes(max_nbytes)
    leaves, rebuild = _flatten(tree, lambda x: isinstance(x, Compressed))
    for c in leaves:
        admit(c.spec, c.payload, limit)
    payloads = [c.payload if target is None else c.payload.to(*target) for c in leaves]
    batches: Batches = {}
    for i, (c, payload) in enumerate(zip(leaves, payloads, strict=True)):
        adapter = payload.adapter
        batches.setdefault((adapter.name, adapter.batch_key(payload.buffer), c.codec, c.spec.dtype.id), []).append(i)
    results: list[Any] = [None] * len(leaves)
    for members in batches.values():
        adapter = payloads[members[0]].adapter
        found = adapter.decompress([payloads[i] for i in members], [leaves[i].spec for i in members], None, threads)
        for i, array in zip(members, found, strict=True):
            results[i] = array
    return rebuild(results)


def _flatten(tree: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], Rebuild]:
    """The leaves of a structure in order, and a function that builds the structure with others in their place."""
    leaves: list[Any] = []

    def build(node: Any) -> Rebuild:
        if is_leaf(node):
            index = len(leaves)
            leaves.append(node)
            return lambda results: results[index]
        taken = _children(node)
        if taken is None:
            return lambda results: node
        children, remake = taken
        builders = [build(child) for child in children]
        return lambda results: remake([builder(results) for builder in builders])

    rebuild = build(tree)
    return leaves, rebuild


def _children(node: Any) -> tuple[list[Any], Rebuild] | None:
    """The children of a container, and a function that makes such a container of others; None for a leaf."""
    if isinstance(node, Mapping):
        return list(node.values()), lambda children: _like_mapping(node, children)
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return list(node), lambda children: type(node)(*children)
    if type(node) in (list, tuple):
        return list(node), type(node)
    if node is None or isinstance(node, (int, float, complex, str, bytes)):
        return None
    return pytree_children(node)


def _like_mapping(node: Mapping[Any, Any], children: list[Any]) -> Any:
    if type(node) is dict:
        return dict(zip(node, children, strict=True))
    try:
        twin = copy.copy(node)  # of the same type, with its attributes, such as the versions of a state_dict
        for key, child in zip(node, children, strict=True):
            twin[key] = child  # type: ignore[index]
    except TypeError:  # it is immutable
        return dict(zip(node, children, strict=True))
    return twin
