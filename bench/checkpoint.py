"""Compresses whole models within an absolute bound, and prints the tables that results.py puts into RESULTS.md.

    python bench/checkpoint.py                            RegNet-Y-32GF before training: three minutes, 4 GB of memory
    python bench/checkpoint.py --file model.safetensors   the float32 tensors of files as well
    python bench/checkpoint.py --only-files --file model.safetensors

Beside it stands what cuda_float_compress makes of the same values (`peers.cuda_float_compress`), and what its authors
report for it on this model after training.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import arrcomp
import regnet
from arrcomp._cli.guarantees import compare
from arrcomp._files import read_arrays
from harness.section import Found, Section
from harness.tables import table
from harness.timing import median_of
from peers import Array
from peers.cuda_float_compress import CudaFloatCompress, planes_of

Model = Mapping[str, Array]

REGNET = "RegNet-Y-32GF before training"
BOUND = 1e-4
PEER = "cuda_float_compress (seconds: Zstandard alone)"
_PASSES = 3
_REPORTED = {"ratio": 4.02, "error": 1.00017, "encode": 0.40, "decode": 0.32}

_HOW = """\
All float32 parameters are compressed with an error of at most 1e-4. arrcomp compresses tensor by tensor, each to a
complete stream, into memory that is allocated once. Seconds are those of all tensors, the median of 3 passes after a
first one. cuda_float_compress compresses all tensors as one array. It is simulated with NumPy and Zstandard, which
write what its kernels write: the ratio and the errors are those of the original. Its seconds are those of Zstandard
alone (level 1, one thread), which the original also runs on the CPU; the work on the GPU is not included. "error" is
the largest error divided by the bound, and "broken" the number of values beyond the bound, both in float64. The last
line is what its authors report for the model after training. Those values differ, so compare ratios only within the
table. The machine is small and shared: single figures vary by tens of percent, those with two threads most."""


def arrcomp_figures(model: Model, speed: str, threads: int) -> dict[str, float]:
    """arrcomp, tensor by tensor."""
    codec = arrcomp.ErrorBounded(abs=BOUND, speed=speed)
    rooms = {name: np.empty(arrcomp.max_compressed_nbytes(x), np.uint8) for name, x in model.items()}
    restored = {name: np.zeros_like(x) for name, x in model.items()}
    compressed: dict[str, arrcomp.Compressed] = {}

    def encode() -> None:
        for name, x in model.items():
            compressed[name] = arrcomp.compress(x, codec, out=rooms[name], threads=threads)

    def decode() -> None:
        for name, c in compressed.items():
            arrcomp.decompress(c, out=restored[name], threads=threads)

    seconds = median_of(encode, _PASSES), median_of(decode, _PASSES)
    size = sum(c.nbytes for c in compressed.values())
    return _figures(model, restored, size, seconds)


def peer_figures(model: Model) -> dict[str, float]:
    """cuda_float_compress, of all tensors end to end."""
    peer = CudaFloatCompress()
    flat = np.concatenate([x.reshape(-1) for x in model.values()])
    planes, restored = planes_of(flat, BOUND), np.zeros_like(flat)
    data = peer.pack(planes)
    seconds = (
        median_of(lambda: peer.pack(planes), _PASSES),
        median_of(lambda: peer.unpack(data, planes), _PASSES),
    )
    payload = peer.compress(flat, BOUND)
    peer.decompress(payload, restored)
    return _figures({"": flat}, {"": restored}, payload.nbytes, seconds)


def _figures(model: Model, restored: Model, size: int, seconds: tuple[float, float]) -> dict[str, float]:
    codec = arrcomp.ErrorBounded(abs=BOUND)
    found = [compare(x, restored[part], codec) for part, x in model.items()]
    return {
        "ratio": sum(x.nbytes for x in model.values()) / size,
        "error": max(comparison.largest_error for comparison in found) / BOUND,
        "broken": sum(comparison.violations for comparison in found),
        "encode": seconds[0],
        "decode": seconds[1],
    }


def figures_of(title: str, model: Model, console: Console) -> dict[str, dict[str, float]]:
    """What was measured of a model, by compressor."""
    found: dict[str, dict[str, float]] = {
        "model": {"values": sum(x.size for x in model.values()), "tensors": len(model)},
        "np.copyto": {"encode": _copy_seconds(model)},
    }
    for speed in ("default", "fast"):
        for threads in (1, 2):
            console.print(f"{title}: arrcomp, {speed}, {threads} threads")
            notes = [speed] * (speed != "default") + [f"{threads} threads" if threads > 1 else "1 thread"]
            found[f"arrcomp, {', '.join(notes)}"] = arrcomp_figures(model, speed, threads)
    console.print(f"{title}: cuda_float_compress in NumPy")
    found[PEER] = peer_figures(model)
    if title == REGNET:
        found["reported: RTX 4090, i9-12900K, after training"] = _REPORTED
    return found


def _copy_seconds(model: Model) -> float:
    targets = {name: np.ones_like(x) for name, x in model.items()}

    def copy() -> None:
        for name, x in model.items():
            np.copyto(targets[name], x)

    return median_of(copy, _PASSES)


def _file_model(path: Path) -> Model:
    arrays = read_arrays(path).arrays
    model = {name: np.array(arrays[name]) for name in arrays if arrays[name].dtype == np.float32}
    if not model:
        raise ValueError(f"{path} holds no float32 tensors")
    return model


def section(found: Found) -> str:
    """What was measured, as text."""
    return "\n\n".join([_HOW.rstrip(), *(_model(title, figures) for title, figures in found.items())])


def _model(title: str, found: Found) -> str:
    about, copied = found["model"], found["np.copyto"]["encode"]
    size = f"{about['values']:,} values in {about['tensors']} tensors, {4 * about['values'] / 1e6:.0f} MB"
    heads = ["<compressor", "ratio", "error", "broken", "compress, s", "decompress, s"]
    rows = [_cells(name, figures) for name, figures in found.items() if "ratio" in figures]
    return f"### {title}\n\n{size}; `np.copyto` of them takes {copied:.2f} s.\n\n{table(heads, rows)}"


def _cells(name: str, figures: Mapping[str, float]) -> list[str]:
    shown = name.replace("arrcomp", "**arrcomp**") if name.startswith("arrcomp") else name
    ratio = f"{figures['ratio']:.3f}" if "broken" in figures else f"{figures['ratio']}"
    broken = f"{figures['broken']:,}" if "broken" in figures else ""
    return [shown, ratio, f"{figures['error']:.5f}", broken, f"{figures['encode']:.2f}", f"{figures['decode']:.2f}"]


def measured(quick: bool = False, files: Sequence[Path] = ()) -> dict[str, Any]:
    """RegNet-Y-32GF before training, unless time is short, and the models of files."""
    console = Console(stderr=True)
    models = {} if quick else {REGNET: regnet.parameters()}
    models |= {path.stem: _file_model(path) for path in files}
    return {title: figures_of(title, model, console) for title, model in models.items()}


SECTION = Section(
    "Whole models",
    measured,
    section,
    levels=("subject", "method", "metric"),
    units={"encode": "s", "decode": "s"},
    versions=("arrcomp", "numpy", "zstandard"),
)


def main() -> int:
    """Parse the command line, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, action="append", default=[], metavar="F", help="a model to measure too")
    parser.add_argument("--only-files", action="store_true", help="leave RegNet-Y-32GF out")
    options = parser.parse_args()
    try:
        print(section(measured(options.only_files, options.file)))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
