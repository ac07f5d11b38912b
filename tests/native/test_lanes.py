"""The 32 lanes of the native core: every operation, on every instruction set that can run here, against scalar code."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from ordinary import then_slow

pytestmark = pytest.mark.arithmetic

TESTS = Path(__file__).resolve().parent
NATIVE = TESTS.parent.parent / "native"
COMMON_FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}"]
AVX2_FLAGS = ["-mavx2", "-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt", "-mf16c"]
AVX512_FLAGS = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd"]

# What the compiler is told, and what the CPU must have (names of /proc/cpuinfo).
ISAS: dict[str, tuple[list[str], set[str]]] = {
    "plain": ([], set()),
    "avx2": (["-DLANES_TEST_ISA=avx2", *AVX2_FLAGS], {"avx2", "bmi1", "bmi2", "abm", "popcnt", "f16c"}),
    "avx512": (
        ["-DLANES_TEST_ISA=avx512", *AVX2_FLAGS, *AVX512_FLAGS],
        {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
    ),
    "neon": (["-DLANES_TEST_ISA=neon"], {"asimd"}),
}
BUILDS = {"optimized": ["-O2"], "sanitized": ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]}


def cpu_features() -> set[str]:
    """The CPU's feature names as Linux lists them; empty where it does not, but for what AArch64 always has."""
    if platform.machine() in ("aarch64", "arm64"):
        return {"asimd"}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.split(":")[1].split()) for line in lines if line.startswith("flags")), set())


def build_and_run(command: list[str], program: Path, *sources: Path) -> subprocess.CompletedProcess[str]:
    """Builds lanes_test.cpp, or other sources, with a compiler's command line, and runs it."""
    files = [str(source) for source in sources or (TESTS / "lanes_test.cpp",)]
    build = subprocess.run([*command, *files, "-o", str(program)], capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
    return subprocess.run([str(program)], capture_output=True, text=True)


# The test of codecs' bytes on every instruction set is ordinary. Compiling with sanitizers takes minutes.
@pytest.mark.parametrize("build", then_slow([], ["optimized"], ["sanitized"]))
@pytest.mark.parametrize("isa", ISAS)
def test_every_operation_agrees_with_scalar_code(isa: str, build: str, tmp_path: Path) -> None:
    flags, needed = ISAS[isa]
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: set CXX")
    missing = needed - cpu_features()
    if missing:
        pytest.skip(f"this {platform.machine()} CPU lacks {', '.join(sorted(missing))}")
    command = [*compiler.split(), *COMMON_FLAGS, "-ffp-contract=off", *BUILDS[build], *flags]
    result = build_and_run(command, tmp_path / "lanes_test")
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_operation_agrees_with_scalar_code_on_a_gpu(tmp_path: Path) -> None:
    compiler = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if compiler is None:
        pytest.skip("no CUDA compiler: set CUDACXX")
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("no NVIDIA GPU")
    command = [compiler, "-std=c++20", "-O2", "-arch=native", "-x", "cu", f"-I{NATIVE}"]
    result = build_and_run(command, tmp_path / "lanes_test")
    if result.returncode == 77:
        pytest.skip(result.stdout.strip())
    assert result.returncode == 0, result.stdout + result.stderr


def test_runs_are_the_slots_of_every_table(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: set CXX")
    command = [*compiler.split(), *COMMON_FLAGS, "-Wno-psabi", "-O1"]
    sources = (TESTS / "slot_runs_test.cpp", NATIVE / "codecs" / "grouped" / "rans_tables.cpp")
    result = build_and_run(command, tmp_path / "slot_runs_test", *sources)
    assert result.returncode == 0, result.stdout + result.stderr
