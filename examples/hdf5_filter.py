"""Datasets that HDF5 itself compresses and decompresses with arrcomp: any program with the filter reads values.

CMake builds the filter (docs/use/c.md says how), and HDF5 looks for it in the folders of HDF5_PLUGIN_PATH:

    cmake -S . -B build/c -DARRCOMP_HDF5=ON && cmake --build build/c && cmake --install build/c --prefix PREFIX
    pip install . h5py
    HDF5_PLUGIN_PATH=PREFIX/lib/hdf5/plugin python examples/hdf5_filter.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import arrcomp
from arrcomp.stores.hdf5 import FILTER_ID, filter_options


def main() -> None:
    """Write a field, and read a part of it."""
    try:
        import h5py
    except ImportError as error:
        sys.exit(f"hdf5_filter.py needs h5py ({error}): pip install h5py")
    if not h5py.h5z.filter_avail(FILTER_ID):
        sys.exit("hdf5_filter.py needs the filter, which is in no folder of HDF5_PLUGIN_PATH")

    x = np.random.default_rng(0).normal(0, 1, (64, 200, 300)).cumsum(axis=2).astype(np.float32)
    codec = arrcomp.ErrorBounded(abs=1e-2, predictor="interpolation")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("field", data=x, chunks=(8, 100, 300), **filter_options(codec))
            file.create_dataset("exact", data=x[0], chunks=(100, 300), **filter_options())
        with h5py.File(path) as file:
            part = file["field"][10:12, 50:60]
            same = np.array_equal(file["exact"], x[0])
            stored = file["field"].id.get_storage_size()
        print(f"{x.nbytes:,} bytes of values in {stored:,}")
        print(f"largest error of a part: {abs(part.astype(float) - x[10:12, 50:60]).max():.5f}, allowed: {codec.abs}")
        print(f"every bit of the lossless dataset: {same}")


if __name__ == "__main__":
    main()
