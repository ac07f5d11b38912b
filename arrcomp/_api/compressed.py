"""A compressed array."""

from typing import Any

import numpy as np

from .. import _dtypes
from .._arguments import thread_count
from .._arrays import host
from .._arrays.contract import Bytes
from .._arrays.framed import FramedPayload
from .._arrays.payload import Payload, admit
from .._arrays.registry import adapter_named, home_named
from .._format import frame, limits, stream
from .._format.spec import Spec
from ..codecs import Codec, codec_from_config, codec_from_id
from ..errors import CorruptStreamError


class Compressed:
    """An array as `compress` leaves it: a payload in the array's framework, and what is needed to read it.

    It is not changed after it was made (but one made with `out=` shares that buffer). It pickles, copies, moves with
    `to`, is saved by `torch.save` (alone or in a `state_dict`), and is a pytree under JAX. `nbytes`, `ratio`,
    `to_bytes`, `trim`, printing and pickling wait for a device that the payload is on; nothing else does.
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
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the array, in native byte order."""
        return self._spec.dtype.numpy

    @property
    def device(self) -> str:
        """Where the payload is: "cpu", or for instance "cuda:0"."""
        return self._payload.home.device

    @property
    def nbytes(self) -> int:
        """Length in bytes of all of it, as `to_bytes` writes it without a frame: header, payload and checksum."""
        return stream.stream_nbytes(self._header, self._payload.nbytes)

    @property
    def ratio(self) -> float:
        """Bytes of the array divided by `nbytes`."""
        return self._spec.nbytes / self.nbytes

    @property
    def spec(self) -> Spec:
        """Codec, data type and shape: what is known without looking at the payload."""
        return self._spec

    @property
    def payload(self) -> Payload:
        """The payload where it is."""
        return self._payload

    def to_bytes(self, *, zstd_level: int | None = None, threads: int | None = None) -> bytes:
        """The stream: self-describing, with a checksum, the same on every machine (FORMAT.md).

        Args:
            zstd_level: put the payload into a Zstandard frame of this level, 1 to 22, where that saves at least a
                twentieth of it; None for no frame. It often does for codecs of fixed rate and for integers, hardly ever
                for floats that `Lossless` or `ErrorBounded` has coded. Readers need zstandard too. The frame is of the
                library's making: another version of it may write other bytes.
            threads: how many to use for the frame; None for all cores that the process may use.

        Raises:
            TypeError, ValueError: `zstd_level` or `threads` is not allowed.
            ImportError: zstandard is not installed.
        """
        return b"".join(self.parts(zstd_level=zstd_level, threads=threads))

    def parts(self, *, zstd_level: int | None = None, threads: int | None = None) -> list[bytes | memoryview]:
        """The stream in pieces, to be written one after the other without putting them together first.

        Arguments and errors are those of `to_bytes`.
        """
        threads = thread_count(threads)
        level = frame.checked_level(zstd_level)
        payload = self.host_payload()
        framed = None if level is None else frame.make_frame(payload, level, threads)
        data = payload.data if framed is None else memoryview(framed)
        return stream.pack(self._header, stream.Body(payload.size, data, framed is not None))

    def stored_parts(self) -> list[bytes | memoryview]:
        """The stream in pieces, with the payload in the Zstandard frame that it came in, if it came in one."""
        framed = self._payload.frame
        if framed is None:
            return self.parts()
        return stream.pack(self._header, stream.Body(self._payload.nbytes, framed, True))

    def host_payload(self) -> Bytes:
        """The payload in host memory, one-dimensional; a view where it is there."""
        return self._payload.to_host()

    def to(self, device: Any) -> "Compressed":
        """The same on another device; `self` if it is there.

        Args:
            device: "cpu", "cuda", "cuda:1", a `torch.device`, a `jax.Device`, or an array, whose framework counts too.
                From NumPy to CUDA the payload becomes one of PyTorch, CuPy or JAX, whichever is installed.

        Raises:
            TypeError, ValueError: `device` is none of these.
            DeviceUnavailableError: the device, or a framework for it, is not there.
        """
        home = home_named(device, self._payload.home)
        payload = self._payload.moved(adapter_named(home.framework), home)
        return self if payload is self._payload else Compressed(self._spec, payload)

    def trim(self) -> "Compressed":
        """The same in memory of its own size. Waits for the device.

        The payload's buffer is as large as the array until its length is known: this gives the rest of the memory back
        (where `self` is dropped). On the CPU, NumPy's and PyTorch's are trimmed already.
        """
        return Compressed(self._spec, self._payload.trim())

    def verify(self, *, max_nbytes: int | None = None) -> None:
        """Decode the payload and throw the array away; waits. What `compress` made in this process is not doubted.

        Args:
            max_nbytes: as of `decompress`.

        Raises:
            CorruptStreamError: the payload is corrupt.
            SizeLimitError: the array is larger than `max_nbytes`.
            TypeError, ValueError: `max_nbytes` is no integer, or below 0.
        """
        admit(self._spec, self._payload, max_nbytes)
        if not self._payload.trusted:
            self._payload.adapter.decompress([self._payload], [self._spec], None, 0)
            self._payload.trusted = True

    @property
    def _header(self) -> stream.Header:
        return stream.Header(self.codec.id, self._spec.dtype, self.shape, self.codec.config())

    def __repr__(self) -> str:
        about = f"<Compressed {self._spec.dtype.name}{list(self.shape)} by {self.codec!r}"
        try:
            return f"{about}: {self.nbytes} bytes, ratio {self.ratio:.2f}, on {self.device}>"
        except (AttributeError, TypeError, ValueError):  # traced by a compiler, batched, or a pytree's placeholders
            return f"{about}>"

    def __copy__(self) -> "Compressed":
        return Compressed(self._spec, self._payload)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Compressed":
        return Compressed(self._spec, self._payload.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        return self._payload.adapter.reduce(self._spec, self._payload)


def from_bytes(data: Any, *, max_nbytes: int | None = None) -> Compressed:
    """Read a stream that `Compressed.to_bytes` wrote.

    Args:
        data: bytes, bytearray, memoryview, mmap, or a uint8 NumPy array: exactly one stream. It is viewed, not copied,
            and must not change as long as the result is used.
        max_nbytes: bytes that the array may have, for all that will be done with the result: `decompress` takes it from
            here. None for 8192 times the bytes of `data`, or 1 GiB if that is more, which only a stream with a
            Zstandard frame can exceed.

    Returns:
        The compressed array. `decompress` makes a NumPy array of it, unless told otherwise by `like=` or `out=`. A
        payload in a Zstandard frame stays there until then: only the frame's header is checked before. What takes it
        out, as `decompress`, `to` and `to_bytes` do, raises SizeLimitError if the array is larger than `max_nbytes`.

    Raises:
        TypeError: `data` is not a contiguous buffer of bytes, or `max_nbytes` no integer.
        ValueError: `max_nbytes` is below 0.
        CorruptStreamError: the stream is truncated, altered, or none.
        FormatVersionError, UnknownCodecError: a newer arrcomp wrote it.
        ImportError: its payload is in a Zstandard frame, and zstandard is not installed.
    """
    return parse_stream(data, limits.checked_max_nbytes(max_nbytes))


def parse_stream(data: Any, max_nbytes: int | None = None, *, check: bool = True) -> Compressed:
    """`from_bytes`; without `check` the checksum is not looked at, so that nothing but headers is read."""
    view = _byte_view(data)
    header, body = stream.parse(view, check=check)
    expected = codec_from_id(header.codec_id)
    spec = spec_from_config(header.configuration, header.dtype, header.shape)
    if type(spec.codec) is not expected:
        raise CorruptStreamError(
            f"configuration is of codec {spec.codec.name}, the header's codec id of {expected.name}"
        )
    check_payload_nbytes(spec, body.nbytes)
    allowed = limits.allowed_of(len(view), max_nbytes)
    if not body.framed:
        return Compressed(spec, Payload(host.ADAPTER, np.frombuffer(body.data, np.uint8), max_nbytes=allowed))
    _check_framed_nbytes(spec, body.nbytes)
    frame.check_frame(body.data, body.nbytes)
    return Compressed(spec, FramedPayload(body.data, body.nbytes, spec, allowed))


def check_payload_nbytes(spec: Spec, nbytes: int) -> None:
    """Raise CorruptStreamError where a payload cannot be of this array: memory for the array may be allocated after."""
    if spec.codec.fixed_rate:
        if nbytes != spec.capacity:
            raise CorruptStreamError(f"payload length is {nbytes} bytes; shape {spec.shape} takes {spec.capacity}")
        return
    needed = spec.least_payload_nbytes
    if nbytes < needed:
        raise CorruptStreamError(
            f"payload length is {nbytes} bytes; shape {spec.shape} takes {needed} at the very least"
        )


def _check_framed_nbytes(spec: Spec, nbytes: int) -> None:
    """Raise CorruptStreamError where a payload that is not there yet is longer than this array can justify."""
    most = 2 * spec.nbytes + 1024  # more than any codec writes
    if nbytes > most:
        raise CorruptStreamError(f"payload length is {nbytes} bytes; shape {spec.shape} takes {most} at the very most")


def spec_from_config(configuration: Any, dtype: _dtypes.DType, shape: tuple[int, ...]) -> Spec:
    """What a stream or a pickle says of its payload.

    Raises:
        CorruptStreamError: the configuration is of no codec for this data type.
    """
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
    raise TypeError(f"data is a {type(data).__name__}; bytes, or a flat contiguous buffer of them, are allowed")
