"""SZ3 by pysz: absolute error mode, with its default predictors and with none."""

from __future__ import annotations

import numpy as np
from pysz import sz, szAlgorithm, szConfig, szErrorBoundMode

from . import Array, Kind, Payload


class Sz3:
    """SZ3 with one of its algorithms; it sees the array's shape."""

    kind: Kind = "bounded"

    def __init__(self, name: str, algorithm: int) -> None:
        self.name = name
        self._algorithm = algorithm

    def supports(self, array: Array) -> bool:
        return array.dtype in (np.float32, np.float64)

    def compress(self, array: Array, bound: float) -> Payload:
        config = szConfig(array.shape)
        config.errorBoundMode = szErrorBoundMode.ABS
        config.absErrorBound = bound
        config.cmprAlgo = self._algorithm
        config.openmp = False
        data, _ = sz.compress(array, config)
        return Payload(data, data.nbytes)

    def decompress(self, payload: Payload, out: Array) -> Array:
        return sz.decompress(payload.data, out.dtype, out.shape)[0]


COMPRESSORS = [Sz3("SZ3", szAlgorithm.INTERP_LORENZO), Sz3("SZ3 no predictor", szAlgorithm.NOPRED)]
