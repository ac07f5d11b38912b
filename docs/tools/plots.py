"""Draws the pictures of docs/choosing.md: bits per value against error, on the arrays of `arrcomp demo`.

Run it as `python docs/tools/plots.py`.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import arrcomp
from arrcomp._cli.demo_data import demo_arrays

PICTURES = Path(__file__).resolve().parent.parent / "pictures"
ARRAYS = ("trained_weights", "gradients", "activations", "adam_second_moment", "smooth_field")
BOUNDS = 2.0 ** np.arange(-14, 1.25, 0.5)  # times the root mean square of the values
MOST_VALUES = 1 << 21
FAMILIES: dict[str, tuple[arrcomp.Codec, ...]] = {
    "QSGD, 2 to 8 bits": tuple(arrcomp.QSGD(bits=bits) for bits in (2, 3, 4, 5, 6, 8)),
    "QSGD, entropy coded": tuple(arrcomp.QSGD(bits=bits, coding="entropy") for bits in (2, 3, 4, 5, 6, 8)),
    "MX formats": tuple(arrcomp.FloatFormat(name) for name in ("mxfp4", "mxfp6", "mxfp8", "mxint8")),
    "FP8 e4m3, a scale for each 512": (arrcomp.FloatFormat("fp8_e4m3", scaling="bucket"),),
    "NVFP4": (arrcomp.FloatFormat("nvfp4"),),
    "NF4, dynamic 8 bits": (arrcomp.Codebook.nf4(), arrcomp.Codebook.dynamic8()),
    "S2FP8": (arrcomp.S2FP8(bucket_size=512),),
    "SmaQ": (arrcomp.SmaQ(4, 6, rounding="nearest"), arrcomp.SmaQ(rounding="nearest")),
}
STYLES = ("o-", "o--", "s", "P", "D", "^-", "v", "*-")
COLOURS = ("#d1495b", "#e59aa5", "#2a9d57", "#1d6b3b", "#8c5a3c", "#7b4bb3", "#3a9fb0", "#e08e1b")

Array = np.ndarray


def point(x: Array, codec: arrcomp.Codec) -> tuple[float, float]:
    """Relative root mean square error, and bits per value of the whole stream."""
    compressed = arrcomp.compress(x, codec, seed=0)
    exact = x.astype(np.float64)
    error = np.linalg.norm(arrcomp.decompress(compressed) - exact) / np.linalg.norm(exact)
    return float(error), 8 * compressed.nbytes / x.size


def curve(x: Array, speed: str) -> list[tuple[float, float]]:
    """ErrorBounded at many bounds."""
    scale = math.sqrt(float(np.mean(np.square(x.astype(np.float64)))))
    return [point(x, arrcomp.ErrorBounded(abs=float(bound) * scale, speed=speed)) for bound in BOUNDS]  # type: ignore[arg-type]


def draw(name: str, x: Array) -> None:
    """Write the picture of an array."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    panel = figure.subplots()
    for speed, colour in (("default", "#1f5fa8"), ("fast", "#7fb2e5")):
        label = "ErrorBounded" if speed == "default" else 'ErrorBounded, speed="fast"'
        panel.plot(*zip(*curve(x, speed), strict=True), "-", color=colour, linewidth=2, label=label)
    for (label, codecs), style, colour in zip(FAMILIES.items(), STYLES, COLOURS, strict=True):
        points = sorted(point(x, codec) for codec in codecs)
        panel.plot(*zip(*points, strict=True), style, color=colour, markersize=5, linewidth=1, label=label)
    lossless = 8 * arrcomp.compress(x).nbytes / x.size
    panel.set_xscale("log")
    panel.set_xlim(3e-5, 1.5)
    panel.set_ylim(0, 16)
    panel.set_xlabel("relative error (root mean square)")
    panel.set_ylabel("bits a value")
    panel.set_title(f"{name}; losslessly {lossless:.1f} bits a value", fontsize=10)
    panel.grid(alpha=0.25)
    panel.legend(fontsize=7, frameon=False, ncols=2)
    figure.savefig(PICTURES / f"{name}.png", dpi=110)


def main() -> None:
    """Draw all."""
    PICTURES.mkdir(exist_ok=True)
    arrays = demo_arrays()
    for name in ARRAYS:
        x = arrays[name]
        draw(name, x if x.ndim > 1 else x.reshape(-1)[:MOST_VALUES])


if __name__ == "__main__":
    main()
