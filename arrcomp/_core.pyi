"""The compiled core. Byte buffers are C-contiguous one-dimensional uint8 arrays of any alignment.

`elements` counts the parts of complex values (FORMAT.md, section 2), `dtype_id` is that section's id. `bound_kind` is
0 lossless, 1 absolute, 2 relative to the range, 3 relative to each value. All calls release the GIL.
"""

from numpy import uint8
from numpy.typing import NDArray

def capacity(dtype_id: int, elements: int) -> int:
    """Bytes of the longest payload."""

def encode(
    dtype_id: int,
    source: NDArray[uint8],
    elements: int,
    bound_kind: int,
    bound: float,
    fast: bool,
    out: NDArray[uint8],
    threads: int,
) -> int:
    """Write a payload at the start of `out`, which has at least `capacity` bytes, and return its length.

    `source` may be read-only.
    """

def decode(dtype_id: int, payload: NDArray[uint8], elements: int, out: NDArray[uint8], threads: int) -> None:
    """Write the elements' bytes, exactly all of `out`. `payload` may be read-only, and hostile.

    Raises:
        arrcomp.errors.CorruptStreamError: the payload is not one of so many elements of this type.
    """

def import_dlpack(x: object) -> tuple[NDArray[uint8], str, tuple[int, ...]]:
    """Bytes, dtype name and shape of an array in host memory.

    The bytes are read-only and keep `x` alive; they are a copy where `x` is not C-contiguous.

    Raises:
        TypeError: the format has no such data type.
    """

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> None: ...
def cuda_built() -> bool: ...
def cuda_device_count() -> int: ...
def cuda_scratch(dtype_id: int, elements: int, device: int) -> int:
    """Bytes of device memory that `encode_cuda` needs beside its output."""

def encode_cuda(
    dtype_id: int,
    source_pointer: int,
    elements: int,
    bound_kind: int,
    bound: float,
    fast: bool,
    out_pointer: int,
    scratch_pointer: int,
    stream: int,
    device: int,
) -> None:
    """Enqueue encoding. Afterwards the scratch begins with the payload's length (uint64) and a status (uint32)."""

def decode_cuda(
    dtype_id: int,
    payload_pointer: int,
    payload_nbytes: int,
    elements: int,
    out_pointer: int,
    status_pointer: int,
    stream: int,
    device: int,
) -> None:
    """Enqueue decoding. Afterwards the status (uint32) is not 0 if the payload is corrupt."""
