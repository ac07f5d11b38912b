"""The section on fuzzing: every decoder and the header, until each was tried a million times."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import arrcomp
from harness.tables import table

TITLE = "Fuzzing"
_TOP = Path(__file__).parents[2]
_TESTS = _TOP / "tests"
_CODECS = tuple(arrcomp.available_codecs())
_EXECUTIONS, _QUICK = 1_000_000, 10_000
_NUMBERS = ("executions", "edges", "corpus", "peak_mib")
_NO_FUZZER = 69  # how .ci/fuzz.sh ends where there is none
_ABOUT = """\
libFuzzer fuzzes every CPU decoder, guided by coverage, with AddressSanitizer and UndefinedBehaviorSanitizer. An
input is a data type, a number of elements, parameters and a payload, followed by memory that must not be
touched. Mutations know directories, side data and lengths, and there is no checksum. Each input is decoded on
two instruction sets of the CPU, completely and in part. They must agree on what is corrupt, and on every bit.
The headers of streams are fuzzed in Python, with correct checksums, guided by the lines that are reached.
`.ci/fuzz.sh` does this for a minute. The inputs that reach most are kept in `tests/fuzz/corpus`;
`tests/format/test_fuzz_corpus.py` tries them on every machine and, with `--device cuda`, on a GPU."""


def measured(quick: bool) -> dict[str, Any]:
    """Fuzz each target.

    Args:
        quick: try each 10^4 times, not 10^6.

    Returns:
        `targets`, a line for each, and `failures`, how many of them broke.

    Raises:
        RuntimeError: the fuzzer cannot be built here.
    """
    executions = _QUICK if quick else _EXECUTIONS
    folder = Path(tempfile.mkdtemp(prefix="arrcomp_fuzzing_"))
    program = _built()
    targets = [_header(executions)]
    for number, name in enumerate(_CODECS, 1):
        targets.append(_decoder(program, number, name, executions, folder / name))
        print(targets[-1], flush=True)
    return {"targets": targets, "failures": sum(target["crashes"] for target in targets)}


def markdown(found: dict[str, Any]) -> str:
    """A line for each target."""
    head = ["<", "tried", "edges", "inputs kept", "peak memory, MiB", "<outcome"]
    return f"{_ABOUT}\n\n{table(head, [_line(target) for target in found['targets']])}"


def _line(target: dict[str, Any]) -> list[str]:
    outcome = f"**broken: {target['artifact']}**" if target["crashes"] else "held"
    return [target["target"], *(f"{target[name]:,}" for name in _NUMBERS), outcome]


def _built() -> Path:
    """The fuzzer, which .ci/fuzz.sh builds."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PYTHON": sys.executable, "PATH": path}
    done = subprocess.run([_TOP / ".ci" / "fuzz.sh", "1", "s2fp8"], env=environment, check=False)  # noqa: S603
    if done.returncode == _NO_FUZZER:
        raise RuntimeError("fuzzing needs Clang with libFuzzer: on Debian they are in the package clang")
    program = _TOP / "build" / "fuzz" / "arrcomp_fuzz"
    if done.returncode != 0:
        raise RuntimeError(f".ci/fuzz.sh ended with {done.returncode}")
    return program


def _decoder(program: Path, number: int, name: str, executions: int, folder: Path) -> dict[str, Any]:
    kept, new, broken = (folder / part for part in ("kept", "new", "broken"))
    for part in (kept, new, broken):
        part.mkdir(parents=True)
    with zipfile.ZipFile(_TESTS / "fuzz" / "corpus" / f"{name}.zip") as archive:
        archive.extractall(kept)
    options = [f"-runs={executions}", "-max_len=4096", "-timeout=30", "-rss_limit_mb=2048", "-malloc_limit_mb=256"]
    command = [program, *options, "-print_final_stats=1", f"-artifact_prefix={broken}/", new, kept]
    environment = os.environ | {"ARRCOMP_FUZZ_CODEC": str(number), "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    artifact = next((str(path) for path in broken.iterdir()), "")
    if done.returncode != 0:
        print(done.stderr[-5000:], file=sys.stderr)
    return {
        "target": name,
        "executions": _statistic(done.stderr, r"stat::number_of_executed_units: *(\d+)"),
        "edges": _statistic(done.stderr, r"cov: (\d+)"),
        "corpus": _statistic(done.stderr, r"corp: (\d+)"),
        "peak_mib": _statistic(done.stderr, r"stat::peak_rss_mb: *(\d+)"),
        "crashes": int(done.returncode != 0),
        "artifact": artifact,
    }


def _statistic(log: str, pattern: str) -> int:
    """The last number of this kind; 0 where a crash came before any."""
    found = re.findall(pattern, log)
    return int(found[-1]) if found else 0


def _header(executions: int) -> dict[str, Any]:
    command = [sys.executable, "-P", _TESTS / "fuzz" / "header.py", f"--executions={executions}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return json.loads(done.stdout) | {"crashes": 0, "artifact": ""}
    print(done.stderr, file=sys.stderr)
    nothing = dict.fromkeys(_NUMBERS, 0)
    return {"target": "header"} | nothing | {"crashes": 1, "artifact": done.stderr.strip().splitlines()[-1]}
