"""What bench/trust.py tries of every value: its values, and that its checks see what is broken."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import ErrorBounded, Lossless, cpu
from checks import Array, numpy_dtype

BENCH = Path(__file__).parents[2] / "bench"
PIECE = 1 << 14


@pytest.fixture(scope="module")
def proofs() -> Iterator[SimpleNamespace]:
    """The modules, which import others by their own names."""
    sys.path.insert(0, str(BENCH))
    try:
        from proofs import chunk_modes, exhaustive, exhaustive_checks, exhaustive_values  # type: ignore[import-not-found]

        yield SimpleNamespace(
            all=exhaustive, checks=exhaustive_checks, values=exhaustive_values, modes=chunk_modes.modes_of
        )
    finally:
        sys.path.remove(str(BENCH))


@pytest.fixture(scope="module")
def found(proofs: SimpleNamespace) -> dict[str, Any]:
    """All patterns of 16 bits at 16 bounds, 2^18 values of float32, and some of float64, with the real checks."""
    return proofs.all.counted(proofs.all.Plan.quick(PIECE, bounds16=16), cpu.instruction_sets())


class Changed:
    """A place that gives back arrays and streams with something changed."""

    name = "changed"

    def __init__(self, of_array: Callable[[Array], Array], of_stream: Callable[[bytes], bytes] = bytes) -> None:
        self.of_array = of_array
        self.of_stream = of_stream

    def compress(self, x: Array, codec: arrcomp.Codec) -> bytes:
        return self.of_stream(checks.stream_of(x, codec))

    def decompress(self, stream: bytes) -> Array:
        return self.of_array(checks.array_of(stream).copy())


def with_bit(place: int, bit: int) -> Callable[[Array], Array]:
    """Flips a bit of the element at a place."""

    def change(array: Array) -> Array:
        checks.bits_of(array)[place] ^= checks.bits_of(array).dtype.type(1 << bit)
        return array

    return change


def test_nothing_is_broken_and_nothing_differs(found: dict[str, Any]) -> None:
    assert found["failures"] == 0, found["rows"]


def test_rows_have_as_many_values_as_they_say(proofs: SimpleNamespace, found: dict[str, Any]) -> None:
    values = {row["what"]: row["values"] for row in found["rows"]}
    speeds = 2
    for bound in proofs.all.BOUNDS32:
        assert values[f"float32, abs {bound:g}"] == speeds * 16 * PIECE
    assert values["float32, lossless"] == speeds * 16 * PIECE
    assert values["bfloat16, abs 1e-40 to 1e+39"] == values["float16, lossless"] == speeds * 16 << 16
    if found["float64"]:
        assert values["float64, lossless"] == speeds * 8 * PIECE // 4


def test_modes_are_reached_but_those_that_writers_never_choose(found: dict[str, Any]) -> None:
    never = {name for name, count in found["modes"].items() if not count}
    wide = set() if found["float64"] else {"words above 32 bits"}
    rare = {"groups of 2", "groups of 4"}  # 2^20 values
    assert never - wide == rare | {"exponent, none", "numbered, none"}


@pytest.mark.parametrize("bits", [16, 18])
def test_orders_have_every_number_once(proofs: SimpleNamespace, bits: int) -> None:
    for order in proofs.values.ORDERS:
        halves = [order.indices(start, 1 << bits - 1, bits) for start in (0, 1 << bits - 1)]
        assert np.array_equal(np.sort(np.concatenate(halves)), np.arange(1 << bits)), order.name


def test_pieces_of_float32_share_no_pattern(proofs: SimpleNamespace) -> None:
    numbers = [*range(16), *range(16 * 100, 16 * 101), *proofs.all.Plan.quick(PIECE).float32]
    patterns = np.concatenate([proofs.values.float32_patterns(number, PIECE) for number in numbers])
    assert len(np.unique(patterns)) == len(numbers) * PIECE


def test_patterns_that_are_missing_are_noticed(proofs: SimpleNamespace) -> None:
    n = 1 << 32
    sums = Counter({"patterns": n * (n - 1) // 2, "squares": (n - 1) * n * (2 * n - 1) // 6 + (5 << 64)})
    assert proofs.all._all_patterns(sums)
    assert not proofs.all._all_patterns(sums - Counter({"patterns": 7, "squares": 49}))
    assert not proofs.all._all_patterns(sums - Counter({"squares": 14}))  # 1 and 7 instead of 0 and 8


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [("float16", 1.5, 1.0), ("bfloat16", -1.5, -1.0), ("float32", 4194303.75, 4194303.25), ("float64", 2.0, 1.5)],
)
def test_an_error_as_large_as_the_bound_holds_and_a_larger_one_does_not(
    proofs: SimpleNamespace, name: str, x: float, y: float
) -> None:
    need_wider(proofs, name)
    before, after = (np.full(300, value, numpy_dtype(name)) for value in (x, y))
    assert proofs.checks.broken_promises(before, after, ErrorBounded(abs=0.5)) == 0
    assert proofs.checks.broken_promises(before, after, ErrorBounded(abs=np.nextafter(0.5, 0))) == 300


@pytest.mark.parametrize(("name", "tiny"), [("float32", 2.0**-60), ("float64", 2.0**-80)])
def test_differences_that_round_to_the_bound_are_settled(proofs: SimpleNamespace, name: str, tiny: float) -> None:
    need_wider(proofs, name)
    x, y = np.array([1, 1, -1, -1], name), np.array([tiny, -tiny, tiny, -tiny], name)
    assert proofs.checks.broken_promises(x, y, ErrorBounded(abs=1.0)) == 2
    assert proofs.checks.broken_promises(x, y, ErrorBounded(abs=1.0 + 2.0**-52)) == 0


def test_relative_bounds_are_exact(proofs: SimpleNamespace) -> None:
    broken = proofs.checks.broken_promises
    x = np.array([0.0, 3.0, 1.0, np.inf, np.nan], np.float32)
    y = x.copy()
    y[2] = 1.375
    assert broken(x, y, ErrorBounded(rel=0.125)) == 0
    assert broken(x, y, ErrorBounded(rel=np.nextafter(0.125, 0))) == 1
    assert broken(x, y, ErrorBounded(pointwise=0.375)) == 0
    assert broken(x, y, ErrorBounded(pointwise=np.nextafter(0.375, 0))) == 1


def need_wider(proofs: SimpleNamespace, name: str) -> None:
    if name == "float64" and not proofs.checks.longdouble_is_wider():
        pytest.skip("long double has no more bits than float64 here")


def test_without_a_wider_type_float64_is_not_passed(proofs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs.checks, "longdouble_is_wider", lambda: False)
    with pytest.raises(RuntimeError, match="cannot be checked"):
        proofs.checks.broken_promises(np.ones(2), np.ones(2), ErrorBounded(abs=1.0))


@pytest.mark.parametrize("name", checks.FLOATS)
@pytest.mark.parametrize(
    ("value", "bit"),
    [("nan", 0), ("inf", 0), ("inf", "sign"), ("one", "exponent"), ("zero", "sign")],
)
def test_a_value_that_is_broken_is_counted(proofs: SimpleNamespace, name: str, value: str, bit: Any) -> None:
    need_wider(proofs, name)
    x = np.ones(5000, numpy_dtype(name))
    places = {"nan": 77, "inf": 78, "one": 79, "zero": 80}
    x[77], x[78], x[80] = np.nan, np.inf, 0
    width = 8 * x.itemsize
    change = with_bit(places[value], {"sign": width - 1, "exponent": width - 2}.get(bit, bit))
    for codec in (ErrorBounded(pointwise=0.125), ErrorBounded(rel=0.125), Lossless()):
        expected = 0 if value == "zero" and getattr(codec, "rel", None) else 1
        assert proofs.checks.tried(x, codec, [Changed(change)])["broken"] == expected, codec
        assert proofs.checks.tried(x, codec, [Changed(np.copy)])["broken"] == 0


def test_bytes_that_differ_are_counted(proofs: SimpleNamespace) -> None:
    x = np.linspace(-3, 3, 300_000, dtype=np.float32)
    good = Changed(np.copy)
    others = {
        3: Changed(np.copy, lambda stream: stream + b"abc"),
        1: Changed(np.copy, lambda stream: stream[:-1] + bytes([stream[-1] ^ 1])),
        2: Changed(lambda y: with_bit(299_999, 0)(with_bit(0, 31)(y))),
        0: good,
    }
    for expected, other in others.items():
        assert proofs.checks.tried(x, ErrorBounded(abs=1e-3), [good, other])["differing"] == expected


@pytest.mark.parametrize("name", checks.FLOATS)
def test_tensors_give_the_same(proofs: SimpleNamespace, name: str) -> None:
    pytest.importorskip("torch")
    need_wider(proofs, name)
    x = np.random.default_rng(3).normal(0, 1, 20_000).astype(numpy_dtype(name))
    x[5:9] = np.nan
    tried = proofs.checks.tried(x, ErrorBounded(abs=1e-3), [Changed(np.copy), proofs.checks.Torch("cpu")])
    assert tried["broken"] == tried["differing"] == 0
    assert tried["values"] == x.size


def test_modes_are_those_that_the_independent_reader_sees(proofs: SimpleNamespace) -> None:
    plan = proofs.all.Plan.quick(PIECE)
    for kind, number in [("repeated", 1), ("repeated", 2), ("float32", plan.float32[13]), ("float64", 4), ("drawn", 7)]:
        for _, x, codec in proofs.all.trials(plan, kind, number):
            stream = checks.stream_of(x, codec)
            assert proofs.modes(stream) == modes_read(stream, x)


def modes_read(stream: bytes, x: Array) -> Counter[str]:
    """The same of full chunks by the independent reader; groups are of one chunk here."""
    names: Counter[str] = Counter()
    for chunk in reference_reader.describe(stream)[: x.size // 4096]:
        names.update([f"{chunk.transform}, {chunk.coder}", f"mask: {chunk.mask}", "groups of 1"])
        if chunk.transform != "exponent" and chunk.coder != "none":
            names.update(["first differences" if chunk.predictor else "no prediction"])
            names.update(["plain map" if chunk.plain else "zigzag map"])
            names.update(["base of integers"] * (chunk.base is not None))
        if chunk.transform == "exponent":
            names.update(["exponents without signs" if chunk.plain else "exponents with signs"])
        if chunk.coder == "entropy":
            names.update(["shift" if chunk.shift else "no shift", f"table {chunk.table}"])
            other = "dry rows" if chunk.dry_rows else "states that carry nothing"
            names.update(["carrying states" if chunk.carrying else other])
        names.update(["exceptions"] * (chunk.exceptions > 0) + ["dropped bits"] * (chunk.drop > 0))
        names.update(["missing elements"] * (chunk.missing is not None))
        if chunk.coder == "packed" and chunk.mask == "none" and chunk.missing is None:
            names.update(["raw"] * (chunk.transform == "integer" and min(chunk.widths) >= 8 * x.itemsize))
            names.update(["words above 32 bits"] * (max(chunk.widths) > 32))
    return names


def test_tasks_that_fail_are_named(proofs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = proofs.all.Plan(PIECE, [3], 0, 0, 1)
    broken = Changed(with_bit(5, 30))
    monkeypatch.setattr(proofs.all, "place_named", lambda name: broken if name == "broken" else Changed(np.copy))
    found = proofs.all.counted(plan, ["broken"])
    rows = {row["what"]: row for row in found["rows"]}
    assert rows["float32, lossless"] == {"what": "float32, lossless", "values": 2 * PIECE, "broken": 2, "differing": 0}
    assert ["float32, lossless", "float32", 3] in found["failed"]
    assert found["failures"] == sum(row["broken"] for row in found["rows"])
    found = proofs.all.counted(plan, ["good", "broken"])
    assert found["failures"] == sum(row["differing"] for row in found["rows"]) > 0


def test_the_page_shows_what_is_broken(proofs: SimpleNamespace, found: dict[str, Any]) -> None:
    text = proofs.all.markdown(found)
    assert "**" not in text
    assert "Never chosen: exponent, none" in text
    rows = [found["rows"][0] | {"broken": 1234}, *found["rows"][1:]]
    text = proofs.all.markdown(found | {"rows": rows, "patterns missing": True})
    assert "**1,234**" in text
    assert "**Patterns were left out" in text
