"""Many arrays at once: lists, dicts, pytrees and state_dicts, in few launches."""

import copy
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from .._arguments import thread_count
from .._arrays.contract import Adapter
from .._arrays.payload import admit
from .._arrays.registry import adapter_of, is_array, place_of, pytree_children
from .._format import limits
from .._format.spec import Spec
from ..codecs import Codec
from .compress import check_all_finite, checked_codec, checked_seed
from .compressed import Compressed


def compress_many(
    tree: Any,
    codec: Codec | None = None,
    *,
    otherwise: Codec | None = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> Any:
    """Compress all arrays of a structure, those of one dtype on one device in one go.

    Args:
        tree: arrays in lists, tuples, named tuples and mappings (a `state_dict` for instance), nested as they like, and
            whatever JAX has registered as a pytree. What is neither is left as it is: numbers, strings, None.
        codec: what to keep; None for `Lossless()`.
        otherwise: the codec for arrays whose dtype `codec` does not take, for instance integers in a `state_dict`; None
            for `Lossless()`.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: as of `compress`, one for all arrays: elements of the same index in different arrays get the same random
            number. Where they must be independent, compress each with a seed of its own.
        check_finite: raise if a value of an array is NaN or infinite, same as in `compress`.

    Returns:
        The structure with a `Compressed` for every array, each the same as `compress` makes of it. On a CUDA device
        arrays of one dtype take two launches (three with a bound relative to the range) for each thousand, and nothing
        waits. Their payloads share memory: `Compressed.trim` gives one its own.

    Raises:
        TypeError: `otherwise` does not take an array's dtype either; else as `compress`.
        ValueError, DeviceUnavailableError: as `compress`.

    >>> import numpy, arrcomp
    >>> weights = {"w": numpy.ones((30, 40), numpy.float32), "step": 7}
    >>> small = arrcomp.compress_many(weights, arrcomp.ErrorBounded(rel=1e-3))
    >>> small["w"].shape, small["step"]
    ((30, 40), 7)
    >>> arrcomp.decompress_many(small)["w"].sum()
    np.float32(1200.0)
    """
    codec, otherwise = checked_codec(codec), checked_codec(otherwise)
    threads = thread_count(threads)
    leaves, rebuild = _flatten(tree, is_array)
    batches: dict[Hashable, list[int]] = {}
    adopted: list[tuple[Adapter, Any]] = []
    specs: list[Spec] = []
    for i, leaf in enumerate(leaves):
        adapter, x = adapter_of(leaf)
        dtype, shape = adapter.look(x)
        spec = Spec(codec if codec.takes(dtype) else otherwise, dtype, shape)
        spec.codec.check_dtype(dtype)
        if check_finite:
            check_all_finite(adapter, x)
        adopted.append((adapter, x))
        specs.append(spec)
        batches.setdefault((adapter.name, adapter.group(x), spec.codec, dtype.id), []).append(i)
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

    Args:
        tree: what `compress_many` returned, or any structure with `Compressed` in it.
        like: an array whose framework and device the results get; None for those that were compressed.
        threads: how many to use on the CPU; None for all cores that the process may use.
        max_nbytes: bytes that each of the arrays may have, as of `decompress`.

    Returns:
        The structure with the array of every `Compressed`.

    Raises:
        As `decompress`.
    """
    threads = thread_count(threads)
    place = None if like is None else place_of(like)
    limit = limits.checked_max_nbytes(max_nbytes)
    leaves, rebuild = _flatten(tree, lambda x: isinstance(x, Compressed))
    for c in leaves:
        admit(c.spec, c.payload, limit)
    payloads = [c.payload if place is None else c.payload.moved(*place) for c in leaves]
    batches: dict[Hashable, list[int]] = {}
    for i, (c, payload) in enumerate(zip(leaves, payloads, strict=True)):
        adapter = payload.adapter
        batches.setdefault((adapter.name, adapter.group(payload.buffer), c.codec, c.spec.dtype.id), []).append(i)
    results: list[Any] = [None] * len(leaves)
    for members in batches.values():
        adapter = payloads[members[0]].adapter
        found = adapter.decompress([payloads[i] for i in members], [leaves[i].spec for i in members], None, threads)
        for i, array in zip(members, found, strict=True):
            results[i] = array
    return rebuild(results)


def _flatten(tree: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves of a structure in order, and what puts others in their places; the structure itself is not changed."""
    leaves: list[Any] = []

    def build(node: Any) -> Callable[[list[Any]], Any]:
        if is_leaf(node):
            index = len(leaves)
            leaves.append(node)
            return lambda results: results[index]
        taken = _children(node)
        if taken is None:
            return lambda results: node
        children, remake = taken
        parts = [build(child) for child in children]
        return lambda results: remake([part(results) for part in parts])

    rebuild = build(tree)
    return leaves, rebuild


def _children(node: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """The children of a container, and what makes one like it of others; None for what is none."""
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
        twin = copy.copy(node)  # of its type, with what else it carries, as a state_dict its versions
        for key, child in zip(node, children, strict=True):
            twin[key] = child  # type: ignore[index]
    except TypeError:  # it cannot be changed
        return dict(zip(node, children, strict=True))
    return twin
