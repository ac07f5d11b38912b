"""Large arrays are compressed into their file piece by piece: not a byte differs from what the whole gives."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import Codec, ErrorBounded, Lossless, append_file, compress, load_file, save_file
from arrcomp._api.compress import compress_with
from arrcomp._arrays.numpy import values_of
from arrcomp._files import large
from arrcomp._format import pieces
from arrcomp._format.spec import Spec
from ordinary import then_full

pytest.importorskip("safetensors")

SMALLEST = 1 << 20  # elements of a piece
RNG = np.random.default_rng(3)
NOISE = RNG.normal(0, 30, 2 * SMALLEST + 5001)
SPIKES = NOISE.astype(np.float32)  # too far apart for the bound, in some chunks
SPIKES[SMALLEST + 5000 : SMALLEST + 50_000] *= np.float32(1e30)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that are as small as can be, of arrays that are not large."""
    monkeypatch.setattr(large, "_LEAST_NBYTES", SMALLEST)
    monkeypatch.setattr(large, "_PIECE_NBYTES", 1)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of all arrays that are compressed."""
    shapes: list[tuple[int, ...]] = []

    def counting(*arguments: Any) -> Any:
        shapes.append(arguments[1].shape)
        return compress_with(*arguments)

    monkeypatch.setattr(large, "compress_with", counting)
    return shapes


def array(dtype: str, size: int) -> NDArray[Any]:
    return NOISE[:size].astype(checks.numpy_dtype(dtype))


CASES = [
    (array("int8", SMALLEST), Lossless(), 1),
    (array("bfloat16", 2 * SMALLEST - 1), Lossless(speed="fast"), 1),
    (array("float32", 2 * SMALLEST + 5001), Lossless(), 2),
    (array("complex64", SMALLEST + 1), Lossless(), 2),
    (array("float16", 2 * SMALLEST + 1), ErrorBounded(abs=1e-2), 2),
    (array("float64", 2 * SMALLEST + 4097), ErrorBounded(pointwise=1e-3), 2),
    (SPIKES, ErrorBounded(abs=1e-3, fill_value=float(SPIKES[7])), 2),
]


@pytest.mark.parametrize(("x", "codec", "count"), CASES)
def test_a_stream_is_the_same(
    tmp_path: Path, counted: list[tuple[int, ...]], x: NDArray[Any], codec: Codec, count: int
) -> None:
    save_file({"x": x}, tmp_path / "x.arrcomp", codec, threads=2)
    assert (tmp_path / "x.arrcomp").read_bytes() == compress(x, codec).to_bytes()
    assert len(counted) == count
    assert min(map(math.prod, counted)) >= SMALLEST // (2 if x.dtype.kind == "c" else 1)


def test_a_file_is_the_same(tmp_path: Path, counted: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"step": np.array(3), "large": array("float32", 2 * SMALLEST + 7).reshape(-1, 1), "last": np.ones(5)}
    rules = arrcomp.model_rules(ErrorBounded(abs=1e-2))
    path, whole = tmp_path / "x.safetensors", tmp_path / "whole.safetensors"
    save_file(arrays, path, rules, metadata={"a": "b"})
    append_file({"more": arrays["large"]}, path, rules)
    append_file({"in place": arrays["large"]}, path, rules)
    assert len(counted) == 6
    monkeypatch.setattr(large, "_LEAST_NBYTES", 1 << 60)
    save_file(arrays, whole, rules, metadata={"a": "b"})
    append_file({"more": arrays["large"]}, whole, rules)
    append_file({"in place": arrays["large"]}, whole, rules)
    assert len(counted) == 6
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("layout", then_full(["strided"], ["transposed", "big-endian", "mapped"]))
def test_an_array_of_any_layout_is_read_in_its_order(
    tmp_path: Path, counted: list[tuple[int, ...]], layout: str
) -> None:
    x = array("float32", 2 * SMALLEST)
    if layout == "mapped":
        np.save(tmp_path / "x.npy", x)
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
    laid = {"transposed": x.reshape(2, -1).T, "big-endian": x.astype(">f4"), "strided": x.repeat(2)[::2], "mapped": x}
    save_file({"x": laid[layout]}, tmp_path / "x.arrcomp")
    assert (tmp_path / "x.arrcomp").read_bytes() == compress(laid[layout]).to_bytes()
    assert len(counted) == 2


@pytest.mark.parametrize(
    ("x", "options"),
    [
        (array("float32", SMALLEST - 1), {}),
        (array("float32", SMALLEST), {"codec": ErrorBounded(rel=1e-3)}),
        (array("float32", SMALLEST), {"codec": Lossless(predictor="lorenzo")}),
        (array("float32", SMALLEST), {"codec": arrcomp.BaseDelta()}),
        (array("int8", SMALLEST), {"zstd_level": 1}),
        (array("float32", SMALLEST), {"base": {"x": array("float32", SMALLEST) + 1}}),
    ],
)
def test_what_needs_the_whole_is_compressed_as_a_whole(
    tmp_path: Path, counted: list[tuple[int, ...]], x: NDArray[Any], options: dict[str, Any]
) -> None:
    if "zstd_level" in options:
        pytest.importorskip("zstandard")
    save_file({"x": x}, tmp_path / "x.safetensors", **options)
    assert not counted


def test_a_value_that_is_not_finite_is_found_in_the_last_piece(tmp_path: Path) -> None:
    x, path = array("float32", 2 * SMALLEST), tmp_path / "x.safetensors"
    save_file({"x": x[:10]}, path)
    before = path.read_bytes()
    x[-1] = np.nan
    with pytest.raises(ValueError, match=r"^array 'x': expected finite values, got NaN or infinities"):
        save_file({"x": x}, path, check_finite=True)
    assert path.read_bytes() == before
    save_file({"x": x}, path)
    checks.check_same_bits(load_file(path)["x"], x)


def test_finite_values_are_looked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arrcomp._arrays.numpy._FINITE_VALUES", 3)
    for shape in ((), (0,), (7,), (2, 5)):
        x = np.ones(shape)
        compress(x, check_finite=True)
        for i in range(x.size):
            x.flat[i] = np.inf
            for layout in (x, x.T):
                with pytest.raises(ValueError, match=r"^x: expected finite values"):
                    compress(layout, check_finite=True)
            x.flat[i] = 1


def test_values_are_those_in_c_order() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for layout in (x, x.T, x[:, ::-1], np.asfortranarray(x)):
        for first, last in ((0, 24), (3, 17), (20, 40)):
            np.testing.assert_array_equal(values_of(layout, first, last), layout.reshape(-1)[first:last])
    assert np.shares_memory(values_of(x, 3, 5), x)


def test_some_values_of_an_array_take_no_copy_of_all() -> None:
    x = np.zeros((1000, 1000)).T
    tracemalloc.start()
    try:
        values_of(x, 5, 15)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000


@pytest.mark.parametrize("dtype", ["uint8", "complex128"])
@pytest.mark.parametrize("nbytes", [1, 5_000_000, 1 << 26])
def test_pieces_cover_an_array_between_groups(dtype: str, nbytes: int) -> None:
    row = Spec(Lossless(), arrcomp._dtypes.by_name(dtype), ())
    for size in (SMALLEST, SMALLEST + 1, 5 * SMALLEST - 1, (1 << 36) // row.dtype.itemsize + 3):
        spec = Spec(Lossless(), row.dtype, (size,))
        found = list(pieces.ranges(spec, max(nbytes, size // 100)))
        assert [first for first, _ in found] == [0, *(last for _, last in found[:-1])]
        assert found[-1][1] == size
        assert all(first * row.dtype.parts % (4 * 4096) == 0 for first, _ in found)
        assert min(last - first for first, last in found) * row.dtype.parts >= SMALLEST


def test_a_directory_of_eight_gibibytes_has_wide_entries() -> None:
    x = array("uint8", SMALLEST)
    payload, piece = compress(x).host_payload(), SMALLEST // (4 * 4096)
    for size, width in (((1 << 33) - SMALLEST, 4), (1 << 33, 8)):
        whole = pieces._Payload(Spec(Lossless(), arrcomp._dtypes.by_name("uint8"), (size,)))
        count = size // SMALLEST
        for _ in range(count):
            groups = whole.groups_of(payload, SMALLEST)
        head = whole.head()
        ends = np.frombuffer(head, f"<u{width}", count * piece, 16)
        assert int.from_bytes(head[12:16], "little") == width
        assert len(head) == 16 + width * count * piece == whole.nbytes - count * groups.size
        assert 4 * int(ends[-1]) == count * groups.size
        assert (np.diff(ends.astype(np.int64)) > 0).all()
