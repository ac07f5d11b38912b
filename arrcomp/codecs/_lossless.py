"""Lossless compression of every data type."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .._arguments import check_choice
from ._base import SPEEDS, Codec, Parameters, check_predictor, predictor_number


@dataclass(frozen=True, kw_only=True, repr=False)
class Lossless(Codec):
    """Keep every bit.

    Guarantee: the decompressed array equals the original bit for bit, including NaN payloads and -0.0.

    Method: the exponents of floats are coded as differences from a base of their chunk of 4096 values, by interleaved
    rANS (J. Duda, arXiv:1311.2540) with static tables. Signs and mantissas are stored, without low bits that are always
    zero. Integers are coded as values or as first differences, whichever is shorter.

    Takes every data type of the format, of any shape.

    Args:
        speed: "default" for a better ratio, "fast" for more speed.
    """

    name: ClassVar[str] = "lossless"
    id: ClassVar[int] = 1
    dtypes: ClassVar[tuple[str, ...] | None] = None

    speed: Literal["default", "fast"] = "default"
    predictor: Literal["auto", "interpolation", "lorenzo"] | None = None

    def _check(self) -> None:
        check_choice("speed", self.speed, SPEEDS)
        check_predictor(self.predictor)

    def named_parameters(self) -> Parameters:
        return {"fast": self.speed == "fast", "predictor": predictor_number(self.predictor)}

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(), cls(speed="fast"))
