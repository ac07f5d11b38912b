"""What test_collective_calls.py runs in a process of its own, which starts two that work together over Gloo."""

from __future__ import annotations

import functools
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import arrcomp.jax
import reference_collectives as reference
from arrcomp import QSGD
from collectives_devices import CODEC, RANDOM, check_on_all, normal
from two_devices import shard_map

PROCESSES = 2


def check(devices: list[Any]) -> None:
    """The devices of all processes end with NumPy's sums; each process looks at its own."""
    mesh, rows = Mesh(np.array(devices), ("a",)), PartitionSpec("a")
    for count, codec, seed in ((1001, CODEC, None), (64 * len(devices), RANDOM, 7), (5000, QSGD(bits=8), None)):
        x = normal(len(devices), count)
        spread = jax.make_array_from_callback(x.shape, NamedSharding(mesh, rows), x.__getitem__)
        local = functools.partial(arrcomp.jax.psum_quantized, axis_name="a", codec=codec, seed=seed)
        total = shard_map(lambda row, local=local: local(row[0]), mesh=mesh, in_specs=rows, out_specs=PartitionSpec())
        y = jax.jit(total)(spread)
        assert len(y.addressable_shards) < len(devices)
        check_on_all(y, reference.all_reduced(x, codec, seed))


def run(rank: int, address: str) -> None:
    """All checks, in one of the processes."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, PROCESSES, rank)
    try:
        assert len(jax.devices()) == PROCESSES * len(jax.local_devices())
        check(jax.devices())
    finally:
        jax.distributed.shutdown()


def start() -> None:
    """Run the processes, and end both if one fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, *(f"-W{option}" for option in sys.warnoptions), __file__, address]
    processes = [subprocess.Popen([*command, str(rank)]) for rank in range(PROCESSES)]
    try:
        for process in processes:
            assert process.wait(timeout=300) == 0
    finally:
        for process in processes:
            process.kill()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(int(sys.argv[2]), sys.argv[1])
    else:
        start()
        print("passed")
