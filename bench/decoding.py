"""What decoding waits for: arrays of 4 MiB, decoded where payloads, or what is decoded, are in the cache or not.

`python bench/decoding.py` prints the table; results.py puts it into RESULTS.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import arrcomp
from harness.tables import table
from harness.timing import by_turns

VALUES = 1 << 20  # of an array
SEVERAL = 16  # arrays, which no cache holds
ROUNDS = 9
_CASES: dict[str, tuple[arrcomp.codecs.Codec, Any]] = {
    "ErrorBounded(abs=1e-3)": (arrcomp.ErrorBounded(abs=1e-3), np.float32),
    'ErrorBounded(abs=1e-3, speed="fast")': (arrcomp.ErrorBounded(abs=1e-3, speed="fast"), np.float32),
    "Lossless()": (arrcomp.Lossless(), np.float32),
    'Lossless(speed="fast")': (arrcomp.Lossless(speed="fast"), np.float32),
    "Lossless(), bfloat16": (arrcomp.Lossless(), ml_dtypes.bfloat16),
}
_PLACES = {"all in the cache": (1, 1), "payloads far": (SEVERAL, 1), "targets far": (1, SEVERAL)}
_LARGE, _COPY = "one large array", "copy of it"
_ABOUT = """\
GB/s of N(0, 0.02), one thread, the least time of {rounds} rounds. An array of 4 MiB (bfloat16: 2 MiB) is decoded
{several} times: always the same one into the same target ("all in the cache"), {several} equal ones in turn ("payloads
far"), or one into {several} targets ("targets far"). One large array has as many values as all of them, and its lines
leave the caches by streaming stores. `python bench/decoding.py` prints only this table."""


def measured(values: int = VALUES, rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """GB/s of each case, by where payloads and targets are."""
    return {name: _speeds(codec, dtype, values, rounds) for name, (codec, dtype) in _CASES.items()}


def _speeds(codec: arrcomp.codecs.Codec, dtype: Any, values: int, rounds: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    large = rng.normal(0, 0.02, SEVERAL * values).astype(np.float32).astype(dtype)
    payloads = [arrcomp.compress(large[:values], codec, threads=1) for _ in range(SEVERAL)]
    all_of_it = arrcomp.compress(large, codec, threads=1)
    target = large.copy()
    targets = target.reshape(SEVERAL, values)

    def decode(payload_count: int, target_count: int) -> None:
        for i in range(SEVERAL):
            arrcomp.decompress(payloads[i % payload_count], out=targets[i % target_count], threads=1)

    calls = {place: lambda counts=counts: decode(*counts) for place, counts in _PLACES.items()}
    calls[_LARGE] = lambda: arrcomp.decompress(all_of_it, out=target, threads=1)
    calls[_COPY] = lambda: np.copyto(target, large)
    samples = by_turns(calls, rounds, warm=1)
    return {place: large.nbytes / min(seconds) / 1e9 for place, seconds in samples.items()}


def section(found: Mapping[str, Mapping[str, float]]) -> str:
    """What was measured, as text."""
    places: Sequence[str] = (*_PLACES, _LARGE, _COPY)
    rows = [[name, *(f"{speeds[place]:.1f}" for place in places)] for name, speeds in found.items()]
    return _ABOUT.format(rounds=ROUNDS, several=SEVERAL) + "\n\n" + table(["<decoding", *places], rows)


def main() -> int:
    """Measure and print."""
    print(section(measured()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
