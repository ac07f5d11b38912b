"""Every value, or very many, through ErrorBounded and Lossless, on everything that this machine can run them on."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import ErrorBounded, Lossless, cpu
from harness.tables import table
from proofs.chunk_modes import MODES, TABLES
from proofs.exhaustive_checks import CUDA, cuda_at_hand, longdouble_is_wider, place_named, tried
from proofs.exhaustive_values import (
    DRAWN,
    FLOAT64_KINDS,
    ORDERS,
    REPEATED,
    drawn,
    float32_patterns,
    float64_values,
    patterns16,
    repeated,
)

Array = NDArray[Any]
Task = tuple[str, int]  # the kind of values, and a number
Trial = tuple[str, Array, arrcomp.Codec]  # its row, values, codec

TITLE = "Every value of float32, float16 and bfloat16, and many of float64"

BOUNDS32 = (1e-30, 1e-12, 1e-5, 1e-2, 1e3, 1e30)
RELATIVE = (
    *(ErrorBounded(rel=bound) for bound in (1e-7, 1e-3)),
    *(ErrorBounded(pointwise=bound) for bound in (1e-2, 2.0**-9)),
)
SIZES32 = (1 << 22, (1 << 20) - 1365)  # groups of 4 chunks and of 2; the last with an incomplete one
BOUNDS64 = (1e-300, 1e-100, 1e-30, 1e-12, 1e-3, 1.0, 1e30, 1e300)
SHARE = 16  # one piece in so many has the relative bounds too
RANGE16 = {"float16": (1e-9, 1e5), "bfloat16": (1e-40, 1e39)}
SPEEDS = ("default", "fast")
FAST64 = 5  # one row of float64's kinds in so many goes through at both speeds

_EQUAL, _DRAWN = "float32, equal values and zeros", "float32, drawn from distributions"
_ABS = {"float64": f"float64, abs {BOUNDS64[0]:g} to {BOUNDS64[-1]:g}"}
_ABS |= {name: f"{name}, abs {low:g} to {high:g}" for name, (low, high) in RANGE16.items()}
_LOSSLESS = {name: f"{name}, lossless" for name in ("float32", *_ABS)}
_RELATIVE = {name: f"{name}, rel and pointwise" for name in ("float32", *_ABS)}
ROWS = (
    *(f"float32, abs {bound:g}" for bound in BOUNDS32),
    *(_LOSSLESS["float32"], _RELATIVE["float32"], _EQUAL, _DRAWN),
    *(row for name in (*RANGE16, "float64") for row in (_ABS[name], _LOSSLESS[name], _RELATIVE[name])),
)


ABOUT = f"""\
Values go through `compress`, `to_bytes`, `from_bytes` and `decompress`. Differences are computed in float64, for
float64 arrays in long double (mantissas of 64 bits), and in integers where these are not exact enough. The
stream and the array of the first place below are checked; every byte of the other places is compared with them.

- float32: the patterns are in {len(ORDERS)} classes, each with its own order, so that chunks are ramps, noise, sparse,
  have outliers and so on. Each pattern is tested once for each bound and speed, and one piece in {SHARE} also with
  relative bounds.
