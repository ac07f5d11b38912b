"""Tensors that those of a pickle are coded against. `torch.load` has no argument for them: a context has them."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from torch import Tensor

from .._arguments import shown
from ..errors import CorruptStreamError

# The tensor of a key, from a file that the pickle names, or from what a caller gave. Its text names the base.
Find = Callable[[Any, str | None], Tensor]

_find: ContextVar[Find | None] = ContextVar("find_reference", default=None)


@contextlib.contextmanager
def finding(find: Find) -> Iterator[None]:
    """Inside, pickles find their references by this function."""
    token = _find.set(find)
    try:
        yield
    finally:
        _find.reset(token)


def reference(key: Any, file: Any) -> Tensor:
    """The reference of this key. ValueError without a function that finds it."""
    if not (file is None or isinstance(file, str)):
        raise CorruptStreamError(f"base: expected a string, got {shown(file)}")
    find = _find.get()
    if find is None:
        readers = "arrcomp.torch.load or arrcomp.torch.distributed.checkpoint.DeltaReader"
        raise ValueError(f"base: expected {readers} for tensors that need one, got another reader")
    return find(key, file)


def base_name() -> str:
    """The base whose tensor was found last, in errors."""
    return str(_find.get())
