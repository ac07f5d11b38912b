"""Text generation with a compressed KV cache: the bytes of the cache, and whether the tokens stay the same.

The model is a Llama with random weights, so that nothing is downloaded. With weights of yours, replace `small_model`
by `AutoModelForCausalLM.from_pretrained`. Lossless compression gives the same tokens. Lossy codecs may give others:
compare the quality of your model before you use one.

    pip install ".[torch]" transformers
    python examples/transformers_kv_cache.py
"""

import sys
import time
from typing import Any

try:
    import torch
    import transformers
    from torch import Tensor
except ImportError as error:
    sys.exit(f'transformers_kv_cache.py needs PyTorch and transformers ({error}): pip install ".[torch]" transformers')

from arrcomp import QSGD, ErrorBounded, FloatFormat
from arrcomp.torch.transformers import CompressedCache

PROMPT, NEW, BLOCK = 600, 40, 64


def small_model() -> Any:
    """A model of two layers in bfloat16."""
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4
    )
    return transformers.LlamaForCausalLM(config).eval().bfloat16()


def generate(model: Any, prompt: Tensor, cache: transformers.Cache) -> tuple[Tensor, float]:
    """The new tokens, and seconds for each of them."""
    start = time.perf_counter()
    options = {"max_new_tokens": NEW, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    tokens = model.generate(prompt, past_key_values=cache, **options)
    return tokens[0, prompt.shape[1] :], (time.perf_counter() - start) / NEW


def main() -> None:
    """Generate with a plain cache, then with compressed ones."""
    torch.manual_seed(0)
    model, prompt = small_model(), torch.randint(1000, (1, PROMPT))
    expected, seconds = generate(model, prompt, transformers.DynamicCache())
    print(f"{'cache':<32} {'bytes':>8}  times smaller  same tokens  ms a token")
    print(f"{'plain':<32} {'':>8}  {1:13.2f}  {len(expected):4} of {NEW}  {1e3 * seconds:10.1f}")
    caches = {
        "lossless": CompressedCache(block=BLOCK),
        "error at most 0.01": CompressedCache(ErrorBounded(abs=0.01), block=BLOCK),
        "FP8": CompressedCache(FloatFormat("fp8_e4m3"), block=BLOCK),
        "4 bits, a scale a channel": CompressedCache(QSGD(4, bucket_size=BLOCK), layout="channel", block=BLOCK),
    }
    for name, cache in caches.items():
        tokens, seconds = generate(model, prompt, cache)
        same, ratio = int((tokens == expected).sum()), cache.plain_nbytes / cache.nbytes
        print(f"{name:<32} {cache.nbytes:8,}  {ratio:13.2f}  {same:4} of {NEW}  {1e3 * seconds:10.1f}")


if __name__ == "__main__":
    main()
