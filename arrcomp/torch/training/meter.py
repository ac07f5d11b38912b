"""How many bytes the structures of a training run take, and what their values look like."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

_SAMPLE = 1 << 16


@dataclass
class Size:
    """Bytes of one structure, over some time.

    Attributes:
        original: as the tensors have them.
        compressed: of the payloads; of tensors that are not compressed, those that they have.
    """

    original: int = 0
    compressed: int = 0

    @property
    def ratio(self) -> float:
        """Original bytes divided by compressed ones; 1 of nothing."""
        return self.original / self.compressed if self.compressed else 1.0


class Meter:
    """Bytes of each structure since the last `take`, and since the beginning, and a sample of each one's values."""

    def __init__(self) -> None:
        self.total: dict[str, Size] = {}
        self.samples: dict[str, Tensor] = {}
        self._recent: dict[str, Size] = {}

    def count(self, structure: str, original: int, compressed: int) -> None:
        """Add the bytes of a tensor."""
        for sizes in (self._recent, self.total):
            size = sizes.setdefault(structure, Size())
            size.original += original
            size.compressed += compressed

    def take(self) -> Mapping[str, Size]:
        """Sizes since the last call."""
        recent, self._recent = self._recent, {}
        return recent

    def keep(self, structure: str, x: Tensor) -> None:
        """Remember the values of a structure's largest tensor; of a large one, values at equal distances."""
        kept = self.samples.get(structure)
        if kept is None or min(x.numel(), _SAMPLE) >= kept.numel():
            flat = x.detach().reshape(-1)
            chosen = flat[:: -(-flat.numel() // _SAMPLE)] if flat.numel() else flat
            self.samples[structure] = chosen.to(device="cpu", dtype=torch.float32, copy=True)
