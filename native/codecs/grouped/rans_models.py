"""The distributions of symbols behind the static tables of the entropy coder.

Every model is an array of 64 probabilities, float64; symbol 63 collects whatever lies beyond. A family is given by
its tail, the probability P(|x| > t) of the magnitude at scale 1, and turned into symbols the way a chunk is: as
quantized values (zigzag, plain or masked) or as exponents, mostly with the mantissa's highest bit. Families and
scales were chosen by the bits that a table's removal costs over synthetic weights, gradients, activations, sparse and
uniform data.
"""

from collections.abc import Callable, Iterable
from math import floor, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

Array = NDArray[np.float64]
Tail = Callable[[Array], Array]

SYMBOLS = 64
LAST = SYMBOLS - 1
BASE_ABOVE_MEAN = 6  # the writer's exponent base is floor(mean exponent) + 6,
WIDE_BASE_ABOVE_MEAN = 16  # or this much above, where more than 1 in 512 exponents exceed the former
EXPONENTS = np.arange(-100, 101)  # wide enough for every family at scales near 1


# Families: P(|x| > t) at scale 1.
def gaussian(t: Array) -> Array:
    """Weights, activations: erfc(t / sqrt 2)."""
    return special.erfc(t / sqrt(2))


def laplace(t: Array) -> Array:
    """Differences of smooth data, embeddings; exponential where data is plain."""
    return np.exp(-t)


def student3(t: Array) -> Array:
    """Student's t with 3 degrees of freedom: weights with outliers."""
    return 2 * stats.t.sf(t, 3)


def uniform(t: Array) -> Array:
    """Uniform on [-1, 1]: initial weights, random test data."""
    return np.clip(1 - t, 0, 1)


def squared_gaussian(t: Array) -> Array:
    """Second moments of gradients of one scale."""
    return gaussian(np.sqrt(t))


