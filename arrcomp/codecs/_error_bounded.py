"""Error-bounded compression of floats."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._arguments import check_choice, checked_number, checked_real, shown, wrong_value
from ._base import (
    FLOATS,
    REFERENCE,
    SPEEDS,
    Codec,
    Parameters,
    check_predictor,
    check_unpredicted,
    predictor_number,
)

_BOUNDS = {"abs": 1.0, "rel": 2.0, "pointwise": 3.0}  # as the core numbers them


@dataclass(frozen=True, kw_only=True, repr=False)
class ErrorBounded(Codec):
    """Keep every finite value within a bound of itself.

    Guarantee for every finite value x and its decompressed value y, in exact arithmetic on y in the array's dtype::

        abs=E         |x - y| <= E
        rel=r         |x - y| <= r * (max - min), over the array's finite values that are not `fill_value`
        pointwise=p   |x - y| <= p * |x|

    Infinities, NaNs (with their payloads) and `fill_value` come back bit for bit. So does every value that the method
    below cannot bring within the bound.

    Method: `abs` and `rel` quantize with verified reconstruction: q = rint(x / 2E), y = 2E q. Chunks of 4096 values get
    a first-difference predictor and a mask of zeros where these save bytes. q is coded by interleaved rANS (J. Duda,
    arXiv:1311.2540) with static tables, or one of the chunk's own, or by fixed-width packing with `speed="fast"`.
    `pointwise` rounds the mantissa to the number of bits that the bound needs, then codes losslessly. Values that stand
    for nothing (NaN, infinity, `fill_value`) are left out of their chunk, and a mask tells their places (Elias-Fano
    coding, or a bit for each value).

    With a `predictor`, `abs` and `rel` predict values along up to five axes and code what is left. Interpolation goes
    from a coarse grid to finer ones, as in SZ3 (K. Zhao et al., ICDE 2021) and QoZ (J. Liu et al., SC 2022). It uses
    decoded values, so that errors do not add up. Each grid is halved along the axis that is predicted best. "lorenzo"
    takes differences of q along the axes (L. Ibarria et al., Computer Graphics Forum 22, 2003). "columns" predicts
    nothing: values of a column, of the last axis or the last two, are coded side by side.

    Takes float16, bfloat16, float32 and float64, of any shape.

    Args:
        abs: absolute bound, finite, above 0.
        rel: bound relative to the range of the array, finite, above 0.
        pointwise: bound relative to each value, above 0 and below 1.
        speed: "default" for a better ratio, "fast" for more speed.
        fill_value: a finite number that stands for a missing value, such as 1e20 or -9999. It is rounded to the array's
            dtype; elements that are equal to it (bit for bit) stay as they are, and are no part of the range of `rel`.
            One that is not named may change within the bound, as any other value.
            NaN, which needs no mention, is the same as None.
        predictor: for smooth fields of several dimensions: "interpolation" or "lorenzo". For tables, points, channels
            and features, whose columns differ in range: "columns". "auto" encodes samples of the array in each of these
            ways and without prediction, and takes the way of the fewest bytes. None sees the array as one sequence.
            Axes of size 1 are left out; of more than five axes, the first are merged. Encoding and decoding take
            longer, and a part of the array needs rows around it decoded (by columns, up to 4096 rows, or 16384 of less
            than 16 columns). With `pointwise` nothing is predicted, but values may be coded by columns. Arrays of fewer
            than 512 elements are coded as with None. "reference" is what `compress` makes of None where it is given a
            reference.

    Raises:
        TypeError: a bound or `fill_value` is not a real number, or not exactly one of `abs`, `rel` and `pointwise` is
            given.
        ValueError: a bound is out of its range, `speed` or `predictor` is unknown, or `fill_value` is infinite.

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
    fill_value: float | None = None
    predictor: Literal["auto", "interpolation", "lorenzo", "columns", "reference"] | None = None

    def _check(self) -> None:
        given = {name: getattr(self, name) for name in _BOUNDS if getattr(self, name) is not None}
        if len(given) != 1:
            values = ", ".join(f"{name}={shown(value)}" for name, value in given.items()) or "none"
            raise TypeError(f"bound: expected exactly one of abs, rel and pointwise, got {values}")
        for name, value in given.items():
            expected = "a number above 0 and below 1" if name == "pointwise" else "a finite number above 0"
            number = checked_real(name, value, expected)
            if name == "pointwise" and number >= 1:
                raise wrong_value(name, expected, value)
            self._set(**{name: number})
        check_choice("speed", self.speed, SPEEDS)
        check_predictor(self.predictor)
        if self.fill_value is not None:
            self._set(fill_value=_checked_fill_value(self.fill_value))

    def named_parameters(self) -> Parameters:
        name = next(name for name in _BOUNDS if getattr(self, name) is not None)
        return {
            "kind": _BOUNDS[name],
            "bound": getattr(self, name),
            "fast": self.speed == "fast",
            "has_fill": self.fill_value is not None,
            "fill": 0.0 if self.fill_value is None else self.fill_value,
            "predictor": predictor_number(self.predictor),
        }

    def with_reference(self) -> "ErrorBounded":
        check_unpredicted(self.predictor)
        bounds = {name: getattr(self, name) for name in _BOUNDS}
        return ErrorBounded(**bounds, speed=self.speed, fill_value=self.fill_value, predictor=REFERENCE)

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(rel=1e-3), cls(rel=1e-3, speed="fast"), cls(rel=1e-4), cls(pointwise=1e-2))


def _checked_fill_value(value: float) -> float | None:
    """`fill_value` as a number; None for NaN."""
    if isinstance(value, (float, np.floating)) and math.isnan(value):
        return None
    return checked_number("fill_value", value, "a finite number")
