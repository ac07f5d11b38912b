"""The base of a file that is written."""

from typing import Any

from .._api.compressed import Compressed
from .._arguments import shown
from .._arrays.contract import Adapter
from ..codecs import Codec
from ..errors import WrongReferenceError
from .bases import METADATA, NamedBase, PlainBase, counterpart, name_from, takes_reference
from .content import ArrayInfo
from .locations import Location, identity
from .opened import CompressedFile


class Against:
    """Arrays that those of a new file are coded against.

    Attributes:
        metadata: what the new file says of its base; empty of a mapping.
        is_needed: whether an array was coded against one of the base.
    """

    def __init__(self, base: CompressedFile | PlainBase, path: Location, count: int) -> None:
        """The base of a file of `count` arrays, which is written to `path`: none of the files that the base needs."""
        self._base, self._count = base, count
        self._has_counterpart, self.is_needed = False, False
        self._referenced: set[str] = set()  # whose references came from here
        for file in base.chain():
            if file.location is not None and identity(path) == identity(file.location) is not None:
                raise ValueError(
                    f"{path}: expected another file than base and those that it needs, got {file.location}"
                )
        named = None if base.location is None else name_from(path, base.location)
        self.metadata = {} if named is None else {METADATA: NamedBase(named, base.fingerprint).packed()}

    def reference(self, name: str, adapter: Adapter, x: Any, codec: Codec, threads: int) -> Any:
        """The array that an array of the new file is coded against; None if there is none, or its codec takes none."""
        dtype, shape = adapter.dtype_and_shape(x)
        found = self._counterpart(name, ArrayInfo(dtype.numpy, shape))
        if found is None or not takes_reference(codec):
            return None
        self.is_needed = True
        self._referenced.add(name)
        return self._base.load_at(found, adapter, adapter.device(x), threads)

    def check(self, name: str, c: Compressed) -> None:
        """Raise WrongReferenceError unless a compressed array was compressed against its counterpart in the base."""
        if name in self._referenced:
            return
        found = self._counterpart(name, ArrayInfo(c.dtype, c.shape))
        if found is None or self._base.content_hash(found) != c.reference_hash:
            raise WrongReferenceError("base: expected the array that the Compressed needs, got none or another")
        self.is_needed = True

    def check_used(self) -> None:
        """Raise ValueError unless the base has a counterpart of one of the arrays."""
        if not self._has_counterpart:
            names = shown(self._base.names)
            raise ValueError(f"base: expected an array of the same name, dtype and shape as one to save, got {names}")

    def _counterpart(self, name: str, info: ArrayInfo) -> str | None:
        found = counterpart(name, self._count, self._base.names)
        if found is None or self._base.info(found) != info:
            return None
        self._has_counterpart = True
        return found


def check_reference(name: str, c: Compressed, against: Against | None) -> None:
    """Check a compressed array that is stored in a new file. Errors are those of `save_file`."""
    if not c.needs_reference:
        return
    if against is None:
        raise ValueError(f"base: expected the array that the Compressed {shown(name)} needs, got none")
    against.check(name, c)
