"""A netCDF variable that netCDF's own library compresses and decompresses with arrcomp.

netCDF4's `createVariable` takes the filters alone that it knows. The C library under it takes every filter: this calls
it before values are written. CMake builds the filter (docs/use/c.md says how):

    cmake -S . -B build/c -DARRCOMP_HDF5=ON && cmake --build build/c && cmake --install build/c --prefix PREFIX
    pip install . netCDF4
    HDF5_PLUGIN_PATH=PREFIX/lib/hdf5/plugin python examples/netcdf_filter.py
"""

import ctypes
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import arrcomp
from arrcomp.stores.hdf5 import filter_options


def compress_variable(variable: Any, codec: arrcomp.Codec) -> None:
    """Let netCDF compress a variable, which is new and in chunks."""
    import netCDF4

    netcdf = ctypes.CDLL(netCDF4._netCDF4.__file__)  # its functions, and those of the libraries that it is linked to
    netcdf.nc_strerror.restype = ctypes.c_char_p
    options = filter_options(codec)
    numbers = (ctypes.c_uint * len(options["compression_opts"]))(*options["compression_opts"])
    status = netcdf.nc_def_var_filter(
        variable._grpid, variable._varid, options["compression"], ctypes.c_size_t(len(numbers)), numbers
    )
    if status != 0:
        raise OSError(f"{variable.name}: nc_def_var_filter: {netcdf.nc_strerror(status).decode()}")


def main() -> None:
    """Write a field, and read it."""
    try:
        import netCDF4
    except ImportError as error:
        sys.exit(f"netcdf_filter.py needs netCDF4 ({error}): pip install netCDF4")

    x = np.random.default_rng(0).normal(0, 1, (64, 200, 300)).cumsum(axis=2).astype(np.float32)
    codec = arrcomp.ErrorBounded(abs=1e-2, predictor="interpolation")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.nc"
        with netCDF4.Dataset(path, "w") as file:
            for name, size in zip("zyx", x.shape, strict=True):
                file.createDimension(name, size)
            variable = file.createVariable("field", x.dtype, ("z", "y", "x"), chunksizes=(8, 100, 300))
            compress_variable(variable, codec)
            variable[:] = x
        stored = path.stat().st_size
        with netCDF4.Dataset(path) as file:
            error = abs(file["field"][:].filled().astype(float) - x).max()
    print(f"{x.nbytes:,} bytes of values in a file of {stored:,}")
    print(f"largest error: {error:.5f}, allowed: {codec.abs}")


if __name__ == "__main__":
    main()
