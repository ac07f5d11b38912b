"""Seeds for the steps of one operation."""

MAX_SEED = (1 << 64) - 1


def derived(seed: int, *numbers: int) -> int:
    """A seed derived from a seed and numbers, such as a rank and a step.

    SplitMix64's output function (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA
    2014, figure 16) mixes each number into the seed. It is a bijection: if one number differs, the seeds differ.
    """
    for number in numbers:
        seed = _mixed((seed + 0x9E3779B97F4A7C15 * (number + 1)) & MAX_SEED)
    return seed


def _mixed(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MAX_SEED
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MAX_SEED
    return z ^ z >> 31
