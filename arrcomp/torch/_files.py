"""`torch.save` and `torch.load` with compressed tensors.

The files are those of `torch.save`. A compressed tensor is pickled as a call of `restore` with its stream.
PyTorch pickles everything else.
"""

import contextlib
import errno
import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import torch
from torch import Tensor

from .._api.compress import checked_seed, compress_with
from .._arguments import shown, thread_count, wrong_type
from .._files.bases import beside, path_from, takes_reference
from .._files.content import check_options, checked_path, is_path, is_stray, located, naming
from .._files.locations import OtherFile
from .._files.reading import OpenedFile
from .._files.remote import is_url
from .._files.replacing import replacing
from .._format import limits
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules, codec_for
from ..errors import WrongReferenceError
from ._adapter import ADAPTER
from ._import_arrcomp_torch_first import arranged
from ._pickling import streamed, streamed_from
from ._references import finding
from ._shared import View, memory_order, named_tensors, separable, view_of


def save(
    obj: Any,
    path_or_file: str | Path | IO[bytes],
    codec: Codec | Sequence[Rule] | None = None,
    *,
    threads: int | None = None,
    seed: int | None = None,
    base: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """`torch.save` with compressed tensors: a model's or an optimizer's `state_dict`, or a checkpoint with both.

    `load` reads the file. So does `torch.load` in a program that has imported `arrcomp.torch`, unless the file needs a
    base. Everything that `torch.save` keeps is restored: parameters, `requires_grad`, the order of dimensions in
    memory, and tied tensors, which are compressed once. An existing file is replaced when the new one is complete.
    Until then the compressed tensors are in host memory.

    These tensors are stored uncompressed, as by `torch.save`: tensors that partly overlap others or themselves (after
    `expand`); sparse, nested, quantized and meta tensors; subclasses such as DTensor (use
    `arrcomp.torch.distributed.checkpoint`); devices other than the CPU and CUDA; unsupported dtypes, more than 64
    dimensions; and tensors in containers other than dicts, lists and tuples.

    Args:
        obj: nested dicts, lists and tuples of tensors and of anything else that `torch.save` takes. A `Compressed` is
            stored as it is.
        path_or_file: where to write: a path; a URL, as in `arrcomp.save_file`; or a binary file.
        codec: a codec, or rules such as `arrcomp.model_rules` returns: the first that matches a tensor wins. Tensors
            that no rule matches, and all with None, are stored losslessly. Names are keys joined by dots, for instance
            "model.fc.weight" or "optimizer.state.0.exp_avg"; a tied tensor has its first name.
        threads: number of CPU threads; None for all cores that the process may use.
        seed: same as in `arrcomp.compress`; all tensors use the same one.
        base: earlier values of these tensors, for a smaller file of what has changed: the path of a file that `load`
            reads, which may need a base itself; or nested dicts, lists and tuples of tensors. It is in memory as a
            whole. Every tensor with one of the same name, dtype and shape there is coded against it if its codec is
            `Lossless` or `ErrorBounded`, without a predictor; the others are coded as without a base. `load` then needs
            the base, unchanged; the file has its path, if both are paths.
        storage_options: same as in `arrcomp.save_file`.

    Raises:
        TypeError: an argument has a wrong type, or a codec needs a seed.
        ValueError: `threads` or `seed` is out of range, `path_or_file` exists and is not a regular file, or is the base
            or a file that the base needs; the base is a URL, or has no tensor of the name, dtype and shape of any; a
            URL cannot be written to; or there are `storage_options` and no URL.
        OSError: the file cannot be written, or the base not read.
        DeviceUnavailableError: a tensor is on CUDA, which this build does not support.

    >>> import io, torch, arrcomp.torch
    >>> model, file = torch.nn.Linear(300, 400), io.BytesIO()
    >>> arrcomp.torch.save(model.state_dict(), file, arrcomp.model_rules(arrcomp.ErrorBounded(abs=1e-3)))
    >>> file.tell() < 200_000, file.seek(0)
    (True, 0)
    >>> model.load_state_dict(arrcomp.torch.load(file))
    <All keys matched successfully>
    """
    rules, count = checked_rules(codec), thread_count(threads)
    for rule in rules:
        checked_seed(rule.codec, seed)
    target = _located(path_or_file, "write", storage_options)
    against = None if base is None else _Against(base, target)
    with _TensorPickler(obj, rules, count, seed, against) as pickler:
        if not isinstance(target, (Path, OtherFile)):
            _write(obj, target, pickler)
            return
        with replacing(target) as temporary, temporary.open("wb") as file:
            _write(obj, file, pickler)


def load(
    path_or_file: str | Path | IO[bytes],
    map_location: Any = None,
    *,
    base: Any = None,
    max_nbytes: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Load a file of `save` or `torch.save`: `torch.load` with `weights_only=True`.

    Tensors are copied to their device compressed. Only tensors, containers, numbers, strings and the classes given to
    `torch.serialization.add_safe_globals` are unpickled.

    Args:
        path_or_file: where to read: a path; a URL, as in `arrcomp.open_file`; or a binary file that can seek.
        map_location: same as in `torch.load`, except "meta": a device, or a function or dict that gives each tensor's
            device; None for the device that it was on.
        base: what tensors of `save(..., base=)` were coded against: the path of a file that `load` reads, or nested
            dicts, lists and tuples of tensors. None for the file that this one names, which must be in its folder or
            below. The whole base is loaded into memory first.
        max_nbytes: the most bytes that each compressed tensor may have, same as in `arrcomp.from_bytes`. Tensors that
            PyTorch stored are not larger than the file.
        storage_options: same as in `arrcomp.open_file`.

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: a tensor is damaged, or a newer arrcomp wrote it.
        SizeLimitError: a tensor is larger than `max_nbytes`.
        WrongReferenceError: the base is another file than the one that was used, with another tensor.
        pickle.UnpicklingError: PyTorch refuses to unpickle an object in the file.
        RuntimeError, EOFError, KeyError and others: PyTorch found the file damaged outside of compressed tensors.
        TypeError: an argument has a wrong type, or `map_location` is the meta device.
        ValueError: `max_nbytes` is negative; a base is needed, and none is given or named in the file's folder; the
            base is a URL; or there are `storage_options` and no URL.
        OSError: the file, or a base, cannot be read. FileNotFoundError names the file that needs it.
        DeviceUnavailableError: the device does not exist.
    """
    source = _located(path_or_file, "read", storage_options)
    with limits.reading(max_nbytes), finding(_Base(source, base)):
        if not isinstance(source, OtherFile):
            return torch.load(source, map_location, weights_only=True)
        with OpenedFile(source).reader() as file:
            return torch.load(file, map_location, weights_only=True)


class _SharedValues:
    """The values of a tensor and of those tied to it: pickled once, and unpickled as a contiguous tensor."""

    def __init__(self, reduced: tuple[Any, ...]) -> None:
        self._reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced


class _TensorPickler:
    """Pickles tensors compressed."""

    def __init__(
        self, obj: Any, rules: Sequence[Rule], threads: int, seed: int | None, against: "_Against | None"
    ) -> None:
        self._names = separable(named_tensors(obj))
        self._against = against
        if against is not None:
            against.check_used(self._names)
        self._rules, self._threads, self._seed = rules, threads, seed
        self._values: dict[View, _SharedValues] = {}
        self._device_probes: dict[torch.device, Tensor] = {}  # empty tensors, which `map_location` moves

    def __enter__(self) -> SimpleNamespace:
        """The part of module `pickle` that `torch.save` uses, with a pickler that calls `_reduce` first."""
        reduce = self._reduce

        class Pickler(pickle.Pickler):
            def reducer_override(self, obj: Any) -> Any:
                return reduce(obj)

        return SimpleNamespace(Pickler=Pickler, __name__="pickle")

    def __exit__(self, *error: object) -> None:
        # PyTorch makes a class of the pickler, which lives until it is garbage-collected.
        self._names.clear()
        self._values.clear()

    def _reduce(self, obj: Any) -> Any:
        if type(obj) is not Tensor:  # PyTorch pickles a parameter as the tensor in it
            return NotImplemented
        view = view_of(obj)
        if view is None or view not in self._names:
            return NotImplemented
        order = memory_order(obj)
        if view not in self._values:
            self._values[view] = self._compress(self._names[view], obj.detach(), order)
        inverse = tuple(order.index(i) for i in range(obj.dim()))
        return arranged, (self._values[view], inverse, obj.requires_grad)

    def _compress(self, name: str, obj: Tensor, order: Sequence[int]) -> _SharedValues:
        x, against = obj.permute(tuple(order)), self._against
        probe = self._device_probes.setdefault(x.device, torch.empty(0, device=x.device))
        with naming(None, name):
            codec = codec_for(self._rules, name, *ADAPTER.dtype_and_shape(x))
            old = against.counterpart(name, obj) if against is not None and takes_reference(codec) else None
            reference = None if old is None else old.permute(tuple(order)).to(x.device)
            c = compress_with(ADAPTER, x, codec, None, self._threads, checked_seed(codec, self._seed), reference)
        if against is None or reference is None:
            return _SharedValues(streamed(c, probe))
        return _SharedValues(streamed_from(c, probe, order, name, against.file))


class _Base:
    """Finds the tensors of the base of a file that is loaded. The base is loaded when the first is needed."""

    def __init__(self, path_or_file: Any, base: Any, leading: Sequence[Path] = ()) -> None:
        """The base of a file, None for the one that it names. `leading` are files whose chain leads to that file."""
        self._path = Path(path_or_file) if is_path(path_or_file) else None
        self._base, self._leading = base, leading
        self._tensors: dict[str, Tensor] | None = None
        self.files: list[Path] = []  # of the chain of bases that were loaded

    def __call__(self, name: Any, file: str | None) -> Tensor:
        """The tensor of this name; `file` is the base that the file names."""
        tensors = self.tensors(file)
        if not isinstance(name, str) or name not in tensors:
            raise WrongReferenceError(f"{self}: expected a tensor {shown(name)}, which another needs, got none")
        return tensors[name]

    def __str__(self) -> str:
        return str(self.files[0]) if self.files else "base"

    def tensors(self, file: str | None) -> dict[str, Tensor]:
        """The tensors of the base by name, loaded the first time."""
        if self._tensors is None:
            self._tensors = self._loaded(file)
        return self._tensors

    def _loaded(self, file: str | None) -> dict[str, Tensor]:
        if self._base is not None and not is_path(self._base):
            return _tensors_of(self._base)
        return self._loaded_file(checked_path(self._base, "base") if self._base is not None else self._beside(file))

    def _beside(self, file: str | None) -> Path:
        """The path of the base that the file names."""
        if file is None or self._path is None:
            raise ValueError(f"{self._path or 'path_or_file'}: expected a base, which its tensors need, got none")
        if is_stray(file):
            raise ValueError(f"{self._path}: expected a base in its folder, got {shown(file)}; pass its path as base")
        return beside(self._path, file)

    def _loaded_file(self, path: Path) -> dict[str, Tensor]:
        leading = [*self._leading, *([] if self._path is None else [self._path])]
        try:
            if any(each.exists() and path.samefile(each) for each in leading):
                raise WrongReferenceError(f"{self._path}: expected a base that does not lead back to it, got {path}")
            inner = _Base(path, None, leading)
            with finding(inner):
                tree = torch.load(path, "cpu", weights_only=True)
        except FileNotFoundError as error:
            if error.filename != str(path):
                raise  # it is about a base further on
            reason = f"expected the base of {self._path}, got no such file; pass its path as base"
            raise FileNotFoundError(errno.ENOENT, reason, str(path)) from None
        self.files = [path, *inner.files]
        return _tensors_of(tree)


class _Against:
    """Tensors that those of a new file are coded against.

    Attributes:
        file: the path of the base from the new file's folder; None if one of them is no path.
    """

    def __init__(self, base: Any, path_or_file: Any) -> None:
        self.file: str | None = None
        if not is_path(base):
            self._tensors = _tensors_of(base)
            return
        base, finder = checked_path(base, "base"), _Base(None, base)
        self._tensors = finder.tensors(None)
        if is_path(path_or_file):
            path = Path(path_or_file)
            for each in finder.files:
                if path.exists() and path.samefile(each):
                    raise ValueError(f"{path}: expected another file than base and those that it needs, got {each}")
            self.file = path_from(path, base)

    def counterpart(self, name: str, x: Tensor | View) -> Tensor | None:
        """The tensor of this name, if it has the dtype and shape of x."""
        found = self._tensors.get(name)
        same = found is not None and found.dtype == x.dtype and tuple(found.shape) == tuple(x.shape)
        return found if same else None

    def check_used(self, names: Mapping[View, str]) -> None:
        """Raise ValueError unless one of the tensors has a counterpart."""
        if names and all(self.counterpart(name, view) is None for view, name in names.items()):
            got = shown(list(self._tensors))
            raise ValueError(f"base: expected a tensor of the same name, dtype and shape as one to save, got {got}")


def _tensors_of(tree: Any) -> dict[str, Tensor]:
    """The tensors of a base that others can be coded against, by name."""
    if not isinstance(tree, (dict, list, tuple, Tensor)):
        raise wrong_type("base", "a path, or nested dicts, lists and tuples of tensors", tree)
    named = ((name, x, view_of(x)) for name, x in named_tensors(tree))
    return {name: x.detach() for name, x, view in named if view is not None and view.plain}


def _write(obj: Any, file: IO[bytes], pickler: SimpleNamespace) -> None:
    with reasons_of_failures():
        torch.save(obj, file, pickle_module=pickler)


@contextlib.contextmanager
def reasons_of_failures() -> Iterator[None]:
    """Raise the OSError that is behind an error of `torch.save`, which hides it."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise


def _located(path_or_file: Any, method: str, storage_options: Any) -> Any:
    """The argument: a path, a file at a URL, or itself if it has this method."""
    check_options(storage_options, path_or_file)
    if is_url(path_or_file):
        return located(path_or_file, storage_options, writing=method == "write")
    if isinstance(path_or_file, (str, Path)):
        return Path(path_or_file)
    if not callable(getattr(path_or_file, method, None)):
        raise wrong_type("path_or_file", f"a path, a URL, or a binary file with a method {method}", path_or_file)
    return path_or_file
