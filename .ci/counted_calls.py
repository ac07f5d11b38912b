"""The calls whose instructions check_instructions.py counts; it runs this file under callgrind.

Usage: counted_calls.py LIBRARY    (the compiled `check_instructions.MARKS`)
"""

import ctypes
import sys

import ml_dtypes
import numpy as np

from arrcomp import (
    QSGD,
    S2FP8,
    BaseDelta,
    Codebook,
    ErrorBounded,
    FloatFormat,
    Lossless,
    SmaQ,
    _core,
    _dtypes,
    activations,
    available_codecs,
    cpu,
)

VALUES = 1 << 16
TYPES = (np.float32, ml_dtypes.bfloat16)
LISTED = (
    *(Lossless(speed=speed) for speed in ("default", "fast")),
    *(ErrorBounded(abs=1e-3, speed=speed) for speed in ("default", "fast")),
    ErrorBounded(pointwise=1e-2),
    *(QSGD(bits=bits, rounding=rounding) for bits in (8, 4, 2, 1) for rounding in ("nearest", "stochastic")),
    *(QSGD(norm="l2"), QSGD(bucket_size=100), QSGD(coding="entropy")),
    *(SmaQ(rounding="nearest"), SmaQ()),
    *(FloatFormat(name) for name in ("bf16", "fp8_e4m3", "mxfp8", "mxfp4", "nvfp4")),
    *(FloatFormat(name, rounding="stochastic") for name in ("fp8_e4m3", "mxfp4")),
    FloatFormat("fp8_e4m3", scaling="bucket"),
    *(S2FP8(), S2FP8(bucket_size=512), S2FP8(rounding="stochastic")),
    *(Codebook.nf4(), Codebook.dynamic8()),
    *(BaseDelta(), BaseDelta(drop_bits=4), BaseDelta(drop_bits=4, rounding="stochastic")),
)
UNLISTED = [kind for kind in available_codecs().values() if not any(type(codec) is kind for codec in LISTED)]
CODECS = (*LISTED, *(codec for kind in UNLISTED for codec in kind.examples()))
ACTIVATIONS = (("relu", 1), ("gelu", 3), ("tanh", 3), ("silu", 8))


def codec_calls(codec, x):
    """Returns {direction: call}: a codec on memory that is there."""
    coding = (codec.id, codec.core_parameters(), _dtypes.by_numpy(x.dtype).id)
    capacity = _core.capacity(*coding, x.size)
    arrays = (x.view(np.uint8), np.zeros(capacity, np.uint8), np.zeros(1, np.uint64), np.zeros(x.nbytes, np.uint8))

    def encode():
        source, payload, length, _ = map(_core.address, arrays)
        _core.encode_at(*coding, [(source, payload, x.size)], length, 1, 0, 1, (), ())

    def decode():
        _, payload, length, target = map(_core.address, arrays)
        assert _core.decode_at(*coding, [(payload, capacity, length, target, x.size)], 1, ()) == -1

    return {"encode": encode, "decode": decode}


def activation_calls(name, bits, x):
    """Returns {direction: call}: an activation, and gradients times its steps."""
    parameters = activations.activation(name).defaults
    steps = activations.steps_of(name, parameters, bits).core_parameters()
    arrays = (x, np.zeros_like(x), np.zeros(_core.step_bytes(steps, x.size), np.uint8))
    dtype = _dtypes.by_numpy(x.dtype).id

    def forward():
        source, target, kept = map(_core.address, arrays)
        _core.activate_at(name, parameters, steps, dtype, source, target, kept, x.size, 1)

    def backward():
        source, target, kept = map(_core.address, arrays)
        _core.step_grad_at(steps, dtype, kept, source, target, x.size, 1)

    return {"forward": forward, "backward": backward}


def cases():
    """Yields (name, {direction: call})."""
    weights = 0.02 * np.random.default_rng(0).standard_normal(VALUES, np.float32)
    for kind in TYPES:
        x = weights.astype(kind)
        for codec in CODECS:
            yield f"{codec!r}, {x.dtype}", codec_calls(codec, x)
        for name, bits in ACTIVATIONS:
            yield f"{name} of {bits} bits, {x.dtype}", activation_calls(name, bits, 50 * x)


def main():
    """Run each call once with the fastest instruction set, between marks that callgrind sees."""
    marks = ctypes.CDLL(sys.argv[1])
    everything = list(cases())
    instruction_set = cpu.instruction_sets()[0]
    for _, calls in everything:
        for call in calls.values():
            call()  # what is made once, is
    marks.start()
    for name, calls in everything:
        for direction, call in calls.items():
            marks.begin()
            call()
            marks.end(f"{instruction_set}: {name}: {direction}".encode())


if __name__ == "__main__":
    main()
