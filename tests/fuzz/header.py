"""Fuzzes what reads streams' headers: mutations keep lengths and checksum right; those that reach new lines are kept.

python tests/fuzz/header.py [--seconds S] [--executions N] [--seed K] [--keep]

Prints what was done as JSON. An input that breaks a promise is written to a file, and told; the end is then 1.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("support", "independent")]

import arrcomp
import fuzz_headers
import fuzz_inputs

_PACKAGE = Path(arrcomp.__file__).parent
_TRACED = {str(_PACKAGE / f"{name}.py") for name in ("stream", "frame", "compressed", "dtypes")}
_TRACED |= {str(path) for path in (_PACKAGE / "codecs").glob("*.py")}


class Coverage:
    """Steps from line to line in the package's readers that were ever made."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int, int]] = set()
        self._now: set[tuple[CodeType, int, int]] = set()

    def is_new(self, data: bytes) -> bool:
        """Try an input; whether it made a step that none made before."""
        self._now = set()
        sys.settrace(self._called)
        try:
            fuzz_headers.check_reading(data)
        finally:
            sys.settrace(None)
        new = not self._now <= self.seen
        self.seen |= self._now
        return new

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in _TRACED:
            return None
        code, now, before = frame.f_code, self._now, 0

        def stepped(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal before
            now.add((code, before, frame.f_lineno))
            before = frame.f_lineno
            return stepped

        return stepped


class Fuzzer:
    """A corpus that grows by what is new.

    Attributes:
        executions: inputs that were tried.
        kept: those that each made a new step.
        coverage: the steps that were made.
    """

    def __init__(self, inputs: list[bytes], seed: int) -> None:
        self.coverage = Coverage()
        self.executions = 0
        self.kept: list[bytes] = []
        self._mutator = fuzz_headers.Mutator(seed)
        for data in sorted(inputs, key=len):
            self._try(data)

    def step(self) -> None:
        """Try a mutation of what was kept.

        Raises:
            BrokenPromiseError: it broke one.
        """
        # To follow its lines takes longer than to read a stream.
        self._try(self._mutator.mutated(self.kept), followed=self.executions % 4 == 0)

    def _try(self, data: bytes, followed: bool = True) -> None:
        self.executions += 1
        try:
            if not followed:
                fuzz_headers.check_reading(data)
            elif self.coverage.is_new(data):
                self.kept.append(data)
        except Exception as error:
            raise BrokenPromiseError(data) from error


class BrokenPromiseError(Exception):
    """Reading an input ended as nothing may.

    Attributes:
        data: the input.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(f"reading {len(data)} bytes ended otherwise than with an array or a typed error")
        self.data = data


def fuzz(options: argparse.Namespace) -> dict[str, Any]:
    """Try inputs until time or number is up; what was done."""
    start = time.monotonic()
    fuzzer = Fuzzer([*fuzz_headers.seeds(), *fuzz_inputs.corpus("header").values()], options.seed)
    before = len(fuzzer.kept)
    while fuzzer.executions < options.executions and time.monotonic() - start < options.seconds:
        fuzzer.step()
    if options.keep:
        fuzz_inputs.write_corpus("header", fuzzer.kept)
    return {
        "executions": fuzzer.executions,
        "edges": len(fuzzer.coverage.seen),
        "corpus": len(fuzzer.kept),
        "new": len(fuzzer.kept) - before,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "seconds": round(time.monotonic() - start, 1),
    }


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most (default: no limit)")
    parser.add_argument("--executions", type=int, default=1_000_000, help="at most (default: 10^6)")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (default: 0)")
    parser.add_argument("--keep", action="store_true", help="write what was kept to the corpus")
    try:
        found = fuzz(parser.parse_args())
    except BrokenPromiseError as error:
        path = Path(tempfile.mkdtemp(prefix="arrcomp_fuzz_")) / "header"
        path.write_bytes(error.data)
        print(f"error: header: {error}: {path}: {error.__cause__!r}", file=sys.stderr)
        return 1
    print(json.dumps({"target": "header"} | found))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
