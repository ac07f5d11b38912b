"""Activations that wait for the backward pass compressed: `compressed_activations`."""

import itertools
import math
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import Module

from .._api.compressed import Compressed
from .._arguments import checked_integer
from .._dtypes import MAX_VALUES
from .._methods.seeds import MAX_SEED, derived
from ..codecs import QSGD, Codec, Lossless
from ..codecs._rules import Rule, checked_rules
from ._functions import compress, decompress
from ._saved_tensors import (
    belongs_to_leaf,
    in_memory_order,
    is_plain,
    is_tracked,
    place_of,
    with_layout,
)
from ._tensors import row_of

DEFAULT_CODEC = QSGD(bits=8, rounding="stochastic")
_BITS = QSGD(bits=1, bucket_size=4096)  # exact for 0 and 1: its levels are a bucket's smallest and largest value

_disable: Any = torch.compiler.disable  # which has no types

_Skip = Callable[[Tensor], Any] | Module | Tensor
_contexts = itertools.count()


@dataclass
class ActivationStatistics:
    """What autograd kept while `compressed_activations` was active.

    Attributes:
        tensors: how many were compressed.
        nbytes: of their values before.
        compressed_nbytes: of their payloads.
        shared: how many more were saved whose values had been compressed for another one, and took no memory.
        kept_tensors: how many were left alone, without parameters; each as often as it was saved.
        kept_nbytes: of their values.
    """

    tensors: int = 0
    nbytes: int = 0
    compressed_nbytes: int = 0
    shared: int = 0
    kept_tensors: int = 0
    kept_nbytes: int = 0

    @property
    def ratio(self) -> float:
        """Bytes of what was compressed, before by after; NaN where nothing was."""
        return self.nbytes / self.compressed_nbytes if self.compressed_nbytes else math.nan

    def __str__(self) -> str:
        compressed = f"{self.tensors} tensors, {self.nbytes:,} bytes, compressed to {self.compressed_nbytes:,}"
        return f"{compressed} (ratio {self.ratio:.2f}); {self.kept_tensors}, {self.kept_nbytes:,} bytes, left alone"


class StoredValues:
    """The values of one or more saved tensors, compressed.

    Attributes:
        compressed: the values; of booleans those of 0 and 1 in float16.
        zeros: which of them are zeros (as booleans are compressed), and must be the only ones; None where all may be.
        storage: a weak reference to the memory that they come from, so that nothing keeps it.
    """

    __slots__ = ("__weakref__", "compressed", "storage", "zeros")

    def __init__(self, x: Tensor, codec: Codec, seed: int) -> None:
        values = in_memory_order(x)
        values = x if values is None else values
        self.compressed = _compressed_bits(values) if codec is _BITS else _compressed(values, codec, seed)
        self.zeros = _compressed_bits(values <= 0) if _is_rectified(x) and not isinstance(codec, Lossless) else None
        self.storage = weakref.ref(x.untyped_storage())

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads."""
        return self.compressed.payload.nbytes + (0 if self.zeros is None else self.zeros.payload.nbytes)

    def restored(self) -> Tensor:
        """The values."""
        values = decompress(self.compressed)
        if self.zeros is None:
            return values
        return values.clamp_(min=torch.finfo(values.dtype).tiny).masked_fill_(decompress(self.zeros).bool(), 0)


class CompressedTensor(NamedTuple):
    """A saved tensor whose values are compressed."""

    stored: StoredValues
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads."""
        return self.stored.nbytes

    def restored(self) -> Tensor:
        """The tensor, in new memory."""
        with torch.no_grad():
            return with_layout(self.stored.restored().to(self.dtype), self.shape, self.strides)


class KeptTensor(NamedTuple):
    """A saved tensor that is left alone."""

    tensor: Tensor
    version: int

    def restored(self) -> Tensor:
        """The tensor.

        Raises:
            RuntimeError: it was changed in place since it was saved. PyTorch does not look where there are hooks.
        """
        version = self.tensor._version
        if version != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{self.tensor.dtype}{list(self.tensor.shape)} is at version {version}; expected version {self.version}"
            )
        return self.tensor


class _Settings(NamedTuple):
    rules: tuple[Rule, ...]
    min_size: int
    modules: tuple[Module, ...]
    storages: tuple[torch.UntypedStorage, ...]
    predicates: tuple[Callable[[Tensor], Any], ...]
    seed: int | None


