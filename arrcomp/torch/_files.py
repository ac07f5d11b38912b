"""`torch.save` and `torch.load` with compressed tensors.

The files are those of `torch.save`. A compressed tensor is pickled as a call of `restore` with its stream.
PyTorch pickles everything else.
"""

import contextlib
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import torch
from torch import Tensor

from .._api.compress import checked_seed, compress_with
from .._arguments import thread_count, wrong_type
from .._files.content import naming
from .._files.replacing import replacing
from .._format import limits
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules, codec_for
from ._adapter import ADAPTER
from ._import_arrcomp_torch_first import arranged
from ._pickling import streamed
from ._shared import View, memory_order, named_tensors, separable, view_of


def save(
    obj: Any,
    path_or_file: str | Path | IO[bytes],
    codec: Codec | Sequence[Rule] | None = None,
    *,
    threads: int | None = None,
    seed: int | None = None,
) -> None:
    """`torch.save` with compressed tensors: a model's or an optimizer's `state_dict`, or a checkpoint with both.

    `load` reads the file, and so does `torch.load` in a program that has imported `arrcomp.torch`. Everything that
    `torch.save` keeps is restored: parameters, `requires_grad`, the order of dimensions in memory, and tied tensors,
    which are compressed once. An existing file is replaced when the new one is complete. Until then the compressed
    tensors are in host memory.

    These tensors are stored uncompressed, as by `torch.save`: tensors that partly overlap others or themselves (after
    `expand`); sparse, nested, quantized and meta tensors; subclasses such as DTensor (use
    `arrcomp.torch.distributed.checkpoint`); devices other than the CPU and CUDA; unsupported dtypes, more than 64
    dimensions; and tensors in containers other than dicts, lists and tuples.

    Args:
        obj: nested dicts, lists and tuples of tensors and of anything else that `torch.save` takes. A `Compressed` is
            stored as it is.
        path_or_file: where to write.
        codec: a codec, or rules such as `arrcomp.model_rules` returns: the first that matches a tensor wins. Tensors
            that no rule matches, and all with None, are stored losslessly. Names are keys joined by dots, for instance
            "model.fc.weight" or "optimizer.state.0.exp_avg"; a tied tensor has its first name.
        threads: number of CPU threads; None for all cores that the process may use.
        seed: same as in `arrcomp.compress`; all tensors use the same one.

    Raises:
        TypeError: an argument has a wrong type, or a codec needs a seed.
        ValueError: `threads` or `seed` is out of range, or `path_or_file` exists and is not a regular file.
        OSError: the file cannot be written.
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
    _check_file(path_or_file, "write")
    with _TensorPickler(obj, rules, count, seed) as pickler:
        if not isinstance(path_or_file, (str, Path)):
            _write(obj, path_or_file, pickler)
            return
        with replacing(Path(path_or_file)) as temporary, temporary.open("wb") as file:
            _write(obj, file, pickler)


def load(path_or_file: str | Path | IO[bytes], map_location: Any = None, *, max_nbytes: int | None = None) -> Any:
    """Load a file of `save` or `torch.save`: `torch.load` with `weights_only=True`.

    Tensors are copied to their device compressed. Only tensors, containers, numbers, strings and the classes given to
    `torch.serialization.add_safe_globals` are unpickled.

    Args:
        path_or_file: where to read.
        map_location: same as in `torch.load`, except "meta": a device, or a function or dict that gives each tensor's
            device; None for the device that it was on.
        max_nbytes: the most bytes that each compressed tensor may have, same as in `arrcomp.from_bytes`. Tensors that
            PyTorch stored are not larger than the file.

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: a tensor is damaged, or a newer arrcomp wrote it.
        SizeLimitError: a tensor is larger than `max_nbytes`.
        pickle.UnpicklingError: PyTorch refuses to unpickle an object in the file.
        RuntimeError, EOFError, KeyError and others: PyTorch found the file damaged outside of compressed tensors.
        TypeError: an argument has a wrong type, or `map_location` is the meta device.
        ValueError: `max_nbytes` is negative.
        OSError: the file cannot be read.
        DeviceUnavailableError: the device does not exist.
    """
    _check_file(path_or_file, "read")
    with limits.reading(max_nbytes):
        return torch.load(path_or_file, map_location, weights_only=True)


class _SharedValues:
    """The values of a tensor and of those tied to it: pickled once, and unpickled as a contiguous tensor."""

    def __init__(self, reduced: tuple[Any, ...]) -> None:
        self._reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced


class _TensorPickler:
    """Pickles tensors compressed."""

    def __init__(self, obj: Any, rules: Sequence[Rule], threads: int, seed: int | None) -> None:
        self._names = separable(named_tensors(obj))
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
            self._values[view] = self._compress(self._names[view], obj.detach().permute(order))
        inverse = tuple(order.index(i) for i in range(obj.dim()))
        return arranged, (self._values[view], inverse, obj.requires_grad)

    def _compress(self, name: str, x: Tensor) -> _SharedValues:
        with naming(None, name):
            codec = codec_for(self._rules, name, *ADAPTER.dtype_and_shape(x))
            c = compress_with(ADAPTER, x, codec, None, self._threads, checked_seed(codec, self._seed))
        probe = self._device_probes.setdefault(x.device, torch.empty(0, device=x.device))
        return _SharedValues(streamed(c, probe))


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


def _check_file(path_or_file: Any, method: str) -> None:
    if not isinstance(path_or_file, (str, Path)) and not callable(getattr(path_or_file, method, None)):
        raise wrong_type("path_or_file", f"a path, or a binary file with a method {method}", path_or_file)
