"""Arrays by name, as models have them, compressed into a file and back, one after the other."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._api.compress import checked_seed, compress_with
from .._api.compressed import Compressed
from .._arguments import thread_count, type_name
from .._arrays.registry import adapter_of, place_wanted
from .._format import stream
from .._format.frame import checked_level
from .._format.limits import checked_max_nbytes
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules, codec_for
from . import container
from .content import COMPRESSED_SUFFIXES, check_suffix, is_stray, naming
from .opened import CompressedFile
from .progress import progress as progress_bar
from .replacing import replacing

_RESERVED = "__metadata__"  # by the safetensors format


def save_file(
    tensors: Mapping[str, Any],
    path: str | Path,
    codec: Codec | Sequence[Rule] | None = None,
    *,
    metadata: Mapping[str, str] | None = None,
    zstd_level: int | None = None,
    threads: int | None = None,
    seed: Any = None,
    progress: bool = False,
) -> None:
    """Compress arrays into a file, one after the other.

    Each is asked for once, in order, and dropped before the next: with a mapping that makes them when they are asked
    for, a model need not fit into memory. The file is a .safetensors file of uint8 tensors, each a complete stream; it
    takes the place of one that is there when it is complete.

    Args:
        tensors: by name, arrays of any framework on any device, or `Compressed`, which are not coded again: a
            `state_dict`, or any mapping.
        path: of a .safetensors file, or of a .arrcomp file for a single array (which has no name there).
        codec: a codec; or rules, of which the first decides that is for an array and takes its dtype, as `model_rules`
            gives them; None for none. What none of them is for is kept losslessly.
        metadata: texts by name, to be kept with the arrays (not in a .arrcomp file).
        zstd_level: as of `Compressed.to_bytes`, for each payload; None for no new frames: a `Compressed` that came in
            one, as from a file, stays in it.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: as of `compress`, one for all arrays.
        progress: whether to show a progress bar, where standard error is a terminal or a notebook.

    Raises:
        TypeError: an argument is of a wrong type; something is not an array, or of no dtype of the format; a codec
            needs a seed.
        ValueError: the suffix is another one; there are several arrays for a .arrcomp file; a name is no text in UTF-8,
            "__metadata__", or a path that leads out of its folder; `zstd_level` or `threads` is out of its range.
        OSError: the file cannot be written.
        ImportError: `progress` needs rich, or `zstd_level` zstandard.

    >>> import numpy, os, tempfile, arrcomp
    >>> weights = {"w": numpy.ones((300, 400), numpy.float32), "step": numpy.array(7)}
    >>> path = os.path.join(tempfile.mkdtemp(), "small.safetensors")
    >>> arrcomp.save_file(weights, path, arrcomp.model_rules(arrcomp.ErrorBounded(abs=1e-4)))
    >>> int(arrcomp.load_file(path)["step"]), os.path.getsize(path) < 2000
    (7, True)
    """
    path, rules, count, level = Path(path), checked_rules(codec), thread_count(threads), checked_level(zstd_level)
    suffix = check_suffix(path, COMPRESSED_SUFFIXES)
    names, described = _checked_names(tensors), _described(metadata)
    for rule in rules:
        checked_seed(rule.codec, seed)
    if suffix == ".arrcomp":
        _check_single(path, names, metadata)

    def compressed(name: str) -> Compressed:
        item = tensors[name]
        with naming(None, name):
            return _compressed(name, item, rules, count, seed)

    with progress_bar("compressing", len(names), progress) as done:
        if suffix == ".arrcomp":
            _write_stream(path, _parts(names[0], compressed(names[0]), level, threads))
            return
        with container.writing(path, container.entries_of_bytes(names), described) as writer:
            for name in names:
                done(_write_tensor(writer, name, compressed(name), level, threads))


def load_file(
    path: str | Path,
    *,
    like: Any = None,
    device: Any = None,
    names: Iterable[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
    max_nbytes: int | None = None,
) -> dict[str, Any]:
    """Decompress a file of compressed arrays into memory, or onto a device.

    Args:
        path: of a .safetensors or .arrcomp file, as of `open_file`.
        like: an array whose framework and device the results get; or the name of a framework, "numpy", "torch", "jax"
            or "cupy", for where that puts new arrays; None for NumPy, or on CUDA for whichever is installed.
        device: "cpu", "cuda", "cuda:1", a `torch.device`, a `jax.Device`, or an array; None for the one of `like`. The
            arrays travel there compressed.
        names: of the arrays to load; None for all.
        threads: how many to use on the CPU; None for all cores that the process may use.
        progress: whether to show a progress bar, where standard error is a terminal or a notebook.
        max_nbytes: bytes that each of the arrays may have, as of `open_file`.

    Returns:
        The arrays by name, in the order of `names` or of the file. Besides them, one stream at a time takes memory.

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: the file is damaged, or a newer arrcomp wrote it.
        SizeLimitError: an array is larger than `max_nbytes`.
        KeyError: there is no array of one of the `names`.
        TypeError, ValueError: an argument is of a wrong type or value, or the framework has no such dtype.
        OSError: the file cannot be read.
        ImportError: the framework, safetensors, zstandard for arrays in a frame, or rich for `progress`, is not
            installed.
        DeviceUnavailableError: the device is not there.
    """
    place, count, limit = place_wanted(like, device), thread_count(threads), checked_max_nbytes(max_nbytes)
    if isinstance(names, str):
        raise TypeError(f"names={names!r} is one text; a list of names, or None for all, is allowed")
    with CompressedFile(Path(path), limit) as file:
        wanted = file.names if names is None else list(names)
        for name in wanted:
            if name not in file:
                raise KeyError(f"names: {name!r} is not in {path}")
        loaded = {}
        with progress_bar("decompressing", len(wanted), progress) as done:
            for name in wanted:
                loaded[name] = file.load_at(name, *place, count)
                done(file.spec(name).nbytes)
    return loaded


def _compressed(name: str, item: Any, rules: Sequence[Rule], threads: int, seed: Any) -> Compressed:
    if isinstance(item, Compressed):
        return item
    adapter, x = adapter_of(item)
    codec = codec_for(rules, name, *adapter.look(x))
    return compress_with(adapter, x, codec, None, threads, checked_seed(codec, seed))


def _parts(name: str, c: Compressed, level: int | None, threads: int | None) -> list[bytes | memoryview]:
    """The stream to be written, in pieces."""
    with naming(None, name):
        return c.stored_parts() if level is None else c.parts(zstd_level=level, threads=threads)


def _write_tensor(writer: container.Writer, name: str, c: Compressed, level: int | None, threads: int | None) -> int:
    """Write a stream as the next tensor; gives the array's number of bytes."""
    parts = _parts(name, c, level, threads)
    writer.add(name, "U8", (sum(map(len, parts)),), parts)
    return c.spec.nbytes


