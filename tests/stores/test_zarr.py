"""arrcomp as codecs of zarr: arrays come back from chunks and shards, in whole and in part, in every process."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import arrcomp
import checks
from arrcomp import CorruptStreamError, ErrorBounded, Lossless
from checks import Array

zarr = pytest.importorskip("zarr", "3.1")

from arrcomp.stores.numcodecs import Arrcomp
from arrcomp.stores.zarr import ArrcompCodec, ArrcompCompressor

CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]
NUMPY_DTYPES = {name for name in checks.DTYPES if hasattr(np, name)}
WAYS = {"serializer": ArrcompCodec, "compressors": ArrcompCompressor}
both_ways = pytest.mark.parametrize("way", WAYS)
WEIGHTS = np.random.default_rng(0).normal(0, 0.02, (30, 50)).astype(np.float32)
BOUND = ErrorBounded(abs=0.01)


def zarr_has(name: str) -> bool:
    """Whether zarr has this data type; those of ml_dtypes it may learn."""
    try:
        zarr.create_array(zarr.storage.MemoryStore(), shape=(1,), dtype=checks.numpy_dtype(name))
    except (TypeError, ValueError):
        return False
    return True


DTYPES = [name for name in checks.DTYPES if zarr_has(name)]


def coded_by(codec: arrcomp.Codec, way: str = "serializer") -> dict[str, Any]:
    """What to tell zarr of an array that this codec codes, and no other."""
    return {"compressors": None} | {way: WAYS[way](codec, seed=checks.SEED if codec.needs_seed else None)}


def codec_of(z: Any, way: str) -> Any:
    """The only codec of an array that is one of arrcomp's."""
    (codec,) = z.compressors if way == "compressors" else (z.serializer,)
    return codec


def stored(x: Array, codec: arrcomp.Codec | None = None, path: Path | None = None, **options: Any) -> Any:
    """A zarr array of format 3, in memory unless there is a path, with the values of x; `way` as for `coded_by`."""
    options = coded_by(codec or Lossless(), options.pop("way", "serializer")) | options
    z = zarr.create_array(path or zarr.storage.MemoryStore(), shape=x.shape, dtype=x.dtype, **options)
    z[...] = x
    return z


def expected(x: Array, codec: arrcomp.Codec) -> Array:
    """What the codec makes of an array."""
    return checks.array_of(checks.stream_of(x, codec))


# Values


def test_zarr_has_the_dtypes_of_numpy() -> None:
    assert set(DTYPES) >= NUMPY_DTYPES
    assert len(NUMPY_DTYPES) == 14


@st.composite
def layouts(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]:
    """A shape, chunks, and shards of some of these chunks."""
    shape = draw(hnp.array_shapes(max_dims=3, max_side=12))
    chunks = tuple(draw(st.integers(1, size + 2)) for size in shape)
    shards = tuple(size * draw(st.integers(1, 3)) for size in chunks) if draw(st.booleans()) else None
    return shape, chunks, shards


@given(name=st.sampled_from(DTYPES), layout=layouts(), way=st.sampled_from([*WAYS]), data=st.data())
def test_every_dtype_comes_back_in_whole_and_in_part(name: str, layout: Any, way: str, data: st.DataObject) -> None:
    shape, chunks, shards = layout
    x = (np.arange(np.prod(shape)).reshape(shape) % 2).astype(checks.numpy_dtype(name))
    z = stored(x, way=way, chunks=chunks, shards=shards)
    checks.check_same_bits(z[...], x)
    where = data.draw(hnp.basic_indices(shape, allow_ellipsis=False, allow_newaxis=False).filter(is_forward))
    checks.check_same_bits(np.asarray(z[where]), np.asarray(x[where]))
    z[where] = x[where]
    checks.check_same_bits(z[...], x)


def is_forward(where: Any) -> bool:
    """Whether zarr takes these indices."""
    parts = where if isinstance(where, tuple) else (where,)
    return all(not isinstance(part, slice) or (part.step or 1) > 0 for part in parts)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("shards", [None, (20, 50)], ids=["chunks", "shards"])
@both_ways
def test_every_codec_codes_chunks_as_it_does_elsewhere(codec: arrcomp.Codec, shards: Any, way: str) -> None:
    z = stored(WEIGHTS, codec, way=way, chunks=(10, 25), shards=shards)
    for rows in (slice(0, 10), slice(10, 20), slice(20, 30)):
        for columns in (slice(0, 25), slice(25, 50)):
            checks.check_same_bits(z[rows, columns], expected(WEIGHTS[rows, columns], codec))


