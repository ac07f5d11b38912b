"""A compressed array, what reads it from bytes, and what decompresses it."""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .. import _dtypes
from .._arguments import shown, thread_count, wrong_type
from .._arrays.checks import admit, validate_untrusted
from .._arrays.contract import Adapter, Encoded, Payload
from .._arrays.device import Device
from .._arrays.framed import FramedPayload
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.registry import adapter_named, adapter_of, locate_new, locate_target, parse_device
from .._dtypes import Bytes
from .._format import frame, limits, stream
from .._format.spec import Spec
from ..codecs import Codec, codec_from_config, codec_from_id
from ..errors import CorruptStreamError
from .references import adopted, check_given, checked_reference


class Compressed(Encoded):
    """A compressed array: a payload in memory of the array's framework, and its codec, dtype and shape.

    It is immutable (but the result of `compress` with `out=` shares that buffer). It can be pickled, copied, moved with
    `to` and saved by `torch.save` (alone or in a `state_dict`), and is a pytree under JAX. `nbytes`, `ratio`,
    `to_bytes`, `numpy`, `trim`, `verify`, printing and pickling synchronize the payload's device. All else is
    asynchronous.

    `decompress` makes the array, and so does `numpy.asarray` if the payload is on the CPU. `bytes` of it is `to_bytes`.
    Two are equal only if they are the same object: compare their `to_bytes()` or their arrays.

    >>> import numpy, arrcomp
    >>> c = arrcomp.compress(numpy.ones((2, 3), numpy.float32))
    >>> c.decompress().sum(), numpy.asarray(c).shape, c.size, c.ndim
    (np.float32(6.0), (2, 3), 6, 2)
    """

    __slots__ = ("_payload", "_spec")

    def __init__(self, spec: Spec, payload: Payload) -> None:
        """Made by `compress` and `from_bytes`."""
        self._spec = spec
        self._payload = payload

    @property
    def codec(self) -> Codec:
        """The codec that made it."""
        return self._spec.codec

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self._spec.shape

    @property
    def size(self) -> int:
        """Number of values of the array."""
        return math.prod(self._spec.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions of the array."""
        return len(self._spec.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the array, in native byte order."""
        return self._spec.dtype.numpy

    @property
    def device(self) -> str:
        """The payload's device: "cpu", or for instance "cuda:0"."""
        return self._payload.device.name

    @property
    def nbytes(self) -> int:
        """Bytes of the stream that `to_bytes` writes without a frame: header, payload and checksum. Synchronizes."""
        return stream.stream_nbytes(self._spec.header, self._payload.nbytes)

    @property
    def ratio(self) -> float:
        """Bytes of the array divided by `nbytes`. Synchronizes."""
        return self._spec.nbytes / self.nbytes

    @property
    def spec(self) -> Spec:
        """Codec, data type and shape: all that is known without the payload."""
        return self._spec

    @property
    def payload(self) -> Payload:
        """The payload, on its device."""
        return self._payload

    @property
    def needs_reference(self) -> bool:
        """Whether it was compressed against a reference, which `decompress` then needs."""
        return self.codec.needs_reference

    @property
    def reference_hash(self) -> int:
        """The hash of the reference, which `arrcomp.content_hash` computes; ValueError without one. Synchronizes."""
        if not self.needs_reference:
            raise ValueError(f"c: expected an array with a reference, got one by {self.codec!r}")
        head = self._payload.adapter.to_host(self._payload.adapter.head(self._payload.buffer, 16))
        return int.from_bytes(head[8:16].tobytes(), "little")

    def decompress(
        self,
        *,
        reference: Any = None,
        like: Any = None,
        out: Any = None,
        threads: int | None = None,
        max_nbytes: int | None = None,
    ) -> Any:
        """Decompress the array: `arrcomp.decompress`, with the same arguments, result and errors."""
        return decompress(self, reference=reference, like=like, out=out, threads=threads, max_nbytes=max_nbytes)

    def numpy(
        self, *, reference: Any = None, threads: int | None = None, max_nbytes: int | None = None
    ) -> NDArray[Any]:
        """Decompress to a NumPy array. A payload on a device is copied to the host compressed. Synchronizes.

        Arguments and errors are those of `arrcomp.decompress`; the reference is a NumPy array.
        """
        array: NDArray[Any] = decompress_at(self, NUMPY, Device(), thread_count(threads), max_nbytes, reference)
        return array

    def to_bytes(self, *, zstd_level: int | None = None, threads: int | None = None) -> bytes:
        """The stream: self-describing, with a checksum, the same bytes on every platform (FORMAT.md). Synchronizes.

        Args:
            zstd_level: put the payload into a Zstandard frame of this level, 1 to 22, if that saves at least 5 % of it,
                and the default `max_nbytes` of `from_bytes` allows the array; None for no frame. It often does for
                codecs of fixed rate and for integers, rarely for floats with `Lossless` or `ErrorBounded`. Readers need
                zstandard too. Other versions of that library may write other frames.
            threads: number of threads for the frame; None for all cores that the process may use.

        Raises:
            TypeError, ValueError: `zstd_level` or `threads` is of a wrong type or value.
            ImportError: zstandard is not installed.
        """
        return b"".join(self.buffers(zstd_level=zstd_level, threads=threads))

    def buffers(self, *, zstd_level: int | None = None, threads: int | None = None) -> list[bytes | memoryview]:
        """The stream of `to_bytes` as buffers, which can be written one after the other without a copy."""
        threads = thread_count(threads)
        level = frame.checked_level(zstd_level)
        payload = self.host_payload()
        framed = None if level is None else frame.make_frame(payload, level, threads)
        if framed is None or self._spec.nbytes > limits.default_max_nbytes(len(framed)):
            return stream.pack(self._spec.header, stream.Body(payload.size, payload.data, False))
        return stream.pack(self._spec.header, stream.Body(payload.size, memoryview(framed), True))

    def stored_buffers(self) -> list[bytes | memoryview]:
        """The stream as buffers, with the payload in the Zstandard frame that it was read in, if any."""
        framed = self._payload.frame
        if framed is None:
            return self.buffers()
        return stream.pack(self._spec.header, stream.Body(self._payload.nbytes, framed, True))

    def host_payload(self) -> Bytes:
        """The payload in host memory, one-dimensional; a view if it is there already."""
        return self._payload.to_host()

    def to(self, device: Any) -> "Compressed":
        """The same compressed array on another device; `self` if it is there already.

        Args:
            device: "cpu", "cuda", "cuda:1", a `torch.device`, a `jax.Device`, or an array, whose framework is used too.
                From NumPy to CUDA the payload moves to PyTorch, CuPy or JAX, whichever is installed.

        Raises:
            TypeError, ValueError: `device` is none of these.
            DeviceUnavailableError: the device, or a framework for it, is not available.
        """
        there = parse_device(device, self._payload.device)
        payload = self._payload.to(adapter_named(there.framework), there)
        return self if payload is self._payload else Compressed(self._spec, payload)

    def trim(self) -> "Compressed":
        """A copy in a buffer of the payload's own length. Synchronizes.

        A payload's buffer has its full capacity until its length is known. Trimming frees the rest of that memory once
        `self` is dropped. On the CPU, NumPy's and PyTorch's payloads are already trimmed.
        """
        return Compressed(self._spec, self._payload.trim())

    def verify(self, *, reference: Any = None, threads: int | None = None, max_nbytes: int | None = None) -> None:
        """Decode the payload and drop the array. Synchronizes. A payload of this process' own is trusted: no decoding.

        Arguments and errors are those of `arrcomp.decompress`. Without the reference that an array needs, only the
        payload's header and directories are checked.
        """
        count = thread_count(threads)
        if self.needs_reference and reference is None:
            validate_untrusted([self._payload], [self._spec])
            return
        admit_with(self, max_nbytes, reference)
        if not self._payload.trusted:
            decompress(self, reference=reference, threads=count or None, max_nbytes=max_nbytes)
            self._payload.trusted = True

    def __repr__(self) -> str:
        about = f"<Compressed {self._spec.dtype.name}{list(self.shape)} by {self.codec!r}"
        try:
            return f"{about}: {self.nbytes} bytes, ratio {self.ratio:.2f}, on {self.device}>"
        except (AttributeError, TypeError, ValueError):  # traced by a compiler, batched, or placeholders of a pytree
            return f"{about}>"

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("copy: expected None or True, got False; decompressing makes a new array")
        if self.device != "cpu":
            raise TypeError(f"compressed: expected a payload on the CPU, got one on {self.device}; use its numpy()")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __iter__(self) -> NoReturn:
        # PyTorch's optimizers iterate over state that they load and that is no tensor: else their next step would fail.
        raise TypeError(
            "expected an array or a tensor, got a Compressed; decompress it first, or load the state of a "
            "CompressedOptimizer into another one (state_dict(compressed=False) is for other optimizers)"
        )

    def __copy__(self) -> "Compressed":
        return Compressed(self._spec, self._payload)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Compressed":
        return Compressed(self._spec, self._payload.copy())


def decompress(
    c: Compressed,
    *,
    reference: Any = None,
    like: Any = None,
    out: Any = None,
    threads: int | None = None,
    max_nbytes: int | None = None,
) -> Any:
    """Decompress an array.

    Args:
        c: a compressed array.
        reference: the array that `compress` was given as `reference`, bit for bit; its framework and device are those
            of the result. It may be `out` itself, which then becomes the array in place. None for other arrays.
        like: an array, whose framework and device the result gets (its shape and dtype do not matter); or the name of a
            framework, "numpy", "torch", "jax" or "cupy", with its default device.
        out: a writable, C-contiguous NumPy, PyTorch or CuPy array of the same shape and dtype. It is filled and
            returned.
        threads: same as in `compress`.
        max_nbytes: the most bytes that the array may have. None for the limit of `from_bytes` or of the file's reader,
            by default 8192 times the bytes of the stream, or 1 GiB if that is more. Without a stream there is no limit:
            then `compress` made it in this process. Nor with a reference, which has as many bytes.

    Returns:
        An array in C order and native byte order, of the original's shape and dtype, and of its framework and device
        unless `like` is given. Arrays of other DLPack producers, and streams of `from_bytes`, become NumPy arrays.

    Raises:
        CorruptStreamError: the payload is corrupt. (`out` may have been overwritten.)
        WrongReferenceError: `reference` is another array than `compress` was given. Nothing was written.
        SizeLimitError: the array has more bytes than `max_nbytes`. Nothing was allocated.
        TypeError: an argument is of a wrong type or dtype, or the framework does not have this dtype.
        ValueError: `out` has another shape, is read-only or not contiguous; `like` and `out` are both given;
            `reference` is missing, has another shape, or overlaps `out`; or `threads` or `max_nbytes` is out of its
            range.
        ImportError, DeviceUnavailableError: the framework or the device is not available.
    """
    if not isinstance(c, Compressed):
        raise wrong_type("c", "a Compressed (from_bytes reads a stream)", c)
    if like is not None and out is not None:
        raise ValueError("like: expected None beside out, got both")
    threads = thread_count(threads)
    if like is not None:
        return decompress_at(c, *locate_new(like, None), threads, max_nbytes, reference)
    if out is not None:
        return decompress_at(c, *locate_target(out), threads, max_nbytes, reference, out)
    admit_with(c, max_nbytes, reference)
    payload = payload_beside(c, reference)
    if reference is not None:
        reference = adopted(payload.adapter, reference)
    references = own_references(c, payload, reference)
    (array,) = payload.adapter.decompress([payload], [c.spec], None, threads, references)
    return array


def decompress_at(
    c: Compressed,
    adapter: Adapter,
    device: Device,
    threads: int,
    max_nbytes: int | None = None,
    reference: Any = None,
    out: Any = None,
) -> Any:
    """`decompress` into arrays of an adapter, on one of its devices."""
    admit_with(c, max_nbytes, reference)
    if reference is not None:
        reference = adopted(adapter, reference)
    payload = c.payload.to(adapter, device)
    references = own_references(c, payload, reference)
    (array,) = payload.adapter.decompress([payload], [c.spec], None if out is None else [out], threads, references)
    return array


def admit_with(c: Compressed, max_nbytes: int | None, reference: Any) -> None:
    """Check that there is a reference where one is needed, and that the array may be made.

    A reference has as many bytes as the array, so that without `max_nbytes` there is no limit.
    """
    check_given(c.spec, reference)
    if reference is None or max_nbytes is not None:
        admit(c.spec, c.payload, max_nbytes)


def payload_beside(c: Compressed, reference: Any) -> Payload:
    """The payload in the framework and on the device of a reference; that of `c` for None."""
    if reference is None:
        return c.payload
    adapter, x = adapter_of(reference, "reference")
    if c.payload.adapter is adapter and adapter.batch_key(x) is None:  # in host memory, or a tracer's
        return c.payload
    return c.payload.to(adapter, adapter.device(x))


def own_references(c: Compressed, payload: Payload, reference: Any) -> list[Any] | None:
    """The reference of `c`, checked, for a call of an adapter with its payload; None for none."""
    if reference is None:
        return None
    return [checked_reference(payload.adapter, reference, c.spec, payload.buffer)]


def from_bytes(data: Any, *, max_nbytes: int | None = None) -> Compressed:
    """Read a stream that `Compressed.to_bytes` wrote.

    Args:
        data: bytes, bytearray, memoryview, mmap, or a uint8 NumPy array: exactly one stream. It is viewed, not copied,
            and must not change while the result is used.
        max_nbytes: the most bytes that the array may have, in `decompress` and all other uses of the result. None for
            8192 times the bytes of `data`, or 1 GiB if that is more. Only a stream with a Zstandard frame can exceed
            this.

    Returns:
        The compressed array, in NumPy. A payload in a Zstandard frame stays in it at first: only the frame's header is
        checked. `decompress`, `to` and `to_bytes` unpack it. They raise SizeLimitError if the array has more bytes than
        `max_nbytes`.

    Raises:
        TypeError: `data` is not a contiguous buffer of bytes, or `max_nbytes` is not an integer.
        ValueError: `max_nbytes` is below 0.
        CorruptStreamError: these bytes are not a stream, or it is truncated or altered.
        FormatVersionError, UnknownCodecError: a newer arrcomp wrote it.
        ImportError: the payload is in a Zstandard frame, and zstandard is not installed.
    """
    return parse_stream(data, limits.checked_max_nbytes(max_nbytes))


def parse_stream(data: Any, max_nbytes: int | None = None, *, check: bool = True) -> Compressed:
    """`from_bytes`. Without `check` the checksum is not checked: only headers are read."""
    view = _byte_view(data)
    header, body = stream.parse(view, check=check)
    expected = codec_from_id(header.codec_id)
    shape = header.shape
    spec = spec_from_config(header.configuration, header.dtype, shape)
    if type(spec.codec) is not expected:
        named = f"codec {expected.name}, as in the header's codec id"
        raise CorruptStreamError(f"configuration: expected {named}, got {spec.codec.name}")
    check_payload_nbytes(spec, body.nbytes)
    allowed = limits.allowed_of(len(view), max_nbytes)
    if not body.framed:
        return Compressed(spec, Payload(NUMPY, np.frombuffer(body.data, np.uint8), max_nbytes=allowed))
    most = 2 * spec.nbytes + 1024  # more than any codec writes
    if body.nbytes > most:
        raise CorruptStreamError(
            f"payload length: expected at most {most} bytes for shape {shown(shape)}, got {body.nbytes}"
        )
    frame.check_frame(body.data, body.nbytes)
    return Compressed(spec, FramedPayload(body.data, body.nbytes, spec, allowed))


def check_payload_nbytes(spec: Spec, nbytes: int) -> None:
    """Raise CorruptStreamError if a payload of this length is impossible, before memory for the array is allocated."""
    if spec.codec.fixed_rate:
        needed = spec.capacity
        fits, expected = nbytes == needed, f"{needed}"
    else:
        needed = spec.least_payload_nbytes
        fits, expected = nbytes >= needed, f"at least {needed}"
    if not fits:
        raise CorruptStreamError(
            f"payload length: expected {expected} bytes for shape {shown(spec.shape)}, got {nbytes}"
        )


def spec_from_config(configuration: Any, dtype: _dtypes.DType, shape: tuple[int, ...]) -> Spec:
    """The spec of a stream or a pickle; raises CorruptStreamError where no such codec takes this data type."""
    try:
        codec = codec_from_config(configuration)
        codec.check_dtype(dtype)
    except (TypeError, ValueError) as error:
        raise CorruptStreamError(f"configuration: {error}") from None
    return Spec(codec, dtype, shape)


def _byte_view(data: Any) -> memoryview:
    try:
        view = memoryview(data)
        if view.itemsize == 1 and view.contiguous and view.ndim == 1:
            return view.cast("B")
    except (TypeError, ValueError):
        pass
    raise wrong_type("data", "bytes, or a one-dimensional contiguous buffer of bytes", data)
