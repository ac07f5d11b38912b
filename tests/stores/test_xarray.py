"""Data sets of xarray in zarr: each variable by its own codec, in chunks and shards, from dask, and to URLs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import ErrorBounded, Lossless

pytestmark = pytest.mark.full

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr", "3.1")
pytest.importorskip("dask")

import dask.array as da

from arrcomp.stores.zarr import ArrcompCodec, ArrcompCompressor

RNG = np.random.default_rng(0)
AXES = ("time", "lat", "lon")
AIR = np.cumsum(RNG.normal(0, 0.1, (8, 16, 24)), axis=2).astype(np.float32)
SEA = np.where(RNG.random((16, 24)) < 0.3, np.nan, AIR).astype(np.float32)
COUNTS = RNG.integers(0, 9, AIR.shape).astype(np.int16)
CODECS: dict[str, arrcomp.Codec] = {
    "air": ErrorBounded(abs=0.01, predictor="auto"),
    "sea": ErrorBounded(abs=0.1),
    "counts": Lossless(),
}


def dataset(chunks: Any = None) -> Any:
    """Three variables; with chunks, arrays of dask."""
    values = {"air": AIR, "sea": SEA, "counts": COUNTS}
    arrays = {name: da.from_array(x, chunks=chunks) if chunks else x for name, x in values.items()}
    times = np.datetime64("2000-01-01", "ns") + np.arange(8) * np.timedelta64(6, "h")
    return xr.Dataset({name: (AXES, x) for name, x in arrays.items()}, {"time": times}, {"title": "made"})


def encoding(**options: Any) -> dict[str, dict[str, Any]]:
    """How each variable is stored."""
    return {name: {"serializer": ArrcompCodec(codec), "compressors": None} | options for name, codec in CODECS.items()}


def check_back(store: Any, **options: Any) -> None:
    """Every variable is within its bound, with its gaps, and stored by its codec alone."""
    with xr.open_zarr(store, consolidated=False, **options) as back:
        for name, x in (("air", AIR), ("sea", SEA)):
            codec = CODECS[name]
            assert isinstance(codec, ErrorBounded)
            checks.check_bound(x, back[name].values, codec)
        np.testing.assert_array_equal(back.counts.values, COUNTS)
        assert (back.time.values == dataset().time.values).all()
        assert back.attrs == {"title": "made"}
        part = back.air.isel(time=3, lon=slice(2, 20, 3))
        np.testing.assert_array_equal(part.values, back.air.values[3, :, 2:20:3])
    group = zarr.open_group(store, mode="r", storage_options=options.get("storage_options"))
    for name, codec in CODECS.items():
        array: Any = group[name]
        assert array.serializer == ArrcompCodec(codec)
        assert array.compressors == ()


@pytest.mark.parametrize("dask", [False, True], ids=["numpy", "dask"])
@pytest.mark.parametrize("shards", [None, (8, 16, 24)], ids=["chunks", "shards"])
def test_a_data_set_comes_back(tmp_path: Path, shards: Any, dask: bool) -> None:
    options = {"chunks": (4, 8, 12)} | ({"shards": shards} if shards else {})
    ds = dataset(shards or (4, 8, 12)) if dask else dataset()
    ds.to_zarr(tmp_path / "x.zarr", encoding=encoding(**options), consolidated=False)
    check_back(tmp_path / "x.zarr")
    check_back(tmp_path / "x.zarr", chunks=None)


def test_a_data_set_in_memory_of_fsspec() -> None:
    url = "memory://test-xarray/x.zarr"
    dataset((4, 8, 12)).to_zarr(url, encoding=encoding(chunks=(4, 8, 12)), consolidated=False)
    check_back(url)
    check_back(url, chunks=None)


def test_times_are_appended(tmp_path: Path) -> None:
    ds, path = dataset(), tmp_path / "x.zarr"
    ds.isel(time=slice(0, 4)).to_zarr(path, encoding=encoding(chunks=(4, 8, 12)), consolidated=False)
    ds.isel(time=slice(4, 8)).to_zarr(path, append_dim="time", consolidated=False)
    check_back(path)


def test_gaps_of_a_fill_value_that_the_codec_has_come_back(tmp_path: Path) -> None:
    codec = ArrcompCodec(ErrorBounded(abs=0.1, fill_value=-9999))
    named = {"sea": {"serializer": codec, "compressors": None, "_FillValue": -9999.0}}
    dataset()[["sea"]].to_zarr(tmp_path / "x.zarr", encoding=named, consolidated=False)
    with xr.open_zarr(tmp_path / "x.zarr", consolidated=False) as back:
        np.testing.assert_array_equal(np.isnan(back.sea.values), np.isnan(SEA))


def test_rounded_integers_are_refused_by_a_bound(tmp_path: Path) -> None:
    rounded = {"sea": encoding()["sea"] | {"dtype": "int16", "scale_factor": 0.1, "_FillValue": -1}}
    with pytest.raises(TypeError, match=r"dtype: expected float16, .* got int16"):
        dataset()[["sea"]].to_zarr(tmp_path / "x.zarr", encoding=rounded, consolidated=False)


def test_a_compressor_stores_a_variable(tmp_path: Path) -> None:
    compressor = {"air": {"compressors": [ArrcompCompressor(CODECS["air"])]}}
    dataset()[["air"]].to_zarr(tmp_path / "x.zarr", encoding=compressor, consolidated=False)
    with xr.open_zarr(tmp_path / "x.zarr", consolidated=False) as back:
        assert np.abs(back.air.values.astype(float) - AIR).max() <= 0.01
