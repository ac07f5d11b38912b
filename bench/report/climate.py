"""The page of bench/climate.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import conditions
from harness.tables import table

_HOW = """\
The data set is made (bench/climate_data.py): eight smooth random fields whose amplitudes fall with the wave number to
the power of -2.5, which come and go in time, around 250; noise of 0.02; and NaN over land, a third of each map. A
real data set is rougher in some places: [fields](FIELDS.md) has ratios of real ones. A chunk has 24 times of one
level, 25 MB. The cluster is dask's, of two processes with one thread and 1 GiB each; each codec has a new one.

"Write" is the time that the cluster takes to read the uncompressed store, compress each chunk, and write it to a disk
of this machine. "Means" is the time to read all of it and average 120 times each, at every point. "Series" is
the time of `z[:, level, latitude, longitude]` in one process, the least of 5. arrcomp without a predictor decodes a
block of each time for it; all others decode whole chunks. Files were in the system's memory when they were read.
"Memory" is the most resident memory of a worker in either, with Python and its packages, about 170 MB. "Largest
error" is that of all values; gaps were the same in all stores.

A number behind a name is the absolute bound; "auto" is the predictor. zfp and SZ3 take no NaN: gaps get the value
before them, and a packed mask, deflated, is kept in the chunk. zfp keeps errors far below its tolerance. SZ3 has its
default algorithm, and one thread like all others. Blosc is zarr's, at level 5.

The machine is small and shared: times vary from run to run by tens of percent. Bytes and errors do not vary."""

Found = Mapping[str, Any]


def markdown(document: Mapping[str, Any]) -> str:
    """CLIMATE.md."""
    head = "Written by `python bench/climate.py`; [climate.csv](climate.csv) has every figure, one a line."
    parts = ["# Climate data in zarr, measured", head]
    for shape, found in document["codecs"]["found"].items():
        parts += [f"## {shape.replace('x', ' x ')} float32 by two processes", _table(found)]
    said = conditions.said_of(document, {"codecs": "Codecs"})
    return "\n\n".join([*parts, f"## How it is measured\n\n{_HOW}\n\n{said}"]) + "\n"


def _table(found: Found) -> str:
    plain = next(iter(found.values()))
    rows = []
    for name, of in found.items():
        memory = max(of["write memory"], of["mean memory"])
        rows.append([
            name,
            f"{of['bytes'] / 1e6:.0f}",
            f"{plain['bytes'] / of['bytes']:.2f}",
            f"{of['error']:.4g}" if "error" in of else "",
            f"{of['write']:.1f}" if "error" in of else "",
            f"{of['mean']:.1f}",
            f"{1e3 * of['series']:.0f}",
            f"{memory / 1e6:.0f}",
        ])  # fmt: skip
    heads = [
        "<codec",
        "MB",
        "times smaller",
        "largest error",
        "write, s",
        "monthly means, s",
        "series, ms",
        "memory, MB",
    ]
    return table(heads, rows)
