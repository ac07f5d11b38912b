"""Values as small floating-point numbers or integers, with or without shared scales."""

import re
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, NamedTuple

from .._arguments import check_choice, wrong_type, wrong_value
from .._dtypes import DType
from ._base import FLOATS, ROUNDINGS, Codec, Parameters, checked_bucket_size

_IEEE, _ONE_NAN, _UNSIGNED_ZERO, _NO_SPECIALS, _INTEGER = range(5)
_UNSCALED, _NUMBER, _FLOOR, _CEIL, _TWO_LEVEL = range(5)
_OVERFLOWS = ("saturate", "infinity")
_SCALINGS = ("tensor", "bucket")
_RULES = ("floor", "ceil")
_USUAL_BUCKET = 512


class NumberFormat(NamedTuple):
    """A small number format. Its codes have 1 + exponent_bits + mantissa_bits bits.

    Attributes:
        specials: the core's number for its kind of infinities and NaN.
        block_size: values that share a scale; 0 if the format itself has no scales.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: int
    block_size: int = 0

    @property
    def has_nan(self) -> bool:
        """Whether the format has NaN."""
        return self.specials in (_IEEE, _ONE_NAN, _UNSIGNED_ZERO)

    @property
    def has_infinity(self) -> bool:
        """Whether the format has infinities."""
        return self.specials == _IEEE

    @property
    def largest(self) -> float:
        """The largest finite number."""
        exponent = (1 << self.exponent_bits) - (2 if self.specials == _IEEE else 1)
        steps = (2 << self.mantissa_bits) - (2 if self.specials == _ONE_NAN else 1)
        return steps * 2.0 ** (exponent - self.bias - self.mantissa_bits)


_FORMATS = {
    "fp8_e4m3": NumberFormat(4, 3, 7, _ONE_NAN),
    "fp8_e5m2": NumberFormat(5, 2, 15, _IEEE),
    "fp8_e4m3fnuz": NumberFormat(4, 3, 8, _UNSIGNED_ZERO),
    "fp8_e5m2fnuz": NumberFormat(5, 2, 16, _UNSIGNED_ZERO),
    "fp8_e4m3b11fnuz": NumberFormat(4, 3, 11, _UNSIGNED_ZERO),
    "fp6_e3m2": NumberFormat(3, 2, 3, _NO_SPECIALS),
    "fp6_e2m3": NumberFormat(2, 3, 1, _NO_SPECIALS),
    "fp4_e2m1": NumberFormat(2, 1, 1, _NO_SPECIALS),
    "fp16": NumberFormat(5, 10, 15, _IEEE),
    "bf16": NumberFormat(8, 7, 127, _IEEE),
    "fp32": NumberFormat(8, 23, 127, _IEEE),
    "mxfp8_e4m3": NumberFormat(4, 3, 7, _ONE_NAN, 32),
    "mxfp8_e5m2": NumberFormat(5, 2, 15, _IEEE, 32),
    "mxfp6_e3m2": NumberFormat(3, 2, 3, _NO_SPECIALS, 32),
    "mxfp6_e2m3": NumberFormat(2, 3, 1, _NO_SPECIALS, 32),
    "mxfp4": NumberFormat(2, 1, 1, _NO_SPECIALS, 32),
    "mxint8": NumberFormat(1, 6, 1, _INTEGER, 32),
    "nvfp4": NumberFormat(2, 1, 1, _NO_SPECIALS, 16),
}
_ALIASES = {
    "fp8": "fp8_e4m3", "fp4": "fp4_e2m1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32",
    "mxfp8": "mxfp8_e4m3", "mxfp6": "mxfp6_e2m3", "e5m2": "fp8_e5m2", "e5m10": "fp16", "e8m7": "bf16",
}  # fmt: skip
_ANY = re.compile(r"e([2-8])m([1-9]|1[0-3])")
_WIDE = "fp32"


@dataclass(frozen=True, repr=False)
class FloatFormat(Codec):
    """Keep each value as a small floating-point number or 8-bit integer, optionally with a scale.

    Formats, of 1 + X + Y bits (sign, X of the exponent, Y of the mantissa):

    - "fp8_e4m3" (or "fp8"; OCP: no infinities, largest number 448), "fp8_e5m2", "fp16" (or "float16"), "bf16" (or
      "bfloat16"), "fp32" (or "float32"), and any "eXmY" with X from 2 to 8, Y at least 1 and at most 16 bits in all,
      which has infinities and NaN like IEEE 754's formats;
    - "fp8_e4m3fnuz", "fp8_e5m2fnuz", "fp8_e4m3b11fnuz", without infinities and without a negative zero;
    - "fp6_e3m2", "fp6_e2m3", "fp4_e2m1" (or "fp4"), without infinities and NaN, so that they need scaling;
    - blocks of 32 values with a power of two as their scale, in one byte (OCP Microscaling): "mxfp8_e4m3" (or
      "mxfp8"), "mxfp8_e5m2", "mxfp6_e2m3" (or "mxfp6"), "mxfp6_e3m2", "mxfp4" (e2m1), "mxint8" (multiples of 1/64);
    - blocks of 16 values with an e4m3 scale, and one scale for the array: "nvfp4" (e2m1).

    Without a scale every value is rounded to the format. ``scaling="tensor"`` first divides by amax / largest: amax is
    the array's largest |x|, `largest` the format's largest number. ``"bucket"`` does so in buckets of `bucket_size`
    values. The scales are float32, or float64 for float64 arrays. With ``scale_rule="floor"`` a block's power of two is
    2^(floor(log2 amax) - e), where 2^e is the largest number's power of two; values near amax may saturate. With "ceil"
    it is the smallest power with which none saturates. (These powers end at 2^-127 and 2^127, so that larger values of
    float64 arrays saturate.) The array's scale of "nvfp4" is amax / (448 * 6), of its finite values. A block's scale is
    the e4m3 number nearest to its amax / 6, divided by the array's scale.

    ``rounding="nearest"`` rounds once, ties to even. The codes are those of ml_dtypes' and PyTorch's casts, except that
    these round float64 by way of float32. With ``"stochastic"`` a value becomes one of its two neighbours, and its mean
    over the seeds (an argument of `compress`) is x, unless it saturates. Random numbers depend on the seed and on the
    value's index alone.

    Finite values beyond the format's largest number saturate to it. With ``overflow="infinity"`` they become infinite,
    or NaN in formats without infinities, as in IEEE 754. The same holds for decompressed values that the array's data
    type cannot hold. NaN stays NaN. Infinities stay infinite, or become NaN in formats without them, but never a
    number. With a scale, a bucket or block with a NaN or an infinity becomes all NaN. Zeros stay zeros.

    The rate is fixed: the shape determines the payload's length.

    Reference: OCP 8-bit Floating Point Specification (OFP8) 1.0, sections 4 and 5; OCP Microscaling Formats (MX)
    Specification 1.0, sections 5 and 6; "fnuz": B. Noune et al., arXiv:2206.02915; stochastic rounding: S. Gupta et
    al., arXiv:1502.02551, section 3.

    Takes float16, bfloat16, float32 and float64, of any shape; "fp32" takes float32 and float64.

    Args:
        format: one of the above.
        scaling: None, "tensor" or "bucket"; None with formats of blocks.
        bucket_size: with ``scaling="bucket"``: values that share a scale, at least 16; None for 512, which costs 1/16
            bit a value. Smaller buckets gain little, as the format has exponents of its own.
        scale_rule: with formats whose names begin with "mx": "floor" (None means the same) or "ceil".
        rounding: "nearest" or "stochastic".
        overflow: "saturate" or, without scales, "infinity".

    >>> FloatFormat("fp8")
    FloatFormat(format='fp8_e4m3')
    >>> FloatFormat("mxfp8", rounding="stochastic")
    FloatFormat(format='mxfp8_e4m3', scale_rule='floor', rounding='stochastic')
    """

    name: ClassVar[str] = "float-format"
    id: ClassVar[int] = 5
    dtypes: ClassVar[tuple[str, ...] | None] = FLOATS
    fixed_rate: ClassVar[bool] = True

    format: str
    _: KW_ONLY
    scaling: Literal["tensor", "bucket"] | None = None
    bucket_size: int | None = None
    scale_rule: Literal["floor", "ceil"] | None = None
    rounding: Literal["nearest", "stochastic"] = "nearest"
    overflow: Literal["saturate", "infinity"] = "saturate"

    def _check(self) -> None:
        self._set(format=_checked_format(self.format))
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_choice("overflow", self.overflow, _OVERFLOWS)
        if self.scaling is not None:
            check_choice("scaling", self.scaling, _SCALINGS)
        if self.scale_rule is not None:
            check_choice("scale_rule", self.scale_rule, _RULES)
        if self.numbers.block_size:
            self._check_block()
        else:
            self._check_plain()

    @property
    def numbers(self) -> NumberFormat:
        """The format of the codes."""
        return _FORMATS.get(self.format) or _ieee_format(self.format)

    @property
    def needs_seed(self) -> bool:
        return self.rounding == "stochastic"

    @property
    def granularity(self) -> int:
        return self.numbers.block_size or super().granularity

    def takes(self, dtype: DType) -> bool:
        return super().takes(dtype) and not self._is_wider(dtype)

    def check_dtype(self, dtype: DType) -> None:
        if self._is_wider(dtype):
            raise TypeError(f"dtype: expected float32 or float64 for format={self.format!r}, got {dtype.name}")
        super().check_dtype(dtype)

    def named_parameters(self) -> Parameters:
        numbers = self.numbers
        return {
            "exponent_bits": numbers.exponent_bits,
            "mantissa_bits": numbers.mantissa_bits,
            "bias": numbers.bias,
            "specials": numbers.specials,
            "saturates": self.overflow == "saturate",
            "scale": self._scale_kind(),
            "bucket_size": numbers.block_size or self.bucket_size or 0,
            "stochastic": self.needs_seed,
        }

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls("bf16"), cls("fp8_e4m3", scaling="bucket"), cls("mxfp8"), cls("mxfp4"), cls("nvfp4"))

    def _is_wider(self, dtype: DType) -> bool:
        return self.format == _WIDE and dtype.name in ("float16", "bfloat16")

    def _scale_kind(self) -> int:
        if self.numbers.block_size == 0:
            return _UNSCALED if self.scaling is None else _NUMBER
        if self.scale_rule is None:
            return _TWO_LEVEL
        return _FLOOR if self.scale_rule == "floor" else _CEIL

    def _check_block(self) -> None:
        """Check the arguments of a block format, which has its own scales."""
        for name in ("scaling", "bucket_size"):
            if (value := getattr(self, name)) is not None:
                blocks = f"scales of its own, for blocks of {self.numbers.block_size}"
                raise wrong_value(name, f"None with format={self.format!r}, which has {blocks}", value)
        if self.overflow != "saturate":
            raise wrong_value("overflow", f"'saturate' with format={self.format!r}, which has scales", self.overflow)
        if self.format == "nvfp4":
            self._check_no_rule()
        elif self.scale_rule is None:
            self._set(scale_rule="floor")

    def _check_plain(self) -> None:
        """Check the arguments of any other format, which may be scaled."""
        self._check_no_rule()
        if self.scaling is None and not self.numbers.has_nan:
            expected = f"'tensor' or 'bucket' with format={self.format!r}, which has no NaN without a scale"
            raise wrong_value("scaling", expected, None)
        if self.scaling is not None and self.overflow != "saturate":
            raise wrong_value("overflow", f"'saturate' with scaling={self.scaling!r}", self.overflow)
        if self.scaling != "bucket":
            if self.bucket_size is not None:
                raise wrong_value("bucket_size", f"None with scaling={self.scaling!r}", self.bucket_size)
            return
        self._set(bucket_size=checked_bucket_size(_USUAL_BUCKET if self.bucket_size is None else self.bucket_size))

    def _check_no_rule(self) -> None:
        if self.scale_rule is not None:
            expected = f"None with format={self.format!r}, as only formats whose names begin with 'mx' have rules"
            raise wrong_value("scale_rule", expected, self.scale_rule)


def _checked_format(value: str) -> str:
    """The canonical name of a format."""
    expected = f"{', '.join(_FORMATS)} or eXmY with X from 2 to 8, Y at least 1 and at most 16 bits in all"
    if not isinstance(value, str):
        raise wrong_type("format", expected, value)
    name = _ALIASES.get(value, value)
    if name in _FORMATS:
        return name
    found = _ANY.fullmatch(name)
    if found is None or int(found[1]) + int(found[2]) > 15:
        near = [known for known in _FORMATS if value and known.startswith(value)]
        raise wrong_value("format", " or ".join(map(repr, near)) or expected, value)
    return name


def _ieee_format(name: str) -> NumberFormat:
    """An eXmY format."""
    exponent_bits, mantissa_bits = (int(digits) for digits in name[1:].split("m"))
    return NumberFormat(exponent_bits, mantissa_bits, (1 << exponent_bits - 1) - 1, _IEEE)
