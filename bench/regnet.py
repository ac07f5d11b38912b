"""The parameters of RegNet-Y-32GF as they are before training: no download, no framework.

Widths and depths follow from the design parameters (I. Radosavovic et al., "Designing Network Design Spaces", CVPR
2020, sections 3.3 and 4): block j would have the width w_0 + w_a j, which becomes w_0 w_m^s with the nearest integer s,
and then whole groups. Initial values are torchvision's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

PARAMETERS = 145_046_770  # with 1000 classes, as torchvision publishes it

_DEPTH, _FIRST_WIDTH, _SLOPE, _RATIO = 20, 232, 115.89, 2.53
_GROUP, _SQUEEZE, _STEM, _CLASSES = 232, 0.25, 32, 1000

Layer = tuple[str, tuple[int, ...], str]


def parameters(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """All parameters by name, float32; the same for the same seed."""
    rng = np.random.default_rng(seed)
    arrays = {name: _initial(rng, shape, kind) for name, shape, kind in _layers()}
    assert sum(array.size for array in arrays.values()) == PARAMETERS
    return arrays


def _widths() -> list[int]:
    """The width of each block."""
    steps = [
        round(math.log((_FIRST_WIDTH + _SLOPE * block) / _FIRST_WIDTH) / math.log(_RATIO)) for block in range(_DEPTH)
    ]
    widths = [round(_FIRST_WIDTH * _RATIO**step / 8) * 8 for step in steps]
    return [max(1, round(width / _GROUP)) * _GROUP for width in widths]


def _layers() -> Iterator[Layer]:
    """Name, shape and kind of each parameter."""
    yield from _convolution("stem", (_STEM, 3, 3, 3))
    before = _STEM
    for number, width in enumerate(_widths()):
        block = f"block{number}"
        if width != before:
            yield from _convolution(f"{block}.proj", (width, before, 1, 1))
        yield from _convolution(f"{block}.a", (width, before, 1, 1))
        yield from _convolution(f"{block}.b", (width, _GROUP, 3, 3))
        squeezed = round(_SQUEEZE * before)
        yield f"{block}.se.fc1.weight", (squeezed, width, 1, 1), "convolution"
        yield f"{block}.se.fc1.bias", (squeezed,), f"bias {width}"
        yield f"{block}.se.fc2.weight", (width, squeezed, 1, 1), "convolution"
        yield f"{block}.se.fc2.bias", (width,), f"bias {squeezed}"
        yield from _convolution(f"{block}.c", (width, width, 1, 1))
        before = width
    yield "fc.weight", (_CLASSES, before), "linear"
    yield "fc.bias", (_CLASSES,), "zeros"


def _convolution(name: str, shape: tuple[int, ...]) -> Iterator[Layer]:
    """A convolution and its batch norm."""
    yield f"{name}.weight", shape, "convolution"
    yield f"{name}.norm.weight", shape[:1], "ones"
    yield f"{name}.norm.bias", shape[:1], "zeros"


def _initial(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> NDArray[np.float32]:
    if kind in ("ones", "zeros"):
        return np.full(shape, kind == "ones", np.float32)
    if kind.startswith("bias"):
        limit = 1 / math.sqrt(int(kind.split()[1]))
        return rng.uniform(-limit, limit, shape).astype(np.float32)
    outputs = shape[0] * math.prod(shape[2:])
    deviation = 0.01 if kind == "linear" else math.sqrt(2 / outputs)
    return rng.standard_normal(shape, np.float32) * np.float32(deviation)
