"""Files of models: named arrays, compressed into a file and decompressed one after the other."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._api.compress import check_values, checked_seed, compress_with
from .._api.compressed import Compressed
from .._arguments import shown, thread_count, wrong_type, wrong_value
from .._arrays.registry import FRAMEWORKS, adapter_of
from .._format import stream
from .._format.frame import checked_level
from .._format.limits import checked_max_nbytes
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules, codec_for
from . import container
from .against import Against, check_reference
from .content import COMPRESSED_SUFFIXES, ONLY_NAME, check_suffix, checked_path, is_stray, naming
from .opened import CompressedFile, open_base
from .progress import progress as progress_bar
from .replacing import replacing


def save_file(
    tensors: Mapping[str, Any],
    path: str | Path,
    codec: Codec | Sequence[Rule] | None = None,
    *,
    metadata: Mapping[str, str] | None = None,
    zstd_level: int | None = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
    progress: bool = False,
    base: Any = None,
) -> None:
    """Compress arrays into a file, one after the other.

    Each array is accessed once, in order, and dropped before the next one. With a mapping that loads arrays when they
    are accessed, a model need not fit into memory. The file is a .safetensors file of uint8 tensors, each a complete
    stream. The file says which framework all arrays were of, and `load_file` returns arrays of it. (For several
    frameworks, and from a .arrcomp file, it returns NumPy arrays.) An existing file is replaced when the new one is
    complete.

    Args:
        tensors: a `state_dict`, or any mapping from names to arrays of any framework on any device, or to `Compressed`,
            which are stored as they are.
        path: of a .safetensors file, or of a .arrcomp file for a single array (without its name).
        codec: a codec; or rules, for instance `model_rules`: the first rule that fits an array and takes its dtype
            decides. Arrays without a rule are compressed losslessly. None for no rules.
        metadata: strings by name, stored with the arrays (not in a .arrcomp file).
        zstd_level: same as in `Compressed.to_bytes`, for each payload; None for no new frames. (A `Compressed` that was
            read in a frame stays in it.)
        threads: number of threads on the CPU; None for all cores that the process may use.
        seed: same as in `compress`, one for all arrays.
        check_finite: same as in `compress`, for every array. (`Compressed` are not checked.)
        progress: whether to show a progress bar, if standard error is a terminal or a notebook.
        base: earlier values of these arrays, for a smaller file of what has changed: the path of a file that
            `save_file` wrote, with a base or without, or of a .npy, .npz or .safetensors file; a `CompressedFile`; or
            a mapping from names to arrays. Every array with one of the same name, dtype and shape there is coded
            against it if its codec is `Lossless` or `ErrorBounded`, without a predictor. The others are coded as
            without a base. `load_file` then needs the base, unchanged. The file has its path from the file's own folder
            (no mapping's, and not in a .arrcomp file). The array in a .npy or .arrcomp file has no name: it and a
            single array of any name are counterparts.

    Raises:
        TypeError: same as in `compress`, for each array and argument.
        ValueError: same as in `compress`; the suffix is wrong; there are several arrays for a .arrcomp file; a name is
            not valid in UTF-8, is "__metadata__", or is a path out of its folder; `path` is the base, or a file that
            the base needs; the base has no counterpart of any array; or a `Compressed` needs a reference, and there is
            no base.
        WrongReferenceError: a `Compressed` was compressed against another array than its counterpart in the base; or
            the base needs a base itself, which was changed.
        OSError: the file cannot be written, or the base not read.
        ImportError: `progress` needs rich, or `zstd_level` zstandard.

    >>> import numpy, os, tempfile, arrcomp
    >>> weights = {"w": numpy.ones((300, 400), numpy.float32), "step": numpy.array(7)}
    >>> path = os.path.join(tempfile.mkdtemp(), "small.safetensors")
    >>> arrcomp.save_file(weights, path, arrcomp.model_rules(arrcomp.ErrorBounded(abs=1e-4)))
    >>> int(arrcomp.load_file(path)["step"]), os.path.getsize(path) < 2000
    (7, True)
    """
    path, rules = checked_path(path), checked_rules(codec)
    count, level = thread_count(threads), checked_level(zstd_level)
    suffix = check_suffix(path, COMPRESSED_SUFFIXES)
    names, described = _checked_names(tensors), _described(metadata)
    frameworks: set[str | None] = set()
    for rule in rules:
        checked_seed(rule.codec, seed)
    if suffix == ".arrcomp":
        _check_single(path, names, metadata)
    against = base if base is None or isinstance(base, Against) else Against(open_base(base), path, len(names))

    def compressed(name: str) -> tuple[Sequence[bytes | memoryview], int]:
        """An array's stream as buffers, and its number of bytes before."""
        item = tensors[name]
        with naming(None, name):
            inside = ONLY_NAME if suffix == ".arrcomp" else name
            c = _compressed(name, item, rules, count, seed, check_finite, against, inside)
            frameworks.add(_framework(item, c))
            del item
            return c.stored_buffers() if level is None else c.buffers(zstd_level=level, threads=threads), c.spec.nbytes

    with progress_bar("compressing", len(names), progress) as done:
        if suffix == ".arrcomp":
            buffers, _ = compressed(names[0])
            if against is not None:
                against.check_used()
            with replacing(path) as temporary, temporary.open("wb") as file:
                file.writelines(buffers)
            return
        longest = described | {"framework": max(FRAMEWORKS, key=len)} | ({} if against is None else against.metadata)
        with container.writing(path, dict.fromkeys(names, container.LONGEST_OF_BYTES), longest) as writer:
            for name in names:
                buffers, nbytes = compressed(name)
                writer.add(name, "U8", (sum(map(len, buffers)),), buffers)
                del buffers
                done(nbytes)
            if against is not None and names:
                against.check_used()
                described |= against.metadata if against.is_needed else {}
            shared = frameworks.pop() if len(frameworks) == 1 else None
            writer.metadata = described if shared is None else described | {"framework": shared}


def load_file(
    path: str | Path,
    *,
    like: Any = None,
    device: Any = None,
    names: Iterable[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
    max_nbytes: int | None = None,
    base: Any = None,
) -> dict[str, Any]:
    """Decompress a file of compressed arrays into memory, or onto a device.

    Args:
        path: same as in `open_file`.
        like: an array whose framework and device the results get; or the name of a framework, "numpy", "torch", "jax"
            or "cupy", with its default device; None for the framework of the arrays that were saved
            (`CompressedFile.framework`), or for NumPy's on CUDA whichever is installed.
        device: "cpu", "cuda", "cuda:1", a `torch.device`, a `jax.Device`, or an array; None for that of `like`. The
            arrays are transferred compressed.
        names: names of the arrays to load; None for all.
        threads: number of threads on the CPU; None for all cores that the process may use.
        progress: whether to show a progress bar, if standard error is a terminal or a notebook.
        max_nbytes: the most bytes that each array may have, same as in `open_file`.
        base: same as in `open_file`, for a file of `save_file(..., base=)`.

    Returns:
        The arrays by name, in the order of `names` or of the file. Besides them, one stream at a time is in memory.

    Raises:
        WrongReferenceError: the base, or one that it needs itself, is another file than the one that was used, with
            other arrays. Nothing of this file was decompressed. (One that was written anew with equal arrays will do.)
        CorruptStreamError, FormatVersionError, UnknownCodecError: the file is damaged, or a newer arrcomp wrote it.
        SizeLimitError: an array has more bytes than `max_nbytes`.
        KeyError: there is no array of one of the `names`.
        TypeError, ValueError: an argument is of a wrong type or value, or the framework has no such dtype.
        OSError: the file, or a base, cannot be read. FileNotFoundError names the file that needs it.
        ImportError: the framework (like="numpy" needs none), safetensors, zstandard for a frame, or rich for
            `progress`, is not installed.
        DeviceUnavailableError: the device is not available.
    """
    count, limit = thread_count(threads), checked_max_nbytes(max_nbytes)
    if isinstance(names, str) or not (names is None or isinstance(names, Iterable)):
        raise wrong_type("names", "a list of names, or None for all", names)
    with CompressedFile(checked_path(path), limit, base) as file:
        target = file.target(like, device)
        wanted = file.names if names is None else list(names)
        for name in wanted:
            if name not in file:
                raise KeyError(f"names: expected names of arrays in {path}, got {shown(name)}")
        file.check_base(wanted)
        loaded = {}
        with progress_bar("decompressing", len(wanted), progress) as done:
            for name in wanted:
                loaded[name] = file.load_at(name, *target, count)
                done(file.spec(name).nbytes)
    return loaded


def _compressed(
    name: str,
    item: Any,
    rules: Sequence[Rule],
    threads: int,
    seed: Any,
    check_finite: bool,
    against: Against | None,
    inside: str,
) -> Compressed:
    """An array as it is stored; `inside` is its name in the file."""
    if isinstance(item, Compressed):
        check_reference(inside, item, against)
        return item
    adapter, x = adapter_of(item)
    codec = codec_for(rules, name, *adapter.dtype_and_shape(x))
    if check_finite:
        check_values(adapter, x, f"array {shown(name)}")
    reference = None if against is None else against.reference(inside, adapter, x, codec, threads)
    return compress_with(adapter, x, codec, None, threads, checked_seed(codec, seed), reference)


def _framework(item: Any, c: Compressed) -> str | None:
    """The framework of an array, which `load_file` returns.

    None for a `Compressed` in NumPy, which every stream that was read is, or of a dtype that its framework lacks.
    """
    adapter = c.payload.adapter
    if item is not c:
        return adapter.name
    try:
        adapter.check_dtype(c.spec.dtype)
    except TypeError:
        return None
    return None if adapter.name == "numpy" else adapter.name


def _check_single(path: Path, names: Sequence[str], metadata: Mapping[str, str] | None) -> None:
    if len(names) != 1:
        expected = "one array for a .arrcomp file"
        raise ValueError(f"{path}: expected {expected}, got {len(names)}; .safetensors holds several")
    if metadata:
        raise ValueError(f"{path}: expected no metadata for a .arrcomp file, got some; .safetensors holds it")


def _checked_names(tensors: Any) -> list[str]:
    if not isinstance(tensors, Mapping):
        raise wrong_type("tensors", "a mapping from names to arrays", tensors)
    names = list(tensors)
    for name in names:
        if not isinstance(name, str):
            raise wrong_type("tensors", "strings as names", name)
        if name == container.RESERVED or is_stray(name) or name.encode(errors="ignore").decode() != name:
            refused = f"{container.RESERVED!r}, paths out of a folder, and surrogates"
            raise wrong_value("tensors", f"other names than {refused}", name)
    return names


def _described(metadata: Any) -> dict[str, str]:
    """The file's own metadata, which contain the caller's."""
    given = {} if metadata is None else metadata
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
        raise wrong_type("metadata", "a mapping from strings to strings", metadata)
    source = {"source_metadata": json.dumps(dict(given), sort_keys=True)} if given else {}
    return {"format": "arrcomp", "version": stream.VERSION} | source
