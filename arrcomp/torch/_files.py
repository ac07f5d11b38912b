"""`torch.save` and `torch.load` with compressed tensors.

A file is one of `torch.save`, in which compressed tensors are calls of `pickling.restore` with their streams. Anything
that is no tensor is left to PyTorch, as are tensors that it alone can keep.
"""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import torch
from torch import Tensor

from .._api.compress import checked_seed, compress_with
from .._arguments import thread_count, type_name
from .._files.content import naming
from .._files.replacing import replacing
from .._format import limits
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules, codec_for
from ._adapter import ADAPTER
from ._pickling import arranged, streamed
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

    `torch.load` reads the file as well, once `arrcomp.torch` is imported. Everything comes back that `torch.save`
    keeps: parameters, `requires_grad`, the order of dimensions in memory, tied tensors (which are compressed once). A
    file that is there keeps what it has until the new one is complete; until then the compressed tensors are in host
    memory.

    Kept as `torch.save` keeps them, and not compressed: tensors that overlap others without being the same, or
    themselves (as `expand` makes them); sparse, nested, quantized and meta tensors, subclasses such as DTensor (for
    which there is `arrcomp.torch.distributed.checkpoint`), other devices than the CPU and CUDA, dtypes that the format
    does not have; and what is in other objects than dicts, lists and tuples.

    Args:
        obj: tensors in dicts, lists and tuples, with anything else between them that `torch.save` takes; `Compressed`
            stay such.
        path_or_file: where to write.
        codec: a codec; or rules, of which the first decides that is for a tensor and takes its dtype, as
            `arrcomp.model_rules` gives them; None for none. What none of them is for is kept losslessly. Names are the
            keys joined by dots, as "model.fc.weight" or "optimizer.state.0.exp_avg"; of a tied tensor the first one.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: as of `arrcomp.compress`, one for all tensors.

    Raises:
        TypeError: an argument is of a wrong type; a codec needs a seed.
        ValueError: `threads` or `seed` is out of its range, or `path_or_file` is there and not a regular file.
        OSError: the file cannot be written.
        DeviceUnavailableError: a tensor is on CUDA, which this build does not have.

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
    with _Saving(obj, rules, count, seed) as pickler:
        if not isinstance(path_or_file, (str, Path)):
            _write(obj, path_or_file, pickler)
            return
        with replacing(Path(path_or_file)) as temporary, temporary.open("wb") as file:
            _write(obj, file, pickler)


def load(path_or_file: str | Path | IO[bytes], map_location: Any = None, *, max_size: int | None = None) -> Any:
    """What `save` wrote, or `torch.save`: `torch.load` with `weights_only=True`.

    Tensors travel to their device compressed. Nothing but tensors, containers, numbers and texts is unpickled, and
    what `torch.serialization.add_safe_globals` was told of: named tuples, for instance.

    Args:
        path_or_file: where to read.
        map_location: as of `torch.load`, but for "meta": a device, or a function or dict that says where tensors come
            back; None for where they were.
        max_size: bytes that each of the compressed tensors may have, as of `arrcomp.from_bytes`. (PyTorch's own are
            as large as the file.)

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: a tensor is damaged, or a newer arrcomp wrote it.
        SizeLimitError: a tensor is larger than `max_size`.
        pickle.UnpicklingError: by PyTorch, the file holds what is not allowed.
        RuntimeError, EOFError, KeyError and others: by PyTorch, which reads the file, what is around the tensors is
            damaged.
        TypeError: an argument is of a wrong type, or `map_location` is the meta device.
        ValueError: `max_size` is below 0.
        OSError: the file cannot be read.
        DeviceUnavailableError: the device is not there.
    """
    _check_file(path_or_file, "read")
    with limits.reading(max_size):
        return torch.load(path_or_file, map_location, weights_only=True)


class _Base:
    """The values of a tensor and of those that are tied to it: pickled once, and read back as a contiguous tensor."""

    def __init__(self, reduced: tuple[Any, ...]) -> None:
        self._reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced


class _Saving:
    """What `torch.save` pickles tensors with."""

    def __init__(self, obj: Any, rules: Sequence[Rule], threads: int, seed: int | None) -> None:
        self._names = separable(named_tensors(obj))
        self._rules, self._threads, self._seed = rules, threads, seed
        self._bases: dict[View, _Base] = {}
        self._places: dict[torch.device, Tensor] = {}

    def __enter__(self) -> SimpleNamespace:
        return _pickle_module(self._reduce)

    def __exit__(self, *error: object) -> None:
        # PyTorch makes a class of the pickler, which stays until the garbage is collected.
        self._names.clear()
        self._bases.clear()

    def _reduce(self, obj: Any) -> Any:
        if type(obj) is not Tensor:  # a parameter is pickled as the tensor in it
            return NotImplemented
        view = view_of(obj)
        if view is None or view not in self._names:
            return NotImplemented
        order = memory_order(obj)
        if view not in self._bases:
            self._bases[view] = self._base(self._names[view], obj.detach().permute(order))
        back = tuple(order.index(i) for i in range(obj.dim()))
        return arranged, (self._bases[view], back, obj.requires_grad)

    def _base(self, name: str, x: Tensor) -> _Base:
        with naming(None, name):
            codec = codec_for(self._rules, name, *ADAPTER.dtype_and_shape(x))
            c = compress_with(ADAPTER, x, codec, None, self._threads, checked_seed(codec, self._seed))
        place = self._places.setdefault(x.device, torch.empty(0, device=x.device))
        return _Base(streamed(c, place))


def _write(obj: Any, file: IO[bytes], pickler: SimpleNamespace) -> None:
    try:
        torch.save(obj, file, pickle_module=pickler)
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):  # what PyTorch says after it does not tell why
            raise error.__context__ from None
        raise


def _pickle_module(reduce: Callable[[Any], Any]) -> SimpleNamespace:
    """Of `pickle` what `torch.save` asks for, with a pickler that asks `reduce` first."""

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            return reduce(obj)

    return SimpleNamespace(Pickler=Pickler, __name__="pickle")


def _check_file(path_or_file: Any, method: str) -> None:
    if not isinstance(path_or_file, (str, Path)) and not callable(getattr(path_or_file, method, None)):
        kind = type_name(path_or_file)
        raise TypeError(f"path_or_file is a {kind}; a path, or a binary file to {method}, is allowed")
