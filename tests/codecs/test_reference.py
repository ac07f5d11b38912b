"""Arrays coded against a reference: every law of their codecs holds, and what did not change takes next to no bytes."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
import reference_reader
from arrcomp import Codec, ErrorBounded, Lossless, WrongReferenceError
from checks import DTYPES, FLOATS, Array, bits_of, numpy_dtype

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

SIZES = (0, 1, 31, 33, 4095, 4097, 70_000)
SHARES = (0.0, "one", 0.01, 0.248, 0.252, 0.6, 1.0)  # of elements that change
SPEEDS: tuple[Any, ...] = ("default", "fast")
HEADER_NBYTES = 72  # of a payload with a reference
PARTS_NBYTES = 4 * 160  # of four parts, but for what is in them: heads, and states of an entropy coder


def weights(name: str, size: int) -> Array:
    """Weights of any dtype: floats near 0.02, integers near 300, or as near to that as the type can say."""
    values = np.random.default_rng(size).normal(0, 0.02, size)
    dtype = numpy_dtype(name)
    if dtype.kind == "c":
        return (values + 1j * values[::-1]).astype(dtype)
    if dtype.kind in "iu" or name in ("int4", "uint4"):
        return (values * 15_000).astype(np.int64).astype(dtype)
    return (values > 0.02 if name == "bool" else values * (1 if dtype.itemsize > 1 else 50)).astype(dtype)


def chosen(size: int, share: Any) -> Array:
    """The places of this share of the elements, in order."""
    count = min(size, 1) if share == "one" else round(size * share)
    return np.sort(np.random.default_rng(3).permutation(size)[:count])


def stepped(reference: Array, share: Any, step: int = 3) -> Array:
    """The reference with a share of its elements changed by a few units of their bits, none by 0."""
    words = bits_of(reference).copy()
    places = chosen(words.size, share)
    rng = np.random.default_rng(4)
    steps = rng.integers(1, step, len(places), endpoint=True) * rng.choice([-1, 1], len(places))
    words[places] += steps.astype(words.dtype)
    if reference.dtype == bool:
        words[:] &= 1
    return words.view(reference.dtype).reshape(reference.shape)


def trained(reference: Array, share: Any, by: float) -> Array:
    """The reference with a share of its numbers changed by about so much."""
    values = reference.astype(np.float64)
    places = chosen(values.size, share)
    values[places] += np.random.default_rng(5).normal(0, by, len(places))
    return values.astype(reference.dtype)


def payload_nbytes(stream: bytes) -> int:
    """The bytes of a stream's payload."""
    start, end = checks.payload_span(stream)
    return end - start


def comparison(stream: bytes) -> reference_reader.Comparison:
    """How a stream's array is coded against its reference."""
    found = reference_reader.describe_comparison(stream)
    assert found is not None
    return found


def check(x: Array, reference: Array, codec: Codec) -> bytes:
    """All laws of a codec, and those of references; gives the stream."""
    stream = checks.check_codec(x, codec, reference=reference)
    y = checks.array_of(stream, reference=reference)
    if comparison(stream).way != "plain":
        same = bits_of(x) == bits_of(reference)
        assert (bits_of(y) == bits_of(reference))[same].all(), "an element that did not change came back as another"
    place = reference.copy()
    assert arrcomp.decompress(arrcomp.from_bytes(stream), reference=place, out=place) is place
    checks.check_same_bits(place, y)
    assert payload_nbytes(stream) <= most_nbytes(x, codec)
    return stream


def most_nbytes(x: Array, codec: Codec) -> float:
    """What a reference that is of no use may cost: the header; and, as samples decide, a hundredth, and its parts."""
    return 1.01 * payload_nbytes(checks.stream_of(x, codec)) + HEADER_NBYTES + PARTS_NBYTES


# ---- without loss


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DTYPES)
def test_every_bit_is_kept(name: str, size: int, share: Any, speed: Any) -> None:
    reference = weights(name, size)
    check(stepped(reference, share), reference, Lossless(speed=speed))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", FLOATS)
