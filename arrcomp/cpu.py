"""What the core runs on: threads and instruction sets.

The environment variable `ARRCOMP_INSTRUCTION_SET` names the instruction set to use; it is read once, when arrcomp is
imported. The bytes written do not depend on it.
"""

import os

from . import _core

_VARIABLE = "ARRCOMP_INSTRUCTION_SET"


def available_threads() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def instruction_set() -> str:
    """The instruction set in use, for instance "avx512"."""
    return _core.instruction_set()


def instruction_sets() -> list[str]:
    """All instruction sets that this build has and this processor runs, the best first."""
    return _core.instruction_sets()


def use_instruction_set(name: str) -> None:
    """Use another instruction set from now on, in the whole process.

    Raises:
        ValueError: `name` is not in `instruction_sets()`.
    """
    if name not in _core.instruction_sets():
        raise ValueError(f"instruction set {name!r}: this machine has {', '.join(_core.instruction_sets())}")
    _core.use_instruction_set(name)


def _read_environment() -> None:
    name = os.environ.get(_VARIABLE)
    if not name:
        return
    try:
        use_instruction_set(name)
    except ValueError as error:
        raise ImportError(f"environment variable {_VARIABLE}: {error}") from None


_read_environment()
