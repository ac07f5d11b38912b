"""What codecs guarantee: a function for each, which compares flat arrays."""

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...codecs import QSGD, S2FP8, BaseDelta, Codebook, ErrorBounded, FloatFormat, SmaQ
from .comparison import (
    BLOCK,
    Array,
    Comparison,
    Floats,
    bits_differ,
    blocks,
    bucket_rows,
    compare_bits,
    compare_buckets,
    compare_flat,
    components,
    distance,
    finfo,
    finite_ends,
    finite_range,
    is_fill,
    judged,
    rounding_error,
    total,
)

_NEAR = 1e-3  # relative; values this near to a threshold may be on either side, as statistics are rounded
_TOP, _LEAST, _LEAST_NORMAL = 15.0, -16, -14  # log2 of S2FP8's largest squeezed value, and of the least numbers of e5m2


@compare_flat.register
def compare_error_bounded(codec: ErrorBounded, x: Array, y: Array) -> Comparison:
    """Finite values are within their bound; others, and the fill value, have equal bits."""
    bound = math.nan
    if codec.pointwise is None:
        bound = codec.abs if codec.abs is not None else float(codec.rel or 0) * finite_range(x, codec.fill_value)

    def compared(a: Array, b: Array) -> Comparison:
        with np.errstate(all="ignore"):
            wide, back, finite = a.astype(np.float64), b.astype(np.float64), np.isfinite(a)
            error, residue = distance(wide, back)
            allowed = bound if codec.pointwise is None else codec.pointwise * np.abs(wide)
        within = (error < allowed) | ((error == allowed) & (residue <= 0))
        exact = ~finite | is_fill(a, codec.fill_value)
        lost = exact & bits_differ(a, b)
        right: NDArray[np.bool_] = np.where(exact, ~lost, within)
        return judged(right, np.where(exact, np.where(lost, np.inf, 0.0), error))

    return total(compared(a, b) for a, b in blocks(x, y))


@compare_flat.register
def compare_base_delta(codec: BaseDelta, x: Array, y: Array) -> Comparison:
    """Every bit is equal, except the lowest `drop_bits` of mantissas, which are rounded off."""
    if codec.drop_bits == 0:
        return compare_bits(x, y)

    def compared(a: Array, b: Array) -> Comparison:
        with np.errstate(invalid="ignore"):
            wide, back = a.astype(np.float64), b.astype(np.float64)
            finite = np.isfinite(wide)
            same = (wide == back) | (np.isnan(wide) & np.isnan(back))
            error, _ = distance(wide, back)  # exact for neighbours
            lost = (~finite & ~same) | (np.signbit(wide) != np.signbit(back))
            right = ~lost & (~finite | _within_kept_bits(wide, back, error, codec, finfo(a.dtype)))
        return judged(right, np.where(lost, np.inf, np.where(finite, error, 0.0)))

    return total(compared(a, b) for a, b in blocks(components(x), components(y)))


def _within_kept_bits(x: Floats, y: Floats, error: Floats, codec: BaseDelta, limits: Any) -> NDArray[np.bool_]:
    """Whether each finite value is within the value of its lowest kept bit, or half of it with rounding to nearest."""
    kept = int(limits.nmant) - codec.drop_bits
    exponent = np.maximum(np.frexp(x)[1] - 1, int(limits.minexp))
    unit = np.ldexp(1.0, exponent - kept)
    within: NDArray[np.bool_] = error < unit
    if codec.rounding == "nearest":
        largest = math.ldexp(2.0 - math.ldexp(1.0, -kept), int(limits.maxexp) - 1)
        within &= (error <= unit / 2) | (np.abs(x) > largest)
    elif codec.rounding == "truncate":
        within &= np.abs(y) <= np.abs(x)
    return within


