"""The CUDA kernels on warps that a CPU emulates: the same payloads and elements as the CPU's own codecs."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import arrcomp
from arrcomp import _core

pytestmark = pytest.mark.arithmetic

TESTS = Path(__file__).resolve().parent
NATIVE = TESTS.parent.parent / "native"
FLAGS = ["-std=c++20", "-O1", "-ffp-contract=off", "-Wno-psabi", f"-I{NATIVE}"]
CPU_PARTS = (
    "activations",
    "buckets",
    "coded_buckets",
    "driver",
    "interruption",
    "predicted",
    "predicted_range",
    "ranges",
    "referenced",
    "select",
)
CPU_SOURCES = ["codecs/grouped/rans_tables.cpp", *(f"cpu/{part}.cpp" for part in CPU_PARTS)]
ISA_PARTS = ["activations", "buckets_F32", "buckets_F64", "groups", "predicted", "referenced"]
# Lines of the table of codecs: id, name, type.
BUCKETED = re.compile(r"X\(\d+, (\w+), \w+,")
PROGRAMS = ["emulated_kernels", "emulated_predicted", "emulated_referenced", "emulated_buckets", "emulated_activations"]

# Device code reads the same bytes as integers of several widths.
KERNEL_FLAGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fno-strict-aliasing"]
# The sanitized build takes reductions apart, as kernels for GPUs before compute capability 8 do.
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D__CUDA_ARCH__=750"]
# The compiler tells of each access to memory, and race_detector.cpp listens. Copies are calls, which it catches.
COPIES = ("memcpy", "memmove", "memset")
WATCH = ["-fsanitize=thread", "--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0", "-g1"]
WATCH += [f"-fno-builtin-{name}" for name in COPIES]
WATCH_COPIES = [f"-Wl,--wrap={name}" for name in COPIES]


class Build(NamedTuple):
    """What else the compiler and the linker are told, and how much the program does (emulated_inputs.h)."""

    flags: Sequence[str] = ()
    link_flags: Sequence[str] = ()
    orders: int = 1  # of a warp's lanes, each input is run in
    every: int = 1  # of inputs that are many, every nth is run


BUILDS = {"optimized": Build(orders=3), "sanitized": Build(SANITIZE, SANITIZE)}
# Finds accesses of several lanes to one place that no barrier puts in order, in whatever order they ran.
RACES = Build(WATCH, WATCH_COPIES)


def compiler() -> list[str]:
    """The C++ compiler's command line; skips the test where it cannot serve."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("fibers are made as Linux on x86-64 makes them")
    command = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if command is None:
        pytest.skip("no C++ compiler: set CXX")
    return command.split()


def is_gcc() -> bool:
    """Whether the compiler is GCC, which alone knows the options of RACES."""
    macros = subprocess.run([*compiler(), "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, text=True)
    return "__clang__" not in macros.stdout


def run(command: Sequence[str | Path]) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def examples() -> Iterator[str]:
    """The examples of the bucketed codecs in C++: ids and parameters."""
    bucketed = {number for number, _, family, _ in _core.codec_table() if family == "bucketed"}
    for kind in arrcomp.available_codecs().values():
        for codec in kind.examples() if kind.id in bucketed else ():
            yield f"{{{codec.id}, {{{', '.join(map(repr, codec.core_parameters()))}}}}},\n"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The option that finds the header of all bucketed codecs, which CMake writes for the extension, and examples."""
    folder = tmp_path_factory.mktemp("generated")
    table = (NATIVE / "stream" / "codec_table.h").read_text().split("#define ARRCOMP_BUCKETED_CODECS(X)")[1]
    names = BUCKETED.findall(table.split("#define")[0])
    (folder / "bucketed_codecs.h").write_text("".join(f'#include "codecs/bucketed/{name}.h"\n' for name in names))
    (folder / "examples.inc").write_text("".join(examples()))
    return [f"-I{folder}"]


@pytest.fixture(scope="module")
def cpu_objects(generated: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The CPU's codecs as they were built, or compiled as plain code, once for all of pytest's processes."""
    from filelock import FileLock

    library = built_library()
    if library is not None:
        return [library]
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "emulated_cpu"
    with FileLock(f"{folder}.lock"):
        if folder.exists():
            return sorted(folder.glob("*.o"))
        made = tmp_path_factory.mktemp("cpu")
        compile_cpu(made, generated)
        return sorted(made.rename(folder).glob("*.o"))


def built_library() -> Path | None:
    """The library of the CPU's codecs that CMake has left in the tree, where no source is newer."""
    built = max(NATIVE.parent.glob("build/*/native/libarrcomp_cpu.a"), key=modified, default=None)
    sources = [NATIVE.parent / "CMakeLists.txt", *NATIVE.parent.glob("cmake/*"), *NATIVE.rglob("*.*")]
    return built if built is not None and modified(built) > max(map(modified, sources)) else None


def modified(path: Path) -> float:
    return path.stat().st_mtime


def compile_cpu(folder: Path, generated: list[str]) -> None:
    """Compiles the CPU's codecs for the plain instruction set into a folder."""
    for name in CPU_SOURCES:
        run([*compiler(), *FLAGS, "-c", NATIVE / name, "-o", folder / Path(name).with_suffix(".o").name])
    for part in ISA_PARTS:
        made = folder / f"plain_{part}.o"
        source, _, real = part.partition("_")
        plain = ["-DARRCOMP_ISA=plain", f"-DARRCOMP_REAL={real}", "-DARRCOMP_COMPACT", "-x", "c++"]
        run([*compiler(), *FLAGS, *generated, *plain, NATIVE / "cpu" / f"{source}.inc", "-c", "-o", made])


@pytest.fixture(scope="module")
def race_detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not is_gcc():
        pytest.skip("GCC tells of accesses to memory as the detector needs it")
    made = tmp_path_factory.mktemp("detector") / "race_detector.o"
    run([*compiler(), *FLAGS, "-O2", "-Wall", "-Wextra", "-Werror", "-c", TESTS / "race_detector.cpp", "-o", made])
    return made


def run_program(name: str, build: Build, options: Sequence[str], objects: Sequence[Path], folder: Path) -> None:
    """Compiles the program, links it with the objects and runs it."""
    own, program = folder / f"{name}.o", folder / name
    run([*compiler(), *FLAGS, *KERNEL_FLAGS, *build.flags, *options, "-c", TESTS / f"{name}.cpp", "-o", own])
    run([*compiler(), *build.link_flags, own, *objects, "-pthread", "-o", program])
    run([program, str(build.orders), str(build.every)])


@pytest.mark.parametrize("name", PROGRAMS)
# They take minutes, and the race detector checks the results too (of kernels as GPUs since compute capability 8 have).
@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
def test_kernels_agree_with_the_cpu(
    name: str, build: str, generated: list[str], cpu_objects: list[Path], tmp_path: Path
) -> None:
    run_program(name, BUILDS[build], generated, cpu_objects, tmp_path)


# The CPU's codecs and the kernels are compiled for minutes.
@pytest.mark.parametrize("every", [pytest.param(5, marks=pytest.mark.full), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_barriers_order_what_lanes_share(
    name: str, every: int, generated: list[str], cpu_objects: list[Path], race_detector: Path, tmp_path: Path
) -> None:
    run_program(name, RACES._replace(every=every), generated, [*cpu_objects, race_detector], tmp_path)


@pytest.mark.full
def test_a_missing_barrier_is_found(race_detector: Path, tmp_path: Path) -> None:
    run_program("emulated_races", RACES, [], [race_detector], tmp_path)
