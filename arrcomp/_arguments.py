"""Checks of arguments: typed errors that name the argument, what was expected and what it got."""

import itertools
import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def type_name(x: Any) -> str:
    """Name of an object's type, with its module."""
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def thread_count(threads: int | None) -> int:
    """`threads`, checked, as the core takes it: 0 for None, which means all cores that this process may use.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is below 1.
    """
    if threads is None:
        return 0
    if isinstance(threads, bool):
        raise TypeError(f"threads={threads}: an integer of at least 1, or None for all cores, is allowed")
    try:
        count = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads={threads!r}: an integer of at least 1, or None for all cores, is allowed") from None
    if count < 1:
        raise ValueError(f"threads={count}: an integer of at least 1, or None for all cores, is allowed")
    return count


def checked_real(name: str, value: Any, allowed: str) -> float:
    """`value` as a finite float above 0.

    Raises:
        TypeError: it is not a real number.
        ValueError: it is not finite or not above 0.
    """
    number = checked_number(name, value, allowed)
    if not number > 0:
        raise ValueError(f"{name}={value!r}: {allowed} is allowed")
    return number


def checked_number(name: str, value: Any, allowed: str) -> float:
    """`value` as a finite float.

    Raises:
        TypeError: it is not a real number.
        ValueError: it is not finite.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; {allowed} is allowed")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name}={value!r}: {allowed} is allowed")
    return number


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise unless `value` is one of these."""
    shown = " or ".join(map(repr, allowed))
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; {shown} is allowed")
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: {shown} is allowed")


def checked_integer(name: str, value: Any, least: int, most: int) -> int:
    """`value` as an integer.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is below `least` or above `most`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; an integer is allowed")
    if not least <= number <= most:
        raise ValueError(f"{name}={number}: {least} to {most} is allowed")
    return number


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: True or False is allowed")


def checked_numbers(name: str, values: Any) -> tuple[float, ...]:
    """A list, tuple or array of numbers as a tuple of short ones, all of them float32's.

    Raises:
        TypeError: it is no such thing.
        ValueError: a number is not finite in float32.
    """
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or np.ndim(values) != 1:
        raise TypeError(f"{name} is a {type(values).__name__}; a list of numbers is allowed")
    array = np.asarray(values)
    flags = [value for value in values if isinstance(value, (bool, np.bool_))]
    if flags or (array.dtype.kind not in "iuf" and array.size > 0):
        raise TypeError(f"{name} holds {flags[0] if flags else array.dtype}; numbers are allowed")
    with np.errstate(over="ignore"):
        single = array.astype(np.float64).astype(np.float32)  # of large integers too, as FORMAT.md has it
    if not np.isfinite(single).all():
        wrong = array[~np.isfinite(single)][0]
        raise ValueError(f"{name} has {wrong}; finite numbers of float32's range are allowed")
    return tuple(float(str(number)) + 0.0 for number in single)  # + 0.0: there is one zero


def check_ascending(name: str, values: Sequence[float]) -> None:
    """Raise ValueError unless numbers of float32's ascend strictly."""
    for lower, upper in itertools.pairwise(values):
        if not lower < upper:
            raise ValueError(f"{name} has {lower} before {upper} (in float32); ascending ones are allowed")


def checked_reals(name: str, values: Any) -> NDArray[np.float64]:
    """Real numbers of any shape as float64.

    Raises:
        TypeError: they are no such thing.
        ValueError: one is not finite.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name} holds {array.dtype}; numbers are allowed")
    wide: NDArray[np.float64] = array.astype(np.float64)
    if not np.isfinite(wide).all():
        raise ValueError(f"{name} has NaN or infinities; finite numbers are allowed")
    return wide