def _write_stream(path: Path, parts: Sequence[bytes | memoryview]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.writelines(parts)


def _check_single(path: Path, names: Sequence[str], metadata: Mapping[str, str] | None) -> None:
    if len(names) != 1:
        raise ValueError(f"{path}: a .arrcomp file holds one array, not {len(names)}; .safetensors is allowed")
    if metadata:
        raise ValueError(f"{path}: a .arrcomp file has no metadata; .safetensors is allowed")


def _checked_names(tensors: Any) -> list[str]:
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors is a {type_name(tensors)}; a mapping from names to arrays is allowed")
    names = list(tensors)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"tensors: name {name!r} is a {type_name(name)}; a text is allowed")
        if name == _RESERVED or is_stray(name) or not _is_unicode(name):
            raise ValueError(
                f"tensors: name {name!r}; any text is allowed but {_RESERVED!r}, paths out of a folder, and surrogates"
            )
    return names


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _described(metadata: Any) -> dict[str, str]:
    """The file's own metadata, with the caller's in it."""
    given = {} if metadata is None else metadata
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
        raise TypeError(f"metadata={metadata!r}: a mapping from texts to texts is allowed")
    source = {"source_metadata": json.dumps(dict(given), sort_keys=True)} if given else {}
    return {"format": "arrcomp", "version": stream.VERSION} | source