def scale_mixture(tail: Tail, spread: float) -> Tail:
    """`tail` at scales exp N(0, spread^2): chunks that span rows or channels, gradients."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    shares = weights / weights.sum()
    return lambda t: sum(share * tail(t / np.exp(spread * node)) for node, share in zip(nodes, shares, strict=True))


def lognormal(octaves: float) -> Tail:
    """log2 |x| normal with standard deviation `octaves`: optimizer state where wide, few exponents where narrow."""
    return lambda t: stats.norm.sf(np.log2(t) / octaves)


def one_octave(t: Array) -> Array:
    """Uniform from 1 to 2: a constant exponent."""
    return np.clip(2 - t, 0, 1)


def offset_gaussian(mean: float) -> Tail:
    """N(mean, 1): data away from zero, such as scales of normalization layers."""
    return lambda t: special.ndtr(mean - t) + special.ndtr(-mean - t)


# Quantized values: q = rint(x / step), with the scale in units of the step.
def magnitudes(tail: Tail, scale: float) -> Array:
    """Probabilities of |q| = 0 to 63 for x = scale times the family."""
    beyond = np.append(1.0, tail((np.arange(1, SYMBOLS + 1) - 0.5) / scale))
    return beyond[:-1] - beyond[1:]


def with_rest(probabilities: Array) -> Array:
    """The first 63 probabilities, and all the rest on the last symbol."""
    kept = np.maximum(probabilities[:LAST], 0)
    return np.append(kept, max(0.0, 1 - kept.sum()))


def zigzag(tail: Tail, scale: float) -> Array:
    """Symbols 0, 1, 2, 3, 4... for q = 0, -1, 1, -2, 2..."""
    doubled = np.repeat(magnitudes(tail, scale), 2) / 2
    return with_rest(np.append(2 * doubled[0], doubled[2:]))


def masked(tail: Tail, scale: float) -> Array:
    """Zigzag without the zeros, less 1: what a mask of values leaves."""
    pairs = np.repeat(magnitudes(tail, scale)[1:], 2) / 2
    return with_rest(pairs / tail(np.array([0.5 / scale]))[0])


def plain(tail: Tail, scale: float) -> Array:
    """Symbol = |q|: chunks without negative values."""
    return with_rest(magnitudes(tail, scale))


def zero_inflated(zeros: float, scale: float) -> Array:
    """Zeros with a given share, the rest a Laplace distribution: sparse gradients, optimizer state, activations."""
    return with_rest(np.append(zeros, (1 - zeros) * masked(laplace, scale)))


def sparse_counts(zeros: float, ratio: float) -> Array:
    """Zeros with a given share, the rest 1, 2, 3... geometric: counts, sparse data without negative values."""
    return with_rest(np.append(zeros, (1 - zeros) * (1 - ratio) * ratio ** np.arange(LAST)))


def flat(width: float) -> Array:
    """Uniform symbols from 0 to `width`: uniform data, zigzag and plain alike."""
    return with_rest(np.clip(width - np.arange(SYMBOLS), 0, 1) / width)


def octaves(first: float, last: float, step: float) -> Iterable[float]:
    """2^first, 2^(first + step), ... 2^last."""
    return (2.0**exponent for exponent in np.arange(first, last + step / 2, step))


# Shifts keep the mean of dense symbols below 20, so that scales end near 2^3.3. Quarter octaves lose 0.003 bits per
# value, half octaves no more below 1; shifted Gaussians, which all meet the last octave, come in sixths.
GAUSSIAN_SCALES = (*octaves(-1, 0, 1 / 2), *octaves(0.5, 1.75, 1 / 4), *octaves(2, 10 / 3, 1 / 6))
LAPLACE_SCALES = (*octaves(-2.5, 0, 1 / 2), *octaves(0.25, 2.25, 1 / 4))
# Shares of zeros, and scales, which go further: sparse data is shifted little, as every zero pays for it.
SPARSE_SCALES = (
    (0.45, (2, 4, 8)),
    (0.6, (1, 2, 4, 8, 16)),
    (0.75, (2, 4, 8, 16, 32)),
    (0.85, (1, 3, 8, 24)),
    (0.92, (1, 4, 16)),
    (0.97, (1, 8, 32)),
)
# Shares of zeros among counts, and by how much each count is rarer than the one before.
COUNT_ZEROS = (0.6, 0.7, 0.78, 0.85, 0.9, 0.94, 0.965, 0.985)
COUNT_RATIOS = (0.03, 0.2, 0.4, 0.65)
# Shifted uniform data ends between 16 and 32; below, edges one past a knot of the costs tell apart best.
FLAT_WIDTHS = (3, 4, 7, 11, 15, 17, 19, 21, 23, 25.5, 28, 31)


def quantized_models() -> Array:
    """The models of tables 0 to 127, float64 [128, 64]."""
    mixture, wide_mixture = scale_mixture(gaussian, 1), scale_mixture(gaussian, 2)
    return np.array(
        [
            *(zigzag(gaussian, scale) for scale in GAUSSIAN_SCALES),
            *(zigzag(laplace, scale) for scale in LAPLACE_SCALES),
            *(zigzag(mixture, scale) for scale in octaves(-2, 1, 1 / 2)),
            *(zigzag(wide_mixture, scale) for scale in octaves(-2, 0, 1)),
            *(zero_inflated(zeros, scale) for zeros, scales in SPARSE_SCALES for scale in scales),
            *(masked(laplace, scale) for scale in octaves(-1.5, 1, 1 / 2)),
            *(plain(gaussian, scale) for scale in octaves(-1, 1.5, 1 / 2)),
            *(plain(laplace, scale) for scale in octaves(-1, 1, 1)),
            *(plain(mixture, scale) for scale in octaves(-1, 1, 1)),
            *(flat(width) for width in FLAT_WIDTHS),
            *(sparse_counts(zeros, ratio) for zeros in COUNT_ZEROS for ratio in COUNT_RATIOS),
        ]
    )


# Exponents, and the highest bit of their mantissas: symbol = 2 (base - floor(log2 |x|)), and one more below 1.5 times
# the power of two; symbol = base - floor(log2 |x|) where exponents are wide.
def exponents(tail: Tail, location: float) -> Array:
    """Probabilities of `EXPONENTS` for x = 2^location times the family."""
    beyond = tail(2.0 ** (np.append(EXPONENTS, EXPONENTS[-1] + 1) - location))
    return beyond[:-1] - beyond[1:]


def upper_halves(tail: Tail, location: float) -> Array:
    """Of these, the part from 1.5 times the power of two on."""
    return tail(1.5 * 2.0 ** (EXPONENTS - location)) - tail(2.0 ** (EXPONENTS + 1 - location))


def mean_exponent(tail: Tail, location: float) -> float:
    """The mean of floor(log2 |x|) for x = 2^location times the family."""
    probabilities = exponents(tail, location)
    return float(EXPONENTS @ probabilities / probabilities.sum())


def location_of(tail: Tail, mean: float) -> float:
    """The location where `mean_exponent` is `mean`."""
    return optimize.brentq(lambda location: mean_exponent(tail, location) - mean, -20, 20)


def downwards(probabilities: Array, base: int) -> Array:
    """Probabilities of exponents, from the base down."""
    return probabilities[int(np.flatnonzero(base == EXPONENTS)[0]) :: -1]


def half_octaves(tail: Tail, location: float, base: int) -> Array:
    """Symbols of x = 2^location times the family."""
    both, upper = downwards(exponents(tail, location), base), downwards(upper_halves(tail, location), base)
    return with_rest(np.stack([upper, both - upper], axis=1).reshape(-1)[:LAST])


def whole_octaves(tail: Tail, location: float, base: int) -> Array:
    """The same where exponents are wide."""
    return with_rest(downwards(exponents(tail, location), base)[:LAST])


def phases(tail: Tail, count: int, is_wide: bool = False) -> list[Array]:
    """`count` places in the octave, evenly by the fraction that rounding down takes off the mean exponent.

    The writer's mean comes from a sample, so the fraction reaches a little (0.04) beyond 0 and 1.
    """
    fractions = -0.04 + 1.08 * (np.arange(count) + 0.5) / count
    symbols, base = (whole_octaves, WIDE_BASE_ABOVE_MEAN) if is_wide else (half_octaves, BASE_ABOVE_MEAN)
    return [symbols(tail, location_of(tail, fraction), base) for fraction in fractions]


def narrow(width: float, count: int) -> list[Array]:
    """`count` places in the octave of a lognormal too narrow for `phases`: its mean exponent is almost a step."""
    tail = lognormal(width)
    locations = [(place + 0.5) / count for place in range(count)]
    means = [floor(mean_exponent(tail, location)) for location in locations]
    return [half_octaves(tail, x, mean + BASE_ABOVE_MEAN) for x, mean in zip(locations, means, strict=True)]


# Widths in octaves, and the number of phases of each.
NARROW_LOGNORMALS = ((0.1, 2), (0.25, 4), (0.45, 4))
LOGNORMALS = ((0.72, 4), (1.05, 3), (1.45, 3), (2.1, 2))
WIDE_LOGNORMALS = ((2.7, 1), (4, 1), (6, 1))


def exponent_models() -> Array:
    """The models of tables 128 to 191, float64 [64, 64].

    Exponents of one family have one shape that depends on the scale's fraction of an octave alone; the sharper its
    peak, the more phases it takes.
    """
    return np.array(
        [
            *phases(gaussian, 8),
            *phases(laplace, 4),
            *phases(student3, 4),
            *phases(uniform, 5),
            *phases(squared_gaussian, 4),
            *phases(scale_mixture(gaussian, 1), 3),
            *phases(offset_gaussian(2), 3),
            *phases(offset_gaussian(3), 3),
            *(half_octaves(one_octave, 0, above) for above in (BASE_ABOVE_MEAN - 1, BASE_ABOVE_MEAN)),
            *(model for width, count in NARROW_LOGNORMALS for model in narrow(width, count)),
            *(model for width, count in LOGNORMALS for model in phases(lognormal(width), count)),
            *phases(scale_mixture(squared_gaussian, 1), 3, is_wide=True),
            *(model for w, count in WIDE_LOGNORMALS for model in phases(lognormal(w), count, is_wide=True)),
        ]
    )
