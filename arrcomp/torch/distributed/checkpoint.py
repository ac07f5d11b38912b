"""`torch.distributed.checkpoint` with compressed tensors: a planner, for whichever storage writer there is.

    import torch.distributed.checkpoint as dcp
    from arrcomp.torch.distributed.checkpoint import SavePlanner

    dcp.save(state_dict, checkpoint_id=path, planner=SavePlanner(codec))
    dcp.load(state_dict, checkpoint_id=path)    # wherever arrcomp.torch is imported

Each rank compresses what it writes: its shards of DTensors, on the device where they are. What is read is a tensor
again before PyTorch takes its part of it, so that another number of ranks may read it.
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
    """PyTorch's planner, which gives compressed tensors to the storage writer.

    For `save` and `async_save` with writers that write tensors by `torch.save`, as `FileSystemWriter` and
    `FsspecWriter` do. `load` needs nothing but `import arrcomp.torch`, and no planner of its own.

    Each shard is compressed by itself: a bound relative to a range is relative to the shard's, and codecs with
    buckets begin anew with every shard. Sparse and other tensors without plain values, and what is no tensor, are
    written as PyTorch writes them. Not for `HuggingFaceStorageWriter`, whose files hold no more than arrays.
    """

    def __init__(
        self,
        codec: Codec | Sequence[Rule] | None = None,
        *,
        threads: int | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        """A planner.

        Args:
            codec: as of `arrcomp.torch.save`. Rules see the names that PyTorch gives, as "model.fc.weight", and the
                shape of the whole tensor, however it is sharded.
            threads: how many to use on the CPU in each process; None for all cores that it may use.
            seed: as of `arrcomp.compress`, one for all shards.
            options: of PyTorch's planner.

        Raises:
            TypeError: an argument is of a wrong type; a codec needs a seed.
            ValueError: `threads` or `seed` is out of its range.
        """
        super().__init__(**options)
        self._rules, self._threads, self._seed = checked_rules(codec), thread_count(threads), seed
        for rule in self._rules:
            checked_seed(rule.codec, seed)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:  # noqa: A002  it is PyTorch's name
        """What is written of an item: of a tensor its stream."""
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
    """A stream as uint8[n] in host memory, of which `torch.save` writes how a tensor is made.

    Writers detach tensors, copy them to the host and give them memory of their own size: all of this is done.
    """

    reduced: tuple[Any, ...]

    def detach(self) -> "_Stream":
        return self

    def cpu(self, *arguments: Any, **options: Any) -> "_Stream":
        return self

    def clone(self, *arguments: Any, **options: Any) -> "_Stream":
        return self

    def data_ptr(self) -> int:
        raise TypeError("a compressed tensor goes into files of torch.save: serialization_format=TORCH_SAVE is allowed")

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.reduced


def _stream(c: Compressed) -> _Stream:
    reduced = streamed(c, torch.empty(0, device="cpu"))
    made = reduced[1][0].as_subclass(_Stream)
    made.reduced = reduced
    return made