- float16, bfloat16: all patterns are tested with each bound, in one of these orders, at both speeds.
- float64: mantissas are random. Exponents are random for each value or each chunk, or near the bound. One piece in
  {FAST64} is tested at both speeds, the others at the default one."""


@dataclass(frozen=True)
class Plan:
    """How much is tried.

    Attributes:
        piece: values in a piece of float32, a power of two of at least 2^14; four times those of float64.
        float32: the pieces of float32, by their numbers.
        float64: how many pieces of float64.
        bounds16: how many bounds for float16 and bfloat16.
        workers: processes.
    """

    piece: int
    float32: Sequence[int]
    float64: int
    bounds16: int
    workers: int

    @classmethod
    def full(cls) -> Plan:
        """All of it."""
        return cls(1 << 22, range(1 << 10), -(-(10**10) >> 20), 1000, cpu.available_threads())

    @classmethod
    def quick(cls, piece: int = 1 << 18, bounds16: int = 20) -> Plan:
        """One piece of each order, from all exponents, and one of each kind of float64."""
        numbers = [order + len(ORDERS) * ((1 << 28) // piece * (2 * order + 1) // 32) for order in range(len(ORDERS))]
        return cls(piece, numbers, len(FLOAT64_KINDS), bounds16, 1)

    def tasks(self) -> list[Task]:
        """What processes take, one at a time."""
        return [
            *(("float64", number) for number in range(self.float64 if longdouble_is_wider() else 0)),
            *(("float32", number) for number in self.float32),
            *((name, number) for name in RANGE16 for number in range(self.bounds16)),
            *(("repeated", number) for number in range(REPEATED)),
            *(("drawn", number) for number in range(DRAWN)),
        ]

    @property
    def is_full(self) -> bool:
        """Whether all of float32 is tried."""
        return len(self.float32) * self.piece == 1 << 32


def trials(plan: Plan, kind: str, number: int) -> Iterator[Trial]:
    """The arrays of a task, and how each is compressed."""
    if kind == "float32":
        yield from _float32(float32_patterns(number, plan.piece).view(np.float32), number)
    elif kind == "float64":
        bound = BOUNDS64[number // len(FLOAT64_KINDS) % len(BOUNDS64)]
        x = float64_values(number, plan.piece // 4, bound)
        speeds = SPEEDS if number // len(FLOAT64_KINDS) % FAST64 == 0 else SPEEDS[:1]
        yield from _each(_ABS[kind], [x], ErrorBounded(abs=bound), speeds)
        yield from _each(_LOSSLESS[kind], [x], Lossless(), speeds)
        if number // len(FLOAT64_KINDS) % SHARE == number % len(FLOAT64_KINDS):
            for codec in RELATIVE:
                yield from _each(_RELATIVE[kind], [x], codec)
    elif kind == "repeated":
        x = repeated(number, plan.piece).view(np.float32)
        for codec in (ErrorBounded(abs=1e-2), ErrorBounded(abs=1e-12), Lossless()):
            yield from _each(_EQUAL, [x], codec)
    elif kind == "drawn":
        x = drawn(number, plan.piece // 16)
        for codec in (Lossless(), *(ErrorBounded(abs=2.0**power) for power in (2, 1, 0, -1, -2, -4, -8, -12))):
            yield from _each(_DRAWN, [x], codec)
    else:
        yield from _sixteen(kind, plan.bounds16, number)


def _float32(x: Array, number: int) -> Iterator[Trial]:
    size = SIZES32[number // len(ORDERS) % len(SIZES32)]
    parts = [x[start : start + size] for start in range(0, x.size, size)]
    for bound in BOUNDS32:
        yield from _each(f"float32, abs {bound:g}", parts, ErrorBounded(abs=bound))
    yield from _each(_LOSSLESS["float32"], parts, Lossless())
    if number // len(ORDERS) % SHARE == number % SHARE:
        for codec in RELATIVE:
            yield from _each(_RELATIVE["float32"], parts, codec)


def _sixteen(name: str, bounds: int, number: int) -> Iterator[Trial]:
    x = patterns16(number).view(np.dtype(getattr(ml_dtypes, name, name)))
    low, high = RANGE16[name]
    bound = float(np.geomspace(low, high, bounds)[number])
    if number % 5 == 3:  # powers of two have errors that are just as large
        bound = float(2.0 ** np.rint(np.log2(bound)))
    yield from _each(_ABS[name], [x], ErrorBounded(abs=bound))
    if number < len(ORDERS):
        yield from _each(_LOSSLESS[name], [x], Lossless())
        for codec in RELATIVE:
            yield from _each(_RELATIVE[name], [x], codec)


def _each(
    row: str, arrays: Iterable[Array], codec: ErrorBounded | Lossless, speeds: Sequence[str] = SPEEDS
) -> Iterator[Trial]:
    yield from ((row, x, replace(codec, speed=speed)) for x in arrays for speed in speeds)


def done(plan: Plan, task: Task, names: Sequence[str]) -> dict[str, Counter[str]]:
    """Try a task's arrays in the places named; what was counted, by row, and the patterns' sums in the row "sums"."""
    places, before = [place_named(name) for name in names], cpu.instruction_set()
    found: dict[str, Counter[str]] = {}
    try:
        for row, x, codec in trials(plan, *task):
            found[row] = found.get(row, Counter()) + tried(x, codec, places)
    finally:
        cpu.use_instruction_set(before)
    if task[0] == "float32":
        found["sums"] = _sums(float32_patterns(task[1], plan.piece))
    return found


def _sums(patterns: NDArray[np.uint32]) -> Counter[str]:
    """Sums of patterns and of their squares, modulo 2^64: they change where one is missing or there twice."""
    wide = patterns.astype(np.uint64)
    return Counter({"patterns": int(wide.sum()), "squares": int((wide * wide).sum())})


def _all_patterns(sums: Counter[str]) -> bool:
    """Whether these are the sums of all 2^32."""
    n = 1 << 32
    expected = {"patterns": n * (n - 1) // 2, "squares": (n - 1) * n * (2 * n - 1) // 6}
    return all((sums[name] - total) % (1 << 64) == 0 for name, total in expected.items())


def measured(quick: bool) -> dict[str, Any]:
    """Try everything, or with `quick` a little of it; takes all cores that this process may use."""
    return counted(Plan.quick() if quick else Plan.full(), _places())


def _places() -> list[str]:
    return [*cpu.instruction_sets(), *([CUDA] if cuda_at_hand() else [])]


def counted(plan: Plan, places: Sequence[str]) -> dict[str, Any]:
    """What came out, as JSON; `failed` has the rows and tasks where something did, 100 at most."""
    rows: dict[str, Counter[str]] = {}
    failed = []
    for task, found in _all_done(plan, places):
        for row, counts in found.items():
            rows[row] = rows.get(row, Counter()) + counts
            failed += [[row, *task]] if counts["broken"] + counts["differing"] else []
    missing = plan.is_full and not _all_patterns(rows["sums"])
    rows = {row: rows[row] for row in ROWS if row in rows}
    modes = sum(rows.values(), Counter[str]())
    columns = ("values", "broken", "differing")
    return {
        "places": list(places),
        "cuda": CUDA in places,
        "float64": longdouble_is_wider(),
        "patterns missing": missing,
        "rows": [{"what": row} | {name: rows[row][name] for name in columns} for row in rows],
        "modes": {name: modes[name] for name in MODES},
        "tables": [modes[f"table {number}"] for number in range(TABLES)],
        "failed": sorted(failed)[:100],
        "failures": sum(counts["broken"] + counts["differing"] for counts in rows.values()) + missing,
    }


def _all_done(plan: Plan, places: Sequence[str]) -> Iterator[tuple[Task, dict[str, Counter[str]]]]:
    tasks = plan.tasks()
    if plan.workers == 1:
        yield from ((task, done(plan, task, places)) for task in tasks)
        return
    start = time.monotonic()
    with ProcessPoolExecutor(plan.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(done, plan, task, places): task for task in tasks}
        for number, future in enumerate(as_completed(futures), 1):
            yield futures[future], future.result()
            if number % 16 == 0 or number == len(tasks):
                print(f"{number} of {len(tasks)}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def markdown(found: dict[str, Any]) -> str:
    """The section's text."""
    gpu = "" if found["cuda"] else " No GPU was at hand."
    parts = [ABOUT, f"Places: {', '.join(found['places'])}.{gpu}"]
    if not found["float64"]:
        parts.append("float64 was left out: long double has no more bits here.")
    if found["patterns missing"]:
        parts.append("**Patterns were left out, or tried twice.**")
    rows = [
        [row["what"], f"{row['values']:,}", *(_bold(row[name]) for name in ("broken", "differing"))]
        for row in found["rows"]
    ]
    parts.append(table(["<values and bounds", "values tried", "bounds broken", "bytes that differ"], rows))
    return "\n\n".join([*parts, _of_modes(found)])


def _bold(count: int) -> str:
    return f"**{count:,}**" if count else "0"


def _of_modes(found: Mapping[str, Any]) -> str:
    modes, tables = found["modes"], found["tables"]
    rows = [[name, f"{count:,}"] for name, count in modes.items() if count]
    never = ", ".join(name for name, count in modes.items() if not count) or "none"
    unused = ", ".join(str(number) for number, count in enumerate(tables) if not count) or "none"
    return (
        "The modes of the format, counted in the last chunk of each group. (arrcomp never writes “exponent, none”: it "
        "codes words that are all 0 as integers.)\n\n"
        f"{table(['<mode', 'chunks'], rows)}\n\n"
        f"Never chosen: {never}. Of the coder's {len(tables)} tables {sum(map(bool, tables))} were; not: {unused}."
    )
