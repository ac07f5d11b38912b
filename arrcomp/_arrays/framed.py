"""A payload that stays in its Zstandard frame."""

from typing import Any

from .._dtypes import Bytes
from .._format.frame import decompress_frame
from .._format.spec import Spec
from .checks import admit
from .contract import Payload
from .device import Device
from .numpy import ADAPTER as NUMPY


class FramedPayload(Payload):
    """A payload in host memory that stays in its frame until somebody looks at it.

    So what a stream holds can be told without memory for its payload, and nothing is allocated before a caller, who can
    see the shape, asks for the array.
    """

    __slots__ = ("_frame", "_spec", "_taken")

    _taken: Bytes | None

    def __init__(self, frame: memoryview, nbytes: int, spec: Spec, max_nbytes: int | None) -> None:
        """A payload of `nbytes`, of an array, in a frame that `check_frame` has looked at."""
        super().__init__(NUMPY, None, max_nbytes=max_nbytes)
        self._frame = frame
        self._nbytes = nbytes
        self._spec = spec

    @property
    def device(self) -> Device:
        return Device()

    @property
    def frame(self) -> memoryview:
        return self._frame

    @property
    def is_framed(self) -> bool:
        return True

    @property
    def buffer(self) -> Any:
        """The payload, taken out of its frame the first time; raises CorruptStreamError or SizeLimitError."""
        if self._taken is None:
            admit(self._spec, self, None)
            self._taken = decompress_frame(self.frame, self.nbytes)
        return self._taken

    @buffer.setter
    def buffer(self, taken: Any) -> None:
        self._taken = taken
