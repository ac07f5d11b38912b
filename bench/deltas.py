"""Compares ways to send weights to who has earlier ones; writes deltas.csv and DELTAS.md.

pip install -r bench/requirements.txt                what is missing is left out
python bench/deltas.py                               trains a small transformer first: minutes
python bench/deltas.py --steps FOLDER                its weights are read: bench/trained_steps.py keeps them there
python bench/deltas.py --redraw                      measures nothing: the page again, from deltas.csv
python bench/deltas.py --check                       whether the page is what deltas.csv gives
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from harness.page import BENCH, Page, page_of_sections
from harness.section import Section
from harness.timing import by_turns
from measure import largest_error
from peers import Array, Payload, as_unsigned
from peers.deltas import Delta, ways

SHARES = (0.005, 0.009, 0.025, 0.062, 0.15, 0.34, 0.7, 0.95)  # of the bfloat16 values that change
BOUNDS = (1e-4, 1e-5, 1e-6)
ENTROPY, CHANGED = "order-0 entropy", "changed"
_SIZE, _QUICK_SIZE = 1 << 23, 1 << 14
_ROUNDS = 9

Found = dict[str, Any]
Pairs = Callable[[bool], Iterator[tuple[str, Array, Array]]]


# Pairs of float32 weights: the reference, and what is sent


def made(quick: bool = False) -> Iterator[tuple[str, Array, Array]]:
    """Names and pairs of normal weights, with normal updates of the size that changes a share of them in bfloat16."""
    rng = np.random.default_rng(0)
    old, update, other = (rng.standard_normal(_QUICK_SIZE if quick else _SIZE, np.float32) for _ in range(3))
    old *= np.float32(0.02)
    for share in SHARES:
        yield f"{100 * share:g}%", old, _updated(old, update, share)
    yield "unrelated", old, np.float32(0.02) * other


def _updated(old: Array, update: Array, share: float) -> Array:
    """The weights after an update whose scale is found by bisection, on some of them."""
    some, low, high = slice(1 << 20), -30.0, 0.0
    for _ in range(30):
        middle = (low + high) / 2
        found = _changed(_short(old[some]), _short(old[some] + np.float32(2**middle) * update[some]))
        low, high = (middle, high) if found < share else (low, middle)
    return old + np.float32(2**high) * update


def trained(quick: bool = False, folder: Path | None = None) -> Iterator[tuple[str, Array, Array]]:
    """Names and pairs of a transformer's weights, from a folder, or trained now."""
    import trained_steps

    size = trained_steps.QUICK if quick else trained_steps.Size()
    kept = {} if folder else dict(trained_steps.steps(size))
    for name, before, after in trained_steps.pairs(size):
        yield name, *(np.load(folder / f"{step}.npy") if folder else kept[step] for step in (before, after))


# What is measured


def measured(pairs: Pairs, bounds: Sequence[float], quick: bool) -> Found:
    """By pair and setting, each way's ratio and speeds, the share that changed, and the entropy of the differences."""
    found: Found = {}
    for name, old, new in pairs(quick):
        found[name] = {
            "values": new.size,
            "bfloat16": _compared(_short(old), _short(new)),
            "float32": _compared(old, new),
        } | {f"{bound:.0e}": _compared(old, new, bound) for bound in bounds}
        print(name, {way: round(of.get("ratio", 0), 2) for way, of in found[name]["bfloat16"].items()}, flush=True)
    return found


def _short(x: Array) -> Array:
    return x.astype(ml_dtypes.bfloat16)


def _changed(old: Array, new: Array) -> float:
    return float((as_unsigned(old) != as_unsigned(new)).mean())


def entropy(old: Array, new: Array) -> float:
    """Bits an element of the differences of the bits, as integers modulo their size, if each was coded alone."""
    _, counts = np.unique(as_unsigned(new) - as_unsigned(old), return_counts=True)
    shares = counts / new.size
    return float(-(shares * np.log2(shares)).sum())


def _compared(old: Array, new: Array, bound: float = 0.0) -> Found:
    those = {name: way for name, way in ways().items() if way.supports(new) and (way.bounded or not bound)}
    payloads = {name: way.compress(new, old, bound) for name, way in those.items()}
    seconds = _seconds(those, payloads, old, new, bound)
    found: Found = {}
    for name, way in those.items():
        error = largest_error(new, way.apply(payloads[name], old.copy()), bound or None)
        found[name] = {"ratio": new.nbytes / payloads[name].nbytes} | ({} if error <= 1 else {"broken": 1})
        found[name] |= {kind: new.nbytes / seconds[f"{kind} {name}"] / 1e9 for kind in ("encode", "apply")}
    if not bound:
        bits = entropy(old, new)
        found[CHANGED] = {"share": _changed(old, new)}
        found[ENTROPY] = {"ratio": 8 * new.itemsize / bits} if bits else {}
    return found


def _seconds(
    those: Mapping[str, Delta], payloads: Mapping[str, Payload], old: Array, new: Array, bound: float
) -> dict[str, float]:
    """The least seconds of each way's calls; after each one the target is the reference again."""
    target = old.copy()
    calls: dict[str, Callable[[], Any]] = {}
    for name, way in those.items():
        calls[f"encode {name}"] = partial(way.compress, new, old, bound)
        calls[f"apply {name}"] = partial(way.apply, payloads[name], target)
    samples = by_turns(calls, _ROUNDS, warm=1, settle=lambda: np.copyto(target, old))
    return {name: min(seconds) for name, seconds in samples.items()}


# The page


def _section(title: str, pairs: Pairs, bounds: Sequence[float] = ()) -> Section:
    return Section(
        title,
        lambda quick: measured(pairs, bounds, quick),
        lambda found: "",  # the page is written of both groups: report/deltas.py
        levels=("subject", "setting", "method", "metric"),
        units={"encode": "GB/s", "apply": "GB/s"},
        versions=("arrcomp", "numpy", "zstandard", "zipnn", "z4ai", "torch"),
    )


def page_of(folder: Path | None) -> Page:
    """What is measured and written, with a folder of trained weights or without one."""
    from report import deltas as report

    sections = {
        "made": _section("Updates that are made", made),
        "trained": _section("Steps of a transformer", partial(trained, folder=folder), BOUNDS),
    }
    return page_of_sections(
        "deltas", __doc__, sections, lambda document, to: {to / "DELTAS.md": report.markdown(document)}
    )


def main() -> None:
    """Parse the command line, measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=Path, metavar="FOLDER", help="of the weights that bench/trained_steps.py keeps")
    parser.add_argument("--only", metavar="made,trained", help="these groups alone")
    parser.add_argument("--quick", action="store_true", help="a little of everything: figures mean little")
    parser.add_argument("--redraw", action="store_true", help="measure nothing: read deltas.csv again")
    parser.add_argument("--check", action="store_true", help="compare the page with deltas.csv")
    parser.add_argument("--output", type=Path, default=BENCH, metavar="FOLDER", help="for the files")
    options = parser.parse_args()
    page = page_of(options.steps)
    if options.redraw or options.check:
        page.check(options.output) if options.check else page.show(options.output, list(page.sections))
        return
    names = options.only.split(",") if options.only else list(page.sections)
    if unknown := set(names) - set(page.sections):
        parser.error(f"--only: expected {', '.join(page.sections)}, got {', '.join(sorted(unknown))}")
    page.measure(names, quick=options.quick, folder=options.output)


if __name__ == "__main__":
    main()
