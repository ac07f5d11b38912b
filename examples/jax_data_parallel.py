"""Data-parallel training in JAX: the devices exchange their gradients in 32, 4 and 2 bits per value.

Each device has its own pictures, noisy seven-segment digits. Four of XLA's CPU devices stand for real devices.

    pip install ".[jax]"
    python examples/jax_data_parallel.py
"""

import functools
import os
from typing import Any

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec

import arrcomp.jax
from arrcomp import QSGD

SEGMENTS = np.array([0x7E, 0x30, 0x6D, 0x79, 0x33, 0x5B, 0x5F, 0x70, 0x7F, 0x7B])
STEPS, RATE = 150, 0.1


def batch(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """Noisy pictures of digits, and their labels."""
    digits = jax.random.randint(jax.random.fold_in(key, 0), (size,), 0, 10)
    segments = jnp.asarray(SEGMENTS)[digits, None] >> jnp.arange(7) & 1
    return jnp.tile(segments, 8) + jax.random.normal(jax.random.fold_in(key, 1), (size, 56)), digits


def scores(params: Any, pictures: jax.Array) -> jax.Array:
    """The outputs of two layers for pictures: a score for each digit."""
    return jax.nn.relu(pictures @ params["first"] + params["offsets"]) @ params["second"]


def loss(params: Any, pictures: jax.Array, digits: jax.Array) -> jax.Array:
    """The mean cross entropy."""
    return -jnp.take_along_axis(jax.nn.log_softmax(scores(params, pictures)), digits[:, None], 1).mean()


def step(number: jax.Array, params: Any, residual: Any, codec: QSGD | None) -> tuple[Any, Any]:
    """One step, on each device. With error feedback: what a gradient loses in compression is added to the next one."""
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), number), lax.axis_index("data"))
    # With varying parameters the gradient is this device's own. Otherwise JAX would sum those of all devices itself.
    slopes = jax.grad(loss)(lax.pcast(params, "data", to="varying"), *batch(key, 32))
    if codec is None:
        slopes = lax.pmean(slopes, "data")
    else:
        slopes, residual = arrcomp.jax.pmean_quantized(slopes, "data", codec, residual=residual)
    return jax.tree.map(lambda p, slope: p - RATE * slope, params, slopes), residual


def trained(params: Any, codec: QSGD | None) -> Any:
    """Parameters after all steps, which are one program."""
    residual = None if codec is None else arrcomp.jax.zero_residual(params, "data", codec)
    return lax.fori_loop(0, STEPS, lambda number, state: step(number, *state, codec), (params, residual))[0]


def main() -> None:
    """Train with each number of bits and compare."""
    world, everywhere = jax.device_count(), PartitionSpec()
    draw = jax.random.normal(jax.random.key(1), (56 + 10, 512)) / 8
    start = {"first": draw[:56], "second": draw[56:].T, "offsets": jnp.zeros(512)}
    pictures, digits = batch(jax.random.key(2), 20_000)
    mapped = functools.partial(jax.shard_map, mesh=jax.make_mesh((world,), ("data",)), in_specs=everywhere)
    raw = 2 * (world - 1) * sum(x.nbytes for x in jax.tree.leaves(start)) // world
    for codec in (None, QSGD(bits=4, bucket_size=512), QSGD(bits=2, bucket_size=512)):
        params = jax.jit(mapped(functools.partial(trained, codec=codec), out_specs=everywhere))(start)
        right = float((scores(params, pictures).argmax(1) == digits).mean())
        sent = arrcomp.jax.psum_wire_nbytes(start, codec, world) if codec else raw
        print(f"{codec.bits if codec else 32:2} bits: {sent:,} bytes a step, accuracy {right:.4f}")


if __name__ == "__main__":
    main()