def test_any_bits_are_kept(name: str, share: Any) -> None:
    width = numpy_dtype(name).itemsize
    rng = np.random.default_rng(6)
    bits = rng.integers(0, 1 << 8 * width, (2, 5000), f"u{width}")
    infinity = int(bits_of(np.array([math.inf], numpy_dtype(name)))[0])
    sign = 1 << 8 * width - 1
    for row, patterns in zip(
        bits, ([0, infinity + 1, sign, infinity], [sign, infinity + 3, 0, sign | infinity]), strict=True
    ):
        for number, pattern in enumerate(patterns):
            row[number::7] = pattern
    reference, other = bits.view(numpy_dtype(name))
    x = reference.copy()
    places = chosen(x.size, share)
    x[places] = other[places]
    check(x, reference, Lossless())


@pytest.mark.parametrize("name", DTYPES)
def test_equal_arrays_take_the_header_alone(name: str) -> None:
    reference = weights(name, 70_000)
    stream = check(reference.copy(), reference, Lossless())
    assert payload_nbytes(stream) <= HEADER_NBYTES
    assert comparison(stream)[2:6] == ("difference", True, 0, 0) or comparison(stream)[2:6] == (
        "exclusive or",
        True,
        0,
        0,
    )


def test_shapes_and_orders() -> None:
    whole = weights("float32", 24_000).reshape(20, 30, 40)
    other = stepped(whole, 0.3)
    for view in (
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[::-1, :, ::3],
        np.asfortranarray,
        lambda a: a[3, 4, 5],
        lambda a: a[:, :0],
    ):
        x, reference = np.asarray(view(other)), np.asarray(view(whole))
        c = arrcomp.compress(x, reference=reference)
        assert c.to_bytes() == checks.stream_of(
            np.array(x, order="C"), Lossless(), reference=np.array(reference, order="C")
        )
        checks.check_same_bits(arrcomp.decompress(c, reference=reference), np.array(x, order="C"))


@given(st.data())
def test_any_arrays(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(DTYPES))
    size = data.draw(st.integers(0, 600))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    reference = weights(name, size)
    words = bits_of(reference).copy()
    changes = rng.random(words.size) < data.draw(st.sampled_from([0, 0.01, 0.1, 0.2, 1]))
    bits = data.draw(st.integers(1, 8 * words.itemsize))
    words[changes] ^= rng.integers(0, 1 << bits, changes.sum(), words.dtype)
    if name == "bool":
        words &= 1
    x = words.view(reference.dtype)
    check(x, reference, Lossless(speed=data.draw(st.sampled_from(SPEEDS))))


@pytest.mark.parametrize("elements", [1 << 18, pytest.param(1 << 20, marks=pytest.mark.full)])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_groups_of_more_chunks(share: float, elements: int) -> None:
    for size in (elements - 100, elements + 100):
        reference = weights("bfloat16", size)
        x = stepped(reference, share)
        stream = checks.stream_of(x, Lossless(), reference=reference)
        checks.check_same_bits(checks.array_of(stream, reference=reference, threads=2), x)
        checks.check_reference(stream, x, reference)


