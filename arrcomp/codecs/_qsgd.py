"""Quantization in buckets."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .._arguments import check_choice, check_flag, checked_integer
from ._base import FLOATS, ROUNDINGS, Codec, checked_bucket_size

_NORMS = ("minmax", "l2", "linf")
_CODINGS = ("packed", "entropy")


@dataclass(frozen=True, kw_only=True, repr=False)
class QSGD(Codec):
    """Keep each value as one of 2^bits levels of its bucket.

    The array, in C order, is cut into buckets of `bucket_size` values, of which the last may be shorter. With
    ``norm="minmax"`` a bucket's levels lie at equal distances from its smallest to its largest value::

        unit = (max - min) / (2^bits - 1);  level = floor((x - min) / unit + r);  y = min + unit * level

    With ``"l2"`` or ``"linf"`` they lie at equal distances on both sides of 0, from -norm to norm: 2^bits - 1 of them,
    as one is 0; with one bit the two are -norm and norm. r is 1/2 for ``rounding="nearest"``, so that |x - y| is at
    most half the distance of two levels, but for the rounding of the arithmetic and of y. For ``"stochastic"`` r is
    uniform in [0, 1) and y is unbiased: its mean over the seeds is x. Random numbers follow from the seed (an argument
    of `compress`) and the value's index alone.

    With "minmax", buckets of equal values come back exactly. A bucket with a NaN or an infinity comes back all NaN.
    With "l2" the sum of squares is rounded to 6 digits.

    For each bucket the payload has unit and minimum, or the unit alone, in float32 (float64 for float64 arrays). Levels
    take `bits` bits each with ``coding="packed"``: the rate is fixed, the payload's size follows from the shape. With
    "entropy" they are coded by interleaved rANS (J. Duda, arXiv:1311.2540) with static tables, in place of the paper's
    Elias codes: few levels are as likely as others, so that they take fewer bits, and how many depends on the values.

    Reference: D. Alistarh et al., "QSGD", arXiv:1610.02132, sections 3.1 and 4; buckets between their minima and
    maxima: I. Markov et al., "CGX", arXiv:2111.08617, section 3.

    Takes float16, bfloat16, float32 and float64, of any shape.

    Args:
        bits: for each value, 1 to 8.
        bucket_size: values in a bucket, at least 16.
        norm: what the levels lie between: "minmax", "l2" or "linf".
        rounding: "nearest" or "stochastic".
        skip_incomplete: keep the values of a last, shorter bucket as they are.
        coding: how the levels are stored: "packed" or "entropy".

    Raises:
        TypeError, ValueError: an argument is not allowed.

    >>> QSGD(bits=4)
    QSGD()
    >>> QSGD(bits=2, norm="l2", rounding="stochastic")
    QSGD(bits=2, norm='l2', rounding='stochastic')
    """

    name: ClassVar[str] = "qsgd"
    id: ClassVar[int] = 3
    dtypes: ClassVar[tuple[str, ...] | None] = FLOATS

    bits: int = 4
    bucket_size: int = 512
    norm: Literal["minmax", "l2", "linf"] = "minmax"
    rounding: Literal["nearest", "stochastic"] = "nearest"
    skip_incomplete: bool = False
    coding: Literal["packed", "entropy"] = "packed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", checked_integer("bits", self.bits, 1, 8))
        object.__setattr__(self, "bucket_size", checked_bucket_size(self.bucket_size))
        check_choice("norm", self.norm, _NORMS)
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_flag("skip_incomplete", self.skip_incomplete)
        check_choice("coding", self.coding, _CODINGS)

    @property
    def needs_seed(self) -> bool:
        return self.rounding == "stochastic"

    @property
    def fixed_rate(self) -> bool:
        return self.coding == "packed"

    @property
    def has_sums(self) -> bool:
        return self.fixed_rate

    def config(self) -> dict[str, Any]:
        config = super().config()
        if self.coding == "packed":
            del config["coding"]  # as streams had it before there was a choice
        return config

    @property
    def granularity(self) -> int:
        return self.bucket_size

    def core_parameters(self) -> tuple[float, ...]:
        flags = (float(self.needs_seed), float(self.skip_incomplete), float(self.coding == "entropy"))
        return (float(self.bits), float(self.bucket_size), float(_NORMS.index(self.norm)), *flags)

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(bits=8), cls(bits=4), cls(bits=2))
