"""Checks of arguments: typed errors that name the argument, what was expected and what it got."""

import itertools
import math
import numbers
import operator
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_SHOWN = 200  # characters of a value in an error
_MOST_THREADS = (1 << 31) - 1


class _Shortened(reprlib.Repr):
    """`repr` without the middle of what is long."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 24
        self.maxstring = self.maxother = _MOST_SHOWN
        self.maxlevel = 4

    def repr_int(self, x: int, level: int) -> str:
        """The digits of a number that has few of them. Python refuses to write those of the largest ones."""
        return repr(x) if x.bit_length() <= _MOST_SHOWN else f"an integer of {x.bit_length()} bits"


_SHORTENED = _Shortened()


def shown(value: Any) -> str:
    """A value, which may be long, as errors show it."""
    return shortened(_SHORTENED.repr(value))


def shortened(text: str, most: int = _MOST_SHOWN) -> str:
    """A text, which may be long, as errors show it: without its middle if it has more than `most` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[: half - 3]}...{text[-half:]}"


def type_name(x: Any) -> str:
    """Name of an object's type, with its module, of this package the public one."""
    kind = type(x)
    module = kind.__module__
    if module.partition(".")[0] == __package__:
        module = ".".join(itertools.takewhile(lambda part: not part.startswith("_"), module.split(".")))
    return kind.__name__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def wrong_type(name: str, expected: str, got: Any) -> TypeError:
    """The error for an argument of a wrong type: plain values are shown, of other objects the type is named.

    >>> wrong_type("threads", "an integer of at least 1", "two")
    TypeError("threads: expected an integer of at least 1, got 'two' (str)")
    """
    plain = isinstance(got, (bool, int, float, str))
    described = f"{shown(got)} ({type_name(got)})" if plain else "None" if got is None else type_name(got)
    return TypeError(f"{name}: expected {expected}, got {described}")


def wrong_value(name: str, expected: str, got: Any) -> ValueError:
    """The error for an argument of a right type and a wrong value.

    >>> wrong_value("threads", "an integer of at least 1", 0)
    ValueError('threads: expected an integer of at least 1, got 0')
    """
    return ValueError(f"{name}: expected {expected}, got {shown(got)}")


def thread_count(threads: int | None) -> int:
    """`threads`, checked, as the core takes it: 0 for None, which means all cores that this process may use."""
    if threads is None:
        return 0
    if type(threads) is int and 0 < threads <= _MOST_THREADS:
        return threads
    number = checked_integer("threads", threads, 1, math.inf, "an integer of at least 1, or None for all cores")
    if number > _MOST_THREADS:
        raise wrong_value("threads", f"an integer of at most {_MOST_THREADS}, or None for all cores", number)
    return number


def checked_real(name: str, value: Any, expected: str) -> float:
    """`value` as a finite float above 0."""
    number = checked_number(name, value, expected)
    if not number > 0:
        raise wrong_value(name, expected, value)
    return number


def checked_number(name: str, value: Any, expected: str) -> float:
    """`value` as a finite float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise wrong_type(name, expected, value)
    number = as_float(value)
    if not math.isfinite(number):
        raise wrong_value(name, expected, value)
    return number


def as_float(value: Any) -> float:
    """A number as a float; infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless `value` is one of these."""
    expected = " or ".join(map(repr, choices))
    if not isinstance(value, str):
        raise wrong_type(name, expected, value)
    if value not in choices:
        raise wrong_value(name, expected, value)


def checked_integer(name: str, value: Any, least: int, most: float, expected: str | None = None) -> int:
    """`value` as an integer from `least` to `most`."""
    expected = expected or f"an integer from {least} to {most}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise wrong_type(name, expected, value)
    if not least <= number <= most:
        raise wrong_value(name, expected, number)
    return number


def check_mapping(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is a mapping."""
    if not isinstance(value, Mapping):
        raise wrong_type(name, "a mapping", value)


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is True or False."""
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False", value)


def checked_numbers(name: str, values: Any) -> tuple[float, ...]:
    """A list, tuple or array of finite numbers as a tuple of the shortest ones that are the same in float32."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or not _is_flat(values):
        raise wrong_type(name, "a list of numbers", values)
    array = np.asarray(values)
    flags = [value for value in values if isinstance(value, (bool, np.bool_))]
    if flags or (array.dtype.kind not in "iuf" and array.size > 0):
        raise TypeError(f"{name}: expected numbers, got {flags[0] if flags else array.dtype}")
    with np.errstate(over="ignore"):
        single = array.astype(np.float64).astype(np.float32)  # of large integers too, as FORMAT.md has it
    if not np.isfinite(single).all():
        wrong = array[~np.isfinite(single)][0]
        raise ValueError(f"{name}: expected finite numbers in the range of float32, got {shown(wrong.item())}")
    return tuple(float(str(number)) + 0.0 for number in single)  # + 0.0: there is one zero


def _is_flat(values: Any) -> bool:
    try:
        return np.ndim(values) == 1
    except ValueError:  # lists of different lengths
        return False


def check_ascending(name: str, values: Sequence[float]) -> None:
    """Raise ValueError unless numbers of float32's ascend strictly."""
    for lower, upper in itertools.pairwise(values):
        if not lower < upper:
            raise ValueError(f"{name}: expected ascending numbers, got {lower} before {upper} (in float32)")


def number_array(name: str, values: Any, expected: str = "real numbers", kinds: str = "iuf") -> NDArray[Any]:
    """Numbers of any shape as an array, whose dtype is of one of these kinds, or which is empty."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        raise wrong_type(name, f"{expected} in an array", values) from None
    if array.dtype.kind not in kinds and array.size > 0 and not ("f" in kinds and array.dtype.name == "bfloat16"):
        raise TypeError(f"{name}: expected {expected}, got {shortened(str(array.dtype))}")
    return array


def checked_reals(name: str, values: Any) -> NDArray[np.float64]:
    """Real numbers of any shape as float64."""
    wide: NDArray[np.float64] = number_array(name, values).astype(np.float64)
    if not np.isfinite(wide).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinities")
    return wide