def compressed_activations(
    codec: Codec | Sequence[Rule] | None = None,
    *,
    min_size: int = 4096,
    skip: _Skip | Iterable[_Skip] = (),
    seed: int | None = None,
) -> AbstractContextManager[ActivationStatistics]:
    """Keep what autograd saves for the backward pass compressed, until it is asked for.

    A context manager (and a decorator) around the forward pass; the backward pass may be inside or not::

        with arrcomp.torch.compressed_activations() as statistics:
            loss = criterion(model(x), y)
        loss.backward()

    Outputs of the model do not change; gradients are those of the activations as they come back, so they are the same
    to the last bit with a lossless codec. Compressed is each tensor whose dtype a codec takes, once: whatever covers
    the same values in memory, as views and transposes do, shares one payload, which goes when the graph does. Strides
    come back too. Booleans (masks) that the codec does not take are kept in one bit each, exactly; and so is which
    values a ReLU made zero, beside the values, since that is what its derivative asks for.

    Left alone are parameters, other leaves that require a gradient, their views, and parameters in the dtype of
    autocast (where autograd's graph shows it: not those that require no gradient, and not what compiled code casts);
    small tensors; integers that the codec does not take; expanded and overlapping views, which are larger than their
    memory; sparse, nested and conjugated tensors, subclasses, and what is neither on the CPU nor on CUDA. As PyTorch
    does without hooks, the backward pass refuses those that were changed in place. Compressed ones are kept as they
    were.

    Nothing waits for a device with a codec of fixed rate. Payloads of other codecs take the memory of the tensor until
    their length is known: on CUDA each is waited for.

    These are hooks of PyTorch (`torch.autograd.graph.saved_tensors_hooks`), and what it says of them holds: of several,
    one in another, the innermost counts. `torch.utils.checkpoint` brings its own: around it, this compresses the inputs
    of its regions, inside of a region, it keeps what would have been calculated again. Around a compiled function it
    compresses what the function saves; inside of one it is a graph break: what is called inside is still compiled.
    `torch.func` refuses hooks. They are those of the thread that enters.

    Of the codecs of fixed rate the default makes the smallest error of gradients for its bits, and one that averages
    out over steps (bench/RESULTS.md). On the CPU `ErrorBounded` takes fewer bits for the same error.

    Reference: J. Chen et al., "ActNN", arXiv:2104.14129: gradients are unbiased where the compression is, in layers
    that are linear in what they save.

    Args:
        codec: what to keep, or rules (`arrcomp.Rule`, with its default `names`: saved tensors have none) of which the
            first that fits counts; None for 8 bits, rounded at random: ``QSGD(bits=8, rounding="stochastic")``. Rules
            such as ``[Rule(Lossless(), dtypes="int64"), Rule(codec)]`` take the indices of max-pooling too.
        min_size: tensors with fewer values are left alone.
        skip: what else is left alone: tensors (all of their memory), what is saved while a module runs (in code that is
            not compiled), what a function of the saved tensor says; or several of these.
        seed: of codecs that round at random, 0 to 2^64 - 1. None for another one in each context of the process, which
            follows from `torch.manual_seed` without drawing numbers. Each saved tensor has one of its own derived from
            it.

    Returns:
        The context manager; ``with ... as`` gives `ActivationStatistics`. It can be entered once.

    Raises:
        TypeError: `codec` is neither a codec nor rules, or another argument is of a wrong type.
        ValueError: `min_size` or `seed` is out of its range.
        RuntimeError: by the backward pass, as PyTorch has it: a tensor that was left alone was changed in place.

    >>> import torch, arrcomp.torch
    >>> layer, x = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.GELU()), torch.randn(128, 64)
    >>> with arrcomp.torch.compressed_activations() as statistics:
    ...     y = layer(x)
    >>> statistics.tensors, statistics.nbytes, round(statistics.ratio, 2)
    (2, 294912, 3.94)
    >>> y.sum().backward()
    """
    return _active(_checked(codec, min_size, skip, seed))


@contextmanager
def _active(settings: _Settings) -> Iterator[ActivationStatistics]:
    packing = _Packing(settings)
    with ExitStack() as stack:
        for module in settings.modules:
            stack.callback(module.register_forward_pre_hook(packing.enter_module).remove)
            stack.callback(module.register_forward_hook(packing.leave_module, always_call=True).remove)
        # Where a compiled function falls back to Python, the compiler would look at the hooks too.
        pack, unpack = _disable(packing.pack), _disable(_unpack)
        stack.enter_context(saved_tensors_hooks(pack, unpack))
        yield packing.statistics


