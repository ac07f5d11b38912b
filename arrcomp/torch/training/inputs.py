"""What a data set gives and a model takes."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Images:
    """Pictures: float32 tensors of shape (batch, channels, height, width).

    Attributes:
        outputs: numbers that the model gives for each: one for each class, or 1 where it is a number that is asked for.
    """

    kind: ClassVar[str] = "images"

    channels: int
    height: int
    width: int
    outputs: int


@dataclass(frozen=True)
class Tokens:
    """Texts: int64 tensors of shape (batch, length) with numbers below `vocabulary`.

    Attributes:
        outputs: same as in `Images`.
        padding: the number that fills short texts up; None where all have one length.
        separator: the number after each of two texts; None where there is one text.
    """

    kind: ClassVar[str] = "tokens"

    vocabulary: int
    length: int
    outputs: int
    padding: int | None = None
    separator: int | None = None


Inputs = Images | Tokens