@pytest.mark.parametrize("codec", [Lossless(), ErrorBounded(abs=1e-4)], ids=repr)
@pytest.mark.parametrize("name", ["bfloat16", "float32"])
@pytest.mark.parametrize("changed_in_samples", [False, True])
def test_what_samples_say_of_the_share_of_changes_decides_nothing(
    name: str, changed_in_samples: bool, codec: Codec
) -> None:
    chunk, chunks = 4096, 64
    reference = weights(name, chunk * chunks)
    in_samples = np.isin(np.arange(reference.size) // chunk, range(4, chunks, 8))  # an eighth
    x = np.where(in_samples == changed_in_samples, trained(reference, 1.0, 5e-4), reference).astype(reference.dtype)
    x[5::1000] = np.nan  # some are exact under a bound
    found = comparison(check(x, reference, codec))
    assert found.is_list == changed_in_samples
    assert (found.exact > 0) == isinstance(codec, ErrorBounded)


# ---- with a bound


def bounded(by: float) -> list[ErrorBounded]:
    """Codecs of every kind of bound, some of them above and some below changes by so much."""
    return [
        *(ErrorBounded(abs=bound, speed=speed) for bound, speed in ((by / 9, "default"), (by * 3, "fast"))),  # type: ignore[arg-type]
        ErrorBounded(rel=by),
        ErrorBounded(pointwise=1e-2),
        ErrorBounded(abs=by / 2, fill_value=-7.0),
        ErrorBounded(pointwise=1e-3, fill_value=0.0, speed="fast"),
    ]


@pytest.mark.parametrize("codec", bounded(1e-3), ids=repr)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FLOATS)
def test_every_bound_is_kept(name: str, size: int, share: Any, codec: Codec) -> None:
    reference = weights(name, size)
    check(trained(reference, share, 1e-3), reference, codec)


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("codec", bounded(1e-3), ids=repr)
@pytest.mark.parametrize("name", FLOATS)
def test_values_that_are_not_numbers_are_kept_bit_for_bit(name: str, codec: Codec, share: float) -> None:
    reference = weights(name, 6000)
    infinity = int(bits_of(np.array([math.inf], reference.dtype))[0])
    sign = 1 << 8 * reference.itemsize - 1
    special = [
        infinity,
        infinity | sign,
        infinity + 1,
        infinity + 5,
        (infinity | sign) + 7,
        0,
        sign,
        1,
        sign | 1,
        infinity - 1,
    ]
    fill = int(bits_of(np.array([-7.0], reference.dtype))[0])
    x = trained(reference, 1.0, 1e-3)
    for array, seed in ((reference, 7), (x, 8)):
        rng = np.random.default_rng(seed)
        places = rng.random(array.size) < share
        bits_of(array)[places] = rng.choice(np.array([*special, fill], np.uint64), places.sum())
    x[:500] = reference[:500]
    check(x, reference, codec)


@pytest.mark.parametrize("codec", [ErrorBounded(pointwise=1e-2), ErrorBounded(abs=100.0)], ids=repr)
@pytest.mark.parametrize("name", FLOATS)
def test_fill_values_and_infinities_are_kept_beside_a_reference_that_is_near(name: str, codec: ErrorBounded) -> None:
    fill = float(np.array(-9999.123).astype(numpy_dtype(name)))
    old, new = weights(name, 3000), stepped(weights(name, 3000), 0.2)
    old[::50] = 1.001 * fill
    old[1::100] = checks.largest_finite(old.dtype)
    new[::50], new[1::100], new[2::50] = fill, np.inf, fill
    check(new, old, dataclasses.replace(codec, fill_value=fill))


@pytest.mark.parametrize(
    "bound", [5e-324, 1e-310, 2.0**-1001, 2.0**-1000, 2.0**-126, 2.0**-111, 2.0**-110, 1e-30, 1e38, 1e39, 1e300]
)
@pytest.mark.parametrize("name", FLOATS)
def test_tiny_and_huge_bounds(name: str, bound: float) -> None:
    reference = weights(name, 700)
    with np.errstate(under="ignore", over="ignore"):
        small = (weights("float64", 700) * (bound * 64)).astype(reference.dtype)
    for x, old in ((trained(reference, 0.3, 1e-3), reference), (small, stepped(small, 0.5))):
        check(x, old, ErrorBounded(abs=bound))


@pytest.mark.parametrize("name", FLOATS)
def test_values_near_the_largest(name: str) -> None:
    largest = checks.largest_finite(numpy_dtype(name))
    signs = np.where(np.arange(900) % 3 == 0, -1.0, 1.0)
    values = np.random.default_rng(9).uniform(-1, 1, 900)
    for a, b in ((signs, -signs), (values, signs), (signs, values), (signs, signs * (1 - 1e-3))):
        x, reference = ((v * largest).astype(numpy_dtype(name)) for v in (a, b))
        for codec in (
            ErrorBounded(abs=largest / 1e3),
            ErrorBounded(abs=largest / 2),
            ErrorBounded(abs=largest),
            ErrorBounded(rel=1e-2),
            ErrorBounded(pointwise=1e-2),
        ):
            check(x, reference, codec)


@pytest.mark.parametrize("name", FLOATS)
def test_bounds_near_the_rounding_of_values(name: str) -> None:
    digits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[name]
    reference = (100 + weights("float64", 700)).astype(numpy_dtype(name))
    x = stepped(reference, 0.7)
    for exponent in range(6 - digits - 3, 6 - digits + 5):
        for factor in (1, 0.999, 1.001, 1.37):
            check(x, reference, ErrorBounded(abs=factor * 2.0**exponent))