@both_ways
@pytest.mark.parametrize("x", [np.float32(1.5), np.zeros((0,), "i2"), np.zeros((3, 0), "f8")], ids=repr)
def test_arrays_without_dimensions_or_values_come_back(x: Any, way: str) -> None:
    x = np.asarray(x)
    z = stored(x, way=way, chunks=tuple(max(size, 1) for size in x.shape))
    checks.check_same_bits(np.asarray(z[...]), x)


@both_ways
@pytest.mark.parametrize("fill", [np.nan, 0.0, 7.5, np.inf])
def test_chunks_that_are_not_written_are_filled(fill: float, way: str) -> None:
    x = np.full((8, 8), fill, np.float64)
    x[:4, 4:] = 1
    z = stored(x, way=way, chunks=(4, 4), fill_value=fill)
    assert z.nchunks_initialized == 1
    np.testing.assert_array_equal(z[...], x)
    z[:4, 4:] = fill
    assert z.nchunks_initialized == 0
    np.testing.assert_array_equal(z[...], np.full((8, 8), fill))


@both_ways
def test_values_that_are_never_written_are_filled(way: str) -> None:
    options = coded_by(Lossless(), way)
    z = zarr.create_array(zarr.storage.MemoryStore(), shape=(5,), chunks=(2,), dtype="i4", fill_value=-3, **options)
    z[1] = 9
    assert z[:].tolist() == [-3, 9, -3, -3, -3]
    z.resize((7,))
    z.append(np.array([4, 5], "i4"))
    assert z[:].tolist() == [-3, 9, -3, -3, -3, -3, -3, 4, 5]


@pytest.mark.parametrize(
    "codec", [ErrorBounded(abs=0.01), ErrorBounded(abs=0.01, speed="fast"), ErrorBounded(pointwise=0.01)], ids=repr
)
def test_rows_that_are_appended_to_a_chunk_do_not_change_those_before(codec: ErrorBounded) -> None:
    rows = np.cumsum(np.random.default_rng(0).normal(0, 0.1, (16, 500)), axis=0).astype(np.float32)
    store = zarr.storage.MemoryStore()
    z = zarr.create_array(store, shape=(0, 500), dtype="f4", chunks=(16, 500), **coded_by(codec))
    for row in rows:
        z.append(row[None])
    checks.check_bound(rows, z[:], codec)


def test_what_was_never_written_of_a_chunk_is_the_fill_value_that_the_codec_has() -> None:
    codec = ErrorBounded(abs=0.01, fill_value=-9999, predictor="interpolation")
    store = zarr.storage.MemoryStore()
    z = zarr.create_array(store, shape=(40, 50), dtype="f4", chunks=(40, 50), fill_value=-9999, **coded_by(codec))
    z[:30] = WEIGHTS
    assert (z[30:] == -9999).all()
    checks.check_bound(WEIGHTS, z[:30], codec)


@both_ways
@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c16"])
def test_the_byte_order_comes_back(dtype: str, way: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    y = stored(x, way=way, chunks=(2, 3))[...]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_other_codecs_come_before_and_after() -> None:
    filters, compressors = zarr.codecs.TransposeCodec(order=(1, 0)), zarr.codecs.ZstdCodec()
    z = stored(WEIGHTS, chunks=(10, 30), filters=[filters], compressors=[compressors])
    checks.check_same_bits(z[...], WEIGHTS)
    checks.check_same_bits(stored(WEIGHTS, compressors="auto")[...], WEIGHTS)
    checks.check_same_bits(stored(np.asfortranarray(WEIGHTS))[...], WEIGHTS)


# numcodecs' filters, by what they do to the chunks of an array of float32.
FILTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "flattens": ("Delta", {"dtype": "f4"}),
    "flattens, and says its dtype": ("FixedScaleOffset", {"offset": 0, "scale": 8, "dtype": "f4", "astype": "i2"}),
    "views floats as integers": ("BitRound", {"keepbits": 12}),
    "says shape and dtype": ("AsType", {"encode_dtype": "f8", "decode_dtype": "f4"}),
}
zarr_warns_of_numcodecs = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")


def filtered(x: Array, of: str, codec: arrcomp.Codec | None = None, store: Any = None, **changed: Any) -> Any:
    """An array in memory with the values of x, behind a filter of numcodecs."""
    name, parameters = FILTERS[of]
    made = getattr(pytest.importorskip("zarr.codecs.numcodecs"), name)(**(parameters | changed))
    return stored(x, codec, path=store, chunks=(16, 25)[-x.ndim :], filters=[made])


