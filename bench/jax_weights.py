"""Compares a model whose weights stay compressed with the plain one, in JAX; writes jax_weights.csv and JAX_WEIGHTS.md.

python bench/jax_weights.py                          measures: minutes
python bench/jax_weights.py --quick                  a little of everything: figures mean little
python bench/jax_weights.py --redraw                 measures nothing: the page again, from jax_weights.csv
python bench/jax_weights.py --check                  whether the page is what jax_weights.csv gives
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from arrcomp import QSGD, Codebook, ErrorBounded, FloatFormat, Lossless, codecs
from arrcomp.jax import compress_weights, decompress_weights, weight_memory
from harness import conditions
from harness.page import Document, page_of_sections
from harness.section import Section
from harness.tables import table

PLAIN, LAYER = "plain", "one layer"
CODECS: dict[str, codecs.Codec] = {
    "Lossless()": Lossless(),
    'Lossless(speed="fast")': Lossless(speed="fast"),
    "ErrorBounded(abs=1e-3)": ErrorBounded(abs=1e-3),
    'FloatFormat("fp8_e4m3")': FloatFormat("fp8_e4m3"),
    "QSGD(bits=8)": QSGD(bits=8),
    "Codebook.nf4()": Codebook.nf4(),
}
SEQUENCES = (1, 32)
_DTYPES, _NAME = ("bfloat16", "float32"), "weights"
_SEED, _DEVIATION = 0, 0.02


class Size(NamedTuple):
    """Sizes of the model, and how often a step is timed."""

    layers: int = 6
    width: int = 384
    heads: int = 6
    hidden: int = 1024
    words: int = 4096
    positions: int = 128
    rounds: int = 15


QUICK = Size(layers=2, width=64, heads=2, hidden=128, words=128, positions=8, rounds=2)


# The model: a decoder with a cache of keys and values


def new_params(size: Size, dtype: Any) -> Any:
    """Normal weights; those of the layers are stacked."""
    rng = np.random.default_rng(_SEED)
    wide, deep = size.width, size.hidden

    def normal(*shape: int) -> Any:
        return (_DEVIATION * rng.standard_normal(shape, np.float32)).astype(jnp.dtype(dtype))

    shapes = {
        "qkv": (wide, 3 * wide),
        "out": (wide, wide),
        "gate": (wide, deep),
        "up": (wide, deep),
        "down": (deep, wide),
    }
    layers = {name: normal(size.layers, *shape) for name, shape in shapes.items()}
    norms = {name: np.ones((size.layers, wide), jnp.dtype(dtype)) for name in ("norm", "mlp_norm")}
    params = {"embedding": normal(size.words, wide), "layers": layers | norms}
    return jax.tree.map(jnp.asarray, params)


def new_cache(size: Size, dtype: Any, sequences: int) -> jax.Array:
    """Keys and values of no position."""
    return jnp.zeros((size.layers, 2, sequences, size.positions, size.width), dtype)


def step(heads: int, weights: Any, cache: Any, position: Any, tokens: Any) -> tuple[Any, Any]:
    """The logits of the next token of each sequence, and the cache with this one."""
    embedding = decompress_weights(weights["embedding"])

    def body(x: Any, scanned: Any) -> tuple[Any, Any]:
        layer, kept = scanned
        return _block(heads, decompress_weights(layer), kept, position, x)

    x, cache = lax.scan(body, embedding[tokens], (weights["layers"], cache))
    return _normed(x) @ embedding.T, cache


def _block(heads: int, layer: Any, kept: Any, position: Any, x: Any) -> tuple[Any, Any]:
    query, *new = jnp.split(_normed(x) * layer["norm"] @ layer["qkv"], 3, axis=-1)
    kept = lax.dynamic_update_slice_in_dim(kept, jnp.stack(new)[:, :, None], position, axis=2)
    keys, values = kept.reshape(*kept.shape[:-1], heads, -1)
    scores = jnp.einsum("bhd,bthd->bht", query.reshape(len(x), heads, -1), keys) / np.sqrt(keys.shape[-1])
    scores = jnp.where(jnp.arange(kept.shape[2]) <= position, scores.astype(jnp.float32), -jnp.inf)
    mixed = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores).astype(x.dtype), values)
    x = x + mixed.reshape(x.shape) @ layer["out"]
    y = _normed(x) * layer["mlp_norm"]
    return x + (jax.nn.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"], kept


def _normed(x: Any) -> Any:
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype)


# What is measured


def measured(dtype: str, quick: bool) -> dict[str, Any]:
    """By codec, what the weights take, and by number of sequences what a step takes and gives."""
    size = QUICK if quick else Size()
    params = new_params(size, dtype)
    weights = {PLAIN: params}
    weights |= {name: compress_weights(params, codec, layers="layers.*") for name, codec in CODECS.items()}
    layer_nbytes = weight_memory(params["layers"]).nbytes // size.layers
    found: dict[str, Any] = {_NAME: {LAYER: {"nbytes": layer_nbytes}}}
    for name, each in weights.items():
        memory = weight_memory(each)
        found[_NAME][name] = {"nbytes": memory.nbytes, "ratio": memory.plain_nbytes / memory.nbytes}
    for sequences in SEQUENCES:
        found[str(sequences)] = _steps(size, dtype, sequences, weights)
        print(dtype, sequences, {name: of["ms"] for name, of in found[str(sequences)].items()}, flush=True)
    return found


def _steps(size: Size, dtype: str, sequences: int, weights: Mapping[str, Any]) -> dict[str, Any]:
    tokens = jnp.arange(sequences) % size.words
    found: dict[str, Any] = {}
    calls: dict[str, Callable[[], Any]] = {}
    logits: dict[str, Any] = {}
    for name, each in weights.items():
        args = each, new_cache(size, dtype, sequences), jnp.int32(0), tokens
        compiled = jax.jit(partial(step, size.heads)).lower(*args).compile()
        found[name] = {"temporaries": compiled.memory_analysis().temp_size_in_bytes}
        calls[name] = partial(lambda call, args: jax.block_until_ready(call(*args)), compiled, args)
        logits[name] = np.asarray(compiled(*args)[0], np.float64)
    for name, seconds in _processor_seconds(calls, size.rounds).items():
        found[name] |= {"ms": 1e3 * seconds}
        found[name] |= {"difference": float(np.abs(logits[name] - logits[PLAIN]).max() / logits[PLAIN].std())}
    return found


def _processor_seconds(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median of each call's rounds, in which all take turns; what other programs take does not count."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            samples[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in samples.items()}


# The page

_HOW = """\
The model is a decoder of {layers} layers, {width} values wide, with attention of {heads} heads over a cache of
{positions} positions, gated MLPs of {hidden} values, and {words} tokens: {parameters:.1f} million parameters, from a
normal distribution of deviation {deviation}. Its layers are stacked and scanned: `compress_weights(params, codec,
layers="layers.*")`, and `decompress_weights(layer)` in the body of the scan.