@given(st.data())
def test_any_bounds(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(FLOATS))
    dtype = numpy_dtype(name)
    size = data.draw(st.integers(1, 400))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale, by, bound = (data.draw(st.sampled_from([1e-6, 1e-2, 1.0, 300.0])) for _ in range(3))
    with np.errstate(over="ignore"):
        reference = (rng.normal(0, scale, size)).astype(dtype)
        x = (reference.astype(np.float64) + rng.normal(0, by, size) * (rng.random(size) < 0.5)).astype(dtype)
    for array in (x, reference):
        kept = rng.random(size) < data.draw(st.sampled_from([0, 0.05, 0.3]))
        array[kept] = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 7.0], dtype), kept.sum())
    kinds = ErrorBounded(abs=bound), ErrorBounded(rel=min(bound, 0.5)), ErrorBounded(pointwise=min(bound, 0.5))
    fill = data.draw(st.sampled_from([None, 7.0, 0.0]))
    check(x, reference, dataclasses.replace(data.draw(st.sampled_from(kinds)), fill_value=fill))


def test_a_change_within_the_bound_takes_no_code() -> None:
    reference = weights("float32", 5000)
    stream = check(trained(reference, 1.0, 1e-6), reference, ErrorBounded(abs=1e-4))
    assert payload_nbytes(stream) <= HEADER_NBYTES
    checks.check_same_bits(checks.array_of(stream, reference=reference), reference)


# ---- bytes


@pytest.mark.parametrize(
    "codec", [Lossless(), Lossless(speed="fast"), ErrorBounded(abs=1e-3), ErrorBounded(pointwise=1e-2)], ids=repr
)
@pytest.mark.parametrize("size", [1, 33, 600, 70_000])
@pytest.mark.parametrize("name", FLOATS)
def test_a_reference_of_no_use_costs_its_header(name: str, size: int, codec: Codec) -> None:
    x = weights(name, size)
    rng = np.random.default_rng(10)
    anything = rng.integers(0, 1 << 8 * x.itemsize, size, f"u{x.itemsize}").view(x.dtype)
    for reference in (anything, np.full_like(x, np.nan), np.zeros_like(x), weights(name, size + 1)[1:], -x):
        check(x, reference, codec)


def test_one_bit_that_changes_is_cheap() -> None:
    reference = np.random.default_rng(11).integers(0, 1 << 32, 20_000, np.uint32)
    flips = (np.random.default_rng(12).random(20_000) < 0.5).astype(np.uint32)
    stream = check(reference ^ flips, reference, Lossless())
    assert comparison(stream).way == "exclusive or"
    assert payload_nbytes(stream) < 1.1 * 20_000 / 8 + HEADER_NBYTES


def entropy(values: Array) -> float:
    """The order-0 entropy of the values, in bits a value."""
    _, counts = np.unique(values, return_counts=True)
    shares = counts / values.size
    return float(-(shares * np.log2(shares)).sum())


def trained_weights(size: int, share: float) -> tuple[Array, Array]:
    """The bits of bfloat16 weights, and the same of which a share moved by small steps."""
    reference = weights("bfloat16", size).view(np.int16)
    steps = np.rint(np.random.default_rng(13).laplace(0, 1.5, size)).astype(np.int16)
    if share < 1:
        steps = np.where(steps == 0, np.random.default_rng(16).choice([-1, 1], size), steps).astype(np.int16)
    steps[np.random.default_rng(14).random(size) >= share] = 0
    return reference + steps, reference


@pytest.mark.parametrize(
    ("size", "most"), [(400_000, 1.2), pytest.param(4_000_000, 1.10, marks=pytest.mark.full)], ids=["short", "long"]
)
@pytest.mark.parametrize("share", [0.005, 0.02, 0.05, 0.1, 0.15, 0.24, 0.26, 0.5, 0.8, 1.0])
def test_steps_take_little_more_than_their_entropy(share: float, size: int, most: float) -> None:
    x, reference = trained_weights(size, share)
    c = arrcomp.compress(x, reference=reference)
    checks.check_same_bits(arrcomp.decompress(c, reference=reference), x)
    goal = entropy(x - reference) * size / 8
    assert c.nbytes <= most * goal + HEADER_NBYTES, f"{c.nbytes / goal:.3f} times the entropy"


