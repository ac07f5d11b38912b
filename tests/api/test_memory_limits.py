"""A limit of memory: a MemoryError says what was wanted, nothing is changed, and the process goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import arrcomp
import child_programs

if not sys.platform.startswith("linux"):
    pytest.skip("/proc tells how much memory a process has", allow_module_level=True)

# `limited(mib, call)` calls with so much more address space than the process has: that call alone.
LIMITING = """
import hashlib, re, resource, sys
from pathlib import Path
import numpy as np
import arrcomp

MIB = 1 << 20
HARD = resource.getrlimit(resource.RLIMIT_AS)[1]
BEFORE = resource.getrlimit(resource.RLIMIT_AS)[0]

def limited(mib, call):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + mib * MIB
    if HARD != resource.RLIM_INFINITY:
        most = min(most, HARD)
    resource.setrlimit(resource.RLIMIT_AS, (most, HARD))
    try:
        return call()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (BEFORE, HARD))

def check_refused(call, mib=1, told=r"\\d"):
    for _ in range(5):  # what ends, as threads do, may have had memory that counted
        try:
            limited(mib, call)
        except MemoryError as error:
            assert re.search(told, str(error)), repr(error)  # how much was wanted
            return
    raise AssertionError("there was memory enough")

def digest(x):
    return hashlib.sha256(x).hexdigest()

x = np.resize(np.random.default_rng(3).standard_normal(1 << 20, np.float32), 1 << 24)  # 64 MiB
small = x[:1000].copy()
"""

CALLS = (
    LIMITING
    + """
def check_codec(codec):
    expected = arrcomp.compress(small, codec, seed=1, threads=1).to_bytes()
    c = arrcomp.compress(x, codec, seed=1, threads=1)
    before, payload_before = digest(x), digest(c.host_payload())
    for threads in (1, 4):
        check_refused(lambda: arrcomp.compress(x, codec, seed=1, threads=threads))
        check_refused(lambda: arrcomp.decompress(c, threads=threads))
        check_refused(lambda: arrcomp.compress_many([small, x], codec, seed=1, threads=threads))
    check_refused(lambda: arrcomp.decompress_many([c, c], threads=1))
    assert digest(x) == before and digest(c.host_payload()) == payload_before
    again = limited(16, lambda: arrcomp.compress(small, codec, seed=1, threads=1))
    assert again.to_bytes() == expected
    limited(16, lambda: arrcomp.decompress(again, threads=1))

for kind in arrcomp.available_codecs().values():
    codec = kind.examples()[0]
    check_codec(codec)
    print(codec)
"""
)

CORE = (
    LIMITING
    + """
# Into memory that is there: what the core takes besides.
codec = arrcomp.QSGD(bits=8, coding="entropy")
out, back = np.empty(arrcomp.max_compressed_nbytes(x), np.uint8), np.empty_like(x)
out[:], back[:] = 0, 0
before = digest(x)
check_refused(lambda: arrcomp.compress(x, codec, out=out, threads=1), 8, "no memory for codes: ")
c = arrcomp.compress(x, codec, out=out, threads=1)
check_refused(lambda: arrcomp.decompress(c, out=back, threads=1), 8, "no memory for codes: ")
assert digest(x) == before
arrcomp.decompress(c, out=back, threads=1)

class Strided:  # some other library's array, which the core copies
    def __dlpack__(self, **options):
        return x.reshape(1 << 12, 1 << 12).T.__dlpack__()
    def __dlpack_device__(self):
        return (1, 0)

check_refused(lambda: arrcomp.compress(Strided(), threads=1), 8, "bytes|MiB")

# Threads that cannot be started: their work is done on the others.
expected = arrcomp.compress(x, threads=1).to_bytes()
for mib in (1, 2, 4, 8, 16, 32):
    try:
        c = limited(mib, lambda: arrcomp.compress(x, out=out, threads=16))
    except MemoryError:
        continue
    assert c.to_bytes() == expected
"""
)

FILES = (
    LIMITING
    + """
from arrcomp._files import Content, read_arrays, write_arrays

folder, suffix = Path(sys.argv[1]), sys.argv[2]
path, plain = folder / f"x{suffix}", folder / "plain.npy"
write_arrays(plain, Content({"x": x}))
arrcomp.save_file({"x": x}, path, threads=1)
name, = arrcomp.load_file(path, threads=1)
before = {each.name: digest(each.read_bytes()) for each in folder.iterdir()}
with arrcomp.open_file(path) as file:
    check_refused(lambda: arrcomp.save_file({"x": x}, path, threads=1))
    check_refused(lambda: file.load(name, threads=1))
    check_refused(lambda: file.compressed(name))
    arrays = read_arrays(plain).arrays
    check_refused(lambda: arrays["arr_0"])
    assert {each.name: digest(each.read_bytes()) for each in folder.iterdir()} == before
    assert np.array_equal(file.load(name, threads=1), x)
limited(16, lambda: arrcomp.save_file({"x": small}, path, threads=1))
assert np.array_equal(arrcomp.load_file(path, threads=1)[name], small)
"""
)


def test_compress_and_decompress_say_what_they_wanted_and_go_on() -> None:
    told = child_programs.run(CALLS).splitlines()
    assert len(told) == len(arrcomp.available_codecs())


def test_what_the_core_takes_besides_is_told() -> None:
    child_programs.run(CORE)


@pytest.mark.parametrize("suffix", [".arrcomp", ".safetensors"])
def test_files_stay_as_they_are(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("safetensors")
    child_programs.run(FILES, tmp_path, suffix)


def test_a_frame_says_that_there_is_no_memory(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    x = np.zeros(1 << 24, np.float32)
    (tmp_path / "x.arrcomp").write_bytes(arrcomp.compress(x, arrcomp.FloatFormat("fp32")).to_bytes(zstd_level=1))
    child_programs.run(FRAMED, tmp_path / "x.arrcomp")


FRAMED = (
    LIMITING
    + """
import zstandard
c = arrcomp.from_bytes(Path(sys.argv[1]).read_bytes())
check_refused(lambda: arrcomp.decompress(c, out=x, threads=1))
assert not arrcomp.decompress(c, threads=1).any()
# Into a frame, with the library's own memory: whichever of its parts finds none.
c = arrcomp.compress(np.resize(np.arange(7, dtype=np.float32), 1 << 22), arrcomp.FloatFormat("fp32"), threads=1)
expected, told = c.to_bytes(zstd_level=3, threads=1), 0
for mib in range(1, 20):
    try:
        assert limited(mib, lambda: c.to_bytes(zstd_level=3, threads=1)) == expected
    except MemoryError as error:
        told += "Zstandard frame" in str(error)
assert told
"""
)
