"""Files of models: named arrays, compressed into a file and decompressed one after the other."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .._api.compress import check_values, checked_seed, compress_with
from .._api.compressed import Compressed
from .._arguments import shown, thread_count, wrong_type, wrong_value
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.registry import FRAMEWORKS, adapter_of
from .._format import stream
from .._format.frame import checked_level
from .._format.limits import checked_max_nbytes
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules, codec_for
from . import container
from .against import Against, check_reference
from .content import (
    COMPRESSED_SUFFIXES,
    ONLY_NAME,
    check_options,
    check_readable,
    check_suffix,
    is_path,
    is_stray,
    located,
    naming,
)
from .in_place import appending, has_room, held
from .large import LargeArray, large_array
from .locations import Location
from .opened import CompressedFile, open_base
from .progress import progress as progress_bar
from .replacing import replacing


def save_file(
    tensors: Mapping[str, Any],
    path: str | Path | IO[bytes],
    codec: Codec | Sequence[Rule] | None = None,
    *,
    metadata: Mapping[str, str] | None = None,
    zstd_level: int | None = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
    progress: bool = False,
    base: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Compress arrays into a file, one after the other.

    Each array is accessed once, in order, and dropped before the next one. With a mapping that loads arrays when they
    are accessed, a model need not fit into memory. Nor need a NumPy array of 256 MiB or more, such as an `np.memmap`:
    it is compressed and written piece by piece, if its codec is `Lossless` or `ErrorBounded` with `abs` or `pointwise`,
    without a predictor, and there are no `base` and no `zstd_level`. The file is a .safetensors file of uint8 tensors,
    each a complete stream. It says which framework all arrays were of, and `load_file` returns arrays of it. (For
    several frameworks, and from a .arrcomp file, it returns NumPy arrays.) An existing file is replaced when the new
    one is complete.

    A file at a URL, or in a file object, is first written to the folder of temporary files, and copied when it is
    complete. So the file object need not seek. At a URL the old object, or the new one, is there at any time: an object
    store has the new one once its upload has ended; elsewhere it is uploaded under another name, and moved. Part of a
    file object may be written if copying fails.

    Args:
        tensors: a `state_dict`, or any mapping from names to arrays of any framework on any device, or to `Compressed`,
            which are stored as they are.
        path: of a .safetensors file, or of a .arrcomp file for a single array (without its name). It is a path; a URL
            that fsspec knows and can write to ("s3://bucket/x.safetensors"); or a binary file object, which is written
            from its position on, and not closed. (A file object without a name with a suffix gets a .safetensors file.)
        codec: a codec; or rules, for instance `model_rules`: the first rule that fits an array and takes its dtype
            decides. Arrays without a rule are compressed losslessly. None for no rules.
        metadata: strings by name, stored with the arrays (not in a .arrcomp file).
        zstd_level: same as in `Compressed.to_bytes`, for each payload; None for no new frames. (A `Compressed` that was
            read in a frame stays in it.)
        threads: number of threads on the CPU; None for all cores that the process may use.
        seed: same as in `compress`, one for all arrays.
        check_finite: same as in `compress`, for every array. (`Compressed` are not checked.)
        progress: whether to show a progress bar, if standard error is a terminal or a notebook.
        base: earlier values of these arrays, for a smaller file of what has changed: the path, the URL or the file
            object of a file that `save_file` wrote, with a base or without, or of a .npy, .npz or .safetensors file; a
            `CompressedFile`; or a mapping from names to arrays. Every array with one of the same name, dtype and shape
            there is coded against it if its codec is `Lossless` or `ErrorBounded`, without a predictor. The others are
            coded as without a base. `load_file` then needs the base, unchanged. The file has its path from the file's
            own folder (not in a .arrcomp file; nor of a mapping, a file object, or a file in another file system). The
            array in a .npy or .arrcomp file has no name: it and a single array of any name are counterparts.
        storage_options: arguments of fsspec's file system, for URLs: keys, the address of a server.

    Raises:
        TypeError: same as in `compress`, for each array and argument; or a file object is of text.
        ValueError: same as in `compress`; the suffix is wrong; there are several arrays for a .arrcomp file; a name is
            not valid in UTF-8, is "__metadata__", or is a path out of its folder; `path` is the base, or a file that
            the base needs; the base has no counterpart of any array; a `Compressed` needs a reference, and there is no
            base; a URL or a file object cannot be written to; or there are `storage_options` and no URL.
        WrongReferenceError: a `Compressed` was compressed against another array than its counterpart in the base; or
            the base needs a base itself, which was changed.
        OSError: the file cannot be written, or the base not read.
        ImportError: `progress` needs rich, `zstd_level` zstandard, or a URL fsspec or the package of its file system.

    >>> import numpy, os, tempfile, arrcomp
    >>> weights = {"w": numpy.ones((300, 400), numpy.float32), "step": numpy.array(7)}
    >>> path = os.path.join(tempfile.mkdtemp(), "small.safetensors")
    >>> arrcomp.save_file(weights, path, arrcomp.model_rules(arrcomp.ErrorBounded(abs=1e-4)))
    >>> int(arrcomp.load_file(path)["step"]), os.path.getsize(path) < 2000
    (7, True)
    """
    check_options(storage_options, path, base)
    location, level = located(path, storage_options, writing=True), checked_level(zstd_level)
    encoder = _Encoder(checked_rules(codec), thread_count(threads), level, seed, check_finite)
    suffix = check_suffix(location, COMPRESSED_SUFFIXES)
    names, described = _checked_names(tensors), _described(metadata)
    if suffix == ".arrcomp":
        _check_single(location, names, metadata)
    if isinstance(base, Against):
        encoder.against = base
    elif base is not None:
        encoder.against = Against(open_base(base, storage_options=storage_options), location, len(names))
    with progress_bar("compressing", len(names), progress) as done:
        if suffix == ".arrcomp":
            with replacing(location) as temporary, temporary.open("w+b") as file:
                encoder.write_stream(file, names[0], tensors, ONLY_NAME)
                encoder.check_base_used()
            return
        longest = described | encoder.longest_metadata()
        with container.writing(location, dict.fromkeys(names, container.LONGEST_OF_BYTES), longest) as writer:
            encoder.write(writer, names, tensors, done)
            if names:
                encoder.check_base_used()
            writer.metadata = described | encoder.metadata()


