"""How the CUDA back end makes devices ready: all kernels once, no context elsewhere, again after a reset."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import child_programs
from arrcomp import _core

TESTS = Path(__file__).resolve().parent
NATIVE = TESTS.parent.parent / "native"
CUDA = NATIVE / "cuda"
FLAGS = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{TESTS / 'fake_cuda'}", f"-I{NATIVE}", "-pthread"]
SANITIZERS = {"none": [], "threads": ["-fsanitize=thread"], "memory": ["-fsanitize=address,undefined"]}
LAUNCH = re.compile(r"<<<|cuda_?Launch|cuLaunch", re.IGNORECASE)
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\(.*?\)\s+)?(\w+)\(")


def test_kernels_are_launched_in_one_place_which_lists_them() -> None:
    sources = {path.name: path.read_text() for path in CUDA.iterdir() if path.is_file()}
    launching = {name for name, text in sources.items() if LAUNCH.search(text.replace('#include "cuda/launch', ""))}
    assert launching == {"launch.cuh"}
    assert "&listed<kernel, shared_bytes_of_warp>" in sources["launch.cuh"]
    kernels = {name for text in sources.values() for name in KERNEL.findall(text)}
    assert len(kernels) > 20
    launches = [line for text in sources.values() for line in text.splitlines() if "__global__" not in line]
    for kernel in kernels:
        named = re.compile(rf"\b(?:launch(?:_with)?|run)<{kernel}\b|return {kernel}\b")
        assert any(named.search(line) for line in launches), f"{kernel} is never launched"


@pytest.mark.parametrize(
    "sanitizer", [pytest.param(s, marks=[pytest.mark.full] if s != "none" else []) for s in SANITIZERS]
)
def test_devices_are_made_ready_once_and_again_after_a_reset(sanitizer: str, tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None or platform.system() != "Linux":
        pytest.skip("no C++ compiler: set CXX")
    sources = [TESTS / "device_test.cpp", NATIVE / "codecs/grouped/rans_tables.cpp", "-x", "c++", CUDA / "device.cu"]
    program = tmp_path / "device_test"
    command = [*compiler.split(), *FLAGS, *SANITIZERS[sanitizer], *map(str, sources), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# Memory and contexts by the driver alone: a framework would not survive a reset, and makes contexts of its own.
DRIVER = """
import ctypes

import numpy as np

import arrcomp
from arrcomp import _core

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    assert result == 0, (name, result)


def make_current(device):
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)


def memory(nbytes, data=None):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
    if data is not None:
        call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(nbytes))
    return address


def encode(x, codec, device, outside):
    coding = (codec.id, codec.core_parameters(), arrcomp.compress(x, codec).spec.dtype.id)
    capacity = _core.capacity(*coding, x.size)
    source, payload, length = memory(x.nbytes, x), memory(capacity), memory(8)
    scratch = memory(1 << 30)
    call("cuCtxSetCurrent", None if outside else context)
    assert _core.cuda_encode_scratch(*coding, [x.size], device) <= 1 << 30
    arrays = [(source.value, payload.value, x.size)]
    _core.cuda_encode(*coding, arrays, length.value, 0, 0, (), (), scratch.value, 0, device)
    call("cuCtxSetCurrent", context)
    call("cuCtxSynchronize")
    nbytes = ctypes.c_uint64()
    call("cuMemcpyDtoH_v2", ctypes.byref(nbytes), length, ctypes.c_size_t(8))
    found = np.empty(nbytes.value, np.uint8)
    call("cuMemcpyDtoH_v2", ctypes.c_void_p(found.ctypes.data), payload, ctypes.c_size_t(found.nbytes))
    return found.tobytes()


call("cuInit", 0)
x = np.random.default_rng(3).normal(size=100_000).astype(np.float32)
codecs = [arrcomp.ErrorBounded(abs=1e-3), arrcomp.QSGD()]
"""

RESET = """
for codec in 3 * codecs:
    make_current(0)
    assert encode(x, codec, 0, outside=False) == bytes(arrcomp.compress(x, codec).host_payload())
    call("cuDevicePrimaryCtxReset_v2", 0)
print("the same")
"""

# The calling thread has no context, as one of a pool that has done nothing yet.
ELSEWHERE = """
make_current(1)
flags, active = ctypes.c_uint(), ctypes.c_int()
for codec in 2 * codecs:
    assert encode(x, codec, 1, outside=True) == bytes(arrcomp.compress(x, codec).host_payload())
    call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
    assert not active.value
print("the same")
"""


@pytest.mark.parametrize(("program", "devices"), [(RESET, 1), (ELSEWHERE, 2)], ids=["reset", "elsewhere"])
def test_a_gpu_works_after_a_reset_and_leaves_others_alone(program: str, devices: int) -> None:
    if _core.cuda_device_count() < devices:
        pytest.skip(f"arrcomp finds {_core.cuda_device_count()} CUDA devices")
    assert child_programs.run(DRIVER + program) == "the same\n"
