"""HDF5's filter, by the libraries of h5py and of netCDF4: what comes back, what is refused, and corrupt chunks.

A process has one set of plugins, which it finds when HDF5 is first used: the tests run in processes of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import library
import pytest
from programs import run, tool

pytestmark = pytest.mark.c

PREAMBLE = """
import sys
import arrcomp, h5py, ml_dtypes, numpy as np
from arrcomp.stores.hdf5 import filter_options

def refused(make, *words):
    try:
        make()
    except (OSError, ValueError, RuntimeError) as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("expected an error, got none")

path = sys.argv[1]
rng = np.random.default_rng(3)
"""

LOSSLESS = """
types = ["bool", "f2", "f4", "f8", *(f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8))]
shapes = {(1000,): (300,), (50, 70): (50, 70), (7, 11, 13): (7, 4, 13), (3, 4, 5, 6): (2, 2, 5, 4), (9,): (4,)}
with h5py.File(path, "w") as file:
    for name in types:
        for shape, chunks in shapes.items():
            x = (rng.standard_normal(shape) * 50).astype(name)
            file.create_dataset(f"{name}{len(shape)}{shape[0]}", data=x, chunks=chunks, **filter_options())
with h5py.File(path) as file:
    rng = np.random.default_rng(3)
    for name in types:
        for shape in shapes:
            x = (rng.standard_normal(shape) * 50).astype(name)
            dataset = file[f"{name}{len(shape)}{shape[0]}"]
            assert dataset.dtype == x.dtype
            np.testing.assert_array_equal(dataset[()], x)
"""

CODECS = """
x = rng.standard_normal((90, 100)).cumsum(0).astype("f4")
x[3, 4:9] = np.nan
codecs = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]
codecs += [arrcomp.ErrorBounded(abs=1e-2, predictor="interpolation", fill_value=1e20)]
codecs += [arrcomp.QSGD(8, rounding="stochastic")]
with h5py.File(path, "w") as file:
    for number, codec in enumerate(codecs):
        options = filter_options(codec, seed=2**40 + 7)
        file.create_dataset(str(number), data=x, chunks=(45, 50), **options)
with h5py.File(path) as file:
    for number, codec in enumerate(codecs):
        dataset = file[str(number)]
        for at in ((0, 0), (45, 50)):
            rows, columns = (slice(start, start + size) for start, size in zip(at, (45, 50)))
            chunk = np.ascontiguousarray(x[rows, columns])
            _, stream = dataset.id.read_direct_chunk(at)
            compressed = arrcomp.compress(chunk, codec, seed=2**40 + 7)
            assert stream == compressed.to_bytes()
            np.testing.assert_array_equal(dataset[rows, columns], compressed.decompress())
"""

REFUSED = """
with h5py.File(path, "w") as file:
    lossy = filter_options(arrcomp.ErrorBounded(abs=1))
    def make(name, **options):
        return lambda: file.create_dataset(name, (100,), chunks=(50,), **options)
    refused(make("a", dtype="S5", **filter_options()), "dtype: expected integers, booleans or floating-point numbers")
    refused(make("b", dtype="c8", **filter_options()), "dtype: expected")
    refused(make("c", dtype=">f4", **filter_options()), "little-endian")
    refused(make("d", dtype=">i8", **filter_options()), "little-endian")
    refused(make("e", dtype="i4", **lossy), "dtype: expected one that", "takes, got int32")
    refused(make("f", dtype="f4", compression=428, compression_opts=(2, 0, 0, 0)), "cd_values[0]: expected 1, got 2")
    refused(make("g", dtype="f4", compression=428, compression_opts=(1, 0, 0, 9, 1)), "cd_values: expected")
    refused(make("h", dtype="f4", compression=428, compression_opts=(1, 0, 0, 2, 0x7d7b)), "codec: expected")
    file.create_dataset("i", data=np.arange(100), chunks=(50,), compression=428)
    assert file["i"][99] == 99
