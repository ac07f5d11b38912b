"""A language model whose weights stay compressed while it generates text: the same tokens in two thirds of the memory.

The model is a small one with random weights; with the name of another one as an argument, that one is loaded.

    pip install ".[transformers]"
    python examples/compressed_model.py
"""

import sys
import tempfile
import time
from pathlib import Path

try:
    import torch
    import transformers
except ImportError as error:
    sys.exit(f'compressed_model.py needs PyTorch and transformers ({error}): pip install ".[transformers]"')

from arrcomp.torch import weight_memory
from arrcomp.torch.transformers import ArrcompConfig

TOKENS = 10


def made_model(folder: Path) -> str:
    """The folder of a small model."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=704, num_hidden_layers=8, num_attention_heads=8, vocab_size=2000
    )
    transformers.LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
    return str(folder)


def generated(model: transformers.PreTrainedModel) -> tuple[torch.Tensor, float]:
    """The tokens that follow a prompt, and the seconds of one."""
    prompt = torch.arange(8)[None]
    start = time.perf_counter()
    tokens = model.generate(prompt, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False, pad_token_id=0)
    return tokens, (time.perf_counter() - start) / TOKENS


def main() -> None:
    """Load the model plain and compressed, and compare what they generate."""
    load = transformers.AutoModelForCausalLM.from_pretrained
    with tempfile.TemporaryDirectory() as folder:
        name = sys.argv[1] if len(sys.argv) > 1 else made_model(Path(folder) / "plain")
        plain = load(name)
        small = load(name, quantization_config=ArrcompConfig())
        small.save_pretrained(Path(folder) / "small")
        again = load(Path(folder) / "small")
        expected, seconds = generated(plain)
        print(f"plain: {1000 * seconds:.0f} ms a token")
        for title, model in (("compressed while loading", small), ("loaded compressed", again)):
            tokens, seconds = generated(model)
            same = "the same tokens" if torch.equal(tokens, expected) else "OTHER TOKENS"
            print(f"{title}: {1000 * seconds:.0f} ms a token, {same}\n  {weight_memory(model)}")


if __name__ == "__main__":
    main()
