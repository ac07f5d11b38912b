"""The data types of the format (FORMAT.md, section 2): a table of ids, names and NumPy dtypes."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

MAX_DIMENSIONS = 64
MAX_VALUES = 1 << 60  # a payload has fewer elements

_NAMES = {
    1: "bool",
    2: "int8",
    3: "uint8",
    4: "int16",
    5: "uint16",
    6: "int32",
    7: "uint32",
    8: "int64",
    9: "uint64",
    10: "float16",
    11: "bfloat16",
    12: "float32",
    13: "float64",
    14: "complex64",
    15: "complex128",
    16: "float8_e4m3fn",
    17: "float8_e5m2",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2fnuz",
    20: "float8_e4m3b11fnuz",
    21: "float8_e4m3",
    22: "float8_e3m4",
    23: "float8_e8m0fnu",
    24: "float4_e2m1fn",
    25: "float6_e2m3fn",
    26: "float6_e3m2fn",
    27: "int4",
    28: "uint4",
}


@dataclass(frozen=True)
class DType:
    """One data type.

    Attributes:
        id: its number in a stream.
        name: its name in NumPy or ml_dtypes.
        numpy: the NumPy dtype, in native byte order.
        parts: elements of one value: 2 for complex values, else 1.
    """

    id: int
    name: str
    numpy: np.dtype[Any]
    parts: int

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return self.numpy.itemsize


def _row(number: int, name: str) -> DType:
    numpy = np.dtype(getattr(ml_dtypes, name, name))
    return DType(number, name, numpy, 2 if numpy.kind == "c" else 1)


_BY_ID = {number: _row(number, name) for number, name in _NAMES.items()}
_BY_NAME = {row.name: row for row in _BY_ID.values()}
_BY_NUMPY = {row.numpy: row for row in _BY_ID.values()}


def by_id(number: int) -> DType | None:
    """The data type with this id, or None."""
    return _BY_ID.get(number)


def by_name(name: str) -> DType:
    """The data type of this name.

    Raises:
        TypeError: the format has no such type.
    """
    row = _BY_NAME.get(name)
    if row is None:
        raise TypeError(f"dtype: expected {', '.join(_BY_NAME)}, got {name}")
    return row


def by_numpy(dtype: Any) -> DType:
    """The data type of a NumPy dtype of either byte order, or of an argument of `numpy.dtype`.

    Raises:
        TypeError: it is not a dtype, or the format has no such type.
    """
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    dtype = np.dtype(dtype)
    native = dtype if dtype.isnative or dtype.fields else dtype.newbyteorder("=")
    row = _BY_NUMPY.get(native)
    return by_name(str(dtype)) if row is None else row
