"""The compiled core. Byte buffers are C-contiguous one-dimensional uint8 arrays of any alignment.

`elements` counts the parts of complex values (FORMAT.md, section 2), `dtype_id` is that section's id. `codec_id` is a
codec's id in streams, `parameters` what its `core_parameters` gives. `threads` is 0 for all cores that the process may
use. All calls that code release the GIL.

Functions that take addresses check nothing about the memory there. Payloads and lengths are aligned to 8 bytes.
"""

from collections.abc import Sequence
from typing import Any

from numpy import uint8
from numpy.typing import NDArray

def address(buffer: object) -> int:
    """Where the memory of an object with the buffer protocol begins; it is contiguous, and may be read-only."""

def codec_table() -> list[tuple[int, str, str, tuple[str, ...]]]:
    """Id, name, family ("grouped" or "bucketed") and names of the parameters, in their order, of each codec."""

def codec_properties(codec_id: int, parameters: Sequence[float]) -> tuple[tuple[int, ...], bool, bool]:
    """Ids of the data types that a codec takes, whether its rate is fixed, and whether its payloads can be added.

    Raises:
        ValueError: there is no codec with these parameters.
    """

def capacity(codec_id: int, parameters: Sequence[float], dtype_id: int, elements: int) -> int:
    """Bytes of the longest payload; of every payload, if the codec's rate is fixed."""

def min_length(codec_id: int, parameters: Sequence[float], dtype_id: int, elements: int) -> int:
    """Bytes of the shortest payload."""

def capacity_terms(codec_id: int, parameters: Sequence[float], dtype_id: int) -> list[tuple[int, int, int, int]]:
    """The capacity as a sum, for numbers of elements that are symbols; empty where it is no such sum.

    (inner, multiplier, outer, nbytes) stands for nbytes * ceil(ceil(elements / inner) * multiplier / outer), and with 0
    for `inner` for nbytes.
    """

def check_payload(
    codec_id: int, parameters: Sequence[float], dtype_id: int, payload: NDArray[uint8], elements: int
) -> None:
    """Check a payload's length, header and directory, without memory for the array.

    `payload` may be read-only, and hostile.

    Raises:
        arrcomp.errors.CorruptStreamError: one of them is not that of so many elements of this type; the message names
            it as FORMAT.md does.
    """

def directory_ranges(
    codec_id: int, parameters: Sequence[float], dtype_id: int, nbytes: int, elements: int
) -> list[tuple[int, int]]:
    """Begin and end of the bytes that `payload_ranges` reads of any payload of `nbytes`: its header and directory."""

def payload_ranges(
    codec_id: int,
    parameters: Sequence[float],
    dtype_id: int,
    payload: NDArray[uint8],
    elements: int,
    first: int,
    nbytes: int,
) -> list[tuple[int, int]]:
    """Begin and end of the other bytes that `decode_range` reads; none if header or directory are corrupt.

    Reads no more of `payload` than what `directory_ranges` gives. The range is `nbytes` from the element `first` on.
    """

def decode_range(
    codec_id: int,
    parameters: Sequence[float],
    dtype_id: int,
    payload: NDArray[uint8],
    elements: int,
    first: int,
    out: NDArray[uint8],
    threads: int,
) -> None:
    """Write the bytes of the elements from `first` on, as many as `out` holds, of a payload of `elements`.

    Only the groups or chunks that have them are decoded, and header and directory are read. `payload` may be read-only,
    and hostile.

    Raises:
        arrcomp.errors.CorruptStreamError: the payload is corrupt.
        ValueError: these elements are not there, or `out` has no whole number of them.
    """

def encode_at(
    codec_id: int,
    parameters: Sequence[float],
    dtype_id: int,
    arrays: Sequence[tuple[int, int, int]],
    lengths: int,
    seed: int,
    seed_at: int,
    threads: int,
    shapes: Sequence[Sequence[int]],
    references: Sequence[int],
) -> None:
    """Encode arrays in host memory, each (address, address of `capacity` bytes for its payload, elements).

    The payloads' lengths (uint64) go to the address `lengths`. If `seed_at` is not 0, the seed is the uint64 there.
    `shapes` are those of the arrays, which predictors need, or none. `references` are the addresses of the arrays'
    references, if the codec has the predictor "reference".
    """

def decode_at(
    codec_id: int,
    parameters: Sequence[float],
    dtype_id: int,
    arrays: Sequence[tuple[int, int, int, int, int]],
    threads: int,
    references: Sequence[int],
) -> int:
    """Decode payloads in host memory, each (address, bytes there, address of its length or 0, target, elements).

    A length (uint64) tells how many of the bytes are the payload; with 0 for its address, all are. `references` are
    those of `encode_at`, and may be the targets. Returns the index of the first payload that is corrupt, or -1. Raises
    WrongReferenceError before anything is written.
    """

def content_hash(dtype_id: int, array: int, elements: int, threads: int) -> int:
    """The hash of an array in host memory as a reference, by its address."""

def accumulate_at(
    codec: tuple[int, Sequence[float]],
    dtype_id: int,
    terms: Sequence[tuple[int, int, int, float]],
    elements: int,
    target: int,
    threads: int,
) -> int:
    """Add payloads in host memory, each (address, bytes there, address of its length, weight), to an array.

    A codec is its id and parameters. The address of a length and what is returned are the same as in `decode_at`.

    Raises:
        ValueError: payloads of the codec cannot be added.
    """

