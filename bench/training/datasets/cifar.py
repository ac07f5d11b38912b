"""CIFAR-10 and CIFAR-100 (A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from training.data import DATASETS, Data, DataSet, Images, Part

from .source import fetched, require

_SIDE, _CHANNELS, _PADDING = 32, 3, 4
_PIXELS = _CHANNELS * _SIDE * _SIDE
_MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)  # of CIFAR-10's training pictures
_STD = torch.tensor([0.2470, 0.2435, 0.2616]).view(1, 3, 1, 1)
_SOURCE = "https://www.cs.toronto.edu/~kriz"


class _Cifar(DataSet):
    """Files of its binary version: of each picture its labels, one byte each, and 3072 bytes of pixels."""

    kinds = (Images.kind,)
    archive: ClassVar[str]
    home: ClassVar[str]
    parts: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]]
    label_bytes: ClassVar[int]  # before the pixels; the last is the one that counts
    classes: ClassVar[int]
    hub: ClassVar[tuple[str, str, str]]  # path, and columns of pictures and labels

    @classmethod
    def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
        parts = [[folder / cls.home / name for name in names] for names in cls.parts]
        if download and not all(path.exists() for paths in parts for path in paths):
            train, test = cls._fetched("train"), cls._fetched("test")
        else:
            hint = (
                f"--data DIR must hold {cls.home}, the binary version: curl -O {_SOURCE}/{cls.archive}; "
                f"tar xzf {cls.archive} -C DIR. Or let --download fetch the data set"
            )
            require([path for paths in parts for path in paths], cls.name, hint)
            train, test = (cls._read(paths) for paths in parts)
        return Data(Images(_CHANNELS, _SIDE, _SIDE, cls.classes), train, test, prepare=_prepare)

    @classmethod
    def _read(cls, paths: Sequence[Path]) -> Part:
        rows = np.concatenate([cls._rows(path) for path in paths])
        labels = torch.from_numpy(rows[:, cls.label_bytes - 1].astype(np.int64))
        return torch.from_numpy(rows[:, cls.label_bytes :]).view(-1, _CHANNELS, _SIDE, _SIDE), labels

    @classmethod
    def _rows(cls, path: Path) -> Any:
        data, length = np.fromfile(path, np.uint8), cls.label_bytes + _PIXELS
        if data.size == 0 or data.size % length:
            raise ValueError(f"{path} has {data.size:,} bytes; a multiple of {length:,} is expected")
        rows = data.reshape(-1, length)
        if rows[:, cls.label_bytes - 1].max() >= cls.classes:
            raise ValueError(f"{path} has labels of {cls.classes} and more, which {cls.name} does not")
        return rows

    @classmethod
    def _fetched(cls, part: str) -> Part:
        path, picture, label = cls.hub
        rows = fetched(path, part)
        pictures = np.stack([np.asarray(row[picture], np.uint8) for row in rows])
        labels = torch.tensor([int(row[label]) for row in rows])
        return torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous(), labels


@DATASETS.add
class Cifar10(_Cifar):
    """60000 pictures of 10 classes."""

    name = "cifar10"
    archive = "cifar-10-binary.tar.gz"
    home = "cifar-10-batches-bin"
    parts = (tuple(f"data_batch_{number}.bin" for number in range(1, 6)), ("test_batch.bin",))
    label_bytes, classes = 1, 10
    hub = ("uoft-cs/cifar10", "img", "label")


@DATASETS.add
class Cifar100(_Cifar):
    """60000 pictures of 100 classes."""

    name = "cifar100"
    archive = "cifar-100-binary.tar.gz"
    home = "cifar-100-binary"
    parts = (("train.bin",), ("test.bin",))
    label_bytes, classes = 2, 100
    hub = ("uoft-cs/cifar100", "img", "fine_label")


def _prepare(x: Tensor, training: bool) -> Tensor:
    """Normalized floats; for training each picture moved by up to 4 pixels, every other one mirrored."""
    x = x.float().div(255).sub(_MEAN.to(x.device)).div(_STD.to(x.device))
    if not training:
        return x
    count = len(x)
    moved = pad(x, [_PADDING] * 4)
    top, left = torch.randint(0, 2 * _PADDING + 1, (2, count, 1), device=x.device)
    places = torch.arange(_SIDE, device=x.device)
    mirrored = torch.rand(count, 1, device=x.device) < 0.5
    columns = left + torch.where(mirrored, places.flip(0), places)
    rows = (top + places)[:, :, None]
    return moved[torch.arange(count, device=x.device)[:, None, None], :, rows, columns[:, None, :]].permute(0, 3, 1, 2)
