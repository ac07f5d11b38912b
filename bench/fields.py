"""Compares arrcomp's predictors with SZ3, zfp, fpzip and pcodec on fields; writes fields.csv, FIELDS.md and pictures.

pip install -r bench/requirements.txt
python bench/fields.py                              the fields that this program makes
python bench/fields.py --real FOLDER --aside FOLDER also every .npy file of these folders
python bench/fields.py --redraw                     measures nothing: the page and pictures again, from fields.csv
python bench/fields.py --check                      whether the page is what fields.csv gives

fields_sources.csv names the packages that the real fields are from. Fields "aside" are shown alone: the predictors were
not tuned on them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import arrcomp
from arrcomp._cli.demo_data import FEW_STEPS, demo_arrays
from data import Setting
from harness.page import BENCH, Page, page_of_sections
from harness.section import Section
from harness.timing import least_seconds
from measure import largest_error
from peers import Array, Compressor, Kind, Payload
from peers.gaps import filled

SHARES = (1e-2, 1e-3, 1e-4)  # bounds, by the range
LOSSLESS = "lossless"
PREDICTORS = (None, "auto", "interpolation", "lorenzo")
_TIMED_NBYTES = 1 << 22  # speeds of smaller arrays mean little
_CALLS = 5
_SIDE = 128
_MOST_AXES = 4  # of the peers

Found = dict[str, Any]


# The fields


def made(quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """Names, descriptions and values of fields that nobody has to fetch."""
    side = _SIDE // 4 if quick else _SIDE
    yield "waves_noise", "12 plane waves and noise of 1e-4", _waves(side)
    yield "turbulence", "a random field whose energy spectrum falls as k^(-5/3)", _turbulence(side)
    smooth = demo_arrays(steps=FEW_STEPS)["smooth_field"]
    yield "smooth_field", "48 plane waves, the demonstration's", smooth[:side, :side, :side].copy()


def _waves(side: int) -> Array:
    rng = np.random.default_rng(3)
    axes = np.meshgrid(*[np.linspace(0, 1, side, endpoint=False)] * 3, indexing="ij")
    field = 1e-4 * rng.standard_normal((side,) * 3)
    for number in range(12):
        phase = sum(2 * np.pi * rng.uniform(-8, 8) * axis for axis in axes)
        field += rng.uniform(0.2, 1) / (1 + 0.2 * number) * np.sin(phase + rng.uniform(0, 2 * np.pi))
    return field.astype(np.float32)


def _turbulence(side: int) -> Array:
    rng = np.random.default_rng(4)
    axes = np.meshgrid(*[np.fft.fftfreq(side) * side] * 3, indexing="ij")
    wave = np.sqrt(sum(axis**2 for axis in axes))
    wave[0, 0, 0] = 1
    spectrum = np.fft.fftn(rng.standard_normal((side,) * 3)) * wave ** (-(5 / 3 + 2) / 2)
    return np.asarray(np.fft.ifftn(spectrum).real, np.float32)


def of_folder(folder: Path, quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """Every .npy file of a folder; if quick, two of them."""
    for path in sorted(folder.glob("*.npy"))[: 2 if quick else None]:
        yield path.stem, "", np.ascontiguousarray(np.load(path))


# The compressors


class Ours:
    """arrcomp with a predictor."""

    def __init__(self, kind: Kind, predictor: str | None) -> None:
        self.kind = kind
        self.name = f"arrcomp {predictor}" if predictor else "arrcomp"
        self._predictor: Any = predictor

    def supports(self, array: Array) -> bool:
        return True

    def compress(self, array: Array, bound: float) -> Payload:
        bounded = self.kind == "bounded"
        codec = arrcomp.ErrorBounded(abs=bound, predictor=self._predictor) if bounded else None
        compressed = arrcomp.compress(array, codec or arrcomp.Lossless(predictor=self._predictor), threads=1)
        return Payload(compressed, compressed.nbytes)

    def decompress(self, payload: Payload, out: Array) -> Array:
        return arrcomp.decompress(payload.data, out=out, threads=1)


class Best:
    """The one of several compressors that takes the fewest bytes, as if it was known before."""

    def __init__(self, name: str, those: list[Compressor]) -> None:
        self.name, self.kind, self._those = name, those[0].kind, those
        self._best = those[0]

    def supports(self, array: Array) -> bool:
        return all(each.supports(array) for each in self._those)

    def choose(self, array: Array, bound: float) -> None:
        """Try all of them on an array."""
        self._best = min(self._those, key=lambda each: each.compress(array, bound).nbytes)

    def compress(self, array: Array, bound: float) -> Payload:
        return self._best.compress(array, bound)

    def decompress(self, payload: Payload, out: Array) -> Array:
        return self._best.decompress(payload, out)


def compressors(kind: Kind) -> list[Compressor]:
    """All of one kind."""
    from pysz import szAlgorithm

    from peers.fpzip import Fpzip
    from peers.pco import Pcodec
    from peers.sz3 import Sz3
    from peers.zfp import Zfp

    ours: list[Compressor] = [Ours(kind, predictor) for predictor in PREDICTORS]
    if kind == "lossless":
        return [*ours, Zfp("zfp", "lossless"), Fpzip(), Pcodec()]
    algorithms = (szAlgorithm.INTERP_LORENZO, szAlgorithm.LORENZO_REG, szAlgorithm.INTERP)
    return [*ours, Best("SZ3", [Sz3("SZ3", algorithm) for algorithm in algorithms]), Zfp("zfp", "bounded")]


# What is measured


def measured(fields: Callable[[bool], Iterator[tuple[str, str, Array]]], quick: bool) -> Found:
    """By field its description, and by setting and compressor what was measured."""
    found: Found = {}
    for name, about, x in fields(quick):
        values = x[np.isfinite(x)]
        extent = float(values.max()) - float(values.min())
        settings = [*(Setting(f"{share:.0e}", share * extent) for share in SHARES), Setting(LOSSLESS)]
        found[name] = {"description": _description(about, x)}
        for setting in settings:
            kind: Kind = "lossless" if setting.bound is None else "bounded"
            results = {each.name: _measured(each, x, setting.bound) for each in compressors(kind)}
            found[name][setting.label] = {key: result for key, result in results.items() if result}
        print(name, {key: round(found[name]["1e-03"][key]["ratio"], 2) for key in found[name]["1e-03"]}, flush=True)
    return found


def _description(about: str, x: Array) -> str:
    parts = [about] * bool(about) + [f"{x.dtype}, {' x '.join(map(str, x.shape))}, {x.nbytes / 1e6:.1f} MB"]
    missing = 1 - np.isfinite(x).mean()
    return "; ".join(parts + [f"{missing:.0%} missing"] * bool(missing))


def _measured(compressor: Compressor, x: Array, bound: float | None) -> Found:
    """The ratio, and the speeds on one thread where the array is large; nothing if it does not take the array."""
    ours = isinstance(compressor, Ours)
    given, mask = (x, b"") if ours else filled(x)
    if not ours and given.ndim > _MOST_AXES:
        given = given.reshape(-1, *given.shape[1 - _MOST_AXES :])
    if not compressor.supports(given):
        return {}
    if isinstance(compressor, Best):
        compressor.choose(given, bound or 0.0)
    payload = compressor.compress(given, bound or 0.0)
    out = np.zeros(given.shape, given.dtype)
    result: Found = {"ratio": x.nbytes / (payload.nbytes + len(mask))}
    if not _error(given, compressor.decompress(payload, out), bound) <= 1:
        result["broken"] = 1
    if x.nbytes >= _TIMED_NBYTES:
        result |= speeds(compressor, given, bound or 0.0, payload, out)
    return result


def speeds(compressor: Compressor, x: Array, bound: float, payload: Payload, out: Array) -> Found:
    """Of encoding an array, and of decoding its payload into another, in GB/s."""
    calls = {
        "encode": partial(compressor.compress, x, bound),
        "decode": partial(compressor.decompress, payload, out),
    }
    return {way: x.nbytes / least_seconds(call, _CALLS) / 1e9 for way, call in calls.items()}


def _error(x: Array, restored: Array, bound: float | None) -> float:
    """As `largest_error`, of finite values; infinite if others are not what they were."""
    finite = np.isfinite(x)
    if finite.all() or bound is None:
        return largest_error(x, restored, bound)
    same = np.array_equal(x[~finite], restored[~finite], equal_nan=True)
    return largest_error(x[finite], restored[finite], bound) if same else float("inf")


# The page


def _section(title: str, fields: Callable[[bool], Iterator[tuple[str, str, Array]]]) -> Section:
    return Section(
        title,
        lambda quick: measured(fields, quick),
        lambda found: "",  # the page is written of all groups: report/fields.py
        levels=("subject", "setting", "method", "metric"),
        units={"encode": "GB/s", "decode": "GB/s"},
        versions=("arrcomp", "numpy", "pysz", "zfpy", "fpzip", "pcodec"),
    )


def page_of(real: Path | None, aside: Path | None) -> Page:
    """What is measured and written, with folders of real fields or without them."""
    from report import fields as report

    sections = {
        "made": _section("Fields that are made", made),
        "real": _section("Real fields", partial(of_folder, real or Path())),
        "aside": _section("Fields kept aside", partial(of_folder, aside or Path())),
    }
    return page_of_sections(
        "fields",
        __doc__,
        sections,
        lambda document, folder: {folder / "FIELDS.md": report.markdown(document)},
        draw=lambda document, folder, _: report.draw(document, folder),
    )


def main() -> None:
    """Parse the command line, measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="of .npy files of real fields")
    parser.add_argument("--aside", type=Path, metavar="FOLDER", help="of those kept aside")
    parser.add_argument("--only", metavar="made,real,aside", help="these groups alone (default: made, and each given)")
    parser.add_argument("--quick", action="store_true", help="a little of everything")
    parser.add_argument("--redraw", action="store_true", help="measure nothing: read fields.csv again")
    parser.add_argument("--check", action="store_true", help="compare the page with fields.csv")
    parser.add_argument("--output", type=Path, default=BENCH, metavar="FOLDER", help="for the files")
    options = parser.parse_args()
    page = page_of(options.real, options.aside)
    if options.redraw or options.check:
        page.check(options.output) if options.check else page.show(options.output, list(page.sections))
        return
    given: Mapping[str, Any] = {"made": True, "real": options.real, "aside": options.aside}
    names = options.only.split(",") if options.only else [name for name, folder in given.items() if folder]
    for name in names:
        if not given.get(name):
            parser.error(f"--only {name}: expected made, or real or aside with its folder")
    page.measure(names, quick=options.quick, folder=options.output)


if __name__ == "__main__":
    main()
