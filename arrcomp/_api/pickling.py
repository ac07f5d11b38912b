"""How a `Compressed` is pickled.

A framework registers a way of its own where it has a better one than the stream. Pickles name the functions of this
module: they keep their place.
"""

import copyreg
from collections.abc import Callable
from typing import Any

from .._arrays.registry import adapter_named
from .compressed import Compressed, from_bytes

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]

_reducers: dict[str, Callable[[Compressed], Reduced]] = {}


def register(framework: str, reduce: Callable[[Compressed], Reduced]) -> None:
    """Let a framework say how its compressed arrays are pickled: as `object.__reduce__` does."""
    _reducers[framework] = reduce


def reduced(c: Compressed) -> Reduced:
    """A function and its arguments, same as `object.__reduce__`; synchronizes."""
    own = _reducers.get(framework := c.payload.adapter.name)
    return own(c) if own is not None else (restore, (c.to_bytes(), framework))


def restore(stream: bytes, framework: str) -> Compressed:
    """A pickled `Compressed`, on the device where the framework creates arrays; errors are those of `from_bytes`."""
    adapter, c = adapter_named(framework), from_bytes(stream)
    return Compressed(c.spec, c.payload.to(adapter, adapter.default_device()))


copyreg.pickle(Compressed, reduced)
