"""A model in JAX whose weights stay compressed in memory, and are decompressed layer by layer.

A recurrent language model with random weights predicts tokens. The script prints the bytes of its weights, the bytes
that the compiled program needs besides, the time for each token, and how many predictions are those of the plain model.

    pip install ".[jax]"
    python examples/jax_compressed_weights.py
"""

import sys
import time
from typing import Any

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    sys.exit(f'jax_compressed_weights.py needs JAX ({error}): pip install ".[jax]"')

import arrcomp
from arrcomp.jax import compress_weights, decompress_weights, weight_memory

LAYERS, WIDTH, WORDS, TOKENS = 12, 256, 512, 40
SHAPES = {"forget": (WIDTH, WIDTH), "write": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}


def new_params(key: jax.Array) -> Any:
    """Random weights in bfloat16; those of all layers are stacked."""
    layers = {
        name: jax.random.normal(jax.random.fold_in(key, number), (LAYERS, *shape), jnp.bfloat16) * shape[0] ** -0.5
        for number, (name, shape) in enumerate(SHAPES.items())
    }
    return {"embedding": jax.random.normal(key, (WORDS, WIDTH), jnp.bfloat16), "layers": layers}


def layer_step(x: jax.Array, layer_and_state: Any) -> tuple[jax.Array, jax.Array]:
    """A layer's output, and its next state. Only this layer is decompressed."""
    layer, state = layer_and_state
    weights = decompress_weights(layer)
    forget = jax.nn.sigmoid(x @ weights["forget"])
    state = forget * state + (1 - forget) * (x @ weights["write"])
    x = x + state + jax.nn.gelu(x @ weights["up"]) @ weights["down"]
    return x / jnp.sqrt((x**2).mean() + 1e-3), state


@jax.jit
def predict(weights: Any, text: jax.Array) -> jax.Array:
    """The likeliest next token after each token of a text."""
    embedding = decompress_weights(weights["embedding"])

    def step(states: jax.Array, token: jax.Array) -> tuple[jax.Array, jax.Array]:
        x, states = jax.lax.scan(layer_step, embedding[token], (weights["layers"], states))
        return states, (embedding @ x).argmax()

    return jax.lax.scan(step, jnp.zeros((LAYERS, WIDTH), jnp.bfloat16), text)[1]


def main() -> None:
    """Predict with plain weights, with lossless ones, and with ones of 8 bits."""
    params, text = new_params(jax.random.key(0)), jax.random.randint(jax.random.key(1), (TOKENS,), 0, WORDS)
    bits = arrcomp.QSGD(bits=8)
    lossless, rounded = (compress_weights(params, codec, layers="layers.*") for codec in (None, bits))
    expected = predict(params, text)
    for title, weights in {"plain": params, "lossless": lossless, "8 bits": rounded}.items():
        program = predict.lower(weights, text).compile()
        same = int((program(weights, text) == expected).sum())
        start = time.perf_counter()
        program(weights, text).block_until_ready()
        ms = (time.perf_counter() - start) / TOKENS * 1e3
        nbytes, more = weight_memory(weights).nbytes, program.memory_analysis().temp_size_in_bytes
        print(f"{title:<9} {nbytes:>10,} bytes, {more:>10,} besides, {ms:5.2f} ms a token, {same} of {TOKENS} the same")


if __name__ == "__main__":
    main()