def append_file(
    tensors: Mapping[str, Any],
    path: str | Path,
    codec: Codec | Sequence[Rule] | None = None,
    *,
    zstd_level: int | None = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
    progress: bool = False,
    in_place: bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Compress further arrays into a .safetensors file that `save_file` wrote.

    Streams in the file are neither decompressed nor changed, and the new ones are written behind them, where the file's
    header, which is in front, has room for their names. Where it has none, the streams are copied, a part at a time,
    into a file with room for as much again, which replaces the old one when it is complete, as in `save_file`. So the
    first append to a file copies it, and later ones do so more rarely the larger its header is. At a URL, and where the
    file cannot be written to or locked, it is copied every time.

    If the process is killed or the power goes, the file has its old arrays, or all: arrcomp reads either, and the next
    append or `save_file` tidies up. Other programs may refuse the file until then, and while an append runs. If an
    exception is raised the file is cut back to what it was. Files that are open for reading stay valid. Of two appends
    on a machine the second one waits for the first.

    Args:
        tensors: same as in `save_file`, with names that the file does not have.
        path: of the file, or its URL.
        codec: same as in `save_file`, for the new arrays. They are coded without a base, also in a file that has one.
        zstd_level: same as in `save_file`.
        threads: same as in `save_file`.
        seed: same as in `save_file`.
        check_finite: same as in `save_file`.
        progress: same as in `save_file`.
        in_place: False to copy the file every time, without room: hard links to the old one keep it, and other programs
            can read the file at any time.
        storage_options: same as in `save_file`.

    Raises:
        ValueError: the file has an array of one of the names, or is no file of `save_file`; or same as in `save_file`.
        CorruptStreamError, FormatVersionError: the file's header is damaged, or a newer arrcomp wrote it.
        TypeError, OSError, ImportError: same as in `save_file`.

    >>> import numpy, os, tempfile, arrcomp
    >>> path = os.path.join(tempfile.mkdtemp(), "small.safetensors")
    >>> arrcomp.save_file({"a": numpy.arange(10)}, path)
    >>> arrcomp.append_file({"b": numpy.ones(3)}, path)
    >>> list(arrcomp.load_file(path))
    ['a', 'b']
    """
    check_options(storage_options, path)
    if not is_path(path):
        raise wrong_type("path", "a path or a URL", path)
    location, level = located(path, storage_options, writing=True), checked_level(zstd_level)
    encoder = _Encoder(checked_rules(codec), thread_count(threads), level, seed, check_finite)
    check_readable(location, (".safetensors",))
    names = _checked_names(tensors)
    with held(location) as (old, descriptor):
        for name in names:
            if name in old:
                raise wrong_value("tensors", f"names that {location} does not have", name)
        described = old.own_metadata | {"version": stream.VERSION}
        framework = described.pop("framework", None)
        encoder.frameworks.update([framework] if len(old) else [])
        longest = described | encoder.longest_metadata()
        with (
            progress_bar("compressing", len(names), progress) as done,
            _appending(old, descriptor if in_place else None, names, longest) as writer,
        ):
            encoder.write(writer, names, tensors, done)
            writer.metadata = described | encoder.metadata()


@contextlib.contextmanager
def _appending(
    old: CompressedFile, descriptor: int | None, names: Sequence[str], longest: Mapping[str, str]
) -> Iterator[container.Writer]:
    """A writer of further streams: in place where there is a descriptor and the header has room, else of a copy."""
    opened = old.container
    assert opened is not None, "it is a .safetensors file"
    entries = opened.entries | dict.fromkeys(names, container.LONGEST_OF_BYTES)
    if descriptor is not None and isinstance(old.location, Path) and has_room(opened, entries, longest):
        with appending(descriptor, opened, old.location, longest) as writer:
            yield writer
        return
    entries = dict.fromkeys(entries, container.LONGEST_OF_BYTES)
    with container.writing(old.location, entries, longest, with_room=descriptor is not None) as writer:
        for name in old:
            with writer.tensor(name) as file:
                file.writelines(old.span(name).chunks())
        yield writer


def load_file(
    path: str | Path | IO[bytes],
    *,
    like: Any = None,
    device: Any = None,
    names: Iterable[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
    max_nbytes: int | None = None,
    base: Any = None,
    storage_options: Mapping[str, Any] | None = None,
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
        storage_options: same as in `open_file`.

    Returns:
        The arrays by name, in the order of `names` or of the file. Besides them, one stream at a time is in memory.

    Raises:
        WrongReferenceError: the base, or one that it needs itself, is another file than the one that was used, with
            other arrays. Nothing of this file was decompressed. (One that was written anew with equal arrays will do.)
        CorruptStreamError, FormatVersionError, UnknownCodecError: the file is damaged, or a newer arrcomp wrote it.
        SizeLimitError: an array has more bytes than `max_nbytes`.
        KeyError: there is no array of one of the `names`.
        TypeError, ValueError: an argument is of a wrong type or value, or the framework has no such dtype. Files are
            refused as in `open_file`.
        OSError: the file, or a base, cannot be read. FileNotFoundError names the file that needs it.
        ImportError: the framework (like="numpy" needs none), safetensors, zstandard for a frame, rich for
            `progress`, or fsspec and the package of its file system for a URL, is not installed.
        DeviceUnavailableError: the device is not available.
    """
    count, limit = thread_count(threads), checked_max_nbytes(max_nbytes)
    if isinstance(names, str) or not (names is None or isinstance(names, Iterable)):
        raise wrong_type("names", "a list of names, or None for all", names)
    check_options(storage_options, path, base)
    with CompressedFile(located(path, storage_options), limit, base, storage_options) as file:
        target = file.target(like, device)
        wanted = file.names if names is None else list(names)
        for name in wanted:
            if name not in file:
                raise KeyError(f"names: expected names of arrays in {file.location}, got {shown(name)}")
        file.check_base(wanted)
        loaded = {}
        with progress_bar("decompressing", len(wanted), progress) as done:
            for name in wanted:
                loaded[name] = file.load_at(name, *target, count)
                done(file.spec(name).nbytes)
    return loaded


@dataclass
class _Encoder:
    """Makes streams of arrays, with the arguments of `save_file`."""

    rules: Sequence[Rule]
    threads: int
    level: int | None
    seed: Any
    check_finite: bool
    against: Against | None = None
    frameworks: set[str | None] = field(default_factory=set)  # of the arrays of a file; None for one without

    def __post_init__(self) -> None:
        for rule in self.rules:
            checked_seed(rule.codec, self.seed)

    def write_stream(self, file: Any, name: str, tensors: Mapping[str, Any], inside: str) -> int:
        """Write an array's stream to a file; the array's bytes. `inside` is its name in the file."""
        item = tensors[name]
        with naming(None, name):
            made = self._compressed(name, item, inside)
            if isinstance(made, LargeArray):
                self.frameworks.add(NUMPY.name)
                made.write(file)
                return made.spec.nbytes
            self.frameworks.add(_framework(item, made))
            del item
            for buffer in self._buffers(made):
                file.write(buffer)
            return made.spec.nbytes

    def write(
        self, writer: container.Writer, names: Sequence[str], tensors: Mapping[str, Any], done: Callable[[int], None]
    ) -> None:
        """Write the streams of arrays, and tell `done` of each."""
        for name in names:
            with writer.tensor(name) as file:
                nbytes = self.write_stream(file, name, tensors, name)
            done(nbytes)

    def check_base_used(self) -> None:
        """Raise ValueError if the base has no counterpart of any array."""
        if self.against is not None:
            self.against.check_used()

    def longest_metadata(self) -> dict[str, str]:
        """Metadata that are at least as long as `metadata` will be."""
        return {"framework": max(FRAMEWORKS, key=len)} | ({} if self.against is None else self.against.metadata)

    def metadata(self) -> dict[str, str]:
        """What a file says of the arrays whose streams were made."""
        base = self.against.metadata if self.against is not None and self.against.is_needed else {}
        shared = next(iter(self.frameworks)) if len(self.frameworks) == 1 else None
        return base if shared is None else base | {"framework": shared}

    def _compressed(self, name: str, item: Any, inside: str) -> Compressed | LargeArray:
        if isinstance(item, Compressed):
            check_reference(inside, item, self.against)
            return item
        adapter, x = adapter_of(item)
        codec = codec_for(self.rules, name, *adapter.dtype_and_shape(x))
        if self.check_finite:
            check_values(adapter, x, f"array {shown(name)}")
        reference = None if self.against is None else self.against.reference(inside, adapter, x, codec, self.threads)
        if reference is None and self.level is None:
            large = large_array(adapter, x, codec, self.threads)
            if large is not None:
                return large
        return compress_with(adapter, x, codec, None, self.threads, checked_seed(codec, self.seed), reference)

    def _buffers(self, c: Compressed) -> Sequence[bytes | memoryview]:
        if self.level is None:
            return c.stored_buffers()
        return c.buffers(zstd_level=self.level, threads=self.threads or None)


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


def _check_single(path: Location, names: Sequence[str], metadata: Mapping[str, str] | None) -> None:
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
