"""CuPy's arrays, for the rest of the package."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np

from .. import _core, _dtypes
from .._api.compressed import Compressed, from_bytes
from .._arrays import host
from .._arrays.contract import Bytes, Home
from .._arrays.device import check_device
from .._arrays.payload import Payload
from .._format.spec import Spec
from ..errors import unfit_payload

_ALIGNMENT = 256  # of payloads that share an allocation


def has_cuda() -> bool:
    """Whether CuPy can use a CUDA device."""
    try:
        return bool(cupy.cuda.is_available())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


class CupyAdapter:
    """CuPy's arrays."""

    name = "cupy"

    def home(self, x: Any) -> Home:
        return Home("cupy", "cuda", x.device.id)

    def default_home(self) -> Home:
        check_device(0)  # CuPy's own error would not say what to do
        return Home("cupy", "cuda", cupy.cuda.Device().id)

    def group(self, x: Any) -> Hashable:
        index: int = x.device.id
        return index

    def look(self, x: Any) -> tuple[_dtypes.DType, tuple[int, ...]]:
        dtype = _dtypes.by_numpy(x.dtype)
        _check_dtype(dtype)
        if not x.dtype.isnative:
            raise TypeError(f"dtype {x.dtype.str}: CuPy computes in native byte order, which alone is allowed")
        return dtype, x.shape

    def is_finite(self, x: Any) -> bool:
        with _device(x.device.id):
            return bool(cupy.isfinite(x).all())

    def compress(
        self, xs: Sequence[Any], specs: Sequence[Spec], out: Sequence[Any] | None, threads: int, seed: Any
    ) -> list[Payload]:
        with _device(xs[0].device.id):
            sources = [_contiguous(x, spec.dtype) for x, spec in zip(xs, specs, strict=True)]
            if out is None:
                buffers = _allocate([spec.capacity for spec in specs])
            else:
                buffers = [_checked_buffer(*row) for row in zip(out, sources, specs, strict=True)]
            lengths = cupy.empty(len(xs), cupy.uint64)
            _encode(sources, buffers, lengths, specs, seed)
        if specs[0].codec.fixed_rate:
            whole = [buffer[: spec.capacity] for buffer, spec in zip(buffers, specs, strict=True)]
            return [Payload(self, buffer, trusted=True) for buffer in whole]
        return [Payload(self, buffer, lengths[i : i + 1], trusted=True) for i, buffer in enumerate(buffers)]

    def decompress(
        self, payloads: Sequence[Payload], specs: Sequence[Spec], out: Sequence[Any] | None, threads: int
    ) -> list[Any]:
        with _device(payloads[0].buffer.device.id):
            if out is None:
                _check_dtype(specs[0].dtype)
                arrays = [cupy.empty(spec.shape, spec.dtype.numpy) for spec in specs]
            else:
                arrays = list(out)
                for row in zip(arrays, payloads, specs, strict=True):
                    self._check_target(*row)
            buffers = [_aligned(payload.buffer, 8) for payload in payloads]
            status = _decode(buffers, [payload.length for payload in payloads], arrays, specs)
            _check_sound(status, payloads)
        return arrays

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Any:
        self._check_target(into, payload, spec, "into")
        with _device(into.device.id):
            buffer = _aligned(payload.buffer, 8)
            status = _accumulate(buffer, payload.length, into, spec, weight)
            _check_sound(status, [payload])
        return into

    def compress_sum(
        self,
        payloads: Sequence[Payload],
        spec: Spec,
        weights: Sequence[float],
        result: Spec,
        out: Any,
        threads: int,
        seed: Any,
    ) -> Payload:
        first = payloads[0].buffer
        with _device(first.device.id):
            buffer = _allocate([result.capacity])[0] if out is None else _checked_buffer(out, first, result)
            for payload in payloads:
                given = payload.buffer
                host.check_apart(buffer.data.ptr, buffer.nbytes, given.data.ptr, given.nbytes, host.overlap("out"))
            length = cupy.empty(1, cupy.uint64)
            status = _encode_sum(payloads, weights, spec, buffer, length, result, seed)
            _check_sound(status, payloads)
        if result.codec.fixed_rate:
            return Payload(self, buffer[: result.capacity], trusted=True)
        return Payload(self, buffer, length, trusted=True)

    def read_length(self, length: Any) -> int:
        return int(self.to_host(length)[0])

    def head(self, buffer: Any, nbytes: int) -> Any:
        return buffer[:nbytes]

    def to_host(self, buffer: Any) -> Bytes:
        with cupy.cuda.Device(buffer.device.id):
            data: Bytes = cupy.asnumpy(buffer)
        return data

    def from_host(self, data: Bytes, home: Home) -> tuple[Any, Any]:
        return _uploaded(data, home.index), None

    def from_dlpack(self, x: Any) -> Any:
        # CuPy tells the producer its current stream on the producer's device, and asks for a versioned capsule if it
        # knows these.
        try:
            return cupy.from_dlpack(x)
        except NotImplementedError as error:
            raise TypeError(f"x: CuPy {cupy.__version__} has no arrays of its data type ({error})") from None

    def move(self, buffer: Any, home: Home) -> Any:
        check_device(home.index)
        with cupy.cuda.Device(buffer.device.id):
            source = cupy.cuda.get_current_stream()
            written = source.record(cupy.cuda.Event(disable_timing=True))
        with cupy.cuda.Device(home.index):
            target = cupy.cuda.get_current_stream()
            target.wait_event(written)
            twin = buffer.copy()
            read = target.record(cupy.cuda.Event(disable_timing=True))
        with cupy.cuda.Device(buffer.device.id):
            source.wait_event(read)  # so that the pool does not give the buffer away too early
        return twin

    def copy(self, buffer: Any) -> Any:
        with cupy.cuda.Device(buffer.device.id):
            return buffer.copy()

    def put(self, x: Any, index: int) -> Any:
        dtype = _dtypes.by_numpy(x.dtype)
        _check_dtype(dtype)
        data = _uploaded(host.numpy_bytes(x), index)
        return data.view(dtype.numpy).reshape(x.shape)

    def reduce(self, spec: Spec, payload: Payload) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return restore, (Compressed(spec, payload).to_bytes(),)

    def _check_target(self, out: Any, payload: Payload, spec: Spec, name: str = "out") -> None:
        check_array(out, name)
        host.check_matches(self.look(out)[0], out.shape, spec, name)
        if not out.flags.c_contiguous:
            raise ValueError(f"{name} is not C-contiguous; an array in C order is allowed")
        _check_alignment(out, _element_nbytes(spec.dtype), name)
        buffer, message = payload.buffer, host.overlap(name)
        host.check_apart(out.data.ptr, out.nbytes, buffer.data.ptr, buffer.nbytes, message)


