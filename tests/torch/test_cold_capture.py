"""The first call of a process stands in a CUDA graph's capture: nothing may be loaded as late as that."""

from __future__ import annotations

import pytest

import child_programs
from arrcomp import _core

torch = pytest.importorskip("torch")

# Every codec that takes float32. What a replay writes must be the CPU's bytes.
PROGRAM = """
import torch

import arrcomp
import arrcomp.torch


def examples():
    for kind in arrcomp.available_codecs().values():
        for codec in kind.examples():
            try:
                arrcomp.torch.compress(values, codec, seed=0 if codec.needs_seed else None)
            except TypeError:
                continue  # not for floats
            yield codec


values = torch.randn(50_000, generator=torch.Generator().manual_seed(7))
x, seed = values.cuda(), torch.tensor(3, device="cuda")
codecs = list(examples())
assert len(codecs) > 10
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    made = [arrcomp.torch.compress(x, codec, seed=seed if codec.needs_seed else None) for codec in codecs]
    arrays = [arrcomp.torch.decompress(c) for c in made]
for factor in (1.0, 3.0):
    x.copy_(values * factor)
    graph.replay()
    for codec, c, array in zip(codecs, made, arrays, strict=True):
        host = arrcomp.torch.compress(values * factor, codec, seed=3 if codec.needs_seed else None)
        assert arrcomp.Compressed(c.spec, c.payload.copy()).to_bytes() == host.to_bytes(), codec
        assert torch.equal(array.cpu(), arrcomp.torch.decompress(host)), codec
print("the same")
"""


def test_a_first_call_is_captured() -> None:
    if _core.cuda_device_count() == 0:
        pytest.skip("arrcomp finds no CUDA device")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no CUDA device")
    assert child_programs.run(PROGRAM) == "the same\n"
