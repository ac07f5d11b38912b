"""Quantizers: relative error and speed, beside what people use now, on one thread.

`python bench/quantizers.py` prints the table; results.py puts it into RESULTS.md. Speeds are in GB/s of the float32
array, medians; "x copy" as in RESULTS.md. Buckets have 512 values. PyTorch's `quantize_per_channel` gets a row for each
bucket, with scales and zero points found by `aminmax`, which counts; NumPy's is the formula in float32. bitsandbytes
(on the CPU) and torchao are measured where they are installed; torchao's NF4 keeps its scales in 8 bits.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import arrcomp
from harness.tables import table
from harness.timing import Call, median_seconds

VALUES = 1 << 23
BUCKET = 512
_LISTED: tuple[arrcomp.Codec, ...] = (
    *(arrcomp.QSGD(bits=bits) for bits in (8, 4, 2, 1)),
    arrcomp.QSGD(bits=4, norm="l2"),
    arrcomp.QSGD(bits=4, bucket_size=100),
    arrcomp.QSGD(bits=4, coding="entropy"),
    arrcomp.QSGD(bits=8, rounding="stochastic"),
    arrcomp.QSGD(bits=4, rounding="stochastic"),
    arrcomp.Codebook.nf4(),
    arrcomp.Codebook.dynamic8(),
    arrcomp.S2FP8(),
    arrcomp.S2FP8(bucket_size=512),
    arrcomp.S2FP8(rounding="stochastic"),
    *(arrcomp.FloatFormat(name) for name in ("bf16", "fp8_e4m3", "mxfp8", "mxfp4", "nvfp4")),
    arrcomp.FloatFormat("fp8_e4m3", scaling="bucket"),
    arrcomp.FloatFormat("mxfp4", rounding="stochastic"),
    arrcomp.SmaQ(rounding="nearest"),
    arrcomp.SmaQ(),
)
_UNLISTED = [kind for kind in arrcomp.available_codecs().values() if not any(type(codec) is kind for codec in _LISTED)]
CODECS = (*_LISTED, *(codec for kind in _UNLISTED for codec in kind.examples() if codec.fixed_rate))
_ABOUT = """\
The array has 8.4 million float32 values of N(0, 0.02). One thread; buckets of 512 values unless stated otherwise.
`python bench/quantizers.py` prints only this table, and explains the other libraries."""


def name_of(codec: arrcomp.Codec) -> str:
    """What the tables call it."""
    return f"arrcomp {codec!r}"


def arrcomp_calls(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, Call, Call]]:
    """Name, quantization into memory allocated once, and what gives the values back."""
    for codec in CODECS:
        room, out = np.empty(arrcomp.max_compressed_nbytes(x), np.uint8), np.empty_like(x)

        def encode(codec: arrcomp.Codec = codec, room: Any = room) -> arrcomp.Compressed:
            return arrcomp.compress(x, codec, out=room, threads=1, seed=1)

        def decode(encode: Call = encode, out: Any = out, made: list[Any] = []) -> Any:  # noqa: B006 - kept on purpose
            made or made.append(encode())
            return arrcomp.decompress(made[0], out=out, threads=1)

        yield name_of(codec), encode, decode


def numpy_calls(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, Call, Call]]:
    """The formula with NumPy, 8 bits."""
    rows = x.reshape(-1, BUCKET)

    def encode() -> Any:
        low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
        unit = (high - low) / np.float32(255)
        return np.rint((rows - low) / unit).astype(np.uint8), unit, low

    codes, unit, low = encode()
    yield "NumPy, 8 bits", encode, lambda: codes * unit + low


def torch_calls(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, Call, Call]]:
    """PyTorch's own quantized tensors, 8 bits."""
    if not importlib.util.find_spec("torch"):
        return
    import torch

    torch.set_num_threads(1)
    rows = torch.from_numpy(x).reshape(-1, BUCKET)

    def encode() -> Any:
        low, high = torch.aminmax(rows, dim=1)
        unit = (high - low) / 255
        zero = torch.round(-low / unit)
        return torch.quantize_per_channel(rows, unit, zero, 0, torch.quint8)

    quantized = encode()
    yield "torch.quantize_per_channel", encode, quantized.dequantize


def bitsandbytes_calls(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, Call, Call]]:
    """The codebooks of bitsandbytes."""
    if not importlib.util.find_spec("bitsandbytes"):
        return
    import torch
    from bitsandbytes import functional

    torch.set_num_threads(1)
    values = torch.from_numpy(x)
    codes, state = functional.quantize_blockwise(values, blocksize=256)
    yield (
        "bitsandbytes dynamic 8 bits, 256",
        lambda: functional.quantize_blockwise(values, blocksize=256),
        lambda: functional.dequantize_blockwise(codes, state),
    )
    small, small_state = functional.quantize_4bit(values, blocksize=64, quant_type="nf4")
    yield (
        "bitsandbytes NF4, 64",
        lambda: functional.quantize_4bit(values, blocksize=64, quant_type="nf4"),
        lambda: functional.dequantize_4bit(small, small_state),
    )


def torchao_calls(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, Call, Call]]:
    """The NF4 tensor of torchao."""
    if not importlib.util.find_spec("torchao"):
        return
    import torch
    from torchao.quantization import to_nf4

    torch.set_num_threads(1)
    values = torch.from_numpy(x).reshape(-1, BUCKET)
    made = to_nf4(values, 64, 256)
    yield "torchao NF4, 64", lambda: to_nf4(values, 64, 256), made.get_original_weight


# Bits of a value with its share of the scales; of others with 8 bits and two numbers a bucket.
PEER_BITS = {
    "bitsandbytes dynamic 8 bits, 256": 8 + 32 / 256,
    "bitsandbytes NF4, 64": 4 + 32 / 64,
    "torchao NF4, 64": 4 + 8 / 64 + 32 / (64 * 256),
}


def measured(values: int = VALUES) -> dict[str, dict[str, float]]:
    """Figures of each quantizer on N(0, 0.02)."""
    x = np.random.default_rng(0).normal(0, 0.02, values).astype(np.float32)
    target = x.copy()
    found: dict[str, dict[str, float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that it will move its quantization elsewhere
        for calls in (arrcomp_calls, numpy_calls, torch_calls, bitsandbytes_calls, torchao_calls):
            for name, encode, decode in calls(x):
                copy = x.nbytes / median_seconds(lambda: np.copyto(target, x))
                made, back = encode(), np.asarray(decode()).reshape(-1)
                bits = PEER_BITS.get(name, 8 + 64 / BUCKET)
                if isinstance(made, arrcomp.Compressed):
                    bits = made.nbytes * 8 / x.size
                found[name] = {
                    "bits": bits,
                    "error": float(np.linalg.norm(back - x) / np.linalg.norm(x)),
                    "encode": x.nbytes / median_seconds(encode) / 1e9,
                    "decode": x.nbytes / median_seconds(decode) / 1e9,
                }
                found[name] |= {f"{half} x copy": found[name][half] * 1e9 / copy for half in ("encode", "decode")}
    return found


def section(found: Mapping[str, Mapping[str, float]]) -> str:
    """Fixed rates: bits, relative error and speed, as text."""
    rows = [[name, *(f"{value:.3g}" for value in figures.values())] for name, figures in found.items()]
    heads = ["bits a value", "relative error", "encode", "decode", "encode x copy", "decode x copy"]
    return f"{_ABOUT}\n\n" + table(["<quantizer", *heads], rows)


def main() -> int:
    """Measure and print."""
    print(section(measured()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
