"""Orbax checkpoints of a train state whose arrays are compressed: Orbax writes their streams.

A stream contains the dtype and shape of its array, so Orbax needs only names and bytes. Orbax still handles steps,
retention, asynchronous and atomic writes.

    pip install ".[jax]" orbax-checkpoint
    python examples/orbax_checkpoint.py
"""

import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax import numpy as jnp

import arrcomp
import arrcomp.jax

CODEC = arrcomp.ErrorBounded(abs=1e-4)


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a pytree by the names of their keys."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def compressed(state: Any) -> dict[str, Any]:
    """The arrays of a pytree as streams, uint8[n]: float matrices within the bound, all others lossless."""

    def stream(x: Any) -> Any:
        codec = CODEC if x.ndim >= 2 and x.dtype == jnp.float32 else arrcomp.Lossless()
        return np.frombuffer(arrcomp.compress(x, codec).to_bytes(), np.uint8)

    return {name: stream(x) for name, x in named(state).items()}


def decompressed(streams: dict[str, Any], like: Any) -> Any:
    """Decompress streams to a pytree with the structure and devices of `like`."""
    arrays = [arrcomp.decompress(arrcomp.from_bytes(streams[name]), like=x) for name, x in named(like).items()]
    return jax.tree.unflatten(jax.tree.structure(like), arrays)


@jax.jit
def step(state: dict[str, Any], x: jax.Array) -> dict[str, Any]:
    """One step of gradient descent with momentum; the loss is the mean of (outputs of two layers - 1)^2."""
    first, second = state["params"]
    slopes = jax.grad(lambda params: jnp.square(jnp.tanh(x @ params[0]) @ params[1] - 1).mean())([first, second])
    momentum = jax.tree.map(lambda m, slope: 0.9 * m + slope, state["momentum"], slopes)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, state["params"], momentum)
    return {"params": params, "momentum": momentum, "step": state["step"] + 1}


def main() -> None:
    """Train, save both ways, restore and compare."""
    keys = jax.random.split(jax.random.key(0), 3)
    params = [0.02 * jax.random.normal(keys[0], (512, 1024)), 0.02 * jax.random.normal(keys[1], (1024, 256))]
    state = {"params": params, "momentum": jax.tree.map(jnp.zeros_like, params), "step": jnp.int32(0)}
    for _ in range(20):
        state = step(state, jax.random.normal(keys[2], (64, 512)))
    with tempfile.TemporaryDirectory() as folder:
        for kind, tree in (("plain", state), ("compressed", compressed(state))):
            with ocp.CheckpointManager(Path(folder, kind).absolute()) as manager:
                manager.save(int(state["step"]), args=ocp.args.StandardSave(tree))
            nbytes = sum(path.stat().st_size for path in Path(folder, kind).rglob("*") if path.is_file())
            print(f"{kind}: {nbytes:,} bytes")
        with ocp.CheckpointManager(Path(folder, "compressed").absolute()) as manager:
            streams = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore())
    restored = decompressed(streams, like=state)
    worst = max(float(abs(x - y).max()) for x, y in zip(*map(jax.tree.leaves, (state, restored)), strict=True))
    print(f"restored at step {restored['step']}, largest error {worst:.1e}, allowed {CODEC.abs:.0e}")


if __name__ == "__main__":
    main()
