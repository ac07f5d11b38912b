"""A Zstandard frame around a payload (FORMAT.md, section 1.1), in host memory, and only if it saves enough bytes."""

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
_MOST_WORKERS = 64  # every build of the library accepts this many
_WORKER_NBYTES = 1 << 20  # the least work for a thread

_MAX_WINDOW_NBYTES = 1 << 27  # the largest window that a reader accepts (RFC 8878 sets no limit)
_MOST_GROWTH = 1 << 15  # a block takes at least 4 bytes, and holds at most 2^17

# Unpacking a frame takes about as long as decoding its payload. Smaller savings are not worth it.
_LEAST_SAVING = 0.05
_SAMPLES, _SAMPLE_NBYTES = 16, 1 << 16
_TRIAL_NBYTES = 4 * _SAMPLES * _SAMPLE_NBYTES  # shorter payloads are not sampled


def checked_level(level: Any, name: str = "zstd_level") -> int | None:
    """The argument `name`, checked; None, which means no frame, stays None. Raises ImportError without zstandard."""
    if level is None:
        return None
    number = checked_integer(name, level, _LEAST_LEVEL, _MOST_LEVEL)
    _import_zstandard()
    return number


def make_frame(payload: Bytes, level: int, threads: int) -> bytes | None:
    """A frame around a payload in host memory; None if it does not save enough bytes.

    Long payloads are sampled first. (Samples do not show repetitions at long distances.) `threads` is 0 for all cores;
    the frame does not depend on it.
    """
    if payload.size > _TRIAL_NBYTES:
        sample = _sample(payload)
        if not _pays(_compress(sample, level, threads), sample):
            return None
    frame = _compress(payload, level, threads)
    return frame if _pays(frame, payload) else None


def check_frame(frame: memoryview, payload_nbytes: int) -> None:
    """Check the header of a frame of a payload of this length. Nothing is decoded."""
    zstandard = _import_zstandard()
    least = -(-payload_nbytes // _MOST_GROWTH)
    if not least <= frame.nbytes < payload_nbytes:
        expected = f"at least {least} and less than {payload_nbytes} bytes for its payload"
        raise CorruptStreamError(f"frame: expected {expected}, got {frame.nbytes}")
    if frame[:4] != _MAGIC:
        raise CorruptStreamError(f"frame: expected Zstandard's magic number, got {bytes(frame[:4])!r}")
    try:
        about = zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError as error:
        raise CorruptStreamError(f"frame: {error}") from None
    if about.content_size != payload_nbytes:
        got = "no length" if about.content_size == zstandard.CONTENTSIZE_UNKNOWN else about.content_size
        raise CorruptStreamError(f"frame: expected a content of {payload_nbytes} bytes, as in the header, got {got}")
    if about.window_size > _MAX_WINDOW_NBYTES:
        expected = f"a window of at most {_MAX_WINDOW_NBYTES} bytes"
        raise CorruptStreamError(f"frame: expected {expected}, got {about.window_size}")
    if about.dict_id:
        raise CorruptStreamError(f"frame: expected no dictionary, got dictionary {about.dict_id}")


def _pays(frame: bytes, data: Bytes) -> bool:
    return stream.FRAME_LENGTH_NBYTES + len(frame) <= data.size * (1 - _LEAST_SAVING)


def _sample(payload: Bytes) -> Bytes:
    """Evenly spaced samples of a payload, concatenated."""
    starts = [i * (payload.size - _SAMPLE_NBYTES) // (_SAMPLES - 1) for i in range(_SAMPLES)]
    return np.concatenate([payload[start : start + _SAMPLE_NBYTES] for start in starts])


def _compress(data: Bytes, level: int, threads: int) -> bytes:
    # At least one worker: with none, the library would not split the data into jobs, and write another frame.
    workers = min(threads or available_threads(), 1 + data.size // _WORKER_NBYTES, _MOST_WORKERS)
    compressor = _import_zstandard().ZstdCompressor(level=level, threads=workers, write_content_size=True)
    with _named_memory_errors(f"a Zstandard frame of {data.size} bytes"):
        frame: bytes = interruptible(lambda: compressor.compress(data), data.size)
    return frame


def decompress_frame(frame: memoryview, nbytes: int) -> Bytes:
    """The payload of a frame that `check_frame` has checked; raises CorruptStreamError or MemoryError."""
    zstandard = _import_zstandard()
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_NBYTES)
    try:
        with _named_memory_errors(f"the {nbytes} bytes of a Zstandard frame"):
            payload = interruptible(lambda: decompressor.decompress(frame, allow_extra_data=False), nbytes)
    except zstandard.ZstdError as error:
        raise CorruptStreamError(f"frame: {error}") from None
    if len(payload) != nbytes:
        raise CorruptStreamError(f"frame: expected a content of {nbytes} bytes, got {len(payload)}")
    return np.frombuffer(payload, np.uint8)


@contextlib.contextmanager
def _named_memory_errors(purpose: str) -> Iterator[None]:
    """Name the purpose in MemoryErrors. The library raises them without a message, or raises its own error."""
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
