"""`Compressed` as a pytree: buffer and length are its leaves; codec, dtype and shape are static.

With a fixed-rate codec, the buffer is the only leaf.
"""

from typing import Any

import jax
import numpy as np

from .._api.compressed import Compressed
from .._arrays.contract import Payload
from .._format.spec import Spec
from ._adapter import ADAPTER, own_length, uint64_pair

_KEYS = (jax.tree_util.GetAttrKey("buffer"), jax.tree_util.GetAttrKey("length"))


def _flatten(c: Compressed) -> tuple[tuple[Any, Any], Spec]:
    payload = c.payload
    # Leaves are trusted afterwards: a compiled program cannot raise.
    c.verify()
    if payload.adapter is not ADAPTER:
        payload = Payload(ADAPTER, payload.to_host(), trusted=True)
    buffer, length = payload.buffer, own_length(payload.length)
    if c.codec.fixed_rate:
        return (buffer if length is None else payload.trimmed_view(), None), c.spec
    if length is None and isinstance(buffer, (jax.Array, np.ndarray)):
        length = uint64_pair(buffer.size)
    return (buffer, length), c.spec


def _flatten_with_keys(c: Compressed) -> tuple[tuple[tuple[Any, Any], tuple[Any, Any]], Spec]:
    (buffer, length), spec = _flatten(c)
    return ((_KEYS[0], buffer), (_KEYS[1], length)), spec


def _unflatten(spec: Spec, leaves: Any) -> Compressed:
    buffer, length = leaves  # of any type: JAX and its users replace leaves by placeholders
    return Compressed(spec, Payload(ADAPTER, buffer, length, trusted=True))


jax.tree_util.register_pytree_with_keys(Compressed, _flatten_with_keys, _unflatten, _flatten)


def flattened(tree: Any) -> tuple[list[tuple[str, ...]], list[Any], Any]:
    """The keys and values of all leaves (a `Compressed` is one leaf), and the structure."""
    found, structure = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: isinstance(node, Compressed))
    paths = [tuple(jax.tree_util.keystr((key,), simple=True) for key in path) for path, _ in found]
    return paths, [leaf for _, leaf in found], structure
