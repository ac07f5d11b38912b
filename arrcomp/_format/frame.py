"""A Zstandard frame around a payload (FORMAT.md, section 1.1): on the host alone, and only where it pays."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._arguments import checked_integer
from .._dtypes import Bytes
from ..cpu import available_threads
from ..errors import CorruptStreamError
from . import stream
from .interruptible import interruptible

_MAGIC = b"\x28\xb5\x2f\xfd"
_LEAST_LEVEL, _MOST_LEVEL = 1, 22
_MOST_WORKERS = 64  # which every build of the library takes
_WORKER_NBYTES = 1 << 20  # below it a thread would have nothing to do

_MAX_WINDOW_NBYTES = 1 << 27  # what a reader of any frame is willing to keep (RFC 8878 leaves it open)
_MOST_GROWTH = 1 << 15  # a block takes 4 bytes at least, and stands for 2^17 at most

# To take a payload out of its frame takes about as long as to decode it: a smaller share is not worth that.
_LEAST_SAVING = 0.05
_PIECES, _PIECE_NBYTES = 16, 1 << 16
_TRIAL_NBYTES = 4 * _PIECES * _PIECE_NBYTES  # shorter payloads are not sampled


def checked_level(level: Any, name: str = "zstd_level") -> int | None:
    """The argument `name`, checked; None, which means no frame, stays None.

    Raises:
        TypeError, ValueError: it is not an integer that Zstandard has a level for.
        ImportError: zstandard is not installed.
    """
    if level is None:
        return None
    number = checked_integer(name, level, _LEAST_LEVEL, _MOST_LEVEL)
    _import_zstandard()
    return number


def make_frame(payload: Bytes, level: int, threads: int) -> bytes | None:
    """A frame with the payload in it; None where that does not save enough.

    Of a long payload samples are tried first. What repeats at a distance is not seen in them, and not looked for.

    Args:
        payload: in host memory, one-dimensional.
        level: Zstandard's, 1 to 22.
        threads: how many to use; 0 for all cores. The frame does not depend on it.
    """
    if payload.size > _TRIAL_NBYTES:
        sample = _sample(payload)
        if not _pays(_compress(sample, level, threads), sample):
            return None
    frame = _compress(payload, level, threads)
    return frame if _pays(frame, payload) else None


def check_frame(frame: memoryview, payload_nbytes: int) -> None:
    """Look at a frame's header, and decode nothing.

    Args:
        frame: what a stream holds.
        payload_nbytes: length of the payload that shall be in it.

    Raises:
        CorruptStreamError: it is no Zstandard frame, or none of such a payload.
        ImportError: zstandard is not installed.
    """
    zstandard = _import_zstandard()
    least = -(-payload_nbytes // _MOST_GROWTH)
    if not least <= frame.nbytes < payload_nbytes:
        allowed = f"at least {least} and less than {payload_nbytes} are allowed"
        raise CorruptStreamError(f"frame has {frame.nbytes} bytes; for its payload {allowed}")
    if frame[:4] != _MAGIC:
        raise CorruptStreamError(f"frame begins with {bytes(frame[:4])!r}, which is not Zstandard's magic number")
    try:
        about = zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError as error:
        raise CorruptStreamError(f"frame: {error}") from None
    if about.content_size != payload_nbytes:
        known = about.content_size != zstandard.CONTENTSIZE_UNKNOWN
        said = f"{about.content_size} bytes" if known else "no length"
        raise CorruptStreamError(f"frame announces {said}, the header a payload of {payload_nbytes}")
    if about.window_size > _MAX_WINDOW_NBYTES:
        raise CorruptStreamError(f"frame has a window of {about.window_size} bytes; {_MAX_WINDOW_NBYTES} are allowed")
    if about.dict_id:
        raise CorruptStreamError(f"frame needs the dictionary {about.dict_id}; none is allowed")


def _pays(frame: bytes, data: Bytes) -> bool:
    return stream.FRAME_LENGTH_NBYTES + len(frame) <= data.size * (1 - _LEAST_SAVING)


def _sample(payload: Bytes) -> Bytes:
    """Pieces from all of a payload, one after the other."""
    starts = [i * (payload.size - _PIECE_NBYTES) // (_PIECES - 1) for i in range(_PIECES)]
    return np.concatenate([payload[start : start + _PIECE_NBYTES] for start in starts])


def _compress(data: Bytes, level: int, threads: int) -> bytes:
    # One at least: with none the library would not cut the data into jobs, and the frame would be another one.
    workers = min(threads or available_threads(), 1 + data.size // _WORKER_NBYTES, _MOST_WORKERS)
    compressor = _import_zstandard().ZstdCompressor(level=level, threads=workers, write_content_size=True)
    with _telling_memory(f"a Zstandard frame of {data.size} bytes"):
        frame: bytes = interruptible(lambda: compressor.compress(data), data.size)
    return frame


def decompress_frame(frame: memoryview, nbytes: int) -> Bytes:
    """The payload of a frame that `check_frame` has looked at.

    Raises:
        CorruptStreamError: the frame is corrupt.
        MemoryError: there is no memory for the payload.
    """
    zstandard = _import_zstandard()
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_NBYTES)
    try:
        with _telling_memory(f"the {nbytes} bytes of a Zstandard frame"):
            payload = interruptible(lambda: decompressor.decompress(frame, allow_extra_data=False), nbytes)
    except zstandard.ZstdError as error:
        raise CorruptStreamError(f"frame: {error}") from None
    if len(payload) != nbytes:
        raise CorruptStreamError(f"frame holds {len(payload)} bytes, not {nbytes}")
    return np.frombuffer(payload, np.uint8)


@contextlib.contextmanager
def _telling_memory(purpose: str) -> Iterator[None]:
    """Say what memory was for: the library raises a MemoryError without a word, or an error of its own."""
    try:
        yield
    except (MemoryError, _import_zstandard().ZstdError) as error:
        if not isinstance(error, MemoryError) and "not enough memory" not in str(error):
            raise
        raise MemoryError(f"no memory for {purpose}") from None


def _import_zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(f"Zstandard frames need zstandard ({error}): pip install arrcomp[zstd]") from None
    return zstandard
