"""Pytrees in files of compressed arrays."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._api.compressed import Compressed
from .._arguments import thread_count, type_name
from .._arrays.registry import is_array
from .._files import CompressedFile, Lazy, open_file, save_file
from .._files.content import check_suffix
from ..codecs import Codec
from ..codecs._rules import Rule
from ..errors import CorruptStreamError
from ._adapter import check_concrete, is_supported
from ._tree import flattened

_SEPARATORS = (".", "/")
_SEPARATOR = "key_separator"  # in the file's metadata, where it is not the first
_MAX_KEYS = 256  # of a name that is taken apart: JAX itself fails on trees of a thousand levels
_NUMBERS = (bool, int, float, complex)


def save(
    tree: Any,
    path: str | Path,
    codec: Codec | Sequence[Rule] | None = None,
    *,
    threads: int | None = None,
    seed: Any = None,
) -> None:
    """Compress the arrays of a pytree into a .safetensors file, one after the other, by `arrcomp.save_file`.

    Arrays on one device are compressed there; those that are spread over several are gathered on the host first, one at
    a time. The file takes the place of one that is there when it is complete.

    Args:
        tree: a pytree of arrays (JAX's, NumPy's, of other frameworks), numbers, which become arrays without dimensions,
            and `Compressed`, which are written as they are. Nodes without leaves, as None, leave no trace.
        path: of a .safetensors file.
        codec: as of `arrcomp.save_file`. Names, for rules, are the keys of an array joined by dots, as
            "params.dense.0.w", or by "/" if a key has a dot in it.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: as of `arrcomp.compress`, one for all arrays.

    Raises:
        TypeError: a leaf is something else, a random key (`jax.random.key_data(key)` is allowed), traced, or spread
            over processes; or of no dtype of the format; or as `arrcomp.save_file`.
        ValueError: there are keys with a dot and keys with a "/"; the suffix is another one; or as `arrcomp.save_file`.
        OSError: the file cannot be written.
        ImportError: safetensors is not installed.

    >>> import os, tempfile, jax, arrcomp.jax
    >>> path = os.path.join(tempfile.mkdtemp(), "small.safetensors")
    >>> tree = {"params": [jax.numpy.ones((300, 400)), jax.numpy.zeros(3)], "step": 7}
    >>> arrcomp.jax.save(tree, path, arrcomp.model_rules(arrcomp.ErrorBounded(abs=1e-4)))
    >>> arrcomp.jax.load(path, like=tree)["step"]
    7
    """
    check_suffix(Path(path), (".safetensors",))
    paths, leaves, _ = flattened(tree)
    separator = _separator(paths)
    names = [separator.join(keys) for keys in paths]
    named = dict(zip(names, leaves, strict=True))
    if len(named) < len(names):
        raise ValueError(f"tree: two leaves are called {max(names, key=names.count)!r}; names of their own are allowed")
    for name, leaf in named.items():
        _check_leaf(name, leaf)
    metadata = None if separator == _SEPARATORS[0] else {_SEPARATOR: separator}
    contents = Lazy(named, lambda name: _on_one_device(named[name]))
    save_file(contents, path, codec, metadata=metadata, threads=threads, seed=seed)


def load(path: str | Path, like: Any = None, *, threads: int | None = None, max_size: int | None = None) -> Any:
    """Decompress a pytree that `save` wrote.

    Args:
        path: of the file; one that `arrcomp.save_file` wrote will do.
        like: a pytree of the structure that is wanted, of which every leaf says what it is to be: one of JAX's arrays
            or a `jax.ShapeDtypeStruct`, for an array with that sharding; a NumPy array; a number; a `Compressed`. What
            the file has besides is not read. None for nested dicts of all arrays, with texts as keys.
        threads: how many to use on the CPU; None for all cores that the process may use.
        max_size: bytes that each of the arrays may have, as of `arrcomp.from_bytes`.

    Returns:
        The pytree. Without `like`, arrays are JAX's on its default device, where they travel compressed, and NumPy's
        where JAX has no such dtype (64 bits without jax_enable_x64).

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: the file is damaged, or a newer arrcomp wrote it.
        SizeLimitError: an array is larger than `max_size`.
        KeyError: the file does not have an array of `like`.
        TypeError: it is of another dtype; or a leaf of `like` is none of the above.
        ValueError: it is of another shape; or the suffix is another one; or without `like` there is an array in the
            place of a dict, or a name of over 256 keys.
        OSError: the file cannot be read.
        ImportError: safetensors is not installed.
    """
    thread_count(threads)
    check_suffix(Path(path), (".safetensors",))
    with open_file(path, max_size=max_size) as file:
        separator = file.metadata.get(_SEPARATOR, _SEPARATORS[0])
        if separator not in _SEPARATORS:
            raise CorruptStreamError(f"{path}: metadata's {_SEPARATOR} is {separator!r}")
        if like is None:
            return _nested(file, separator, threads)
        paths, leaves, structure = flattened(like)
        named = [(separator.join(keys), leaf) for keys, leaf in zip(paths, leaves, strict=True)]
        for name, leaf in named:
            _check_matches(file, name, leaf)
        return jax.tree_util.tree_unflatten(structure, [_loaded(file, name, leaf, threads) for name, leaf in named])


def _separator(paths: Sequence[tuple[str, ...]]) -> str:
    for separator in _SEPARATORS:
        if not any(separator in key for path in paths for key in path):
            return separator
    examples = [next(key for path in paths for key in path if separator in key) for separator in _SEPARATORS]
    raise ValueError(f"tree has the keys {examples[0]!r} and {examples[1]!r}; either dots or '/' in keys are allowed")


def _check_leaf(name: str, leaf: Any) -> None:
    """Raise TypeError unless a leaf can be saved; its dtype is looked at later."""
    if isinstance(leaf, jax.Array):
        check_concrete(leaf, f"tree: leaf {name!r} is traced")
        if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended):
            raise TypeError(f"tree: leaf {name!r} is a random key, not numbers; jax.random.key_data(key) is allowed")
        if not leaf.is_fully_addressable:
            raise TypeError(f"tree: leaf {name!r} is spread over processes; an array that this one has is allowed")
    elif not isinstance(leaf, (*_NUMBERS, Compressed)) and not is_array(leaf):
        raise TypeError(f"tree: leaf {name!r} is a {type_name(leaf)}; an array or a number is allowed")


def _on_one_device(leaf: Any) -> Any:
    """A leaf as `save_file` takes it."""
    spread = isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1
    return np.asarray(leaf) if spread or isinstance(leaf, _NUMBERS) else leaf


def _nested(file: CompressedFile, separator: str, threads: int | None) -> Any:
    """All arrays in dicts of dicts; the array alone where its name is empty."""
    if file.names == [""]:
        return _array(file, "", None, threads)
    tree: dict[str, Any] = {}
    for name in file:
        node: Any = tree
        *outer, last = name.split(separator)
        if len(outer) >= _MAX_KEYS:
            raise ValueError(f"{file.path}: array {name[:50]!r}... has over {_MAX_KEYS} keys; like= is allowed")
        for key in outer:
            node = node.setdefault(key, {}) if isinstance(node, dict) else None
        if not isinstance(node, dict) or last in node:
            raise ValueError(f"{file.path}: array {name!r} is in the place of another one; like= is allowed")
        node[last] = _array(file, name, None, threads)
    return tree


def _check_matches(file: CompressedFile, name: str, leaf: Any) -> None:
    if name not in file:
        raise KeyError(f"like: {name!r} is not in {file.path}")
    dtype, shape = file.look(name)
    if isinstance(leaf, _NUMBERS):
        leaf = np.asarray(leaf)
        same = leaf.dtype.kind == dtype.kind.replace("u", "i")
    elif hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        same = leaf.dtype == dtype
    else:
        raise TypeError(f"like: leaf {name!r} is a {type_name(leaf)}; an array or a number is allowed")
    if not same:
        raise TypeError(f"{file.path}: array {name!r} is of dtype {dtype}; like has {leaf.dtype}")
    if shape != tuple(leaf.shape):
        raise ValueError(f"{file.path}: array {name!r} is of shape {shape}; like has {tuple(leaf.shape)}")


def _loaded(file: CompressedFile, name: str, leaf: Any, threads: int | None) -> Any:
    """An array as a leaf of `like` wants it."""
    if isinstance(leaf, Compressed):
        return file.compressed(name)
    if isinstance(leaf, _NUMBERS):
        return type(leaf)(file[name].item())
    if isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return _array(file, name, leaf.sharding or jax.device_put(0).sharding, threads)
    return file.load(name, like=leaf, threads=threads)


def _array(file: CompressedFile, name: str, sharding: Any, threads: int | None) -> Any:
    """One of JAX's arrays; where no sharding is wanted, NumPy's if JAX has no such dtype."""
    if sharding is None:
        like = "jax" if is_supported(file.look(name)[0]) else "numpy"
        return file.load(name, like=like, threads=threads)
    devices = sharding.device_set
    if len(devices) > 1:
        return jax.device_put(file.load(name, threads=threads), sharding)
    (device,) = devices
    return jax.device_put(file.load(name, like="jax", device=device, threads=threads), sharding)
