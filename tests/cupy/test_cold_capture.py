"""The first call of a process stands in a CUDA graph's capture: nothing may be loaded as late as that."""

from __future__ import annotations

import pytest

import child_programs
from cupy_fixtures import has_gpu

# What a replay writes must be the CPU's bytes. CuPy's pool asks the driver for no memory within the capture.
PROGRAM = """
import cupy
import numpy as np

import arrcomp
import arrcomp.cupy

values = np.random.default_rng(7).normal(size=50_000).astype(np.float32)
bounded = [arrcomp.ErrorBounded(rel=1e-3), arrcomp.ErrorBounded(abs=1e-2, speed="fast")]
codecs = [arrcomp.Lossless(), *bounded, arrcomp.QSGD()]
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    x = cupy.asarray(values)
    room = cupy.empty(256 << 20, cupy.uint8)
    del room
    stream.synchronize()
    stream.begin_capture(cupy.cuda.runtime.streamCaptureModeGlobal)
    made = [arrcomp.cupy.compress(x, codec) for codec in codecs]
    arrays = [arrcomp.cupy.decompress(c) for c in made]
    graph = stream.end_capture()
for factor in (1, 3):
    with stream:
        x.set(values * np.float32(factor))
        graph.launch(stream)
    stream.synchronize()
    for codec, c, array in zip(codecs, made, arrays, strict=True):
        host = arrcomp.compress(values * np.float32(factor), codec)
        assert arrcomp.Compressed(c.spec, c.payload.copy()).to_bytes() == host.to_bytes(), codec
        assert cupy.asnumpy(array).tobytes() == arrcomp.decompress(host).tobytes(), codec
print("the same")
"""


def test_a_first_call_is_captured() -> None:
    if not has_gpu():
        pytest.skip("CuPy or arrcomp finds no CUDA device")
    assert child_programs.run(PROGRAM) == "the same\n"
