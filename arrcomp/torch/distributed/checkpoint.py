"""`torch.distributed.checkpoint` with compressed tensors: a planner for all storage writers.

    import torch.distributed.checkpoint as dcp
    from arrcomp.torch.distributed.checkpoint import SavePlanner

    dcp.save(state_dict, checkpoint_id=path, planner=SavePlanner(codec))
    dcp.load(state_dict, checkpoint_id=path)    # wherever arrcomp.torch is imported

Each rank compresses its shards of DTensors on their device. Tensors are decompressed before PyTorch reshards them, so
another number of ranks can load the checkpoint.

A checkpoint may be written against an earlier one, its base, by what has changed. A reader then needs both:

    dcp.save(state_dict, checkpoint_id="run/2", planner=SavePlanner(codec, base="run/1"))
    dcp.load(state_dict, storage_reader=DeltaReader("run/2"))
"""

import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor
from torch.distributed.checkpoint._extension import ExtensionRegistry, StreamTransformExtension
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import StorageMeta
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, TensorWriteData, WriteItem
from torch.futures import Future

from ..._api.compress import checked_seed, compress_with
from ..._arguments import thread_count, wrong_value
from ..._files.bases import takes_reference
from ..._files.content import checked_path, naming
from ...codecs import Codec
from ...codecs._rules import Rule, checked_rules, codec_for
from .._adapter import ADAPTER
from .._files import save
from .._pickling import streamed, streamed_from
from .._references import finding
from .._shared import view_of
from ._base_shards import BaseShards, checked_base, key_of

__all__ = ["DeltaReader", "SavePlanner", "StreamCompression", "extension_registry"]

_VERSION = "1"  # of the files of StreamCompression
_ARCHIVE = b"PK\3\4"  # the first bytes of a file of torch.save


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
        base: str | Path | None = None,
        **options: Any,
    ) -> None:
        """Create a planner.

        Args:
            codec: same as in `arrcomp.torch.save`. Rules see PyTorch's names, for instance "model.fc.weight", and the
                global shape of sharded tensors.
            threads: number of CPU threads of each process; None for all cores that it may use.
            seed: same as in `arrcomp.compress`; all shards use the same one.
            base: the folder of an earlier checkpoint of these tensors, for a smaller one of what has changed. A shard
                is coded against the shard at the same place of a tensor of the same name, dtype and shape there if its
                codec is `Lossless` or `ErrorBounded`, without a predictor. Other shards are coded as without a base:
                all, if the number of ranks changed. `DeltaReader` reads the checkpoint, and needs the base, unchanged.
                PyTorch reads the base's metadata by `pickle`. Do not save over a checkpoint that the base itself needs:
                this is not noticed before.
            options: of PyTorch's planner.

        Raises:
            TypeError: an argument has a wrong type, or a codec needs a seed.
            ValueError: `threads` or `seed` is out of range. When it saves: the checkpoint's folder is the base.
            OSError: there is no checkpoint in `base`.
        """
        super().__init__(**options)
        folder = checked_base(base)
        self._shards = None if folder is None else BaseShards(None, folder)
        self._base_file: str | None = None
        self._rules = _checked_rules(codec, threads, seed)
        self._threads, self._seed = thread_count(threads), seed

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Prepare for a state, and for where it will be saved."""
        if self._shards is not None:
            self._base_file = self._shards.named_from(None if storage_meta is None else storage_meta.checkpoint_id)
        super().set_up_planner(state_dict, storage_meta, is_coordinator)

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
            reduced = self._reduced(name, data, item, codec)
        made: _Stream = reduced[1][0].as_subclass(_Stream)
        made.reduced = reduced
        return made

    def _reduced(self, name: str, data: TensorWriteData, x: Tensor, codec: Codec) -> tuple[Any, tuple[Any, ...]]:
        """How a shard is pickled."""
        shards, probe = self._shards, torch.empty(0, device="cpu")
        old = shards.counterpart(name, data, x) if shards is not None and takes_reference(codec) else None
        c = compress_with(ADAPTER, x, codec, None, self._threads, checked_seed(codec, self._seed), old)
        if old is None:
            return streamed(c, probe)
        return streamed_from(c, probe, range(x.dim()), key_of(name, data), self._base_file)


class DeltaReader(FileSystemReader):
    """PyTorch's reader of a folder, for a checkpoint of `SavePlanner(..., base=)`; it reads others, too.

    It raises (in PyTorch's CheckpointException) FileNotFoundError if a base is missing, and WrongReferenceError if one
    is another checkpoint than the one that was used.
    """

    def __init__(self, path: str | Path, *, base: str | Path | None = None) -> None:
        """Create a reader.

        Args:
            path: the checkpoint's folder.
            base: the folder of the base; None for the one that the checkpoint names, which must be in the folder that
                the checkpoint is in.

        Raises:
            TypeError: an argument is no path.
            OSError: there is no checkpoint in `base`.
        """
        super().__init__(checked_path(path), _extension_registry=extension_registry())
        self._base = checked_base(base)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> "Future[None]":
        """Read what a plan asks for."""
        path = Path(self.path)
        with finding(BaseShards(path, self._base, [path])):
            return super().read_data(plan, planner)


def _checked_rules(codec: Any, threads: int | None, seed: int | None) -> tuple[Rule, ...]:
    rules = checked_rules(codec)
    thread_count(threads)
    for rule in rules:
        checked_seed(rule.codec, seed)
    return rules


class _Stream(Tensor):
    """A stream, uint8[n] in host memory, that `torch.save` pickles as a call that decompresses it.

    Writers detach tensors, copy them to the host and clone them: none of this is necessary here.
    """

    reduced: tuple[Any, ...]

    def _itself(self, *arguments: Any, **options: Any) -> Any:
        return self

    detach = cpu = clone = _itself

    def data_ptr(self) -> int:
        raise TypeError("serialization_format: expected TORCH_SAVE for compressed tensors, got another format")

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.reduced


class StreamCompression(StreamTransformExtension):
    """Writes tensors by `arrcomp.torch.save`, and other items, which are small, unchanged.

    `SavePlanner` does the same with fewer copies, on the tensors' device, and its rules see names. Use this extension
    of `FileSystemWriter` with another planner, or before other extensions such as encryption. PyTorch's interface of
    extensions (2.7 and newer) is experimental.

        writer = FileSystemWriter(path, _extensions=[StreamCompression(codec)])
        reader = FileSystemReader(path, _extension_registry=extension_registry())
    """

    def __init__(
        self, codec: Codec | Sequence[Rule] | None = None, *, threads: int | None = None, seed: int | None = None
    ) -> None:
        """Create an extension.

        Arguments and errors are those of `SavePlanner`, except: rules see a shard's dtype and shape, and an empty name.
        """
        self._rules, self._options = _checked_rules(codec, threads, seed), {"threads": threads, "seed": seed}

    @staticmethod
    def registry_name() -> str:
        return "stream.arrcomp"

    @staticmethod
    def from_descriptor(version: str) -> "StreamCompression":
        """The extension that reads the files of a version; an unknown one is a ValueError."""
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
