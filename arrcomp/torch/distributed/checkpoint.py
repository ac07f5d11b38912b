"""`torch.distributed.checkpoint` with compressed tensors: a planner for all storage writers.

    import torch.distributed.checkpoint as dcp
    from arrcomp.torch.distributed.checkpoint import SavePlanner

    dcp.save(state_dict, checkpoint_id=path, planner=SavePlanner(codec))
    dcp.load(state_dict, checkpoint_id=path)    # wherever arrcomp.torch is imported

Each rank compresses its shards of DTensors on their device. Tensors are decompressed before PyTorch reshards them, so
another number of ranks can load the checkpoint.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.planner import WriteItem

from ..._api.compress import checked_seed, compress_with
from ..._api.compressed import Compressed
from ..._arguments import thread_count
from ..._files.content import naming
from ...codecs import Codec
from ...codecs._rules import Rule, checked_rules, codec_for
from .._adapter import ADAPTER
from .._pickling import streamed
from .._shared import view_of
from ._stream_extension import StreamCompression, extension_registry

__all__ = ["SavePlanner", "StreamCompression", "extension_registry"]


class SavePlanner(DefaultSavePlanner):
    """PyTorch's default planner, with compressed tensors.

    For `save` and `async_save` with writers that use `torch.save`, such as `FileSystemWriter` and `FsspecWriter`.
    `load` needs only `import arrcomp.torch`, and no special planner.

    Each shard is compressed separately: relative bounds refer to the shard's range, and buckets start at the shard's
    first value. Sparse and other unsupported tensors, and objects that are not tensors, are written as by PyTorch.
    `HuggingFaceStorageWriter` is not supported, as its files contain only arrays.
    """

    def __init__(
        self,
        codec: Codec | Sequence[Rule] | None = None,
        *,
        threads: int | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        """Create a planner.

        Args:
            codec: same as in `arrcomp.torch.save`. Rules see PyTorch's names, for instance "model.fc.weight", and the
                global shape of sharded tensors.
            threads: number of CPU threads of each process; None for all cores that it may use.
            seed: same as in `arrcomp.compress`; all shards use the same one.
            options: of PyTorch's planner.

        Raises:
            TypeError: an argument has a wrong type, or a codec needs a seed.
            ValueError: `threads` or `seed` is out of range.
        """
        super().__init__(**options)
        self._rules, self._threads, self._seed = checked_rules(codec), thread_count(threads), seed
        for rule in self._rules:
            checked_seed(rule.codec, seed)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:  # noqa: A002  it is PyTorch's name
        """The object to write for an item: for a tensor, its stream."""
        item = super().transform_object(write_item, object)
        data = write_item.tensor_data
        view = view_of(item) if isinstance(item, Tensor) else None
        if data is None or view is None or not view.plain:
            return item
        name = write_item.index.fqn
        with naming(None, name):
            codec = codec_for(self._rules, name, ADAPTER.dtype_and_shape(item)[0], tuple(data.size))
            c = compress_with(ADAPTER, item, codec, None, self._threads, checked_seed(codec, self._seed))
        return _stream(c)


class _Stream(Tensor):
    """A stream, uint8[n] in host memory, that `torch.save` pickles as a call that decompresses it.

    Writers detach tensors, copy them to the host and clone them: none of this is necessary here.
    """

    reduced: tuple[Any, ...]

    def detach(self) -> "_Stream":
        return self

    def cpu(self, *arguments: Any, **options: Any) -> "_Stream":
        return self

    def clone(self, *arguments: Any, **options: Any) -> "_Stream":
        return self

    def data_ptr(self) -> int:
        raise TypeError("serialization_format: expected TORCH_SAVE for compressed tensors, got another format")

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.reduced


def _stream(c: Compressed) -> _Stream:
    reduced = streamed(c, torch.empty(0, device="cpu"))
    made = reduced[1][0].as_subclass(_Stream)
    made.reduced = reduced
    return made
