"""What the C library reads of a stream before its payload, with sanitizers, against Python's reader."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import arrcomp
import checks
import fuzz_headers
import small_streams

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("codebook_tables", "configuration", "float_formats", "json", "parameters", "stream", "xxh3")
FLAGS = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fsanitize=address,undefined"]


@pytest.mark.full  # compiles for seconds; tests/c has the law for the whole library
def test_the_c_library_reads_what_python_reads_and_no_byte_more(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: set CXX")
    program = str(tmp_path / "read")
    sources = [str(ROOT / "tests" / "fuzz" / "stream.cpp"), *(str(ROOT / "native" / "c" / f"{n}.cpp") for n in SOURCES)]
    command = [*compiler.split(), *FLAGS, "-fno-sanitize-recover=all", f"-I{ROOT / 'native'}", *sources, "-o", program]
    build = subprocess.run(command, capture_output=True, text=True)
    assert build.returncode == 0, build.stderr

    mutator, corpus = fuzz_headers.Mutator(23), fuzz_headers.seeds()
    streams = corpus + [mutator.mutated(corpus) for _ in range(5000)]
    streams += [stream[:size] for stream in corpus[::8] for size in range(0, len(stream), 5)]
    given = b"".join(struct.pack("<I", len(stream)) + stream for stream in streams)
    result = subprocess.run([program], input=given, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    read = [mark == "+" for mark in result.stdout.decode()]
    assert len(read) == len(streams)
    for stream, found in zip(streams, read, strict=True):
        # NaN is no JSON, but Python's reader takes it; a frame's own header is not read here.
        if b"NaN" not in stream and not (len(stream) > 32 and checks.is_framed(stream)):
            assert found == is_read_by_python(stream)
    assert 500 < sum(read) < len(read) - 500


def is_read_by_python(stream: bytes) -> bool:
    sealed = checks.seal(stream[:-8]) if len(stream) >= 32 else stream
    try:
        arrcomp.from_bytes(sealed)
    except small_streams.REFUSALS:
        return False
    return True
