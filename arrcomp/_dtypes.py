"""The data types of the format (FORMAT.md, section 2): a table of ids, names and NumPy dtypes."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ._arguments import shortened, wrong_type

Bytes = NDArray[np.uint8]

MAX_DIMENSIONS = 64
MAX_VALUES = 1 << 60  # a payload has fewer elements

_NAMES = (  # from id 1 on
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"),
    *("float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"),
    *("int4", "uint4"),
)


@dataclass(frozen=True)
class DType:
    """A data type: its number in a stream, its name in NumPy or ml_dtypes, and its NumPy dtype in native byte order.

    `parts` is the number of elements of one value: 2 for complex values, else 1.
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


_BY_ID = {number: _row(number, name) for number, name in enumerate(_NAMES, 1)}
_BY_NAME = {row.name: row for row in _BY_ID.values()}
_BY_NUMPY = {row.numpy: row for row in _BY_ID.values()}


def by_id(number: int) -> DType | None:
    """The data type with this id, or None."""
    return _BY_ID.get(number)


def by_name(name: str) -> DType:
    """The data type of this name; raises TypeError where the format has none."""
    row = _BY_NAME.get(name)
    if row is None:
        raise _unknown(name)
    return row


def by_numpy(dtype: Any) -> DType:
    """The data type of a NumPy dtype of either byte order, or of an argument of `numpy.dtype`.

    Raises TypeError where it is not a dtype, or the format has no such type.
    """
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    try:
        dtype = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        raise wrong_type("dtype", "a NumPy dtype or its name", dtype) from None
    row = _BY_NUMPY.get(native(dtype))
    if row is None:
        raise _unknown(str(dtype), _way_out(dtype))
    return row


def _unknown(name: str, hint: str = "") -> TypeError:
    return TypeError(f"dtype: expected {', '.join(_BY_NAME)}, got {shortened(name)}{hint}")


def _way_out(dtype: np.dtype[Any]) -> str:
    """What to do with arrays of a NumPy dtype that the format lacks."""
    if dtype.kind in "mM":
        return "; .view('int64') makes integers of the same bits"
    if dtype.fields:
        return "; pass its fields one by one"
    fewer = {np.longdouble: "float64", np.clongdouble: "complex128"}.get(dtype.type)
    return "" if fewer is None else f"; .astype('{fewer}') has fewer bits"


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A NumPy dtype in native byte order; one of fields as it is."""
    return dtype if dtype.isnative or dtype.fields else dtype.newbyteorder("=")
