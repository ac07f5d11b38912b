"""A climate dataset in xarray: written to zarr with arrcomp, each variable within its own bound, and read again.

The dataset has the names, dimensions and attributes of a netCDF file. The sea's temperature is missing over land (NaN).
xarray and zarr find the codec by its name in the store: arrcomp must be installed, but the reader does not import it.

    pip install ".[zarr]" xarray
    python examples/xarray_dataset.py
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

try:
    import xarray as xr
except ImportError as error:
    sys.exit(f'xarray_dataset.py needs xarray ({error}): pip install ".[zarr]" xarray')

from arrcomp import Codec, ErrorBounded
from arrcomp.stores.zarr import ArrcompCodec

DAYS, LATITUDES, LONGITUDES = 20, 180, 360
CODECS: dict[str, Codec] = {
    "t2m": ErrorBounded(abs=0.01, predictor="auto"),  # degrees
    "sst": ErrorBounded(abs=0.01, predictor="auto"),
    "tp": ErrorBounded(pointwise=0.01),  # a hundredth of each value, as rain spans magnitudes
}


def dataset() -> xr.Dataset:
    """Temperatures of the air and the sea, and rain: smooth in time and space, with noise."""
    rng = np.random.default_rng(0)
    day, latitude, longitude = np.meshgrid(
        np.arange(DAYS), np.linspace(90, -90, LATITUDES), np.arange(LONGITUDES), indexing="ij", sparse=True
    )
    waves = sum(
        np.sin(np.radians(k * (longitude + 5 * day) + rng.uniform(0, 360))) * np.cos(np.radians(latitude)) ** k / k
        for k in range(1, 9)
    )
    air = 40 * np.cos(np.radians(latitude)) - 15 + 8 * waves + rng.normal(0, 0.02, waves.shape)
    land = np.broadcast_to(waves[0] + np.sin(np.radians(3 * latitude[0])) > 0.7, air.shape)
    rain = np.exp(3 * waves - 9 + rng.normal(0, 0.1, waves.shape))
    fields = {"t2m": (air, "degC"), "sst": (np.where(land, np.nan, 0.7 * air + 5), "degC"), "tp": (rain, "m")}
    dimensions = ("time", "latitude", "longitude")
    variables = {name: (dimensions, x.astype(np.float32), {"units": unit}) for name, (x, unit) in fields.items()}
    coordinates = {"time": np.arange(DAYS), "latitude": latitude.ravel(), "longitude": longitude.ravel()}
    return xr.Dataset(variables, coordinates, {"title": "an example"})


def stored_nbytes(path: Path) -> int:
    """Bytes of a variable in the store."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def main() -> None:
    """Write the dataset, read it, and compare."""
    ds = dataset()
    arrcomp: dict[str, Any] = {
        name: {"serializer": ArrcompCodec(codec), "compressors": None} for name, codec in CODECS.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        plain, small = Path(folder, "plain.zarr"), Path(folder, "small.zarr")
        ds.to_zarr(plain, consolidated=False)  # Zstandard
        ds.to_zarr(small, encoding=arrcomp, consolidated=False)
        with xr.open_zarr(small, consolidated=False) as back:
            for name, codec in CODECS.items():
                x, y = (one[name].values.astype(np.float64) for one in (ds, back))
                error = np.nanmax(np.abs(y - x) / (x if name == "tp" else 1))
                assert (np.isnan(x) == np.isnan(y)).all()
                sizes = [stored_nbytes(path / name) for path in (plain, small)]
                print(f"{name}: {sizes[0]:,} bytes by Zstandard, {sizes[1]:,} by {codec}, largest error {error:.6f}")
        print(f"The store is {stored_nbytes(plain) / stored_nbytes(small):.1f} times smaller than with Zstandard.")


if __name__ == "__main__":
    main()
