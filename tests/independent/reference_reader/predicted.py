"""Section 9: predicted arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .chunks import Chunk
from .dtypes import DTYPES, Dtype
from .elements import Floats, from_quantized, largest_of, ordered, round_down, round_to
from .groups import joined, read_chunks, read_group
from .rows import low_bits
from .source import U64, Source, need

AXES = 4  # in the header, and in sets of axes
FIRST_AXIS = 4  # the number of the one before them
LAST_AXIS = 1 << (AXES - 1)  # in a set
MOST_STEPS = 64
FULL_SCALE = 4096
ABSENT = np.uint64(1)
MOST_PER_GROUP = 16  # chunks of codes
MASK_PER_GROUP = 4  # chunks of a mask
LEAST_LINE = 32  # elements of a mask's line, where there are as many
PIECE = 4096  # elements of a line
BITS_OF_BYTE = 4  # of a mask
LARGEST_CODE = 2**50  # that the page gives a meaning to, where W = 64
LARGEST_INTEGER = {32: 2.0**30, 64: 2.0**50}  # by the bits of the arithmetic type
MOST_EXPONENT = {32: 60, 64: 500}  # of a multiplier, divisor or offset
MOST_CORRECTION_BITS = 8
BY_COLUMNS = 1 << 7  # of the byte of differences
MOST_ROWS = 1 << 14  # of a band of columns
LEAST_KEPT = 8  # slices of a grid whose last one may be kept
FULL_WEIGHT = 2**15
CUBIC, HELD, KEEPS_LAST, WEIGHTED = 1, 2, 4, 8  # kinds of steps

UINT8, INT32, INT64 = DTYPES[3], DTYPES[6], DTYPES[8]


class Step(NamedTuple):
    """A step of refinement, along an axis: 0 to 3, or FIRST_AXIS."""

    axis: int
    cubic: bool
    scale: int
    held: bool = False
    keeps_last: bool = False
    weights: tuple[int, int] | None = None  # of near and far neighbours

    def coarser(self, size: int) -> int:
        """How many of so many slices the coarser grid has."""
        return size // 2 + 1 if self.keeps_last else -(-size // 2)


class Multiples(NamedTuple):
    """Elements are multiples of the multiplier by the divisor, from the offset on, corrected (section 9.6)."""

    multiplier: float
    divisor: float
    offset: float
    correction_bits: int

    @property
    def least_correction(self) -> int:
        return -(((1 << self.correction_bits) - 1) // 2)


class Prediction(NamedTuple):
    """What the payload of a predicted array says in front of its codes; steps are in the order of decoding.

    `sizes` are those of axes 0 to 3, behind that of the first axis if there is one. An array by columns has so many
    axes of columns, and bands of so many rows.
    """

    bound: float
    differences: int
    has_mask: bool
    scale: int
    sizes: tuple[int, ...]
    steps: tuple[Step, ...]
    multiples: Multiples | None
    column_axes: int = 0
    band: int = 0

    def place(self, axis: int) -> int:
        """Where an axis stands among the sizes."""
        if axis == FIRST_AXIS:
            need(len(self.sizes) > AXES, "a first axis that is not there")
            return 0
        return len(self.sizes) - AXES + axis

    def grids(self) -> list[tuple[int, ...]]:
        """The sizes of all grids, the coarsest first and the array last."""
        found = [self.sizes]
        for step in reversed(self.steps):
            sizes = list(found[0])
            axis = self.place(step.axis)
            size = sizes[axis]
            need(size >= 2, "a step along an axis of one slice")
            need(not step.keeps_last or (size % 2 == 0 and size >= LEAST_KEPT), "a last slice that is not kept")
            sizes[axis] = step.coarser(size)
            found.insert(0, tuple(sizes))
        return found

    def distances(self) -> list[float]:
        """How far the last slice of each step's coarser grid is from the one before it, where others are 1 apart."""
        found: list[float] = []
        last = [1.0] * len(self.sizes)
        for step, finer in zip(reversed(self.steps), reversed(self.grids()), strict=False):
            axis = self.place(step.axis)
            own = last[axis]
            last[axis] = (1 + own) / 2 if finer[axis] % 2 else own / 2 if step.keeps_last else 1.0
            found.insert(0, last[axis])
        return found


def places_of(axes: int, sizes: tuple[int, ...]) -> list[int]:
    """Where the axes of a set stand among the sizes."""
    return [len(sizes) - AXES + axis for axis in range(AXES) if axes >> axis & 1]


