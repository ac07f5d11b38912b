"""`arrcomp.seeds` on tensors: many numbers at once, on the device where the seed is."""

from torch import Tensor

_TWO_64 = 1 << 64


def derived(seed: Tensor, *parts: int | Tensor) -> Tensor:
    """As `arrcomp.seeds.derived`, bit for bit; nothing waits for a device.

    Args:
        seed: int64 of any shape, read without its sign.
        parts: integers from 0, or int64 tensors of them, whose shapes go together with that of the seed.

    Returns:
        int64 of the common shape, to be read without its sign.
    """
    for part in parts:
        step = (part + 1) * _GOLDEN
        seed = _mixed(seed + (step if isinstance(step, Tensor) else signed(step)))
    return seed


def signed(number: int) -> int:
    """The number from -2^63 to 2^63 - 1 that has the same 64 bits."""
    number %= _TWO_64
    return number - _TWO_64 if number >> 63 else number


def upper_half(words: Tensor) -> Tensor:
    """The upper 32 bits of 64-bit words, as int64 from 0 to 2^32 - 1."""
    return words >> 32 & 0xFFFFFFFF


_GOLDEN = signed(0x9E3779B97F4A7C15)
_FACTORS = signed(0xBF58476D1CE4E5B9), signed(0x94D049BB133111EB)


def _mixed(z: Tensor) -> Tensor:
    # Shifts of int64 copy the sign, which the masks take away; products wrap around.
    z = (z ^ z >> 30 & (1 << 34) - 1) * _FACTORS[0]
    z = (z ^ z >> 27 & (1 << 37) - 1) * _FACTORS[1]
    return z ^ z >> 31 & (1 << 33) - 1
