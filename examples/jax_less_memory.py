"""Training in JAX with compressed optimizer state and with activations that keep 3 bits.

A network learns to recognize noisy seven-segment digits. The script prints the bytes that the backward pass of a batch
needs (including weights), the bytes of the optimizer's state, and the accuracy.

    pip install ".[jax]" optax
    python examples/jax_less_memory.py
"""

import itertools
import sys
from typing import Any

try:
    import jax
    import jax.numpy as jnp
    import optax
except ImportError as error:
    sys.exit(f'jax_less_memory.py needs JAX and Optax ({error}): pip install ".[jax]" optax')

import arrcomp.jax
from arrcomp.jax.optim import eight_bit, state_nbytes

SEGMENTS = jnp.array([0x7E, 0x30, 0x6D, 0x79, 0x33, 0x5B, 0x5F, 0x70, 0x7F, 0x7B])
SIZES = (56, 512, 512, 512, 10)


def batch(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """Noisy pictures of digits, and their labels."""
    digits = jax.random.randint(jax.random.fold_in(key, 0), (size,), 0, 10)
    segments = SEGMENTS[digits, None] >> jnp.arange(7) & 1
    return jnp.tile(segments, 8) + jax.random.normal(jax.random.fold_in(key, 1), (size, 56)), digits


def new(key: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    """Weights and biases of an untrained network."""
    shapes = zip(jax.random.split(key, len(SIZES) - 1), itertools.pairwise(SIZES), strict=True)
    return [(jax.random.normal(own, (n, m)) * (2 / n) ** 0.5, jnp.zeros(m)) for own, (n, m) in shapes]


def logits(params: Any, x: jax.Array, activation: Any) -> jax.Array:
    """The network's outputs for pictures."""
    for weight, bias in params[:-1]:
        x = activation(x @ weight + bias)
    return x @ params[-1][0] + params[-1][1]


def train(title: str, activation: Any, optimizer: optax.GradientTransformation) -> None:
    """Train, and print memory and accuracy."""

    def loss(params: Any, x: jax.Array, digits: jax.Array) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(logits(params, x, activation), digits).mean()

    @jax.jit
    def step(params: Any, state: Any, key: jax.Array) -> tuple[Any, Any]:
        updates, state = optimizer.update(jax.grad(loss)(params, *batch(key, 256)), state, params)
        return optax.apply_updates(params, updates), state

    params = new(jax.random.key(0))
    state = optimizer.init(params)
    for key in jax.random.split(jax.random.key(1), 120):
        params, state = step(params, state, key)
    x, digits = batch(jax.random.key(2), 5000)
    kept = jax.eval_shape(lambda *data: jax.vjp(lambda p: loss(p, *data), params)[1], x[:256], digits[:256])
    nbytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(kept))
    accuracy = (logits(params, x, activation).argmax(1) == digits).mean()
    print(f"{title:<26} kept {nbytes:>9,} bytes, state {state_nbytes(state):>9,} bytes, accuracy {accuracy:.3f}")


def main() -> None:
    """Train in less and less memory."""
    compressed = arrcomp.jax.compressed_optimizer(optax.adamw(1e-3), eight_bit())
    train("float32", jax.nn.gelu, optax.adamw(1e-3))
    train("AdamW's state in 8 bits", jax.nn.gelu, compressed)
    train("and GELU's inputs in 3", arrcomp.jax.nn.gelu, compressed)


if __name__ == "__main__":
    main()
