"""Ratio, error and speed as in `bench/run.py`, small calls as in `bench/overhead.py`, and the time of the import.

asv runs this tree's file with the package of every commit that is asked for. It takes the times itself. How a method's
name begins says what is measured.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks import each other by their own names

from data import QUICK, Setting, Subject, standard_subjects
from measure import largest_error
from ours import Arrcomp
from overhead import SIZES, calls_of

BOUND = "1e-03"  # absolute for weights, else a share of the range
CALLS = ("compress", "compress, lossless", "decompress")


def setting_of(subject: Subject, label: str) -> Setting:
    """The setting of an array that is lossless, or has the bound.

    Raises:
        NotImplementedError: there is none, which asv shows as not measured.
    """
    for setting in subject.settings():
        if label in setting.label:
            return setting
    raise NotImplementedError(f"{subject.name}: {label}")


class Arrays:
    """One thread, into memory that is allocated once."""

    param_names = ("array", "setting", "speed")
    params = (QUICK, (BOUND, "lossless"), ("default", "fast"))
    timeout = 300

    def setup_cache(self) -> dict[str, Subject]:
        """The arrays, made once for each commit."""
        return {subject.name: subject for subject in standard_subjects(quick=True)}

    def setup(self, subjects: dict[str, Subject], array: str, label: str, speed: str) -> None:
        """Compress once, so that no first call is measured."""
        subject = subjects[array]
        setting = setting_of(subject, label)
        self.values, self.bound = subject.values, setting.bound
        self.compressor = Arrcomp("lossless" if self.bound is None else "bounded", speed)
        self.out = np.zeros(self.values.shape, self.values.dtype)
        self.payload = self.compressor.compress(self.values, self.bound or 0.0)
        self.compressor.decompress(self.payload, self.out)

    def time_compress(self, *_: object) -> None:
        self.compressor.compress(self.values, self.bound or 0.0)

    def time_decompress(self, *_: object) -> None:
        self.compressor.decompress(self.payload, self.out)

    def track_ratio(self, *_: object) -> float:
        return self.values.nbytes / self.payload.nbytes

    track_ratio.unit = "bytes before / after"  # type: ignore[attr-defined]

    def track_error(self, *_: object) -> float:
        return largest_error(self.values, self.out, self.bound)

    track_error.unit = "of the bound"  # type: ignore[attr-defined]


class SmallCalls:
    """What a call costs where there is little to do: float32 of NumPy."""

    param_names = ("nbytes", "call")
    params = (SIZES[:2], CALLS)

    def setup(self, nbytes: int, call: str) -> None:
        """Make the array."""
        x = np.random.default_rng(0).normal(0, 0.02, nbytes // 4).astype(np.float32)
        self.call = calls_of(x, lambda _: None)[call]

    def time_call(self, *_: object) -> None:
        self.call()


def timeraw_import() -> str:
    """A process that imports arrcomp; NumPy's own import is in it."""
    return "import arrcomp"
