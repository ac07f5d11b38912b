"""Structures of arrays, compressed and decompressed in one go."""

from __future__ import annotations

import collections
import re
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import QSGD, ErrorBounded, Lossless, _core
from arrcomp._arguments import type_name

pytestmark = pytest.mark.asan

RNG = np.random.default_rng(11)
CODEC = ErrorBounded(abs=1e-3)


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.normal(0, 0.02, shape).astype(np.float32)


class Moments(NamedTuple):
    """A named tuple."""

    first: Any
    second: Any


TREE = {
    "weight": normal(50, 70),
    "bias": normal(70),
    "empty": normal(0),
    "scalar": normal(),
    "nested": [normal(3), (normal(9000), None), "text", 7],
    "state": Moments(normal(4, 4), np.arange(10)),
    "half": normal(300).astype(np.float16),
}


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, (list, tuple)):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def test_each_array_is_compressed_as_it_is_alone() -> None:
    small = arrcomp.compress_many(TREE, CODEC)
    for c, x in zip(leaves(small), leaves(TREE), strict=True):
        if isinstance(x, np.ndarray):
            alone = arrcomp.compress(x, CODEC if x.dtype.kind == "f" else Lossless())
            assert c.to_bytes() == alone.to_bytes()
            assert c.codec == alone.codec
        else:
            assert c is x


def test_the_structure_comes_back() -> None:
    back = arrcomp.decompress_many(arrcomp.compress_many(TREE))
    assert list(back) == list(TREE)
    assert isinstance(back["state"], Moments)
    assert isinstance(back["nested"][1], tuple)
    for y, x in zip(leaves(back), leaves(TREE), strict=True):
        if isinstance(x, np.ndarray):
            checks.check_same_bits(y, x)
        else:
            assert y is x


def test_a_thousand_arrays_go_to_the_core_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    core = {name: getattr(_core, name) for name in ("encode_at", "decode_at")}
    for name, position in (("encode_at", 3), ("decode_at", 3)):
        function = core[name]

        def counted(*arguments: Any, function: Any = function, position: int = position) -> Any:
            calls.append(len(arguments[position]))
            return function(*arguments)

        monkeypatch.setattr(_core, name, counted)
    xs = [normal(n % 300) for n in range(1000)]
    small = arrcomp.compress_many(xs, CODEC)
    arrcomp.decompress_many(small)
    assert calls == [1000, 1000]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_and_small_arrays_together(threads: int) -> None:
    xs = [normal(10), normal(600_000), normal(5000), normal(0), normal(300_001), *(normal(40_000) for _ in range(9))]
    small = arrcomp.compress_many(xs, ErrorBounded(rel=1e-4), threads=threads)
    assert [c.to_bytes() for c in small] == [arrcomp.compress(x, ErrorBounded(rel=1e-4)).to_bytes() for x in xs]
    for y, x in zip(arrcomp.decompress_many(small, threads=threads), xs, strict=True):
        checks.check_bound(x, y, ErrorBounded(rel=1e-4))


def test_mappings_keep_their_type_and_what_they_carry() -> None:
    state = collections.OrderedDict(b=normal(3), a=normal(4))
    state._metadata = {"version": 1}  # type: ignore[attr-defined]  # as a state_dict has
    small = arrcomp.compress_many(state)
    assert type(small) is collections.OrderedDict
    assert small._metadata == {"version": 1}  # type: ignore[attr-defined]
    assert list(small) == ["b", "a"]
    assert isinstance(state["b"], np.ndarray), "the structure that was given has changed"
    assert type(arrcomp.decompress_many(types.MappingProxyType({"x": arrcomp.compress(normal(3))}))) is dict


def test_a_lone_array_is_a_structure() -> None:
    c = arrcomp.compress_many(TREE["weight"], CODEC)
    assert c.to_bytes() == arrcomp.compress(TREE["weight"], CODEC).to_bytes()
    checks.check_same_bits(arrcomp.decompress_many(c), arrcomp.decompress(c))
    assert arrcomp.compress_many([]) == []
    assert arrcomp.compress_many(None) is None


def test_other_dtypes_take_the_other_codec() -> None:
    tree = [np.arange(100), normal(100), np.ones(5, np.complex64)]
    codecs = [c.codec for c in arrcomp.compress_many(tree, CODEC, otherwise=Lossless(speed="fast"))]
    assert codecs == [Lossless(speed="fast"), CODEC, Lossless(speed="fast")]
    with pytest.raises(
        TypeError,
        match=r"^tree\[0\]: dtype: expected float16, .* got int64; Lossless takes every dtype",
    ):
        arrcomp.compress_many(tree, CODEC, otherwise=CODEC)


