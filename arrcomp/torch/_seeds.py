"""Seeds on devices: drawn, counted, and `arrcomp._methods.seeds` on tensors. All of it is asynchronous."""

from typing import Any

import torch
from torch import Tensor

from .._methods import seeds
from ._library import EVERYWHERE, define

_TWO_64 = 1 << 64


def drawn(device: torch.device) -> Tensor:
    """A seed from the device's default generator, int64[], different on each rank."""
    return torch.randint(-(1 << 63), (1 << 63) - 1, (), device=device) ^ _rank()


def derived(seed: Tensor, *parts: int | Tensor) -> Tensor:
    """Same as `arrcomp._methods.seeds.derived`, bit for bit: int64, to be read as unsigned.

    `parts` are integers from 0, or int64 tensors of them. Shapes broadcast with the seed's.
    """
    for part in parts:
        step = (part + 1) * _GOLDEN
        seed = _mixed(seed + (step if isinstance(step, Tensor) else signed(step)))
    return seed


def signed(number: int) -> int:
    """The signed 64-bit integer with the same bits."""
    number %= _TWO_64
    return number - _TWO_64 if number >> 63 else number


def upper_half(words: Tensor) -> Tensor:
    """The upper 32 bits of 64-bit words, as int64 from 0 to 2^32 - 1."""
    return words >> 32 & 0xFFFFFFFF


_GOLDEN = signed(0x9E3779B97F4A7C15)
_FACTORS = signed(0xBF58476D1CE4E5B9), signed(0x94D049BB133111EB)


def _mixed(z: Tensor) -> Tensor:
    # Shifts of int64 extend the sign; the masks clear it. Products wrap around.
    z = (z ^ z >> 30 & (1 << 34) - 1) * _FACTORS[0]
    z = (z ^ z >> 27 & (1 << 37) - 1) * _FACTORS[1]
    return z ^ z >> 31 & (1 << 33) - 1


def _rank() -> int:
    distributed: Any = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def _count(calls: Tensor, seed: int) -> Tensor:
    base = torch.full_like(calls, signed(seeds.derived(seed % _TWO_64, _rank())))
    made = derived(base, calls)
    calls += 1
    return made


@define("counted_seed(Tensor(a!) calls, int seed) -> Tensor", _count, EVERYWHERE)
def counted(calls: Tensor, seed: int) -> Tensor:
    """The seed of a call, int64[], of that of all calls, the rank, and the number of calls, counted in place."""
    return torch.empty_like(calls)
