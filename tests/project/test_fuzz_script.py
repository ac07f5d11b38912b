"""`.ci/fuzz.sh` gets the fuzzer that it needs, and builds what it was asked for alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci" / "fuzz.sh"
# In place of the machine's: a compiler that lacks its run-time libraries, which a package adds; CMake builds nothing.
PROGRAMS = {
    "id": "echo 0",
    "apt-get": 'echo "$*" >>"$FAKES/log"',
    "clang++": 'if [ "$1" = -dumpversion ]; then echo 17.0.6; else grep -q libclang-rt-17-dev "$FAKES/log"; fi',
    "cmake": 'echo "$*" >>"$FAKES/log"; [ "$1" != --build ]',
}


def run(folder: Path, programs: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    """The exit status, errors and what the programs were called with; these come before the machine's own."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "log").touch()
    environment = os.environ | {"FAKES": str(folder), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run([SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False)
    return result.returncode, result.stderr, (folder / "log").read_text()


def test_the_libraries_of_the_installed_compiler_are_installed_too(tmp_path: Path) -> None:
    status, _, calls = run(tmp_path, PROGRAMS, "1", "stream", "header")
    assert "install -y -qq --no-install-recommends libclang-rt-17-dev\n" in calls
    assert status == 1
    assert calls.endswith(" --target arrcomp_fuzz_stream\n")


def test_the_decoders_are_built_for_codecs(tmp_path: Path) -> None:
    assert run(tmp_path, PROGRAMS | {"clang++": "true"}, "1", "lossless")[2].endswith(" --target arrcomp_fuzz\n")


def test_without_a_fuzzer_nothing_is_built(tmp_path: Path) -> None:
    status, error, calls = run(tmp_path, PROGRAMS | {"clang++": "false"}, "1", "stream")
    assert status == 69
    assert "libclang-rt-VERSION-dev" in error
    assert "--build" not in calls
