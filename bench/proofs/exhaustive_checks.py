"""What bench/proofs/exhaustive.py compares: values with what was promised of them, machines with each other.

Differences are taken in a wider type than the one under test (`WIDER`), whose rounding cannot turn a larger number into
a smaller one: below the bound it proves that the bound holds. What is too close to tell is settled in integers.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import ErrorBounded, _core, cpu
from proofs.chunk_modes import modes_of

Array = NDArray[Any]

CUDA = "cuda"
BLOCK = 1 << 15  # values at a time: all that is made of them stays in a cache
_BYTES = 8 * BLOCK
WIDER = {2: np.float64, 4: np.float64, 8: np.longdouble}  # by bytes of a value
_LARGEST = Fraction(np.finfo(np.float64).max)


def longdouble_is_wider() -> bool:
    """Whether this machine's long double has mantissas of 64 bits, as checks of float64 need."""
    return np.finfo(np.longdouble).nmant >= 63


class Limit(Protocol):
    """How far each value may be from where it was."""

    def around(self, magnitude: Array) -> tuple[Any, Any]:
        """Numbers of the wider type, at most and at least the limit of values of these magnitudes."""

    def exact(self, value: Fraction) -> Fraction:
        """The limit of a value."""


@dataclass(frozen=True)
class Absolute:
    """The same for all."""

    limit: Fraction

    def around(self, magnitude: Array) -> tuple[Any, Any]:
        if self.limit > _LARGEST:
            return float(_LARGEST), np.inf
        near = float(self.limit)
        low = near if Fraction(near) <= self.limit else np.nextafter(near, 0.0)
        high = near if Fraction(near) >= self.limit else np.nextafter(near, np.inf)
        return low, high

    def exact(self, value: Fraction) -> Fraction:
        return self.limit


@dataclass(frozen=True)
class Pointwise:
    """A share of each value."""

    share: float

    def around(self, magnitude: Array) -> tuple[Any, Any]:
        near = magnitude * magnitude.dtype.type(self.share)
        return near * (1 - 2.0**-40), near * (1 + 2.0**-40)

    def exact(self, value: Fraction) -> Fraction:
        return Fraction(self.share) * abs(value)


def limit_of(x: Array, codec: ErrorBounded) -> Limit:
    """The promise of `codec` for the array `x`."""
    if codec.pointwise is not None:
        return Pointwise(codec.pointwise)
    if codec.abs is not None:
        return Absolute(Fraction(codec.abs))
    finite = x[np.isfinite(x)]
    span = Fraction(float(finite.max())) - Fraction(float(finite.min())) if finite.size else Fraction(0)
    return Absolute(Fraction(codec.rel or 0) * span)


def bits_of(array: Array) -> Array:
    """The bits of its elements."""
    return array.view(f"u{array.itemsize}")


def broken_promises(x: Array, y: Array, codec: arrcomp.Codec) -> int:
    """How many elements of `y` are not what `codec` promises of those of `x`; both flat.

    Raises:
        RuntimeError: they are of float64, and this machine has no wider type.
    """
    if not isinstance(codec, ErrorBounded):
        return int(np.count_nonzero(bits_of(x) != bits_of(y)))
    wide = WIDER[x.itemsize]
    if wide is np.longdouble and not longdouble_is_wider():
        raise RuntimeError("float64 cannot be checked here: long double has no more bits")
    with np.errstate(all="ignore"):
        limit = limit_of(x, codec)
        pairs = ((x[i : i + BLOCK], y[i : i + BLOCK]) for i in range(0, x.size, BLOCK))
        return sum(_broken(a, b, limit, wide) for a, b in pairs)


