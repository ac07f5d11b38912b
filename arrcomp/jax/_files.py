"""Pytrees in files of compressed arrays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np

from .._api.compressed import Compressed
from .._arguments import shown, thread_count, type_name
from .._arrays.registry import is_array
from .._files import CompressedFile, Lazy, save_file
from .._files.content import check_options, check_readable, check_suffix, is_location, located
from .._format.limits import checked_max_nbytes
from ..codecs import Codec
from ..codecs._rules import Rule
from ..errors import CorruptStreamError
from ._adapter import check_concrete, is_supported
from ._tree import flattened

_SEPARATORS = (".", "/")
_SEPARATOR = "key_separator"  # in the file's metadata, where it is not the first
_MAX_KEYS = 256  # in one name: JAX fails on trees with a thousand levels
_NUMBERS = (bool, int, float, complex)


def save(
    tree: Any,
    path: str | Path | IO[bytes],
    codec: Codec | Sequence[Rule] | None = None,
    *,
    threads: int | None = None,
    seed: Any = None,
    base: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Compress the arrays of a pytree into a .safetensors file, one after the other, by `arrcomp.save_file`.

    Arrays are compressed on their device. Arrays that are sharded over several devices are first gathered on the host,
    one at a time. An existing file is replaced when the new one is complete.

    Args:
        tree: a pytree of arrays (of any framework), numbers, which become scalar arrays, and `Compressed`, which are
            written unchanged. Nodes without leaves, such as None, are not stored.
        path: of a .safetensors file, or its URL, or a file object: same as in `arrcomp.save_file`.
        codec: same as in `arrcomp.save_file`. The names for rules are the keys of an array joined by dots, for instance
            "params.dense.0.w", or by "/" if a key contains a dot.
        threads: number of CPU threads; None for all cores that the process may use.
        seed: same as in `arrcomp.compress`; all arrays use the same one.
        base: same as in `arrcomp.save_file`: earlier values of these arrays, for a smaller file of what has changed. It
            may also be a pytree: nested dicts, lists and tuples of arrays and numbers.
        storage_options: same as in `arrcomp.save_file`.

    Raises:
        TypeError: a leaf is something else, a random key (pass `jax.random.key_data(key)`), traced, sharded over
            processes, or of an unsupported dtype, or a batch, such as the layers of `compress_weights`; or same as in
            `arrcomp.save_file`.
        ValueError: some keys contain a dot and some a "/"; the suffix is unknown; or same as in `arrcomp.save_file`.
        OSError: the file cannot be written.
        ImportError: safetensors is not installed.

    >>> import os, tempfile, jax, arrcomp.jax
    >>> path = os.path.join(tempfile.mkdtemp(), "small.safetensors")
    >>> tree = {"params": [jax.numpy.ones((300, 400)), jax.numpy.zeros(3)], "step": 7}
    >>> arrcomp.jax.save(tree, path, arrcomp.model_rules(arrcomp.ErrorBounded(abs=1e-4)))
    >>> arrcomp.jax.load(path, like=tree)["step"]
    7
    """
    check_options(storage_options, path, base)
    location = located(path, storage_options, writing=True)
    check_suffix(location, (".safetensors",))
    paths, leaves, _ = flattened(tree)
    separator = _separator(paths)
    names = [separator.join(keys) for keys in paths]
    named = dict(zip(names, leaves, strict=True))
    if len(named) < len(names):
        raise ValueError(f"tree: expected unique names of leaves, got {max(names, key=names.count)!r} twice")
    for name, leaf in named.items():
        _check_leaf(name, leaf)
    metadata = None if separator == _SEPARATORS[0] else {_SEPARATOR: separator}
    contents = Lazy(named, lambda name: _on_one_device(named[name]))
    options = {"threads": threads, "seed": seed, "base": _base(base, separator), "storage_options": storage_options}
    save_file(contents, path, codec, metadata=metadata, **options)


