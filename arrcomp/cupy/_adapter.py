"""The `Adapter` of CuPy's arrays."""

from collections.abc import Hashable, Sequence
from typing import Any

import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np

from .. import _dtypes
from .._arguments import wrong_type
from .._arrays.checks import check_fillable, check_matches
from .._arrays.contract import Payload
from .._arrays.device import Device, check_device
from .._arrays.driver import Seed
from .._arrays.eager import EagerAdapter
from .._arrays.numpy import numpy_bytes
from .._dtypes import Bytes
from .._format.spec import Spec

_Payloads = Sequence[Payload]
_ALIGNMENT = 256  # of payloads that share an allocation


def has_cuda() -> bool:
    """Whether CuPy can use a CUDA device."""
    try:
        return bool(cupy.cuda.is_available())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


class CupyAdapter(EagerAdapter):
    """The adapter of CuPy's arrays."""

    name = "cupy"

    def device(self, x: Any) -> Device:
        return Device("cupy", "cuda", x.device.id)

    def default_device(self) -> Device:
        check_device(0)  # CuPy's own error would not say what to do
        return Device("cupy", "cuda", cupy.cuda.Device().id)

    def batch_key(self, x: Any) -> Hashable:
        return int(x.device.id)

    def dtype_and_shape(self, x: Any) -> tuple[_dtypes.DType, tuple[int, ...]]:
        dtype = _dtypes.by_numpy(x.dtype)
        self.check_dtype(dtype)
        if not x.dtype.isnative:
            raise TypeError(f"x: expected native byte order, as CuPy computes in, got dtype {x.dtype.str}")
        return dtype, x.shape

    def check_dtype(self, dtype: _dtypes.DType) -> None:
        # NumPy's own, and from version 14 on bfloat16.
        has_bfloat16 = int(cupy.__version__.partition(".")[0]) >= 14
        if dtype.numpy.isbuiltin != 1 and not (dtype.name == "bfloat16" and has_bfloat16):
            expected = f"one that CuPy {cupy.__version__} has"
            raise TypeError(f"dtype: expected {expected}, got {dtype.name}; like=numpy.empty(0) works")

    def is_finite(self, x: Any) -> bool:
        with _current(x):
            return bool(cupy.isfinite(x).all())

    def host_bytes(self, x: Any) -> Bytes:
        with _current(x):
            return numpy_bytes(cupy.asnumpy(x))

    def compress(
        self,
        xs: Sequence[Any],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        seed: Any,
        references: Sequence[Any] | None = None,
    ) -> list[Payload]:
        with _current(xs[0]):
            return super().compress(xs, specs, out, threads, seed, references)

    def decompress(
        self,
        payloads: _Payloads,
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        references: Sequence[Any] | None = None,
    ) -> list[Any]:
        with _current(payloads[0].buffer):
            return super().decompress(payloads, specs, out, threads, references)

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Any:
        check_array(into, "into")
        with _current(into):
            return super().accumulate(payload, spec, weight, into, threads)

    def compress_sum(
        self, payloads: _Payloads, spec: Spec, weights: Sequence[float], result: Spec, out: Any, threads: int, seed: Any
    ) -> Payload:
        with _current(payloads[0].buffer):
            return super().compress_sum(payloads, spec, weights, result, out, threads, seed)

    @staticmethod
    def address(x: Any, /) -> int:
        address: int = x.data.ptr
        return address

    def stream(self, x: Any) -> tuple[int, int]:
        return x.device.id, cupy.cuda.get_current_stream().ptr

    def empty(self, nbytes: int, like: Any) -> Any:
        return cupy.empty(nbytes, cupy.uint8)

    def copy(self, buffer: Any) -> Any:
        with cupy.cuda.Device(buffer.device.id):
            return buffer.copy()

    def to_host(self, buffer: Any) -> Bytes:
        with cupy.cuda.Device(buffer.device.id):
            data: Bytes = cupy.asnumpy(buffer)
        return data

    def contiguous(self, x: Any) -> Any:
        if x.data.ptr % _element_nbytes(_dtypes.by_numpy(x.dtype)) == 0:
            return cupy.ascontiguousarray(x)
        return x[..., None].view(cupy.uint8).copy()  # byte by byte: CuPy's kernels may not read misaligned elements

    def allocate(self, sizes: Sequence[int], like: Any) -> list[Any]:
        starts = np.cumsum([0] + [-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]).tolist()
        memory = cupy.empty(starts[-1], cupy.uint8)
        return [memory[start : start + size] for start, size in zip(starts, sizes, strict=False)]

    def new_lengths(self, count: int, like: Any) -> Any:
        return cupy.empty(count, cupy.uint64)

    def new_array(self, spec: Spec) -> Any:
        self.check_dtype(spec.dtype)
        return cupy.empty(spec.shape, spec.dtype.numpy)

    def payloads(self, buffers: Sequence[Any], lengths: Any, specs: Sequence[Spec], shrink: bool) -> list[Payload]:
        if specs[0].codec.fixed_rate:
            sized = [buffer[: spec.capacity] for buffer, spec in zip(buffers, specs, strict=True)]
            return [Payload(self, buffer, trusted=True) for buffer in sized]
        return [Payload(self, buffer, lengths[i : i + 1], trusted=True) for i, buffer in enumerate(buffers)]

    def seed_of(self, seed: Any, like: Any) -> Seed:
        if seed is None or isinstance(seed, int):
            return seed or 0, None
        if not isinstance(seed, cupy.ndarray):
            raise wrong_type("seed", "an integer, or a cupy.ndarray of one", seed)
        if seed.dtype.kind not in "iu" or seed.shape != ():
            raise TypeError(f"seed: expected a 0-d array of integers, got {seed.dtype}{list(seed.shape)}")
        if seed.device.id != like.device.id:
            devices = f"cuda:{like.device.id} like x, got one on cuda:{seed.device.id}"
            raise TypeError(f"seed: expected an array on {devices}")
        return 0, seed.astype(cupy.uint64)

    def checked_buffer(self, out: Any, like: Any) -> Any:
        check_array(out)
        if out.device.id != like.device.id:
            raise TypeError(f"out: expected a uint8 array on cuda:{like.device.id} like x, got cuda:{out.device.id}")
        if out.dtype != cupy.uint8:
            raise TypeError(f"out: expected dtype uint8, got {out.dtype}")
        check_fillable(out, "out")
        _check_alignment(out, 8, "out")
        return out.reshape(-1)

    def check_array(self, array: Any, spec: Spec, name: str) -> None:
        check_array(array, name)
        check_matches(self.dtype_and_shape(array)[0], array.shape, spec, name)
        check_fillable(array, name)
        _check_alignment(array, _element_nbytes(spec.dtype), name)

    def read_length(self, length: Any) -> int:
        return int(self.to_host(length)[0])

    def head(self, buffer: Any, nbytes: int) -> Any:
        return buffer[:nbytes]

    def from_host(self, data: Bytes, device: Device) -> tuple[Any, Any]:
        return _uploaded(data, device.index), None

    def from_dlpack(self, x: Any) -> Any:
        # CuPy tells the producer its current stream there, and asks for a versioned capsule if it knows these.
        try:
            return cupy.from_dlpack(x)
        except NotImplementedError as error:
            raise TypeError(f"x: CuPy {cupy.__version__} has no arrays of its data type ({error})") from None

    def to_device(self, buffer: Any, device: Device) -> Any:
        check_device(device.index)
        with cupy.cuda.Device(buffer.device.id):
            source = cupy.cuda.get_current_stream()
            written = source.record(cupy.cuda.Event(disable_timing=True))
        with cupy.cuda.Device(device.index):
            target = cupy.cuda.get_current_stream()
            target.wait_event(written)
            twin = buffer.copy()
            read = target.record(cupy.cuda.Event(disable_timing=True))
        with cupy.cuda.Device(buffer.device.id):
            source.wait_event(read)  # so that the pool does not reuse the buffer too early
        return twin

    def upload(self, x: Any, index: int) -> Any:
        dtype = _dtypes.by_numpy(x.dtype)
        self.check_dtype(dtype)
        return _uploaded(numpy_bytes(x), index).view(dtype.numpy).reshape(x.shape)


ADAPTER = CupyAdapter()


def check_array(out: Any, name: str = "out") -> None:
    """Raise TypeError unless this is a CuPy array."""
    if not isinstance(out, cupy.ndarray):
        raise wrong_type(name, "a cupy.ndarray", out)


def _current(x: Any) -> Any:
    """A context in which the device of an array, on which the core can work, is CuPy's current one."""
    check_device(x.device.id)
    return cupy.cuda.Device(x.device.id)


def _uploaded(data: Bytes, index: int) -> Any:
    check_device(index)
    with cupy.cuda.Device(index):
        return cupy.asarray(data)


def _element_nbytes(dtype: _dtypes.DType) -> int:
    return dtype.itemsize // dtype.parts


def _check_alignment(out: Any, nbytes: int, name: str) -> None:
    if out.data.ptr % nbytes:
        raise ValueError(f"{name}: expected an address that is a multiple of {nbytes}, got {out.data.ptr:#x}")