"In memory" are all weights: those of the layers, norms, which stay plain, and the embedding. Temporaries are what XLA's
`memory_analysis()` says that the compiled step for one sequence needs besides arguments and results. They include one
decompressed layer, and the decompressed embedding, which is not scanned. A step makes one token of each sequence. The
times are processor time on one core, medians of {rounds} steps; all kinds of weights take turns in one process.
"Difference" is the largest difference of a logit from the plain model's, by their standard deviation: 0 means the same
bits.

XLA has no products of bfloat16 on this CPU. It converts weights to float32, and does so for the stacked weights of the
plain model as a whole, before the loop: that is why the plain model's temporaries are larger than all of its weights,
and its step is slower than in float32. It converts compressed weights layer by layer.

Other programs ran on the machine at the same time, which the processor time leaves out, except that they share its
caches: times vary from run to run by tens of percent, and bytes do not. Larger models and GPUs were not measured."""


def markdown(document: Mapping[str, Any]) -> str:
    """JAX_WEIGHTS.md."""
    head = "Written by `python bench/jax_weights.py`; [jax_weights.csv](jax_weights.csv) has every figure, one a line."
    found = {dtype: document[dtype]["found"] for dtype in _DTYPES if dtype in document}
    tables = [f"## {dtype}\n\n{_table(of)}" for dtype, of in found.items()]
    dtype, of = next(iter(found.items()))
    parameters = of[_NAME][PLAIN]["nbytes"] / jnp.dtype(dtype).itemsize / 1e6
    how = _HOW.format(**Size()._asdict(), parameters=parameters, deviation=_DEVIATION)
    about = conditions.said_of(document, {dtype: dtype for dtype in _DTYPES})
    title = "# Weights that stay compressed, in JAX"
    return "\n\n".join([title, head, *tables, "## How it is measured", how, about]) + "\n"


def _table(found: Mapping[str, Any]) -> str:
    times = [f"ms a step, {count} sequence{'s' * (count > 1)}" for count in SEQUENCES]
    heads = ["<weights", "in memory, MB", "times smaller", "temporaries, MB", "together, MB", *times, "difference"]
    layer = _megabytes(found[_NAME][LAYER]["nbytes"])
    return f"{table(heads, [_row(found, name) for name in (PLAIN, *CODECS)])}\n\nOne layer, plain, has {layer} MB."


def _row(found: Mapping[str, Any], name: str) -> list[str]:
    kept, steps = found[_NAME][name], [found[str(count)][name] for count in SEQUENCES]
    nbytes, temporaries = kept["nbytes"], steps[0]["temporaries"]
    sizes = [_megabytes(nbytes), f"{kept['ratio']:.2f}", *map(_megabytes, (temporaries, nbytes + temporaries))]
    worst = max(each["difference"] for each in steps)
    return [f"`{name}`" if name in CODECS else name, *sizes, *(f"{each['ms']:.1f}" for each in steps), f"{worst:.2g}"]


def _megabytes(nbytes: float) -> str:
    return f"{nbytes / 1e6:.2f}"


def _section(dtype: str) -> Section:
    return Section(
        dtype,
        partial(measured, dtype),
        lambda found: "",  # the page is written of all of them
        levels=("setting", "method", "metric"),
        units={"nbytes": "B", "temporaries": "B", "ms": "ms"},
        versions=("arrcomp", "jax", "jaxlib", "numpy"),
    )


def _texts(document: Document, folder: Path) -> dict[Path, str]:
    return {folder / "JAX_WEIGHTS.md": markdown(document)}


_SECTIONS = {dtype: _section(dtype) for dtype in _DTYPES}
PAGE = page_of_sections("jax_weights", __doc__, _SECTIONS, _texts)


if __name__ == "__main__":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    PAGE.main()
