"""Memory that compressing and decompressing one array takes at most, in a process of its own.

python memory_process.py CONFIGURATION MIB THREADS    the codec's, as JSON; the array's size. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import arrcomp
from arrcomp.codecs import codec_from_config

_PROC = Path("/proc/self")


def _status(name: str) -> int:
    """Bytes, of a line of the process's status."""
    lines = (_PROC / "status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def _peak(call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call gives, and how much more memory the process had during it than before, at most."""
    (_PROC / "clear_refs").write_text("5")  # the largest so far is forgotten
    before = _status("VmRSS")
    made = call()
    return made, _status("VmHWM") - before


def main() -> None:
    """Measure, and print."""
    codec, mib, threads = codec_from_config(json.loads(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    x = np.random.default_rng(0).standard_normal(mib << 18, np.float32)
    small = arrcomp.compress(x[:1000], codec, seed=1, threads=threads)
    arrcomp.decompress(small, threads=threads)  # what is made once is made
    c, compressing = _peak(lambda: arrcomp.compress(x, codec, seed=1, threads=threads))
    _, decompressing = _peak(lambda: arrcomp.decompress(c, threads=threads))
    print(json.dumps({"capacity": c.spec.capacity, "compress": compressing, "decompress": decompressing}))


if __name__ == "__main__":
    main()
