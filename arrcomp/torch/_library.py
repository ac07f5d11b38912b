"""Registration of the operators `torch.ops.arrcomp.*`."""

from collections.abc import Callable
from typing import Any

import torch

BOTH_DEVICES = ("CPU", "CUDA")
EVERYWHERE = ("CompositeExplicitAutograd",)  # for operators that are composed of PyTorch's own

# PyTorch has no types for it.
_torch_library: Any = torch.library
_LIBRARY = _torch_library.Library("arrcomp", "DEF")


def define(
    schema: str, kernel: Callable[..., Any], devices: tuple[str, ...] = BOTH_DEVICES, *tags: torch.Tag
) -> Callable[[Callable[..., Any]], Any]:
    """Define an operator with a kernel. Decorates its fake (shape-only) implementation, and replaces it."""

    def operator(fake: Callable[..., Any]) -> Any:
        name = schema.partition("(")[0]
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, *tags))
        for device in devices:
            _LIBRARY.impl(name, kernel, device)
        _torch_library.register_fake(f"arrcomp::{name}", fake, lib=_LIBRARY)
        return getattr(torch.ops.arrcomp, name).default

    return operator


def register_autograd(name: str, backward: Callable[..., Any], setup_context: Any = None) -> None:
    """Register the derivative of an operator."""
    _torch_library.register_autograd(f"arrcomp::{name}", backward, setup_context=setup_context, lib=_LIBRARY)


def register_vmap(name: str, batched: Callable[..., Any]) -> None:
    """Register the batching rule of an operator."""
    _torch_library.register_vmap(f"arrcomp::{name}", batched, lib=_LIBRARY)
