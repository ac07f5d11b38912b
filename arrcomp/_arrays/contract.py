"""What a framework's adapter does: the contract of `arrcomp.torch`, `arrcomp.jax` and `arrcomp.cupy`."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._dtypes import DType
from .._format.spec import Spec

if TYPE_CHECKING:
    from .payload import Payload

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Home:
    """Where an array lives.

    Attributes:
        framework: "numpy", "torch", "jax" or "cupy".
        kind: "cpu" or "cuda".
        index: number of the device.
    """

    framework: str = "numpy"
    kind: str = "cpu"
    index: int = 0

    @property
    def device(self) -> str:
        """The device's name, for instance "cpu" or "cuda:0"."""
        return "cpu" if self.kind == "cpu" and self.index == 0 else f"{self.kind}:{self.index}"


class Adapter(Protocol):
    """A framework's arrays. Where several arrays are given, they are on one device, of one dtype, with one codec.

    A buffer is a one-dimensional uint8 array of the framework. The module of an adapter has it as `ADAPTER`, and a
    function `has_cuda()` that says whether the framework can use a CUDA device here.
    """

    name: str

    def home(self, x: Any) -> Home:
        """Where an array or a buffer lives.

        Raises:
            TypeError: it has no data.
            DeviceUnavailableError: it is on a device that is neither the CPU nor CUDA.
        """

    def default_home(self) -> Home:
        """Where the framework puts new arrays.

        Raises:
            DeviceUnavailableError: the framework has none but on CUDA, and there is no such device.
        """

    def group(self, x: Any) -> Hashable:
        """What arrays, or buffers, that are given to one call must have in common: mostly their device."""

    def look(self, x: Any) -> tuple[DType, tuple[int, ...]]:
        """Data type and shape of an array.

        Raises:
            TypeError: it has no data (sparse, meta), or its dtype is not supported.
        """

    def is_finite(self, x: Any) -> bool:
        """Whether all values of an array are numbers, and finite; waits for the device."""

    def compress(
        self, xs: Sequence[Any], specs: Sequence[Spec], out: Sequence[Any] | None, threads: int, seed: Any
    ) -> "list[Payload]":
        """Payloads of arrays.

        Those of a fixed-rate codec have no length: they are all of their buffers, of `Spec.capacity` bytes.

        Args:
            xs: the arrays.
            specs: of each.
            out: the caller's buffers, to be checked (`Raises` of `arrcomp.compress`); None allocates.
            threads: on the CPU; 0 for all cores.
            seed: of random numbers, for all arrays: an integer from 0 to 2^64 - 1, or the framework's integer array of
                no dimensions on their device, to be checked, which nothing waits for; None where the codec needs none.
        """

    def decompress(
        self, payloads: "Sequence[Payload]", specs: Sequence[Spec], out: Sequence[Any] | None, threads: int
    ) -> list[Any]:
        """Arrays of payloads that this adapter holds, on the payloads' device.

        Args:
            payloads: the payloads.
            specs: of each array.
            out: the caller's arrays, to be checked (`Raises` of `arrcomp.decompress`), filled and returned; None
                allocates.
            threads: on the CPU; 0 for all cores.
        """

    def accumulate(self, payload: "Payload", spec: Spec, weight: float, into: Any, threads: int) -> Any:
        """A payload's array, times `weight`, added to an array that is where the payload is.

        Args:
            payload: of a codec that has sums.
            spec: of its array.
            weight: finite in the arithmetic type.
            into: the caller's array, to be checked (`Raises` of `arrcomp.accumulate`).
            threads: on the CPU; 0 for all cores.

        Returns:
            `into`, or a new array where the framework's cannot be written to.
        """

    def compress_sum(
        self,
        payloads: "Sequence[Payload]",
        spec: Spec,
        weights: Sequence[float],
        result: Spec,
        out: Any,
        threads: int,
        seed: Any,
    ) -> "Payload":
        """The payload of a weighted sum of payloads' arrays.

        Args:
            payloads: one at least, of a codec that has sums.
            spec: of the array of each.
            weights: for each, finite in the arithmetic type.
            result: of the sum, of the same dtype and shape.
            out: the caller's buffer, as of `compress`.
            threads: on the CPU; 0 for all cores.
            seed: as of `compress`, for `result`'s codec.
        """

    def read_length(self, length: Any) -> int:
        """The number in a payload's length; waits for the device."""

    def head(self, buffer: Any, nbytes: int) -> Any:
        """The first bytes of a buffer: a view."""

    def to_host(self, buffer: Any) -> Bytes:
        """The bytes of a buffer; waits for the device. A view where the buffer is in host memory."""

    def from_host(self, data: Bytes, home: Home) -> tuple[Any, Any]:
        """A buffer with these bytes on a device of this framework, and as `Payload.length` how many they are.

        A view where that is host memory.
        """

    def from_dlpack(self, x: Any) -> Any:
        """The framework's array on the memory of another producer's, which is on a CUDA device.

        The producer is told the stream on which this framework goes on: what it has enqueued comes first.
        """

    def move(self, buffer: Any, home: Home) -> Any:
        """A buffer of this framework copied to another of its devices."""

    def copy(self, buffer: Any) -> Any:
        """A copy of a buffer, or of a payload's length, of its own size."""

    def put(self, x: NDArray[Any], index: int) -> Any:
        """A NumPy array copied to a CUDA device of this framework.

        Raises:
            TypeError: the framework has no such dtype.
        """

    def reduce(self, spec: Spec, payload: "Payload") -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """How a `Compressed` is pickled: a function and its arguments, as `object.__reduce__` gives them."""
