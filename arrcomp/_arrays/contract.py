"""What the package asks of a framework: its memory, which the driver needs, and its adapter, which the API needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._dtypes import Bytes, DType
from .._format.spec import Spec
from .device import Device

Fetch = Callable[[int, int], None]
Floats = Sequence[float]


class Memory(Protocol):
    """A framework's memory and streams: all that `driver` needs to hand arrays to the core.

    A buffer is a one-dimensional uint8 array of the framework.
    """

    @staticmethod
    def address(x: Any, /) -> int:
        """Where a contiguous array begins."""

    def stream(self, x: Any) -> tuple[int, int] | None:
        """The CUDA device of an array and the handle of the framework's current stream there; None in host memory."""

    def empty(self, nbytes: int, like: Any) -> Any:
        """A new buffer on the device of an array, aligned to 8 bytes."""

    def copy(self, buffer: Any) -> Any:
        """A copy of a buffer, or of a payload's length, in memory of its own size."""

    def to_host(self, buffer: Any) -> Bytes:
        """The bytes of a buffer; synchronizes. A view where the buffer is in host memory."""


class Adapter(Protocol):
    """A framework's arrays.

    Arrays that are given to one call together are on one device, have one dtype and one codec. The arguments `out`,
    `into` and `seed` are the caller's, not checked yet: errors are those of the function of this name in `arrcomp`.
    `threads` is 0 for all cores.

    The module of an adapter has it as `ADAPTER`, and a function `has_cuda()` that says whether the framework can use a
    CUDA device here.
    """

    name: str

    def device(self, x: Any) -> Device:
        """The device of an array or a buffer; raises TypeError without data, DeviceUnavailableError on others."""

    def default_device(self) -> Device:
        """Where the framework creates arrays; raises DeviceUnavailableError where it can create none."""

    def batch_key(self, x: Any) -> Hashable:
        """Equal for arrays, or buffers, that one call may take together: in most frameworks their device."""

    def dtype_and_shape(self, x: Any) -> tuple[DType, tuple[int, ...]]:
        """Data type and shape of an array; raises TypeError without data (sparse, meta), or for another dtype."""

    def check_dtype(self, dtype: DType) -> None:
        """Raise TypeError if the framework has no arrays of this data type."""

    def is_finite(self, x: Any) -> bool:
        """Whether no value of an array is NaN or infinite; synchronizes."""

    def host_bytes(self, x: Any) -> Bytes:
        """The bytes of an array in C order, in host memory; synchronizes. A view where they are so already."""

    def compress(
        self,
        xs: Sequence[Any],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        seed: Any,
        references: Sequence[Any] | None = None,
    ) -> list[Payload]:
        """Compress arrays into their own buffers `out`, or into new ones for None.

        Payloads of a fixed-rate codec have no length: they fill their buffers, of `Spec.capacity` bytes. The seed is
        for all arrays: an integer from 0 to 2^64 - 1, or the framework's 0-d integer array on their device, read
        without synchronizing; None where the codec needs none. The references, where it needs them, have the arrays'
        framework, dtype, shapes and device.
        """

    def decompress(
        self,
        payloads: Sequence[Payload],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        references: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Decompress payloads that this adapter holds, on their device, into arrays `out`, or new ones for None.

        The references are those of `compress`; each may be its array of `out`.
        """

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Any:
        """Add a payload's array, of a codec with sums, times `weight` to an array on the same device.

        `weight` is finite in the arithmetic type. Returns `into`, or a new array where the framework's are immutable.
        """

    def compress_sum(
        self, payloads: Sequence[Payload], spec: Spec, weights: Floats, result: Spec, out: Any, threads: int, seed: Any
    ) -> Payload:
        """Compress the sum of payloads' arrays, of a codec with sums, times weights (finite in the arithmetic type).

        `spec` is that of each array; `result`, of the same dtype and shape, is that of the sum. `out` and `seed`: as in
        `compress`.
        """

    def read_length(self, length: Any) -> int:
        """The number in a payload's length; synchronizes."""

    def head(self, buffer: Any, nbytes: int) -> Any:
        """The first bytes of a buffer: a view."""

    def copy(self, buffer: Any) -> Any:
        """Same as in `Memory`."""

    def to_host(self, buffer: Any) -> Bytes:
        """Same as in `Memory`."""

    def from_host(self, data: Bytes, device: Device) -> tuple[Any, Any]:
        """A buffer with these bytes on a device of this framework, a view in host memory; and its `Payload.length`."""

    def from_dlpack(self, x: Any) -> Any:
        """The framework's array on the CUDA memory of another DLPack producer.

        The producer learns the stream on which this framework goes on: what it has enqueued comes first.
        """

    def to_device(self, buffer: Any, device: Device) -> Any:
        """A buffer of this framework copied to another of its devices."""

    def upload(self, x: NDArray[Any], index: int) -> Any:
        """A NumPy array copied to a CUDA device of this framework; raises TypeError where it has no such dtype."""


class Encoded:
    """What holds an array's values without being one: `Compressed`. NumPy converts it, but nothing compresses it."""

    __slots__ = ()


class Payload:
    """The coded bytes of an array, on the device where they were made.

    Attributes:
        adapter: of the framework that holds the buffer.
        buffer: the framework's one-dimensional uint8 array, which begins with the payload.
        length: None where the payload fills its buffer; else the framework's array of 8 bytes that hold the number of
            bytes as a little-endian unsigned integer. It is where the buffer is, and read when it is asked for.
        trusted: whether this process made the payload, so that decoding needs no synchronization to report corruption.
        max_nbytes: the most bytes that its array may have, unless a caller says otherwise; None for no limit, as this
            process made it.
    """

    __slots__ = ("_nbytes", "adapter", "buffer", "length", "max_nbytes", "trusted")

    def __init__(
        self, adapter: Adapter, buffer: Any, length: Any = None, *, trusted: bool = False, max_nbytes: int | None = None
    ) -> None:
        self.adapter = adapter
        self.buffer = buffer
        self.length = length
        self.trusted = trusted
        self.max_nbytes = max_nbytes
        self._nbytes: int | None = None

    @property
    def device(self) -> Device:
        """Where it is."""
        return self.adapter.device(self.buffer)

    @property
    def frame(self) -> memoryview | None:
        """The Zstandard frame in host memory that it came in; None where it came in none."""
        return None

    @property
    def is_framed(self) -> bool:
        """Whether it came in a Zstandard frame."""
        return False

    @property
    def nbytes(self) -> int:
        """Length in bytes; synchronizes the first time. Raises ValueError for a batch, as under `jax.vmap`."""
        if self._nbytes is None:
            if np.ndim(self.buffer) != 1:
                raise ValueError(
                    f"compressed: expected a single array, got a batch of shape {tuple(self.buffer.shape[:-1])}, of "
                    "jax.vmap or of layers in compress_weights; use it under jax.vmap, decompress it by "
                    "decompress_weights, or select one with jax.tree.map(lambda leaf: leaf[i], ...)"
                )
            self._nbytes = self.buffer.shape[0] if self.length is None else self.adapter.read_length(self.length)
        return self._nbytes

    def to_host(self) -> Bytes:
        """The payload in host memory, one-dimensional; synchronizes. A view where it is there."""
        if self.device.kind == "cpu":
            return self.adapter.to_host(self.buffer)[: self.nbytes]
        return self.adapter.to_host(self.trimmed_view())

    def host_parts(self) -> tuple[Bytes, Fetch | None]:
        """Same as `to_host`, and what fetches bytes from a begin to an end before they are read; None if all are there.

        Payloads in files are read in parts by it.
        """
        return self.to_host(), None

    def trimmed_view(self) -> Any:
        """The buffer without what follows the payload; synchronizes."""
        return self.adapter.head(self.buffer, self.nbytes)

    def trim(self) -> Payload:
        """The payload in memory of its own size; synchronizes."""
        if self.length is None and self.device.kind == "cpu":
            return self
        return self._again(self.adapter, self.adapter.copy(self.trimmed_view()))

    def copy(self) -> Payload:
        """The same payload in memory of its own."""
        length = None if self.length is None else self.adapter.copy(self.length)
        return self._again(self.adapter, self.adapter.copy(self.buffer), length)

    def to(self, adapter: Adapter, device: Device) -> Payload:
        """The same payload on a device of an adapter; a copy only where it is elsewhere.

        Asynchronous within a framework; between frameworks the length is read.
        """
        here = self.device
        if here == device:
            return self
        if here.framework == device.framework:
            length = None if self.length is None else adapter.to_device(self.length, device)
            return self._again(adapter, adapter.to_device(self.buffer, device), length)
        if (here.kind, here.index) == (device.kind, device.index) and device.kind == "cuda":
            return self._again(adapter, adapter.from_dlpack(self.trimmed_view()))
        return self._again(adapter, *adapter.from_host(self.to_host(), device))

    def _again(self, adapter: Adapter, buffer: Any, length: Any = None) -> Payload:
        """The same payload in other memory."""
        return Payload(adapter, buffer, length, trusted=self.trusted, max_nbytes=self.max_nbytes)
