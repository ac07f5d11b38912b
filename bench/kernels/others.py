"""What a user would pick instead on a GPU: PyTorch's casts, and torchao, bitsandbytes and nvCOMP where they import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from kernels.device import Gpu

Array = NDArray[Any]
BUCKET = 512


@dataclass(frozen=True)
class Pair:
    """How a library encodes a float32 tensor, what gives it back, and how many bytes are kept."""

    encode: Callable[[], Any]
    decode: Callable[[Any], Any]
    nbytes: Callable[[Any], int]


def _tensors_nbytes(kept: Any) -> int:
    if isinstance(kept, tuple):
        return sum(_tensors_nbytes(part) for part in kept)
    return int(kept.numel() * kept.element_size()) if hasattr(kept, "element_size") else 0


def _cast(name: str) -> Callable[[Any], Pair]:
    def pair(x: Any) -> Pair:
        import torch

        return Pair(lambda: x.to(getattr(torch, name)), lambda kept: kept.to(torch.float32), _tensors_nbytes)

    return pair


def _scaled_float8(x: Any) -> Pair:
    import torch

    def encode() -> Any:
        scale = x.abs().amax() / 448
        return (x / scale).to(torch.float8_e4m3fn), scale

    return Pair(encode, lambda kept: kept[0].to(torch.float32) * kept[1], _tensors_nbytes)


def _int8_buckets(x: Any) -> Pair:
    import torch

    def encode() -> Any:
        rows = x.view(-1, BUCKET)
        scale = rows.abs().amax(dim=1, keepdim=True) / 127
        return (rows / scale).round().to(torch.int8), scale

    return Pair(encode, lambda kept: (kept[0].to(torch.float32) * kept[1]).view(-1), _tensors_nbytes)


def _torchao_nf4(x: Any) -> Pair:
    from torchao.dtypes.nf4tensor import to_nf4

    def nbytes(kept: Any) -> int:
        parts = (kept.quantized_data, kept.quantized_scalers, kept.quantization_factor)
        return sum(_tensors_nbytes(part) for part in parts)

    return Pair(
        lambda: to_nf4(x.view(-1, BUCKET), 64, 256), lambda kept: kept.get_original_weight().reshape(-1), nbytes
    )


def _bitsandbytes_nf4(x: Any) -> Pair:
    from bitsandbytes import functional

    return Pair(
        lambda: functional.quantize_4bit(x, blocksize=64, quant_type="nf4"),
        lambda kept: functional.dequantize_4bit(*kept),
        lambda kept: _tensors_nbytes(kept[0]) + _tensors_nbytes(kept[1].absmax),
    )


def _bitsandbytes_dynamic8(x: Any) -> Pair:
    from bitsandbytes import functional

    return Pair(
        lambda: functional.quantize_blockwise(x, blocksize=256),
        lambda kept: functional.dequantize_blockwise(*kept),
        lambda kept: _tensors_nbytes(kept[0]) + _tensors_nbytes(kept[1].absmax),
    )


def _nvcomp(algorithm: str) -> Callable[[Any], Pair]:
    def pair(x: Any) -> Pair:
        import torch
        from nvidia import nvcomp

        codec = nvcomp.Codec(algorithm=algorithm)
        source = nvcomp.as_array(x.view(torch.uint8))

        def decode(kept: Any) -> Any:
            return torch.from_dlpack(codec.decode(kept, "|u1")).view(torch.float32)

        return Pair(lambda: codec.encode(source), decode, lambda kept: int(kept.buffer_size))

    return pair


# By name: what makes a pair of calls for a tensor.
OTHERS: dict[str, Callable[[Any], Pair]] = {
    "torch .to(bfloat16)": _cast("bfloat16"),
    "torch .to(float8_e4m3fn)": _cast("float8_e4m3fn"),
    "torch float8_e4m3fn, a scale": _scaled_float8,
    "torch int8, a scale for 512": _int8_buckets,
    "torchao NF4, 64": _torchao_nf4,
    "bitsandbytes NF4, 64": _bitsandbytes_nf4,
    "bitsandbytes dynamic 8 bits, 256": _bitsandbytes_dynamic8,
    "nvCOMP ANS": _nvcomp("ANS"),
    "nvCOMP Bitcomp": _nvcomp("Bitcomp"),
    "nvCOMP Zstd": _nvcomp("Zstd"),
}


def _on_device(gpu: Gpu, values: Array) -> Any:
    import torch

    x = torch.from_numpy(values)
    return x.to(f"cuda:{gpu.framework.index}") if hasattr(gpu.framework, "torch") else x


def measure(gpu: Gpu, name: str, values: Array) -> dict[str, Any]:
    """Time one of them; the line says why where it is missing or fails: it is not ours."""
    line: dict[str, Any] = {"kind": "other", "other": name, "nbytes": values.nbytes}
    try:
        return line | _measured(gpu, name, values)
    except Exception as error:  # whatever another library raises
        return line | {"missing": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"}


def _measured(gpu: Gpu, name: str, values: Array) -> dict[str, Any]:
    x = _on_device(gpu, values)
    pair = OTHERS[name](x)
    kept = pair.encode()
    back = pair.decode(kept).double().view(-1)
    nbytes = pair.nbytes(kept)
    error = float((back - x.double()).norm() / x.double().norm())
    found: dict[str, Any] = {"payload_nbytes": nbytes, "ratio": values.nbytes / nbytes, "error": error}
    for half, work in (("encode", pair.encode), ("decode", lambda: pair.decode(kept))):
        timing = gpu.time([work])
        speed = {"bytes_per_second": values.nbytes / timing["seconds"]}
        found[half] = timing | speed | {"moved": (values.nbytes + nbytes) / timing["seconds"]}
    return found
