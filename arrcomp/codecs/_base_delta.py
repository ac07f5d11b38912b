"""Base-delta-immediate compression of bit patterns."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .._arguments import check_choice, checked_integer
from .._dtypes import DType
from ._base import TRUNCATING_ROUNDINGS, Codec

_MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52, "complex64": 23, "complex128": 52}
_MOST_BASES = 2
_MOST_WIDTH = 64


@dataclass(frozen=True, kw_only=True, repr=False)
class BaseDelta(Codec):
    """Keep the bit patterns of lines of 64 words as small differences from a few base words.

    Guarantee: with ``drop_bits=0`` what comes back equals the array bit for bit. Else, for every finite x and the y
    that comes back, with u the place value of the lowest mantissa bit that is kept in x (subnormal numbers too)::

        rounding="nearest"      |x - y| <= u / 2, ties to even
        rounding="stochastic"   |x - y| < u, and y is unbiased: its mean over the seeds is x
        rounding="truncate"     |x - y| < u, |y| <= |x|

    NaNs stay NaNs, infinities infinities, and signs what they are. A finite number that would be rounded to infinity
    becomes the largest finite number with so few bits instead: then |x - y| < u. Random numbers follow from the seed
    (an argument of `compress`) and the element's index alone; they have 32 bits.

    Method: base-delta-immediate coding (G. Pekhimenko et al., "Base-Delta-Immediate Compression", PACT 2012, sections 3
    and 4) of lines of 64 words of the element's width. Low bits that are 0 in a whole chunk of 4096 words are left out;
    so are zeros, by a mask of one bit a word where that pays. Each line then takes the smallest of: raw words; deltas
    from zero; deltas from a base (none where all words are equal); and, with one or two bits a word that say which,
    deltas from zero or a base, from two bases, or from zero or two bases. Deltas are signed, and packed without
    rounding their widths up. Where nothing pays, a chunk is stored raw, with 4 bytes more.

    Takes every data type of the format, of any shape; with `drop_bits`, float16, bfloat16, float32, float64, complex64
    and complex128.

    Args:
        bases: at most so many base words in a line besides zero, 1 or 2. Two take more time to find.
        delta_bits: the widths that deltas may have, each 1 to 64 bits, as (8, 16, 24); None for all. Widths as large as
            the word have no effect. (Words of 64 bits take even widths: an odd one stands for the next.)
        drop_bits: so many low bits of each mantissa are rounded off first, at most as many as the mantissa has.
        rounding: of what is dropped: "nearest", "stochastic" or "truncate".

    Raises:
        TypeError, ValueError: an argument is not allowed.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "bases", checked_integer("bases", self.bases, 1, _MOST_BASES))
        object.__setattr__(self, "delta_bits", _checked_widths(self.delta_bits))
        most = max(_MANTISSA_BITS.values())
        object.__setattr__(self, "drop_bits", checked_integer("drop_bits", self.drop_bits, 0, most))
        check_choice("rounding", self.rounding, TRUNCATING_ROUNDINGS)

    @property
    def needs_seed(self) -> bool:
        return self.rounding == "stochastic" and self.drop_bits > 0

    def takes(self, dtype: DType) -> bool:
        return self.drop_bits <= _MANTISSA_BITS.get(dtype.name, 0)

    def check_dtype(self, dtype: DType) -> None:
        """Raise unless `drop_bits` suits this data type.

        Raises:
            TypeError: it is no float of 16 bits or more, and bits shall be dropped.
            ValueError: its mantissa has fewer bits.
        """
        if self.takes(dtype):
            return
        if dtype.name not in _MANTISSA_BITS:
            raise TypeError(
                f"dtype {dtype.name}: BaseDelta drops bits of {', '.join(_MANTISSA_BITS)}; "
                "drop_bits=0 takes every dtype"
            )
        most = _MANTISSA_BITS[dtype.name]
        raise ValueError(f"drop_bits={self.drop_bits}: {dtype.name} has {most} mantissa bits; 0 to {most} is allowed")

    def core_parameters(self) -> tuple[float, ...]:
        widths = (
            (1 << _MOST_WIDTH) - 1 if self.delta_bits is None else sum(1 << width % 64 for width in self.delta_bits)
        )
        low, high = widths & 0xFFFFFFFF, widths >> 32
        return (
            float(self.bases),
            float(self.drop_bits),
            float(TRUNCATING_ROUNDINGS.index(self.rounding)),
            float(low),
            float(high),
        )

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(), cls(bases=2))


def _checked_widths(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"delta_bits={value!r} is a {type(value).__name__}; a tuple of widths, or None, is allowed")
    widths = tuple(checked_integer(f"delta_bits[{i}]", width, 1, _MOST_WIDTH) for i, width in enumerate(value))
    if not widths:
        raise ValueError("delta_bits=(): at least one width, or None for all, is allowed")
    return tuple(sorted(set(widths)))
