"""How fast the processor runs, which systems do not tell well: cycles of a chain of multiplications, timed."""

from __future__ import annotations

import ctypes
import mmap
import platform
from functools import partial

from harness.timing import least_seconds

_LATENCY = 3  # of imul, on every x86-64 processor of the last fifteen years
_CHAIN = 16
_TURNS = 100_000
# turn: imul rax, rax (16 times); dec rdi; jnz turn; ret
_CODE = b"\x48\x0f\xaf\xc0" * _CHAIN + b"\x48\xff\xcf" + b"\x75" + bytes([256 - 4 * _CHAIN - 5]) + b"\xc3"


def gigahertz() -> float | None:
    """Cycles of the core in a nanosecond, the best of some tries; None on processors that are not x86-64."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
        memory.write(_CODE)
        place = ctypes.c_char.from_buffer(memory)
        turn = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(ctypes.addressof(place))
        seconds = least_seconds(partial(turn, _TURNS), 20)
        del place, turn
    return _LATENCY * _CHAIN * _TURNS / seconds / 1e9
