"""How long a call takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Call = Callable[[], Any]

_LEAST_SAMPLES, _MOST_SAMPLES = 5, 31
_ENOUGH_SECONDS = 0.1


def seconds_of(call: Call, count: int = 1) -> float:
    """Seconds of one call, the mean of so many in a row."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def median_seconds(call: Call) -> float:
    """Median time of at least five calls; the caller has made one before, which does not count."""
    samples: list[float] = []
    while len(samples) < _LEAST_SAMPLES or (sum(samples) < _ENOUGH_SECONDS and len(samples) < _MOST_SAMPLES):
        samples.append(seconds_of(call))
    return statistics.median(samples)


def median_of(call: Call, calls: int) -> float:
    """Median time of so many calls, after one that does not count: for calls of seconds."""
    call()
    return statistics.median(seconds_of(call) for _ in range(calls))


def least_seconds(call: Call, calls: int) -> float:
    """Least time of so many calls: what one takes where nothing interrupts it."""
    return min(seconds_of(call) for _ in range(calls))


def by_turns(
    calls: Mapping[str, Call], rounds: int, *, warm: int = 0, count: int = 1, settle: Call = lambda: None
) -> dict[str, list[float]]:
    """Seconds of several calls that take turns, so that they share what else the machine does.

    Args:
        calls: what is timed, by name.
        rounds: in how many of them every call makes one sample.
        warm: how many rounds before do not count.
        count: calls of a sample, whose mean it is.
        settle: is called after each sample, outside of the time.
    """
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(warm + rounds):
        for name, call in calls.items():
            samples[name].append(seconds_of(call, count))
            settle()
    return {name: values[warm:] for name, values in samples.items()}