for codec, words in [(arrcomp.Lossless().with_reference(), "reference"), (arrcomp.QSGD(rounding="stochastic"), "seed"),
                     (arrcomp.Codebook(np.linspace(0, 1, 255), np.linspace(0, 1, 256)), "at most")]:
    try:
        filter_options(codec)
    except (TypeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(codec)
"""

CORRUPT = """
with h5py.File(path, "w") as file:
    dataset = file.create_dataset("x", data=np.arange(4000.0), chunks=(2000,), **filter_options())
    mask, stream = dataset.id.read_direct_chunk((0,))
    small = arrcomp.compress(np.arange(7)).to_bytes()
    flipped = [stream[:at] + bytes([stream[at] ^ 1]) + stream[at + 1 :] for at in range(0, len(stream), 97)]
    for broken in (stream[:-1], stream[:40], stream[:1], small, bytes(100), *flipped):
        dataset.id.write_direct_chunk((0,), broken, mask)
        refused(lambda: dataset[0], "filter returned failure")  # all that HDF5 2.0 tells of a filter's error
    dataset.id.write_direct_chunk((0,), stream, mask)
    assert dataset[1999] == 1999
"""

NETCDF = """
import netCDF4
x = rng.standard_normal((40, 30)).cumsum(0).astype("f4")
with h5py.File(path, "w", track_order=True) as file:
    for axis, size in zip("yx", x.shape):
        file.create_dataset(axis, data=np.arange(size, dtype="f4")).make_scale(axis)
    dataset = file.create_dataset("t", data=x, chunks=(20, 30), **filter_options(arrcomp.ErrorBounded(abs=1e-2)))
    for number, axis in enumerate("yx"):
        dataset.dims[number].attach_scale(file[axis])
with h5py.File(path) as file:
    expected = file["t"][()]
assert 0 < abs(expected.astype("f8") - x).max() <= 1e-2
with netCDF4.Dataset(path) as file:
    np.testing.assert_array_equal(file["t"][:].filled(), expected)
with netCDF4.Dataset(path, "r+") as file:  # netCDF4's own HDF5 compresses too
    file["t"][:] = 2 * x
with h5py.File(path) as file:
    assert 0 < abs(file["t"][()].astype("f8") - 2 * x).max() <= 1e-2
    mask, stream = file["t"].id.read_direct_chunk((0, 0))
    assert arrcomp.from_bytes(stream).codec == arrcomp.ErrorBounded(abs=1e-2)
"""


# A dataset in chunks, and one without; what `h5repack` made of them, with and without the filter.
REPACKED = {
    "made": """
with h5py.File(path, "w") as file:
    file["x"] = rng.standard_normal((90, 100)).cumsum(0).astype("f4")
    file.create_dataset("y", data=rng.integers(0, 9, 1000), chunks=(300,))
print(",".join(map(str, filter_options(arrcomp.ErrorBounded(abs=1e-2))["compression_opts"])))
print(",".join(map(str, filter_options()["compression_opts"])))
""",
    "filtered": """
x, y = rng.standard_normal((90, 100)).cumsum(0).astype("f4"), rng.integers(0, 9, 1000)
with h5py.File(path) as file:
    assert file["x"].chunks == (30, 50)
    chunk = arrcomp.from_bytes(file["x"].id.read_direct_chunk((30, 50))[1])
    assert chunk.codec == arrcomp.ErrorBounded(abs=1e-2)
    np.testing.assert_array_equal(file["x"][30:60, 50:], chunk.decompress())
    assert 0 < abs(file["x"][()].astype("f8") - x).max() <= 1e-2
    assert arrcomp.from_bytes(file["y"].id.read_direct_chunk((300,))[1]).codec == arrcomp.Lossless()
    np.testing.assert_array_equal(file["y"][()], y)
""",
    "plain": """
with h5py.File(path) as file, h5py.File(sys.argv[2]) as filtered:
    for name in "xy":
        assert file[name].id.get_create_plist().get_nfilters() == 0
        np.testing.assert_array_equal(file[name][()], filtered[name][()])
""",
}


@pytest.mark.parametrize(
    "program", [LOSSLESS, CODECS, REFUSED, CORRUPT, NETCDF], ids=["lossless", "codecs", "refused", "corrupt", "netcdf"]
)
def test_hdf5_files(program: str, tmp_path: Path, lib: library.Library) -> None:
    run_program(program, tmp_path / "file.h5")


def test_h5repack_applies_the_filter_and_takes_it_away(tmp_path: Path, lib: library.Library) -> None:
    made, filtered, plain = (tmp_path / f"{name}.h5" for name in REPACKED)
    numbers = run_program(REPACKED["made"], made).split()
    filters = [f"{name}:UD=428,0,{len(of.split(','))},{of}" for name, of in zip("xy", numbers, strict=True)]
    repack, environment = tool("h5repack"), library.environment()
    run(repack, "-l", "x:CHUNK=30x50", "-f", filters[0], "-f", filters[1], made, filtered, environment=environment)
    run_program(REPACKED["filtered"], filtered)
    run(repack, "-f", "x:NONE", "-f", "y:NONE", filtered, plain, environment=environment)
    run_program(REPACKED["plain"], plain, filtered)


def run_program(program: str, *paths: Path) -> str:
    """What a program prints, whose HDF5 finds the filter."""
    command = (sys.executable, "-P", "-W", "error", "-c", PREAMBLE + program)
    return run(*command, *paths, environment=library.environment())
