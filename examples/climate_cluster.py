"""A data set larger than the memory of its workers, written to zarr by a cluster of processes, and read in parts.

dask makes each chunk when it is needed, a worker compresses it within its variable's bound, and no process ever has
more than a few. On a real cluster, replace `LocalCluster` by its scheduler's address, and the folder by a URL of
fsspec, such as "s3://bucket/weather.zarr".

    pip install ".[zarr]" xarray "dask[distributed]"
    python examples/climate_cluster.py 4           # gigabytes; 0.1 by default
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

try:
    import dask.array as da
    import xarray as xr
    from distributed import Client, LocalCluster, progress
except ImportError as error:
    sys.exit(f'climate_cluster.py needs xarray and dask ({error}): pip install ".[zarr]" xarray "dask[distributed]"')

from arrcomp import ErrorBounded
from arrcomp.stores.zarr import ArrcompCodec

CHUNK = (24, 361, 720)  # hours, latitudes and longitudes: 25 MB
AXES = ("time", "lat", "lon")
BOUND = 0.05  # kelvin


def weather(block_info: Any = None) -> Any:
    """A chunk of temperatures, missing over land."""
    (first, last), *_ = block_info[None]["array-location"]
    hour, lat, lon = np.ogrid[first:last, -90:90:361j, 0:360:720j]
    lat, lon = np.radians(lat), np.radians(lon)
    noise = np.random.default_rng(first).normal(0, 0.02, CHUNK)
    field = 275 + 25 * np.cos(lat) + 8 * np.sin(3 * lon + hour / 20) * np.cos(lat) ** 2 + noise
    return np.where(np.sin(2 * lon) * np.cos(3 * lat) > 0.4, np.nan, field).astype(np.float32)


def main(gigabytes: float) -> None:
    """Write, and read a series in time and the mean of a day."""
    days = max(2, round(gigabytes * 1e9 / (4 * np.prod(CHUNK))))
    lazy = da.map_blocks(weather, chunks=((CHUNK[0],) * days, *CHUNK[1:]), dtype=np.float32, meta=np.empty((0, 0, 0)))
    ds = xr.Dataset({"sst": (AXES, lazy)}, {"time": np.arange(lazy.shape[0]), "lat": np.linspace(-90, 90, 361)})
    codec = ArrcompCodec(ErrorBounded(abs=BOUND, predictor="auto"))
    encoding = {"sst": {"serializer": codec, "compressors": None, "chunks": CHUNK}}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        path, start = Path(folder, "weather.zarr"), time.perf_counter()
        written = client.compute(ds.to_zarr(path, encoding=encoding, consolidated=False, compute=False))
        progress(written, notebook=False)
        written.result()
        seconds, nbytes = time.perf_counter() - start, sum(file.stat().st_size for file in path.rglob("c/*/*/*"))
        print(f"\n{lazy.nbytes:,} bytes became {nbytes:,} ({lazy.nbytes / nbytes:.0f} times smaller), {seconds:.0f} s")
        back = xr.open_zarr(path, consolidated=False).sst
        series, mean = back[:, 200, 350].values, back[: CHUNK[0]].mean("time").values
        exact = weather(block_info={None: {"array-location": [(0, CHUNK[0])]}})
        print(f"series of {series.size} hours; gaps kept: {np.array_equal(np.isnan(mean), np.isnan(exact[0]))}")
        print(f"largest error {np.nanmax(np.abs(back[: CHUNK[0]].values.astype(float) - exact)):.6f} of {BOUND}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 0.1)