def encode_sum_at(
    codec: tuple[int, Sequence[float]],
    dtype_id: int,
    terms: Sequence[tuple[int, int, int, float]],
    elements: int,
    result: tuple[int, Sequence[float]],
    payload: int,
    length: int,
    seed: int,
    seed_at: int,
    threads: int,
) -> int:
    """Encode the sum of payloads with the codec `result`.

    Terms and what is returned are the same as in `accumulate_at`. The payload
    goes to an address with its capacity. Its length and the seed are the same as in `encode_at`.
    """

def import_dlpack(x: object) -> tuple[NDArray[uint8], str, tuple[int, ...]]:
    """Bytes, dtype name and shape of an array in host memory.

    The bytes are read-only and keep `x` alive; they are a copy where `x` is not C-contiguous.

    Raises:
        TypeError: the format has no such data type.
        BufferError: it is not in host memory, or of a newer major version of DLPack.
        The producer's own exceptions come through.
    """

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def missing_instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...
def available_threads() -> int:
    """Cores that this process may use."""

def xla_handlers() -> dict[str, dict[str, Any]]:
    """XLA FFI handlers as capsules, by target and platform."""

def cuda_built() -> bool: ...
def cuda_device_count() -> int: ...
def cuda_encode_scratch(
    codec_id: int, parameters: Sequence[float], dtype_id: int, elements: Sequence[int], device: int
) -> int:
    """Bytes of device memory that `cuda_encode` needs beside its output."""

def cuda_encode(
    codec_id: int,
    parameters: Sequence[float],
    dtype_id: int,
    arrays: Sequence[tuple[int, int, int]],
    lengths: int,
    seed: int,
    seed_at: int,
    shapes: Sequence[Sequence[int]],
    references: Sequence[int],
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`encode_at` with device memory, enqueued.

    Scratch memory is aligned to 256 bytes, arrays to their elements.
    """

def cuda_decode_scratch(codec_id: int, parameters: Sequence[float], dtype_id: int, elements: Sequence[int]) -> int:
    """Bytes of device memory that `cuda_decode` needs beside its output."""

def cuda_decode(
    codec_id: int,
    parameters: Sequence[float],
    dtype_id: int,
    arrays: Sequence[tuple[int, int, int, int, int]],
    status: int,
    references: Sequence[int],
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`decode_at` with device memory, enqueued. Then the status (uint32) is not 0 if a payload is corrupt."""

def cuda_accumulate_scratch(terms: int) -> int:
    """Bytes of device memory that `cuda_accumulate` needs for so many terms."""

def cuda_accumulate(
    codec: tuple[int, Sequence[float]],
    dtype_id: int,
    terms: Sequence[tuple[int, int, int, float]],
    elements: int,
    target: int,
    status: int,
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`accumulate_at` with device memory, enqueued. The status is the same as in `cuda_decode`."""

def cuda_encode_sum_scratch(
    codec: tuple[int, Sequence[float]],
    dtype_id: int,
    terms: int,
    elements: int,
    result: tuple[int, Sequence[float]],
    device: int,
) -> int:
    """Bytes of device memory that `cuda_encode_sum` needs beside its output."""

def cuda_encode_sum(
    codec: tuple[int, Sequence[float]],
    dtype_id: int,
    terms: Sequence[tuple[int, int, int, float]],
    elements: int,
    result: tuple[int, Sequence[float]],
    payload: int,
    length: int,
    seed: int,
    seed_at: int,
    status: int,
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`encode_sum_at` with device memory, enqueued. The status is the same as in `cuda_decode`."""

def step_bytes(steps: Sequence[float], elements: int) -> int:
    """Bytes that `activate_at` keeps of so many elements.

    Steps are numbers: the rule (0 ascending, 1 even, 2 inside, 3 outside of two borders), bits, borders and levels.

    Raises:
        ValueError: these are no steps.
    """

def activate_at(
    function: str,
    parameters: Sequence[float],
    steps: Sequence[float],
    dtype_id: int,
    source: int,
    values: int,
    packed: int,
    elements: int,
    threads: int,
) -> None:
    """Write an activation function's values of an array in host memory, and the packed numbers of its elements' steps.

    All is by address; that of values is 0 where none are wanted, that of packed numbers too. The values may replace the
    array. The function is a name of native/stream/activation.h; "" gives back the array.

    Raises:
        ValueError: there is no such function, steps, or data type for them.
    """

def step_grad_at(
    steps: Sequence[float],
    dtype_id: int,
    packed: int,
    gradients: int,
    target: int,
    elements: int,
    threads: int,
) -> None:
    """Write gradients times the levels of steps, whose numbers `activate_at` packed. The target may be the same."""

def cuda_activate(
    function: str,
    parameters: Sequence[float],
    steps: Sequence[float],
    dtype_id: int,
    source: int,
    values: int,
    packed: int,
    elements: int,
    stream: int,
    device: int,
) -> None:
    """`activate_at` with device memory, enqueued."""

def cuda_step_grad(
    steps: Sequence[float],
    dtype_id: int,
    packed: int,
    gradients: int,
    target: int,
    elements: int,
    stream: int,
    device: int,
) -> None:
    """`step_grad_at` with device memory, enqueued."""
