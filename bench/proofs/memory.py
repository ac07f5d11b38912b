"""Memory that compressing and decompressing take at most, beside what is promised."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrcomp
from arrcomp import QSGD, Codec
from harness.tables import table

TITLE = "Memory"

_PROCESS = Path(__file__).with_name("memory_process.py")
_SIZES, _QUICK_SIZES = (1, 16, 128), (1, 8)  # MiB
_THREADS = 2
_MIB = 1 << 20
CONSTANT = 6 * _MIB  # of each call: two threads' scratch, and what the system rounds huge pages up to
_ABOUT = f"""\
The most memory, in MiB, that a call needs in addition to what the process had before. `compress` gets normally
distributed contiguous float32 values in NumPy, and `decompress` its result; these inputs are not counted. Each
call runs in a new process, with {_THREADS} threads. The promise is the size of the result plus {
    CONSTANT // _MIB
} MiB. For `compress` the result is the payload's capacity, at most `arrcomp.max_compressed_nbytes`; for
`decompress` it is the array. Codecs that code the codes of buckets (`coding="entropy"`) also hold these: one
byte per value, and the numbers of the buckets."""


def measured(quick: bool) -> dict[str, Any]:
    """Every codec with every size; `failures` are peaks above what is promised.

    Args:
        quick: small arrays alone.
    """
    rows = [_measured(codec, mib) for codec in _codecs() for mib in (_QUICK_SIZES if quick else _SIZES)]
    broken = sum(row[name]["peak"] > row[name]["allowed"] for row in rows for name in ("compress", "decompress"))
    return {"rows": rows, "failures": broken}


def markdown(found: dict[str, Any]) -> str:
    """A line for each codec: peaks by size, and the most that is allowed of the largest."""
    sizes = sorted({row["mib"] for row in found["rows"]})
    heads = ["<"]
    for name in ("compress", "decompress"):
        heads += [f"{name} {mib} MiB" for mib in sizes] + ["promised"]
    lines = [_line(codec, found["rows"], sizes) for codec in dict.fromkeys(row["codec"] for row in found["rows"])]
    return f"{_ABOUT}\n\n{table(heads, lines)}"


def _codecs() -> Iterator[Codec]:
    """One of each kind, and those of its variants that work in another way."""
    for kind in arrcomp.available_codecs().values():
        codec = kind.examples()[0]
        yield codec
        names = {field.name for field in dataclasses.fields(codec)}  # type: ignore[arg-type]
        for name, variant in (("speed", "fast"), ("coding", "entropy")):
            if name in names:
                yield dataclasses.replace(codec, **{name: variant})  # type: ignore[type-var]
    yield QSGD(bits=2, bucket_size=64, coding="entropy", rounding="stochastic")


def held_codes(codec: Codec, elements: int) -> int:
    """Bytes of codes, and of numbers of buckets, that a codec holds while they are entropy coded."""
    if getattr(codec, "coding", "packed") != "entropy":
        return 0
    bucket_size = getattr(codec, "bucket_size", None) or elements
    return elements + 8 * -(-elements // bucket_size)


def _measured(codec: Codec, mib: int) -> dict[str, Any]:
    command = [sys.executable, "-P", str(_PROCESS), json.dumps(codec.config()), str(mib), str(_THREADS)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)  # noqa: S603
    besides = held_codes(codec, mib << 18) + CONSTANT
    made = {"compress": found["capacity"], "decompress": mib * _MIB}
    peaks = {name: {"peak": found[name], "allowed": nbytes + besides} for name, nbytes in made.items()}
    return {"codec": repr(codec), "mib": mib} | peaks


def _line(codec: str, rows: list[dict[str, Any]], sizes: list[int]) -> list[str]:
    own = {row["mib"]: row for row in rows if row["codec"] == codec}
    cells = [f"`{codec}`"]
    for name in ("compress", "decompress"):
        cells += [_cell(**own[mib][name]) for mib in sizes] + [f"{own[sizes[-1]][name]['allowed'] / _MIB:.1f}"]
    return cells


def _cell(peak: int, allowed: int) -> str:
    text = f"{peak / _MIB:.1f}"
    return f"**{text}**" if peak > allowed else text
