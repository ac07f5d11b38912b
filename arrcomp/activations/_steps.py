"""Step functions in place of an activation's derivative. The backward pass needs the step's index alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import check_ascending, check_choice, checked_numbers, wrong_value
from ..codecs._codebook_tables import checked_table

RULES = ("ascending", "even", "inside", "outside")


@dataclass(frozen=True)
class StepFunction:
    """A step function: the rule maps x to an index, and each index has a level.

    Rules:

    - "ascending": the number of borders below x. So x on a border belongs to the interval below it.
    - "even": the same for |x|, for functions with f(-x) = f(x).
    - "inside": 1 strictly between two borders, 0 elsewhere.
    - "outside": 1 strictly below the lower or above the upper of two borders, 0 elsewhere.

    NaN has index 0.

    Borders and levels are float32 numbers. The fields hold the shortest decimal numbers that round to them.

    Reference: G. Novikov et al., "Few-bit backward", arXiv:2202.00441, section 3.

    Args:
        borders: numbers, strictly ascending as float32, one fewer than levels; none below 0 with the rule "even", two
            with "inside" and "outside".
        levels: 2 to 256 numbers; two with the rules "inside" and "outside".
        rule: how x becomes an index.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value.

    >>> StepFunction([0], [0, 1])([-2, 0, 3])
    array([0., 0., 1.], dtype=float32)
    >>> StepFunction([-1, 1], [0, 1], "inside").bits
    1
    """

    borders: Sequence[float]
    levels: Sequence[float]
    rule: Literal["ascending", "even", "inside", "outside"] = "ascending"

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        pair = self.rule in ("inside", "outside")
        borders, levels = (_checked_pairs if pair else checked_table)(self.borders, self.levels)
        if self.rule == "even" and borders[0] < 0:
            raise wrong_value("borders", "numbers of at least 0 with rule='even'", borders[0])
        bits = (len(levels) - 1).bit_length()
        # Made once: every call of an activation uses these.
        parameters = (float(RULES.index(self.rule)), float(bits), *borders, *levels)
        made = {
            "borders": borders,
            "levels": levels,
            "_bits": bits,
            "_parameters": parameters,
            "_hash": hash(parameters),
        }
        self.__dict__.update(made)

    @property
    def bits(self) -> int:
        """Bits of each index."""
        bits: int = self.__dict__["_bits"]
        return bits

    def core_parameters(self) -> tuple[float, ...]:
        """The parameters for the core: the rule's number, the bits, the borders and the levels."""
        parameters: tuple[float, ...] = self.__dict__["_parameters"]
        return parameters

    def index(self, x: ArrayLike) -> NDArray[np.uint8]:
        """The index of each number, in NumPy: the reference for the core."""
        array, borders = np.asarray(x).astype(np.float64), np.array(self.borders, np.float32)
        if self.rule == "inside":
            index = (array > borders[0]) & (array < borders[1])
        elif self.rule == "outside":
            index = (array < borders[0]) | (array > borders[1])
        else:
            index = np.searchsorted(borders, np.abs(array) if self.rule == "even" else array)
        return np.where(np.isnan(array), 0, index).astype(np.uint8)

    def __call__(self, x: ArrayLike) -> NDArray[np.float32]:
        """The level of each number."""
        levels: NDArray[np.float32] = np.array(self.levels, np.float32)[self.index(x)]
        return levels

    def __hash__(self) -> int:
        found: int = self.__dict__["_hash"]
        return found

    def __repr__(self) -> str:
        shown: list[Any] = [self.borders, self.levels, *([self.rule] if self.rule != "ascending" else [])]
        return f"StepFunction({', '.join(map(repr, shown))})"


def _checked_pairs(borders: Any, levels: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    borders, levels = checked_numbers("borders", borders), checked_numbers("levels", levels)
    for name, numbers in (("borders", borders), ("levels", levels)):
        if len(numbers) != 2:
            raise ValueError(f"{name}: expected 2 numbers with the rules 'inside' and 'outside', got {len(numbers)}")
    check_ascending("borders", borders)
    return borders, levels
