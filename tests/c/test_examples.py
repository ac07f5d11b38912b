"""The examples in C and Rust build with what is installed, and run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import library
import numpy as np
import pytest
from programs import run, tool

import arrcomp

pytestmark = pytest.mark.c

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def check_field(program: Path, tmp_path: Path) -> None:
    """The C example's stream is that of Python."""
    printed = run(program, tmp_path / "field.arrcomp")
    assert re.fullmatch(r"600000 bytes in \d+ by error-bounded, largest error 0\.000\d+\n", printed)
    i, j = np.ogrid[:300, :500]
    stream = (tmp_path / "field.arrcomp").read_bytes()
    y = arrcomp.decompress(arrcomp.from_bytes(stream))
    assert np.abs(np.sin(0.02 * i) * np.cos(0.03 * j) - y).max() < 1.001e-3


def test_the_c_example_builds_with_cmake(lib: library.Library, tmp_path: Path) -> None:
    cmake = tool("cmake")
    run(cmake, "-S", EXAMPLES / "c", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={library.PREFIX}")
    run(cmake, "--build", tmp_path)
    check_field(tmp_path / "field", tmp_path)


def test_the_c_example_builds_with_pkg_config_as_strict_c99(lib: library.Library, tmp_path: Path) -> None:
    environment = {"PKG_CONFIG_PATH": str(library.PREFIX / "lib" / "pkgconfig")}
    flags = run(tool("pkg-config"), "--cflags", "--libs", "arrcomp", environment=environment).split()
    program, source = tmp_path / "field", EXAMPLES / "c" / "field.c"
    strict = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    run(tool("cc"), *strict, source, *flags, "-lm", f"-Wl,-rpath,{library.PREFIX / 'lib'}", "-o", program)
    check_field(program, tmp_path)


def test_the_rust_example_builds_without_crates(lib: library.Library, tmp_path: Path) -> None:
    folder, program = library.PREFIX / "lib", tmp_path / "field"
    run(
        tool("rustc"),
        EXAMPLES / "rust" / "field.rs",
        "-L",
        folder,
        "-C",
        f"link-arg=-Wl,-rpath,{folder}",
        "-o",
        program,
    )
    printed = run(program).splitlines()
    assert re.fullmatch(r"800000 bytes in \d+, largest error 0\.00(0\d+|1000)", printed[0])
    assert printed[1] == "abs: expected a finite number above 0, got -1"


def test_the_example_of_the_filter_keeps_what_it_says(lib: library.Library) -> None:
    printed = run(sys.executable, "-P", EXAMPLES / "hdf5_filter.py", environment=library.environment())
    numbers = re.findall(r"[\d,.]*\d", printed)
    plain, stored, error, bound = (float(number.replace(",", "")) for number in numbers)
    assert stored < plain / 3
    assert 0 < error <= bound == 0.01
    assert printed.endswith("every bit of the lossless dataset: True\n")


def test_the_example_of_netcdf_keeps_what_it_says(lib: library.Library) -> None:
    printed = run(sys.executable, "-P", EXAMPLES / "netcdf_filter.py", environment=library.environment())
    plain, stored, error, bound = (float(number.replace(",", "")) for number in re.findall(r"[\d,.]*\d", printed))
    assert stored < plain / 3
    assert 0 < error <= bound == 0.01


def test_the_library_shows_its_functions_alone() -> None:
    shown = {name: run(tool("nm"), "-D", "--defined-only", path) for name, path in shared_libraries().items()}
    for name, prefix in (("libarrcomp.so", "arrcomp_"), ("libh5arrcomp.so", "H5PLget_plugin_")):
        symbols = [line.split()[-1] for line in shown[name].splitlines()]
        assert symbols
        assert all(symbol.startswith(prefix) for symbol in symbols)


def shared_libraries() -> dict[str, Path]:
    """What is installed, by file name; skipped where shared libraries are of another kind."""
    found = {path.name: path for path in (library.PREFIX / "lib").rglob("*.so")}
    if not found:
        pytest.skip("no shared libraries of ELF")
    return found
