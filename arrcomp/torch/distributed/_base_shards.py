"""Shards of a checkpoint that those of another one are coded against."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, ReadItem, TensorWriteData

from ..._arguments import shown, wrong_type
from ..._files.bases import beside, path_from
from ..._files.content import is_path, is_stray
from ...errors import WrongReferenceError
from .._references import finding

_METADATA = ".metadata"  # PyTorch's file in a checkpoint's folder

Key = tuple[str, tuple[int, ...], tuple[int, ...]]  # name of a tensor; a shard's offsets and sizes


def checked_base(base: Any) -> Path | None:
    """The argument `base`: the folder of a checkpoint, or None. OSError if there is none."""
    if base is None:
        return None
    if not is_path(base):
        raise wrong_type("base", "the path of a checkpoint's folder", base)
    (Path(base) / _METADATA).stat()
    return Path(base)


def key_of(name: str, data: TensorWriteData) -> Key:
    """The key of a shard that is written."""
    return name, tuple(data.chunk.offsets), tuple(data.chunk.sizes)


class BaseShards:
    """The shards of the base of a checkpoint: the folder `base`, or for None the one that the checkpoint names.

    It is opened when the first shard is needed. `leading` are the folders whose chain leads to the checkpoint.
    """

    def __init__(self, checkpoint: Path | None, base: Path | None, leading: Sequence[Path] = ()) -> None:
        self._checkpoint, self._given, self._leading = checkpoint, base, leading
        self._folder: Path | None = None
        self._metadata: Metadata | None = None
        self._inner: BaseShards | None = None

    def __call__(self, key: Any, file: str | None) -> Tensor:
        """The shard of a key; `file` is the base that the checkpoint names."""
        metadata = self._opened(file)
        kind = self._kind(key, metadata)
        if kind is None:
            raise WrongReferenceError(f"{self}: expected shard {shown(key)}, which another needs, got none")
        name, offsets, sizes = key
        return self._read(name, offsets, torch.empty(sizes, dtype=kind), metadata)

    def __str__(self) -> str:
        return str(self._folder)

    def counterpart(self, name: str, data: TensorWriteData, x: Tensor) -> Tensor | None:
        """The shard at the same place of a tensor of the same dtype and shape, on the device of x; None if none is."""
        metadata, key = self._opened(None), key_of(name, data)
        tensor = metadata.state_dict_metadata.get(name)
        same = isinstance(tensor, TensorStorageMetadata) and tensor.size == data.size
        if not same or self._kind(key, metadata) != x.dtype or tuple(x.shape) != key[2]:
            return None
        return self(key, None).to(x.device)

    def named_from(self, checkpoint_id: Any) -> str | None:
        """The path of the base from the folder that has the new checkpoint's; None if that is no path."""
        assert self._given is not None
        if not is_path(checkpoint_id) or "://" in os.fspath(checkpoint_id):
            return None
        checkpoint = Path(checkpoint_id)
        if checkpoint.exists() and checkpoint.samefile(self._given):
            raise ValueError(f"{checkpoint}: expected another folder than base, got the same")
        return path_from(checkpoint, self._given)

    def _kind(self, key: Any, metadata: Metadata) -> torch.dtype | None:
        """The dtype of a shard; None if there is no such shard."""
        if not (isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], str)):
            return None
        name, offsets, sizes = key
        tensor = metadata.state_dict_metadata.get(name)
        chunks = tensor.chunks if isinstance(tensor, TensorStorageMetadata) else []
        found = any((tuple(chunk.offsets), tuple(chunk.sizes)) == (offsets, sizes) for chunk in chunks)
        return tensor.properties.dtype if found and isinstance(tensor, TensorStorageMetadata) else None

    def _read(self, name: str, offsets: tuple[int, ...], target: Tensor, metadata: Metadata) -> Tensor:
        """Fill a tensor with a shard."""
        assert self._folder is not None
        index, first = MetadataIndex(name, offsets), torch.Size([0] * target.dim())
        item = ReadItem(LoadItemType.TENSOR, index, first, index, first, target.shape)
        reader = FileSystemReader(self._folder)
        reader.storage_data = metadata.storage_data
        self._inner = self._inner or BaseShards(self._folder, None, [*self._leading, self._folder])
        with finding(self._inner):
            reader.read_data(LoadPlan([item]), _Filling(target))  # type: ignore[arg-type]
        return target

    def _opened(self, file: str | None) -> Metadata:
        """The metadata of the base."""
        if self._metadata is None:
            folder = self._beside(file) if self._given is None else self._given
            if any(folder.exists() and folder.samefile(each) for each in self._leading):
                expected = "a base that does not lead back to it"
                raise WrongReferenceError(f"{self._checkpoint}: expected {expected}, got {folder}")
            if not (folder / _METADATA).exists():
                reason = f"expected the base of {self._checkpoint}, got no such checkpoint; pass its path as base"
                raise FileNotFoundError(errno.ENOENT, reason, str(folder))
            self._folder, self._metadata = folder, FileSystemReader(folder).read_metadata()
        return self._metadata

    def _beside(self, file: str | None) -> Path:
        if file is None or self._checkpoint is None:
            raise ValueError(f"{self._checkpoint}: expected a base, which its tensors need, got none")
        if is_stray(file):
            raise ValueError(f"{self._checkpoint}: expected a base beside it, got {shown(file)}; pass its path as base")
        return beside(self._checkpoint, file)


class _Filling:
    """A planner for `FileSystemReader.read_data` that fills one tensor."""

    def __init__(self, target: Tensor) -> None:
        self._target = target

    def resolve_tensor(self, item: ReadItem) -> Tensor:
        return self._target

    def commit_tensor(self, item: ReadItem, tensor: Tensor) -> None:
        pass