def _broken(x: Array, y: Array, limit: Limit, wide: type[np.floating[Any]]) -> int:
    before = x.astype(wide)
    error = np.abs(before - y.astype(wide))
    low, high = limit.around(np.abs(before))
    open_ = np.flatnonzero(~(error < low))  # NaN, infinite, far away or too close to tell
    open_ = open_[bits_of(x)[open_] != bits_of(y)[open_]]
    finite = open_[np.isfinite(before[open_]) & np.isfinite(y[open_])]
    high = np.broadcast_to(high, x.shape)
    close = finite[error[finite] <= high[finite]]
    return open_.size - sum(_within(x[i], y[i], limit) for i in close)


def _within(x: Any, y: Any, limit: Limit) -> bool:
    """Whether a finite value with other bits than before is within its limit, exactly; a limit of 0 keeps all bits."""
    before = Fraction(float(x))
    allowed = limit.exact(before)
    return allowed > 0 and abs(before - Fraction(float(y))) <= allowed


class Place(Protocol):
    """Where arrays are compressed and decompressed."""

    @property
    def name(self) -> str:
        """Of an instruction set, or a device."""

    def compress(self, x: Array, codec: arrcomp.Codec) -> bytes:
        """The stream of an array."""

    def decompress(self, stream: bytes) -> Array:
        """The array of a stream."""


@dataclass(frozen=True)
class InstructionSet:
    """One of the processor's, by its name; it stays in use."""

    name: str

    def compress(self, x: Array, codec: arrcomp.Codec) -> bytes:
        cpu.use_instruction_set(self.name)
        return arrcomp.compress(x, codec, threads=1).to_bytes()

    def decompress(self, stream: bytes) -> Array:
        cpu.use_instruction_set(self.name)
        found: Array = arrcomp.decompress(arrcomp.from_bytes(stream), threads=1)
        return found


@dataclass(frozen=True)
class Torch:
    """A device of PyTorch's, by its name."""

    name: str

    def compress(self, x: Array, codec: arrcomp.Codec) -> bytes:
        import torch

        # NumPy's bfloat16 is none that PyTorch knows: the bits are handed over.
        bits = torch.from_numpy(x.view(f"i{x.itemsize}")).to(self.name)
        return arrcomp.compress(bits.view(getattr(torch, x.dtype.name)), codec).to_bytes()

    def decompress(self, stream: bytes) -> Array:
        import torch

        compressed = arrcomp.from_bytes(stream)
        found = arrcomp.decompress(compressed, like=torch.empty(0, device=self.name))
        bits: Array = found.view(getattr(torch, f"int{8 * found.element_size()}")).cpu().numpy()
        return bits.view(compressed.dtype)


def cuda_at_hand() -> bool:
    """Whether arrcomp and PyTorch find a GPU here."""
    if _core.cuda_device_count() == 0 or importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def place_named(name: str) -> Place:
    """An instruction set, or CUDA."""
    return Torch(name) if name == CUDA else InstructionSet(name)


def differing_bytes(a: Any, b: Any) -> int:
    """How many bytes of two buffers differ; of other lengths, those that only one of them has."""
    a, b = (np.frombuffer(buffer, np.uint8) for buffer in (a, b))
    both = min(a.size, b.size)
    blocks = (slice(start, min(start + _BYTES, both)) for start in range(0, both, _BYTES))
    return sum(int(np.count_nonzero(a[block] != b[block])) for block in blocks) + max(a.size, b.size) - both


def tried(x: Array, codec: arrcomp.Codec, places: Sequence[Place]) -> Counter[str]:
    """Compress and decompress a flat array in all places.

    The promise is checked of what the first place gives, and the others give the same.

    Returns:
        `values`, `broken` promises, `differing` bytes of streams and of arrays, and the chunks of each mode.
    """
    first, *others = places
    stream = first.compress(x, codec)
    y = first.decompress(stream)
    found = Counter(values=x.size, broken=broken_promises(x, y, codec))
    for place in others:
        again, decoded = place.compress(x, codec), place.decompress(stream)
        found["differing"] += differing_bytes(again, stream)
        found["differing"] += differing_bytes(bits_of(decoded), bits_of(y))
    return found + modes_of(stream)
