"""arrcomp among zarr's compressors: what bytes it takes for elements, what it leaves bytes, and what it refuses.

What holds for its serializer as well is in test_zarr.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import CorruptStreamError, ErrorBounded, Lossless
from checks import Array

zarr = pytest.importorskip("zarr", "3.1")

from zarr.abc.codec import ArrayArrayCodec
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec, ZstdCodec

from arrcomp.stores.zarr import ArrcompCodec, ArrcompCompressor

BOUND = ErrorBounded(abs=1e-3)
LOSSLESS = [
    codec for kind in arrcomp.available_codecs().values() for codec in kind.examples() if codec.takes_numpy(np.uint8)
]
WEIGHTS = np.random.default_rng(0).normal(0, 0.02, (30, 50)).astype(np.float32)
# Codecs that change the number of bytes, before arrcomp's: compressors, and a serializer.
LONGER_OR_SHORTER = {
    "zstd": ([ZstdCodec()], "auto"),
    "crc32c": ([Crc32cCodec()], "auto"),
    "shards": ([], ShardingCodec(chunk_shape=(5, 25))),
    "arrcomp": ([], ArrcompCodec()),
}
sharding_warns = pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
no_standard_dtype = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")


def stored(x: Array, *compressors: Any, store: Any = None, **options: Any) -> Any:
    """A zarr array of format 3, in memory unless there is another store, with the values of x."""
    store = zarr.storage.MemoryStore() if store is None else store
    z = zarr.create_array(store, shape=x.shape, dtype=x.dtype, compressors=compressors, **options)
    z[...] = x
    return z


def only_chunk(z: Any) -> bytes:
    """The stream of an array of one chunk in memory."""
    (chunk,) = (value for name, value in z.store._store_dict.items() if not name.endswith("zarr.json"))
    return bytes(chunk.to_bytes())


def test_the_streams_are_those_of_the_serializer() -> None:
    behind_bytes = stored(WEIGHTS, ArrcompCompressor(BOUND), chunks=WEIGHTS.shape)
    as_serializer = stored(WEIGHTS, serializer=ArrcompCodec(BOUND), chunks=WEIGHTS.shape)
    assert only_chunk(behind_bytes) == only_chunk(as_serializer) == checks.stream_of(WEIGHTS, BOUND)


@pytest.mark.parametrize("after", [ZstdCodec(), Crc32cCodec()], ids=["zstd", "crc32c"])
@pytest.mark.parametrize("shards", [None, (20, 50)], ids=["chunks", "shards"])
def test_other_compressors_come_after(after: Any, shards: Any) -> None:
    z = stored(WEIGHTS, ArrcompCompressor(BOUND), after, chunks=(10, 25), shards=shards)
    checks.check_bound(WEIGHTS, z[...], BOUND)


@dataclass(frozen=True)
class Cast(ArrayArrayCodec):  # type: ignore[misc,unused-ignore]
    """A filter that changes the dtype of what comes after it. Those of numcodecs are not in every version of zarr.

    Attributes:
        data_type: the dtype to change to, as zarr has it.
    """

    data_type: Any
    is_fixed_size = True

    @classmethod
    def to(cls, dtype: str) -> Cast:
        """The filter for a dtype of NumPy's."""
        return cls(zarr.create_array(zarr.storage.MemoryStore(), shape=(1,), dtype=dtype).metadata.data_type)

    def to_dict(self) -> dict[str, Any]:
        return {"name": "cast"}

    def resolve_metadata(self, chunk_spec: Any) -> Any:
        return replace(chunk_spec, dtype=self.data_type)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        dtype = self.data_type.to_native_dtype()
        return type(chunk_data).from_numpy_array(chunk_data.as_numpy_array().astype(dtype))

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        dtype = chunk_spec.dtype.to_native_dtype()
        return type(chunk_data).from_numpy_array(chunk_data.as_numpy_array().astype(dtype))


@pytest.mark.parametrize("order", ["C", "F"])
def test_filters_may_change_shape_and_dtype(order: Any) -> None:
    x = np.asarray(WEIGHTS, np.float64, order=order)
    z = stored(x, ArrcompCompressor(BOUND), chunks=(30, 50), filters=[TransposeCodec(order=(1, 0)), Cast.to("float32")])
    stream = arrcomp.from_bytes(only_chunk(z))
    assert (stream.dtype, stream.shape) == (np.dtype(np.float32), (50, 30))
    checks.check_bound(WEIGHTS, z[...].astype(np.float32), BOUND)


def test_a_filter_that_makes_what_a_codec_does_not_take_is_named() -> None:
    with pytest.raises(
        TypeError, match=r"^dtype: expected float16, bfloat16, float32,.*got int16; Lossless takes every dtype"
    ):
        stored(WEIGHTS, ArrcompCompressor(BOUND), filters=[Cast.to("int16")])


# Bytes that are no elements


