"""Section 2: data types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Dtype:
    """One row of the table: bits of a payload's element, and of a float its exponent and mantissa bits (else 0)."""

    name: str
    bits: int
    exponent: int = 0
    mantissa: int = 0
    parts: int = 1

    @property
    def word(self) -> int:
        """W' of section 3.2: bits of a chunk's word."""
        return 64 if self.bits == 64 else 32

    @property
    def quantizable(self) -> bool:
        """Whether section 3.4 allows transform 0."""
        return self.bits >= 16 and self.exponent > 0

    @property
    def predictable(self) -> bool:
        """Whether section 9 predicts such elements."""
        return self.quantizable or self.exponent == 0

    @property
    def half_range(self) -> int:
        """What section 9 takes off an unsigned integer."""
        return 0 if self.name.startswith("int") else 1 << self.bits - 1

    @property
    def arithmetic(self) -> type[Any]:
        """The arithmetic type, float64 or float32."""
        return np.float64 if self.bits == 64 else np.float32

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's data type, or that of ml_dtypes by this name."""
        try:
            return np.dtype(self.name)
        except TypeError:
            import ml_dtypes

            named: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.name))
            return named


DTYPES = {
    1: Dtype("bool", 8),
    2: Dtype("int8", 8),
    3: Dtype("uint8", 8),
    4: Dtype("int16", 16),
    5: Dtype("uint16", 16),
    6: Dtype("int32", 32),
    7: Dtype("uint32", 32),
    8: Dtype("int64", 64),
    9: Dtype("uint64", 64),
    10: Dtype("float16", 16, 5, 10),
    11: Dtype("bfloat16", 16, 8, 7),
    12: Dtype("float32", 32, 8, 23),
    13: Dtype("float64", 64, 11, 52),
    14: Dtype("complex64", 32, 8, 23, parts=2),
    15: Dtype("complex128", 64, 11, 52, parts=2),
    16: Dtype("float8_e4m3fn", 8, 4, 3),
    17: Dtype("float8_e5m2", 8, 5, 2),
    18: Dtype("float8_e4m3fnuz", 8, 4, 3),
    19: Dtype("float8_e5m2fnuz", 8, 5, 2),
    20: Dtype("float8_e4m3b11fnuz", 8, 4, 3),
    21: Dtype("float8_e4m3", 8, 4, 3),
    22: Dtype("float8_e3m4", 8, 3, 4),
    23: Dtype("float8_e8m0fnu", 8),
    24: Dtype("float4_e2m1fn", 8),
    25: Dtype("float6_e2m3fn", 8),
    26: Dtype("float6_e3m2fn", 8),
    27: Dtype("int4", 8),
    28: Dtype("uint4", 8),
}
UINT8 = DTYPES[3]