ADAPTER = CupyAdapter()


def restore(stream: bytes) -> Compressed:
    """A pickled `Compressed`, on the current device."""
    c = from_bytes(stream)
    return Compressed(c.spec, c.payload.moved(ADAPTER, ADAPTER.default_home()))


def _uploaded(data: Bytes, index: int) -> Any:
    check_device(index)
    with cupy.cuda.Device(index):
        return cupy.asarray(data)


def _device(index: int) -> Any:
    """A device that the core can work on, to be the current one in a block."""
    check_device(index)
    return cupy.cuda.Device(index)


def _encode(sources: Sequence[Any], buffers: Sequence[Any], lengths: Any, specs: Sequence[Spec], seed: Any) -> None:
    """Enqueue encoding of contiguous arrays into buffers, and of the payloads' lengths into uint64[arrays]."""
    codec, dtype, parameters = specs[0].codec, specs[0].dtype, specs[0].codec.core_parameters()
    elements = [spec.elements for spec in specs]
    on_device = _seed_on_device(seed, lengths.device.id)
    random = (seed or 0, 0) if on_device is None else (0, _address(on_device))
    scratch_bytes = _core.cuda_encode_scratch(codec.id, parameters, dtype.id, elements, lengths.device.id)
    scratch = cupy.empty(scratch_bytes, cupy.uint8)
    arrays = list(zip(map(_address, sources), map(_address, buffers), elements, strict=True))
    results = (_address(lengths), *random, _address(scratch))
    _core.cuda_encode(codec.id, parameters, dtype.id, arrays, *results, *_stream_and_device(lengths))


