"""Training in JAX with activations in 3 bits and an optimizer whose state is compressed between updates.

A network learns to tell noisy digits of seven segments, once in float32 and once in less memory. Printed are the bytes
that the backward pass of a batch needs (weights among them), those of the optimizer's state, and the accuracy.

    python examples/jax_less_memory.py                (needs optax)
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import arrcomp.jax
from arrcomp.jax.optimizers import eight_bit, state_nbytes

SEGMENTS = jnp.array([0x7E, 0x30, 0x6D, 0x79, 0x33, 0x5B, 0x5F, 0x70, 0x7F, 0x7B])
SIZES = (56, 512, 512, 512, 10)
Activation = Callable[[jax.Array], jax.Array]


def batch(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """Noisy pictures of digits, and which they show."""
    which, noise = jax.random.split(key)
    digits = jax.random.randint(which, (size,), 0, 10)
    segments = SEGMENTS[digits, None] >> jnp.arange(7) & 1
    return jnp.tile(segments, (1, 8)) + jax.random.normal(noise, (size, 56)), digits


def new(key: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    """Weights and biases of a network that knows nothing yet."""
    keys = jax.random.split(key, len(SIZES) - 1)
    shapes = zip(keys, SIZES[:-1], SIZES[1:], strict=True)
    return [(jax.random.normal(own, (n, m)) * (2 / n) ** 0.5, jnp.zeros(m)) for own, n, m in shapes]


def logits(params: Any, x: jax.Array, activation: Activation) -> jax.Array:
    """What the network says of pictures."""
    for weight, bias in params[:-1]:
        x = activation(x @ weight + bias)
    return x @ params[-1][0] + params[-1][1]


def train(title: str, activation: Activation, optimizer: optax.GradientTransformation) -> None:
    """Train, and print what it took."""

    def loss(params: Any, x: jax.Array, digits: jax.Array) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(logits(params, x, activation), digits).mean()

    @jax.jit
    def step(params: Any, state: Any, key: jax.Array) -> tuple[Any, Any]:
        updates, state = optimizer.update(jax.grad(loss)(params, *batch(key, 256)), state, params)
        return optax.apply_updates(params, updates), state

    params = new(jax.random.key(0))
    state = optimizer.init(params)
    for key in jax.random.split(jax.random.key(1), 200):
        params, state = step(params, state, key)
    kept = jax.eval_shape(lambda x, d: jax.vjp(lambda p: loss(p, x, d), params)[1], *batch(jax.random.key(2), 256))
    nbytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(kept))
    x, digits = batch(jax.random.key(3), 20_000)
    accuracy = (logits(params, x, activation).argmax(1) == digits).mean()
    print(f"{title:<20} kept {nbytes:>9,} bytes, state {state_nbytes(state):>9,} bytes, accuracy {accuracy:.3f}")


def main() -> None:
    """Train twice."""
    adamw = optax.adamw(1e-3)
    train("float32", jax.nn.gelu, adamw)
    train("in less memory", arrcomp.jax.nn.gelu, arrcomp.jax.compressed_optimizer(adamw, eight_bit()))


if __name__ == "__main__":
    main()
