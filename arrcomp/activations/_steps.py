"""Functions in steps: what stands for an activation's derivative, of which only the step's index is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import check_ascending, check_choice, checked_numbers

RULES = ("ascending", "even", "inside", "outside")
MOST_LEVELS = 256


@dataclass(frozen=True)
class StepFunction:
    """A function of steps: x gets an index, and the index a level.

    How x becomes an index is the rule:

    - "ascending": the number of borders below x, so that x on a border belongs to the interval below it.
    - "even": the same of |x|, for functions with f(-x) = f(x): each bit goes twice as far.
    - "inside": of two borders, 1 strictly between them, 0 elsewhere.
    - "outside": of two borders, 1 strictly below the lower or above the upper one, 0 elsewhere.

    NaN is below all borders, and neither inside nor outside.

    Borders and levels are float32 numbers; the fields hold the shortest decimal numbers that stand for them.

    Reference: G. Novikov et al., "Few-bit backward", arXiv:2202.00441, section 3.

    Args:
        borders: numbers, strictly ascending as float32, one fewer than levels; none below 0 if the rule is "even", two
            if it is "inside" or "outside".
        levels: 2 to 256 numbers; two if the rule is "inside" or "outside".
        rule: how x becomes an index.

    Raises:
        TypeError, ValueError: an argument is not allowed.

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
        borders, levels = checked_numbers("borders", self.borders), checked_numbers("levels", self.levels)
        _check_counts(len(borders), len(levels), self.rule)
        check_ascending("borders", borders)
        if self.rule == "even" and borders[0] < 0:
            raise ValueError(f"borders has {borders[0]}; numbers from 0 on are allowed for the rule 'even'")
        bits = (len(levels) - 1).bit_length()
        # Every call of an activation asks for these.
        parameters = (float(RULES.index(self.rule)), float(bits), *borders, *levels)
        for name, value in (
            ("borders", borders),
            ("levels", levels),
            ("_bits", bits),
            ("_parameters", parameters),
            ("_hash", hash(parameters)),
        ):
            object.__setattr__(self, name, value)

    @property
    def bits(self) -> int:
        """Bits of each index."""
        bits: int = self.__dict__["_bits"]
        return bits

    def core_parameters(self) -> tuple[float, ...]:
        """The rule's number, the bits, the borders and the levels: what the core takes."""
        parameters: tuple[float, ...] = self.__dict__["_parameters"]
        return parameters

    def index(self, x: ArrayLike) -> NDArray[np.uint8]:
        """The index of each number; NumPy's reference for the core."""
        array, borders = np.asarray(x).astype(np.float64), np.array(self.borders, np.float32)
        if self.rule == "inside":
            places = (array > borders[0]) & (array < borders[1])
        elif self.rule == "outside":
            places = (array < borders[0]) | (array > borders[1])
        else:
            places = np.searchsorted(borders, np.abs(array) if self.rule == "even" else array)
        return np.where(np.isnan(array), 0, places).astype(np.uint8)

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


def _check_counts(borders: int, levels: int, rule: str) -> None:
    if rule in ("inside", "outside"):
        if (borders, levels) != (2, 2):
            raise ValueError(f"rule={rule!r}: {borders} borders and {levels} levels; 2 and 2 are allowed")
        return
    if not 2 <= levels <= MOST_LEVELS:
        raise ValueError(f"levels has {levels} numbers; 2 to {MOST_LEVELS} are allowed")
    if borders != levels - 1:
        raise ValueError(f"borders has {borders} numbers; {levels - 1}, one fewer than levels, is allowed")