def _seed_on_device(seed: Any, index: int) -> Any:
    """An array's seed as uint64 on the device; None for one that is a number, or none."""
    if seed is None or isinstance(seed, int):
        return None
    if not isinstance(seed, cupy.ndarray):
        raise TypeError(f"seed is a {type(seed).__name__}; an integer, or a cupy.ndarray of one, is allowed")
    if seed.dtype.kind not in "iu" or seed.shape != ():
        raise TypeError(f"seed is an array {seed.dtype}{list(seed.shape)}; an integer of no dimensions is allowed")
    if seed.device.id != index:
        raise TypeError(
            f"seed is on cuda:{seed.device.id}; an integer, or an array on cuda:{index} as x is, is allowed"
        )
    return seed.astype(cupy.uint64)


def _decode(buffers: Sequence[Any], lengths: Sequence[Any], targets: Sequence[Any], specs: Sequence[Spec]) -> Any:
    """Enqueue decoding into contiguous arrays; gives the status, uint32[1]: 0, unless a payload is corrupt.

    A length is None where the payload is all of its buffer.
    """
    codec, dtype = specs[0].codec, specs[0].dtype
    status = cupy.empty(1, np.uint32)
    elements = [spec.elements for spec in specs]
    scratch_bytes = _core.cuda_decode_scratch(codec.id, codec.core_parameters(), dtype.id, elements)
    scratch = cupy.empty(scratch_bytes, cupy.uint8)
    arrays = [
        (_address(buffer), buffer.size, 0 if length is None else _address(length), _address(target), spec.elements)
        for buffer, length, target, spec in zip(buffers, lengths, targets, specs, strict=True)
    ]
    addresses = (_address(status), _address(scratch))
    _core.cuda_decode(codec.id, codec.core_parameters(), dtype.id, arrays, *addresses, *_stream_and_device(status))
    return status


def _check_sound(status: Any, payloads: Sequence[Payload]) -> None:
    """Wait for the verdict on payloads that this process did not make."""
    if not all(payload.trusted for payload in payloads) and cupy.asnumpy(status).any():
        raise unfit_payload()


def _term(buffer: Any, length: Any, weight: float) -> tuple[int, int, int, float]:
    return _address(buffer), buffer.size, 0 if length is None else _address(length), weight


def _coding(spec: Spec) -> tuple[int, tuple[float, ...]]:
    return spec.codec.id, spec.codec.core_parameters()


def _accumulate(buffer: Any, length: Any, into: Any, spec: Spec, weight: float) -> Any:
    """Enqueue adding a payload's array to a contiguous array; gives the status, as `_decode`."""
    status = cupy.empty(1, np.uint32)
    scratch = cupy.empty(_core.cuda_accumulate_scratch(1), cupy.uint8)
    addresses = (_address(into), _address(status), _address(scratch))
    terms = [_term(buffer, length, weight)]
    _core.cuda_accumulate(_coding(spec), spec.dtype.id, terms, spec.elements, *addresses, *_stream_and_device(status))
    return status


