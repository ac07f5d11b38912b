"""Seeds for parts of one operation."""

MAX_SEED = (1 << 64) - 1


def derived(seed: int, *parts: int) -> int:
    """A seed of its own for a part of an operation, which numbers such as a rank and a step tell from the others.

    Each number is mixed into the seed by SplitMix64's output function (G. Steele, D. Lea, C. Flood, "Fast splittable
    pseudorandom number generators", OOPSLA 2014, figure 16), a bijection: seeds that
    differ in one number differ.
    """
    for part in parts:
        seed = _mixed((seed + 0x9E3779B97F4A7C15 * (part + 1)) & MAX_SEED)
    return seed


def _mixed(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MAX_SEED
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MAX_SEED
    return z ^ z >> 31
