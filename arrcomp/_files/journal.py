"""Marks and journals: what an append in place leaves in a .safetensors file while it runs, or where it was interrupted.

The last byte of the header, a space, becomes the mark first: whatever follows the data is then what an append has
written, and no damage. New tensors follow the data, and a journal follows them once they are complete: the new header,
its length, a magic and a checksum. From then on the new header counts. It is written over the old one, of the same
length, and the journal is cut off.
"""

import struct

from .._dtypes import Bytes
from .._format import stream
from .reading import OpenedFile

LENGTH_NBYTES = 8  # of the header's length, before the header
MARK = b"\n"  # white space in JSON, as the space that it replaces
_SPACE = b" "
_MAGIC = b"ARRCJRNL"
_END = struct.Struct("<Q8s8s")  # header's length, magic, checksum


def can_mark(head: Bytes) -> bool:
    """Whether a header, with its length before it, has a byte for the mark."""
    return head[-1:].tobytes() in (MARK, _SPACE)


def marked(head: Bytes) -> bytes:
    """The same header with the mark."""
    return head[:-1].tobytes() + MARK


def unmarked(head: Bytes) -> bytes:
    """The same header without the mark."""
    return head[:-1].tobytes() + _SPACE


def is_marked(head: Bytes) -> bool:
    """Whether a header, with its length before it, is whole and has the mark."""
    whole = LENGTH_NBYTES + int.from_bytes(head[:LENGTH_NBYTES].tobytes(), "little")
    return head.size == whole > LENGTH_NBYTES and head[-1:].tobytes() == MARK


def packed(head: bytes, offset: int) -> bytes:
    """The journal of a new header, with its length before it, at this offset of the file."""
    header, nbytes = head[LENGTH_NBYTES:], len(head) - LENGTH_NBYTES
    return header + _END.pack(nbytes, _MAGIC, _checksum(head, offset))


def found(file: OpenedFile) -> tuple[Bytes, int] | None:
    """The header, with its length before it, of the whole journal at a file's end, and where the journal begins."""
    if file.nbytes < LENGTH_NBYTES + _END.size:
        return None
    length = file.span(0, LENGTH_NBYTES).read()
    nbytes, magic, checksum = _END.unpack(file.span(file.nbytes - _END.size, file.nbytes).read().data)
    offset = file.nbytes - _END.size - nbytes
    if magic != _MAGIC or nbytes != int.from_bytes(length.tobytes(), "little") or offset < LENGTH_NBYTES + nbytes:
        return None
    head = file.span(offset - LENGTH_NBYTES, offset + nbytes).read()
    head[:LENGTH_NBYTES] = length
    return (head, offset) if _checksum(head.data, offset) == checksum else None


def _checksum(head: bytes | memoryview, offset: int) -> bytes:
    """Of a header, and of where its journal is: a copy elsewhere, in an array's bytes for instance, is none."""
    return stream.checksum(_MAGIC, offset.to_bytes(8, "little"), head)
