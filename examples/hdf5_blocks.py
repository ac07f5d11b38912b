"""Compressed arrays in an HDF5 file: a dataset with a stream for each block of rows.

Other programs see bytes here, not values. (`hdf5_filter.py` writes datasets of values, with a plug-in for HDF5.) A
stream contains the codec, dtype and shape of its block. Blocks are read one by one. (See `arrcomp.stores.zarr` for
chunks that every zarr reader decodes.)

    pip install . h5py
    python examples/hdf5_blocks.py
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp


def write(group: Any, name: str, x: NDArray[Any], codec: arrcomp.Codec, rows: int) -> None:
    """Write an array to an open file or group, in blocks of `rows` rows; a few hundred kilobytes a block are best."""
    import h5py

    blocks = max(-(-len(x) // rows), 1)  # an array without rows has one block, for its shape and dtype
    dataset = group.create_dataset(name, (blocks,), h5py.vlen_dtype(np.uint8))
    dataset.attrs["rows"] = rows
    for i in range(blocks):
        stream = arrcomp.compress(x[i * rows : (i + 1) * rows], codec).to_bytes()
        dataset[i] = np.frombuffer(stream, np.uint8)


def read(dataset: Any, start: int, stop: int) -> NDArray[Any]:
    """Rows `start` to `stop` of an array, as far as they exist; only their blocks are read."""
    rows = int(dataset.attrs["rows"])
    first = min(start // rows, len(dataset) - 1)
    last = min(max(-(-stop // rows), first + 1), len(dataset))
    blocks = [arrcomp.decompress(arrcomp.from_bytes(dataset[i])) for i in range(first, last)]
    found: NDArray[Any] = np.concatenate(blocks)[start - first * rows : max(stop - first * rows, 0)]
    return found


def main() -> None:
    """Write an array and read part of it."""
    try:
        import h5py
    except ImportError as error:
        sys.exit(f"hdf5_blocks.py needs h5py ({error}): pip install h5py")

    x = np.cumsum(np.random.default_rng(0).normal(0, 1, (4000, 512)), axis=0).astype(np.float32)
    codec = arrcomp.ErrorBounded(abs=1e-2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.h5"
        with h5py.File(path, "w") as file:
            write(file, "field", x, codec, rows=500)
        with h5py.File(path) as file:
            part = read(file["field"], 1200, 1300)
        print(f"{x.nbytes:,} bytes of values, a file of {path.stat().st_size:,}")
    print(f"largest error of rows 1200 to 1299: {abs(part - x[1200:1300]).max():.4f}, allowed: {codec.abs}")


if __name__ == "__main__":
    main()
