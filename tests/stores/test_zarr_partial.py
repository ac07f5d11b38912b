"""Parts of zarr's chunks: only the bytes that they need are read, and only their blocks decoded."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
import fake_cupy
from arrcomp import CorruptStreamError, ErrorBounded, Lossless, _core
from arrcomp._arrays import parts
from arrcomp.stores import _partial
from checks import Array
from cupy_fixtures import cupy

zarr = pytest.importorskip("zarr", "3.1.6")

from arrcomp.stores.zarr import ArrcompCodec

__all__ = ["cupy"]  # the fixture

RNG = np.random.default_rng(0)
X = np.cumsum(RNG.normal(0, 0.01, (6, 512, 1024)), axis=2).astype(np.float32)  # 12 MB
BOUND = ErrorBounded(abs=1e-3)
PREDICTED = ErrorBounded(abs=1e-3, predictor="auto")


class CountingStore(zarr.storage.MemoryStore):  # type: ignore[misc,name-defined,unused-ignore]
    """Counts the bytes of chunks that are read, and the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.clear_counts()

    def clear_counts(self) -> None:
        self.nbytes, self.requests = 0, 0

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        found = await super().get(key, prototype, byte_range)
        if found is not None and not key.endswith(".json"):
            self.nbytes, self.requests = self.nbytes + len(found), self.requests + 1
        return found


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Values that are decoded by each call of the core."""
    counts: list[int] = []
    range_of, whole_of = _core.decode_range, _core.decode_at

    def decode_range(*arguments: Any) -> None:
        counts.append(arguments[6].size // 4)
        range_of(*arguments)

    def decode_at(*arguments: Any) -> Any:
        counts.extend(one[4] for one in arguments[3])
        return whole_of(*arguments)

    monkeypatch.setattr(_core, "decode_range", decode_range)
    monkeypatch.setattr(_core, "decode_at", decode_at)
    return counts


def stored(x: Array, codec: arrcomp.Codec, **options: Any) -> Any:
    """An array of one chunk, unless it is said otherwise, in a store that counts."""
    serializer = ArrcompCodec(codec, seed=checks.SEED if codec.needs_seed else None)
    options = {"chunks": x.shape, "serializer": serializer, "compressors": None} | options
    z = zarr.create_array(CountingStore(), shape=x.shape, dtype=x.dtype, **options)
    z[...] = x
    z.store.clear_counts()
    return z


@pytest.mark.parametrize("codec", [Lossless(), BOUND, arrcomp.QSGD(8)], ids=repr)
@pytest.mark.parametrize(
    ("index", "most"),
    [
        ((2, 100), 0.05),
        ((slice(2, 3), slice(100, 110), slice(7, 9)), 0.05),
        ((slice(None), 100, 7), 0.15),  # a series in time: a block of each slab
        ((slice(1, 5, 3), slice(500, None)), 0.15),
    ],
    ids=["row", "box", "series", "steps"],
)
def test_a_part_reads_and_decodes_little(codec: arrcomp.Codec, index: Any, most: float, decoded: list[int]) -> None:
    z = stored(X, codec)
    whole = z[...]
    nbytes = z.store.nbytes
    z.store.clear_counts()
    decoded.clear()
    checks.check_same_bits(z[index], whole[index])
    assert 0 < sum(decoded) < most * X.size
    assert z.store.nbytes < most * nbytes + _partial.HEAD_NBYTES
    assert z.store.requests <= 1 + 2 * 6  # of a slab the scales, and the codes


def test_a_part_of_a_predicted_chunk_is_one_range(decoded: list[int]) -> None:
    z = stored(X, PREDICTED)
    whole = z[...]
    nbytes = z.store.nbytes
    z.store.clear_counts()
    decoded.clear()
    checks.check_same_bits(z[2, 100], whole[2, 100])
    assert decoded == [1024]
    assert z.store.nbytes < 0.9 * nbytes
    checks.check_same_bits(z[:, 100, 7], whole[:, 100, 7])
    assert decoded == [1024, X.size]


def test_places_read_and_decode_little(decoded: list[int]) -> None:
    z = stored(X, Lossless())
    decoded.clear()
    places = np.array([5, 0, 0, 5]), np.array([3, 200, 200, 4]), np.array([9, 1, 1, 1000])
    checks.check_same_bits(z.vindex[places], X[places])
    assert sum(decoded) < 0.1 * X.size
    checks.check_same_bits(z.oindex[[1, 2], :, [7, 9, 3]], X[1:3][:, :, [7, 9, 3]])
    assert sum(decoded) < 0.4 * X.size


def test_a_chunk_of_a_shard_decodes_little(decoded: list[int]) -> None:
    z = stored(X, BOUND, chunks=(2, 512, 1024), shards=(6, 512, 1024))
    whole = z[...]
    decoded.clear()
    checks.check_same_bits(z[3, 5], whole[3, 5])
    assert 0 < sum(decoded) < 0.05 * X.size


def test_whole_chunks_and_most_of_one_are_read_at_once(decoded: list[int]) -> None:
    z = stored(X, BOUND)
    z[:5]
    assert (z.store.requests, decoded) == (1, [X.size])


def test_a_small_chunk_is_read_at_once(decoded: list[int]) -> None:
    z = stored(X[0, :128], BOUND)
    z[5]
    assert (z.store.requests, decoded) == (1, [128 * 1024])


# What zarr can ask for


@st.composite
def requests(draw: st.DrawFn) -> tuple[tuple[int, ...], str, Any]:
    """A shape, a way to ask, and an index."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    way = draw(st.sampled_from(["basic", "oindex", "vindex", "mask"]))
    places = [st.integers(0, size - 1) for size in shape]
    if way == "basic":
        axes = [one | st.builds(slice, one, st.integers(0, 9), st.integers(1, 3)) for one in places]
        return shape, way, tuple(draw(one) for one in axes)
    if way == "oindex":
        return shape, way, tuple(draw(one | st.lists(one, min_size=1, max_size=4)) for one in places)
    if way == "vindex":
        count = draw(st.integers(1, 5))
        return shape, way, tuple(np.array([draw(one) for _ in range(count)]) for one in places)
    return shape, way, RNG.random(shape) < draw(st.floats(0, 1))