@zarr_warns_of_numcodecs
@pytest.mark.parametrize("of", FILTERS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_filters_come_before(of: str, order: Any) -> None:
    """Numbers that each of them keeps."""
    x = np.asarray(np.arange(-750, 750).reshape(30, 50) / 8, np.float32, order=order)
    z = filtered(x, of)
    checks.check_same_bits(z[...], x)
    z[3:7, 2:40] = x[3:7, 2:40] + 1
    checks.check_same_bits(z[3:7, 2:40], x[3:7, 2:40] + 1)
    checks.check_same_bits(filtered(x[0], of)[...], x[0])


@zarr_warns_of_numcodecs
def test_a_bound_holds_for_what_a_filter_makes() -> None:
    z = filtered(WEIGHTS.astype(np.float64), "says shape and dtype", BOUND, encode_dtype="f4", decode_dtype="f8")
    checks.check_bound(WEIGHTS, z[...].astype(np.float32), BOUND)
    steps = np.diff(filtered(WEIGHTS, "flattens", BOUND)[:16, :25].ravel())
    assert np.abs(steps - np.diff(WEIGHTS[:16, :25].ravel())).max() < 0.0101


@zarr_warns_of_numcodecs
@pytest.mark.parametrize(
    ("of", "x", "codec", "changed", "message"),
    [
        ("views floats as integers", WEIGHTS, BOUND, {}, r"float32 of .*, got int32 of .* from them; lossless codecs"),
        ("flattens", WEIGHTS.astype(">f4"), Lossless(), {"dtype": ">f4"}, r">f4 of .*, got >f4 of shape \(400,\)"),
        ("flattens", WEIGHTS.astype("f8"), Lossless(), {}, r"float64 of .*, got float32 of shape \(800,\) from them$"),
        ("flattens", WEIGHTS[0].astype(">f4"), Lossless(), {"dtype": "i4"}, r">f4 of shape \(25,\), .*, got int32"),
    ],
    ids=["values", "order", "size", "bits"],
)
def test_a_chunk_that_could_not_be_read_is_not_written(
    of: str, x: Array, codec: arrcomp.Codec, changed: Any, message: str
) -> None:
    store = zarr.storage.MemoryStore()
    with pytest.raises(ValueError, match=f"^chunk: expected {message}"):
        filtered(x, of, codec, store, **changed)
    assert set(store._store_dict) == {"zarr.json"}


def test_arrays_are_read_and_written_asynchronously() -> None:
    async def work() -> Array:
        z = await zarr.api.asynchronous.create_array(
            zarr.storage.MemoryStore(), shape=(30, 50), dtype="f4", chunks=(3, 5), serializer=ArrcompCodec()
        )
        await asyncio.gather(*(z.setitem(slice(i, i + 3), WEIGHTS[i : i + 3]) for i in range(0, 30, 3)))
        parts = await asyncio.gather(*(z.getitem(slice(i, i + 5)) for i in range(0, 30, 5)))
        return np.concatenate(parts)

    checks.check_same_bits(asyncio.run(work()), WEIGHTS)


# Files


@both_ways
@pytest.mark.parametrize("shards", [None, (20, 50)], ids=["chunks", "shards"])
def test_a_fresh_process_reads_and_writes_without_importing_arrcomp(tmp_path: Path, shards: Any, way: str) -> None:
    path, codec = tmp_path / "x.zarr", ErrorBounded(abs=1e-3)
    stored(WEIGHTS, codec, path, way=way, chunks=(10, 25), shards=shards)
    code = (
        "import sys, zarr; assert 'arrcomp' not in sys.modules; z = zarr.open_array(sys.argv[1]); "
        "x = z[:]; z[:10] = 2 * x[:10]; sys.stdout.buffer.write(x.tobytes())"
    )
    result = subprocess.run([sys.executable, "-P", "-c", code, str(path)], capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    x = np.frombuffer(result.stdout, np.float32).reshape(WEIGHTS.shape)
    checks.check_bound(WEIGHTS, x, codec)
    checks.check_bound(2 * x[:10], zarr.open_array(path)[:10], codec)


@both_ways
def test_the_metadata_are_plain_json(tmp_path: Path, way: str) -> None:
    for number, codec in enumerate(CODECS):
        options = coded_by(codec, way)
        zarr.create_array(tmp_path / str(number), shape=(4,), dtype="f4", **options)
        written = json.loads((tmp_path / str(number) / "zarr.json").read_text())["codecs"]
        seed = {"seed": checks.SEED} if codec.needs_seed else {}
        configuration = json.loads(json.dumps(codec.config())) | seed
        bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
        assert (
            written
            == {
                "serializer": [{"name": "arrcomp", "configuration": configuration}],
                "compressors": [bytes_codec, {"name": "arrcomp_compressor", "configuration": configuration}],
            }[way]
        )
        assert codec_of(zarr.open_array(tmp_path / str(number)), way) == options[way]


@both_ways
def test_a_dictionary_names_the_codec(way: str) -> None:
    name = {"name": WAYS[way].codec_name}
    bounded = name | {"configuration": {"codec": "error-bounded", "abs": 0.5}}
    for text, codec in ((name, Lossless()), (bounded, ErrorBounded(abs=0.5))):
        options: dict[str, Any] = {way: text}
        assert codec_of(stored(WEIGHTS, way=way, **options), way).codec == codec


@both_ways
def test_arrays_are_pickled_with_their_codec(tmp_path: Path, way: str) -> None:
    z = stored(WEIGHTS, arrcomp.SmaQ(), tmp_path / "x", way=way)
    twin = pickle.loads(pickle.dumps(z))  # noqa: S301
    assert codec_of(twin, way) == codec_of(z, way) == WAYS[way](arrcomp.SmaQ(), seed=checks.SEED)
    checks.check_same_bits(twin[...], z[...])


# Format 2


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_format_2_come_back(name: str, order: Any) -> None:
    x = (np.arange(7 * 9).reshape(7, 9) % 2).astype(checks.numpy_dtype(name))
    z = stored(x, serializer="auto", compressors=Arrcomp(), chunks=(4, 5), zarr_format=2, order=order)
    checks.check_same_bits(z[...], x)
    checks.check_same_bits(z[2:6, ::3], x[2:6, ::3])


@pytest.mark.parametrize(
    "x",
    [
        np.array([["a", "bcd"], ["", "\u00e9"], ["f", "g"]]),
        np.array([[b"a", b"bcd"], [b"", b"\xff"], [b"f", b"g"]]),
        np.arange(24, dtype="u1").view("V4").reshape(3, 2),
        np.array([[(1, 2.5), (3, 4.5)]] * 3, [("a", "i4"), ("b", ">f8")]),
        np.arange(6).reshape(3, 2).astype(">f4"),
        np.array([["2001-01-01", "NaT"]] * 3, ">M8[s]"),
        np.array([["a", "b" * 300]] * 3, np.dtypes.StringDType()),
    ],
    ids=lambda x: str(x.dtype),
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_dtypes_are_kept_in_format_2(x: Array, order: Any) -> None:
    z = stored(x, serializer="auto", compressors=Arrcomp(), chunks=(2, 2), zarr_format=2, order=order)
    np.testing.assert_array_equal(z[...], x)
    assert z[...].dtype == x.dtype
    np.testing.assert_array_equal(z[1:, 1], x[1:, 1])


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_datasets_of_xarray_come_back_in_format_2(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    coordinates = {"station": ["north", "s"], "time": np.array(["2001-01-01", "2001-01-02"], "M8[ns]")}
    ds = xarray.Dataset({"t": (("station", "time"), WEIGHTS[:2, :2])}, coordinates | {"b": ("time", [b"x", b"yz"])})
    ds.to_zarr(tmp_path / "x", zarr_format=2, encoding={name: {"compressors": (Arrcomp(),)} for name in ds.variables})
    with xarray.open_zarr(tmp_path / "x") as back:
        xarray.testing.assert_identical(back.compute(), ds)


def test_a_fresh_process_reads_format_2(tmp_path: Path) -> None:
    compressor = Arrcomp(ErrorBounded(abs=1e-3))
    path = tmp_path / "x"
    stored(WEIGHTS, path=path, serializer="auto", compressors=compressor, chunks=(10, 25), zarr_format=2)
    code = "import sys, zarr; sys.stdout.buffer.write(zarr.open_array(sys.argv[1])[:].tobytes())"
    result = subprocess.run([sys.executable, "-P", "-c", code, str(path)], capture_output=True, check=False)
    x = np.frombuffer(result.stdout, np.float32).reshape(WEIGHTS.shape)
    checks.check_bound(WEIGHTS, x, ErrorBounded(abs=1e-3))


# What is wrong


@both_ways
@pytest.mark.parametrize("shards", [None, (8,)], ids=["chunks", "shards"])
@pytest.mark.parametrize("dtype", ["i4", "c8", "bool", "M8[s]", "S3", "U3", [("a", "f4")]], ids=str)
def test_dtypes_that_a_codec_does_not_take_are_refused_when_an_array_is_made(dtype: Any, shards: Any, way: str) -> None:
    store, options = zarr.storage.MemoryStore(), coded_by(ErrorBounded(abs=1), way)
    with pytest.raises(TypeError, match=r"^dtype: expected "):
        zarr.create_array(store, shape=(8,), chunks=(4,), shards=shards, dtype=dtype, **options)
    assert not store._store_dict


@pytest.mark.parametrize("dtype", ["M8[s]", "S3", [("a", "f4")]], ids=str)
def test_a_serializer_names_the_compressor_that_takes_other_dtypes(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"^dtype: expected numbers or booleans, .*; ArrcompCompressor takes every"):
        zarr.create_array(zarr.storage.MemoryStore(), shape=(8,), dtype=dtype, **coded_by(Lossless()))


@pytest.mark.parametrize(
    ("configuration", "error", "message"),
    [
        ({"codec": "error-bounded"}, TypeError, "exactly one of abs, rel and pointwise"),
        ({"codec": "zip"}, arrcomp.UnknownCodecError, r"^config\['codec'\]: expected lossless,.*got 'zip'"),
        ({"level": 3}, ValueError, r"^config: expected parameters of lossless \(speed, predictor\), got 'level'"),
        ({"codec": "smaq"}, TypeError, r"^seed: expected an integer, .*, got None"),
        ({"codec": "smaq", "seed": 2**64}, ValueError, "^seed: expected an integer .*, got 18446744073709551616"),
    ],
    ids=str,
)
@both_ways
def test_wrong_configurations_are_named(configuration: Any, error: type[Exception], message: str, way: str) -> None:
    options: dict[str, Any] = {way: {"name": WAYS[way].codec_name, "configuration": configuration}}
    with pytest.raises(error, match=message):
        stored(WEIGHTS, **options)


@both_ways
def test_what_is_no_codec_is_named(way: str) -> None:
    with pytest.raises(TypeError, match=r"^codec: expected a codec .*, got 'lossless' \(str\)"):
        WAYS[way]("lossless")  # type: ignore[arg-type]


@pytest.mark.parametrize("module", ["zarr", "numcodecs"])
def test_without_the_library_an_error_says_what_to_install(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ImportError('No module named {module}')")
    command = [sys.executable, "-P", "-c", f"import arrcomp.stores.{module}"]
    result = subprocess.run(command, env=checks.environment_with(tmp_path), capture_output=True, text=True, check=False)
    assert re.search(rf"ImportError: arrcomp\.stores\.{module} needs .*pip install arrcomp\[zarr\]", result.stderr)


def chunk_files(path: Path) -> list[Path]:
    return sorted(file for file in (path / "c").rglob("*") if file.is_file())


@both_ways
def test_damaged_chunks_are_noticed(tmp_path: Path, way: str) -> None:
    path = tmp_path / "x"
    z = stored(WEIGHTS, path=path, way=way, chunks=(15, 50))
    first, second = chunk_files(path)
    whole = first.read_bytes()
    for damaged in (whole[:-1], whole + b"\0", b"\1", whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        first.write_bytes(damaged)
        with pytest.raises(CorruptStreamError):
            z[:15]
        checks.check_same_bits(z[15:], WEIGHTS[15:])
    second.write_bytes(whole)
    checks.check_same_bits(z[15:], WEIGHTS[:15])


@both_ways
@pytest.mark.parametrize("other", [WEIGHTS[:14], WEIGHTS[:15].astype("f8"), WEIGHTS[:15].ravel()], ids=["0", "1", "2"])
def test_a_chunk_of_another_array_is_noticed(tmp_path: Path, other: Array, way: str) -> None:
    path = tmp_path / "x"
    z = stored(WEIGHTS, path=path, way=way, chunks=(15, 50))
    chunk_files(path)[0].write_bytes(arrcomp.compress(other).to_bytes())
    with pytest.raises(CorruptStreamError, match=r"^chunk: expected float32 of .*, got float.*\)"):
        z[:15]
