"""Compress and decompress many arrays at once: lists, dicts, pytrees and state_dicts, in few kernel launches."""

import copy
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from .._arguments import shown, thread_count, type_name
from .._arrays.contract import Adapter
from .._arrays.registry import adapter_of, is_array, locate_new, pytree_children
from .._format import limits
from .._format.spec import Spec
from ..codecs import Codec
from .compress import check_values, checked_codec, checked_seed
from .compressed import Compressed, admit_with, payload_beside
from .references import adopted, checked_reference, codec_for_reference

Rebuild = Callable[[list[Any]], Any]
Path = tuple[Any, ...]  # the keys and indices that lead to a node
Batches = dict[Hashable, list[int]]  # what arrays of one call share: which arrays

_PLAIN = (int, float, complex, str, bytes, Compressed)


def compress_many(
    tree: Any,
    codec: Codec | None = None,
    *,
    otherwise: Codec | None = None,
    reference: Any = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> Any:
    """Compress all arrays of a structure. Arrays of one dtype on one device are compressed together.

    Arguments and errors are those of `arrcomp.compress` for every array, except:

    Args:
        tree: arrays in nested lists, tuples, named tuples and mappings (a `state_dict` for instance), and in pytrees
            that are registered with JAX. Everything that `arrcomp.compress` takes is compressed. Plain values are kept
            as they are: Python's numbers, strings, bytes and None, as in an optimizer's `state_dict`, and `Compressed`.
        codec: the codec; None for `Lossless()`.
        otherwise: the codec for arrays whose dtype `codec` does not take, for instance integers in a `state_dict`; None
            for `Lossless()`. TypeError if it does not take one either.
        reference: a structure like `tree`, with a reference (see `compress`) at the place of every array. What else is
            in it does not matter.
        threads: same as in `compress`.
        seed: one for all arrays: elements of the same index in different arrays get the same random number. For
            independent random numbers, compress each array with its own seed.
        check_finite: same as in `compress`.

    Raises:
        TypeError: a leaf is neither an array nor a plain value, or same as in `compress`. The error has its keys.
        ValueError: same as in `compress`, or `reference` has no array where `tree` has one.

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
    leaves, paths, rebuild = _flatten(tree, is_array, _check_plain)
    references = _References(reference)
    batches: Batches = {}
    adopted: list[tuple[Adapter, Any]] = []
    specs: list[Spec] = []
    codecs: dict[bool, Codec] = {}  # by whether `codec` takes the dtype
    for i, leaf in enumerate(leaves):
        try:
            adapter, x = adapter_of(leaf)
            dtype, shape = adapter.dtype_and_shape(x)
            is_taken = codec.takes(dtype)
            if is_taken not in codecs:
                codecs[is_taken] = codec_for_reference(codec if is_taken else otherwise, reference)
            spec = Spec(codecs[is_taken], dtype, shape)
            spec.codec.check_dtype(dtype)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{_named(paths[i])}: {error}") from None
        references.add(paths[i], adapter, spec, x)
        if check_finite:
            check_values(adapter, x, _named(paths[i]))
        adopted.append((adapter, x))
        specs.append(spec)
        batches.setdefault((adapter.name, adapter.batch_key(x), spec.codec, dtype.id), []).append(i)
    seeds = [checked_seed(specs[members[0]].codec, seed) for members in batches.values()]
    results: list[Any] = [None] * len(leaves)
    for members, own_seed in zip(batches.values(), seeds, strict=True):
        adapter = adopted[members[0]][0]
        xs, own_specs = [adopted[i][1] for i in members], [specs[i] for i in members]
        payloads = adapter.compress(xs, own_specs, None, threads, own_seed, references.of(members))
        for i, payload in zip(members, payloads, strict=True):
            results[i] = Compressed(specs[i], payload)
    return rebuild(results)


def decompress_many(
    tree: Any, *, reference: Any = None, like: Any = None, threads: int | None = None, max_nbytes: int | None = None
) -> Any:
    """Decompress all compressed arrays of a structure.

    `tree` is the result of `compress_many`, or any structure with `Compressed` in it. `reference` is a structure that
    has, at the place of every one that needs it, the array that it was compressed against. The other arguments and the
    errors are those of `arrcomp.decompress` for every array.

    Returns:
        The structure with an array in place of every `Compressed`.
    """
    threads = thread_count(threads)
    target = None if like is None else locate_new(like, None)
    limit = limits.checked_max_nbytes(max_nbytes)
    leaves, paths, rebuild = _flatten(tree, lambda x: isinstance(x, Compressed))
    references = _References(reference)
    payloads = []
    for c, path in zip(leaves, paths, strict=True):
        base = references.find(path) if c.needs_reference else None
        admit_with(c, limit, base)
        payloads.append(payload_beside(c, base) if target is None else c.payload.to(*target))
    batches: Batches = {}
    for i, (c, payload) in enumerate(zip(leaves, payloads, strict=True)):
        adapter = payload.adapter
        references.add(paths[i], adapter, c.spec, payload.buffer)
        batches.setdefault((adapter.name, adapter.batch_key(payload.buffer), c.codec, c.spec.dtype.id), []).append(i)
    results: list[Any] = [None] * len(leaves)
    for members in batches.values():
        adapter = payloads[members[0]].adapter
        own, specs = [payloads[i] for i in members], [leaves[i].spec for i in members]
        found = adapter.decompress(own, specs, None, threads, references.of(members))
        for i, array in zip(members, found, strict=True):
            results[i] = array
    return rebuild(results)


class _References:
    """The arrays of a structure by their places, and those that belong to the leaves of another one, in order."""

    def __init__(self, tree: Any) -> None:
        leaves, paths = ([], []) if tree is None else _flatten(tree, is_array)[:2]
        self._arrays = dict(zip(paths, leaves, strict=True))
        self._of_leaves: list[Any] = []

    def find(self, path: Path) -> Any:
        """The array at a place; raises ValueError where there is none."""
        if path not in self._arrays:
            raise ValueError(
                f"{_named(path)}: reference: expected an array at its place in a structure alike, got none"
            )
        return self._arrays[path]

    def add(self, path: Path, adapter: Adapter, spec: Spec, like: Any) -> None:
        """Check the array of the next leaf, where its codec needs one; `like` is where the leaf is."""
        if not spec.codec.needs_reference:
            self._of_leaves.append(None)
            return
        name = f"reference of {_named(path)}"
        self._of_leaves.append(checked_reference(adapter, adopted(adapter, self.find(path), name), spec, like, name))

    def of(self, members: list[int]) -> list[Any] | None:
        """The arrays of some leaves, of one codec; None where it needs none."""
        found = [self._of_leaves[i] for i in members]
        return None if found[0] is None else found


def _flatten(
    tree: Any, is_leaf: Callable[[Any], bool], check_other: Callable[[Any, Path], None] | None = None
) -> tuple[list[Any], list[Path], Rebuild]:
    """The leaves of a structure in order, their paths, and a function that builds it with others in their place.

    What is neither a leaf nor a container is kept, if `check_other` does not raise.
    """
    leaves: list[Any] = []
    paths: list[Path] = []

    def build(node: Any, path: Path) -> Rebuild:
        if is_leaf(node):
            index = len(leaves)
            leaves.append(node)
            paths.append(path)
            return lambda results: results[index]
        taken = _children(node)
        if taken is None:
            if check_other is not None:
                check_other(node, path)
            return lambda results: node
        children, remake = taken
        keys = node if isinstance(node, Mapping) else range(len(children))
        builders = [build(child, (*path, key)) for key, child in zip(keys, children, strict=True)]
        return lambda results: remake([builder(results) for builder in builders])

    rebuild = build(tree, ())
    return leaves, paths, rebuild


def _check_plain(node: Any, path: Path) -> None:
    """Raise TypeError unless a node without arrays is a plain value, which stays in a structure as it is."""
    if node is not None and not isinstance(node, _PLAIN):
        expected = "an array, a number, a string, None, or a container of these"
        got = f"{type_name(node)}; take it out, or make it an array"
        raise TypeError(f"{_named(path)}: expected {expected}, got {got}")


def _named(path: Path) -> str:
    """The expression that finds a node in the tree."""
    return "tree" + "".join(f"[{shown(key)}]" for key in path)


def _children(node: Any) -> tuple[list[Any], Rebuild] | None:
    """The children of a container, and a function that makes such a container of others; None for a leaf."""
    if isinstance(node, Mapping):
        return list(node.values()), lambda children: _like_mapping(node, children)
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return list(node), lambda children: type(node)(*children)
    if type(node) in (list, tuple):
        return list(node), type(node)
    if node is None or isinstance(node, _PLAIN):
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