@given(case=requests(), shards=st.booleans(), order=st.sampled_from("<>"), head=st.sampled_from([150, 1 << 14]))
def test_every_part_is_that_of_the_whole(case: Any, shards: bool, order: str, head: int) -> None:
    shape, way, index = case
    x = np.arange(np.prod(shape)).reshape(shape).astype(f"{order}f8")
    chunks = tuple(min(size, 4) for size in shape)
    options = {"chunks": chunks, "shards": tuple(2 * size for size in chunks) if shards else None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_partial, "LEAST_NBYTES", 0)
        patch.setattr(_partial, "_MOST_SHARE", 1e9)
        patch.setattr(_partial, "HEAD_NBYTES", head)
        patch.setattr(parts, "GAP", 2)
        z = stored(x, Lossless(), **options)
        if way in ("mask", "vindex"):
            np.testing.assert_array_equal(z.vindex[index], x[index])
        elif way == "oindex":
            expected = x[np.ix_(*(np.atleast_1d(one) for one in index))]
            ints = tuple(axis for axis, one in enumerate(index) if isinstance(one, int))
            np.testing.assert_array_equal(z.oindex[index], expected.squeeze(ints))
        else:
            np.testing.assert_array_equal(z[index], x[index])


def test_a_part_of_a_chunk_that_is_not_there_is_filled() -> None:
    options: dict[str, Any] = {"serializer": ArrcompCodec(BOUND), "compressors": None, "fill_value": 3}
    z = zarr.create_array(CountingStore(), shape=X.shape, chunks=X.shape, dtype="f4", **options)
    np.testing.assert_array_equal(z[3, 5], np.full(1024, 3, np.float32))


def test_complex_values_and_other_orders_come_in_parts() -> None:
    x = (X[0] + 1j * X[1]).astype(">c8")
    z = stored(x, Lossless())
    assert z[7, 5:9].dtype == x.dtype
    np.testing.assert_array_equal(z[7, 5:9], x[7, 5:9])


# Damage


def rewritten(z: Any, stream: bytes) -> None:
    """Put a stream into the place of the only chunk."""
    (key,) = (key for key in z.store._store_dict if not key.endswith(".json"))
    z.store._store_dict[key] = zarr.core.buffer.default_buffer_prototype().buffer.from_bytes(stream)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[:100_000], r"truncated: expected bytes \d+ to \d+, .* got 0 of them"),
        (lambda b: b[:90], "truncated"),
        (lambda b: b[:16] + (1 << 50).to_bytes(8, "little") + b[24:], "truncated"),
        (lambda b: b"XXXX" + b[4:], "magic"),
        (lambda b: arrcomp.compress(X[:5], BOUND).to_bytes(), r"chunk: expected .*\(6, 512, 1024\), as in the array's"),
    ],
    ids=["short", "shorter", "claim", "magic", "shape"],
)
def test_a_damaged_stream_is_found(change: Any, message: str) -> None:
    z = stored(X, BOUND)
    rewritten(z, change(arrcomp.compress(X, BOUND).to_bytes()))
    with pytest.raises(CorruptStreamError, match=message):
        z[5, 500]