@sharding_warns
@pytest.mark.parametrize("codec", LOSSLESS, ids=repr)
@pytest.mark.parametrize(
    ("before", "serializer"),
    [*LONGER_OR_SHORTER.values(), ([], BytesCodec(endian="big"))],
    ids=[*LONGER_OR_SHORTER, "big"],
)
def test_a_lossless_codec_takes_whatever_comes_before(codec: arrcomp.Codec, before: list[Any], serializer: Any) -> None:
    z = stored(WEIGHTS, *before, ArrcompCompressor(codec), chunks=(10, 50), serializer=serializer)
    checks.check_same_bits(z[...], WEIGHTS)


@given(x=st.lists(st.integers(0, 255), min_size=64, max_size=64), name=st.sampled_from(checks.DTYPES))
@pytest.mark.parametrize("codec", LOSSLESS, ids=repr)
def test_no_bytes_are_changed_that_are_as_many_as_the_elements(codec: arrcomp.Codec, name: str, x: list[int]) -> None:
    """They may come from a shuffle, say, and be no values that this dtype has."""
    data = np.array(x, np.uint8).view(checks.numpy_dtype(name))
    assert checks.array_of(checks.stream_of(data, codec)).tobytes() == data.tobytes()


@no_standard_dtype
@pytest.mark.filterwarnings("ignore:The codec `vlen-utf8`")
@pytest.mark.parametrize(
    "x",
    [
        np.array(["a", "bcd", ""], "S3"),
        np.array(["a", "bcd", ""], "U3"),
        np.array([b"a", b"b", b"\xff"], "S1"),
        np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")]),
        np.array(["a", "b" * 300], np.dtypes.StringDType()),
        np.array(["2001-01-01", "NaT"], "M8[s]"),
        np.array([1, -5], "m8[ms]"),
    ],
    ids=lambda x: str(x.dtype),
)
def test_arrays_of_zarrs_other_dtypes_are_kept(x: Array) -> None:
    z = stored(x, ArrcompCompressor(), chunks=(2,))
    np.testing.assert_array_equal(z[...], x)
    assert z[...].dtype == x.dtype


@no_standard_dtype
def test_datetimes_are_coded_as_integers() -> None:
    x = np.arange("2001-01-01", "2001-02-01", dtype="M8[D]")
    stream = arrcomp.from_bytes(only_chunk(stored(x, ArrcompCompressor(), chunks=x.shape)))
    assert (stream.dtype, stream.shape) == (np.dtype(np.int64), x.shape)


@sharding_warns
@pytest.mark.parametrize(("before", "serializer"), LONGER_OR_SHORTER.values(), ids=LONGER_OR_SHORTER)
def test_a_lossy_codec_takes_elements_alone(before: list[Any], serializer: Any) -> None:
    store = zarr.storage.MemoryStore()
    with pytest.raises(ValueError, match=r"^chunk: expected 2000 bytes, as zarr's serializer `bytes`"):
        stored(WEIGHTS, *before, ArrcompCompressor(BOUND), chunks=(10, 50), serializer=serializer, store=store)
    assert set(store._store_dict) == {"zarr.json"}


# Chunks of others


def put_chunk(path: Path, stream: bytes) -> Any:
    """The array with another stream as its only chunk."""
    (chunk,) = (file for file in (path / "c").rglob("*") if file.is_file())
    chunk.write_bytes(stream)
    return zarr.open_array(path)


@pytest.mark.parametrize("codec", [Lossless(), BOUND], ids=repr)
def test_elements_in_a_chunk_are_those_of_the_array(tmp_path: Path, codec: arrcomp.Codec) -> None:
    stored(WEIGHTS, ArrcompCompressor(codec), store=tmp_path, chunks=WEIGHTS.shape)
    for other in (WEIGHTS.T, WEIGHTS.ravel(), WEIGHTS.view(np.int32), WEIGHTS.ravel().view(np.uint8)):
        z = put_chunk(tmp_path, checks.stream_of(other, Lossless()))
        with pytest.raises(CorruptStreamError, match=r"^chunk: expected float32 of shape \(30, 50\), .*got "):
            z[...]


def test_bytes_in_a_chunk_need_a_lossless_codec(tmp_path: Path) -> None:
    stored(WEIGHTS, ArrcompCompressor(BOUND), ZstdCodec(), store=tmp_path, chunks=WEIGHTS.shape)
    z = put_chunk(tmp_path, bytes(ZstdCodec()._zstd_codec.encode(checks.stream_of(np.zeros(9, "u1"), Lossless()))))
    with pytest.raises(
        CorruptStreamError, match=r"^chunk: expected float32 of shape \(30, 50\),.*got uint8 of shape \(9,\)"
    ):
        z[...]


def test_bytes_have_one_dimension(tmp_path: Path) -> None:
    stored(WEIGHTS, ArrcompCompressor(), store=tmp_path, chunks=WEIGHTS.shape)
    z = put_chunk(tmp_path, checks.stream_of(np.zeros((30, 50), np.uint8), Lossless()))
    with pytest.raises(
        CorruptStreamError, match=r"^chunk: expected uint8 of shape \(1500,\), as.*got uint8 of shape \(30, 50\)"
    ):
        z[...]
