"""A field in a zarr store whose chunks arrcomp compresses: bytes on disk, and the largest error.

zarr finds the codec by its name, through arrcomp's entry point. arrcomp must be installed, but neither the writer nor
the reader imports it. Parts of the array are read from their own chunks, as with any zarr codec.

    pip install ".[zarr]"
    python examples/zarr_store.py
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import zarr
except ImportError as error:
    sys.exit(f'zarr_store.py needs zarr 3.1 or newer ({error}): pip install ".[zarr]"')

SHAPE, CHUNKS = (32, 256, 256), (8, 128, 128)  # levels, latitudes, longitudes


def temperatures() -> NDArray[np.float32]:
    """Degrees Celsius, colder with height and towards the poles, with weather and a sensor's noise of 0.01 degrees."""
    rng = np.random.default_rng(0)
    level, latitude, longitude = np.meshgrid(*(np.linspace(0, 1, n) for n in SHAPE), indexing="ij")
    field = 30 * np.sin(np.pi * latitude) - 70 * level
    for number in range(1, 13):
        waves = number * (2 * latitude + longitude) + level + rng.uniform()
        field += 6 / number * np.sin(2 * np.pi * waves + rng.normal() * np.cos(np.pi * longitude))
    return (field + rng.normal(0, 0.01, SHAPE)).astype(np.float32)


def arrcomp_codec(name: str, **parameters: Any) -> dict[str, Any]:
    """The options that make zarr use only this codec of arrcomp's (the command `arrcomp codecs` lists them)."""
    return {"serializer": {"name": "arrcomp", "configuration": {"codec": name, **parameters}}, "compressors": None}


def main() -> None:
    """Write the field with several codecs, read it and compare."""
    x = temperatures()
    ways: dict[str, dict[str, Any]] = {
        "zarr's default (Zstandard)": {},
        "lossless": arrcomp_codec("lossless"),
        "within 0.001 degrees": arrcomp_codec("error-bounded", abs=1e-3),
        "within 0.01 degrees": arrcomp_codec("error-bounded", abs=1e-2),
        "within 0.1 degrees": arrcomp_codec("error-bounded", abs=1e-1),
    }
    print(f"{x.nbytes:,} bytes of float32, {'x'.join(map(str, SHAPE))} in chunks of {'x'.join(map(str, CHUNKS))}")
    print(f"{'':<27} {'bytes':>9}  smaller  files  largest error, degrees")
    with tempfile.TemporaryDirectory() as folder:
        for title, options in ways.items():
            path = Path(folder, title)
            zarr.create_array(path, data=x, chunks=CHUNKS, **options)
            stored = zarr.open_array(path, mode="r")
            sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
            error = np.abs(stored[:].astype(np.float64) - x).max()
            print(f"{title:<27} {sum(sizes):9,}  {x.nbytes / sum(sizes):6.2f}x  {len(sizes):5}  {error:.6f}")


if __name__ == "__main__":
    main()