def test_the_checksum_is_that_of_the_whole() -> None:
    z, stream = stored(X, Lossless()), bytearray(arrcomp.compress(X, Lossless()).to_bytes())
    stream[-1000] ^= 1
    rewritten(z, bytes(stream))
    checks.check_same_bits(z[0, 5], X[0, 5])
    with pytest.raises(CorruptStreamError, match="checksum"):
        z[...]


def test_the_checksum_of_a_chunk_in_a_shard_is_checked() -> None:
    z = stored(X, Lossless(), shards=X.shape)
    ((key, stream),) = ((key, one.to_bytes()) for key, one in z.store._store_dict.items() if not key.endswith(".json"))
    z.store._store_dict[key] = zarr.buffer.cpu.Buffer.from_bytes(stream[:9000] + b"damage" + stream[9006:])
    with pytest.raises(CorruptStreamError, match="checksum"):
        z[5, 500]


def test_a_frame_is_read_whole() -> None:
    pytest.importorskip("zstandard")
    x = np.arange(1 << 20, dtype=np.int32).reshape(1024, 1024) // 1000
    z, stream = stored(x, Lossless()), arrcomp.compress(x).to_bytes(zstd_level=3)
    assert checks.is_framed(stream)
    rewritten(z, stream)
    checks.check_same_bits(z[7], x[7])


# Many small chunks, and devices


def test_small_chunks_of_a_batch_share_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    plain = asyncio.to_thread

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    x = X[0, :64]
    with zarr.config.set({"codec_pipeline.batch_size": 64}):
        z = stored(x, Lossless(), chunks=(1, 1024))
        calls.clear()
        z[...] = x
        assert len(calls) == 1
        checks.check_same_bits(z[...], x)
        assert len(calls) == 2
        z.store._store_dict.pop("c/3/0")
        assert not z[3].any()
        checks.check_same_bits(z[4:60], x[4:60])


def spec_of(x: Array, prototype: Any) -> Any:
    """The description of a chunk like `x`, as zarr has it."""
    from zarr.core.array_spec import ArrayConfig, ArraySpec

    z = zarr.create_array(zarr.storage.MemoryStore(), shape=x.shape, dtype=x.dtype, chunks=x.shape)
    return ArraySpec(x.shape, z.metadata.data_type, 0.0, ArrayConfig("C", False), prototype)


@pytest.mark.filterwarnings("ignore:Creating a zarr.buffer.gpu")  # the double is none of CUDA's arrays
def test_zarr_s_memory_on_a_device_is_coded_there(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from zarr.buffer import gpu

    if cupy is fake_cupy:
        asarray = cupy.asarray
        shim = SimpleNamespace(
            asarray=lambda x: x if isinstance(x, cupy.ndarray) else asarray(x),
            asnumpy=cupy.asnumpy,
            empty=lambda shape, dtype, order: cupy.empty(shape, dtype),
            frombuffer=lambda data, dtype: asarray(np.frombuffer(data, dtype)),
        )
        monkeypatch.setattr("zarr.core.buffer.gpu.cp", shim)
    calls: list[str] = []

    def counted(name: str, work: Any, *arguments: Any) -> None:
        calls.append(name)
        work(*arguments)

    for name in ("cuda_encode", "cuda_decode"):
        monkeypatch.setattr(_core, name, partial(counted, name, getattr(_core, name)))
    codec, x = ArrcompCodec(BOUND), X[0]
    spec = spec_of(x, gpu.buffer_prototype)
    written = codec._encode_sync(gpu.NDBuffer(cupy.asarray(x)), spec)
    assert isinstance(written, gpu.Buffer)
    stream = arrcomp.compress(x, BOUND).to_bytes()
    assert written.to_bytes() == stream
    read = codec._decode_sync(written, spec)
    assert isinstance(read.as_ndarray_like(), cupy.ndarray)
    checks.check_same_bits(read.as_numpy_array(), arrcomp.decompress(arrcomp.from_bytes(stream)))
    assert calls == ["cuda_encode", "cuda_decode"]

    async def part_of_it() -> Any:
        store = zarr.storage.MemoryStore()
        path = zarr.storage.StorePath(store, "c")
        await path.set(zarr.buffer.cpu.Buffer.from_bytes(stream))
        return await codec._decode_partial_single(path, (slice(5, 7), slice(None)), spec)

    found = asyncio.run(part_of_it())
    assert isinstance(found.as_ndarray_like(), cupy.ndarray)
    checks.check_same_bits(found.as_numpy_array(), read.as_numpy_array()[5:7])
