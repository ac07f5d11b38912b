"""What test_weights.py runs in a process of its own, where JAX has four CPU devices."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from arrcomp.jax import compress_weights, decompress_weights

PARAMS = np.random.default_rng(4).normal(0, 0.1, (3, 64, 64)).astype(np.float32)
X = np.random.default_rng(5).normal(0, 1, (8, 64)).astype(np.float32)
MESH = Mesh(np.array(jax.devices()), ("data",))
SHARDED, WHOLE = (NamedSharding(MESH, PartitionSpec(*axes)) for axes in (["data"], []))


@jax.jit
def forward(weights: Any, x: Any) -> Any:
    """A network of three layers."""
    return jax.lax.scan(lambda x, layer: (jnp.tanh(x @ decompress_weights(layer)["w"]), None), x, weights)[0]


def main() -> None:
    """Replicated weights run on all devices; sharded ones are refused; others stay where they are."""
    assert len(jax.devices()) == 4
    weights = compress_weights({"w": PARAMS}, layers="w")
    expected = forward(weights, X)
    x = jax.device_put(X, SHARDED)
    for placed in (weights, jax.device_put(weights, WHOLE)):
        made = forward(placed, x)
        assert len(made.devices()) == 4
        np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-6)
    last = jax.devices()[-1]
    on_last = compress_weights({"w": jax.device_put(PARAMS, last)}, layers="w")
    assert on_last["w"].payload.buffer.devices() == {last}
    assert forward(on_last, jax.device_put(X, last)).devices() == {last}
    with pytest.raises(TypeError, match="leaf 'w' on one device, got one sharded over 4"):
        compress_weights({"w": x})


if __name__ == "__main__":
    main()
