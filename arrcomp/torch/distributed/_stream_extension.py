"""An extension of `torch.distributed.checkpoint` that compresses the tensors that a `FileSystemWriter` writes.

`arrcomp.torch.distributed.checkpoint.SavePlanner` does the same with fewer copies, on the tensors' device, and its
rules see names. Use this extension with another planner, or before other extensions such as encryption. PyTorch's
interface of extensions (2.7 and newer) is experimental.

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
from ..._arguments import thread_count, wrong_value
from ...codecs import Codec
from ...codecs._rules import Rule, checked_rules
from .._files import save

_VERSION = "1"
_ARCHIVE = b"PK\3\4"  # the first bytes of a file of torch.save


class StreamCompression(StreamTransformExtension):
    """Writes tensors by `arrcomp.torch.save`, and other items, which are small, unchanged."""

    def __init__(
        self, codec: Codec | Sequence[Rule] | None = None, *, threads: int | None = None, seed: int | None = None
    ) -> None:
        """Create an extension.

        Args:
            codec: same as in `arrcomp.torch.save`; rules see a shard's dtype and shape, and an empty name.
            threads: number of CPU threads of each process; None for all cores that it may use.
            seed: same as in `arrcomp.compress`; all shards use the same one.

        Raises:
            TypeError: an argument has a wrong type, or a codec needs a seed.
            ValueError: `threads` or `seed` is out of range.
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
        """The extension that reads the files of a version.

        Raises:
            ValueError: the version is unknown.
        """
        if version.partition(".")[0] != _VERSION:
            raise wrong_value(f"version of {StreamCompression.registry_name()}", repr(_VERSION), version)
        return StreamCompression()

    def get_descriptor(self) -> str:
        return f"{self.registry_name()}/{_VERSION}"

    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A file that, when it is closed, writes its content compressed to `output`."""
        return _Item(output, self._rules, self._options)

    def transform_from(self, input: IO[bytes]) -> IO[bytes]:  # noqa: A002  it is PyTorch's name
        """The input itself: PyTorch's reader decompresses the tensors."""
        return input


def extension_registry() -> ExtensionRegistry:
    """PyTorch's extensions and this one, for `FileSystemReader(..., _extension_registry=)`."""
    registry = ExtensionRegistry()
    registry.register(StreamCompression)
    return registry


class _Item(io.BytesIO):
    """A buffer with one tensor of `torch.save`, or with other bytes."""

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
        except (RuntimeError, pickle.UnpicklingError):  # another archive, or other objects
            return None
        return item if isinstance(item, Tensor) else None
