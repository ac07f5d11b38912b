"""Times the first calls of this process, in one framework, and prints them as JSON: what first_call.py runs.

Nothing is imported before it is timed. Usage: first_call_process.py numpy|torch|jax
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def first_array(module: str) -> Any:
    """An array of 1 KiB, by a framework that is imported for it."""
    if module == "torch":
        import torch

        return torch.arange(256, dtype=torch.float32)
    if module == "jax":
        import jax

        return jax.numpy.arange(256, dtype="float32").block_until_ready()
    import numpy as np

    return np.arange(256, dtype=np.float32)


def steps(module: str) -> dict[str, float]:
    """Milliseconds of each step of `first_call.STEPS`."""
    times: dict[str, float] = {}

    def timed(step: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        made = call()
        times[step] = (time.perf_counter() - start) * 1e3
        return made

    x = timed("the framework itself", lambda: first_array(module))
    arrcomp = timed("import arrcomp", lambda: importlib.import_module("arrcomp"))
    codec = arrcomp.ErrorBounded(abs=1e-3)
    wait = (lambda y: y.block_until_ready()) if module == "jax" else (lambda y: y)
    for again in ("", " again"):
        c = timed(f"compress{again}", lambda: arrcomp.compress(x, codec))
        wait(c.payload.buffer)
        timed(f"decompress{again}", lambda: wait(arrcomp.decompress(c)))  # noqa: B023 - called at once
    if module == "jax":
        import jax

        import arrcomp.jax

        function = jax.jit(lambda x: arrcomp.jax.decompress(arrcomp.jax.compress(x, codec)))
        compiled = timed("jit: trace and compile", lambda: function.lower(x).compile())
        timed("jit: first run", lambda: wait(compiled(x)))
    return times


if __name__ == "__main__":
    print(json.dumps(steps(sys.argv[1])))
