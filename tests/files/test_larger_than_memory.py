"""Arrays that do not fit into memory: they are saved piece by piece, and read in slices."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import child_programs
from arrcomp._files.stored import _unreserved

pytest.importorskip("safetensors")
if not sys.platform.startswith("linux"):
    pytest.skip("memory is limited and measured as Linux does", allow_module_level=True)

ARRAY = """
import resource, sys
from pathlib import Path
import numpy as np
import arrcomp
from arrcomp import load_file, open_file, save_file

MIB = 1 << 20

def in_kib(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

folder = Path(sys.argv[1])
rows, columns = 64, 1 << 17  # 32 MiB in all
noise = np.random.default_rng(1).normal(size=columns).astype(np.float32)
written = np.memmap(folder / "x.raw", np.float32, "w+", shape=(rows, columns))
for i in range(rows):
    written[i] = noise + i
del written
x = np.memmap(folder / "x.raw", np.float32, "r", shape=(rows, columns))
save_file({"x": x[:1]}, folder / "small.safetensors", threads=1)  # imports all that it takes
load_file(folder / "small.safetensors", threads=1)
"""

PIECES = (
    ARRAY
    + """
from arrcomp._files import large

resource.setrlimit(resource.RLIMIT_DATA, (in_kib("VmData:") * 1024 + 16 * MIB, resource.RLIM_INFINITY))
for path in (folder / "x.safetensors", folder / "x.arrcomp"):
    try:
        save_file({"x": x}, path, threads=1, check_finite=True)
    except MemoryError:
        print("the whole does not fit")
large._LEAST_NBYTES, large._PIECE_NBYTES = 16 * MIB, 4 * MIB
for path in (folder / "x.safetensors", folder / "x.arrcomp"):
    save_file({"x": x}, path, threads=1, check_finite=True)
resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for path in (folder / "x.safetensors", folder / "x.arrcomp"):
    with open_file(path) as file:
        part = file.slice(file.names[0], threads=1)
        for i in range(rows):
            assert (part[i] == x[i]).all()
"""
)

GIBIBYTE = """
import resource, sys
from pathlib import Path
import numpy as np
import arrcomp

def in_kib(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

folder = Path(sys.argv[1])
x = np.memmap(folder / "x.raw", np.float32, "w+", shape=1 << 28)
x[-3:] = 1, 2, 3
arrcomp.save_file({"x": x[:10]}, folder / "x.safetensors", check_finite=True)
limit = in_kib("VmData:") * 1024 + (400 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
arrcomp.save_file({"x": x}, folder / "x.safetensors", arrcomp.ErrorBounded(abs=1e-3), check_finite=True)
with arrcomp.open_file(folder / "x.safetensors") as file:
    assert np.abs(file.slice("x")[-3:] - [1, 2, 3]).max() <= 1e-3
"""

SLICES = (
    ARRAY
    + """
save_file({"x": x}, folder / "x.safetensors", threads=1)
assert (folder / "x.safetensors").stat().st_size > 16 * MIB
with open_file(folder / "x.safetensors") as file:
    part, most, before = file.slice("x", threads=1), 0, in_kib("RssAnon:")
    for i in range(rows):
        assert (part[i] == x[i]).all()
        most = max(most, in_kib("RssAnon:") - before)
print(most)
"""
)


@pytest.mark.full
def test_an_array_is_saved_and_read_where_it_does_not_fit(tmp_path: Path) -> None:
    assert child_programs.run(PIECES, tmp_path) == "the whole does not fit\n" * 2


@pytest.mark.full
def test_a_mapped_gibibyte_is_saved_within_400_mebibytes(tmp_path: Path) -> None:
    child_programs.run(GIBIBYTE, tmp_path)


def test_slices_keep_nothing_in_memory(tmp_path: Path) -> None:
    assert int(child_programs.run(SLICES, tmp_path)) < 6 << 10  # KiB


def test_a_stream_of_more_bytes_than_memory_has_headers() -> None:
    memory = _unreserved(1 << 40)
    memory[[0, -1]] = 1, 2
    assert (memory.size, memory[0], memory[-1]) == (1 << 40, 1, 2)
