"""Quantization in buckets."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from .._arguments import check_choice, check_flag, checked_integer
from ._base import FLOATS, ROUNDINGS, Codec, Parameters, checked_bucket_size

_NORMS = ("minmax", "l2", "linf")
_CODINGS = ("packed", "entropy")


@dataclass(frozen=True, repr=False)
class QSGD(Codec):
    """Keep each value as one of 2^bits levels of its bucket.

    The array, in C order, is split into buckets of `bucket_size` values. The last one may be shorter. With
    ``norm="minmax"`` a bucket's levels are equally spaced from its smallest to its largest value::

        unit = (max - min) / (2^bits - 1);  level = floor((x - min) / unit + r);  y = min + unit * level

    With ``"l2"`` or ``"linf"`` they are equally spaced from -norm to norm: 2^bits - 1 levels, one of which is 0. (One
    bit has the two levels -norm and norm.) For ``rounding="nearest"`` r is 1/2. Then |x - y| is at most half the
    distance of two levels, apart from the rounding of the arithmetic and of y. For ``"stochastic"`` r is uniform in
    [0, 1) and y is unbiased: its mean over the seeds is x. Random numbers depend on the seed (an argument of
    `compress`) and on the value's index alone.

    With "minmax", buckets of equal values come back exactly. A bucket with a NaN or an infinity becomes all NaN. With
    "l2" the sum of squares is rounded to 6 digits.

    The payload has for each bucket unit and minimum, or the unit alone, in float32 (float64 for float64 arrays). With
    ``coding="packed"`` each level takes `bits` bits: the rate is fixed, and the shape determines the payload's length.
    With "entropy" levels are coded by interleaved rANS (J. Duda, arXiv:1311.2540) with static tables, in place of the
    paper's Elias codes. Levels are not equally likely, so that they take fewer bits; how many depends on the values.

    Reference: D. Alistarh et al., "QSGD", arXiv:1610.02132, sections 3.1 and 4; buckets between their minima and
    maxima: I. Markov et al., "CGX", arXiv:2111.08617, section 3.

    Takes float16, bfloat16, float32 and float64, of any shape.

    Args:
        bits: for each value, 1 to 8.
        bucket_size: values in a bucket, at least 16.
        norm: which range the levels span: "minmax", "l2" or "linf".
        rounding: "nearest" or "stochastic".
        skip_incomplete: store the values of a shorter last bucket as they are.
        coding: how the levels are stored: "packed" or "entropy".

    >>> QSGD(4)
    QSGD(bits=4)
    >>> QSGD(bits=2, norm="l2", rounding="stochastic")
    QSGD(bits=2, norm='l2', rounding='stochastic')
    """

    name: ClassVar[str] = "qsgd"
    id: ClassVar[int] = 3
    dtypes: ClassVar[tuple[str, ...] | None] = FLOATS
    _always_shown: ClassVar[tuple[str, ...]] = ("bits",)

    bits: int = 4
    _: KW_ONLY
    bucket_size: int = 512
    norm: Literal["minmax", "l2", "linf"] = "minmax"
    rounding: Literal["nearest", "stochastic"] = "nearest"
    skip_incomplete: bool = False
    coding: Literal["packed", "entropy"] = "packed"

    def _check(self) -> None:
        self._set(bits=checked_integer("bits", self.bits, 1, 8), bucket_size=checked_bucket_size(self.bucket_size))
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
            del config["coding"]  # streams had no such key before there was a choice
        return config

    def named_parameters(self) -> Parameters:
        return {
            "bits": self.bits,
            "bucket_size": self.bucket_size,
            "norm": _NORMS.index(self.norm),
            "stochastic": self.needs_seed,
            "skip_incomplete": self.skip_incomplete,
            "entropy": self.coding == "entropy",
        }

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(bits=8), cls(bits=4), cls(bits=2))