class GapMask(NamedTuple):
    """Which elements have the bits of the fill: the chunks of its bytes, coded by differences along these axes."""

    fill: int
    axes: int
    chunks: list[tuple[Chunk, U64]]
    nbytes: int


class Parts(NamedTuple):
    """A payload taken apart: its prediction, and the chunks, with their elements' bits, of codes and exact elements.

    The codes of an array by columns are its elements.
    """

    prediction: Prediction
    codes: list[tuple[Chunk, U64]]
    exact: list[tuple[Chunk, U64]]
    mask: GapMask | None = None


def is_predicted(payload: bytes, n: int) -> bool:
    """Whether the payload of n elements is that of a predicted array."""
    return n > 0 and payload[8:12] == bytes(4)


def read_parts(payload: bytes, dtype: Dtype, n: int) -> Parts:
    """The parts of a predicted array's payload (section 9.1)."""
    need(dtype.predictable, "a predicted array of such a dtype")
    source = Source(payload)
    prediction, codes_size, exact_size = read_prediction(source, dtype, n)
    codes_payload = source.take(codes_size)
    if prediction.column_axes:
        need(source.left == exact_size == 0, "bytes left over behind an array by columns")
        need(read_bound(Source(codes_payload), dtype) == prediction.bound, "bound of columns")
        return Parts(prediction, read_chunks(codes_payload, dtype, n, read_group), [])
    per_group = 4 if n < 2**16 else 8 if n < 2**20 else MOST_PER_GROUP
    if codes_payload[8:12] == MOST_PER_GROUP.to_bytes(4, "little"):
        per_group = MOST_PER_GROUP
    codes = read_chunks(codes_payload, INT64 if dtype.bits == 64 else INT32, n, read_group, per_group=per_group)
    mask = read_mask(source, prediction, dtype) if prediction.has_mask else None
    exact: list[tuple[Chunk, U64]] = []
    if exact_size:
        source.align(8)
        exact_payload = source.take(exact_size)
        need(float(Source(exact_payload).array("f8", 1)[0]) == 0, "bound of exact elements")
        exact = read_chunks(exact_payload, dtype, n, read_group)
    need(source.left == 0, "bytes left over behind a predicted array")
    return Parts(prediction, codes, exact, mask)


def read_mask(source: Source, prediction: Prediction, dtype: Dtype) -> GapMask:
    """Take the mask of gaps (section 9.5)."""
    need(dtype.exponent > 0, "a mask of integers")
    source.align(8)
    fill, axes, size = source.words(8, 3).tolist()
    need(fill < 1 << dtype.bits and axes < 1 << AXES, "fill or axes of a mask")
    grid, _ = mask_grid(prediction.sizes)
    need(all(grid[a] > 1 for a in places_of(axes & ~LAST_AXIS, grid)), "differences of a mask along an axis of lines")
    need(size > 0, "a mask without a payload")
    payload = source.take(size)
    need(float(Source(payload).array("f8", 1)[0]) == 0, "bound of a mask")
    chunks = read_chunks(payload, UINT8, math.prod(grid), read_group, per_group=MASK_PER_GROUP)
    return GapMask(fill, axes, chunks, size)


