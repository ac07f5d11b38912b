"""Lossless compression of every data type."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .._arguments import check_choice
from ._base import REFERENCE, SPEEDS, Codec, Parameters, check_predictor, check_unpredicted, predictor_number


@dataclass(frozen=True, kw_only=True, repr=False)
class Lossless(Codec):
    """Keep every bit.

    Guarantee: the decompressed array equals the original bit for bit, including NaN payloads and -0.0.

    Method: the exponents of floats are coded as differences from a base of their chunk of 4096 values, by interleaved
    rANS (J. Duda, arXiv:1311.2540) with static tables. Signs and mantissas are stored, without low bits that are always
    zero. Integers are coded as values or as first differences, whichever is shorter. Chunks that no static table suits,
    such as indices of a vocabulary, have a table of their own, of the numbers' lengths and highest bits.

    With a `predictor`, elements are predicted along up to five axes: by interpolation from a coarse grid to finer ones,
    as in SZ3 (K. Zhao et al., ICDE 2021), or by differences along the axes (L. Ibarria et al., Computer Graphics Forum
    22, 2003). Coded is the difference of integers, or of floats' bits in the order of the floats. Where samples of
    floats are multiples of one number, as decimals are, coded is the difference of the integers that count it, as in
    the modes of pcodec (M. Loncaric et al., arXiv:2502.06112). The multiples may begin at an offset, as those of packed
    data do when they are unpacked. Elements that are no such multiples are stored as they are. "columns" predicts
    nothing: elements of a column, of the last axis or the last two, are coded side by side.

    Takes every data type of the format, of any shape.

    Args:
        speed: "default" for a better ratio, "fast" for more speed.
        predictor: for smooth fields, images, and floats that have few digits or come from integers: "interpolation" or
            "lorenzo". For tables, points and channels, whose columns differ: "columns". "auto" tries all of them, and
            none, on samples; same as in `ErrorBounded`, with the same costs. It is for bools, integers, float16,
            bfloat16, float32 and float64. Other arrays, and those of fewer than 512 elements, are coded as without it.
            "reference" is what `compress` makes of None where it is given a reference.

    Raises:
        ValueError: `speed` or `predictor` is unknown.
    """

    name: ClassVar[str] = "lossless"
    id: ClassVar[int] = 1
    dtypes: ClassVar[tuple[str, ...] | None] = None

    speed: Literal["default", "fast"] = "default"
    predictor: Literal["auto", "interpolation", "lorenzo", "columns", "reference"] | None = None

    def _check(self) -> None:
        check_choice("speed", self.speed, SPEEDS)
        check_predictor(self.predictor)

    def named_parameters(self) -> Parameters:
        return {"fast": self.speed == "fast", "predictor": predictor_number(self.predictor)}

    def with_reference(self) -> "Lossless":
        check_unpredicted(self.predictor)
        return Lossless(speed=self.speed, predictor=REFERENCE)

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(), cls(speed="fast"))
