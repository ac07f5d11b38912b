"""Error-bounded compression of floats."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .._arguments import check_choice, checked_real, wrong_value
from ._base import FLOATS, SPEEDS, Codec, Parameters

_BOUNDS = {"abs": 1.0, "rel": 2.0, "pointwise": 3.0}  # as the core numbers them


@dataclass(frozen=True, kw_only=True, repr=False)
class ErrorBounded(Codec):
    """Keep every finite value within a bound of itself.

    Guarantee for every finite value x and its decompressed value y, in exact arithmetic on y in the array's dtype::

        abs=E         |x - y| <= E
        rel=r         |x - y| <= r * (max - min), over the array's finite values
        pointwise=p   |x - y| <= p * |x|

    Infinities and NaNs (with their payloads) come back bit for bit. So does every value that the method below cannot
    bring within the bound.

    Method: `abs` and `rel` quantize with verified reconstruction: q = rint(x / 2E), y = 2E q. Chunks of 4096 values get
    a first-difference predictor and a mask of zeros where these save bytes. q is coded by interleaved rANS (J. Duda,
    arXiv:1311.2540) with static tables, or by fixed-width packing with `speed="fast"`. `pointwise` rounds the mantissa
    to the number of bits that the bound needs, then codes losslessly.

    Takes float16, bfloat16, float32 and float64, of any shape.

    Args:
        abs: absolute bound, finite, above 0.
        rel: bound relative to the range of the array, finite, above 0.
        pointwise: bound relative to each value, above 0 and below 1.
        speed: "default" for a better ratio, "fast" for more speed.

    Raises:
        TypeError: a bound is not a real number, or not exactly one of `abs`, `rel` and `pointwise` is given.
        ValueError: a bound is out of its range, or `speed` is unknown.

    >>> ErrorBounded(abs=1e-4)
    ErrorBounded(abs=0.0001)
    """

    name: ClassVar[str] = "error-bounded"
    id: ClassVar[int] = 2
    dtypes: ClassVar[tuple[str, ...] | None] = FLOATS
    _meant: ClassVar[tuple[str, ...]] = ("abs", "rel")

    abs: float | None = None
    rel: float | None = None
    pointwise: float | None = None
    speed: Literal["default", "fast"] = "default"

    def _check(self) -> None:
        given = {name: getattr(self, name) for name in _BOUNDS if getattr(self, name) is not None}
        if len(given) != 1:
            shown = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "none"
            raise TypeError(f"bound: expected exactly one of abs, rel and pointwise, got {shown}")
        for name, value in given.items():
            expected = "a number above 0 and below 1" if name == "pointwise" else "a finite number above 0"
            number = checked_real(name, value, expected)
            if name == "pointwise" and number >= 1:
                raise wrong_value(name, expected, value)
            self._set(**{name: number})
        check_choice("speed", self.speed, SPEEDS)

    def named_parameters(self) -> Parameters:
        name = next(name for name in _BOUNDS if getattr(self, name) is not None)
        return {"kind": _BOUNDS[name], "bound": getattr(self, name), "fast": self.speed == "fast"}

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(rel=1e-3), cls(rel=1e-3, speed="fast"), cls(rel=1e-4), cls(pointwise=1e-2))
