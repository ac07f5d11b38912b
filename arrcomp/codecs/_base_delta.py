"""Base-delta-immediate compression of bit patterns."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .._arguments import check_choice, checked_integer, wrong_type
from .._dtypes import DType
from ._base import TRUNCATING_ROUNDINGS, Codec, Parameters

_MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52, "complex64": 23, "complex128": 52}
_MOST_WIDTH = 64


@dataclass(frozen=True, kw_only=True, repr=False)
class BaseDelta(Codec):
    """Keep the bit patterns of lines of 64 words as small differences from a few base words.

    Guarantee: with ``drop_bits=0`` the decompressed array equals the original bit for bit. Otherwise, for every finite
    value x and its decompressed value y, with u the value of the lowest mantissa bit of x that is kept (of subnormal
    numbers too)::

        rounding="nearest"      |x - y| <= u / 2, ties to even
        rounding="stochastic"   |x - y| < u, and y is unbiased: its mean over the seeds is x
        rounding="truncate"     |x - y| < u, |y| <= |x|

    NaNs, infinities and signs are kept. A finite number that would be rounded to infinity becomes the largest finite
    number with this many bits: then |x - y| < u. Random numbers have 32 bits and depend on the seed (an argument of
    `compress`) and on the element's index alone.

    Method: base-delta-immediate coding (G. Pekhimenko et al., "Base-Delta-Immediate Compression", PACT 2012, sections 3
    and 4) of lines of 64 words of the element's width. Low bits that are 0 in a whole chunk of 4096 words are left out.
    Zeros are left out too, by a mask of one bit a word where that saves bytes. Each line then uses the smallest of: raw
    words; deltas from zero; deltas from a base (no deltas where all words are equal); and, with one or two more bits a
    word that select the base, deltas from zero or a base, from two bases, or from zero or two bases. Deltas are signed
    and packed with their exact widths. A chunk that does not get smaller is stored raw, with 4 bytes more.

    Takes every data type of the format, of any shape; with `drop_bits`, float16, bfloat16, float32, float64, complex64
    and complex128.

    Args:
        bases: the most base words in a line besides zero, 1 or 2. Two take more time to find.
        delta_bits: the widths that deltas may have, each 1 to 64 bits, for instance (8, 16, 24); None for all. Widths
            from the word's on have no effect. (Words of 64 bits have even widths alone: an odd one is rounded up.)
        drop_bits: number of low mantissa bits that are rounded off first, at most the mantissa's own number.
        rounding: how they are rounded off: "nearest", "stochastic" or "truncate".

    >>> import numpy, arrcomp
    >>> x = numpy.arange(1_000_000, 1_100_000)
    >>> round(arrcomp.compress(x, BaseDelta()).ratio, 1)
    8.9
    >>> BaseDelta(delta_bits=(8, 16, 24), drop_bits=12)
    BaseDelta(delta_bits=(8, 16, 24), drop_bits=12)
    """

    name: ClassVar[str] = "base-delta"
    id: ClassVar[int] = 7
    dtypes: ClassVar[tuple[str, ...] | None] = None

    bases: int = 1
    delta_bits: tuple[int, ...] | None = None
    drop_bits: int = 0
    rounding: Literal["nearest", "stochastic", "truncate"] = "nearest"

    def _check(self) -> None:
        self._set(
            bases=checked_integer("bases", self.bases, 1, 2),
            delta_bits=_checked_widths(self.delta_bits),
            drop_bits=checked_integer("drop_bits", self.drop_bits, 0, max(_MANTISSA_BITS.values())),
        )
        check_choice("rounding", self.rounding, TRUNCATING_ROUNDINGS)

    @property
    def needs_seed(self) -> bool:
        return self.rounding == "stochastic" and self.drop_bits > 0

    def takes(self, dtype: DType) -> bool:
        return self.drop_bits <= _MANTISSA_BITS.get(dtype.name, 0)

    def check_dtype(self, dtype: DType) -> None:
        """Raise unless `drop_bits` suits this data type.

        Raises:
            TypeError: `drop_bits` is above 0, and this is not a float of 16 bits or more.
            ValueError: the mantissa has fewer bits.
        """
        if self.takes(dtype):
            return
        if dtype.name not in _MANTISSA_BITS:
            expected = f"{', '.join(_MANTISSA_BITS)} for BaseDelta(drop_bits={self.drop_bits})"
            raise TypeError(f"dtype: expected {expected}, got {dtype.name}; drop_bits=0 takes every dtype")
        most = _MANTISSA_BITS[dtype.name]
        raise ValueError(f"drop_bits: expected 0 to {most}, the mantissa bits of {dtype.name}, got {self.drop_bits}")

    def named_parameters(self) -> Parameters:
        widths = sum(1 << width % 64 for width in self.delta_bits or range(_MOST_WIDTH))
        return {
            "bases": self.bases,
            "drop_bits": self.drop_bits,
            "rounding": TRUNCATING_ROUNDINGS.index(self.rounding),
            "widths_low": widths & 0xFFFFFFFF,
            "widths_high": widths >> 32,
        }

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(), cls(bases=2))


def _checked_widths(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (tuple, list)):
        raise wrong_type("delta_bits", "a tuple of widths, or None", value)
    widths = tuple(checked_integer(f"delta_bits[{i}]", width, 1, _MOST_WIDTH) for i, width in enumerate(value))
    if not widths:
        raise ValueError("delta_bits: expected at least one width, or None for all, got none")
    return tuple(sorted(set(widths)))
