"""Registration of the operators `torch.ops.arrcomp.*`."""

from collections.abc import Callable
from typing import Any

import torch

BOTH_DEVICES = ("CPU", "CUDA")
EVERYWHERE = ("CompositeExplicitAutograd",)  # for operators that are composed of PyTorch's own

# PyTorch has no types for it.
_torch_library: Any = torch.library
_LIBRARY = _torch_library.Library("arrcomp", "DEF")


# Each is true while something sees the operators that are called: a compiler, a mode, a transform of torch.func, a
# profiler, a tracer. Most are private to PyTorch; where one is missing, operators are always called. Compilers trace
# no further than the first. (PyTorch does not tell of an `ExecutionTraceObserver` that no profiler has started.)
_WATCHES: tuple[Callable[[], Any], ...] = (
    torch.compiler.is_compiling,
    *(
        getattr(torch._C, name, lambda: True)
        for name in (
            "_len_torch_dispatch_stack",
            "_len_torch_function_stack",
            "_are_functorch_transforms_active",
            "_get_tracing_state",
        )
    ),
    getattr(torch._C._autograd, "_profiler_enabled", lambda: True),
)


def is_observed() -> bool:
    """Whether a kernel must be called through its operator, because something would miss the call otherwise.

    Tensors that are no plain `torch.Tensor`, and those that are changed in place, need the operator in any case.
    """
    for watches in _WATCHES:  # noqa: SIM110 - every call asks, and `any` takes longer
        if watches():
            return True
    return False


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


# Private to PyTorch: where one is missing, its own errors tell of batches.
_functorch: Any = getattr(torch._C, "_functorch", None)
_is_wrapped: Callable[[Any], bool] = getattr(_functorch, "is_functorch_wrapped_tensor", lambda x: False)
_is_batched: Callable[[Any], bool] = getattr(_functorch, "is_batchedtensor", lambda x: False)


def is_batched(x: Any) -> bool:
    """Whether a tensor stands for the items of a batch in `torch.vmap`, in eager mode and within other transforms.

    What is no tensor does not.
    """
    while isinstance(x, torch.Tensor) and not torch.compiler.is_compiling() and _is_wrapped(x):
        if _is_batched(x):
            return True
        x = _functorch.get_unwrapped(x)
    return False


def not_batched(function: str, hint: str) -> NotImplementedError:
    """The error of a function of `arrcomp.torch` that `torch.vmap` cannot take."""
    return NotImplementedError(f"{function}: expected no batch of torch.vmap, got one; {hint}")
