"""Writes a made climate data set to zarr by a cluster of processes, with several codecs, and reads it back in two ways.

pip install -r bench/requirements.txt
python bench/climate.py                              4 GB of float32; --gb N for another size
python bench/climate.py --folder FOLDER              for the stores, of which one is there at a time, beside the source
python bench/climate.py --redraw                     measures nothing: the page again, from climate.csv
python bench/climate.py --check                      whether the page is what climate.csv gives
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from distributed import Client, LocalCluster, progress

import arrcomp
from arrcomp.stores.zarr import ArrcompCodec
from climate_data import Shape, lazy
from harness.page import BENCH, Page, page_of_sections
from harness.section import Section
from harness.timing import least_seconds

WORKERS, MEMORY = 2, 1 << 30  # processes of one thread each, and bytes of each
SOURCE = "no compression"
BOUNDS = (0.1, 0.01)
MONTH = 120  # times, of 6 hours
QUICK = {"latitudes": 90, "longitudes": 180}
_GB, _QUICK_GB = 4.0, 0.01
_ROUNDS = 5  # of what takes milliseconds
_ROOM = 2.2  # bytes on the disk for each of the source

Found = dict[str, Any]


def ways() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of codecs, and how zarr is told to use each of them."""
    from peers.zarr_codec import PeerCodec

    for predictor in (None, "auto"):
        name = f"arrcomp, {predictor}" if predictor else "arrcomp"
        bounded = {f"{name}, {bound}": arrcomp.ErrorBounded(abs=bound, predictor=predictor) for bound in BOUNDS}
        for title, codec in (bounded | {f"{name}, lossless": arrcomp.Lossless(predictor=predictor)}).items():
            yield title, {"serializer": ArrcompCodec(codec), "compressors": None}
    blosc = zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="shuffle")
    yield "Blosc: shuffle, Zstandard", {"compressors": [blosc]}
    for peer in ("zfp", "SZ3"):
        for bound in BOUNDS:
            yield f"{peer}, {bound}", {"serializer": PeerCodec(peer, bound), "compressors": None}


def measured(gb: float, folder: Path | None, named: Iterable[tuple[str, Mapping[str, Any]]], **sizes: int) -> Found:
    """By codec: bytes, seconds of writing and of both uses, the most memory of a worker, and the largest error."""
    shape = Shape.of(1e9 * gb, **sizes)
    nbytes = 4 * int(np.prod(shape.axes))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        if shutil.disk_usage(place).free < _ROOM * nbytes:
            raise SystemExit(f"{place}: expected {_ROOM * nbytes / 1e9:.1f} GB that are free")
        with _client() as client:
            source = _created(Path(place, "source.zarr"), shape, {"compressors": None})
            found = {SOURCE: _written(client, lazy(shape), source) | _read(client, source)}
        for name, options in named:
            with _client() as client:
                z = _created(Path(place, "coded.zarr"), shape, options)
                found[name] = _written(client, da.from_zarr(source), z) | _read(client, z)
                found[name]["error"] = _error(client, source, z)
            print(name, {key: float(f"{value:.4g}") for key, value in found[name].items()}, flush=True)
            shutil.rmtree(Path(place, "coded.zarr"))
    return {"x".join(map(str, shape.axes)): found}


@contextmanager
def _client() -> Iterator[Client]:
    """A cluster of its own, so that memory that one codec leaves is not another's."""
    options: dict[str, Any] = {"n_workers": WORKERS, "threads_per_worker": 1, "memory_limit": MEMORY}
    with LocalCluster(processes=True, dashboard_address=None, **options) as cluster, Client(cluster) as client:
        yield client


def _created(path: Path, shape: Shape, options: Mapping[str, Any]) -> Any:
    return zarr.create_array(path, shape=shape.axes, chunks=shape.chunks, dtype="f4", fill_value=np.nan, **options)


def _written(client: Client, x: da.Array, z: Any) -> Found:
    client.run(_forget_peak)
    start = time.perf_counter()
    _awaited(client, x.store(z, lock=False, compute=False))
    seconds = time.perf_counter() - start
    nbytes = sum(file.stat().st_size for file in Path(z.store.root).rglob("*") if file.is_file())
    return {"bytes": nbytes, "write": seconds, "write memory": _peak(client)}


def _read(client: Client, z: Any) -> Found:
    """Seconds of a series in time at a point, by this process alone, and of the means of all months, by the cluster."""
    times, level, latitude, longitude = z.shape
    series = least_seconds(lambda: z[:, level // 2, latitude // 2, longitude // 2], _ROUNDS)
    client.run(_forget_peak)
    start = time.perf_counter()
    means = da.coarsen(np.mean, da.from_zarr(z), {0: min(MONTH, times)}, trim_excess=True)
    _awaited(client, means)
    return {"series": series, "mean": time.perf_counter() - start, "mean memory": _peak(client)}


def _error(client: Client, source: Any, z: Any) -> float:
    """The largest error of a value; infinite if a gap is none any more, or the other way round."""
    x, y = (da.from_zarr(one).astype(np.float64) for one in (source, z))
    moved = (da.isnan(x) != da.isnan(y)).any()
    largest, is_moved = client.gather(client.compute([da.nanmax(abs(x - y)), moved]))
    return float("inf") if is_moved else float(largest)


def _awaited(client: Client, work: Any) -> None:
    """Compute on the cluster, with a bar where somebody watches."""
    future = client.compute(work)
    if sys.stdout.isatty():
        progress(future, notebook=False)
    future.result()


def _forget_peak() -> None:
    """Let the system count a process' largest memory anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def _own_peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def _peak(client: Client) -> int:
    """The most memory that a worker had since `_forget_peak`."""
    return max(client.run(_own_peak).values())


# The page


def page_of(gb: float = _GB, folder: Path | None = None) -> Page:
    """What is measured and written."""
    from report import climate as report

    section = Section(
        "Codecs",
        lambda quick: measured(_QUICK_GB, folder, ways(), **QUICK) if quick else measured(gb, folder, ways()),
        lambda found: "",  # the page is written by report/climate.py
        levels=("subject", "method", "metric"),
        units={"bytes": "B", "write": "s", "series": "s", "mean": "s", "write memory": "B", "mean memory": "B"},
        versions=("arrcomp", "numpy", "zarr", "numcodecs", "dask", "distributed", "zfpy", "pysz"),
    )
    return page_of_sections(
        "climate", __doc__, {"codecs": section}, lambda document, to: {to / "CLIMATE.md": report.markdown(document)}
    )


def main() -> None:
    """Parse the command line, measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=_GB, metavar="N", help="size of the data set, in 10^9 bytes")
    parser.add_argument("--folder", type=Path, help="for the stores (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="a little of everything: figures mean little")
    parser.add_argument("--redraw", action="store_true", help="measure nothing: read climate.csv again")
    parser.add_argument("--check", action="store_true", help="compare the page with climate.csv")
    parser.add_argument("--output", type=Path, default=BENCH, metavar="FOLDER", help="for the files")
    options = parser.parse_args()
    page = page_of(options.gb, options.folder)
    if options.redraw or options.check:
        page.check(options.output) if options.check else page.show(options.output, ["codecs"])
        return
    page.measure(["codecs"], quick=options.quick, folder=options.output)


if __name__ == "__main__":
    main()
