"""What tests of tensors that are saved for the backward pass share."""

from __future__ import annotations

from typing import Any

import torch

from arrcomp.torch._saved_activations import CompressedTensor, KeptTensor


def saved(y: Any, name: str) -> Any:
    """What a node, or that of a tensor, keeps."""
    data = getattr(getattr(y, "grad_fn", y), f"_raw_saved_{name}").data
    assert isinstance(data, (CompressedTensor, KeptTensor))
    return data


def leaf(*shape: int) -> Any:
    """A tensor whose gradient is asked for."""
    return torch.randn(*shape, requires_grad=True)
