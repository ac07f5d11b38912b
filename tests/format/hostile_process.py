"""Reads streams in little memory, and tells what came of each: a program of `test_hostile.py`.

python hostile_process.py IN ROOM    IN: a file of JSON; ROOM: bytes of memory beside today's

IN has `streams`, in base64 by name, and `reference`, whose first bytes are the reference of those that need one.
JSON goes to standard output: by name the error's type and text, and the most bytes that Python and NumPy held.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

import arrcomp


def options_of(compressed: arrcomp.Compressed, data: bytes) -> dict[str, Any]:
    """The reference, if one is needed and there are as many bytes."""
    nbytes = compressed.spec.nbytes
    if not compressed.needs_reference or nbytes > len(data):
        return {}
    return {"reference": np.frombuffer(data[:nbytes], compressed.dtype).reshape(compressed.shape)}


def outcome(stream: bytes, reference: bytes) -> tuple[str, str, int]:
    """What came of reading a stream, and the most bytes that were held."""
    kind, message = "", ""
    tracemalloc.start()
    try:
        compressed = arrcomp.from_bytes(stream)
        arrcomp.decompress(compressed, threads=1, **options_of(compressed, reference))
    except Exception as error:
        kind, message = type(error).__name__, str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return kind, message, peak


def address_space() -> int:
    """Bytes of this process's address space."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def limit(room: int) -> None:
    """Allow so many bytes more than there are; Linux alone says how many there are."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = address_space() + room
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))


def main() -> None:
    """Read what the first argument names."""
    given = json.loads(Path(sys.argv[1]).read_text())
    reference = base64.b64decode(given["reference"])
    # What is loaded on first use is no allocation of a stream's.
    with contextlib.suppress(ImportError):
        import zstandard  # noqa: F401
    arrcomp.decompress(arrcomp.from_bytes(arrcomp.compress(np.ones(5000, np.float32)).to_bytes()), threads=1)
    if sys.platform == "linux":
        limit(int(sys.argv[2]))
    found = {name: outcome(base64.b64decode(stream), reference) for name, stream in given["streams"].items()}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
