"""What autograd keeps of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def kept_nbytes(call: Callable[[], Any]) -> int:
    """Bytes of the different tensors that autograd saves in a call."""
    kept: dict[int, int] = {}

    def note(x: Tensor) -> Tensor:
        kept[x.data_ptr()] = x.nbytes
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        call()
    return sum(kept.values())
