"""An extension of `torch.distributed.checkpoint` that compresses the tensors in what a `FileSystemWriter` writes.

`arrcomp.torch.distributed.checkpoint.SavePlanner` does the same with fewer copies, on the tensors' device, and with
rules that see names. This is for where the planner is another one, or where other extensions follow, as encryption.
PyTorch calls its interface of extensions (2.7 and newer) experimental.

    writer = FileSystemWriter(path, _extensions=[StreamCompression(codec)])
    reader = FileSystemReader(path, _extension_registry=extension_registry())
"""

import io
import pickle
from collections.abc import Sequence
from typing import IO, Any

import torch
from torch import Tensor
from torch.distributed.checkpoint._extension import ExtensionRegistry, StreamTransformExtension

from ..._api.compress import checked_seed
from ..._arguments import thread_count
from ...codecs import Codec
from ...codecs._rules import Rule, checked_rules
from .._files import save

_VERSION = "1"
_ARCHIVE = b"PK\3\4"  # what a file of torch.save begins with


class StreamCompression(StreamTransformExtension):
    """Items that are tensors are written by `arrcomp.torch.save`; all others as they are, for they are small."""

    def __init__(
        self, codec: Codec | Sequence[Rule] | None = None, *, threads: int | None = None, seed: int | None = None
    ) -> None:
        """An extension.

        Args:
            codec: as of `arrcomp.torch.save`; rules see dtype and shape of a shard, and the empty name.
            threads: how many to use on the CPU in each process; None for all cores that it may use.
            seed: as of `arrcomp.compress`, one for all shards.

        Raises:
            TypeError: an argument is of a wrong type; a codec needs a seed.
            ValueError: `threads` or `seed` is out of its range.
        """
        self._rules, self._options = checked_rules(codec), {"threads": threads, "seed": seed}
        thread_count(threads)
        for rule in self._rules:
            checked_seed(rule.codec, seed)

    @staticmethod
    def registry_name() -> str:
        return "stream.arrcomp"

    @staticmethod
    def from_descriptor(version: str) -> "StreamCompression":
        """The extension that reads what one of a version wrote.

        Raises:
            ValueError: there is no such version.
        """
        if version.partition(".")[0] != _VERSION:
            raise ValueError(f"version={version!r} of {StreamCompression.registry_name()}; {_VERSION} is allowed")
        return StreamCompression()

    def get_descriptor(self) -> str:
        return f"{self.registry_name()}/{_VERSION}"

    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A file to which an item is written, and which writes it, compressed, to `output` when it is closed."""
        return _Item(output, self._rules, self._options)

    def transform_from(self, input: IO[bytes]) -> IO[bytes]:  # noqa: A002  it is PyTorch's name
        """The input: PyTorch's own reader makes tensors of it."""
        return input


def extension_registry() -> ExtensionRegistry:
    """PyTorch's extensions and this one, for `FileSystemReader(..., _extension_registry=)`."""
    registry = ExtensionRegistry()
    registry.register(StreamCompression)
    return registry


class _Item(io.BytesIO):
    """What `torch.save` makes of one tensor, or the bytes of something else."""

    def __init__(self, output: IO[bytes], rules: Sequence[Rule], options: dict[str, Any]) -> None:
        super().__init__()
        self._output, self._rules, self._options = output, rules, options

    def close(self) -> None:
        if self.closed:
            return
        try:
            tensor = self._tensor()
            if tensor is None:
                self._output.write(self.getbuffer())
            else:
                save(tensor, self._output, self._rules, **self._options)
            self._output.close()
        finally:
            super().close()

    def _tensor(self) -> Tensor | None:
        self.seek(0)
        if self.read(len(_ARCHIVE)) != _ARCHIVE:
            return None
        self.seek(0)
        try:
            item = torch.load(self, "cpu", weights_only=True)
        except (RuntimeError, pickle.UnpicklingError):  # some other archive, or objects that are the planner's affair
            return None
        return item if isinstance(item, Tensor) else None
