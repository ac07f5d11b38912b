"""Checks of arrays that the adapters of all frameworks share."""

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._arguments import shown
from .._dtypes import DType
from .._format.limits import check_nbytes, checked_max_nbytes
from .._format.spec import Spec
from ..errors import CorruptStreamError
from .contract import Memory, Payload


def check_capacity(nbytes: int, capacity: int) -> None:
    """Raise ValueError unless a buffer of so many bytes holds every payload."""
    if nbytes < capacity:
        raise ValueError(f"out: expected at least {capacity} bytes (max_compressed_nbytes), got {nbytes}")


def check_matches(dtype: DType, shape: Sequence[int], spec: Spec, name: str = "out") -> None:
    """Raise unless an array to be filled has the dtype and shape of the one that was compressed."""
    if dtype != spec.dtype:
        raise TypeError(f"{name}: expected dtype {spec.dtype.name}, got {dtype.name}")
    if shape != spec.shape:
        raise ValueError(f"{name}: expected shape {shown(spec.shape)}, got {shown(shape)}")


def check_separate(memory: Memory, x: Any, other: Any, name: str, what: str = "the compressed array") -> None:
    """Raise ValueError if the argument `name`, a contiguous array, shares memory with another one."""
    start, nbytes, begin, size = memory.address(x), x.nbytes, memory.address(other), other.nbytes
    if nbytes and size and start < begin + size and begin < start + nbytes:
        raise ValueError(f"{name}: expected memory of its own, got memory that overlaps {what}")


def check_same_or_separate(memory: Memory, out: Any, reference: Any) -> None:
    """Raise ValueError if `out` and a reference, contiguous and of one size, share memory but are not the same."""
    if memory.address(out) != memory.address(reference):
        check_separate(memory, out, reference, "out", "a part of reference, which may be out as a whole")


def validate_untrusted(payloads: Sequence[Payload], specs: Sequence[Spec]) -> None:
    """Check the lengths, headers and directories of untrusted payloads in host memory, before arrays are allocated."""
    for number, payload in enumerate(payloads):
        if payload.trusted:
            continue
        spec = specs[number]
        try:
            _core.check_payload(*spec.coding, payload.to_host(), spec.elements)
        except CorruptStreamError as error:
            if len(payloads) == 1:
                raise
            raise CorruptStreamError(f"payload {number}: {error}") from None


def admit(spec: Spec, payload: Payload, max_nbytes: Any) -> None:
    """Check that an array may be made of a payload; a larger `max_nbytes` than before holds from now on.

    `max_nbytes` is not checked yet; None stands for what the payload says.
    """
    if max_nbytes is None and payload.max_nbytes is None:
        return
    given = checked_max_nbytes(max_nbytes)
    allowed = payload.max_nbytes if given is None else given
    assert allowed is not None
    check_nbytes(spec.nbytes, allowed, spec.dtype.name, spec.shape)
    if payload.max_nbytes is not None:
        payload.max_nbytes = max(payload.max_nbytes, allowed)


def check_fillable(array: Any, name: str) -> None:
    """Raise ValueError unless an array of NumPy or CuPy can be written to as it lies in memory."""
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: expected a C-contiguous array, got strides {array.strides}")
    if not array.dtype.isnative:
        raise ValueError(f"{name}: expected native byte order, got dtype {array.dtype.str}")
    if not getattr(array.flags, "writeable", True):  # CuPy has no such flag
        raise ValueError(f"{name}: expected a writable array, got a read-only one")