def test_one_seed_is_for_all_arrays_that_need_one() -> None:
    codec = QSGD(rounding="stochastic")
    tree: dict[str, Any] = {"weight": normal(50, 70), "half": normal(300).astype(np.float16), "step": np.arange(3)}
    small = arrcomp.compress_many(tree, codec, seed=5)
    for key, x in tree.items():
        alone = arrcomp.compress(x, codec if x.dtype.kind == "f" else Lossless(), seed=5)
        assert small[key].to_bytes() == alone.to_bytes()
    assert small["weight"].to_bytes() != arrcomp.compress_many(tree, codec, seed=6)["weight"].to_bytes()
    with pytest.raises(TypeError, match=r"^seed: expected an integer, or a.*got None"):
        arrcomp.compress_many(tree, codec)
    with pytest.raises(ValueError, match=r"^seed: expected an integer from 0 to .*, got -1"):
        arrcomp.compress_many(tree, codec, seed=-1)
    integers = arrcomp.compress_many([np.arange(3)], codec)  # no array takes the codec
    assert integers[0].codec == Lossless()


def test_one_corrupt_payload_is_found() -> None:
    small = arrcomp.compress_many([normal(100), normal(100), normal(100)], CODEC)
    stream = bytearray(small[1].to_bytes())
    start, end = checks.payload_span(bytes(stream))
    stream[start:end] = bytes(end - start)
    small[1] = arrcomp.from_bytes(checks.seal(stream[:-8]))
    with pytest.raises(arrcomp.CorruptStreamError, match="payload 1"):
        arrcomp.decompress_many(small)


def test_streams_of_any_alignment_together() -> None:
    xs = [normal(100), normal(50)]
    small = [
        arrcomp.from_bytes(memoryview(b"x" * i + arrcomp.compress(x).to_bytes())[i:]) for i, x in enumerate(xs, start=1)
    ]
    for y, x in zip(arrcomp.decompress_many(small), xs, strict=True):
        checks.check_same_bits(y, x)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^codec: expected a codec such as ErrorBounded\(abs=1e-4\), got 3 \(int\)"):
        arrcomp.compress_many([normal(3)], 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^otherwise: expected a codec .*, got 'lossless' \(str\)"):
        arrcomp.compress_many([normal(3)], otherwise="lossless")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^threads: expected .* got 0"):
        arrcomp.compress_many([normal(3)], threads=0)
    with pytest.raises(TypeError, match=r"^tree\['x'\]: dtype: expected bool, .*, got object"):
        arrcomp.compress_many({"x": np.array([None])})


class Labelled:
    """An array with labels, as xarray's and pandas' are, that NumPy converts."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.values


def test_what_numpy_converts_is_compressed() -> None:
    x = normal(50, 60)
    small = arrcomp.compress_many({"sst": Labelled(x), "ice": [Labelled(x > 0)]}, CODEC)
    assert small["sst"].to_bytes() == arrcomp.compress(x, CODEC).to_bytes()
    assert small["ice"][0].to_bytes() == arrcomp.compress(x > 0).to_bytes()
    with pytest.raises(TypeError, match=r"^tree\[0\]: dtype: expected bool, .* got <U1"):
        arrcomp.compress_many([Labelled(np.array(["a"]))])


def test_plain_values_are_kept_and_unknown_ones_refused() -> None:
    compressed = arrcomp.compress(normal(3))
    plain = {
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "amsgrad": False,
        "step": 7,
        "name": "adam",
        "none": None,
        "c": compressed,
    }
    assert arrcomp.compress_many(plain) == plain
    for unknown in ({1.0}, np.dtype("float32"), object(), normal):
        name = re.escape(type_name(unknown))
        with pytest.raises(TypeError, match=rf"^tree\['state'\]\[1\]: expected an array, .* got {name}; take"):
            arrcomp.compress_many({"state": (1, unknown)})


def test_the_results_are_moved(device: checks.Host) -> None:
    xs = [normal(30), normal(3000)]
    small = arrcomp.compress_many([device.put(x) for x in xs], CODEC)
    assert all(c.device.startswith(device.device) for c in small)
    for y, x in zip(arrcomp.decompress_many(small, like=np.empty(0)), xs, strict=True):
        assert isinstance(y, np.ndarray)
        checks.check_bound(x, y, CODEC)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_where_that_is_asked_for(value: float) -> None:
    tree = {"a": normal(3), "b": [np.array([1, value], np.float32)], "c": np.arange(3)}
    arrcomp.compress_many(tree)
    arrcomp.compress_many({"a": tree["a"], "c": tree["c"]}, check_finite=True)
    with pytest.raises(ValueError, match=r"^tree\['b'\]\[0\]: expected finite values, got NaN or infinities"):
        arrcomp.compress_many(tree, check_finite=True)