def _unpack(packed: CompressedTensor | KeptTensor) -> Tensor:
    return packed.restored()


class _Packing:
    """What one context does with each tensor that is saved. Nothing here keeps a tensor."""

    def __init__(self, settings: _Settings) -> None:
        self.statistics = ActivationStatistics()
        self._settings = settings
        self._seed = _context_seed() if settings.seed is None else settings.seed
        self._stored: weakref.WeakValueDictionary[Hashable, StoredValues] = weakref.WeakValueDictionary()
        self._tensors = 0
        self._modules = 0  # of those to skip, how many are running
        self._lock = threading.Lock()  # the backward pass on a GPU has a thread of its own, and may save too

    def enter_module(self, *_: Any) -> None:
        self._modules += 1

    def leave_module(self, *_: Any) -> None:
        self._modules = max(self._modules - 1, 0)

    def pack(self, x: Tensor) -> CompressedTensor | KeptTensor:
        is_leaf = belongs_to_leaf(x)
        codec = None if is_leaf else self._codec_for(x)
        if codec is not None:
            return CompressedTensor(self._values_of(x, codec), tuple(x.shape), x.stride(), x.dtype)
        if not is_leaf:
            with self._lock:
                self.statistics.kept_tensors += 1
                self.statistics.kept_nbytes += x.numel() * x.itemsize
        # Without its node: that may be the one that saves it, and they would keep each other.
        return KeptTensor(x.detach(), x._version)

    def _codec_for(self, x: Tensor) -> Codec | None:
        """The codec for a saved tensor; None where it is left alone."""
        if not is_plain(x) or x.numel() < self._settings.min_size or self._is_skipped(x):
            return None
        try:
            row = row_of(x.dtype)
        except TypeError:  # the format has no such type
            return None
        for rule in self._settings.rules:
            if rule.fits("", row, tuple(x.shape)):
                return rule.codec
        return _BITS if x.dtype == torch.bool else None

    def _is_skipped(self, x: Tensor) -> bool:
        if self._modules or any(predicate(x) for predicate in self._settings.predicates):
            return True
        storage = x.untyped_storage()
        return any(storage is skipped for skipped in self._settings.storages)

    def _values_of(self, x: Tensor, codec: Codec) -> StoredValues:
        place, storage = (place_of(x), id(codec)), x.untyped_storage()
        with self._lock:
            found = self._stored.get(place)
            # A storage that is gone may have left its identity to another.
            if found is not None and found.storage() is storage and is_tracked(x):
                self.statistics.shared += 1
                return found
            seed = derived(self._seed, self._tensors)
            self._tensors += 1
        made = StoredValues(x, codec, seed)
        with self._lock:
            self._stored[place] = made
            self.statistics.tensors += 1
            self.statistics.nbytes += x.nbytes
            self.statistics.compressed_nbytes += made.nbytes
        return made


def _is_rectified(x: Tensor) -> bool:
    """Whether this comes out of a ReLU, whose derivative is told by which values are zeros."""
    return x.grad_fn is not None and x.grad_fn.name() == "ReluBackward0"


def _compressed_bits(x: Tensor) -> Compressed:
    return compress(x.to(torch.float16), _BITS)


def _compressed(values: Tensor, codec: Codec, seed: int) -> Compressed:
    c = compress(values, codec, seed=seed)
    # A payload whose length is not known yet has memory of the largest size: nothing would be saved.
    return c if c.payload.length is None else c.trim()


def _context_seed() -> int:
    return derived(torch.initial_seed() & MAX_SEED, next(_contexts))


def _checked(codec: Any, min_size: Any, skip: Any, seed: Any) -> _Settings:
    rules = checked_rules(DEFAULT_CODEC if codec is None else codec)
    min_size = checked_integer("min_size", min_size, 0, MAX_VALUES)
    several = isinstance(skip, Iterable) and not isinstance(skip, (Module, Tensor))
    skips = list(skip) if several else [skip]
    for one in skips:
        if isinstance(one, type) or not (isinstance(one, Tensor) or callable(one)):
            raise TypeError(f"skip has {one!r}; modules, tensors and functions of a tensor are allowed")
    return _Settings(
        rules,
        min_size,
        tuple(one for one in skips if isinstance(one, Module)),
        tuple(one.untyped_storage() for one in skips if isinstance(one, Tensor)),
        tuple(one for one in skips if not isinstance(one, (Module, Tensor))),
        None if seed is None else checked_integer("seed", seed, 0, MAX_SEED),
    )
