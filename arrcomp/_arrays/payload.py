"""A payload in the memory of the framework that made it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._format.limits import check_nbytes, checked_max_nbytes
from .._format.spec import Spec
from .contract import Adapter, Bytes, Home

Fetch = Callable[[int, int], None]


class Payload:
    """The coded bytes of an array, on the device where they were made.

    Attributes:
        adapter: of the framework that holds the buffer.
        buffer: the framework's one-dimensional uint8 array; the payload is at its start.
        length: None where it is all of the buffer; else the framework's array of 8 bytes that hold the number of bytes
            as a little-endian unsigned integer. It is where the buffer is, and nothing waits for it until asked.
        trusted: whether this process made it, so that the decoder need not be waited for to learn that it is corrupt.
        max_nbytes: bytes that an array may have that is made of it, unless a caller says otherwise; None where nothing
            limits it, as it was made in this process.
    """

    __slots__ = ("_nbytes", "adapter", "buffer", "length", "max_nbytes", "trusted")

    def __init__(
        self,
        adapter: Adapter,
        buffer: Any,
        length: Any = None,
        *,
        trusted: bool = False,
        max_nbytes: int | None = None,
    ) -> None:
        self.adapter = adapter
        self.buffer = buffer
        self.length = length
        self.trusted = trusted
        self.max_nbytes = max_nbytes
        self._nbytes: int | None = None

    @property
    def home(self) -> Home:
        """Where it is."""
        return self.adapter.home(self.buffer)

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
        """Length in bytes; waits for the device the first time.

        Raises:
            ValueError: this is a batch of payloads, as a function under `jax.vmap` returns it.
        """
        if self._nbytes is None:
            self._check_single()
            self._nbytes = self.buffer.shape[0] if self.length is None else self.adapter.read_length(self.length)
        return self._nbytes

    def to_host(self) -> Bytes:
        """The payload in host memory, one-dimensional; waits for the device. A view where it is there."""
        if self.home.kind == "cpu":
            return self.adapter.to_host(self.buffer)[: self.nbytes]
        return self.adapter.to_host(self.trimmed_view())

    def host_parts(self) -> tuple[Bytes, Fetch | None]:
        """As `to_host`; and what to call with begin and end of the bytes to be looked at, None where all are there."""
        return self.to_host(), None

    def trimmed_view(self) -> Any:
        """The buffer without what follows the payload; waits for the device."""
        return self.adapter.head(self.buffer, self.nbytes)

    def trim(self) -> "Payload":
        """The payload in memory of its own size; waits for the device."""
        if self.length is None and self.home.kind == "cpu":
            return self
        return self._again(self.adapter, self.adapter.copy(self.trimmed_view()))

    def copy(self) -> "Payload":
        """The same payload in memory of its own."""
        length = None if self.length is None else self.adapter.copy(self.length)
        return self._again(self.adapter, self.adapter.copy(self.buffer), length)

    def moved(self, adapter: Adapter, home: Home) -> "Payload":
        """The same payload where `home` says; copied only where it is elsewhere.

        Within a framework nothing waits; between frameworks the length is asked for.
        """
        here = self.home
        if here == home:
            return self
        if here.framework == home.framework:
            length = None if self.length is None else adapter.move(self.length, home)
            return self._again(adapter, adapter.move(self.buffer, home), length)
        if (here.kind, here.index) == (home.kind, home.index) and home.kind == "cuda":
            return self._again(adapter, adapter.from_dlpack(self.trimmed_view()))
        return self._again(adapter, *adapter.from_host(self.to_host(), home))

    def _again(self, adapter: Adapter, buffer: Any, length: Any = None) -> "Payload":
        """The same payload in other memory."""
        return Payload(adapter, buffer, length, trusted=self.trusted, max_nbytes=self.max_nbytes)

    def _check_single(self) -> None:
        if np.ndim(self.buffer) != 1:
            raise ValueError(
                f"a batch of compressed arrays, of shape {tuple(self.buffer.shape[:-1])}, as jax.vmap makes it: use it "
                "under jax.vmap, or take one out with jax.tree.map(lambda leaf: leaf[i], ...)"
            )


def admit(spec: Spec, payload: Payload, max_nbytes: Any) -> None:
    """Allow that an array is made of a payload, which a larger `max_nbytes` than before allows from now on.

    Args:
        spec: of the array.
        payload: of the array.
        max_nbytes: bytes that are allowed, not checked; None for what the payload says.

    Raises:
        SizeLimitError: the array has more bytes.
        TypeError, ValueError: as `checked_max_nbytes`.
    """
    if max_nbytes is None and payload.max_nbytes is None:
        return
    said = checked_max_nbytes(max_nbytes)
    allowed = payload.max_nbytes if said is None else said
    assert allowed is not None
    check_nbytes(spec.nbytes, allowed, spec.dtype.name, spec.shape)
    if payload.max_nbytes is not None:
        payload.max_nbytes = max(payload.max_nbytes, allowed)
