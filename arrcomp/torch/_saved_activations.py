"""Compression of the tensors that autograd saves: `compressed_activations`."""

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
from .._arguments import checked_integer, shown
from .._dtypes import MAX_VALUES
from .._methods.seeds import MAX_SEED, derived
from ..codecs import QSGD, Codec, Lossless
from ..codecs._rules import Rule, checked_rules
from ._functions import compress, decompress
from ._saved_tensors import belongs_to_leaf, in_memory_order, is_plain, is_tracked, values_key, with_layout
from ._tensors import ROWS

DEFAULT_CODEC = QSGD(bits=8, rounding="stochastic")
_BITS = QSGD(bits=1, bucket_size=4096)  # exact for 0 and 1: the two levels are a bucket's smallest and largest value

_disable: Any = torch.compiler.disable  # PyTorch has no types for it

_Skip = Callable[[Tensor], Any] | Module | Tensor
_contexts = itertools.count()


@dataclass
class ActivationStatistics:
    """What autograd saved while `compressed_activations` was active.

    Attributes:
        tensors: number of compressed tensors.
        nbytes: their bytes before compression.
        compressed_nbytes: bytes of their payloads.
        shared: number of saved tensors that share the payload of an earlier one.
        kept_tensors: number of tensors left uncompressed, without parameters; repeated ones are counted each time.
        kept_nbytes: their bytes.
    """

    tensors: int = 0
    nbytes: int = 0
    compressed_nbytes: int = 0
    shared: int = 0
    kept_tensors: int = 0
    kept_nbytes: int = 0

    @property
    def ratio(self) -> float:
        """Bytes before compression divided by bytes after; NaN if nothing was compressed."""
        return self.nbytes / self.compressed_nbytes if self.compressed_nbytes else math.nan

    def __str__(self) -> str:
        compressed = f"{self.tensors} tensors, {self.nbytes:,} bytes, compressed to {self.compressed_nbytes:,}"
        return f"{compressed} (ratio {self.ratio:.2f}); {self.kept_tensors}, {self.kept_nbytes:,} bytes, uncompressed"


class StoredValues:
    """The values of one or more saved tensors, compressed; booleans as 0 and 1 in float16.

    `zeros` is a compressed mask of exactly the zeros, for the output of a ReLU, whose derivative depends on them; else
    None. `storage` is a weak reference to the original storage.
    """

    __slots__ = ("__weakref__", "compressed", "storage", "zeros")

    def __init__(self, x: Tensor, codec: Codec, seed: int) -> None:
        values = in_memory_order(x)
        values = x if values is None else values
        is_rectified = x.grad_fn is not None and x.grad_fn.name() == "ReluBackward0"
        c = _compressed_bits(values) if codec is _BITS else compress(values, codec, seed=seed)
        # Before its length is known, a payload occupies its capacity, which saves no memory.
        self.compressed = c if c.payload.length is None else c.trim()
        self.zeros = _compressed_bits(values <= 0) if is_rectified and not isinstance(codec, Lossless) else None
        self.storage = weakref.ref(x.untyped_storage())

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads."""
        return self.compressed.payload.nbytes + (0 if self.zeros is None else self.zeros.payload.nbytes)

    def restored(self) -> Tensor:
        """Decompress the values."""
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
    """A saved tensor that is not compressed."""

    tensor: Tensor
    version: int

    def restored(self) -> Tensor:
        """The tensor.

        Raises:
            RuntimeError: it was changed in place since it was saved. PyTorch does not check this for hooks.
        """
        version = self.tensor._version
        if version != self.version:
            modified = "one of the variables needed for gradient computation has been modified by an inplace operation"
            shown = f"{self.tensor.dtype}{list(self.tensor.shape)}"
            raise RuntimeError(f"{modified}: {shown} is at version {version}; expected version {self.version}")
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
    """Compress the tensors that autograd saves, from the forward pass until the backward pass uses them.

    A context manager (and decorator) for the forward pass; the backward pass may be inside or outside::

        with arrcomp.torch.compressed_activations() as statistics:
            loss = criterion(model(x), y)
        loss.backward()

    Outputs do not change. Gradients are computed from the decompressed activations, so a lossless codec changes no bit.
    Views and transposes of the same values share one payload, which is freed with the graph. Strides are restored.
    Boolean masks take one bit per value, exactly. The output of a ReLU gets such a mask of its zeros, since its
    derivative depends on them.

    These tensors are not compressed: parameters and other leaves that require a gradient, their views, and autocast
    copies of parameters (if the autograd graph shows it: not for frozen parameters, nor for casts in compiled code);
    small tensors; integers that the codec does not support; expanded and overlapping views; sparse, nested, conjugated
    and subclassed tensors; other devices than the CPU and CUDA. As in PyTorch, the backward pass raises if one of them
    was changed in place. Compressed tensors keep the values from when they were saved.

    Fixed-rate codecs are asynchronous. Other codecs synchronize CUDA for each tensor, to learn the payload's length.

    These are `torch.autograd.graph.saved_tensors_hooks`: they are thread-local, the innermost of nested contexts
    applies, and `torch.func` refuses them. Around `torch.utils.checkpoint`, the inputs of its regions are compressed;
    inside a region, tensors are saved that would have been recomputed. Around a compiled function, what it saves is
    compressed; inside one, the context is a graph break.

    Among fixed-rate codecs the default has the smallest gradient error for its bits, and that error averages out over
    steps (bench/RESULTS.md). On the CPU `ErrorBounded` takes fewer bits for the same error.

    `arrcomp.jax.compress_residuals` does the same for JAX, where it is a function transformation like
    `jax.checkpoint`.

    Reference: J. Chen et al., "ActNN", arXiv:2104.14129: gradients are unbiased if the compression is, for layers that
    are linear in what they save.

    Args:
        codec: what to keep, or rules (`arrcomp.Rule` without `names`: saved tensors have none), of which the first
            match wins; None for ``QSGD(bits=8, rounding="stochastic")``. Rules such as
            ``[Rule(Lossless(), dtypes="int64"), Rule(codec)]`` also compress the indices of max-pooling.
        min_size: tensors with fewer values are not compressed.
        skip: what else is not compressed: tensors (with everything in the same memory), modules (what is saved while
            they run, outside of compiled code), functions that return True for a saved tensor; or several of these.
        seed: for stochastic rounding, 0 to 2^64 - 1. Each saved tensor derives its own from it. With None, each context
            derives one from `torch.manual_seed`, without advancing the generator.

    Returns:
        The context manager, which can be entered once. ``with ... as`` gives `ActivationStatistics`.

    Raises:
        TypeError: `codec` is neither a codec nor rules, or another argument has a wrong type.
        ValueError: `min_size` or `seed` is out of range.
        RuntimeError: in the backward pass: an uncompressed saved tensor was changed in place.

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
    packer = _Packer(settings)
    with ExitStack() as stack:
        for module in settings.modules:
            stack.callback(module.register_forward_pre_hook(packer.enter_module).remove)
            stack.callback(module.register_forward_hook(packer.leave_module, always_call=True).remove)
        # Otherwise the compiler would trace the hooks after a graph break.
        stack.enter_context(saved_tensors_hooks(_disable(packer.pack), _disable(lambda packed: packed.restored())))
        yield packer.statistics