@compare_flat.register
def compare_qsgd(codec: QSGD, x: Array, y: Array) -> Comparison:
    """Values are within the distance of two levels (half of it with rounding to nearest)."""
    kept = x.size - x.size % codec.bucket_size if codec.skip_incomplete else x.size

    def limits(a: Floats, b: Floats) -> Floats:
        magnitude = np.abs(a).max(axis=1, keepdims=True)
        if codec.norm == "minmax":
            unit = np.ptp(a, axis=1, keepdims=True) / (2**codec.bits - 1)
        else:
            squares = np.sqrt(np.square(a / np.where(magnitude > 0, magnitude, 1)).sum(axis=1, keepdims=True))
            norm = magnitude * squares if codec.norm == "l2" else magnitude
            unit = norm / (2 ** (codec.bits - 1) - 1) if codec.bits > 1 else 2 * norm
        rounding = 2.0 * float(finfo(x.dtype).eps) * magnitude + 1e-5 * unit + 2.0**-148
        return np.broadcast_to(_share(codec) * unit + rounding, a.shape)

    found = compare_buckets(x[:kept], y[:kept], codec.bucket_size, limits)
    return found._replace(violations=found.violations + int(bits_differ(x[kept:], y[kept:]).sum()))


@compare_flat.register
def compare_codebook(codec: Codebook, x: Array, y: Array) -> Comparison:
    """Values are the level of their interval, or NaN in buckets with NaN or infinity.

    Next to a border both levels are correct, as the scaled value may have been rounded across it.
    """
    borders, levels = (np.array(table, np.float32).astype(np.float64) for table in (codec.borders, codec.levels))
    largest = float(finfo(x.dtype).max)

    def compared(a: Floats, b: Floats) -> Comparison:
        broken = np.broadcast_to(~np.isfinite(a).all(axis=1, keepdims=True), a.shape)
        a = np.where(broken, 0.0, a)
        scale = np.ones((len(a), 1)) if codec.scaling is None else np.abs(a).max(axis=1, keepdims=True)
        v = a / np.where(scale > 0, scale, 1.0)
        slack = np.abs(v) * (1e-15 if x.dtype == np.float64 else 5e-7)
        right = broken & np.isnan(b)
        for shift in (-slack, slack):
            expected = np.clip(levels[np.searchsorted(borders, v + shift)] * scale, -largest, largest)
            right |= ~broken & (np.abs(b - expected) <= rounding_error(np.abs(expected), x.dtype))
        error = np.where(broken, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
        return judged(right, error)

    size = max(x.size, 1) if codec.scaling == "tensor" else codec.bucket_size
    return total(compared(a, b) for a, b in bucket_rows(x, y, size))


@compare_flat.register
def compare_smaq(codec: SmaQ, x: Array, y: Array) -> Comparison:
    """Values are within a step (half of it with rounding to nearest), zeros exact."""
    if x.size < codec.min_size:
        return compare_bits(x, y)

    def limits(a: Floats, b: Floats) -> Floats:
        extent = np.ptp(a, axis=1, keepdims=True)
        limit = np.where(extent > 0, _smaq_steps(a, extent, codec), 0.0)
        if codec.all_positive:
            limit = np.fmax(limit, -a)  # ignores NaN
        if codec.preserve_zeros:
            limit = np.where(a == 0, 0.0, limit)
        return limit + np.where(limit > 0, rounding_error(np.fmax(np.abs(a), np.abs(b)), x.dtype), 0.0)

    return compare_buckets(x, y, codec.block_size or max(x.size, 1), limits)


def _smaq_steps(a: Floats, extent: Floats, codec: SmaQ) -> Floats:
    main, outer = 2 ** (codec.main_bits - 2) - 1, 2 ** (codec.outlier_bits - 2) - 1
    if codec.statistics in ("sampled", "range"):  # for every estimate
        widest = max(codec.main_threshold / main, 2 / outer) if codec.overflow == "extend" else 1.0
        return np.broadcast_to(widest * extent, a.shape)
    mean, std = a.mean(axis=1, keepdims=True), a.std(axis=1, keepdims=True)
    if codec.mean is not None and codec.std is not None:
        mean, std = np.full_like(mean, codec.mean), np.full_like(std, codec.std)
    distance = np.abs(a - mean)
    farthest = distance.max(axis=1, keepdims=True)
    last = farthest if codec.overflow == "extend" else codec.outlier_threshold * std
    start = codec.main_threshold * std
    near = np.where(distance < start * (1 + _NEAR), start / main, 0)
    beyond = np.where(distance > start * (1 - _NEAR), np.maximum(last - start, 0) / outer, 0)
    rounding = 1e-5 * (std + farthest)
    steps: Floats = _share(codec) * (1 + _NEAR) * np.maximum(near, beyond) + np.maximum(distance - last, 0) + rounding
    return steps


@compare_flat.register
def compare_float_format(codec: FloatFormat, x: Array, y: Array) -> Comparison:
    """Values are within the distance of two numbers at their scale, or half of it with rounding to nearest."""
    scaled = codec.scaling is not None or codec.numbers.block_size > 0
    size = codec.numbers.block_size or codec.bucket_size or max(x.size, 1)
    low, high = finite_ends(x)
    most = min(codec.numbers.largest, float(finfo(x.dtype).max))

    def compared(a: Floats, b: Floats) -> Comparison:
        with np.errstate(all="ignore"):
            scale = _scales(a, max(-low, high, 0.0), codec) if scaled else np.ones((1, 1))
            error, limit = _errors(a, b, scale, codec)
            limit += np.where(np.isfinite(a), rounding_error(np.abs(a), x.dtype, 4.0), 0.0)
            if codec.overflow == "infinity":
                error = np.where(np.isfinite(a) & ~np.isfinite(b) & (np.abs(a) + limit >= most), 0.0, error)
        return judged(error <= limit, error)

    return total(compared(a, b) for a, b in bucket_rows(x, y, size if scaled else BLOCK))


def _scales(a: Floats, largest: float, codec: FloatFormat) -> Floats:
    """Each bucket's scale; NaN in buckets that are not finite."""
    amax: Floats = np.abs(a).max(axis=1, keepdims=True)
    most = codec.numbers.largest
    if codec.scale_rule is not None:
        ratio, exponent = np.frexp(amax)
        ratio_of_most, exponent_of_most = np.frexp(most)
        power = exponent - exponent_of_most + ((codec.scale_rule == "ceil") & (ratio > ratio_of_most))
        scale = np.ldexp(1.0, np.clip(np.where(amax > 0, power, -127), -127, 127).astype(np.int32))
    elif codec.numbers.block_size:
        of_array = largest / (448 * most)
        ratio = np.minimum(amax / (of_array if of_array else 1.0) / most, 448.0)
        scale = ratio.astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * of_array
    else:
        scale = amax / most
    return np.where(np.isfinite(amax), scale, np.nan)


def _errors(a: Floats, b: Floats, scale: Floats, codec: FloatFormat) -> tuple[Floats, Floats]:
    """Each value's error (0 where it became NaN or infinite as it must) and its limit."""
    numbers = codec.numbers
    magnitude = np.abs(a)
    scaled = np.minimum(magnitude / np.where(scale > 0, scale, 1), numbers.largest)
    exponent = np.maximum(np.frexp(scaled)[1] - 1, 1 - numbers.bias)
    spacing = np.ldexp(scale, exponent - numbers.mantissa_bits)
    beyond = np.maximum(magnitude - numbers.largest * scale, 0.0)
    limit = _share(codec) * spacing + beyond
    if codec.format == "nvfp4":
        limit *= 1.125  # the block's scale is rounded too, up or down
    special = ~np.isfinite(a) | np.isnan(scale)
    lost = np.isnan(b)
    if numbers.has_infinity and not codec.scaling and not numbers.block_size:
        lost = np.where(np.isnan(a), lost, a == b)
    error = np.where(special, np.where(lost, 0.0, np.inf), np.abs(a - b))
    return error, np.where(special, 0.0, limit)


class _BucketParameters(NamedTuple):
    """Columns with each bucket's alpha, log2 of its largest magnitude, and whether all its values are finite."""

    alpha: Floats
    top: Floats
    finite: NDArray[np.bool_]


@compare_flat.register
def compare_s2fp8(codec: S2FP8, x: Array, y: Array) -> Comparison:
    """Squeezed values are within half a step of e5m2 (a step with stochastic rounding); broken buckets are NaN."""
    size = min(codec.bucket_size or max(x.size, 1), max(x.size, 1))
    if size <= BLOCK:
        rows = bucket_rows(x, y, size)
        return total(_compare_rows(a, b, _fit([a]), x.dtype, codec) for a, b in rows)
    parts = []
    for start in range(0, x.size, size):  # a large bucket block by block
        a, b = x[start : start + size], y[start : start + size]
        fitted = _fit([block for block, _ in bucket_rows(a, a, BLOCK)])
        parts += [_compare_rows(*pair, fitted, x.dtype, codec) for pair in bucket_rows(a, b, BLOCK)]
    return total(parts)


def _logarithms(magnitudes: Floats) -> Floats:
    return np.log2(magnitudes, out=np.full_like(magnitudes, -np.inf), where=magnitudes > 0)


def _fit(blocks: list[Floats]) -> _BucketParameters:
    """The parameters of buckets. Each bucket is a row, whose columns are in these blocks."""
    rows = len(blocks[0])
    total, count, top = np.zeros(rows), np.zeros(rows), np.full(rows, -np.inf)
    finite = np.ones(rows, np.bool_)
    for block in blocks:
        logarithms = _logarithms(np.abs(np.nan_to_num(block, nan=0, posinf=0, neginf=0)))
        known = logarithms > -np.inf
        total += np.where(known, logarithms, 0).sum(axis=1)
        count += known.sum(axis=1)
        top = np.maximum(top, logarithms.max(axis=1))
        finite &= np.isfinite(block).all(axis=1)
    top = np.where(count > 0, top, 0)
    spread = top - total / np.maximum(count, 1)
    return _BucketParameters(_TOP / np.maximum(spread, 2.0**-20)[:, None], top[:, None], finite[:, None])


def _compare_rows(x: Floats, y: Floats, fitted: _BucketParameters, dtype: Any, codec: S2FP8) -> Comparison:
    with np.errstate(all="ignore"):
        least, most = _neighbours(np.abs(x), fitted, _share(codec))
        # Smaller values are beyond the exponents of the arithmetic.
        most = np.maximum(most, np.exp2(fitted.top - (2000 if dtype.itemsize == 8 else 250)))
        rounding = rounding_error(np.abs(y), dtype)
        rounding += 1e-5 * np.abs(x) + 1e-5 * np.abs(y)  # of the logarithms and powers
        inside = (np.abs(y) >= least - rounding) & (np.abs(y) <= most + rounding) & (np.signbit(x) == np.signbit(y))
        kept = np.where(x == 0, (y == 0) & (np.signbit(x) == np.signbit(y)), inside)
        right = np.where(fitted.finite, kept, np.isnan(y))
        error = np.where(fitted.finite, np.abs(x - y), np.where(np.isnan(y), 0, np.inf))
    return judged(right, error)


def _neighbours(magnitudes: Floats, fitted: _BucketParameters, share: float) -> tuple[Floats, Floats]:
    """The least and the largest magnitude within the guarantee: squeezed, this share of a step of e5m2 away."""
    exponent = _TOP + fitted.alpha * (_logarithms(magnitudes) - fitted.top)
    squeezed = np.exp2(np.maximum(exponent, -1000))
    step = np.exp2(np.floor(np.clip(exponent, _LEAST_NORMAL, _TOP)) - 2) * share * (1 + 1e-3)

    def widened(value: Floats) -> Floats:
        found: Floats = np.exp2((_logarithms(np.maximum(value, 0)) - _TOP) / fitted.alpha + fitted.top)
        return found

    # Below the least number of e5m2 it is that or 0.
    least = np.where(exponent < _LEAST, 0, squeezed - step)
    most = np.where(exponent < _LEAST, np.maximum(squeezed + step, 2.0**_LEAST), squeezed + step)
    return widened(least), np.minimum(widened(most), np.exp2(fitted.top))


def _share(codec: Any) -> float:
    """The largest error, in distances between levels."""
    return 0.5 if codec.rounding == "nearest" else 1.0
