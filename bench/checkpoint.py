"""Compresses whole models within an absolute bound, and writes CHECKPOINT.md beside this file.

    python bench/checkpoint.py                            RegNet-Y-32GF before training: three minutes, 4 GB of memory
    python bench/checkpoint.py --file model.safetensors   the float32 tensors of files as well
    python bench/checkpoint.py --only-files --file model.safetensors --output /tmp

Beside it stands what cuda_float_compress makes of the same values (`peers.cuda_float_compress`), and what its authors
report for it on this model after training.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console

import arrcomp
import regnet
from arrcomp._cli.guarantees import compare
from arrcomp._files import read_arrays
from conditions import machine_found, version
from peers import Array
from peers.cuda_float_compress import CudaFloatCompress, planes_of
from text_table import table

Model = Mapping[str, Array]

REGNET = "RegNet-Y-32GF before training"
BOUND = 1e-4
_PASSES = 3
_VERSIONS = ("arrcomp", "numpy", "zstandard")
_REPORTED = ["reported: RTX 4090, i9-12900K, after training", "4.02", "1.00017", "", "0.40", "0.32"]

_HOW = """\
All float32 parameters, within 1e-4 of their values. arrcomp compresses tensor by tensor, each to a complete stream,
into memory that is allocated once; seconds are those of all tensors, the median of 3 passes after a first one.
cuda_float_compress takes them end to end as one array. It is here as NumPy and Zstandard that write what its kernels
write, so that its ratio and errors are the original's; its seconds are those of Zstandard alone, which the original
spends on the CPU too (level 1, one thread), without the work on the GPU. "error" is the largest error by the bound, and
"broken" the number of values beyond it, both in float64. The last line is what its authors report, of the model after
training, whose values are not those here: compare ratios within the table. The machine is small and shared: single
figures vary by tens of percent, those of two threads most.
"""


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: of the compressor.
        ratio: bytes before by bytes after.
        error: the largest error by the bound.
        broken: values beyond the bound.
        encode: seconds.
        decode: seconds.
    """

    name: str
    ratio: float
    error: float
    broken: int
    encode: float
    decode: float

    def cells(self) -> list[str]:
        """As text, column by column."""
        error = f"{self.error:.5f}"
        return [self.name, f"{self.ratio:.3f}", error, f"{self.broken:,}", f"{self.encode:.2f}", f"{self.decode:.2f}"]


def arrcomp_row(model: Model, speed: str, threads: int) -> Row:
    """arrcomp, tensor by tensor."""
    codec = arrcomp.ErrorBounded(abs=BOUND, speed=speed)
    rooms = {name: np.empty(arrcomp.max_compressed_size(x), np.uint8) for name, x in model.items()}
    restored = {name: np.zeros_like(x) for name, x in model.items()}
    compressed: dict[str, arrcomp.Compressed] = {}

    def encode() -> None:
        for name, x in model.items():
            compressed[name] = arrcomp.compress(x, codec, out=rooms[name], threads=threads)

    def decode() -> None:
        for name, c in compressed.items():
            arrcomp.decompress(c, out=restored[name], threads=threads)

    seconds = median_seconds(encode), median_seconds(decode)
    size = sum(c.nbytes for c in compressed.values())
    notes = [speed] * (speed != "default") + [f"{threads} threads" if threads > 1 else "1 thread"]
    return _row(f"**arrcomp**, {', '.join(notes)}", model, restored, size, seconds)


def peer_row(model: Model) -> Row:
    """cuda_float_compress, of all tensors end to end."""
    peer = CudaFloatCompress()
    flat = np.concatenate([x.reshape(-1) for x in model.values()])
    planes, restored = planes_of(flat, BOUND), np.zeros_like(flat)
    data = peer.pack(planes)
    seconds = median_seconds(lambda: peer.pack(planes)), median_seconds(lambda: peer.unpack(data, planes))
    payload = peer.compress(flat, BOUND)
    peer.decompress(payload, restored)
    return _row("cuda_float_compress (seconds: Zstandard alone)", {"": flat}, {"": restored}, payload.nbytes, seconds)


def median_seconds(call: Callable[[], object]) -> float:
    """Median of a few calls after one that does not count."""
    samples = []
    for _ in range(1 + _PASSES):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return sorted(samples[1:])[_PASSES // 2]


def _row(name: str, model: Model, restored: Model, size: int, seconds: tuple[float, float]) -> Row:
    codec = arrcomp.ErrorBounded(abs=BOUND)
    found = [compare(x, restored[part], codec) for part, x in model.items()]
    error = max(comparison.largest_error for comparison in found) / BOUND
    broken = sum(comparison.violations for comparison in found)
    return Row(name, sum(x.nbytes for x in model.values()) / size, error, broken, *seconds)


def section(title: str, model: Model, console: Console) -> str:
    """What was measured of a model, as Markdown."""
    rows = []
    for speed in ("default", "fast"):
        for threads in (1, 2):
            console.print(f"{title}: arrcomp, {speed}, {threads} threads")
            rows.append(arrcomp_row(model, speed, threads).cells())
    console.print(f"{title}: cuda_float_compress in NumPy")
    rows.append(peer_row(model).cells())
    values, tensors = sum(x.size for x in model.values()), len(model)
    copied = _copy_seconds(model)
    heads = ["<compressor", "ratio", "error", "broken", "compress, s", "decompress, s"]
    about = (
        f"{values:,} values in {tensors} tensors, {4 * values / 1e6:.0f} MB; `np.copyto` takes {copied:.2f} s for them."
    )
    return f"## {title}\n\n{about}\n\n{table(heads, [*rows, *([_REPORTED] if title == REGNET else [])])}"


def _copy_seconds(model: Model) -> float:
    targets = {name: np.ones_like(x) for name, x in model.items()}

    def copy() -> None:
        for name, x in model.items():
            np.copyto(targets[name], x)

    return median_seconds(copy)


def _file_model(path: Path) -> Model:
    arrays = read_arrays(path).arrays
    model = {name: np.array(arrays[name]) for name in arrays if arrays[name].dtype == np.float32}
    if not model:
        raise ValueError(f"{path} holds no float32 tensors")
    return model


def markdown(sections: list[str]) -> str:
    """The page."""
    versions = ", ".join(f"{name} {version(name)}" for name in _VERSIONS)
    lines = [f"- {name}: {value}" for name, value in machine_found().items()]
    lines += [f"- versions: {versions}", f"- date: {datetime.now(UTC).date().isoformat()}"]
    lines += [f"- load average over a minute, of which this run makes 1 to 2: {os.getloadavg()[0]:.1f}"]
    head = "# Whole models\n\nWritten by `python bench/checkpoint.py`."
    return "\n\n".join([head, "\n".join(lines), _HOW.rstrip(), *sections]) + "\n"


def main() -> int:
    """Parse the command line, measure, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, action="append", default=[], metavar="F", help="a model to measure too")
    parser.add_argument("--only-files", action="store_true", help="leave RegNet-Y-32GF out")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the page")
    options = parser.parse_args()
    console = Console(stderr=True)
    sections = [] if options.only_files else [section(REGNET, regnet.parameters(), console)]
    try:
        sections += [section(path.stem, _file_model(path), console) for path in options.file]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    (options.output / "CHECKPOINT.md").write_text(markdown(sections))
    return 0


if __name__ == "__main__":
    sys.exit(main())