class _Packer:
    """Packs the saved tensors of one context. Holds no references to tensors."""

    def __init__(self, settings: _Settings) -> None:
        self.statistics = ActivationStatistics()
        self._settings = settings
        self._seed = _context_seed() if settings.seed is None else settings.seed
        self._stored: weakref.WeakValueDictionary[Hashable, StoredValues] = weakref.WeakValueDictionary()
        self._tensors = 0
        self._modules = 0  # number of skipped modules that are running
        self._lock = threading.Lock()  # the backward pass of a GPU runs in its own thread, and may save tensors too

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
        # Detached: the tensor's node may be the one that saves it, which would be a reference cycle.
        return KeptTensor(x.detach(), x._version)

    def _codec_for(self, x: Tensor) -> Codec | None:
        """The codec for a saved tensor; None if it is not compressed."""
        row = ROWS.get(x.dtype)
        if row is None or not is_plain(x) or x.numel() < self._settings.min_size or self._is_skipped(x):
            return None
        fitting = (rule.codec for rule in self._settings.rules if rule.fits("", row, tuple(x.shape)))
        return next(fitting, _BITS if x.dtype == torch.bool else None)

    def _is_skipped(self, x: Tensor) -> bool:
        storage, settings = x.untyped_storage(), self._settings
        inside = self._modules or any(predicate(x) for predicate in settings.predicates)
        return bool(inside) or any(storage is skipped for skipped in settings.storages)

    def _values_of(self, x: Tensor, codec: Codec) -> StoredValues:
        key, storage = (values_key(x), id(codec)), x.untyped_storage()
        with self._lock:
            found = self._stored.get(key)
            # The id of a freed storage may be reused.
            if found is not None and found.storage() is storage and is_tracked(x):
                self.statistics.shared += 1
                return found
            seed = derived(self._seed, self._tensors)
            self._tensors += 1
        made = StoredValues(x, codec, seed)
        with self._lock:
            self._stored[key] = made
            self.statistics.tensors += 1
            self.statistics.nbytes += x.nbytes
            self.statistics.compressed_nbytes += made.nbytes
        return made


def _compressed_bits(x: Tensor) -> Compressed:
    return compress(x.to(torch.float16), _BITS)


def _context_seed() -> int:  # a function, where the compiler breaks the graph: not within `__init__`
    return derived(torch.initial_seed() & MAX_SEED, next(_contexts))


def _checked(codec: Any, min_size: Any, skip: Any, seed: Any) -> _Settings:
    rules = checked_rules(DEFAULT_CODEC if codec is None else codec)
    min_size = checked_integer("min_size", min_size, 0, MAX_VALUES)
    several = isinstance(skip, Iterable) and not isinstance(skip, (Module, Tensor))
    skips = list(skip) if several else [skip]
    for one in skips:
        if isinstance(one, type) or not (isinstance(one, Tensor) or callable(one)):
            raise TypeError(f"skip: expected modules, tensors or functions of a tensor, got {shown(one)}")
    return _Settings(
        rules,
        min_size,
        tuple(one for one in skips if isinstance(one, Module)),
        tuple(one.untyped_storage() for one in skips if isinstance(one, Tensor)),
        tuple(one for one in skips if not isinstance(one, (Module, Tensor))),
        None if seed is None else checked_integer("seed", seed, 0, MAX_SEED),
    )