def load(
    path: str | Path | IO[bytes],
    like: Any = None,
    *,
    threads: int | None = None,
    max_nbytes: int | None = None,
    base: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Decompress a pytree that `save` wrote.

    Args:
        path: of the file, which `arrcomp.save_file` may have written, too; or its URL, or a file object.
        like: a pytree of the wanted structure, whose leaves say what to return: a JAX array or a
            `jax.ShapeDtypeStruct` for an array with that sharding; a NumPy array; a number; a `Compressed`. Other
            arrays of the file are not read. None for nested dicts of all arrays, with strings as keys.
        threads: number of CPU threads; None for all cores that the process may use.
        max_nbytes: the most bytes that each array may have, same as in `arrcomp.from_bytes`.
        base: what arrays of `save(..., base=)` were coded against: a pytree, or same as in `arrcomp.open_file`.
        storage_options: same as in `arrcomp.open_file`.

    Returns:
        The pytree. Without `like`, it contains JAX arrays on the default device, to which they are copied compressed,
        and NumPy arrays for dtypes that JAX does not have (64 bits without jax_enable_x64).

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: the file is damaged, or a newer arrcomp wrote it.
        SizeLimitError: an array is larger than `max_nbytes`.
        WrongReferenceError: the base is another one than that which was used.
        KeyError: the file does not contain an array of `like`.
        TypeError: an array has another dtype than in `like`; or a leaf of `like` is none of the above.
        ValueError: an array has another shape than in `like`; the suffix is unknown; or without `like`, the name of an
            array is also that of a dict, or has more than 256 keys.
        OSError: the file, or a base, cannot be read.
        ImportError: safetensors is not installed.
    """
    thread_count(threads)
    check_options(storage_options, path, base)
    location = located(path, storage_options)
    check_readable(location, (".safetensors",))
    with CompressedFile(location, None) as file:
        separator = file.metadata.get(_SEPARATOR, _SEPARATORS[0])
    if separator not in _SEPARATORS:
        raise CorruptStreamError(
            f"{location}: expected {_SEPARATOR} '.' or '/' in the metadata, got {shown(separator)}"
        )
    limit = checked_max_nbytes(max_nbytes)
    with CompressedFile(location, limit, _base(base, separator), storage_options) as file:
        if like is None:
            file.check_base(file)
            return _nested(file, separator, threads)
        paths, leaves, structure = flattened(like)
        named = [(separator.join(keys), leaf) for keys, leaf in zip(paths, leaves, strict=True)]
        for name, leaf in named:
            _check_matches(file, name, leaf)
        file.check_base(name for name, _ in named)
        return jax.tree_util.tree_unflatten(structure, [_loaded(file, name, leaf, threads) for name, leaf in named])


def _separator(paths: Sequence[tuple[str, ...]]) -> str:
    for separator in _SEPARATORS:
        if not any(separator in key for path in paths for key in path):
            return separator
    examples = [next(key for path in paths for key in path if separator in key) for separator in _SEPARATORS]
    raise ValueError(
        f"tree: expected keys with dots or with '/', got both: {shown(examples[0])} and {shown(examples[1])}"
    )


def _base(base: Any, separator: str) -> Any:
    """The argument `base` for `save_file` and `open_file`: a pytree becomes a mapping."""
    if base is None or is_location(base) or isinstance(base, CompressedFile):
        return base
    paths, leaves, _ = flattened(base)
    named = dict(zip((separator.join(keys) for keys in paths), leaves, strict=True))
    for name, leaf in named.items():
        if not isinstance(leaf, _NUMBERS) and not is_array(leaf):
            raise TypeError(f"base: expected an array or a number in leaf {shown(name)}, got {type_name(leaf)}")
    return Lazy(named, lambda name: _on_one_device(named[name]))


def _check_leaf(name: str, leaf: Any) -> None:
    """Raise TypeError unless a leaf can be saved. Its dtype is checked later."""
    if isinstance(leaf, jax.Array):
        check_concrete(leaf, f"tree: leaf {shown(name)} is traced")
        if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended):
            raise TypeError(
                f"tree: expected numbers in leaf {shown(name)}, got a random key; use jax.random.key_data(key)"
            )
        if not leaf.is_fully_addressable:
            raise TypeError(
                f"tree: expected leaf {shown(name)} on this process's devices, got one sharded over processes"
            )
    elif isinstance(leaf, Compressed):
        if np.ndim(leaf.payload.buffer) > 1:
            raise TypeError(
                f"tree: expected a single Compressed in leaf {shown(name)}, got a batch; save arrays, such as those of "
                "decompress_weights"
            )
    elif not isinstance(leaf, _NUMBERS) and not is_array(leaf):
        raise TypeError(f"tree: expected an array or a number in leaf {shown(name)}, got {type_name(leaf)}")


def _on_one_device(leaf: Any) -> Any:
    """A leaf for `save_file`: sharded arrays and numbers become NumPy arrays."""
    sharded = isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1
    return np.asarray(leaf) if sharded or isinstance(leaf, _NUMBERS) else leaf


def _nested(file: CompressedFile, separator: str, threads: int | None) -> Any:
    """All arrays in nested dicts; a single array with an empty name alone."""
    if file.names == [""]:
        return _array(file, "", None, threads)
    tree: dict[str, Any] = {}
    for name in file:
        node: Any = tree
        *outer, last = name.split(separator)
        if len(outer) >= _MAX_KEYS:
            raise ValueError(
                f"{file.location}: expected at most {_MAX_KEYS} keys, got more in {name[:50]!r}...; pass like"
            )
        for key in outer:
            node = node.setdefault(key, {}) if isinstance(node, dict) else None
        if not isinstance(node, dict) or last in node:
            raise ValueError(
                f"{file.location}: expected either a dict or an array at {shown(name)}, got both; pass like"
            )
        node[last] = _array(file, name, None, threads)
    return tree


def _check_matches(file: CompressedFile, name: str, leaf: Any) -> None:
    if name not in file:
        raise KeyError(f"like: expected names of arrays in {file.location}, got {shown(name)}")
    dtype, shape = file.info(name)
    if isinstance(leaf, _NUMBERS):
        leaf = np.asarray(leaf)
        same = leaf.dtype.kind == dtype.kind.replace("u", "i")
    elif hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        same = leaf.dtype == dtype
    else:
        raise TypeError(f"like: expected an array or a number in leaf {shown(name)}, got {type_name(leaf)}")
    if not same:
        raise TypeError(f"like: expected dtype {dtype} for {shown(name)} of {file.location}, got {leaf.dtype}")
    if shape != tuple(leaf.shape):
        raise ValueError(f"like: expected shape {shape} for {shown(name)} of {file.location}, got {tuple(leaf.shape)}")


def _loaded(file: CompressedFile, name: str, leaf: Any, threads: int | None) -> Any:
    """An array in the form of a leaf of `like`."""
    if isinstance(leaf, Compressed):
        return file.compressed(name)
    if isinstance(leaf, _NUMBERS):
        return type(leaf)(file.load(name, like="numpy").item())
    if isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return _array(file, name, leaf.sharding or jax.device_put(0).sharding, threads)
    return file.load(name, like=leaf, threads=threads)


def _array(file: CompressedFile, name: str, sharding: Any, threads: int | None) -> Any:
    """A JAX array; with sharding None a NumPy array if JAX does not have its dtype."""
    if sharding is None:
        like = "jax" if is_supported(file.info(name).dtype) else "numpy"
        return file.load(name, like=like, threads=threads)
    devices = sharding.device_set
    if len(devices) > 1:
        return jax.device_put(file.load(name, like="numpy", threads=threads), sharding)
    (device,) = devices
    return jax.device_put(file.load(name, like="jax", device=device, threads=threads), sharding)
