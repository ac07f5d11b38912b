"""OpenZL: floats by their exponents' codes, other numbers by its general graph, lossless."""

from __future__ import annotations

from typing import Any

import numpy as np
from openzl import ext as openzl

from . import Array, Kind, Payload, as_unsigned

_DECONSTRUCT = {
    "float32": openzl.nodes.Float32Deconstruct,
    "float16": openzl.nodes.Float16Deconstruct,
    "bfloat16": openzl.nodes.BFloat16Deconstruct,
}


class OpenZL:
    """Every bit kept: signs and fractions as they are, exponents by one of its entropy coders."""

    kind: Kind = "lossless"

    def __init__(self, name: str, coder: Any, *others: str) -> None:
        self.name = name
        self._coder = coder
        self._dtypes = {*_DECONSTRUCT, *others}
        self._compressors: dict[str, Any] = {}
        self._decompressor = openzl.DCtx()

    def supports(self, array: Array) -> bool:
        return array.dtype.name in self._dtypes

    def compress(self, array: Array, bound: float) -> Payload:
        context = openzl.CCtx()  # it forgets what it was told after each array
        context.ref_compressor(self._compressor(array.dtype.name))
        context.set_parameter(openzl.CParam.FormatVersion, openzl.MAX_FORMAT_VERSION)
        data = context.compress([openzl.Input(openzl.Type.Numeric, as_unsigned(array).reshape(-1))])
        return Payload(data, len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        (found,) = self._decompressor.decompress(payload.data)
        return np.asarray(found.content.as_nparray()).view(out.dtype).reshape(out.shape)

    def _compressor(self, dtype: str) -> Any:
        if dtype not in self._compressors:
            made = self._compressors[dtype] = openzl.Compressor()
            if dtype in _DECONSTRUCT:
                store = openzl.graphs.Store()(made)
                graph = _DECONSTRUCT[dtype]()(made, sign_frac=store, exponent=self._coder()(made))
            else:
                graph = openzl.graphs.Compress()(made)
            made.select_starting_graph(graph)
        return self._compressors[dtype]


_OTHERS = ("float64", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
COMPRESSORS = [OpenZL("openzl", openzl.graphs.Fse, *_OTHERS), OpenZL("openzl, Huffman", openzl.graphs.Huffman)]