def _encode_sum(
    payloads: Sequence[Payload], weights: Sequence[float], spec: Spec, buffer: Any, length: Any, result: Spec, seed: Any
) -> Any:
    """Enqueue encoding the sum of payloads' arrays into a buffer, and its length; gives the status, as `_decode`."""
    buffers = [_aligned(payload.buffer, 8) for payload in payloads]
    terms = [
        _term(data, payload.length, weight) for data, payload, weight in zip(buffers, payloads, weights, strict=True)
    ]
    about = (_coding(spec), spec.dtype.id)
    index = length.device.id
    on_device = _seed_on_device(seed, index)
    random = (seed or 0, 0) if on_device is None else (0, _address(on_device))
    status = cupy.empty(1, np.uint32)
    scratch_bytes = _core.cuda_encode_sum_scratch(*about, len(terms), spec.elements, _coding(result), index)
    scratch = cupy.empty(scratch_bytes, cupy.uint8)
    addresses = (_address(buffer), _address(length), *random, _address(status), _address(scratch))
    _core.cuda_encode_sum(*about, terms, spec.elements, _coding(result), *addresses, *_stream_and_device(status))
    return status


def _address(array: Any) -> int:
    address: int = array.data.ptr
    return address


def _stream_and_device(array: Any) -> tuple[int, int]:
    """Handle of the current stream, on the device of an array, which is the current one."""
    return cupy.cuda.get_current_stream().ptr, array.device.id


def check_array(out: Any, name: str = "out") -> None:
    if not isinstance(out, cupy.ndarray):
        raise TypeError(f"{name} is a {type(out).__name__}; a cupy.ndarray is allowed")


def _check_dtype(dtype: _dtypes.DType) -> None:
    """Raise TypeError unless CuPy has arrays of this data type: NumPy's own, and from version 14 on bfloat16."""
    has_bfloat16 = int(cupy.__version__.partition(".")[0]) >= 14
    if dtype.numpy.isbuiltin != 1 and not (dtype.name == "bfloat16" and has_bfloat16):
        raise TypeError(f"dtype {dtype.name}: CuPy {cupy.__version__} has no such arrays; like=numpy.empty(0) works")


def _element_nbytes(dtype: _dtypes.DType) -> int:
    return dtype.itemsize // dtype.parts


def _contiguous(x: Any, dtype: _dtypes.DType) -> Any:
    """The elements in C order, aligned: `x` itself where it is so."""
    if x.data.ptr % _element_nbytes(dtype) == 0:
        return cupy.ascontiguousarray(x)
    return x[..., None].view(cupy.uint8).copy()  # byte by byte: a kernel of CuPy's may not read misaligned elements


def _aligned(buffer: Any, nbytes: int) -> Any:
    return buffer if buffer.data.ptr % nbytes == 0 else buffer.copy()


def _allocate(sizes: Sequence[int]) -> list[Any]:
    """Buffers of so many bytes, all in one allocation."""
    starts = np.cumsum([0] + [-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]).tolist()
    memory = cupy.empty(starts[-1], cupy.uint8)
    return [memory[start : start + size] for start, size in zip(starts, sizes, strict=False)]


def _checked_buffer(out: Any, source: Any, spec: Spec) -> Any:
    """The caller's buffer for a payload."""
    check_array(out)
    if out.device.id != source.device.id:
        raise TypeError(f"out is on cuda:{out.device.id}; a uint8 array on the device of x is allowed")
    if out.dtype != cupy.uint8:
        raise TypeError(f"out has dtype {out.dtype}; uint8 is allowed")
    if not out.flags.c_contiguous:
        raise ValueError("out is not C-contiguous; an array in C order is allowed")
    _check_alignment(out, 8)
    host.check_capacity(out.size, spec)
    message = "out overlaps x; separate memory is allowed"
    host.check_apart(out.data.ptr, out.nbytes, source.data.ptr, source.nbytes, message)
    return out.reshape(-1)


def _check_alignment(out: Any, nbytes: int, name: str = "out") -> None:
    if out.data.ptr % nbytes:
        raise ValueError(f"{name} begins at address {out.data.ptr:#x}; a multiple of {nbytes} bytes is allowed")