def mask_grid(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The sizes of a mask's bytes along all axes, and how many elements a line has."""
    outer, line = list(sizes[:-1]), sizes[-1]
    for axis in reversed(range(len(outer))):
        if line >= LEAST_LINE:
            break
        line, outer[axis] = line * outer[axis], 1
    return (*outer, -(-line // BITS_OF_BYTE)), line


def masked(prediction: Prediction, mask: GapMask) -> NDArray[np.bool_]:
    """Which elements are those of the mask."""
    grid, line = mask_grid(prediction.sizes)
    bits = joined(mask.chunks)[:, None] >> np.arange(BITS_OF_BYTE, dtype=np.uint64) & np.uint64(1)
    bits = bits.reshape(*grid[:-1], -1)[..., :line]
    for axis in places_of(mask.axes & ~LAST_AXIS, grid):
        bits = np.bitwise_xor.accumulate(bits, axis=axis)
    if mask.axes & LAST_AXIS:
        pieces = [np.bitwise_xor.accumulate(bits[..., at : at + PIECE], axis=-1) for at in range(0, line, PIECE)]
        bits = np.concatenate(pieces, axis=-1)
    return bits.ravel().astype(bool)


def read_bound(source: Source, dtype: Dtype) -> float:
    """Take the bound of a predicted array."""
    bound = float(source.array("f8", 1)[0])
    least = 2.0 ** (-1000 if dtype.bits == 64 else -110) if dtype.quantizable else math.inf
    need(bound == 0 or least <= bound < math.inf, "bound of a predicted array")
    return bound


def read_prediction(source: Source, dtype: Dtype, n: int) -> tuple[Prediction, int, int]:
    """Take what stands in front of the codes; returns it and the lengths of the two payloads."""
    bound = read_bound(source, dtype)
    need(source.number(4) == 0, "chunks per group of a predicted array")
    count, modes, scale = source.number(1), source.number(1), source.number(2)
    if modes & BY_COLUMNS:
        column_axes = modes - BY_COLUMNS
        need(count == 0 and 1 <= column_axes < AXES and 1 <= scale <= MOST_ROWS, "header of an array by columns")
        sizes = tuple(source.words(8, AXES).tolist())
        need(math.prod(sizes) == n, "sizes of the axes")
        codes_size, exact_size = source.words(8, 2).tolist()
        return Prediction(bound, 0, False, 0, sizes, (), None, column_axes, scale), codes_size, exact_size
    modes, differences = divmod(modes, 1 << AXES)
    has_mask, has_first_axis, has_multiples = (modes >> bit & 1 for bit in range(3))
    need(count <= MOST_STEPS and 1 <= scale <= FULL_SCALE, "header of a predicted array")
    sizes = tuple(source.words(8, AXES).tolist())
    codes_size, exact_size = source.words(8, 2).tolist()
    if has_first_axis:
        sizes = (source.number(8), *sizes)
        need(sizes[0] > 1, "a first axis of one place")
    need(math.prod(sizes) == n, "sizes of the axes")
    steps = read_steps(source, count)
    source.align(8)
    multiples = read_multiples(source, bound, dtype) if has_multiples else None
    prediction = Prediction(bound, differences, has_mask == 1, scale, sizes, steps, multiples)
    prediction.grids()
    return prediction, codes_size, exact_size


def read_steps(source: Source, count: int) -> tuple[Step, ...]:
    """Take so many steps and, behind all of them, the weights of those that have some."""
    stored = [(source.number(1), source.number(1), source.number(2)) for _ in range(count)]
    steps = []
    for axis, kind, scale in stored:
        need(
            axis <= FIRST_AXIS and kind < 16 and kind & (CUBIC | WEIGHTED) != CUBIC | WEIGHTED, "axis or kind of a step"
        )
        need(1 <= scale <= FULL_SCALE, "scale of a step")
        weights = tuple(source.array("i2", 2).tolist()) if kind & WEIGHTED else None
        steps.append(Step(axis, bool(kind & CUBIC), scale, bool(kind & HELD), bool(kind & KEEPS_LAST), weights))
    return tuple(steps)


def read_multiples(source: Source, bound: float, dtype: Dtype) -> Multiples:
    """Take a multiplier, a divisor, an offset and the number of bits of corrections (section 9.6)."""
    multiplier, divisor, offset = source.array("f8", 3).tolist()
    correction_bits = source.number(8)
    need(bound == 0, "multiples of an array with a bound")
    need(dtype.exponent > 0, "multiples of integers")
    most = 2.0 ** MOST_EXPONENT[dtype.arithmetic(0).itemsize * 8]
    need(all(1 / most <= number <= most for number in (multiplier, divisor)), "multiplier or divisor")
    need(abs(offset) <= most and correction_bits <= MOST_CORRECTION_BITS, "offset or corrections of multiples")
    numbers = np.array([multiplier, divisor, offset])
    need(np.array_equal(numbers.astype(dtype.arithmetic), numbers), "multiples that are no numbers of the arithmetic")
    return Multiples(multiplier, divisor, offset, correction_bits)


def read_predicted(payload: bytes, dtype: Dtype, n: int) -> U64:
    """The bits of the n elements of a predicted array."""
    prediction, codes, exact, mask = read_parts(payload, dtype, n)
    if prediction.column_axes:
        return by_rows(prediction, joined(codes))
    with np.errstate(all="ignore"):
        found = decoded(prediction, dtype, joined(codes))
    if mask:
        found = np.where(masked(prediction, mask), np.uint64(mask.fill), found)
    if exact:
        others = joined(exact)
        found = np.where(others == ABSENT, found, others)
    return found


def by_rows(prediction: Prediction, columns: U64) -> U64:
    """The elements of an array by columns, in their order (section 9.8)."""
    width = math.prod(prediction.sizes[AXES - prediction.column_axes :])
    band = prediction.band * width
    bands = [columns[at : at + band] for at in range(0, len(columns), band)]
    return np.concatenate([own.reshape(width, -1).T.ravel() for own in bands])


def decoded(prediction: Prediction, dtype: Dtype, codes: U64) -> U64:
    """The elements' bits of the codes (section 9.2)."""
    grids = prediction.grids()
    taken = math.prod(grids[0])
    grid = coarsest(prediction, dtype, summed(prediction, codes[:taken].reshape(grids[0])))
    for step, sizes, distance in zip(prediction.steps, grids[1:], prediction.distances(), strict=True):
        odd = list(sizes)
        axis = prediction.place(step.axis)
        odd[axis] -= step.coarser(sizes[axis])
        count = math.prod(odd)
        finer = np.zeros(sizes, np.uint64)
        last = np.moveaxis(finer, axis, -1)
        own = np.moveaxis(codes[taken : taken + count].reshape(odd), axis, -1)
        coarse = np.moveaxis(grid, axis, -1)
        largest = largest_of(dtype) if dtype.exponent else LARGEST_INTEGER[dtype.word]
        v = numbers(coarse, dtype)
        if step.keeps_last:
            v = v[..., :-1]
        elif distance < 1:
            v = moved(v, distance)
        p = predictions(v, own.shape[-1], step, largest)
        last[..., : 2 * v.shape[-1] : 2] = coarse[..., : v.shape[-1]]
        if step.keeps_last:
            last[..., -1] = coarse[..., -1]
        places = slice(1, 2 * own.shape[-1], 2)
        if prediction.multiples:
            own = own + indices(p, prediction.multiples, dtype)
            last[..., places] = from_multiples(own, prediction.multiples, dtype)
        else:
            last[..., places] = elements(p, own, prediction.bound, step.scale, dtype)
        grid, taken = finer, taken + count
    return grid.ravel()


def predictions(v: Floats, count: int, step: Step, largest: float) -> Floats:
    """Predictions of the first `count` places between the values v, shape (..., m), along the last axis."""
    a = v.dtype.type
    x = continued(v, step.held)
    before, behind = x[..., 1 : count + 1], x[..., 2 : count + 2]
    if step.cubic or step.weights:
        near, far = step.weights or (FULL_WEIGHT * 9 // 16, -FULL_WEIGHT // 16)
        p = (before + behind) * a(near / FULL_WEIGHT) + (x[..., :count] + x[..., 3 : count + 3]) * a(far / FULL_WEIGHT)
    else:
        p = (before + behind) * a(0.5)
    return np.where(np.abs(p) <= largest, p, a(0))


def moved(v: Floats, distance: float) -> Floats:
    """The values v of which the last, so far from the one before it, is moved to where it would stand on a line."""
    found = v.copy()
    found[..., -1] = v[..., -2] + (v[..., -1] - v[..., -2]) * v.dtype.type(1 / distance)
    return found


def continued(v: Floats, held: bool) -> Floats:
    """v[-1], v[0], ..., v[m + 1] of lines v[0], ..., v[m - 1]."""
    m = v.shape[-1]
    first = following(m, *np.moveaxis(v, -1, 0)[:3])
    before = np.moveaxis(v, -1, 0)[:-4:-1]
    behind = following(1 if held else m, *before)
    last = following(1 if held else m, behind, *before)
    return np.concatenate([first[..., None], v, behind[..., None], last[..., None]], axis=-1)


def following(m: int, x1: Floats, *further: Floats) -> Floats:
    """The value behind x1, and `further` ones of which the first is the nearest, on a line of m values."""
    if m == 1:
        return x1
    if m == 2:
        return np.asarray(x1 + (x1 - further[0]))
    return np.asarray((x1 - further[0]) * x1.dtype.type(3) + further[1])


def elements(p: Floats, codes: U64, bound: float, scale: int, dtype: Dtype) -> U64:
    """The elements' bits of predictions and codes (section 9.3)."""
    if not dtype.exponent:
        return from_integers(np.rint(p).astype(np.int64).view(np.uint64) + codes, dtype)
    if bound == 0:
        return ordered(ordered(round_to(p, dtype), dtype.bits) + codes & low_bits(dtype.bits), dtype.bits)
    a = dtype.arithmetic
    e = min(round_down(bound, a), np.finfo(a).max / a(2))
    limit = e - e * a(2.0 ** (-51 if dtype.bits == 64 else -22))
    step = a({"float16": 1.875, "bfloat16": 1.75}.get(dtype.name, 2)) * limit * (a(scale) / a(FULL_SCALE))
    return round_to(p + signed(codes, dtype).astype(a) * step, dtype)


def from_integers(q: U64, dtype: Dtype) -> U64:
    """The bits of elements that are integers, modulo 2^64."""
    return q + np.uint64(dtype.half_range) & low_bits(dtype.bits)


def indices(p: Floats, multiples: Multiples, dtype: Dtype) -> U64:
    """The nearest integers of predictions, modulo 2^64 (section 9.6)."""
    a = dtype.arithmetic
    v = (p - a(multiples.offset)) * (a(multiples.divisor) / a(multiples.multiplier))
    v = np.where(np.abs(v) <= a(LARGEST_INTEGER[a(0).itemsize * 8]), v, a(0))
    k = np.rint(v).astype(np.int64) << multiples.correction_bits
    return (k - multiples.least_correction).view(np.uint64)


def from_multiples(q: U64, multiples: Multiples, dtype: Dtype) -> U64:
    """The elements' bits of integers (section 9.6)."""
    a = dtype.arithmetic
    lowest = q & low_bits(multiples.correction_bits)
    times = signed(q - lowest, dtype).astype(a) * (a(multiples.multiplier) / a(2**multiples.correction_bits))
    uncorrected = round_to(times / a(multiples.divisor) + a(multiples.offset), dtype)
    correction = lowest.view(np.int64) + multiples.least_correction
    return uncorrected + correction.view(np.uint64) & low_bits(dtype.bits)


def coarsest(prediction: Prediction, dtype: Dtype, q: U64) -> U64:
    """The elements' bits of the coarsest grid's integers (section 9.4)."""
    if prediction.multiples:
        return from_multiples(q, prediction.multiples, dtype)
    if not dtype.exponent:
        return from_integers(q, dtype)
    if prediction.bound == 0:
        return ordered(q & low_bits(dtype.bits), dtype.bits)
    bound = prediction.bound * (1 - 2.0 ** (-50 if dtype.bits == 64 else -20)) * (prediction.scale / FULL_SCALE)
    return from_quantized(dtype, q, bound)


def summed(prediction: Prediction, codes: U64) -> U64:
    """The coarsest grid's integers, modulo 2^64, of its codes."""
    for axis in places_of(prediction.differences, codes.shape):
        codes = np.cumsum(codes, axis=axis, dtype=np.uint64)
    return codes


def signed(codes: U64, dtype: Dtype) -> NDArray[np.signedinteger]:
    """Codes as signed numbers."""
    return codes.view(np.int64) if dtype.bits == 64 else codes.astype(np.uint32).view(np.int32)


def numbers(bits: U64, dtype: Dtype) -> Floats:
    """Elements as numbers of the arithmetic type."""
    if not dtype.exponent:
        unused = np.uint64(64 - dtype.bits)
        n = ((bits - np.uint64(dtype.half_range)) << unused).view(np.int64) >> unused.astype(np.int64)
        most = int(LARGEST_INTEGER[64])
        return np.where((n >= -most) & (n <= most), n, 0).astype(dtype.arithmetic)
    if dtype.name == "bfloat16":
        return (bits << np.uint64(16)).astype(np.uint32).view(np.float32)
    return bits.astype(f"u{dtype.bits // 8}").view(f"f{dtype.bits // 8}").astype(dtype.arithmetic)


def has_unspecified_codes(parts: Parts, dtype: Dtype) -> bool:
    """Whether there are codes so large that the page leaves open what they mean."""
    if dtype.bits < 64 or (parts.prediction.bound == 0 and not parts.prediction.multiples):
        return False
    codes = joined(parts.codes)
    sizes = parts.prediction.grids()[0]
    count = math.prod(sizes)
    sums = summed(parts.prediction, codes[:count].reshape(sizes)).ravel()
    found = np.concatenate([sums, codes[count:]]).view(np.int64)
    return bool(((found > LARGEST_CODE) | (found < -LARGEST_CODE)).any())
