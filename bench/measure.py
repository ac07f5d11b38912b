"""Measures one compressor on one array in one setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from data import Setting, Subject
from harness.timing import median_seconds
from peers import Array, Compressor, Payload

_BLOCK = 2**20  # values whose error is looked at together


@dataclass(frozen=True)
class Result:
    """A line of the tables; the figures mean nothing where there is a `failure`.

    Attributes:
        array: name of the array.
        setting: label of the setting.
        compressor: name of the compressor.
        ratio: bytes of the array by bytes compressed.
        error: the largest error by the bound, in float64; None for lossless.
        broken: whether a value is outside the bound or, for lossless, a bit has changed.
        encode: GB/s of the array's bytes.
        decode: GB/s of the array's bytes.
        copy: GB/s of np.copyto on an array of the same size, measured beside it.
        failure: why there are no figures.
    """

    array: str
    setting: str
    compressor: str
    ratio: float = 0.0
    error: float | None = None
    broken: bool = False
    encode: float = 0.0
    decode: float = 0.0
    copy: float = 0.0
    failure: str | None = None


def measure(subject: Subject, setting: Setting, compressor: Compressor) -> Result:
    """Compress, decompress, compare and time; a failure becomes part of the result."""
    try:
        return _measure(subject, setting, compressor)
    except Exception as error:  # a peer may raise whatever it likes
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Result(subject.name, setting.label, compressor.name, failure=reason[:100])


def _measure(subject: Subject, setting: Setting, compressor: Compressor) -> Result:
    values, bound = subject.values, setting.bound or 0.0
    payload = compressor.compress(values, bound)
    out = np.zeros(values.shape, values.dtype)
    quality = quality_of(values, payload, compressor.decompress(payload, out), setting)
    target = np.ones(values.shape, values.dtype)
    np.copyto(target, values)
    copy = median_seconds(lambda: np.copyto(target, values))
    encode = median_seconds(lambda: compressor.compress(values, bound))
    decode = median_seconds(lambda: compressor.decompress(payload, out))
    return Result(
        array=subject.name,
        setting=setting.label,
        compressor=compressor.name,
        **quality,
        encode=values.nbytes / encode / 1e9,
        decode=values.nbytes / decode / 1e9,
        copy=values.nbytes / copy / 1e9,
    )


def quality_of(values: Array, payload: Payload, restored: Array, setting: Setting) -> dict[str, Any]:
    """The figures of a `Result` that every machine finds alike."""
    error = largest_error(values, restored, setting.bound)
    return {
        "ratio": values.nbytes / payload.nbytes,
        "error": error if setting.bound else None,
        "broken": not error <= 1,
    }


def largest_error(values: Array, restored: Array, bound: float | None) -> float:
    """The largest error by the bound; for lossless 0, or infinity where a bit differs."""
    if restored.shape != values.shape or restored.dtype != values.dtype:
        raise ValueError(f"came back as {restored.dtype} {restored.shape}")
    if bound is None:
        return 0.0 if np.array_equal(values.view(np.uint8), restored.view(np.uint8)) else float("inf")
    flat, back = values.reshape(-1), restored.reshape(-1)
    blocks = [slice(start, start + _BLOCK) for start in range(0, flat.size, _BLOCK)]
    worst = [np.max(np.abs(flat[block].astype(np.float64) - back[block].astype(np.float64))) for block in blocks]
    return float(np.max(worst)) / bound
