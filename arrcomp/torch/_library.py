"""The library of this package's PyTorch operators, `torch.ops.arrcomp`."""

from collections.abc import Callable
from typing import Any

import torch

BOTH_DEVICES = ("CPU", "CUDA")
EVERYWHERE = ("CompositeExplicitAutograd",)  # of operators made of PyTorch's own

# PyTorch leaves it without types.
_torch_library: Any = torch.library
_LIBRARY = _torch_library.Library("arrcomp", "DEF")


def define(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    devices: tuple[str, ...] = BOTH_DEVICES,
    *tags: torch.Tag,
) -> Callable[..., Any]:
    """A new operator, with implementations for real tensors and for those without data."""
    name = schema.partition("(")[0]
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, *tags))
    for device in devices:
        _LIBRARY.impl(name, kernel, device)
    _torch_library.register_fake(f"arrcomp::{name}", fake, lib=_LIBRARY)
    made: Callable[..., Any] = getattr(torch.ops.arrcomp, name).default
    return made


def register_autograd(
    name: str, backward: Callable[..., Any], setup_context: Callable[..., None] | None = None
) -> None:
    """An operator's derivative."""
    _torch_library.register_autograd(f"arrcomp::{name}", backward, setup_context=setup_context, lib=_LIBRARY)


def register_vmap(name: str, batched: Callable[..., Any]) -> None:
    """What an operator does with a batch."""
    _torch_library.register_vmap(f"arrcomp::{name}", batched, lib=_LIBRARY)
