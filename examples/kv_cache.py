"""A transformer's KV cache with several bounds and codecs: bits per value, and the error of attention's outputs.

The cache is synthetic, but similar to real ones: keys and values change slowly from token to token, and a few channels
of the keys are many times larger than the others. If a codec scales buckets of values, a bucket should be one channel
over time. Across channels, one large channel would widen the steps of all (Z. Liu et al., "KIVI", arXiv:2402.02750).

    pip install .
    python examples/kv_cache.py
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import QSGD, Codebook, ErrorBounded, FloatFormat, Lossless

HEADS, TOKENS, CHANNELS, QUERIES = 8, 2048, 64, 128
Array = NDArray[Any]


def cache(rng: np.random.Generator) -> tuple[Array, Array]:
    """Keys and values, float16 (heads, tokens, channels)."""
    noise = rng.normal(size=(2, HEADS, TOKENS, CHANNELS))
    for token in range(1, TOKENS):  # an autoregressive process of variance 1 in each channel
        noise[:, :, token] = 0.8 * noise[:, :, token - 1] + 0.6 * noise[:, :, token]
    keys, values = noise * rng.lognormal(0, 0.4, (2, HEADS, 1, CHANNELS))
    for head in range(HEADS):
        large = rng.choice(CHANNELS, 3, replace=False)
        keys[head][:, large] = 12 * rng.choice([-1, 1], 3) + 2 * keys[head][:, large]
    return keys.astype(np.float16), values.astype(np.float16)


def attention(queries: Array, keys: Array, values: Array) -> Array:
    """The attention output of every query, float32 (heads, queries, channels)."""
    scores = queries @ keys.astype(np.float32).swapaxes(1, 2) / np.sqrt(CHANNELS)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ values.astype(np.float32)


def roundtrip(x: Array, codec: arrcomp.Codec, by_channel: bool) -> tuple[Array, int]:
    """Compress keys or values, then decompress; also the bytes. `by_channel`: tokens of a channel are contiguous."""
    laid_out = np.ascontiguousarray(x.swapaxes(1, 2)) if by_channel else x
    compressed = arrcomp.compress(laid_out, codec)
    back = arrcomp.decompress(compressed)
    return back.swapaxes(1, 2) if by_channel else back, compressed.nbytes


def main() -> None:
    """Compress the cache in each way, and compare outputs with those of the uncompressed cache."""
    rng = np.random.default_rng(0)
    keys, values = cache(rng)
    # Each query looks for what distinguishes one token from the others.
    sought = (keys - keys.mean(1, keepdims=True))[:, rng.integers(TOKENS, size=QUERIES)]
    queries = (0.5 * sought + rng.normal(size=sought.shape)).astype(np.float32)
    exact = attention(queries, keys, values)
    ways: list[tuple[str, arrcomp.Codec, bool]] = [
        ("lossless", Lossless(), True),
        *((f"error at most {bound:g}", ErrorBounded(abs=bound), True) for bound in (1e-3, 1e-2, 3e-2, 1e-1, 3e-1)),
        ("float8 (e4m3)", FloatFormat("fp8_e4m3"), True),
        ("NF4", Codebook.nf4(), True),
        *((f"QSGD, {bits} bits", QSGD(bits=bits, bucket_size=128), True) for bits in (8, 4, 2)),
        ("QSGD, 4 bits, by token", QSGD(bits=4, bucket_size=128), False),
    ]
    print(f"{HEADS} heads, {TOKENS} tokens, {CHANNELS} channels: {keys.nbytes + values.nbytes:,} bytes of float16")
    print(f"{'codec':<22}  bits a value  largest error of the cache  error of outputs, rms")
    for title, codec, by_channel in ways:
        (k, k_nbytes), (v, v_nbytes) = (roundtrip(x, codec, by_channel) for x in (keys, values))
        bits = 8 * (k_nbytes + v_nbytes) / (keys.size + values.size)
        worst = max(np.abs(a.astype(np.float64) - b).max() for a, b in ((keys, k), (values, v)))
        lost = np.sqrt(np.square(attention(queries, k, v) - exact).mean() / np.square(exact).mean())
        print(f"{title:<22}  {bits:12.2f}  {worst:26.4f}  {100 * lost:19.3f} %")


if __name__ == "__main__":
    main()
