"""Threads and instruction sets of the core.

The environment variable `ARRCOMP_INSTRUCTION_SET` selects the instruction set. It is read once, when arrcomp is
imported. The compressed bytes do not depend on it.
"""

import os
import warnings

from . import _core
from ._arguments import check_choice

__all__ = ["available_threads", "instruction_set", "instruction_sets", "use_instruction_set"]

_VARIABLE = "ARRCOMP_INSTRUCTION_SET"


def available_threads() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def instruction_set() -> str:
    """The instruction set in use, for instance "avx512"."""
    return _core.instruction_set()


def instruction_sets() -> list[str]:
    """All instruction sets that this build and this processor support, the fastest first."""
    return _core.instruction_sets()


def use_instruction_set(name: str) -> None:
    """Use another instruction set from now on, in the whole process.

    Raises:
        TypeError: `name` is not a string.
        ValueError: `name` is not in `instruction_sets()`.
    """
    check_choice("name", name, _core.instruction_sets())
    _core.use_instruction_set(name)


if _missing := _core.missing_instruction_set():
    warnings.warn(
        f"arrcomp is slow here: it was built on another processor and has no {_missing} code. Install it again on this "
        "machine, or with -C cmake.define.ARRCOMP_CPU=ALL where it is built.",
        RuntimeWarning,
        stacklevel=2,
    )

if _name := os.environ.get(_VARIABLE):
    try:
        use_instruction_set(_name)
    except ValueError as error:
        raise ImportError(f"environment variable {_VARIABLE}: {error}") from None
