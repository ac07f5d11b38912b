"""Every choice that the format offers for a chunk is made by the writer for some input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import ErrorBounded, Lossless
from checks import Array
from reference_reader import Chunk
from reference_reader.missing import BITS, Missing

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm]

EVERY_CHOICE = {
    *("quantized none", "quantized packed", "quantized entropy"),
    *("integer none", "integer packed", "integer entropy"),
    *("exponent packed", "exponent entropy", "signs", "no signs"),
    *("numbered packed", "numbered entropy", "own entries", "entries of another", "multiples", "integer multiples"),
    *("mask none", "mask blocks", "mask values", "mask marks"),
    *("predictor", "no predictor", "plain map", "zigzag map", "step", "ascending"),
    *("base of integers", "no base", "drop", "exceptions", "shift", "no shift"),
    *("escapes", "long escapes", "carrying", "dry", "all dry", "neither", "one width", "widths", "raw", "wide words"),
    *("one table", "tables of tiles", "tables of contexts"),
    *("no marks", "positions", "edges", "missing bits"),
    *("present positions", "missing first", "usual NaN", "other fill", "all missing"),
}


def choices_of(chunk: Chunk) -> Iterator[str]:
    """The names, as in EVERY_CHOICE, of what the writer chose for a chunk."""
    yield f"{chunk.transform} {chunk.coder}"
    yield f"mask {chunk.mask}"
    if chunk.transform != "exponent" and chunk.coder != "none":
        yield "predictor" if chunk.predictor else "no predictor"
        yield "plain map" if chunk.plain else "zigzag map"
        if chunk.step is not None:
            yield "ascending" if chunk.plain else "step"
        yield "no base" if chunk.base is None else "base of integers"
    if chunk.transform == "exponent":
        yield "no signs" if chunk.plain else "signs"
    if chunk.multiples:
        yield chunk.kind
    elif chunk.transform == "numbered":
        yield "own entries" if chunk.own_entries else "entries of another"
    if chunk.coder == "entropy":
        yield "shift" if chunk.shift else "no shift"
        yield "tables of contexts" if chunk.has_contexts else "tables of tiles" if chunk.tables else "one table"
        yield "carrying" if chunk.carrying else "dry" if chunk.dry_rows else "neither"
        if chunk.dry_rows == chunk.coded_rows:
            yield "all dry"
    if chunk.coder == "packed":
        yield "one width" if chunk.shift else "widths"
    named = {"drop": chunk.drop, "exceptions": chunk.exceptions, "escapes": chunk.escapes}
    named |= {"long escapes": chunk.long_escapes, "wide words": max(chunk.widths, default=0) > 32}
    named["raw"] = chunk.transform == "integer" and chunk.coder == "packed" and min(chunk.widths) >= 16
    yield from (name for name, count in named.items() if count)
    if chunk.missing is not None:
        yield from choices_of_missing(chunk.missing)


def choices_of_missing(missing: Missing) -> Iterator[str]:
    """The same, for how missing elements are told."""
    if missing.shift == BITS:
        yield "missing bits"
    elif missing.count == 0:
        yield "no marks"
    else:
        yield "edges" if missing.edges else "positions"
        if missing.inverted:
            yield "missing first" if missing.edges else "present positions"
    yield "other fill" if missing.fill != 0x7FC00000 else "usual NaN"
    if missing.present == 0:
        yield "all missing"


def inputs() -> Iterator[tuple[Array, arrcomp.Codec]]:
    """Arrays that between them bring out every choice."""
    rng = np.random.default_rng(11)
    n = 4096 * 2 + 100
    weights = rng.normal(0, 0.02, n).astype(np.float32)
    outliers = weights.copy()
    outliers[::1000] = 2500.0
    specials = weights.copy()
    specials[::900] = np.nan
    sparse = weights * (rng.random(n) < 0.02)
    clustered = sparse * (np.arange(n) // 512 % 4 == 0)
    smooth = np.cumsum(rng.normal(0, 1, n)).astype(np.float32)
    positive = np.abs(weights)
    uneven = weights * (1 + np.arange(n) // 256 % 4)
    bursts = 5 * weights * np.maximum(0, np.sin(np.arange(n) / 100)).astype(np.float32)
    ordinary = (weights, outliers, specials, sparse, clustered, smooth, positive, uneven, bursts)
    for speed in ("default", "fast"):
        for array in (*ordinary, 300 + weights, 0 * weights):
            for bound in (1e-2, 1e-4, 1e-6):
                yield array, ErrorBounded(abs=bound, speed=speed)
            yield array, Lossless(speed=speed)
            yield array.astype(np.float64), ErrorBounded(abs=1e-14, speed=speed)
        yield weights[rng.integers(0, 30, n)], Lossless(speed=speed)
        yield np.round(300 * weights, 2), Lossless(speed=speed)
    yield weights[:3000], Lossless()  # not whole tiles
    yield from ((array, Lossless()) for array in _integers(rng, n))
    yield weights.astype(checks.numpy_dtype("bfloat16")).astype(np.float32), Lossless()
    yield from ((array, ErrorBounded(abs=1e-3)) for array in _gaps(rng, weights))
    yield np.where(np.arange(1 << 18) < 8192, weights[rng.integers(0, 9, 1 << 18)], 0), Lossless()
    yield _groups_that_end_with_few(rng), Lossless()


def _groups_that_end_with_few(rng: np.random.Generator) -> Array:
    """Each fourth chunk, the last one of its group, has few ones, close to each other."""
    x = np.resize(rng.integers(0, 3, 4096), (256, 4096))
    x[3::4] = 0
    x[3::4, 51 * np.arange(30) % 768] = 1
    return x


def _gaps(rng: np.random.Generator, values: Array) -> Iterator[Array]:
    places = np.arange(len(values))
    runs = np.repeat(rng.random(len(values) // 8 + 1) < 0.5, 8)[: len(values)]
    masks = [rng.random(len(values)) < share for share in (0.01, 0.5, 0.9, 0.999, 1)]
    for mask in (*masks, places < 5000, places // 1000 % 2 == 0, runs):
        for fill in (np.nan, 1e20):
            yield np.where(mask, np.float32(fill), values)


def _integers(rng: np.random.Generator, n: int) -> Iterator[Array]:
    narrow = np.rint(rng.normal(0, 30, n)).astype(np.int64)
    tail = narrow.copy()
    tail[::1000] = 1 << 40
    yield from (narrow, tail, narrow + 10**12, np.cumsum(narrow), np.abs(narrow), np.full(n, 7, np.int32))
    yield from (1000 * np.arange(n) + narrow, np.cumsum(np.abs(narrow)))
    yield rng.integers(0, 2**63, n)
    yield 1000 * narrow + 7
    yield narrow * (rng.random(n) < 0.02)
    yield (narrow * (np.arange(n) // 256 % 8 == 0)).astype(np.int16)
    yield rng.integers(0, 2**32, n, dtype=np.uint32)


@pytest.fixture(scope="module")
def counts(device: checks.Host) -> Counter[str]:
    """How often each choice was made over all inputs, every one of which is checked too."""
    found: Counter[str] = Counter()
    for array, codec in inputs():
        stream = checks.stream_of(array, codec, device)
        checks.check_reference(stream, checks.array_of(stream, device))
        for chunk in reference_reader.describe(stream):
            found.update(choices_of(chunk))
    return found


@pytest.mark.parametrize("choice", sorted(EVERY_CHOICE))
def test_choice_is_reached(choice: str, counts: Counter[str]) -> None:
    assert counts[choice] > 0, f"never made; made were {dict(counts)}"


def test_choices_are_all_named(counts: Counter[str]) -> None:
    assert set(counts) <= EVERY_CHOICE | {"exponent none"}


@pytest.mark.parametrize("rows", [1, 3, 8, 13, 31, 120, 127, 128])
@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
@pytest.mark.parametrize("width", [1, 3, 7, 8])
def test_packed_bits_take_no_room_but_their_own(width: int, dtype: str, rows: int) -> None:
    """No lane's bits are padded."""
    x = np.random.default_rng(rows).integers(0, 1 << width, 32 * rows).astype(dtype)
    stream = checks.check_codec(x, Lossless(speed="fast"))
    (chunk,) = reference_reader.describe(stream)
    assert chunk.coder == "packed"
    start, end = checks.payload_span(stream)
    header, directory, modes = 16, 8, 4
    base = 0 if chunk.base is None else max(x.itemsize, 4)
    widths = 0 if chunk.shift else -(-rows // 32) * 4
    bits_of_lane = sum(chunk.widths[row // 8] for row in range(rows))
    assert bits_of_lane <= (width + 1) * rows
    assert end - start == header + directory + modes + base + widths + 4 * bits_of_lane


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float32", "int64"])
@pytest.mark.parametrize("few", [1, 4, 12, 100])
def test_few_words_that_are_not_zero_are_marked(few: int, dtype: str) -> None:
    """A chunk of them takes neither the coder's states nor a bit for each place."""
    rng = np.random.default_rng(few)
    x = np.zeros(4096, dtype)
    x[rng.permutation(x.size)[:few]] = 1
    codec = ErrorBounded(abs=0.4) if dtype == "float32" else Lossless()
    stream = checks.check_codec(x, codec)
    (chunk,) = reference_reader.describe(stream)
    assert (chunk.mask, len(chunk.places)) == ("marks", few)
    start, end = checks.payload_span(stream)
    rows, bits_of_mark = -(-few // 32), 2 + np.log2(x.size / few)
    assert end - start <= 16 + 8 + 4 + 4 + few * bits_of_mark / 8 + 4 + 4 * rows