# ---- another reference


@pytest.mark.parametrize("name", ["int8", "bfloat16", "float32", "complex128"])
def test_a_reference_with_one_other_bit_is_noticed(name: str) -> None:
    reference = weights(name, 70_000)
    x = stepped(reference, 0.05)
    c = arrcomp.compress(x, reference=reference)
    count = 8 * reference.nbytes
    places = [
        0,
        1,
        7,
        8,
        31,
        32,
        8 * 127,
        8 * 128,
        8 * 65535 + 7,
        count - 1,
        *np.random.default_rng(15).integers(0, count, 90),
    ]
    out = np.full_like(x, 3)
    for place in places:
        if place < count:
            other = reference.copy()
            other.view(np.uint8)[place // 8] ^= 1 << place % 8
            with pytest.raises(WrongReferenceError, match="reference: expected"):
                arrcomp.decompress(c, reference=other, out=out)
            assert (out == 3).all(), "something was written"
            in_place = other.copy()
            with pytest.raises(WrongReferenceError):
                arrcomp.decompress(c, reference=in_place, out=in_place)
            checks.check_same_bits(in_place, other)


def test_references_whose_elements_changed_places_are_noticed() -> None:
    reference = weights("float32", 70_000)
    c = arrcomp.compress(stepped(reference, 0.1), reference=reference)
    swapped = reference.copy()
    swapped[:32768] = reference[16384:49152]
    for other in (
        reference[::-1],
        np.roll(reference, 1),
        np.roll(reference, 32),
        np.roll(reference, 16384),
        swapped,
        -reference,
    ):
        with pytest.raises(WrongReferenceError):
            arrcomp.decompress(c, reference=other)


def test_an_array_that_overlaps_a_part_of_its_reference_is_refused() -> None:
    reference = weights("float32", 6000)
    c = arrcomp.compress(stepped(reference, 0.1), reference=reference)
    for first in (1, 64, 5999):
        memory = np.concatenate([reference, reference])
        before = memory.copy()
        for old, out in ((memory[:6000], memory[first : first + 6000]), (memory[first:][:6000], memory[:6000])):
            with pytest.raises(ValueError, match=r"^out: expected memory of its own"):
                arrcomp.decompress(c, reference=old, out=out)
        checks.check_same_bits(memory, before)


def test_an_array_of_another_kind_is_no_reference() -> None:
    x = weights("float32", 600).reshape(20, 30)
    c = arrcomp.compress(stepped(x, 0.1), reference=x)
    for other, error in (
        (x.astype(np.float64), TypeError),
        (x.view(np.int32), TypeError),
        (x.T, ValueError),
        (x.ravel(), ValueError),
        (x[:19], ValueError),
        (x.tolist(), TypeError),
        ("weights", TypeError),
    ):
        with pytest.raises(error, match=r"^reference: expected"):
            arrcomp.compress(x, reference=other)
        with pytest.raises(error, match=r"^reference: expected"):
            arrcomp.decompress(c, reference=other)


def test_a_stream_without_its_reference_says_so() -> None:
    x = weights("float32", 600)
    stream = checks.stream_of(stepped(x, 0.1), Lossless(), reference=x)
    for c in (arrcomp.from_bytes(stream), arrcomp.compress(stepped(x, 0.1), reference=x)):
        for call in (arrcomp.decompress, lambda c: c.numpy(), lambda c: c.decompress(), lambda c: np.asarray(c)):
            with pytest.raises(
                ValueError, match=r"^reference: expected the array that c was compressed against, got none"
            ):
                call(c)


def test_a_reference_that_is_not_needed_is_refused() -> None:
    x = weights("float32", 600)
    with pytest.raises(ValueError, match=r"^reference: expected"):
        arrcomp.decompress(arrcomp.compress(x), reference=x)


@pytest.mark.parametrize(
    "codec",
    [arrcomp.QSGD(), arrcomp.BaseDelta(), Lossless(predictor="interpolation"), ErrorBounded(abs=1.0, predictor="auto")],
    ids=repr,
)
def test_codecs_that_take_no_reference(codec: Codec) -> None:
    x = weights("float32", 600)
    with pytest.raises((TypeError, ValueError), match="reference"):
        arrcomp.compress(x, codec, reference=x)


# ---- ways to give and to take them


def test_the_compressed_array_says_what_it_needs() -> None:
    x = weights("float32", 600)
    c = arrcomp.compress(stepped(x, 0.1), ErrorBounded(abs=1e-9), reference=x)
    for each in (c, arrcomp.from_bytes(c.to_bytes())):
        assert each.needs_reference
        assert each.reference_hash == arrcomp.content_hash(x) == reference_reader.content_hash(x.tobytes())
        assert each.codec == dataclasses.replace(ErrorBounded(abs=1e-9), predictor="reference")
    plain = arrcomp.compress(x)
    assert not plain.needs_reference
    with pytest.raises(ValueError, match="reference"):
        _ = plain.reference_hash
    assert arrcomp.compress(x, reference=x).codec == Lossless(predictor="reference")


def test_methods_take_the_reference() -> None:
    reference = weights("float32", 5000)
    x = stepped(reference, 0.1)
    c = arrcomp.from_bytes(checks.stream_of(x, Lossless(), reference=reference))
    c.verify()  # of header and directories
    with pytest.raises(WrongReferenceError):
        c.verify(reference=x)
    c.verify(reference=reference)
    with pytest.raises(WrongReferenceError):
        c.decompress(reference=x)
    checks.check_same_bits(c.numpy(reference=reference), x)
    checks.check_same_bits(c.decompress(reference=reference), x)
    checks.check_same_bits(arrcomp.decompress(c, like=x, reference=reference), x)


@pytest.mark.parametrize("codec", [None, ErrorBounded(abs=1e-9)])
def test_trees_of_arrays(codec: Any) -> None:
    old: dict[str, Any] = {
        "a": weights("float32", 5000),
        "b": [weights("float32", 33).reshape(3, 11), weights("float32", 0)],
        "c": weights("float64", 700),
    }
    new: dict[str, Any] = {
        "a": stepped(old["a"], 0.1),
        "b": [stepped(old["b"][0], 1.0), old["b"][1]],
        "c": stepped(old["c"], 0.01),
    }
    many = arrcomp.compress_many(new, codec, reference=old)
    assert many["a"].to_bytes() == checks.stream_of(new["a"], codec or Lossless(), reference=old["a"])
    found = arrcomp.decompress_many(many, reference=old)
    for y, c, r in (
        (found["a"], many["a"], old["a"]),
        (found["b"][0], many["b"][0], old["b"][0]),
        (found["c"], many["c"], old["c"]),
    ):
        checks.check_same_bits(y, np.asarray(arrcomp.decompress(c, reference=r)))
    with pytest.raises((TypeError, ValueError), match="reference"):
        arrcomp.decompress_many(many, reference={"a": old["a"]})
    with pytest.raises(WrongReferenceError):
        arrcomp.decompress_many(many, reference=old | {"c": new["c"]})


def test_a_chain_of_checkpoints() -> None:
    first = weights("bfloat16", 9000)
    versions = [first]
    for step in range(4):
        versions.append(stepped(versions[-1], [0.01, 0.3, 0.0, 1.0][step]))
    deltas = [checks.stream_of(new, Lossless(), reference=old) for old, new in itertools.pairwise(versions)]
    current = first.copy()
    for delta in deltas:
        arrcomp.decompress(arrcomp.from_bytes(delta), reference=current, out=current)
    checks.check_same_bits(current, versions[-1])
    with pytest.raises(WrongReferenceError):
        arrcomp.decompress(arrcomp.from_bytes(deltas[1]), reference=first)


def test_a_few_bytes_may_stand_for_a_large_array_where_the_caller_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from arrcomp._format import limits

    monkeypatch.setattr(limits, "LEAST_NBYTES", 1000)
    x = np.zeros(1 << 23, np.int8)
    stream = checks.stream_of(x, Lossless(), reference=x)
    assert limits.default_max_nbytes(len(stream)) < x.nbytes
    checks.check_same_bits(checks.array_of(stream, reference=x), x)
    with pytest.raises(arrcomp.SizeLimitError):
        checks.array_of(stream, reference=x, max_nbytes=x.nbytes - 1)
